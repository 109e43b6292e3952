/* Writing a trace to where the user wants it, and saying what was lost on the way. */
#ifndef SW_CLI_TRACE_WRITE_H
#define SW_CLI_TRACE_WRITE_H

#include "base/error.h"
#include "sim/trace/trace.h"

/* Losses are told on standard error. */
int sw_cli_write_trace(const struct sw_trace *trace, const char *format, const char *path, struct sw_err *err);

#endif
