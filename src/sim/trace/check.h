/* What is wrong with a trace file, line by line. */
#ifndef SW_SIM_TRACE_CHECK_H
#define SW_SIM_TRACE_CHECK_H

#include <stdint.h>

#include "base/error.h"

enum sw_trace_severity {
	SW_TRACE_ERROR = 0,   /* the row cannot be used, or contradicts another */
	SW_TRACE_WARNING = 1, /* it can be used, and is probably not what was meant */
	SW_TRACE_NOTE = 2,    /* worth knowing */
};

#define SW_TRACE_SEVERITIES 3

struct sw_trace_problem {
	enum sw_trace_severity severity;
	uint64_t line;	    /* 0 when it is the file as a whole */
	const char *column; /* NULL when it is the row as a whole */
	const char *text;   /* one sentence without file, line and column; valid during the call */
};

typedef void sw_trace_problem_fn(void *user, const struct sw_trace_problem *problem);

struct sw_trace_verdict {
	const char *format;		      /* as recognised; lives as long as the process */
	uint64_t jobs;			      /* that could be read */
	uint64_t left_out;		      /* rows that carry no job */
	uint64_t found[SW_TRACE_SEVERITIES];  /* problems, by severity */
	uint64_t unsaid[SW_TRACE_SEVERITIES]; /* of them not reported, because there were too many */
};

/* Reads all of `path` (as sw_trace_load() does, same `format`) and goes on after errors. Reports
 * each problem in the order of lines, those of the whole file last; at most `limit` of each
 * severity. Returns 0 however wrong the rows are: see the verdict. Fails where nothing can be said
 * about rows: no such file, not a trace, an unknown format. */
int sw_trace_check(const char *path, const char *format, uint64_t limit, sw_trace_problem_fn *report, void *user,
		   struct sw_trace_verdict *ret_verdict, struct sw_err *err);

/* "error", "warning", "note". */
const char *sw_trace_severity_name(enum sw_trace_severity severity);

#endif
