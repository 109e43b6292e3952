/* The agent of a node: keeps the runs of <state>/runs in step with what the controller wishes.
 *
 * It decides nothing (brain.h does) and supervises nothing (supervisor.h does): it carries words
 * between the two, makes and deletes folders, and tells the controller. One event loop, which never
 * waits for a disk's flush, a driver or a peer. It may be killed at any moment: the runs go on, and
 * the next agent finds them.
 */
#ifndef SW_AGENT_AGENT_H
#define SW_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/fitness.h"
#include "api/sync.h"
#include "base/error.h"

struct sw_agent_options {
	const char *node;	     /* NULL: the name of this machine */
	const char *state;	     /* folder; made if it is missing */
	const char *controller;	     /* "http://host:port", "https://...", "unix:/path" */
	const char *token;	     /* NULL: none */
	const char *ca_file;	     /* as in client/trust.h; NULL: those that the system believes */
	const char *gpus;	     /* as sw_gpu_source_open() takes it; NULL: "auto" */
	int64_t sample_ms;	     /* distance of samples; 0: 2000 */
	enum sw_strangers strangers; /* what to do about processes outside the queue */
	uint64_t small_bytes;	     /* of GPU memory, from which processes that draw count as such; 0: SW_FITNESS_SMALL_BYTES */
	const char *exclude_gpus;    /* numbers or UUIDs with commas between them; NULL: none */
	bool stop_trespassers;	     /* runs on GPUs that are none of theirs are stopped; else it is said */
	int64_t patience_ms;	     /* with the driver; 0: 20000 */
	const char *throttle;	     /* the rule by which opportunistic jobs keep out of the way (share/throttle.h); NULL: the default */
	/* of host memory for contents of GPUs, all programs of the machine together;
	 * 0: half of what it has */
	uint64_t host_bytes;
	const char *cgroup;	  /* a folder of cgroup v2 for the runs' groups; "auto": below the agent's own; NULL: none */
	bool no_device_rules;	  /* runs are not kept to the device files of their GPUs by the kernel, where it could */
	const char *supervisor;	  /* the program that is called as `PROGRAM supervise -`; NULL: the one that is running */
	uint64_t keep_logs_bytes; /* of the logs of runs that were forgotten; 0: they are deleted */
	int stop_fd;		  /* ends the agent when it can be read; -1: none */
	bool signals;		  /* SIGTERM and SIGINT end it, too */
	void (*say)(void *context, const char *line); /* what an operator should know; NULL: it is not watched */
	void *context;
};

void sw_agent_options_defaults(struct sw_agent_options *options);

/* Runs until it is told to end: 0. Its runs go on. */
int sw_agent_run(const struct sw_agent_options *options, struct sw_err *err);

#endif
