/* The brain's state, shared by its files alone. */
#ifndef SW_BRAIN_STATE_H
#define SW_BRAIN_STATE_H

#include <jansson.h>

#include "base/bitmap.h"
#include "base/heap.h"
#include "base/names.h"
#include "base/table.h"
#include "brain/brain.h"
#include "brain/keys.h"
#include "brain/lengths.h"
#include "contention/learn.h"
#include "failure/failure.h"
#include "world/gpu_rules.h"

struct sw_alone;

#define SW_NOBODY UINT32_MAX
#define SW_BULK_LEAST 1024u /* a request below has no large parts */

/* How far a run has come, as its agent reported it. */
enum sw_heard {
	SW_HEARD_NOTHING = 0, /* it was not seen yet */
	SW_HEARD_STARTING,
	SW_HEARD_RUNNING,
	SW_HEARD_EXITED,
};

/* The part of a job's present run on one node. */
struct sw_run {
	uint32_t node;
	uint64_t mask;
	uint8_t heard; /* enum sw_heard */
	bool off;      /* suspended, and said to be off its GPUs whole */
	bool frees;    /* said to leave its GPUs' memory to others while it is suspended */
	bool held;     /* suspended, and said to hold its GPUs' memory still */
	bool leased;   /* the agent that started it gave it the lease of its job; one of version 0.1 gives another */
	int code, signal;
};

/* A large part of it, which is kept elsewhere. */
struct sw_bulk {
	unsigned char digest[SW_BULK_DIGEST];
	uint32_t size; /* 0: it is in the text */
};
struct sw_bulk_use {
	unsigned char digest[SW_BULK_DIGEST];
	uint32_t count; /* 0: this place is not used */
};
struct sw_bulk_uses {
	struct sw_bulk_use *items;
	size_t room, used; /* the room is a power of two */
};

/* What a job asked for: canonical JSON. The members of an array share one, without their index. */
struct sw_asked {
	uint32_t users;
	uint32_t fate_count;
	char *warning; /* about what the large parts name, as it was at the submit; NULL: none. Owned */
	struct sw_bulk bulk[SW_BULKS];
	struct sw_bulk_uses *uses; /* the brain's; NULL: it has none of the large parts */
	struct sw_fate *fates;	   /* of those that it depends on, and that had ended when it was submitted; owned */
	char text[];
};

/* Why a run failed, as its record says. */
struct sw_cause {
	char name[SW_FAILURE_NAME_MAX + 1];
	char *line; /* owned */
	enum sw_failure_layer layer;
	enum sw_failure_action action;
	uint32_t budget, rank, node;
	bool free;
};

#define SW_TROUBLES_KEPT 4u

/* A job's failures; made with the first of them. */
struct sw_trouble {
	struct sw_cause cause; /* of the last run that failed, or of the part of the present one that has */
	bool pending;	       /* the latter: others of the gang have not ended yet */
	bool again, elsewhere; /* what was decided */
	bool memory_raised;
	uint64_t memory_bytes;					    /* then: to this; 0: whole GPUs */
	uint32_t tried, may;					    /* again for this class, and how often it may be */
	char why[80];						    /* it is not tried again */
	uint64_t classes[SW_TROUBLES_KEPT], seen[SW_TROUBLES_KEPT]; /* hashes of names and signatures; a count of 0: unused */
	uint32_t class_tries[SW_TROUBLES_KEPT], seen_count[SW_TROUBLES_KEPT], seen_node[SW_TROUBLES_KEPT];
};

/* How its runs got on, as the last record about it says; made with the first. */
struct sw_pace {
	uint32_t epoch; /* the engine's: of the run that all but `alone_ns` is about */
	sw_ns at;
	int64_t iteration_ns, alone_ns;
	uint64_t iterations;
	struct sw_sync_jobs beside;
};

