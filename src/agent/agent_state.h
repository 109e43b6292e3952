/* The inside of the agent; private to agent*.c. */
#ifndef SW_AGENT_AGENT_STATE_H
#define SW_AGENT_AGENT_STATE_H

#include <limits.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <event2/event.h>

#include "agent/agent.h"
#include "agent/brain.h"
#include "agent/client.h"
#include "agent/epochs.h"
#include "agent/gone.h"
#include "agent/kept_logs.h"
#include "agent/patience.h"
#include "agent/sampler.h"
#include "base/vec.h"

struct bufferevent;

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

/* What is known of the GPUs, and how the sampler gets on. */
struct sw_agent_gpus {
	struct sw_sync *known; /* the last inventory with all GPUs, as in the file gpus.json; NULL: none */
	struct sw_sync *seen;  /* the sampler's last line; NULL: none yet */
	bool is_new;	       /* its samples have not arrived at the controller */
	struct {
		char uuid[SW_GPU_UUID_MAX];
	} absent[SW_SYNC_GPUS_MAX]; /* known ones that do not answer the driver */
	uint32_t absent_count;
	int64_t absent_since_ns;
	bool silent; /* the driver as a whole does not answer */
	int64_t silent_since_ns;
	char silent_why[200];
	struct sw_patience patience;	  /* on the clock of leases */
	bool restarting;		  /* the sampler's timer starts one; else it watches the one there is */
	uint32_t slices;		  /* of patience that are left with that one */
	pid_t hung[SW_PATIENCE_HUNG_MAX]; /* samplers that were killed and are still there; 0: none */
	SW_VEC(struct sw_sync_gpu) all;	  /* scratch */
	SW_VEC(struct sw_sync_shut) shut; /* as told last */
};

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
	struct sw_client *client;
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

/* agent_links.c */
int sw_agent_nursery_start(struct sw_agent *agent, struct sw_err *err);
/* Starts a supervisor of the run's folder and links to it; it may fail, and will be tried again. */
void sw_agent_spawn(struct sw_agent *agent, struct sw_run_id id);
/* Looks what became of a run: links to its supervisor, or takes its exit. */
void sw_agent_check(struct sw_agent *agent, struct sw_run_id id);
__attribute__((format(printf, 3, 4))) void sw_agent_tell(struct sw_agent *agent, struct sw_run_id id, const char *fmt, ...);
void sw_agent_unlink(struct sw_agent *agent, struct sw_run_id id);

/* agent_scan.c */
/* Takes in what the folders say. */
int sw_agent_scan(struct sw_agent *agent, struct sw_err *err);

/* agent_gpus.c */
/* What an agent before this one has noted. */
void sw_agent_gpus_open(struct sw_agent *agent);
void sw_agent_gpus_release(struct sw_agent *agent);
/* Whether GPUs are known to be here, whether they answer now or not. */
bool sw_agent_gpus_known(const struct sw_agent *agent);
/* A line of the sampler, which it owns then. */
void sw_agent_gpus_hear(struct sw_agent *agent, struct sw_sync *seen);
/* The driver as a whole does not answer. */
void sw_agent_gpus_silence(struct sw_agent *agent, const char *why);
/* The node joins with the GPUs that are known, before the driver has said anything. */
int sw_agent_gpus_join(struct sw_agent *agent);
/* What was sampled, and which GPUs take no jobs; valid until the next call of these. */
void sw_agent_gpus_tell(struct sw_agent *agent, struct sw_sync *sync);

/* agent_samples.c */
int sw_agent_samples_start(struct sw_agent *agent, struct sw_err *err);
void sw_agent_samples_stop(struct sw_agent *agent);

#endif
