/* The brain's state, shared by its files and by nobody else. */
#ifndef SW_BRAIN_STATE_H
#define SW_BRAIN_STATE_H

#include <jansson.h>

#include "base/bitmap.h"
#include "base/heap.h"
#include "base/names.h"
#include "base/table.h"
#include "brain/brain.h"
#include "brain/keys.h"
#include "contention/learn.h"
#include "failure/failure.h"

#define SW_NOBODY UINT32_MAX
#define SW_BULK_LEAST 1024u /* a request below has no large parts */

/* How far a run has come, as its agent reported it. */
enum sw_heard {
	SW_HEARD_NOTHING = 0, /* nobody has seen it yet */
	SW_HEARD_STARTING,
	SW_HEARD_RUNNING,
	SW_HEARD_EXITED,
};

/* The part of a job's present run on one node. */
struct sw_run {
	uint32_t node;
	uint64_t mask;
	uint8_t heard;	/* enum sw_heard */
	bool off;	/* parked, and said to be off its GPUs whole */
	bool frees;	/* said to leave its GPUs' memory to others while it is suspended */
	bool held;	/* parked, and said to hold its GPUs' memory still */
	bool leased;	/* the agent that started it gave it the lease of its job; one of version 0.1 gives another */
	uint64_t from;	/* the GPUs that it still has, on its way to those of `mask`; 0: it is there */
	sw_ns moved_at; /* when that began */
	int code, signal;
};

/* A large part of it, which is kept elsewhere. */
struct sw_bulk {
	unsigned char digest[SW_BULK_DIGEST];
	uint32_t size; /* 0: it is in the text */
};
struct sw_bulk_use {
	unsigned char digest[SW_BULK_DIGEST];
	uint32_t count; /* 0: nobody uses this place */
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
	uint32_t epoch;	     /* the engine's: how often it started the job */
	uint32_t run_epoch;  /* the agents': counts runs. Below the engine's once a parked run has gone on */
	struct sw_run *runs; /* while it runs or is parked */
	uint32_t run_count;
	bool parks;	     /* it is suspended in place where others stop */
	bool parked;	     /* its run stands still, or will: the engine takes it for waiting */
	bool deep;	     /* parked: off its GPUs whole, or on its way; so it takes no memory there */
	char *not_deep;	     /* why it could not be, this time; NULL: it could, or nobody wished it */
	char *unmoved;	     /* why its run could not go to other GPUs, as somebody wished last; NULL: it could, or nobody did */
	sw_ns unmoved_until; /* before then a policy that moves it stops and starts it, since its node could not move it */
	sw_ns parked_at;
	uint32_t held_by;     /* user who holds or suspended it; SW_NOBODY */
	uint64_t limit_bytes; /* of each GPU, as somebody set it; 0: nobody did */
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
	struct sw_pace *pace;	    /* NULL: nobody measured it */
	struct sw_stop *stop;	    /* NULL: it was never stopped */
	char *warning;		    /* what the user was told at submit; NULL: nothing */
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

/* A slowdown that was measured and is not taken in yet: jobs by the numbers of their profiles, guaranteed ones first. */
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
	char *world;  /* the record that put them in force, as JSON; NULL: there was none */
	char *policy; /* that was put in charge last, and its settings as JSON; NULL: that of the configuration, with presets */
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
	bool gathers;	    /* while a record is applied: the engine is to decide on it with others, see changes.c; never saved */
	bool array_refused; /* the last submit of an array was, and its members go with it; not saved: there is no snapshot between them */
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
		*profiles;	/* what is known of models: those of the configuration, and over them what records say; NULL: nothing */
	struct sw_crowd *crowd; /* what jobs on one GPU do to each other; NULL: nobody knows */
	struct sw_learn *learn; /* what measured slowdowns say of that */
	struct sw_lesson lessons[SW_LESSONS_MAX];
	uint32_t lesson_count;
	sw_ns learned_at; /* when lessons were taken in last */
	/* Jobs that have ended, in the order of their ends, as people count, from `start` on; the first is known, others may have left. Made anew when the state is loaded. */
	struct {
		SW_VEC(uint32_t) jobs;
		size_t start;
		uint32_t known; /* how many of them are */
		sw_ns look_at;	/* volatile: not before, since those that are left are still needed */
	} past;
	struct sw_bulk_uses uses; /* of large parts of requests; made anew when the state is loaded */
	struct sw_heap retries;	  /* jobs that wait for their next try, by when */
	sw_ns now;		  /* of the last record */
	sw_ns wake_at;		  /* 0: changes were heard of that are not decided on, see changes.c */
};