/* The last stop of a job; see stops.c. */
enum sw_stop_kind {
	SW_STOP_SUSPENDED = 0,
	SW_STOP_ANEW, /* its run is lost; it starts anew, if it may */
	SW_STOP_CANCELLED,
	SW_STOP_MOVED,
};
enum sw_stop_cause {
	SW_STOPPED_BY_PERSON = 0,
	SW_STOPPED_BY_POLICY,
	SW_STOPPED_BY_ANOTHER, /* it was to have GPUs that a suspended job could not leave */
	SW_STOPPED_BY_NODE,
};
struct sw_stop {
	uint8_t kind, cause;
	uint32_t by;	/* a user; SW_NOBODY */
	uint32_t epoch; /* of the run, as the agents count */
	uint64_t job;	/* for this one, as people count; 0: for none */
	sw_ns at, until;
};

struct sw_live {
	struct sw_asked *asked;
	bool is_member; /* of an array */
	uint32_t array_index;
	char *name;
	char *model;		   /* the name of its profile; NULL: its own name is */
	struct sw_depend *depends; /* what it still waits for; NULL */
	uint32_t depend_count;
	uint32_t depend_at; /* where it waits: at this one of them; all before it are met */
	uint32_t waits_for; /* the job in whose list of waiting jobs it is; this and the next five as people count, 0: none */
	uint32_t waiter_next, waiter_prev;  /* in that list */
	uint32_t waiter_first, waiter_last; /* of the jobs that wait for this one */
	uint32_t over_next;		    /* in the queue of ended jobs whose waiting jobs are to be looked at */
	uint32_t awaited;		    /* how many jobs name this one and still wait, for this one or another */
	bool is_over;			    /* the engine has ended it */
	bool is_queued;			    /* it is in that queue */
	uint32_t array_first;		    /* of a member: the first of its array, as people count */
	struct sw_array *array;		    /* of which only some may be under way; NULL: it is in none */
	uint32_t uid, gid, tenant;
	uint32_t epoch;	     /* of its last run, as the engine and the agents count */
	struct sw_run *runs; /* while it runs, or stands suspended in the engine */
	uint32_t run_count;
	bool parks;	/* it is suspended in place where others stop */
	bool deep;	/* suspended: off its GPUs whole, or on its way; so it takes no memory there */
	char *not_deep; /* why it could not be, this time; NULL: it could, or that was not wished */
	/* why its run could not go to other GPUs, as was wished last; NULL: it could,
	 * or that was not wished */
	char *unmoved;
	uint32_t held_by;     /* user that holds or suspended it; SW_NOBODY */
	uint64_t limit_bytes; /* of each GPU, as a user set it; 0: not set */
	uint32_t limit_milli; /* of its time, likewise */
	uint32_t ghosts;      /* of earlier runs; nothing is wished for before they are gone */
	uint32_t last_node;   /* where the first part of the last run was */
	uint64_t last_mask;
	int code, signal;
	char reason[48]; /* why the last run ended, or why it never will run */
	sw_ns submitted_at, started_at, ended_at;
	sw_ns lease_ns;	   /* it may go on for so long on a node that does not answer; 0: for ever */
	sw_ns grace_ns;	   /* between its signal and SIGKILL */
	bool stranded;	   /* it must not start, see silence.c: the engine holds it */
	bool stranded_now; /* scratch of silence.c */
	bool node_lost;	   /* it ended because an operator removed its node */
	uint32_t failures;
	struct sw_trouble *trouble; /* NULL: none */
	struct sw_pace *pace;	    /* NULL: it was not measured */
	struct sw_stop *stop;	    /* NULL: it was never stopped */
	char *warning;		    /* what the user was told at submit, also by the policy; NULL: nothing */
	uint64_t command_hash;
	bool asked_retries; /* the user said how many */
	bool is_prerun;
	bool spoiled; /* its pre-run failed */
	bool user_held;
	bool timed_out;
};

struct sw_brain_gpu {
	char uuid[SW_SYNC_UUID_MAX + 1];
	uint8_t shut;	  /* 1 + enum sw_shut; 0: it takes jobs */
	sw_ns shut_since; /* as its agent says */
	/* Volatile. */
	char shut_by[200]; /* what uses it, or what it says; for people */
};

/* A failure that was the node's own. */
struct sw_fault {
	sw_ns at;
	uint32_t job; /* as people count; 0: none */
};
#define SW_FAULTS_KEPT 4u

enum sw_closed {
	SW_OPEN = 0,
	SW_CLOSED_BY_OPERATOR,
	SW_CLOSED_BY_FAILURES,
};

