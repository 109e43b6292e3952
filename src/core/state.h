/* The engine's state, shared by the files of src/core alone. */
#ifndef SW_CORE_STATE_H
#define SW_CORE_STATE_H

#include <string.h>

#include "base/bitmap.h"
#include "base/heap.h"
#include "base/oset.h"
#include "base/rng.h"
#include "base/table.h"
#include "base/vec.h"
#include "core/engine.h"
#include "core/job.h"

struct sw_view {
	struct sw_engine *engine;
	struct sw_ledger *ledger; /* the real one, or the empty one that tells what could ever fit */
};

/* Jobs that are alike to the placement rule: where one does not fit, the others do not either. So
 * in every decision a lane is cut once: ahead of the cut all run, behind it all wait. */
struct sw_lane {
	uint32_t gpus;
	uint32_t kind; /* as the placement rule says */
	uint32_t cpus;
	uint32_t tenant; /* told apart only where quotas are in force */
	uint64_t host_memory_bytes;
	uint64_t gpu_memory_bytes;
	uint32_t avoid; /* the node that its jobs keep off; UINT32_MAX: none */
	/* for the one job with this id and 1. It can only go on where it was, or GPUs are held for
	 * it. 0: for all that are alike */
	uint32_t lone;
	uint32_t members; /* jobs that have not ended */
	bool guaranteed;  /* as asked */
	bool is_auto;	  /* told apart only where the order is by class */
	bool possible;	  /* has a place on the empty cluster */
	struct sw_oset running, waiting;
	/* Scratch of one decision. */
	bool blocked;	 /* its best waiting job found no place */
	uint32_t cursor; /* walks over running */
	uint32_t cursor_waiting;
};

/* Marks of jobs in the sets of their lanes, for walks over some of them. */
enum {
	SW_MARK_FRESH = 1,  /* it waits, and was put last since the last decision */
	SW_MARK_YIELDS = 2, /* it runs, may be stopped, and is opportunistic */
	SW_MARK_KEEPS =
		/* it runs, may be stopped, is guaranteed, and would go on where it was. Not looked
		 * for in a world in which all keep their state */
	4,
	/* it runs and may be stopped; looked for only where some may not, set once a
	 * job with a rule has come */
	SW_MARK_STOPS = 8,
};

/* Where a job stands at one instant; total. */
struct sw_rank {
	__int128 key;
	int64_t stamp;
	uint32_t group;
	uint32_t job;
};

struct sw_ranked {
	struct sw_rank rank;
	bool start; /* otherwise it stops */
};

/* A waiting job that may have to run: the best of its lane, or one that was
 * dropped in this decision. */
struct sw_candidate {
	struct sw_rank rank;
	uint32_t need;
};

/* The last running job of a lane that a walk from the tail has not passed yet. */
struct sw_tail {
	struct sw_rank rank;
	uint32_t job;
};

struct sw_order_book {
	const struct sw_order *rule; /* NULL: the policy keeps no order */
	bool uneven;		     /* some jobs do not fit on some GPUs: a count of free ones says too little */
	bool exact;		     /* stamps are places in one list, numbered anew at every decision */
	SW_VEC(struct sw_lane) lanes;
	struct sw_oset_links links; /* by job */
	int64_t seq;		    /* counts decisions */
	int64_t fresh_index;
	SW_VEC(uint32_t) fresh; /* jobs put last since the last decision */
	SW_VEC(uint32_t) scratch;
	SW_VEC(uint32_t) dropped;
	SW_VEC(uint32_t) chosen;
	SW_VEC(struct sw_ranked) ranked;
	SW_VEC(struct sw_tail) tails;
	SW_VEC(struct sw_candidate) candidates; /* room for every lane and every job that may be dropped */
};

/* What a job was before this decision touched it. */
struct sw_plan_entry {
	struct sw_job before;
	struct sw_job_clock clock_before;
	uint32_t parts_before;
	uint32_t split_before;
	struct sw_config config_before;
	sw_ns until;	/* of its run, when it was lifted last: where it runs on, it has this lease */
	bool was_alone; /* on its GPUs, and no job was put beside it since */
	bool limits_changed;
	bool goes_on; /* it comes to other GPUs in the same run */
};

/* GPUs that are kept for a job that waits (hold.c). */
struct sw_hold_row {
	uint32_t job;
	uint32_t parts; /* SW_NO_PART: it is over, in this decision */
	sw_ns from, to;
	bool in_force; /* the ledger keeps them */
};

/* As which job, in a run until when, the holds in the ledger are seen. */
struct sw_shade {
	bool on;
	uint32_t job; /* UINT32_MAX: any that has none */
	sw_ns until;
};