/* ---- records (record.c): build and read their JSON. The builders steal `body` and fail with SW_ENOMEM. */
int sw_record_push(sw_records *records, enum sw_record_kind kind, json_t *body, struct sw_err *err);
/* As JSON already. Steals `text`; NULL is one that could not be written. */
int sw_record_push_text(sw_records *records, enum sw_record_kind kind, char *text, size_t size, struct sw_err *err);
json_t *sw_record_parse(const char *body, size_t size, struct sw_err *err);

/* ---- whether records fit (check.c) */
int sw_brain_check(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_err *err);
int sw_brain_check_node(const struct sw_brain *brain, const char *name, size_t gpus, bool is_new, struct sw_err *err);
int sw_brain_check_jobs(const struct sw_brain *brain, uint64_t count, struct sw_err *err);

/* ---- applying (fold.c) */
int sw_brain_read_settings(const struct sw_policy *policy, json_t *settings, struct sw_params **ret_params, struct sw_err *err);

/* ---- what jobs asked for (asked.c). NULL: out of memory */
struct sw_asked *sw_asked_new(const struct sw_job_request *request);
struct sw_asked *sw_asked_copy(const char *text);
/* What became of a job that had ended when this was asked for; NULL: not known, or it had not. */
const struct sw_fate *sw_asked_fate(const struct sw_asked *asked, uint64_t job);
struct sw_asked *sw_asked_share(struct sw_asked *asked);
void sw_asked_drop(struct sw_asked *asked);
SW_DEFINE_FREEP(struct sw_asked, sw_asked_drop)
int sw_asked_decode(const struct sw_live *live, struct sw_job_request **ret_request, struct sw_err *err);

/* ---- which agent speaks for a node (speakers.c) */
/* 0, or SW_EDENIED: another agent does, and why this one is not heard. */
int sw_speaker_admit(const struct sw_brain_node *node, sw_ns now, const struct sw_sync *sync, struct sw_err *err);
/* False for words that are late or repeated; of one that is admitted. */
bool sw_speaker_is_news(const struct sw_brain_node *node, const struct sw_sync *sync);
/* Nothing newer was heard of its agent. */
bool sw_speaker_is_last(const struct sw_brain_node *node, const struct sw_sync *sync);
void sw_speaker_remember(struct sw_brain_node *node, const struct sw_sync *sync);
/* It is not the one that the records name, or came with another token: a record says so. */
bool sw_speaker_is_new(const struct sw_brain_node *node, const struct sw_sync *sync);
int sw_speaker_record(const struct sw_sync *sync, sw_records *records, struct sw_err *err);
int sw_speaker_check(const struct sw_brain *brain, json_t *body, struct sw_err *err);
int sw_speaker_apply(struct sw_brain *brain, json_t *body, struct sw_err *err);

/* ---- large parts of requests (bulk.c). 0 or SW_ENOMEM where nothing else is said */
int sw_bulk_use(struct sw_bulk_uses *uses, const unsigned char *digest);
void sw_bulk_drop(struct sw_bulk_uses *uses, const unsigned char *digest);
int sw_asked_add_bulk(struct sw_brain *brain, struct sw_asked *asked, int which, const struct sw_bulk *bulk);
/* Takes them out of a request that is about to become a record. */
int sw_bulk_take(const struct sw_brain *brain, struct sw_job_request *request, struct sw_record_text texts[SW_BULKS]);
/* Puts them back; or why they are not there. */
int sw_bulk_fill(const struct sw_brain *brain, const struct sw_asked *asked, struct sw_job_request *request, struct sw_err *err);
void sw_bulk_write(struct sw_json *json, const struct sw_record_text texts[SW_BULKS]);
int sw_bulk_read(struct sw_brain *brain, json_t *body, struct sw_asked *asked, struct sw_err *err);

