/* What happens when a node does not answer: options that 'up' and 'controller' share. */
#ifndef SW_CLI_LOST_H
#define SW_CLI_LOST_H

#include <stddef.h>

#include "cli/command.h"

struct sw_controller_options;

struct sw_cli_lost {
	const char *classes, *after;
};

/* Options, for a struct with a member `lost`. */
#define SW_CLI_LOST_OPTIONS(type)                                                                                              \
	{"on-lost-restart", .kind = SW_CLI_TEXT, .argument = "CLASSES",                                                        \
	 .about = "jobs of these classes that were submitted without --on-lost start anew elsewhere when their node is lost",  \
	 .offset = offsetof(type, lost.classes)},                                                                              \
	{                                                                                                                      \
		"unreachable-after", .kind = SW_CLI_TEXT, .argument = "TIME",                                                  \
				     .about = "how long a node may be silent before it counts as unreachable; 30s by default", \
				     .offset = offsetof(type, lost.after)                                                      \
	}

/* A member `validate_every`, uint64_t. */
#define SW_CLI_VALIDATE_OPTION(type)                                                                                                 \
	{                                                                                                                            \
		"validate-every", .kind = SW_CLI_COUNT, .argument = "N", .least = 0, .most = UINT32_MAX,                             \
				  .about = "derive the whole state anew after every N records of the journal, and say loudly where " \
					   "it differs; 0: never. For tests, and to find a fault (0)",                               \
				  .offset = offsetof(type, validate_every)                                                           \
	}

/* SW_EINPUT where they cannot be read. */
int sw_cli_lost_read(const struct sw_cli_lost *lost, struct sw_controller_options *options, struct sw_err *err);

#endif