/* An input that a job failed on. */
struct sw_bad_input {
	char path[SW_FAILURE_PATH_MAX + 1];
	sw_ns at;
	uint32_t last_job, jobs; /* how many different ones */
};

/* A class that ended a job of this user and command. */
struct sw_spent {
	uint64_t owner, failure;
	sw_ns at;
};

/* A run that must stop and has not been heard to. */
struct sw_ghost {
	uint32_t job;
	uint32_t epoch;
	bool leased; /* as of its run */
};

struct sw_brain_node {
	char *name;
	struct sw_brain_gpu *gpus;
	struct sw_topology_node shape;
	SW_VEC(uint32_t) jobs; /* that run here, in no order */
	SW_VEC(struct sw_ghost) ghosts;
	struct sw_fault faults[SW_FAULTS_KEPT]; /* the latest first */
	enum sw_closed closed;
	char closed_why[120];
	bool up;
	bool silent;			   /* it is up, as far as is known, and does not answer */
	sw_ns silent_since;		   /* then it was heard last */
	bool removed;			   /* an operator gave it up; it is not up */
	bool leases;			   /* its agent gives runs the leases of their jobs; one of version 0.1 does not */
	char home[SW_SYNC_HOME_MAX + 1];   /* the id of its agent's state folder; "": not known */
	char token[SW_SYNC_TOKEN_MAX + 1]; /* what that agent came with, for the controller; "": not known */
	/* Volatile. */
	uint64_t start;	   /* of the agent that was heard last; 0: none was, or it does not say */
	char instance[64]; /* the same, of one without a home */
	uint64_t number;   /* of its last sync */
	sw_ns left_at;	   /* when its connection closed, if it has not spoken since; 0: it has */
	uint64_t version;  /* of the wish list */
	sw_ns heard_at;
	sw_ns answered_at; /* the last time, or later: leases there count from then at most */
};

/* A slowdown that was measured and is not taken in yet: jobs by the numbers of their profiles,
 * guaranteed ones first. */
struct sw_lesson {
	uint8_t way; /* enum sw_predict_way */
	uint8_t count, which;
	uint32_t slow_milli;
	uint32_t models[SW_LEARN_JOBS_MAX];
};
#define SW_LESSONS_MAX 64u

struct sw_brain {
	struct sw_brain_config config;
	struct sw_engine *engine;
	struct sw_params *params;
	struct sw_terms terms;
	char *world; /* the record that put them in force, as JSON; NULL: there was none */
	/* that was put in charge last, and its settings as JSON; NULL: that of the
	 * configuration, with presets */
	char *policy;
	char *settings;
	SW_TABLE(struct sw_live) jobs;	    /* by number, from 0; those that are not known are zero */
	struct sw_bitmap known;		    /* jobs that were submitted and not forgotten */
	SW_VEC(struct sw_brain_node) nodes; /* by the engine's id */
	struct sw_names node_index;
	SW_VEC(char *) tenants;
	struct sw_names tenant_index;
	struct sw_job_request *model;	/* what the last submit asked for, decoded for the members that may follow; NULL: decode it */
	struct sw_asked *model_of;	/* the same as text */
	uint64_t model_first;		/* the first job that was made of it, as people count */
	uint32_t over_first, over_last; /* ended jobs whose waiting jobs are to be looked at, as people count; 0: none (dependents.c) */
	uint32_t actor;			/* the user whose record is being applied, to this job, as people count; 0: no such record is */
	uint64_t acts_on;
	/* while a record is applied: the engine is to decide on it with others, see
	 * changes.c; never saved */
	bool gathers;
	/* the last submit of an array was, and its members go with it; not saved: there is
	 * no snapshot between them */
	bool array_refused;
	uint32_t closed_nodes;	   /* how many; made anew with the nodes */
	uint32_t far_nodes;	   /* likewise: that are silent or removed */
	sw_ns assumed_at;	   /* then every node was taken to be heard and answered; volatile */
	SW_VEC(uint32_t) stranded; /* jobs that are; ascending */
	struct sw_keys keys;	   /* of submits */
	SW_VEC(struct sw_bad_input) inputs;
	SW_VEC(struct sw_spent) spent;
	const struct sw_failure_table *failures;
	struct sw_failure_table *own_failures; /* where the configuration has none */
	struct sw_profiles
		/* what is known of models: those of the configuration, and over them what
		 * records say; NULL: nothing */
		*profiles;
	struct sw_alone *alone;	       /* how fast jobs run without neighbours; NULL likewise */
	SW_VEC(char *) gpu_types;      /* names of the types from 1 on, see gpu_types.c */
	struct sw_gpu_rules gpu_rules; /* what the world says of them */
	struct sw_crowd *crowd;	       /* what jobs on one GPU do to each other; NULL: not known */
	struct sw_learn *learn;	       /* what measured slowdowns say of that */
	struct sw_lesson lessons[SW_LESSONS_MAX];
	uint32_t lesson_count;
	sw_ns learned_at; /* when lessons were taken in last */
	/* Jobs that have ended, in the order of their ends, as people count, from `start` on; the
	 * first is known, others may have left. Made anew when the state is loaded. */
	struct {
		SW_VEC(uint32_t) jobs;
		size_t start;
		uint32_t known; /* how many of them are */
		sw_ns look_at;	/* volatile: not before, since those that are left are still needed */
	} past;
	/* How long jobs ran that have left; volatile, see lengths.h. */
	struct {
		SW_VEC(struct sw_length) items;
		size_t next; /* once it is full: the place of the oldest, counted on without end */
	} lengths;
	struct sw_bulk_uses uses; /* of large parts of requests; made anew when the state is loaded */
	struct sw_heap retries;	  /* jobs that wait for their next try, by when */
	sw_ns now;		  /* of the last record */
	sw_ns wake_at;		  /* 0: changes were heard of that are not decided on, see changes.c */
};