/* ---- helpers (brain.c) */
int sw_brain_find_failures(struct sw_brain *brain, struct sw_err *err);
/* How its engine is made, by its configuration. */
/* The terms of a world record; the brain holds to that of `world`. */
int sw_brain_check_world(const json_t *body, struct sw_err *err);
int sw_brain_apply_world(struct sw_brain *brain, const json_t *body, struct sw_err *err);
int sw_brain_load_world(struct sw_brain *brain, struct sw_err *err);
int sw_brain_engine_config(struct sw_brain *brain, struct sw_engine_config *ret_config, struct sw_err *err);
struct sw_live *sw_brain_live(const struct sw_brain *brain, uint64_t id);
/* The first job from this number on that is known, as the engine counts; SW_BITMAP_NONE: there is none. */
static inline uint32_t sw_brain_next_known(const struct sw_brain *brain, uint32_t from)
{
	return sw_bitmap_next(&brain->known, from);
}
/* The same as people count: the first job that is known, and the next after this one; 0: there is none. */
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

/* ---- nodes that have other GPUs than they had (reshape.c) */
#define SW_BRAIN_GPUS_GONE "its GPUs are gone"
/* In the record of a run that has begun: suspended, it leaves its GPUs' memory to others. */
#define SW_BRAIN_FREES "frees"
#define SW_BRAIN_BOUNCED "another job could not leave these GPUs"
/* It has this shape and these GPUs from now on, which it owns then, and is up; jobs on GPUs that are gone start anew. */
int sw_brain_reshape(struct sw_brain *brain, struct sw_brain_node *node, const struct sw_topology_node *shape, struct sw_brain_gpu *gpus,
		     struct sw_err *err);

