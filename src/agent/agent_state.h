/* The inside of the agent; private to agent*.c, each of which says its functions in a header of its
 * own. */
#ifndef SW_AGENT_AGENT_STATE_H
#define SW_AGENT_AGENT_STATE_H

#include <limits.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <event2/event.h>

#include "agent/agent.h"
#include "agent/agent_gpus.h"
#include "agent/agent_links.h"
#include "agent/brain/brain.h"
#include "agent/epochs.h"
#include "agent/gone.h"
#include "agent/kept_logs.h"
#include "agent/sampler.h"
#include "base/vec.h"
#include "client/poster.h"

struct sw_agent {
	const struct sw_agent_options *options;
	const char *node;
	char node_name[256];
	int state, runs, lock; /* folders, and what keeps a second agent away */
	char *runs_path;
	struct rlimit open_files;   /* before the agent took more for itself */
	char cgroup[4096];	    /* "": none */
	char gpu_library[PATH_MAX]; /* "": jobs run without the GPU runtime */
	struct event_base *base;
	struct event *timer_event, *stop_event, *term_event, *int_event;
	struct event *sampler_event, *sampler_timer;
	int timer; /* CLOCK_BOOTTIME, as the brain counts */
	struct sw_agent_brain *brain;
	struct sw_poster *poster;
	char complaint[600];		   /* what the controller's silence was put down to last; empty: it answers */
	char noted[300];		   /* the last note of a supervisor that was said */
	char unread[220];		   /* what was said last of orders that cannot be read; empty: all could */
	SW_VEC(struct sw_link_slot) links; /* ascending */
	int nursery;			   /* socket; -1: none */
	struct sw_kept_logs kept_logs;
	struct sw_gone gone;
	struct sw_epochs epochs;
	struct sw_sampler sampler;
	struct sw_sampler_options sampler_options;
	SW_VEC(char) sampler_text; /* what came of the next line */
	struct sw_agent_gpus gpus;
};

__attribute__((format(printf, 2, 3))) void sw_agent_say(struct sw_agent *agent, const char *fmt, ...);
/* Does what follows from the last inputs. To be called after each. */
void sw_agent_pump(struct sw_agent *agent);

#endif
