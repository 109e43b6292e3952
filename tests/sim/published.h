/* What other simulators published, for tests: their traces as jobs of the naive model, and the life
 * of every job as they printed it.
 *
 * The data lies outside the project, in $SHAREWELL_SHARED or else beside the source; tests that
 * need it skip where it is absent.
 */
#ifndef SW_TESTS_SIM_PUBLISHED_H
#define SW_TESTS_SIM_PUBLISHED_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "naive.h"
#include "sim/trace/trace.h"

/* The folder of published data, or NULL (and a line on standard output that says
 * so) when there is none. */
const char *sw_published_folder(void);

/* Seconds that the muri simulator takes from a job at every event, by model and number of GPUs. */
int64_t sw_published_overhead_s(const char *model, uint32_t gpus);

/* Jobs of a trace as the published simulators understand it: a trace that gives iterations means
 * 1.015 times their time and the overhead above (muri), any other means its durations, without
 * overhead (tiresias). The caller frees. NULL when out of memory. */
struct sw_naive_job *sw_published_jobs(const struct sw_trace *trace);

/* One line of a published job log; column "preempt" means nothing in the logs of muri. */
struct sw_published_life {
	int64_t id;
	int64_t start_ns;
	int64_t end_ns;
	int64_t preemptions;
	int64_t promotions;
};

/* Reads baselines/jobs/<name>.csv.xz below `folder`, in the order of the file. The
 * caller frees *ret_lives. */
int sw_published_lives(const char *folder, const char *name, struct sw_published_life **ret_lives, size_t *ret_count, struct sw_err *err);

#endif
