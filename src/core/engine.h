/* The scheduler as a function of events: sw_engine_step(events of one instant) ->
 * commands and the next wake-up.
 *
 * No I/O, no clock, no threads, no environment. Memory grows with jobs and nodes; a step that finds
 * none to take them in is an error code and changes nothing. Three drivers feed it: the simulator,
 * the live controller, and the journal.
 *
 * Invariants (sw_engine_validate() checks them all):
 *  1. a running job holds exactly the GPUs it was started with, between its min and max. One that
 *     is split holds one for each of its parts. A job that does not run holds none;
 *  2. the ledger equals what the running jobs' holdings add up to, and keeps its own invariants;
 *  3. no running job holds a GPU of a node that is down;
 *  4. every job is in exactly one of: waiting, running, held, ended. Two sets list exactly the
 *     waiting and the running. Only a running job is paused;
 *  5. guaranteed jobs of a tenant with a quota hold at most that many GPUs, unless the quota was
 *     lowered below what they held;
 *  6. time never goes back. An alarm or wake-up is never left in the past, and the engine wakes for
 *     every alarm before its slack is over. Only living jobs have alarms;
 *  7. the order lists every job that competes, in the set its state says, sorted and marked; jobs
 *     that keep off a node are counted;
 *  8. only a job that prefers its home, waits or is held, and has run remembers one; the ledger
 *     marks exactly these GPUs;
 *  9. of these, in a world that keeps no state, exactly those stand at their home whose owners let
 *     them be suspended where they run. The ledger counts what they hold there. Living jobs whose
 *     owners say how they may be stopped are counted, and so are those of them that could stand;
 * 10. a run that is on its way has begun, and is the only part of its job. It leaves as many GPUs
 *     of its node as it holds there. Its driver was told so when it began to, or later;
 * 11. a policy's list leads from its first job to its last and back, and has no job that has ended;
 * 12. questions that are open are those of the policy in charge, by number, each within its bounds
 *     and with its own fingerprint;
 * 13. a job that neither runs nor stands is as it asked to be: it has no configuration;
 * 14. GPUs are held for jobs that wait, for no two of them at a time, on nodes that take jobs. A
 *     run that is there has a lease that ends before the hold begins. The engine wakes when one
 *     begins and ends;
 * 15. a node that the policy has switched off is not up, and nothing is or stands there.
 */
#ifndef SW_CORE_ENGINE_H
#define SW_CORE_ENGINE_H

#include <sharewell/policy.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/pack.h"
#include "core/event.h"
#include "core/ledger.h"
#include "core/params.h"
#include "core/terms.h"
#include "core/topology.h"

#define SW_PREEMPTIONS_PER_STEP 8u
/* In 2160. A moment beyond is none: a hundred years more would not fit into the number. */
#define SW_ENGINE_TIME_MAX INT64_C(6000000000000000000)
#define SW_PREEMPTION_STEPS_MAX 16u

struct sw_engine;

/* Tells policies how jobs on one GPU would slow each other down. */
struct sw_predictor {
	void *context;
	/* The speeds of up to SW_RESIDENTS_MAX residents of a GPU in thousandths of alone, in their
	 * order; false: it does not know them all. A function of its arguments and of what its
	 * owner knows. The latter changes between steps alone and comes back with the engine's
	 * state. The order of the residents does not matter. NULL: nothing is known. */
	bool (*speeds)(void *context, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli);
};

/* A job on some GPUs, or as it would be on them. */
struct sw_run_shape {
	uint32_t model;
	uint32_t gpus_asked, gpus; /* by the job; that the run has */
	uint32_t split_milli;	   /* step time of a split run, alone; 0: it is not split */
	uint64_t gpu_types;	   /* a bit for each type among its GPUs; 0: of no type that is known */
	uint32_t cpus_asked, cpus; /* per GPU; 0: not known, and as the job asked */
	uint8_t distance, best;	   /* enum sw_distance: of its GPUs, and the least that so many can have here */
};

/* Tells how fast a job runs on its GPUs without neighbours. */
struct sw_scaler {
	void *context;
	/* The time for a piece of its work, in thousandths of what sw_job_remaining() counts by. It
	 * is written in any case and at least 1. False: its model has no profile, and so much hangs
	 * on it that this is a guess. A function of its arguments and of what its owner knows, as
	 * that of a predictor. NULL: nothing slows a job down. */
	bool (*slow)(void *context, const struct sw_run_shape *shape, uint32_t *ret_slow_milli);
};