struct sw_plan {
	struct sw_engine *engine;
	SW_VEC(struct sw_plan_entry) entries;
	uint32_t misuses;
	sw_ns wake_at;
	bool again;			      /* there is another decision once this one is carried out */
	sw_ns protected_until;		      /* the earliest end of a protection that stood in a job's way */
	SW_VEC(uint32_t) lifted;	      /* the jobs that were preempted for the one that is being placed */
	uint32_t holds_made, hold_parts_made; /* in this decision */
	bool holds_changed;		      /* their jobs have to change lanes */
	bool looks;			      /* for a place: the ledger shows what suits that */
	bool walks;			      /* over the order */
	uint32_t walked;		      /* the job given last; SW_OSET_NONE at the end */
};

/* One that is open. */
struct sw_core_question {
	uint64_t number, tag, print;
	uint32_t kind, limit;
	uint32_t size, slot; /* where its bytes are */
};

struct sw_ask_book {
	struct sw_core_question open[SW_QUESTIONS_MAX]; /* by number */
	uint32_t count;
	uint64_t last;	       /* number that was given out */
	unsigned char *bytes;  /* SW_QUESTIONS_MAX slots of the policy's question_size; NULL: it asks none */
	uint32_t asked, heard; /* in this step */
};

struct sw_tenant {
	uint32_t held;	   /* by its guaranteed runs */
	uint32_t borrowed; /* by its opportunistic ones */
	uint32_t quota;
};

struct sw_engine {
	struct sw_engine_config config;
	const struct sw_policy *policy; /* in charge now */
	struct sw_params *presets;	/* of the policy in charge, where the driver gave none */
	const struct sw_params *params;
	struct sw_topology *topology; /* its own: it may grow */
	struct sw_view view;
	struct sw_view empty_view;
	struct sw_ledger ledger;
	struct sw_ledger empty;
	struct sw_rng rng;
	sw_ns now;
	SW_TABLE(struct sw_core_job) jobs; /* by number; those that are not known are zero */
	struct sw_bitmap known;		   /* jobs that were submitted and not forgotten */
	struct sw_bitmap waiting, running;
	uint32_t paused;		  /* how many of those that run are */
	struct sw_heap alarms;		  /* by due time */
	struct sw_heap latest;		  /* the same alarms, by due time and slack together */
	struct sw_heap leases;		  /* by their ends */
	SW_VEC(struct sw_hold_row) holds; /* by job */
	uint32_t hold_parts;		  /* that they have of the ledger */
	sw_ns hold_at;			  /* when the next of them begins or ends */
	struct sw_shade shade;
	uint32_t nodes_off, gpus_off; /* that the policy has switched off */
	bool restores_power;	      /* with the next event: another policy is in charge, or other terms */
	SW_VEC(struct sw_tenant) tenants;
	bool quotas;
	uint32_t leavers;  /* jobs whose runs are on their way to other GPUs */
	uint32_t avoiders; /* known jobs that keep off a node */
	uint32_t ruled;	   /* living jobs whose owners say how they may be stopped */
	/* there was one since the start or the load; not saved, since marks matter
	 * only while there is one */
	bool had_rules;
	bool went_on; /* an event of this step had a run go on where it stood */
	/* of these, whose runs would stand where they are: a count of GPUs that
	 * they leave says too little */
	uint32_t standers;
	struct sw_order_book order;
	struct sw_plan plan;
	void *policy_state;
	void *scratch;			       /* of the policy, for one decision */
	uint32_t changes, changes_next;	       /* bits of enum sw_view_change: for the decision that is made, and for the next */
	uint32_t gpus_up_left, gpus_free_left; /* as the last decision left them */
	char *job_states;		       /* by job, as a table of so many bytes each */
	size_t job_states_each, job_states_room;
	char *node_states; /* so many bytes each */
	size_t node_states_each, node_states_capacity;
	SW_VEC(struct sw_command) commands;
	SW_VEC(struct sw_admission) admissions; /* of this step: commands point to their reasons */
	SW_VEC(uint32_t) ringing;
	struct sw_ask_book asks;
	uint64_t log_hash;
	uint64_t command_hash;
	/* jobs that no place suits take any: the policy was thrown out, or changed under jobs
	 * that it could not place */
	bool fell_back;
	bool recheck; /* it was changed, or no more nodes join: see which jobs can still run */
	uint32_t idle_decisions, empty_decisions;
	uint32_t misuses; /* since the last decision without one */
	char notes[512];
};

/* ---- nodes that change (reshape.c) */
/* Whether no two GPUs become one. */
bool sw_reshape_is_sound(const struct sw_topology_change *change);
int sw_reshape_node(struct sw_engine *engine, uint32_t node, const struct sw_topology_change *change);

/* ---- life (engine.c) */
#define SW_ENGINE_TENANTS_MAX 1000000u
#define SW_ENGINE_JOBS_MAX (UINT32_C(1) << 30)
/* An engine without jobs, on a copy of `topology`, and no policy in charge. */
int sw_engine_make(const struct sw_engine_config *config, const struct sw_topology *topology, struct sw_engine **ret_engine,
		   struct sw_err *err);
/* The first job that is known from this number on; SW_BITMAP_NONE: there is none. */
static inline uint32_t sw_engine_next(const struct sw_engine *engine, uint32_t from)
{
	return sw_bitmap_next(&engine->known, from);
}
static inline bool sw_engine_knows(const struct sw_engine *engine, uint32_t id)
{
	return sw_bitmap_has(&engine->known, id);
}

