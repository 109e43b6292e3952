/* What an agent does with the GPUs of its node: options that 'up' and 'agent' share. */
#ifndef SW_CLI_GPU_RULES_H
#define SW_CLI_GPU_RULES_H

#include <stddef.h>

#include "cli/command.h"
#include "cli/share_places.h"

struct sw_agent_options;

struct sw_cli_gpu_rules {
	const char *throttle, *host_memory;
	const char *strangers, *stranger_memory, *exclude_gpus, *trespass, *device_rules, *driver_patience;
};

/* Options, for a struct with a member `rules`. */
#define SW_CLI_GPU_RULES_OPTIONS(type)                                                                                                    \
	{"throttle",                                                                                                                      \
	 .kind = SW_CLI_WORD,                                                                                                             \
	 .argument = "RULE",                                                                                                              \
	 .words = &sw_cli_throttle_words,                                                                                                 \
	 .about = "how opportunistic jobs keep out of the way of guaranteed ones on their GPUs (yield)",                                  \
	 .offset = offsetof(type, rules.throttle)},                                                                                       \
		{"strangers",                                                                                                             \
		 .kind = SW_CLI_WORD,                                                                                                     \
		 .argument = "RULE",                                                                                                      \
		 .words = &sw_cli_strangers_words,                                                                                        \
		 .about = "GPUs that processes outside the queue use: avoid (they take no jobs, as long as that lasts), share or ignore " \
			  "(avoid)",                                                                                                      \
		 .offset = offsetof(type, rules.strangers)},                                                                              \
		{"stranger-memory", .kind = SW_CLI_TEXT, .argument = "SIZE",                                                              \
		 .about = "processes that draw, and unknown ones, count as outside the queue from so much memory of a GPU on (512M)",     \
		 .offset = offsetof(type, rules.stranger_memory)},                                                                        \
		{"exclude-gpus", .kind = SW_CLI_TEXT, .argument = "LIST",                                                                 \
		 .about = "GPUs that are never given out: numbers or UUIDs as nvidia-smi has them, with commas between",                  \
		 .offset = offsetof(type, rules.exclude_gpus)},                                                                           \
		{"trespass",                                                                                                              \
		 .kind = SW_CLI_WORD,                                                                                                     \
		 .argument = "RULE",                                                                                                      \
		 .words = &sw_cli_trespass_words,                                                                                         \
		 .about = "a job on a GPU that it was not given: say (it is said) or stop (it is stopped) (say)",                         \
		 .offset = offsetof(type, rules.trespass)},                                                                               \
		{"device-rules",                                                                                                          \
		 .kind = SW_CLI_WORD,                                                                                                     \
		 .argument = "RULE",                                                                                                      \
		 .words = &sw_cli_device_rules_words,                                                                                     \
		 .about = "auto: under root, where control groups of version 2 are there, the kernel keeps jobs to the device files of "  \
			  "their "                                                                                                        \
			  "GPUs; off: their environment alone does (auto)",                                                               \
		 .offset = offsetof(type, rules.device_rules)},                                                                           \
		{"driver-patience", .kind = SW_CLI_TEXT, .argument = "TIME",                                                              \
		 .about = "how long the GPU driver may take to answer before it counts as silent (20s)",                                  \
		 .offset = offsetof(type, rules.driver_patience)},                                                                        \
	{                                                                                                                                 \
		"host-memory", .kind = SW_CLI_TEXT, .argument = "SIZE", .about = SW_CLI_HOST_MEMORY_ABOUT,                                \
			       .offset = offsetof(type, rules.host_memory)                                                                \
	}

/* SW_EINPUT where they cannot be read. */
int sw_cli_gpu_rules_read(const struct sw_cli_gpu_rules *rules, struct sw_agent_options *options, struct sw_err *err);

#endif
