/* What happened to each job, one line per job, in the columns that other simulators of
 * this field print as well.
 *
 * Times are exact seconds since the trace's time zero: no decimals when whole, else as many as
 * needed (up to nine). A cell is empty where there is nothing to say. A job that never started has
 * no start_time, and one that did not end has neither end_time nor JCT.
 */
#ifndef SW_SIM_REPORT_JOBS_CSV_H
#define SW_SIM_REPORT_JOBS_CSV_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/result.h"

/* With more than one result, a leading column `policy` tells them apart. */
int sw_results_jobs_csv(FILE *out, const struct sw_result *const *results, size_t count, struct sw_err *err);

/* What was done to them, one line per start, stop, move and end, in their order: `time`, `job_id`
 * and `event`. An event is start, resume (it goes on with what it had done), stop, move, end, fail
 * (its run) or refuse. A job that waits for its turn on a GPU it has runs. */
int sw_results_events_csv(FILE *out, const struct sw_result *const *results, size_t count, struct sw_err *err);

#endif
