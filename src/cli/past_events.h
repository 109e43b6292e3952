/* What the controller's journal tells of the past: quotas, nodes, profiles and jobs. Of jobs it
 * tells how the scheduler was asked for them, what people did to them, and when their runs began
 * and ended. In pages, from the oldest event that is kept on.
 *
 * Invariants, once fetched:
 *  1. submits are in the order of the jobs' numbers, one for each job: also for pre-runs and
 *     members of arrays. The last ones have numbers, which follow each other;
 *  2. what concerns single jobs is by job, then in its order.
 */
#ifndef SW_CLI_PAST_EVENTS_H
#define SW_CLI_PAST_EVENTS_H

#include "client/client.h"
#include "contention/profile.h"
#include "sim/cluster.h"
#include "sim/trace/trace.h"

struct sw_cli_submit {
	uint64_t job; /* 0: its number is not known */
	int64_t at_ns;
	int64_t deadline_ns; /* SW_NEVER */
	struct sw_job_spec spec;
	/* of the fetched JSON; "" where nothing is said */
	char *name, *user, *tenant, *model;
	const json_t *depends; /* likewise: numbers of jobs; NULL */
	bool is_open;	       /* all of it is known; else it is a job of another user */
	bool has_prerun;       /* the job before it is that */
};

enum sw_cli_happening_kind { SW_CLI_HELD, SW_CLI_RELEASED, SW_CLI_BEGAN, SW_CLI_FREES, SW_CLI_EXITED, SW_CLI_CANCELLED, SW_CLI_REQUEUED };
struct sw_cli_happening {
	int64_t at_ns;
	uint64_t seq, job;
	enum sw_cli_happening_kind kind;
	bool leaves; /* of a hold: a run goes on */
	bool frees;  /* of a run: as in struct sw_trace_told */
	uint8_t end; /* enum sw_trace_end, of an exit or a cancel */
	/* Of these: what the job has had of GPUs by then (-1: not told), and how often it was
	 * preempted. */
	int64_t ran_ns;
	uint32_t stops;
};

struct sw_cli_events {
	int64_t since_ns; /* of the first event; INT64_MIN: all there were; INT64_MAX: this controller tells none */
	SW_VEC(struct sw_cli_submit) submits;
	SW_VEC(struct sw_cli_happening) happenings;
	SW_VEC(int64_t) wakes;	   /* when the scheduler was woken */
	json_t *cluster;	   /* events of quotas and nodes, in their order */
	json_t *profiles;	   /* what was last said of each model, by its name */
	json_t *texts;		   /* owns the names of submits */
	json_t *lists;		   /* and what they depend on */
	uint64_t last_job;	   /* 0: this controller does not say */
	size_t gap;		   /* submits before a jump of the numbers: those of these are not known */
	uint64_t policies, worlds; /* changes of each after the first submit */
	json_t *nodes;		   /* of the cluster in which it happened, as shown now; NULL: those of nodes are not replayed */
	json_t *quotas;		   /* likewise */
};

int sw_cli_events_fetch(struct sw_client *client, struct sw_cli_events *ret_events, struct sw_err *err);
void sw_cli_events_release(struct sw_cli_events *events);
/* The first happening of this job, or of one behind it. */
size_t sw_cli_events_of(const struct sw_cli_events *events, uint64_t job);

/* The cluster in which it happened, with nodes that are gone: from now on the events tell what
 * happened to them. */
int sw_cli_events_cluster(struct sw_client *client, struct sw_cli_events *events, struct sw_cluster_spec **ret_spec, struct sw_err *err);
/* From now on the events tell of quotas. */
int sw_cli_events_quotas(struct sw_client *client, struct sw_cli_events *events, struct sw_err *err);
/* Adds both to the trace, at times of the calendar. 0 or SW_ENOMEM. */
int sw_cli_events_apply(const struct sw_cli_events *events, struct sw_trace *trace);
/* Puts what the controller knows of models over these profiles. */
int sw_cli_events_profiles(const json_t *known, struct sw_profiles *profiles, struct sw_err *err);

#endif
