/* What really happened, as a result beside those of simulations. It comes from a trace that was
 * recorded on a cluster and says when its jobs started and ended. Not a simulation: nothing is
 * decided here, and no world charges anything. */
#ifndef SW_SIM_RECORDED_H
#define SW_SIM_RECORDED_H

#include "base/error.h"
#include "sim/result.h"
#include "sim/trace/trace.h"

/* `label` stands where a policy's name would; `cluster` as people call it, with `gpus` in all.
 *
 * Every job that ended counts as finished, whatever its outcome: in a simulation of the trace it
 * runs as long and ends, too. An unfinished one counts as ended when the trace was written.
 * SW_EINPUT: the trace does not tell of a single job what became of it. */
int sw_recorded_result(const struct sw_trace *trace, const char *label, const char *cluster, uint32_t gpus, struct sw_result **ret_result,
		       struct sw_err *err);

/* Whether a simulation of the policy that was in charge is far from what happened. It is if it
 * differs by a quarter of the average time that a job took, and by two seconds. That policy is in
 * brackets in the record's label. False of other policies. */
bool sw_recorded_is_far(const struct sw_result *record, const struct sw_result *simulated);

/* Jobs of the trace by how they ended; as long as SW_TRACE_ENDS. */
void sw_recorded_count(const struct sw_trace *trace, uint64_t *ends);

#endif
