/* The controller without its surroundings: what the cluster is, as a fold over journal records, and
 * how requests and agents' words become records.
 *
 * No I/O, no clock, no network: `now` comes in, records and answers go out. The driver (server.c)
 * stores every record before it applies it, and applies it before it answers. A restart applies the
 * journal again and has the same state. The deterministic system simulation drives this very code.
 *
 *	propose or hear -> records -> (driver: journal, commit) -> apply -> answers
 *
 * Invariants:
 *  1. the state is a function of the applied records alone, except what is marked volatile: when
 *     nodes were answered, what agents said last, versions;
 *  2. job n of the users is job n - 1 of the engine, and both know the same jobs. Numbers are never
 *     used twice. Those that were forgotten or skipped are known to neither;
 *  3. a run is wished for on a node in two cases alone (runs.c). Either the engine runs the job
 *     there, or the run is suspended there and the engine does not run it;
 *  4. a job ends once: nothing that comes later changes its end.
 */
#ifndef SW_BRAIN_BRAIN_H
#define SW_BRAIN_BRAIN_H

#include "api/job.h"
#include "api/json.h"
#include "api/sync.h"
#include "base/cleanup.h"
#include "base/pack.h"
#include "base/vec.h"
#include "core/engine.h"

struct sw_failure_table;
struct sw_gpu_rules;
struct sw_profile;
struct sw_profiles;

enum sw_record_kind {
	SW_RECORD_SUBMIT =
		/* user, request; env, argv: digests of large parts that are kept beside the
		 * records, see bulk.c, and warning: about what they name. past: what became of jobs
		 * that it depends on, and that had ended. `key`, `digest`, `count`; or the index of
		 * one more member of the array that the job before belongs to. limit: so many of it
		 * at a time. prerun: false, that of the first is its */
	1,
	/* job, by; this and the next three: more, whether other changes of the same
	 * request follow, see changes.c */
	SW_RECORD_CANCEL,  /* ran, since, stops, uid: as in report.h, for the history */
	SW_RECORD_HOLD,	   /* job, by; deep: true, off its GPUs whole; spares: true, unless it would lose its run */
	SW_RECORD_RELEASE, /* job, by */
	SW_RECORD_REQUEUE, /* job, by: stop it and start it anew */
	/* name, inventory: a node is new, or back. changed: true, with other GPUs than it had, see
	 * reshape.c. shut as in SW_RECORD_GPUS; leases: its agent keeps those of its runs */
	SW_RECORD_NODE,
	SW_RECORD_NODE_LOST,  /* name. Of version 0.1, where no run outlived a silence: all jobs of the node start anew */
	SW_RECORD_REPORT,     /* node, job, epoch, state, code, signal, reason; failure: why it failed, see trouble.c */
	SW_RECORD_WAKE,	      /* the engine wanted to be called */
	SW_RECORD_POLICY,     /* policy, parameters */
	SW_RECORD_QUOTA,      /* tenant, GPUs */
	SW_RECORD_NODE_CLOSE, /* name, by, why: it takes no more jobs */
	SW_RECORD_NODE_OPEN,  /* name, by */
	SW_RECORD_LIMIT,      /* job, by; memory_bytes, share_milli: 0 lifts, what is not there stays */
	/* node; speeds: of some of its runs, job, epoch, iteration_ns, alone_ns,
	 * iterations, beside; see speeds.c */
	SW_RECORD_SPEED,
	/* name; use_milli, busy_milli, busy_known: what policies know of this model from now on;
	 * without them, what is built in; see known.c */
	SW_RECORD_PROFILE,
	SW_RECORD_MOVE,		    /* job, by, epoch, mask: its run goes on on these GPUs of its node, if it can; see moves.c */
	SW_RECORD_NUMBERS = 18,	    /* above: the next job gets a number above this one, after a restore or a loss */
	SW_RECORD_NODE_SILENT = 20, /* name, since: it does not answer; see silence.c */
	SW_RECORD_NODE_REMOVE = 22, /* name, by, why: it is given up for good; see silence.c */
	SW_RECORD_GPUS = 23,	    /* name; shut: the GPUs of the node that take no jobs from now on, gpu, why, since; see shut.c */
	SW_RECORD_FORGET,	    /* jobs: these have ended and leave the state, unless something refers to them; see forget.c */
	SW_RECORD_SPEAKER,	    /* name, home, token: which agent speaks for a node; see speakers.c */
	SW_RECORD_WORLD,	    /* name, text, terms; chosen: by an operator; see terms.c */
	SW_RECORD_ANSWER = 27,	    /* number, print, status, bytes: what a solver says to a question of the policy; see questions.c */
};

