/* The process that takes what a job writes from its pipes into bounded files. It has the user's
 * identity and does nothing else. So a slow or dead file system holds up neither the supervisor's
 * timers nor more than this. It ends when no process holds the other end of the pipes.
 *
 * Lines of the supervisor's own (`notes`: why the job was stopped) go where the job's errors go: to
 * the last of the streams. A file that the user named for standard output gets them only while what
 * the job wrote there is text. What a job writes for programs stays as it was. They count neither
 * as output nor as evidence of a failure. */
#ifndef SW_AGENT_LOGGER_H
#define SW_AGENT_LOGGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/sync.h"
#include "failure/failure.h"

#define SW_LOGGER_STREAMS 2

/* What the log writer shares with the supervisor: how much was written, and the end of it, as a
 * ring. The user's identity can write to it. */
struct sw_log_tail {
	_Atomic uint64_t bytes;
	char ring[SW_FAILURE_TAIL];
};

/* The end of what was written, in order; returns how many bytes there are. */
size_t sw_log_tail_copy(const struct sw_log_tail *tail, char ret_text[SW_FAILURE_TAIL]);

struct sw_logger {
	const struct sw_run_spec *spec;
	struct {
		int pipe;	  /* the end to read */
		int file;	  /* open already; -1: `path` is opened as the user */
		const char *path; /* relative to the job's folder */
	} streams[SW_LOGGER_STREAMS];
	size_t count;
	struct sw_log_tail *tail; /* shared with the supervisor */
	int notes;		  /* whole lines to put between; -1: none come */
	int ready;		  /* gets "" or what is wrong, then is closed; -1: not asked for */
};

/* Called in the child; never returns. */
_Noreturn void sw_logger_run(const struct sw_logger *logger);

#endif
