/* Traces written in a format of choice. What the format has no place for is left out and named. */
#ifndef SW_SIM_TRACE_WRITE_H
#define SW_SIM_TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/trace/trace.h"

#define SW_TRACE_LOSSES_MAX 32

struct sw_trace_losses {
	size_t count;
	struct {
		const char *field; /* "tenant" */
		const char *how;   /* "left out", "rounded to whole seconds" */
		uint64_t jobs;	   /* that had something to lose */
	} items[SW_TRACE_LOSSES_MAX];
};

/* Writes all jobs in submit order. `ret_losses` may be NULL. An unknown or unwritable
 * format gives SW_ENOTFOUND before anything is written; when `out` fails, SW_EIO. Only
 * "sharewell" never loses anything. */
int sw_trace_write(const struct sw_trace *trace, const char *format, FILE *out, struct sw_trace_losses *ret_losses, struct sw_err *err);

/* Names of the formats that can be written; NULL behind the last. */
const char *sw_trace_write_formats(size_t index);

#endif
