/* What a process that the driver lists on a GPU is, as /proc tells.
 *
 * The driver may count in another namespace than this process does: then its numbers mean nothing
 * here, or, worse, another process. One that has nothing of the driver in its memory is such
 * another, where its memory may be looked at. Not thread-safe.
 */
#ifndef SW_AGENT_LODGERS_H
#define SW_AGENT_LODGERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/fitness.h"

struct sw_lodgers {
	struct {
		uint32_t pid;
		uint64_t started;
	} drivers[128]; /* processes that were seen to use the driver */
	uint32_t next;	/* to be replaced */
	struct {
		uid_t uid;
		char name[36]; /* "": free */
	} users[16];
	uint32_t next_user;
};

/* Fills in all but the memory and whether it draws. `kind` is never SW_LODGER_OURS: whose it is, is
 * for the caller to say. */
void sw_lodgers_look(struct sw_lodgers *lodgers, uint32_t pid, struct sw_lodger_view *ret_lodger);
/* Whether the process is in a control group below this one. That goes by its path in the tree of
 * groups, not by a name: any user can make groups of any name below his own. "": no process is. */
bool sw_lodger_is_in_group(uint32_t pid, const char *group);
/* The same by a line of /proc/<pid>/cgroup. */
bool sw_lodger_line_is_below(const char *line, const char *group);

#endif