/* ---- memory (engine_memory.c) */
/* Memory for `count` more jobs, all of it, before anything happens. */
int sw_engine_reserve(struct sw_engine *engine, size_t count);
/* For one more node of this shape, `jobs` jobs being known then; for a node that becomes
 * another, whatever it gives up. */
int sw_engine_reserve_node(struct sw_engine *engine, const struct sw_topology_node *shape, size_t jobs);
int sw_engine_reserve_change(struct sw_engine *engine, const struct sw_topology_change *change, size_t jobs);
/* The policy's bytes for so many nodes; those of nodes that come are zero. */
int sw_engine_reserve_node_states(struct sw_engine *engine, size_t nodes);
/* For the holds that a decision may add. */
int sw_engine_reserve_holds(struct sw_engine *engine);
/* Accounts up to this tenant's; false when out of memory. */
bool sw_engine_grow_tenants(struct sw_engine *engine, uint32_t tenant);
/* One more job, zeroed; there is room for it. */
struct sw_core_job *sw_engine_add(struct sw_engine *engine);

/* ---- events (engine_events.c) */
int sw_engine_apply(struct sw_engine *engine, const struct sw_event *event);
/* Places are other than before: jobs that have none any more may go anywhere, or (`may_refuse`) are
 * refused where they have not run. */
int sw_engine_recheck(struct sw_engine *engine, bool may_refuse);

/* ---- jobs (engine_jobs.c) */
/* The core's own job behind a policy's pointer, or NULL if the policy made it up. */
static inline struct sw_core_job *sw_engine_own(struct sw_engine *engine, const struct sw_job *job)
{
	/* The pointer may be anything: nothing is read through it. One below the first job
	 * is far beyond the last. */
	uintptr_t offset = (uintptr_t)job - (uintptr_t)engine->jobs.items, id = offset / sizeof(struct sw_core_job);
	if (id >= engine->jobs.count || id * sizeof(struct sw_core_job) != offset)
		return NULL;
	return sw_engine_knows(engine, (uint32_t)id) ? &engine->jobs.items[id] : NULL;
}
struct sw_share sw_share_of(const struct sw_job *job);
bool sw_engine_quota_allows(const struct sw_engine *engine, const struct sw_job *job, uint32_t gpus);
/* One more living job with this rule, or one less. */
void sw_engine_count_rule(struct sw_engine *engine, const struct sw_job *job, bool more);
/* Brings the job's run time up to now and lets it wait or run from now on; keeps
 * lists and tenants true. */
void sw_engine_set_waiting(struct sw_engine *engine, struct sw_core_job *job, bool can_resume);
void sw_engine_set_running(struct sw_engine *engine, struct sw_core_job *job, uint32_t gpus, uint32_t parts);
/* Lets a running job stand still from now on, or go on. What it holds changes with it: the caller
 * gives that back before and takes it after. */
void sw_engine_set_paused(struct sw_engine *engine, struct sw_core_job *job, bool paused);
/* Its run is over and stands nowhere: all of its work lies ahead of it again, until its driver says
 * otherwise. In a world that keeps state the driver alone knows what a loss leaves. */
void sw_engine_forget_work(struct sw_engine *engine, struct sw_core_job *job);
/* One that waits competes no more until it is released. */
void sw_engine_set_held(struct sw_engine *engine, struct sw_core_job *job);
/* It waits, and it was wished that it be held then. */
void sw_engine_hold_if_due(struct sw_engine *engine, struct sw_core_job *job);
void sw_engine_command(struct sw_engine *engine, struct sw_command command);
/* The command that stops what runs, or stands at its home. */
void sw_engine_tell_stop(struct sw_engine *engine, const struct sw_core_job *job, enum sw_reason reason);
/* The job is gone: takes it out of every list. */
void sw_engine_end_job(struct sw_engine *engine, struct sw_core_job *job, enum sw_job_state state);
/* The run is over but the job is not: it waits to start anew. */
void sw_engine_interrupt(struct sw_engine *engine, struct sw_core_job *job);
/* The node under the job is gone, or a GPU is, or it was wished so. The driver is told, and the job
 * waits to start anew. One that may not has failed. */
void sw_engine_lose(struct sw_engine *engine, struct sw_core_job *job, enum sw_reason reason);

/* ---- homes (engine_home.c) */
/* Whether its owner lets it be suspended where it runs, and in no other way be stopped. */
static inline bool sw_rule_suspends(const struct sw_job *job)
{
	return job->stop_rule == SW_STOP_SUSPEND || job->stop_rule == SW_STOP_IF_FREE;
}
/* Whether its run, stopped now, would stand where it is. */
bool sw_engine_would_stand(const struct sw_engine *engine, const struct sw_core_job *job);
struct sw_share sw_engine_standing_share(const struct sw_core_job *job);
/* Its run stands on these parts from now on, which stay where they are meanwhile; or it does
 * not any more, if it did. */