/* The types of GPUs by their numbers in the topology; types beyond are not known. */
struct sw_gpu_types {
	uint32_t count;
	bool has_power; /* of some of them it is known */
	struct sw_gpu_type items[SW_GPU_TYPES_MAX];
};

/* Says how jobs can be split over what GPUs have left: see sw_view_split(). A pure function: the
 * same question has the same answer. */
struct sw_splitter {
	const char *name;
	bool (*split)(const struct sw_splitter *splitter, const struct sw_job *job, const struct sw_split_device *devices, size_t count,
		      struct sw_split *ret_split);
};

struct sw_engine_config {
	const struct sw_topology *topology; /* copied */
	const struct sw_policy *policy;
	const struct sw_policy *fallback; /* takes over from a policy that misbehaves; needs no parameters. NULL: none */
	const struct sw_placement *placement;
	const struct sw_params *params; /* of the policy; NULL: its presets */
	uint64_t seed;
	struct sw_terms terms;
	struct sw_predictor predictor;
	struct sw_scaler scaler;
	const struct sw_gpu_types *gpu_types; /* changes between steps alone; NULL: nothing is known */
	const struct sw_splitter *splitter;   /* NULL: nothing is split */
	uint32_t misuse_limit;		      /* misuses in a row of decisions before the policy is thrown out; 0: 100 */
};

struct sw_step {
	const struct sw_command *commands; /* the engine's; valid until the next step */
	size_t command_count;
	sw_ns wake_at; /* step again then, even if nothing happens; 0: at once; SW_TIME_NEVER */
};

int sw_engine_new(const struct sw_engine_config *config, struct sw_engine **ret_engine, struct sw_err *err);
void sw_engine_free(struct sw_engine *engine);
SW_DEFINE_FREEP(struct sw_engine, sw_engine_free)

/* Handles all events of the instant `at` together, in this order, then decides once. An `at` before
 * the last one is taken as the last one. On error nothing happened. */
int sw_engine_step(struct sw_engine *engine, sw_ns at, const struct sw_event *events, size_t count, struct sw_step *ret_step,
		   struct sw_err *err);
/* The same without the decision, for events that belong together and come one by one: the next step
 * decides on them all. Until then nothing starts, and wake_at is 0. */
int sw_engine_hear(struct sw_engine *engine, sw_ns at, const struct sw_event *events, size_t count, struct sw_step *ret_step,
		   struct sw_err *err);

/* A job that has ended is no longer known; its number is never used again. Memory follows
 * the jobs that are known. False: it is not there, it lives, or it ended since the last
 * decision. Decides nothing. */
bool sw_engine_forget(struct sw_engine *engine, struct sw_job_id id);
/* The next job gets this number at least. 0, SW_ENOMEM or SW_ELIMIT. */
int sw_engine_skip(struct sw_engine *engine, uint32_t next);
/* How many more of each the engine has room for. */
struct sw_engine_room {
	uint32_t nodes, gpus, jobs;
};
struct sw_engine_room sw_engine_room(const struct sw_engine *engine);

/* Other terms, from the next decision on. SW_EINPUT, and nothing is changed: they say otherwise
 * what a stop keeps or whether running jobs are laid out anew. That holds for the life of an
 * engine. */
int sw_engine_set_terms(struct sw_engine *engine, const struct sw_terms *terms, struct sw_err *err);
const struct sw_terms *sw_engine_terms(const struct sw_engine *engine);

/* Puts another policy in charge of all that is there; the engine keeps a pointer to `params` (NULL:
 * presets). On error the old one stays. */
int sw_engine_set_policy(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err);

/* Everything that the engine is, as bytes at the end of `out`, which fails only for want of
 * memory; between steps. An engine loaded from them goes on exactly like this one: same
 * decisions, same hashes. */
void sw_engine_save(const struct sw_engine *engine, struct sw_pack *out);
/* The configuration is that of the engine that was saved. The cluster comes from the bytes, and the
 * policy in charge must be `policy` with `params`, or the fall-back. Where that is not so, jobs and
 * what they hold are taken over as by sw_engine_set_policy(), and *ret_adopted is true. The same is
 * done where the program that wrote the bytes kept other things beside these. Bytes that are
 * damaged are an error (SW_EINPUT). */
int sw_engine_load(const struct sw_engine_config *config, const void *bytes, size_t size, struct sw_engine **ret_engine, bool *ret_adopted,
		   struct sw_err *err);