/* What became of a job that has ended. */
struct sw_fate {
	uint64_t job;
	bool ok;      /* it ended well */
	uint32_t uid; /* of its owner */
};

/* Large parts of a request, which records name by their digest. */
enum { SW_BULK_ENV, SW_BULK_COMMAND, SW_BULKS };
#define SW_BULK_DIGEST 32u
struct sw_record_text {
	unsigned char digest[SW_BULK_DIGEST];
	char *bytes; /* owned; NULL: none */
	size_t size;
};

struct sw_record {
	enum sw_record_kind kind;
	char *body; /* JSON; owned */
	size_t size;
	struct sw_record_text texts[SW_BULKS]; /* to be stored with it */
	/* Of a submit that was just proposed: what the body says, as values. NULL:
	 * it has to be read. Owned */
	struct sw_said *said;
};
typedef SW_VEC(struct sw_record) sw_records;
void sw_records_clear(sw_records *records);

struct sw_user {
	uint32_t uid, gid;
	bool is_operator;
};

struct sw_brain_config {
	const char *policy; /* at the very beginning; a record may change it */
	const char *placement;
	const struct sw_policy *plugin; /* one more policy than the built-in ones; NULL: none */
	uint64_t seed;
	sw_ns silence_ns;		  /* so long after its last answer a node counts as silent */
	sw_ns silence_margin_ns;	  /* waited on top of that, and of leases */
	bool restarts[SW_CLASS_AUTO + 1]; /* jobs of this class that do not say what happens when their node is lost start anew */
	sw_ns retry_backoff_ns;		  /* before the first retry; doubles */
	uint32_t node_gpus_hint;	  /* for tests; 0 */
	/* Classes of failures; outlives the brain. NULL: it loads the built-in ones. */
	const struct sw_failure_table *failures;
	/* The built-in profiles; they outlive the brain, which puts those over them that it has
	 * records of. Jobs find theirs by their model, or else their name. NULL: policies are told
	 * that nothing is known. */
	const struct sw_profiles *profiles;
	/* Jobs that have ended leave once more than `keep_jobs` have, or `keep_for_ns`
	 * after their end; `forgets` false: never. What a record said before stays said:
	 * these only make records. */
	bool forgets;
	uint32_t keep_jobs;
	sw_ns keep_for_ns;
	/* What became of a job that has left: asked where a request depends on one. NULL:
	 * nothing is known of these. */
	bool (*find_fate)(void *context, uint64_t job, struct sw_fate *ret_fate);
	void *find_context;
	/* A text that was stored with a record, by its digest; the brain frees it. NULL: nothing is
	 * kept beside records, so they hold all. */
	int (*load_text)(void *context, const unsigned char digest[SW_BULK_DIGEST], char **ret_bytes, size_t *ret_size, struct sw_err *err);
	void *load_context;
	/* The name of a user, for people; NULL: they are numbers. */
	const char *(*user_name)(void *context, uint32_t uid);
	void *user_context;
};

struct sw_brain;
int sw_brain_new(const struct sw_brain_config *config, struct sw_brain **ret_brain, struct sw_err *err);
void sw_brain_free(struct sw_brain *brain);
SW_DEFINE_FREEP(struct sw_brain, sw_brain_free)

/* ---- requests: 0 and one record more in `records`, or an error that the client is told
 * (SW_ENOTFOUND, SW_EINPUT, SW_EDENIED) */