void sw_engine_stand(struct sw_engine *engine, struct sw_core_job *job, uint32_t parts);
void sw_engine_rise(struct sw_engine *engine, struct sw_core_job *job);
/* Its run, which stood at its home, goes on there, under its epoch. */
void sw_engine_go_on(struct sw_engine *engine, struct sw_core_job *job);
/* Whether its GPU memory leaves the GPUs while it stands. */
void sw_engine_set_frees(struct sw_engine *engine, struct sw_core_job *job, bool frees);
/* The job, which holds nothing any more, was at `parts`: they become its home where it
 * prefers that, or are dropped. */
void sw_engine_leave(struct sw_engine *engine, struct sw_core_job *job, uint32_t parts);
void sw_engine_set_home(struct sw_engine *engine, struct sw_core_job *job, uint32_t parts);
void sw_engine_forget_home(struct sw_engine *engine, struct sw_core_job *job);
/* What stood still at the job's home is gone, and with it what the job had kept:
 * it waits to start anew. */
void sw_engine_empty_home(struct sw_engine *engine, struct sw_core_job *job);
/* The same, and the driver is told; a job that may not start anew has failed. */
void sw_engine_lose_home(struct sw_engine *engine, struct sw_core_job *job, enum sw_reason reason);
/* It has a home now, or none any more; it is in no set of the order. */
void sw_engine_relane(struct sw_engine *engine, struct sw_core_job *job);
/* Whether its run can be taken off GPUs to which it came lately: it has not begun, or its owner
 * allows that it is stopped. */
bool sw_engine_may_step_back(const struct sw_engine *engine, const struct sw_core_job *job);
/* The job cannot have the GPUs that it was given, and waits again. */
void sw_engine_step_back(struct sw_engine *engine, struct sw_core_job *job);
/* Its GPU memory did not leave: it goes on at home, or waits for that; where it is held, it stands
 * there with its memory. */
void sw_engine_stay(struct sw_engine *engine, struct sw_core_job *job, uint32_t node);
/* Whether its run, stopped, would keep its state, and its GPU memory leave the GPUs. */
void sw_engine_note_keeps(struct sw_engine *engine, struct sw_core_job *job, bool keeps, bool frees);

/* ---- what the policy hears (tell.c): its callbacks, and bits of enum sw_view_change for its
 * next decision */
void sw_tell_change(struct sw_engine *engine, uint32_t change);
/* Around a decision. */
void sw_tell_begin(struct sw_engine *engine);
void sw_tell_end(struct sw_engine *engine);
/* What it makes of a job that comes; NULL: it accepts it. The job is as it has it. */
const struct sw_admission *sw_tell_admit(struct sw_engine *engine, struct sw_core_job *job);
void sw_tell_submit(struct sw_engine *engine, const struct sw_core_job *job);
void sw_tell_started(struct sw_engine *engine, const struct sw_core_job *job);
void sw_tell_stopped(struct sw_engine *engine, const struct sw_core_job *job);
void sw_tell_ended(struct sw_engine *engine, const struct sw_core_job *job);
/* What its run holds while it stands, or would hold, is less from now on. */
void sw_tell_freed(struct sw_engine *engine, const struct sw_core_job *job);
void sw_tell_sampled(struct sw_engine *engine, const struct sw_core_job *job, const struct sw_sample *sample);
void sw_tell_alarm(struct sw_engine *engine, const struct sw_core_job *job);
void sw_tell_expired(struct sw_engine *engine, const struct sw_core_job *job);
void sw_tell_answered(struct sw_engine *engine, const struct sw_solution *solution);
/* It waits on, without what was held for it. */
void sw_tell_hold_over(struct sw_engine *engine, const struct sw_core_job *job);

/* ---- the policy in charge (charge.c) */
/* Gives `policy` its memory and starts it; it is told of no job. The engine keeps a pointer to
 * `params` (NULL: presets). */
int sw_charge_begin(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err);
/* The same, and puts it in charge of whatever is there. */
int sw_charge_install(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err);
/* The same in the place of another: the next step sees which jobs can still run. */
int sw_charge_take_over(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err);
/* Lets it decide at this instant, after `events` events; when to wake the engine again. */
sw_ns sw_charge_decide(struct sw_engine *engine, size_t events);

/* ---- order (order.c) */
/* Room for `jobs` jobs with numbers below `ids`, `touched` of which may take part in one
 * decision. */