/* What the drivers may look at. */
const struct sw_view *sw_engine_view(const struct sw_engine *engine);
const struct sw_ledger *sw_engine_ledger(const struct sw_engine *engine);
/* What a job got and has left, up to the last event about it: sw_job_ran() and its like
 * account for the time since. */
struct sw_job_clock {
	sw_ns ran_ns;
	sw_ns gpu_time_ns;
	sw_ns work_left_ns;
	sw_ns work_left_as_of;
	sw_ns ends_at;
};
const struct sw_job_clock *sw_engine_clock(const struct sw_engine *engine, struct sw_job_id id);
const struct sw_job *sw_engine_job(const struct sw_engine *engine, struct sw_job_id id);
/* One above the highest number that was given out. Numbers below it may have been forgotten, or
 * skipped: sw_engine_job() is NULL for these. */
uint32_t sw_engine_job_count(const struct sw_engine *engine);
/* The first job from this number on that is there; UINT32_MAX: there is none.
 * And how many there are. */
uint32_t sw_engine_next_job(const struct sw_engine *engine, uint32_t from);
uint32_t sw_engine_known_count(const struct sw_engine *engine);
uint32_t sw_engine_epoch(const struct sw_engine *engine, struct sw_job_id id);
uint32_t sw_engine_parts(const struct sw_engine *engine, struct sw_job_id id);
/* Where its run is suspended; SW_NO_PART: it is not. */
uint32_t sw_engine_stands(const struct sw_engine *engine, struct sw_job_id id);
/* Of a job that runs, or whose run is suspended: whether a process of the run has begun. */
bool sw_engine_has_begun(const struct sw_engine *engine, struct sw_job_id id);
/* The GPUs of its one node that its run still has, on its way to those that it holds. Also since
 * when its driver is to carry that out (may be NULL). 0: it is not on its way. */
uint64_t sw_engine_leaves(const struct sw_engine *engine, struct sw_job_id id, sw_ns *ret_since);
/* The same of all runs on the node together. */
uint64_t sw_engine_leaving(const struct sw_engine *engine, struct sw_node_id node);
/* That of its run; zero: as the job asked. */
struct sw_config sw_engine_job_config(const struct sw_engine *engine, struct sw_job_id id);
/* A running job where it is, for its world. */
struct sw_run_shape sw_engine_run_shape(const struct sw_engine *engine, struct sw_job_id id);
/* Why the job's run cannot go to these GPUs in one, before it is asked whether they are free; NULL:
 * it can. SW_NO_NODE: of the node on which it runs. */
const char *sw_engine_move_obstacle(const struct sw_engine *engine, struct sw_job_id id, struct sw_gpus to);
/* What a driver kept of a run where its state was saved by a version whose engine did not (facts of
 * format 6 and below). */
struct sw_engine_run {
	uint32_t epoch; /* as the driver that carries out the commands counts */
	bool begun;
	uint64_t leaves;
	sw_ns move_at; /* as in core/job.h */
	sw_ns stood_at;
};
void sw_engine_adopt_run(struct sw_engine *engine, struct sw_job_id id, const struct sw_engine_run *run);
/* Since when its run is suspended, where it is. */
sw_ns sw_engine_stands_since(const struct sw_engine *engine, struct sw_job_id id);
/* A fingerprint of all events and commands so far. */
uint64_t sw_engine_log_hash(const struct sw_engine *engine);
/* The same of the commands alone and their times: what was decided, whichever driver told the
 * events. */
uint64_t sw_engine_command_hash(const struct sw_engine *engine);
/* The policy in charge: the fall-back once the other was thrown out. */
const char *sw_engine_policy(const struct sw_engine *engine);
/* What people should be told (a policy thrown out, and why); "" if nothing. */
const char *sw_engine_notes(const struct sw_engine *engine);
/* The first open question above this number, for its solver; false: there is none. One is open
 * until its reply is heard, or another policy is in charge. */
struct sw_engine_question {
	uint64_t number, print;
	struct sw_question asked; /* its bytes are the engine's, until the next step */
};
bool sw_engine_next_question(const struct sw_engine *engine, uint64_t after, struct sw_engine_question *ret_question);
/* One sentence: why this job waits. */
void sw_engine_explain(struct sw_engine *engine, struct sw_job_id id, char *text, size_t size);

/* 0, or SW_EBUG and the first invariant that does not hold. Costs a pass over the
 * whole state: for tests. */
int sw_engine_validate(const struct sw_engine *engine, struct sw_err *err);

#endif