int sw_brain_propose_submit(struct sw_brain *brain, const struct sw_user *user, const struct sw_job_request *request, sw_records *records,
			    struct sw_err *err);
/* The same for the first job of a request that came with a key, which stands for `count` jobs.
 * NULL: it came without. */
struct sw_submit_key {
	const char *text;
	uint64_t digest; /* of the request */
	uint32_t count;
};
int sw_brain_propose_keyed_submit(struct sw_brain *brain, const struct sw_user *user, const struct sw_job_request *request,
				  const struct sw_submit_key *key, sw_records *records, struct sw_err *err);
/* The jobs that this user's key made: true, with the first of them and the
 * key's digest and count. */
bool sw_brain_find_key(const struct sw_brain *brain, sw_ns now, const struct sw_user *user, const char *text, struct sw_submit_key *ret_key,
		       uint64_t *ret_first);
/* The other members of an array whose first was just proposed: they differ in their index alone.
 * `count` is with the first. */
int sw_brain_propose_others(const struct sw_job_request *request, uint32_t count, sw_records *records, struct sw_err *err);
/* What was measured of a model, before the submit of a job that needs it. NULL: no more is known of
 * it than what is built in. No record where the brain knows that already, or one of the last
 * records says so. */
int sw_brain_propose_profile(const struct sw_brain *brain, const char *name, const struct sw_profile *profile, sw_records *records,
			     struct sw_err *err);
/* Other terms for the cluster: those of this world, under this name. `user` NULL: those that the
 * controller was started with. */
struct sw_world;
int sw_brain_propose_world(struct sw_brain *brain, const struct sw_user *user, const char *name, const struct sw_world *world,
			   sw_records *records, struct sw_err *err);
/* 0, or SW_EINPUT and what of it a live cluster cannot run. */
int sw_brain_takes_world(const char *name, const struct sw_world *world, struct sw_err *err);
/* The terms in force. Their world, as it was given; the caller frees both; "": none was.
 * `ret_chosen`: an operator chose it while the cluster ran. */
const struct sw_terms *sw_brain_terms(const struct sw_brain *brain);
int sw_brain_look_world(const struct sw_brain *brain, char **ret_name, char **ret_text, bool *ret_chosen);
/* What people do to jobs that are there: cancel, hold, release, requeue. */
struct sw_change {
	enum sw_record_kind kind;
	const char *verb; /* what the user calls it, in complaints */
	bool deep;	  /* of a hold: a job that runs, or stands still, leaves its GPUs whole if that can be */
	bool skips_ended; /* those that have ended are left alone, and are no error */
	bool leaves;	  /* of a hold: a run goes on, and the job is held once that is over */
	bool force;	  /* of a hold: also one that would lose its run, which else is an error */
	sw_ns now;	  /* for such errors; 0: that of the last record */
};
int sw_brain_propose_one(struct sw_brain *brain, const struct sw_user *user, const struct sw_change *change, uint64_t job,
			 sw_records *records, struct sw_err *err);
/* The same in short; and a suspend that is deep. */
int sw_brain_propose_change(struct sw_brain *brain, const struct sw_user *user, enum sw_record_kind kind, const char *verb, uint64_t job,
			    sw_records *records, struct sw_err *err);
int sw_brain_propose_deep(struct sw_brain *brain, const struct sw_user *user, uint64_t job, sw_records *records, struct sw_err *err);
/* The same with many jobs, all of them or none: where one cannot be changed there is no record, and
 * the error names it. The engine decides once for all of them. */
int sw_brain_propose_changes(struct sw_brain *brain, const struct sw_user *user, const struct sw_change *change, const uint64_t *jobs,
			     size_t count, sw_records *records, struct sw_err *err);
/* Adds to the refusal of one of so many that none was changed. */
void sw_brain_say_none(struct sw_err *err, size_t count);
/* Also while its last processes are still stopping. The job must be there. */
bool sw_brain_has_ended(const struct sw_brain *brain, uint64_t job);
/* False: it has ended, or a release or requeue would find nothing to do. A job may be held again,
 * or cancelled again: where it came from, and for what, is news. */