int sw_order_reserve(struct sw_engine *engine, uint32_t touched, uint32_t jobs, uint32_t ids);
void sw_order_release(struct sw_order_book *book);
/* Finds or makes the job's lane; 0 or SW_ENOMEM. */
int sw_order_assign_lane(struct sw_engine *engine, struct sw_core_job *job);
/* Whether a job that finds no place by the rule may take any. */
bool sw_order_takes_any_place(const struct sw_engine *engine);
/* The job has ended. */
void sw_order_leave_lane(struct sw_engine *engine, const struct sw_core_job *job);
/* What tells lanes apart changed for this job: into the right one, at the place it had. */
int sw_order_change_lane(struct sw_engine *engine, struct sw_core_job *job);
/* What its lane should have as `lone`. */
uint32_t sw_order_lone(const struct sw_engine *engine, const struct sw_core_job *job);
/* Whether its lane is that of jobs like it, with its number of GPUs. */
bool sw_order_is_in_its_lane(const struct sw_engine *engine, const struct sw_core_job *job);
/* It has a home now, or none any more, and is in no set: into the right lane. */
int sw_order_relane(struct sw_engine *engine, struct sw_core_job *job);
/* The same for one that may be in a set: it keeps its place there. Room for the lane was made. */
void sw_order_move_lane(struct sw_engine *engine, struct sw_core_job *job);
/* The marks that the job should have in the set that it is in. */
uint32_t sw_order_marks(const struct sw_engine *engine, const struct sw_core_job *job);
/* What they say has changed. */
void sw_order_mark(struct sw_engine *engine, const struct sw_core_job *job);
/* The same for all that run. */
void sw_order_mark_running(struct sw_engine *engine);
/* Lists it in one of its lane's sets, at this place. */
void sw_order_list(struct sw_engine *engine, struct sw_core_job *job, enum sw_order_set set, int64_t key, int64_t stamp);
void sw_order_add(struct sw_engine *engine, struct sw_core_job *job);
void sw_order_remove(struct sw_engine *engine, struct sw_core_job *job);
/* The key changed by the job's own progress: its place among equals stays. */
void sw_order_refresh(struct sw_engine *engine, struct sw_core_job *job);
/* Into the set that its rank says, at the very place it had. */
void sw_order_restore(struct sw_engine *engine, struct sw_core_job *job);
struct sw_rank sw_order_rank(const struct sw_engine *engine, uint32_t job);
bool sw_rank_before(const struct sw_rank *a, const struct sw_rank *b);
/* After a decision: moves jobs that started or stopped to their new sets and gives them
 * their place among equals. */
void sw_order_settle(struct sw_engine *engine);
/* No job is new any more: another policy is in charge, which was told of all of them. */
void sw_order_forget_fresh(struct sw_engine *engine);
/* Lists every living job anew: after a change of policy or of what tells lanes apart. */
int sw_order_rebuild(struct sw_engine *engine);

/* ---- greedy decisions over the order (greedy.c) */
void sw_greedy_decide(struct sw_engine *engine);

/* ---- changes (change.c) */
int sw_change_job(struct sw_engine *engine, struct sw_core_job *job, uint64_t gpu_memory_bytes, uint32_t avoid);
/* Nodes are fewer: one that could only run where it keeps off may go there again. */
int sw_change_recheck(struct sw_engine *engine);

/* ---- moves within a node (move.c) */
/* SW_EV_MOVE: it goes to these GPUs of its node, if it can. */
void sw_move_on_wish(struct sw_engine *engine, struct sw_core_job *job, uint64_t mask);
/* Whether a job that the plan puts elsewhere comes there in the run that it is. */
bool sw_move_goes_on(const struct sw_plan *plan, const struct sw_plan_entry *entry);
/* The same of one that is to be put on these parts, whatever else this plan still does. */
bool sw_move_would_go_on(const struct sw_plan *plan, const struct sw_plan_entry *entry, uint32_t parts);
/* It holds its new GPUs: the run sets out. */
void sw_move_begin(struct sw_engine *engine, struct sw_core_job *job, uint64_t from, enum sw_reason reason);
void sw_move_arrive(struct sw_engine *engine, struct sw_core_job *job);
/* It could not leave; these of the GPUs that it has are dead. */
void sw_move_turn_back(struct sw_engine *engine, struct sw_core_job *job, uint64_t dead);
/* Its run is over; another begins on the GPUs that it holds. */
void sw_move_begin_anew(struct sw_engine *engine, struct sw_core_job *job);
/* The same since the GPUs that the run has on its way are lost to it; a job that may not start anew
 * has failed. */
void sw_move_lose(struct sw_engine *engine, struct sw_core_job *job);
/* The run is over. */
void sw_move_forget_run(struct sw_engine *engine, struct sw_core_job *job);
/* GPUs of the node that runs on their way to others still have. */
uint64_t sw_move_leaving(const struct sw_engine *engine, uint32_t node);

/* ---- wishes (plan_run.c) */
/* Where to look: on one node, or where the rule says, or (no rule) anywhere. */
struct sw_place {
	uint32_t node; /* UINT32_MAX: any */
	const struct sw_placement *rule;
	bool here; /* where it is; then the rest does not matter */
};
/* Where to look for a place. */
struct sw_place sw_plan_place_of(const struct sw_engine *engine, const struct sw_where *where);

