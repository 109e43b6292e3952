/* What was done to the jobs of a simulation, one after the other: starts, stops, moves, ends. */
#ifndef SW_SIM_JOB_EVENTS_H
#define SW_SIM_JOB_EVENTS_H

#include "core/engine.h"
#include "sim/result.h"
#include "sim/trace/trace.h"

/* `at_ns`: since the trace's time zero. Appends what a step told the engine of its jobs, and then
 * what the engine decided. SW_ENOMEM. */
int sw_job_events_note(struct sw_result *result, const struct sw_trace *trace, int64_t at_ns, const struct sw_event *events, size_t count,
		       const struct sw_step *step);

#endif
