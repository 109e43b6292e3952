/* Reading a trace line by line: what sw_trace_load() and sw_trace_check() share.
 * Private to this folder. */
#ifndef SW_SIM_TRACE_READ_H
#define SW_SIM_TRACE_READ_H

#include "sim/trace/check.h"
#include "sim/trace/stream.h"
#include "sim/trace/trace.h"

/* A caller that wants to hear everything and go on, instead of stopping at the first error. */
struct sw_trace_listener {
	void (*problem)(void *user, const struct sw_trace_problem *problem);
	/* A row was read as this job; it is the newest of the trace's, which is
	 * not yet in submit order. */
	void (*job)(void *user, const struct sw_trace *trace, const struct sw_trace_job *job, uint64_t line);
	void *user;
};

/* Reads all jobs. With a listener, wrong rows are left out and reported to it. A damaged file ends
 * the reading as if it ended there, and a trace without jobs is no error. What still fails is a
 * file that cannot be understood at all. */
int sw_trace_read(struct sw_stream *stream, const char *format, const struct sw_trace_listener *listener, struct sw_trace **ret_trace,
		  struct sw_err *err);

#endif