/* ---- configurations of runs (config.c) */
bool sw_config_is_sensible(const struct sw_config *config);
bool sw_config_is_same(const struct sw_config *a, const struct sw_config *b);
static inline bool sw_config_is_zero(const struct sw_config *config)
{
	uint64_t first[2]; /* asked at each wish */
	_Static_assert(offsetof(struct sw_config, cpus) == sizeof first, "these are what comes before");
	memcpy(first, config, sizeof first);
	return (first[0] | first[1] | config->cpus | config->host_memory_bytes) == 0;
}
/* The first with what the second says. */
struct sw_config sw_config_with(struct sw_config config, const struct sw_config *wished);
/* From now on the job asks for what this says. */
void sw_config_put(struct sw_core_job *job, const struct sw_config *config);
/* It asks for its own again, unless its run stands. */
void sw_config_drop(struct sw_core_job *job);
/* Copies of the job's parts with what it asks for now beside them; SW_NO_PART: out of memory. */
uint32_t sw_config_parts(struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts);

/* Whether the place says by itself how many GPUs these are. */
static inline bool sw_where_is_exact(const struct sw_where *where)
{
	return where->kind == SW_WHERE_GPUS || where->kind == SW_WHERE_BESIDE || where->kind == SW_WHERE_PARTS;
}
/* Whether a wish may name this place; the second asks first of those that most wishes have. */
bool sw_plan_is_rare_where(const struct sw_engine *engine, const struct sw_where *where);
static inline bool sw_plan_is_where(const struct sw_engine *engine, const struct sw_where *where)
{
	return where->kind == SW_WHERE_CLUSTER || (where->kind == SW_WHERE_BESIDE && where->beside != NULL) ||
	       (where->kind == SW_WHERE_RULE && (where->rule == NULL || where->rule->place != NULL)) ||
	       sw_plan_is_rare_where(engine, where);
}
/* Whether the wish makes sense for any state of the job; `sets_up`: it has a configuration. */
static inline bool sw_plan_is_wish(const struct sw_engine *engine, const struct sw_core_job *job, const struct sw_wish *wish, bool sets_up)
{
	bool counts = wish->gpus == 0 ||
		      (wish->gpus >= job->seen.min_gpus && wish->gpus <= job->seen.max_gpus && !sw_where_is_exact(&wish->where));
	bool leases = wish->until == 0 || wish->until > engine->now;
	return counts && leases && wish->as <= SW_AS_OPPORTUNISTIC && wish->promise <= SW_REST && wish->evict <= SW_EVICT_SPARING &&
	       sw_plan_is_where(engine, &wish->where) && (!sets_up || sw_config_is_sensible(&wish->config));
}

/* ---- holds (hold.c) */
/* Of a job that has one; NULL: it has none. */
const struct sw_hold_row *sw_hold_of(const struct sw_engine *engine, uint32_t job);
/* In the place of the job's last one; its parts are the hold's from now on. NULL: out of memory. */
struct sw_hold_row *sw_hold_put(struct sw_engine *engine, struct sw_hold_row row);
/* While a place is looked for this job, in a run until then: its own hold is open to it. Those of
 * others that begin earlier are closed. NULL: for any job without a lease. False, and nothing is to
 * be lifted: there are no holds, or a shade is there. */
bool sw_shade_cast(struct sw_engine *engine, const struct sw_core_job *job, sw_ns until);
void sw_shade_lift(struct sw_engine *engine);
/* Whether some of these GPUs are held for another job before `until`. */
bool sw_hold_closes(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t node, uint64_t mask, sw_ns until);
bool sw_hold_closes_parts(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts, sw_ns until);
/* Between decisions: the job's hold is over; or those on these GPUs are, but for those that begin
 * after this run's lease (NULL: all). */
void sw_hold_lose(struct sw_engine *engine, const struct sw_core_job *job);
void sw_holds_lose_at(struct sw_engine *engine, uint32_t node, uint64_t mask, const struct sw_core_job *but);
/* All are gone, and the order is made anew. */
void sw_holds_drop(struct sw_engine *engine);
/* Those that begin or end by now do so. */
void sw_holds_pass(struct sw_engine *engine);
/* In a decision: holds of jobs that it started are over. Whether they leave GPUs to others. */
bool sw_holds_end_of_starters(struct sw_engine *engine);
/* Jobs whose holds have changed go into the right lanes. */
void sw_holds_settle(struct sw_engine *engine);
enum sw_answer sw_hold_release(struct sw_plan *plan, const struct sw_core_job *job);
/* The verb, and the start on what is held (plan_hold.c). Whether that is in force, and so many
 * GPUs; then the job runs there. */
bool sw_hold_suffices(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus);
enum sw_answer sw_plan_put_held(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus);

bool sw_holds_touch(const struct sw_engine *engine, uint32_t node);

/* ---- power of nodes (power.c) */
void sw_power_is_up(struct sw_engine *engine, uint32_t node);
void sw_power_is_down(struct sw_engine *engine, uint32_t node);
void sw_power_load(struct sw_engine *engine, uint32_t node, uint8_t power);
/* Switches all nodes on. */
void sw_power_restore(struct sw_engine *engine);

