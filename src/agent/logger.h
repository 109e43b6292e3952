/* The process that takes what a job writes from its pipes into bounded files. It has the user's identity and does nothing else, so that a slow or
 * dead file system holds up neither the supervisor's timers nor more than this. It ends when nobody holds the other end of the pipes. */
#ifndef SW_AGENT_LOGGER_H
#define SW_AGENT_LOGGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/sync.h"

#define SW_LOGGER_STREAMS 2

struct sw_logger {
	const struct sw_run_spec *spec;
	struct {
		int pipe;	  /* the end to read */
		int file;	  /* open already; -1: `path` is opened as the user */
		const char *path; /* relative to the job's folder */
	} streams[SW_LOGGER_STREAMS];
	size_t count;
	_Atomic uint64_t *bytes; /* shared with the supervisor: taken so far */
	int ready;		 /* gets "" or what is wrong, then is closed; -1: nobody asks */
};

/* Called in the child; never returns. */
_Noreturn void sw_logger_run(const struct sw_logger *logger);

#endif
