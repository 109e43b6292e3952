/* From a process that was just forked to the user's command: identity, limits,
 * environment, folder, and exec. */
#ifndef SW_AGENT_LAUNCH_H
#define SW_AGENT_LAUNCH_H

#include <sys/types.h>

#include "api/sync.h"

/* Becomes the user for good, with the groups that the user has. A process that is not root can only
 * become itself. 0 or an errno. */
int sw_become_user(uid_t uid, gid_t gid);

struct sw_launch {
	const struct sw_run_order *order;
	const char *token;		    /* marks all its processes */
	pid_t supervisor;		    /* that forked: if it is gone, so is the job */
	int out, err;			    /* where standard output and error go */
	int cgroup_procs;		    /* to enter its control group; -1: none */
	int report;			    /* closed by a successful exec; else gets a struct sw_launch_failure */
	const char *gpu_page, *gpu_library; /* absolute; NULL: without the GPU runtime */
};

struct sw_launch_failure {
	/* as a shell would exit: 127 not found, 126 not executable, 125 anything else; 0:
	 * only a note, it goes on */
	int code;
	char detail[500]; /* "cannot change to folder '/x': No such file or directory" */
};

/* Called in the child; never returns. */
_Noreturn void sw_launch_exec(const struct sw_launch *launch);

/* The variable that marks a run's processes, "NAME=token", at most `size` bytes. */
void sw_launch_mark(const char *token, char *buffer, size_t size);

#endif