bool sw_brain_would_change(const struct sw_brain *brain, enum sw_record_kind kind, uint64_t job);
/* What the job may have of its GPUs. */
int sw_brain_propose_limit(struct sw_brain *brain, const struct sw_user *user, uint64_t job, const struct sw_job_limit *limit,
			   sw_records *records, struct sw_err *err);
/* Lets the job's run go on on these GPUs of its node; 0: on any that are free. */
int sw_brain_propose_move(struct sw_brain *brain, const struct sw_user *user, uint64_t job, uint64_t mask, sw_records *records,
			  struct sw_err *err);
/* After the record was applied: whether the job goes there, or is there. If not, since
 * something came in between, why. */
int sw_brain_check_move(const struct sw_brain *brain, uint64_t job, uint64_t mask, struct sw_err *err);
/* `settings` are "name=value" pairs of the policy's parameters. */
int sw_brain_propose_policy(struct sw_brain *brain, const struct sw_user *user, const char *policy, const char *const *settings,
			    size_t count, sw_records *records, struct sw_err *err);
int sw_brain_propose_quota(struct sw_brain *brain, const struct sw_user *user, const char *tenant, uint32_t gpus, sw_records *records,
			   struct sw_err *err);

/* Closes a node to new jobs, or opens it again. `why` is for people. */
int sw_brain_propose_door(struct sw_brain *brain, const struct sw_user *user, const char *node, bool closed, const char *why,
			  sw_records *records, struct sw_err *err);

/* Gives up a node that does not answer. Its jobs end as lost, but those that may start anew do so
 * as soon as their leases are over. */
int sw_brain_propose_remove(struct sw_brain *brain, const struct sw_user *user, const char *node, const char *why, sw_records *records,
			    struct sw_err *err);

/* ---- questions of the policy */
/* The first that is open above this number; see sw_engine_next_question(). */
bool sw_brain_next_question(const struct sw_brain *brain, uint64_t after, struct sw_engine_question *ret_question);
/* What its solver says: one record. If the question is not open any more, nothing comes of it. */
int sw_brain_propose_answer(const struct sw_reply *reply, sw_records *records, struct sw_err *err);

/* ---- agents */
/* What a sync changes. An old or repeated sync changes nothing. SW_EDENIED: it is of an agent that
 * does not speak for its node. `sync->token` is believed. */
int sw_brain_hear(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, sw_records *records, struct sw_err *err);
/* The same, some records at a time: as long as `more` is set, apply the records and call again.
 * What is left is dropped when the agent has said something newer. */
struct sw_hearing {
	bool begun, more;
	size_t at;	 /* the run that is heard next */
	unsigned slices; /* so far */
};
int sw_brain_hear_some(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, struct sw_hearing *hearing, sw_records *records,
		       struct sw_err *err);
/* The id of the token that brought a node; NULL: there is no such node. And how many
 * nodes a token brought. */
const char *sw_brain_token_of(const struct sw_brain *brain, const char *node);
size_t sw_brain_nodes_of_token(const struct sw_brain *brain, const char *token);
/* The connection that this sync came over has closed, unanswered. */
void sw_brain_left(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync);
/* Whether the node of this sync must be told something at once, or may wait. */
bool sw_brain_has_word(const struct sw_brain *brain, const struct sw_sync *sync);
/* How long its answer may be kept back. */
sw_ns sw_brain_patience(const struct sw_brain *brain, const struct sw_sync *sync);
/* The answer to it; renews the leases of its runs. */
int sw_brain_answer(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, struct sw_answer_message **ret_answer,
		    struct sw_err *err);

void sw_brain_answer_free(struct sw_answer_message *answer);

/* ---- time */
/* When to call sw_brain_tick() at the latest. */
sw_ns sw_brain_next(const struct sw_brain *brain);
/* Records for what is due: wake-ups, lost nodes, retries. */
int sw_brain_tick(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err);

