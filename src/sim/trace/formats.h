/* The trace formats that can be read, for help texts and option parsers. */
#ifndef SW_SIM_TRACE_FORMATS_H
#define SW_SIM_TRACE_FORMATS_H

#include <stddef.h>

struct sw_trace_format_info {
	const char *name;
	const char *about; /* one line: whose it is, units */
};

/* The formats in the order in which they are tried; NULL behind the last. */
const struct sw_trace_format_info *sw_trace_formats(size_t index);

#endif
