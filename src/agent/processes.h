/* The processes of the system, as /proc lists them, and signals to some of them.
 *
 * A list is a look at one moment: processes come and go while it is read. A caller that must reach
 * all of a tree looks again until a look finds nothing new. Signals go through a pidfd whose start
 * time is compared, so that a process id that was given to a stranger meanwhile does no harm.
 */
#ifndef SW_AGENT_PROCESSES_H
#define SW_AGENT_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct sw_process {
	pid_t pid, parent, session;
	uint64_t started;   /* in ticks since the boot: with the id, its name for ever */
	uint64_t cpu_ticks; /* used, without its children */
	uint64_t rss_pages;
	char state;   /* as in /proc/PID/stat: that of its first thread */
	long threads; /* that have not ended, and the first one */
	bool chosen;  /* by sw_processes_choose_...() */
	bool visited; /* scratch */
};

/* A session by its first process. Its number is not given again while a process is in it. */
struct sw_session {
	pid_t id;
	uint64_t started; /* as in struct sw_process */
};

struct sw_processes {
	SW_VEC(struct sw_process) list; /* ascending by pid */
};

/* Reads them all; 0, SW_ENOMEM or SW_EIO (no /proc). */
int sw_processes_read(struct sw_processes *processes);
void sw_processes_release(struct sw_processes *processes);
/* Chooses the descendants of `root`, without itself and without those in `except` and their
 * descendants (0 behind the last; NULL: no exception). Returns how many live. */
size_t sw_processes_choose_tree(struct sw_processes *processes, pid_t root, const pid_t *except);
/* Chooses those of a run without a supervisor, without `except`. They have the whole entry `mark`
 * ("NAME=value") in their environment, or are in its session (NULL: not known). Returns how many
 * live. */
size_t sw_processes_choose_run(struct sw_processes *processes, const char *mark, const struct sw_session *session, pid_t except);
/* Whether all that are chosen are stopped or dead. */
bool sw_processes_are_stopped(const struct sw_processes *processes);
/* Sends a signal to all that are chosen and live. Returns how many could not be reached
 * for want of permission. */
size_t sw_processes_signal(const struct sw_processes *processes, int signal);

/* One process; false: there is none. */
bool sw_process_read(pid_t pid, struct sw_process *ret_process);
/* Whether the calling process, which must have one thread, has a child other than `except`. Cheap;
 * errs on the side of true. */
bool sw_process_has_children(pid_t except);

#endif