/* ---- what a plan has touched (plan.c) */
void sw_plan_reset(struct sw_plan *plan);
/* What the job was before this decision; kept from its first wish on. */
struct sw_plan_entry *sw_plan_touch(struct sw_plan *plan, struct sw_core_job *job);
enum sw_answer sw_plan_misuse(struct sw_plan *plan);
/* Without the checks that policies get: */
void sw_plan_lift(struct sw_plan *plan, struct sw_core_job *job);
/* The job's run stands nowhere while a place is looked for: where it did; and back there unless it
 * got one. Returns the answer. */
uint32_t sw_plan_rise(struct sw_plan *plan, struct sw_core_job *job);
enum sw_answer sw_plan_stand_unless(struct sw_plan *plan, struct sw_core_job *job, uint32_t stood, enum sw_answer answer);
/* Back to exactly where it was before this decision, if that is still free. */
bool sw_plan_put_back(struct sw_plan *plan, struct sw_core_job *job);
/* Whether a job that did not run before this decision is where the lifted job was. */
bool sw_plan_has_newcomer(const struct sw_engine *engine, const struct sw_core_job *job);
/* Whether the job, as a newcomer, has the host memory that it asks for beside runs that stand. */
bool sw_plan_has_asked(const struct sw_ledger *ledger, uint32_t parts, const struct sw_core_job *job);

/* ---- places (plan_place.c) */
enum sw_answer sw_plan_put_at(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where);
/* Where the rule says; NULL: anywhere. */
enum sw_answer sw_plan_put(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, const struct sw_placement *rule);
/* A place that is not taken yet: for sw_plan_settle() or sw_plan_let_go(). The caller owns the
 * parts, unless they are the job's home. */
bool sw_plan_find(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where, uint32_t *ret_parts);
void sw_plan_let_go(struct sw_plan *plan, const struct sw_core_job *job, uint32_t parts);
/* Takes the parts, which are free, for the job, and lets it run there. */
enum sw_answer sw_plan_settle(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, uint32_t parts);
/* A run that goes on at home has its host memory there, also where it comes back beside others,
 * without CPUs. */
void sw_plan_keep_host_memory(struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts);
/* Limits hold for one run: suspended there, the job comes back with all that it asked for. */
bool sw_plan_could_come_back(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts);
/* Whether the job can go on where it was; its run stands nowhere for the moment. */
bool sw_plan_home_is_free(const struct sw_engine *engine, const struct sw_core_job *job);
/* Whether its state is at its home, and it may start nowhere else. */
static inline bool sw_plan_is_homebound(const struct sw_engine *engine, const struct sw_core_job *job)
{
	return job->home != SW_NO_PART && sw_rule_suspends(&job->seen) && !engine->config.terms.keeps_state;
}
/* Whether a job that waits may run on these GPUs, by its owner's wish and by where it
 * was before this decision. */
bool sw_plan_may_be_at(struct sw_plan *plan, struct sw_core_job *job, uint32_t parts);

/* ---- beside others (plan_beside.c), in parts (split.c), over others (plan_over.c, greedy.c),
 * from place to place (plan_move.c) */
/* Whether these are GPUs that there are. */
bool sw_plan_is_mask(const struct sw_topology *topology, const struct sw_gpus *gpus);
/* Whether the node, and these GPUs of it, take this job. */
bool sw_plan_is_open(const struct sw_ledger *ledger, uint32_t node, uint64_t mask, const struct sw_core_job *job);
enum sw_answer sw_plan_join(struct sw_plan *plan, struct sw_core_job *job, const struct sw_job *with);
enum sw_answer sw_plan_settle_at(struct sw_plan *plan, struct sw_core_job *job, const struct sw_gpus *where, size_t count);
/* The parts of a split in `spot`, which the caller discards; false where they make no sense. */
bool sw_split_gather(const struct sw_engine *engine, const struct sw_split *split, struct sw_spot *spot);
/* Likewise exactly these GPUs; `ret_open`: each takes the job. */
bool sw_plan_gather_at(struct sw_engine *engine, const struct sw_core_job *job, const struct sw_gpus *where, size_t count,
		       struct sw_spot *spot, bool *ret_open);
enum sw_answer sw_plan_put_parts(struct sw_plan *plan, struct sw_core_job *job, const struct sw_split *split);
enum sw_answer sw_plan_put_over(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where);
/* Those that were preempted for a job that does not start after all. */
void sw_plan_put_lifted_back(struct sw_plan *plan);
/* A running opportunistic job becomes a guaranteed one; if it has to move, over opportunistic
 * ones (`evicts`) or not. */
enum sw_answer sw_plan_upgrade(struct sw_plan *plan, struct sw_core_job *job, bool evicts);
/* Over those behind it in a preemptive order; `sparing` those that are guaranteed and would lose
 * their run. NULL: the cluster's rule. */
enum sw_answer sw_greedy_put_ahead(struct sw_plan *plan, struct sw_core_job *job, const struct sw_placement *rule, bool sparing);
/* `config`: it is set up so from then on; NULL: as it is. */
enum sw_answer sw_plan_move(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where,
			    const struct sw_config *config);