/* ---- the fold */
/* `at` must not go back; the driver takes care of clocks that do. *ret_job: the job that a
 * submit made (0: none).
 *	SW_EINPUT	the record does not fit the state (check.c); nothing has changed, and the
 *			next one can be applied;
 *	SW_ENOTFOUND	it needs something that is missing here, a policy; nothing has changed;
 *	SW_ELIMIT	it is of a kind that a newer version writes;
 *	SW_ENOMEM, SW_EBUG
 *			the state can no longer be trusted, and must be made anew from the records,
 *			with SW_EBUG without this one. */
int sw_brain_apply(struct sw_brain *brain, sw_ns at, enum sw_record_kind kind, const char *body, size_t size, uint64_t *ret_job,
		   struct sw_err *err);
/* The same, of a record that was proposed in this process: a submit is applied without reading what
 * was written. Takes record->said. */
int sw_brain_apply_record(struct sw_brain *brain, sw_ns at, struct sw_record *record, uint64_t *ret_job, struct sw_err *err);
/* The next job gets a number above this one. */
int sw_brain_skip_numbers(struct sw_brain *brain, uint64_t above, struct sw_err *err);
/* What a record says that a replay of the history needs, for this user, as JSON (retell.c); the
 * caller frees. NULL: it says nothing of the kind. */
char *sw_brain_retell(const struct sw_brain *brain, const struct sw_user *user, uint64_t seq, sw_ns at, enum sw_record_kind kind,
		      const char *body, size_t size);
/* The jobs of a record of this kind SW_RECORD_FORGET, for the driver that is to keep what people
 * may ask about them. Calls `fn` for each that is known. */
int sw_brain_each_forgotten(const struct sw_brain *brain, const char *body, size_t size, int (*fn)(void *user, uint64_t job), void *user,
			    struct sw_err *err);
/* In place of a record that is set aside: what follows from its absence. */
void sw_brain_pass_over(struct sw_brain *brain, enum sw_record_kind kind, const char *body, size_t size);
/* After a restart: every node has just been heard and answered, for all we know. */
void sw_brain_assume_answers(struct sw_brain *brain, sw_ns now);

/* All of the state that is not volatile, as bytes at the end of `out`, which fails only for want of
 * memory; and back. A brain loaded from them goes on as the one that was saved. *ret_adopted:
 * another version or configuration wrote them, and the policy took over jobs and what they hold as
 * if it had just been chosen. */
void sw_brain_save(const struct sw_brain *brain, struct sw_pack *out);
int sw_brain_load(const struct sw_brain_config *config, const void *bytes, size_t size, struct sw_brain **ret_brain, bool *ret_adopted,
		  struct sw_err *err);

/* ---- looking */
struct sw_job_view {
	uint64_t id;
	const char *state;	/* Slurm's short names: PD CF R S CG CD F CA TO NF OOM; and UN, see unreachable */
	const char *state_long; /* PENDING RUNNING ... */
	const char *
		/* JSON; of a member of an array without its index: sw_job_view_request() writes
		 * that too. Without what is `bulky` */
		request;
	size_t request_size; /* of all of it */
	bool bulky;	     /* its environment or command is kept elsewhere: sw_brain_whole_request() has all */
	bool is_member;
	uint32_t array_index;
	const char *name;
	const char *model; /* the name of its profile, if there is one: its own where it did not say */
	const char *tenant;
	const char *reason; /* why it ended or waits, short; "" */
	uint32_t held_by;   /* user that suspended it; UINT32_MAX: none */
	bool held;	    /* a user holds it back */
	uint32_t uid, gid;
	uint32_t gpus, restarts, preemptions;
	uint32_t epoch;				  /* of its run, as the agents count: a run that was suspended and goes on is one */
	int code, signal;			  /* of the last run */
	sw_ns submitted_at, started_at, ended_at; /* SW_TIME_NEVER: not yet; it has not ended before its last process has */
	sw_ns retry_at;				  /* when it is tried again after a failure; SW_TIME_NEVER: it waits for no such thing */
	sw_ns ran_ns;
	const char *node; /* where its first part runs or ran last; "" */
	uint64_t gpu_mask;
	uint64_t gpu_memory_bytes; /* it gets on each GPU now; 0: whole GPUs */
	uint64_t limit_bytes;	   /* of each GPU, as a user set it; 0: none did */
	uint32_t limit_milli;	   /* of its time, likewise */
	bool is_opportunistic;	   /* now */
	bool is_paused;		   /* runs, and stands still on its GPUs */
	enum sw_run_depth depth;   /* of one that is suspended in place */
	const char *not_deep;	   /* why it could not leave its GPUs whole; "" */
	bool is_moving;		   /* on its way to these GPUs from others of the node */
	const char *unmoved;	   /* why it could not go to other GPUs when that was wished last; "" */
	const char *unreachable;   /* the node that does not answer, where a run of it may be alive; "": there is none */
	sw_ns unreachable_since;   /* then that was heard last */
	bool is_prerun;		   /* made for another job, not asked for by itself */
	const char *warning;	   /* about its input, or from the policy at submit; "" */
	/* Of the last run that failed; "" where none did. */
	const char *failure, *failure_layer, *failure_line, *failure_says, *failure_hint;
	char failure_done[240]; /* what was done about it */
};
/* The last time that its run was suspended, stopped or moved by others than itself;
 * false: that never was. */
