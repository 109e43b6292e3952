/* What really happened, as a result beside those of simulations: from a trace that was recorded on a cluster and says when its jobs started and
 * ended. Not a simulation: nothing is decided here, and no world charges anything. */
#ifndef SW_SIM_RECORDED_H
#define SW_SIM_RECORDED_H

#include "base/error.h"
#include "sim/result.h"
#include "sim/trace/trace.h"

/* `label` stands where a policy's name would; `cluster` as people call it, with `gpus` in all.
 *
 * Every job that ended counts as finished, whatever its outcome: in a simulation of the trace it runs as long and ends, too. An unfinished one counts as
 * ended when the trace was written. SW_EINPUT: the trace does not tell of a single job what became of it. */
int sw_recorded_result(const struct sw_trace *trace, const char *label, const char *cluster, uint32_t gpus, struct sw_result **ret_result,
		       struct sw_err *err);

/* Jobs of the trace by how they ended; as long as SW_TRACE_ENDS. */
void sw_recorded_count(const struct sw_trace *trace, uint64_t *ends);

#endif
