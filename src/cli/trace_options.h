/* Options that the trace commands share. */
#ifndef SW_CLI_TRACE_OPTIONS_H
#define SW_CLI_TRACE_OPTIONS_H

#include "cli/catalogue.h"

#define SW_CLI_TRACE_OPERAND(type, member)                                                                    \
	{                                                                                                     \
		"FILE", .kind = SW_CLI_TEXT, .is_path = true, .required = true,                               \
			.about = "the trace; '-' is standard input, and .gz, .xz, .zst are read as they are", \
			.offset = offsetof(type, member)                                                      \
	}
#define SW_CLI_FORMAT_OPTION(type, member)                                                                             \
	{                                                                                                              \
		"format", 'f', .kind = SW_CLI_WORD, "FORMAT", "auto", "the format of the trace", &sw_cli_format_words, \
			       .offset = offsetof(type, member)                                                        \
	}

#endif