#define SW_STOP_WORDS 200u
struct sw_stop_view {
	const char *kind;	  /* suspended, stopped, cancelled, moved */
	const char *by;		  /* user (its owner), operator, policy, node */
	uint32_t uid;		  /* of the first two; UINT32_MAX: none */
	uint64_t job;		  /* for which; 0: none */
	sw_ns at, until;	  /* it went on, or started anew, then; SW_TIME_NEVER: not yet */
	char why[SW_STOP_WORDS];  /* "for job 7 (guaranteed, user ann)" */
	char next[SW_STOP_WORDS]; /* "it goes on when job 7 ends or makes way"; "": nothing, or it did */
};
bool sw_brain_stop(const struct sw_brain *brain, uint64_t id, struct sw_stop_view *ret_view);
/* A part of its present run; false: there are not so many. */
struct sw_part_view {
	const char *node;
	uint64_t mask;	/* its GPUs there */
	uint32_t epoch; /* of the run */
};
/* How its present run gets on, where that was measured; false: it was not, or the job does not
 * run. */
struct sw_speed_view {
	int64_t iteration_ns;	    /* 0: not known beside those that are there now */
	int64_t alone_ns;	    /* of this run or an earlier one; 0: not known */
	uint64_t iterations;	    /* that had ended then */
	uint32_t slow_milli;	    /* the one against the other; 0: not both are known */
	struct sw_sync_jobs beside; /* while this was measured */
};
bool sw_brain_speed(const struct sw_brain *brain, uint64_t id, struct sw_speed_view *ret_view);
struct sw_neighbour_view {
	uint64_t job;
	const char *node;
	uint64_t mask; /* the GPUs that both have there */
	bool paused;   /* it stands still there, and slows none down */
};
/* How much slower than alone it should be beside these others on its GPUs, as policies are told,
 * too. NULL, or why none can tell. */
struct sw_learn;
struct sw_learn_answer;
const char *sw_brain_predict(const struct sw_brain *brain, uint64_t id, const uint64_t *others, size_t count,
			     struct sw_learn_answer *ret_answer);
/* What measured slowdowns have taught. */
struct sw_learn *sw_brain_learned(const struct sw_brain *brain);
/* Which jobs are on its GPUs now, ascending, and on which of them. Up to
 * `capacity`; how many there are. */
size_t sw_brain_neighbours(const struct sw_brain *brain, uint64_t id, struct sw_neighbour_view *ret_neighbours, size_t capacity);
bool sw_brain_part(const struct sw_brain *brain, uint64_t id, uint32_t index, struct sw_part_view *ret_part);
/* The highest number that was given out. Not every number below is a job that is known here. */
uint64_t sw_brain_job_count(const struct sw_brain *brain);
/* The first job that is known from this number on, and the last up to it; 0: there is none.
 * And how many there are. */
