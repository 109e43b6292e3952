/* A child process of the agent that looks at GPUs and processes, since drivers may take long to answer. What it sees comes as lines over a pipe: the
 * first says how the GPUs could be opened; each of the others is the JSON of a sync that holds the inventory (the second) or samples. */
#ifndef SW_AGENT_SAMPLER_H
#define SW_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct sw_sampler_options {
	const char *gpus;  /* as sw_gpus_open() takes it */
	const char *state; /* folder of the agent */
	int64_t every_ms;
	bool runtime; /* jobs have the GPU runtime */
};

struct sw_sampler {
	int pipe; /* to be read */
	pid_t pid;
};

/* Starts it; it ends when the pipe is closed. 0 or SW_EIO. */
int sw_sampler_start(const struct sw_sampler_options *options, struct sw_sampler *ret_sampler, struct sw_err *err);
/* Waits for the first line, at most a minute. `about`: one line for people on where the GPUs come from. */
int sw_sampler_greet(const struct sw_sampler *sampler, char about[400], struct sw_err *err);
/* Ends it, or takes note of its end. */
void sw_sampler_stop(struct sw_sampler *sampler);

#endif
