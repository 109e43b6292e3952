/* The conversations with the supervisors. */
#ifndef SW_AGENT_AGENT_LINKS_H
#define SW_AGENT_AGENT_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/sync.h"
#include "base/error.h"

struct sw_agent;
struct bufferevent;
struct event;

/* The conversation with one supervisor; there is one for every run that is not over. */
struct sw_link {
	struct sw_agent *agent;
	struct sw_run_id id;
	struct bufferevent *stream; /* NULL: down */
	struct event *timer;	    /* to look again */
	int64_t wait_ms;	    /* before that; grows */
	bool noted;		    /* its supervisor's note was heard */
	bool unborn;		    /* its supervisor could not be asked for yet */
};

struct sw_link_slot {
	struct sw_link *link;
};

int sw_agent_nursery_start(struct sw_agent *agent, struct sw_err *err);
/* Starts a supervisor of the run's folder and links to it; it may fail, and will be tried again. */
void sw_agent_spawn(struct sw_agent *agent, struct sw_run_id id);
/* Looks what became of a run: links to its supervisor, or takes its exit. */
void sw_agent_check(struct sw_agent *agent, struct sw_run_id id);
__attribute__((format(printf, 3, 4))) void sw_agent_tell(struct sw_agent *agent, struct sw_run_id id, const char *fmt, ...);
void sw_agent_unlink(struct sw_agent *agent, struct sw_run_id id);

#endif
