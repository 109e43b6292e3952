/* A child process of the agent that looks at GPUs and processes, since drivers may take long to
 * answer. What it sees comes as lines over a pipe. The first says how the GPUs could be opened.
 * Each of the others is the JSON of a sync with samples and the GPUs that take no jobs. The first
 * of them has the inventory, too.
 *
 * A driver that hangs cannot be asked why. The page tells which GPU it was asked about, so that the
 * next sampler can leave that one out. */
#ifndef SW_AGENT_SAMPLER_H
#define SW_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/fitness.h"
#include "base/error.h"

struct sw_sampler_options {
	const char *gpus;  /* as sw_gpu_source_open() takes it */
	const char *state; /* folder of the agent */
	int64_t every_ms;
	bool runtime; /* jobs have the GPU runtime */
	enum sw_strangers strangers;
	uint64_t small_bytes; /* as in fitness.h */
	const char *exclude;  /* GPUs to keep back, by number or UUID, with commas between them; NULL: none */
	bool exclude_all;     /* one that is not there is an error */
	const char *cgroup;   /* folder with the runs' control groups; "": none */
	uint64_t skip;	      /* GPUs, as the driver counts, that are not asked */
};

struct sw_sampler_page {
	_Atomic int asking; /* as in struct sw_gpu_source_care */
};

struct sw_sampler {
	int pipe; /* to be read */
	pid_t pid;
	struct sw_sampler_page *page;
};

/* Starts it; it ends when the pipe is closed. 0 or SW_EIO. */
int sw_sampler_start(const struct sw_sampler_options *options, struct sw_sampler *ret_sampler, struct sw_err *err);
/* Waits for the first line. SW_EIO: none came in time. `about`: one line for people on
 * where the GPUs come from. */
int sw_sampler_greet(const struct sw_sampler *sampler, int64_t timeout_ms, char about[400], struct sw_err *err);
/* Ends it, or takes note of its end. Returns the process where it cannot be waited for yet, since
 * it hangs in its driver; 0: it is gone. */
pid_t sw_sampler_stop(struct sw_sampler *sampler);

#endif
