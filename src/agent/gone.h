/* Folders of runs that are forgotten: they lose their names at once, and are deleted when no run
 * has been forgotten for a while. Deleting is most of what a short run costs its node's disk,
 * and a burst of them is over sooner without it. What an agent leaves behind, the next one
 * deletes when it starts. */
#ifndef SW_AGENT_GONE_H
#define SW_AGENT_GONE_H

#include <event2/event.h>

#include "api/sync.h"
#include "base/vec.h"

/* Of the names that they have then. */
#define SW_GONE_PREFIX ".gone-"
/* So many wait at most. */
#define SW_GONE_MAX 4096u

struct sw_gone {
	int runs; /* the folder that they are in; not owned */
	SW_VEC(struct sw_run_id) list;
	struct event *timer;
};

/* SW_ENOMEM. */
int sw_gone_open(struct sw_gone *gone, struct event_base *base, int runs);
/* What is left stays where it is. */
void sw_gone_close(struct sw_gone *gone);
/* The folder is no longer that of a run when this returns 0. */
int sw_gone_add(struct sw_gone *gone, struct sw_run_id id, struct sw_err *err);

#endif