uint64_t sw_brain_next_job(const struct sw_brain *brain, uint64_t from);
uint64_t sw_brain_prev_job(const struct sw_brain *brain, uint64_t from);
uint64_t sw_brain_known_count(const struct sw_brain *brain);
bool sw_brain_job(const struct sw_brain *brain, sw_ns now, uint64_t id, struct sw_job_view *ret_view);
/* Its state alone, as sw_job_view has it, for callers that ask about very many;
 * NULL: it is not known. */
const char *sw_brain_state_of(const struct sw_brain *brain, uint64_t id);
/* What the job asked for, with all that is kept elsewhere; the caller frees. NULL:
 * it is not there, or why. */
char *sw_brain_whole_request(const struct sw_brain *brain, uint64_t job, struct sw_err *err);
/* Whether a job that is known needs this text. */
bool sw_brain_needs_text(const struct sw_brain *brain, const unsigned char digest[SW_BULK_DIGEST]);
void sw_job_view_request(const struct sw_job_view *view, struct sw_json *json);
void sw_brain_explain(struct sw_brain *brain, sw_ns now, uint64_t id, char *text, size_t size);
/* Whether it waits only because nodes are closed that could have it: true, with which and why
 * ("Drained: n1 (new fans)"). Looks at all nodes. */
bool sw_brain_drained(const struct sw_brain *brain, uint64_t id, char *text, size_t size);
/* Whether it waits while GPUs are shut that could have it. True, and says which and why ("1 of 4
 * GPUs is used by processes outside the queue: ..."). Looks at all nodes. */
bool sw_brain_shut_out(const struct sw_brain *brain, uint64_t id, char *text, size_t size);

struct sw_node_view {
	const char *name;
	bool up;
	bool silent;	    /* up, and does not answer since heard_at */
	bool removed;	    /* given up by an operator */
	bool closed;	    /* it takes no more jobs */
	bool in_use;	    /* jobs run there */
	const char *reason; /* why; "" */
	uint32_t gpus, gpus_free, cpus;
	uint32_t gpus_shut; /* take no jobs, whatever runs on them */
	uint64_t memory_bytes;
	uint64_t gpu_memory_bytes; /* of each GPU */
	sw_ns heard_at;
};
/* A GPU that takes no jobs. */
struct sw_shut_view {
	enum sw_shut why;
	int64_t since_ns;
	const char *by; /* what uses it, or what it says; "" */
};
/* False: it takes jobs. Both must be there. */
bool sw_brain_gpu_shut(const struct sw_brain *brain, uint32_t node, uint32_t gpu, struct sw_shut_view *ret_view);

uint32_t sw_brain_node_count(const struct sw_brain *brain);
bool sw_brain_node(const struct sw_brain *brain, uint32_t index, struct sw_node_view *ret_view);
const char *sw_brain_gpu_uuid(const struct sw_brain *brain, uint32_t node, uint32_t gpu); /* both must be there */
/* When the last record was applied. */
sw_ns sw_brain_now(const struct sw_brain *brain);
const char *sw_brain_policy(const struct sw_brain *brain);
const char *sw_brain_placement(const struct sw_brain *brain);
/* The parameters of the policy in charge; NULL: all at their presets. */
const struct sw_params *sw_brain_params(const struct sw_brain *brain);

struct sw_tenant_view {
	const char *name;
	uint32_t quota; /* UINT32_MAX: none */
	uint32_t gpus, gpus_guaranteed, gpus_wanted, running, waiting;
	bool of_user; /* the user that asked has jobs that run or wait in it */
};
typedef SW_VEC(struct sw_tenant_view) sw_tenant_views;
/* All tenants that there ever were. 0 or SW_ENOMEM; release with sw_vec_free(). */
int sw_brain_tenants(const struct sw_brain *brain, uint32_t uid, sw_tenant_views *ret_tenants);
uint64_t sw_brain_log_hash(const struct sw_brain *brain);
uint64_t sw_brain_command_hash(const struct sw_brain *brain);
int sw_brain_validate(const struct sw_brain *brain, struct sw_err *err);

#endif