/* ---- stops (plan_stop.c) */
/* Whether its owner does not allow this running job to be stopped, or it is not known yet whether
 * that is as the owner wishes. */
bool sw_plan_stays(const struct sw_engine *engine, const struct sw_core_job *job);
/* Whether the job may not be preempted yet; then the engine wakes when it may. */
bool sw_plan_is_protected(struct sw_engine *engine, const struct sw_core_job *job);
/* SW_YES; SW_KEPT: it stays; SW_TOO_SOON: it is protected, or it is not known yet what a stop
 * would leave of it. Asked of many jobs at each decision. */
static inline enum sw_answer sw_plan_may_stop(struct sw_engine *engine, const struct sw_core_job *job)
{
	/* One of which that is not known may be stopped a little later. */
	if ((job->seen.stop_rule != SW_STOP_AS_WORLD || job->seen.no_restart) && sw_plan_stays(engine, job))
		return sw_rule_suspends(&job->seen) && job->keeps == SW_KEEPS_UNKNOWN && job->split_milli == 0 ? SW_TOO_SOON : SW_KEPT;
	return sw_plan_is_protected(engine, job) ? SW_TOO_SOON : SW_YES;
}
/* The same for another place or size, by a stop and a start where the world moves runs so. There,
 * only a job that may start anew goes. */
enum sw_answer sw_plan_may_go(struct sw_engine *engine, const struct sw_core_job *job);
/* Whether a policy may have running jobs elsewhere. */
static inline bool sw_plan_may_move(const struct sw_engine *engine)
{
	return engine->config.terms.moves != SW_MOVES_NEVER;
}
/* Lets a paused job go on with what it had. SW_NO_ROOM: others have taken it. */
enum sw_answer sw_plan_go(struct sw_plan *plan, struct sw_core_job *job);
/* Lets all paused jobs go on; those that have no room for it are preempted,
 * unless they are protected. */
void sw_plan_rouse(struct sw_plan *plan);

/* ---- the end of a plan (plan_commit.c) */
/* Turns the plan into commands and tells the policy. */
void sw_plan_commit(struct sw_plan *plan);

/* ---- splitting (split.c) */
bool sw_split_is_sensible(uint32_t alone_milli, uint32_t parts);

/* ---- types of GPUs (gpu_types.c) */
/* A bit for each that is among these parts. */
static inline uint64_t sw_types_of(const struct sw_engine *engine, uint32_t parts)
{
	uint64_t types = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		types |= UINT64_C(1) << engine->topology->nodes[engine->ledger.parts[p].node].gpu_type;
	return types;
}
uint32_t sw_types_sum_power(const struct sw_engine *engine, uint32_t parts);
/* What these GPUs draw when busy; 0: it is not known of all. */
static inline uint32_t sw_types_power(const struct sw_engine *engine, uint32_t parts)
{
	const struct sw_gpu_types *types = engine->config.gpu_types;
	return types != NULL && types->has_power ? sw_types_sum_power(engine, parts) : 0;
}

/* ---- lists of policies (list.c) */
/* What the policy, each job and each node have of bytes: the policy's own, and those of lists. */
size_t sw_list_state_size(const struct sw_policy *policy);
size_t sw_list_job_state_size(const struct sw_policy *policy);
size_t sw_list_node_state_size(const struct sw_policy *policy);
/* Whether every list leads from its first job to its last and back. */
bool sw_lists_are_sound(const struct sw_engine *engine);
/* Takes the job off all lists. */
void sw_lists_drop(struct sw_engine *engine, const struct sw_core_job *job);

/* ---- leases (lease.c) */
/* After the job's state or its lease has changed. */
void sw_lease_settle(struct sw_engine *engine, const struct sw_core_job *job);
void sw_leases_expire(struct sw_engine *engine);
sw_ns sw_leases_next(const struct sw_engine *engine);

/* ---- questions (ask.c) */
/* For the policy in charge, which has none open. SW_EINPUT, SW_ENOMEM */
int sw_ask_begin(struct sw_engine *engine, struct sw_err *err);
void sw_ask_hear(struct sw_engine *engine, const struct sw_reply *reply);
/* What is open, written or read and checked. */
void sw_ask_pack(struct sw_pack *pack, struct sw_engine *engine);
/* The first that is not as it should be; NULL: all are. */
const struct sw_core_question *sw_ask_find_unsound(const struct sw_engine *engine);

/* ---- alarms (alarm.c) */
/* The job's alarm, in the place of the one it had. */
void sw_alarm_put(struct sw_engine *engine, struct sw_core_job *job, sw_ns due, sw_ns slack);
void sw_alarm_drop(struct sw_engine *engine, uint32_t job);
/* When an alarm with this slack must have rung; SW_TIME_NEVER: it wakes none. */
sw_ns sw_alarm_latest(sw_ns due, sw_ns slack);
void sw_alarms_ring(struct sw_engine *engine);
sw_ns sw_alarms_next(const struct sw_engine *engine);

#endif