/* ---- GPUs that take no jobs (shut.c) */
/* After a sync of the node: what is on its GPUs, and a record where others take no jobs than before. */
int sw_brain_hear_shut(struct sw_brain_node *node, const struct sw_sync *sync, sw_records *records, struct sw_err *err);
/* Those of the sync, for a record; NULL: it does not know, or (unless `always`) there are none. */
json_t *sw_brain_list_shut(const struct sw_sync *sync, bool always);
/* Marks the GPUs by the list of a record; the engine is told of the mask. */
void sw_brain_take_shut(struct sw_brain_gpu *gpus, uint32_t count, const json_t *list);
uint64_t sw_brain_shut_mask(const struct sw_brain_gpu *gpus, uint32_t count);
int sw_brain_apply_shut(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* In words, which GPUs of the cluster take no jobs and why; "" where all do. */
void sw_brain_describe_shut(const struct sw_brain *brain, char *text, size_t size);
/* Adds what else uses the GPUs of a job that runs. */
void sw_brain_add_company(const struct sw_brain *brain, uint64_t id, char *text, size_t size);

/* ---- the last stop of a job (stops.c) */
/* A record of a person about a job is about to be applied; acts_on = 0 ends it. */
void sw_stop_begin(struct sw_brain *brain, const json_t *body);
/* While a record of a person is applied to the job, that person is the cause, whatever `cause` says. 0 or SW_ENOMEM. */
int sw_stop_note(struct sw_brain *brain, uint32_t id, enum sw_stop_kind kind, enum sw_stop_cause cause, uint64_t job);
/* A policy stopped it for this job, as is known now. */
void sw_stop_name(struct sw_live *live, uint64_t job);
/* It goes on, or starts anew. */
void sw_stop_end(const struct sw_brain *brain, struct sw_live *live);
void sw_stop_pack(struct sw_pack *pack, struct sw_live *live);
/* The name of a user, or the number. */
char *sw_stop_user(const struct sw_brain *brain, uint32_t uid, char *text, size_t size);
/* What the order to stop this run says for the job's log: `text`, or NULL. */
char *sw_stop_order_words(const struct sw_brain *brain, struct sw_run_id run, char text[SW_SYNC_WHY_MAX + 1]);

/* ---- runs: what the engine decided, as wishes to nodes (runs.c). 0 or SW_ENOMEM. */
int sw_brain_obey(struct sw_brain *brain, const struct sw_step *step);
/* Takes back the wishes for a job's run, parked or not. A part that may still be alive leaves a ghost behind. */
int sw_brain_drop_runs(struct sw_brain *brain, uint32_t id);
/* The same for all parked runs that have a part on the node. */
int sw_brain_drop_parked(struct sw_brain *brain, struct sw_brain_node *node);
/* Strikes out ghost `index` of the node; what waited for it may start. */
void sw_brain_lay_ghost(struct sw_brain *brain, struct sw_brain_node *node, size_t index);
/* It is to be off its GPUs whole while it is parked, which it is or is about to be. */
void sw_brain_set_deep(struct sw_brain *brain, struct sw_live *live);
/* It cannot be; `why` is for people. */
int sw_brain_refuse_deep(struct sw_brain *brain, uint32_t id, const char *why);
/* The parked run is over, and what it had kept is gone: the job starts anew, or has ended where it may not. The caller says why. */
int sw_brain_lose_parked(struct sw_brain *brain, uint32_t id, struct sw_err *err);
/* Another run of a job that the engine runs, where it does. */
int sw_brain_begin_anew(struct sw_brain *brain, uint32_t id, struct sw_err *err);
/* The wishes for its run have changed. */
void sw_brain_touch(struct sw_brain *brain, const struct sw_live *live);
/* Whether a run that may not be stopped has begun on GPUs of this part of the job's parked run since that is parked. */
bool sw_brain_has_begun_beside(const struct sw_brain *brain, uint32_t id, const struct sw_run *run);
/* The job that is active on a GPU of this one's run, as people count; 0: none. */
uint64_t sw_brain_occupant(const struct sw_brain *brain, uint32_t id);
/* A job that must be off the GPUs of this one's run whole before it can start, as people count; 0: none. */
uint64_t sw_brain_parting(const struct sw_brain *brain, uint32_t id);
/* A job whose earlier run must be gone from the GPUs of this one's run before it can start, as people count: itself or another; 0: none. */
uint64_t sw_brain_leaver(const struct sw_brain *brain, uint32_t id);

/* ---- the fold's parts (fold.c, trouble.c) */
int sw_brain_step(struct sw_brain *brain, const struct sw_event *events, size_t count, struct sw_err *err);
/* The cause that a report gives for the end of one part of a run. */
int sw_brain_note_failure(struct sw_brain *brain, uint32_t id, uint32_t node, json_t *failure, struct sw_err *err);
/* The whole run has ended, well or badly; or it was interrupted from outside, at least in part. */
int sw_brain_end_run(struct sw_brain *brain, uint32_t id, bool interrupted, struct sw_err *err);
/* Notes for the user whether the request names an input that others failed on. */
void sw_brain_warn(const struct sw_brain *brain, struct sw_live *live, const struct sw_job_request *request);
uint64_t sw_brain_command_key(const struct sw_job_request *request);

/* ---- what people see (look.c) */
/* The first of what the job waits for that is still to come; NULL: it waits for no job. */
const struct sw_depend *sw_brain_awaits(const struct sw_live *live);

/* ---- jobs that have ended leave (forget.c, propose.c) */
/* Of a job that has ended, here or as the driver remembers it; false: it has not, or is not known. */
bool sw_brain_find_fate(const struct sw_brain *brain, uint64_t job, struct sw_fate *ret_fate);
/* Whether the number was given to a job that is not known any more: a record that names it came late. */
bool sw_brain_has_left(const struct sw_brain *brain, int64_t job);
/* The job has ended. 0 or SW_ENOMEM. */
int sw_brain_note_end(struct sw_brain *brain, uint32_t job);
/* After a load: lists those that have ended. 0 or SW_ENOMEM. */
int sw_brain_list_past(struct sw_brain *brain);
sw_ns sw_brain_forgets_at(const struct sw_brain *brain);
/* At most one record, for those whose time is over. */
int sw_brain_propose_forget(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err);
int sw_brain_apply_forget(struct sw_brain *brain, json_t *body, struct sw_err *err);

/* ---- moves (moves.c) */
enum sw_moved {
	SW_MOVED_NOT = 0, /* or not yet */
	SW_MOVED,
	SW_MOVED_REFUSED,
};
int sw_brain_apply_move(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* Whether the job's run can go on on these GPUs as it is, so far as is known. */
bool sw_brain_can_move(const struct sw_brain *brain, uint32_t id, uint32_t parts);
/* The run goes to these GPUs, or back to those that it came from. */
void sw_brain_relocate(struct sw_brain *brain, struct sw_live *live, uint64_t mask);
/* What an agent says of a run that moves; `up_to_date`: it knows all wishes. Why it is refused, if it is, is in *ret_why. */
enum sw_moved sw_brain_hear_move(const struct sw_brain_node *node, const struct sw_run *run, const struct sw_sync_run *said,
				 bool up_to_date, sw_ns now, const char **ret_why);
/* It is there (NULL), or stays where it was and why. */
int sw_brain_end_move(struct sw_brain *brain, uint32_t id, const char *why, struct sw_err *err);

/* ---- cancel, hold, release, requeue (changes.c) */
int sw_brain_apply_change(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_err *err);
/* What the last of changes that belong together does in the end, where it is still to come and something else came instead; else nothing. */
int sw_brain_conclude_changes(struct sw_brain *brain, struct sw_err *err);

/* ---- limits (limits.c) */
int sw_brain_apply_limit(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* Puts what the job may have of its GPUs now into the wish for a part of its run. */
void sw_brain_limit(const struct sw_brain *brain, uint32_t id, struct sw_want *want);

/* ---- how runs get on (speeds.c) */
int sw_brain_hear_speeds(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, uint32_t node, sw_records *records,
			 struct sw_err *err);
int sw_brain_apply_speeds(struct sw_brain *brain, json_t *body, struct sw_err *err);

/* ---- what is known of models (known.c) */
#define SW_BRAIN_PROFILES 1000u /* that are not built in */
int sw_brain_make_known(struct sw_brain *brain, struct sw_err *err);
void sw_brain_free_known(struct sw_brain *brain);
int sw_brain_apply_profile(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* The number of the profile of the model that the job is named after; 0: of none. */
uint32_t sw_brain_model(const struct sw_brain *brain, const struct sw_job_request *request);
/* Notes for the user that there is no profile of the model that the request names, unless something else is noted. */
void sw_brain_warn_model(const struct sw_brain *brain, struct sw_live *live, const struct sw_job_request *request);
/* What records have put over what is built in, written or read. */
void sw_brain_pack_known(struct sw_pack *pack, struct sw_brain *brain);

/* ---- what was measured beside what (slowdowns.c) */
/* What was just noted of the job's speed may be a lesson. */
void sw_brain_observe(struct sw_brain *brain, uint64_t id);
/* Takes the lessons in, if it is time to. */
void sw_brain_learn(struct sw_brain *brain);
/* When that is; SW_TIME_NEVER: there are none. */
sw_ns sw_brain_learns_at(const struct sw_brain *brain);
void sw_brain_pack_learned(struct sw_pack *pack, struct sw_brain *brain);

/* ---- nodes that do not answer (silence.c) */
/* A node on which a run of the job may be alive that nobody can stop now; NULL: there is none. */
const struct sw_brain_node *sw_brain_out_of_reach(const struct sw_brain *brain, uint32_t id);
int sw_brain_apply_silence(struct sw_brain *brain, json_t *body, struct sw_err *err);
int sw_brain_apply_remove(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* The node is back. */
int sw_brain_end_silence(struct sw_brain *brain, struct sw_brain_node *node, struct sw_err *err);
/* Keeps those from competing that must not start, and lets them go; at the end of every record. */
int sw_brain_strand(struct sw_brain *brain, struct sw_err *err);
/* Notes the job as stranded; ascending. 0 or SW_ENOMEM. */
int sw_brain_list_stranded(struct sw_brain *brain, uint32_t id);
/* Makes anew how many nodes are out of reach. */
void sw_brain_count_far(struct sw_brain *brain);
/* How long an answer to the node may be kept back. */
sw_ns sw_brain_keeps_poll_for(const struct sw_brain *brain, const struct sw_brain_node *node);
/* When sw_brain_tick_silence() has something to say; SW_TIME_NEVER. */
sw_ns sw_brain_next_silence(const struct sw_brain *brain);
int sw_brain_tick_silence(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err);
/* The end of a run as its agent would have said it, and of a ghost (agents.c). */
int sw_brain_record_loss(const struct sw_brain *brain, const char *node, struct sw_run_id id, const char *reason, sw_records *records,
			 struct sw_err *err);
int sw_brain_record_gone(const char *node, struct sw_run_id id, sw_records *records, struct sw_err *err);

/* ---- arrays (arrays.c). Numbers are as people count. */
/* The first member of the job's array; itself, if it is in none. */
uint64_t sw_array_first(const struct sw_brain *brain, uint64_t job);
/* The job is a member of the array that begins with `first`, of which `limit` may be under way. 0 or SW_ENOMEM. */
int sw_array_join(struct sw_brain *brain, uint64_t job, uint64_t first, uint64_t limit);
/* A member leaves memory. */
void sw_array_leave(struct sw_live *live);
/* Whether the member may be under way. */
bool sw_array_admits(const struct sw_live *live, uint64_t job);
/* A member has ended. The member that may be under way instead; 0: none. */
uint64_t sw_array_end(struct sw_brain *brain, uint64_t job);

/* ---- jobs that wait for others (dependents.c) */
/* What a job waits for beside what it asked to. */
struct sw_awaited {
	uint64_t prerun; /* as people count; 0: none */
	uint64_t slots;	 /* so many of its array may be under way; 0: all */
};
/* The newest job waits for what the request and `awaited` name, if that is anything. 0 or SW_ENOMEM. */
int sw_depends_begin(struct sw_brain *brain, uint32_t id, const struct sw_job_request *request, const struct sw_awaited *awaited);
/* The engine has the job now: if it waits for nothing that is still to come, it goes or ends. */
int sw_depends_judge(struct sw_brain *brain, uint32_t id, struct sw_err *err);
/* If the engine has ended the job, it waits no longer, and the jobs that wait for it are to be looked at. */
int sw_depends_end(struct sw_brain *brain, uint32_t id);
/* Looks at some of those: lets jobs go whose wait is over, and ends those that wait in vain. */
int sw_brain_settle(struct sw_brain *brain, struct sw_err *err);
/* The same, and the engine decides. */
int sw_brain_settle_and_step(struct sw_brain *brain, struct sw_err *err);
static inline bool sw_brain_is_settled(const struct sw_brain *brain)
{
	return brain->over_first == 0;
}
/* What waits for what, written or read. */
void sw_depends_save(const struct sw_brain *brain, struct sw_pack *pack);
int sw_depends_load(struct sw_brain *brain, struct sw_pack *pack);
/* What follows from that and from the engine, once both are read. 0, SW_ENOMEM or SW_EINPUT. */
int sw_depends_derive(struct sw_brain *brain, uint32_t format);
int sw_depends_validate(const struct sw_brain *brain, struct sw_err *err);

/* ---- pre-runs (prerun.c) */
/* The one-GPU request that goes before this one; NULL: out of memory. */
struct sw_job_request *sw_prerun_request(const struct sw_job_request *request);
/* The gang takes over how its pre-run failed; SW_ENOMEM. */
int sw_prerun_spoil(struct sw_live *gang, const struct sw_live *prerun);
/* It ran for as long as a pre-run should: that is no failure. */
void sw_prerun_pass(struct sw_live *prerun);
/* The pre-run that the job waits for, or waited for while it waits for something else still, as people count; 0: none. */
uint64_t sw_prerun_of(const struct sw_live *live);

#endif
