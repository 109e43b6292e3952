/* The folder of one run, <state>/runs/<job>.<epoch>/: all that is known of it on disk.
 *
 *	spec.json        what to run (struct sw_run_order); there as soon as the folder has its
 *	                 name, and never replaced: the supervisor keeps it locked for its life, the
 *	                 one test of whether it is alive
 *	pid              process id, start time and token of the supervisor that may have started
 *	                 the job; made once, never replaced
 *	session          the boot, and the id and start time of the job's first process: which it
 *	                 was, should the supervisor die
 *	status.json      the last account of a run that lives (struct sw_run_account)
 *	exit.json        the last account of all: if it is there, the run is over for ever
 *	lost             made by an agent that found the supervisor dead: the job must
 *	                 not be started any more
 *	supervisor.sock  where the supervisor listens
 *	gpu              the run's GPU page (include/sharewell/runtime.h), or, for a job of another
 *	                 user, a link to it; the job can write it
 *	out.log          what the job wrote, unless it wanted that elsewhere
 *
 * Readers never see half a file: files appear by rename.
 */
#ifndef SW_AGENT_FOLDER_H
#define SW_AGENT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "api/sync.h"
#include "base/error.h"

#define SW_FOLDER_NAME_MAX 40

/* "12.3"; returns `name`. */
char *sw_folder_name(struct sw_run_id id, char name[SW_FOLDER_NAME_MAX]);
/* Whether `name` is one that sw_folder_name() gives. */
bool sw_folder_parse(const char *name, struct sw_run_id *ret_id);

/* Makes the folder below `runs` with its spec.json: it appears complete or not at all. It is not
 * durable yet: the supervisor sees to that before it starts the job, so that the agent need not
 * wait for the disk. SW_EINPUT: it exists. */
int sw_folder_create(int runs, const struct sw_run_order *order, struct sw_err *err);
/* Opens it; SW_ENOTFOUND, SW_EIO. */
int sw_folder_open(int runs, const char *name, int *ret_folder, struct sw_err *err);
/* Removes it with all that is in it; what is gone already is no error. */
int sw_folder_delete(int runs, const char *name, struct sw_err *err);

/* Writes a whole file. `durable`: it and its name are on the disk when this returns. */
int sw_folder_write(int folder, const char *name, const char *text, size_t size, bool durable, struct sw_err *err);
/* Reads a whole file, NUL-terminated; the caller frees. SW_ENOTFOUND: there is none. */
int sw_folder_read(int folder, const char *name, char **ret_text, size_t *ret_size, struct sw_err *err);
bool sw_folder_has(int folder, const char *name);

int sw_folder_order(int folder, struct sw_run_order **ret_order, struct sw_err *err);
/* exit.json, or status.json; SW_ENOTFOUND: there is none. */
int sw_folder_account(int folder, const char *name, struct sw_run_account **ret_account, struct sw_err *err);

/* Locks it for as long as *ret_lock and its copies in child processes are open. SW_EINPUT: a
 * living supervisor has it. */
int sw_folder_lock(int folder, const char *name, int *ret_lock, struct sw_err *err);
/* Whether a supervisor lives; asks without touching the lock. */
bool sw_folder_is_locked(int folder, const char *name);

#endif