/* ---- for all its files (brain.c) */
int sw_brain_find_failures(struct sw_brain *brain, struct sw_err *err);
int sw_brain_engine_config(struct sw_brain *brain, struct sw_engine_config *ret_config, struct sw_err *err);
struct sw_live *sw_brain_live(const struct sw_brain *brain, uint64_t id);
/* The first job from this number on that is known, as the engine counts;
 * SW_BITMAP_NONE: there is none. */
static inline uint32_t sw_brain_next_known(const struct sw_brain *brain, uint32_t from)
{
	return sw_bitmap_next(&brain->known, from);
}
/* The same as people count: the first job that is known, and the next after this
 * one; 0: there is none. */
static inline uint32_t sw_brain_first(const struct sw_brain *brain)
{
	return sw_brain_next_known(brain, 0) + 1; /* SW_BITMAP_NONE is one below 0 */
}
static inline uint32_t sw_brain_after(const struct sw_brain *brain, uint32_t job)
{
	return sw_brain_next_known(brain, job) + 1;
}
/* One more job with the next number, zeroed. NULL: out of memory. */
struct sw_live *sw_brain_add(struct sw_brain *brain);
/* Frees what belongs to the job, and leaves it zero. */
void sw_brain_drop_live(struct sw_live *live);
struct sw_brain_node *sw_brain_find_node(const struct sw_brain *brain, const char *name);
bool sw_brain_may_change(const struct sw_user *user, const struct sw_live *live);
const struct sw_policy *sw_brain_find_policy(const struct sw_brain_config *config, const char *name);
struct sw_run *sw_brain_run_on(const struct sw_live *live, uint32_t node);
static inline struct sw_job_id sw_brain_id_of(const struct sw_brain *brain, const struct sw_live *live)
{
	return (struct sw_job_id){(uint32_t)(live - brain->jobs.items)};
}
/* Whether its run is suspended where it ran, or is about to be: the engine says so. */
static inline bool sw_brain_is_suspended(const struct sw_brain *brain, const struct sw_live *live)
{
	return live->run_count > 0 && sw_engine_stands(brain->engine, sw_brain_id_of(brain, live)) != SW_NO_PART;
}
/* The GPUs of its one node that its run still has, on its way to others; 0: it
 * is where it is wished. */
static inline uint64_t sw_brain_leaves(const struct sw_brain *brain, const struct sw_live *live)
{
	return live->run_count > 0 ? sw_engine_leaves(brain->engine, sw_brain_id_of(brain, live), NULL) : 0;
}

#endif
