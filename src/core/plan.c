/* The plan: wishes of one decision, checked and applied one by one, turned into commands at the end.
 *
 * A wish takes effect in the ledger at once, so that the next wish sees what is left. What a job was before its first wish is kept; at commit only the
 * difference counts: a job that was lifted and put back exactly where it was has not been touched at all.
 */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

void sw_plan_reset(struct sw_plan *plan)
{
	plan->entries.count = 0;
	plan->walks = false;
	plan->wake_at = SW_TIME_NEVER;
	plan->protected_until = SW_TIME_NEVER;
}

struct sw_view *sw_plan_view(struct sw_plan *plan)
{
	return &plan->engine->view;
}

void sw_plan_by_order(struct sw_plan *plan)
{
	sw_greedy_decide(plan->engine);
}

static struct sw_plan_entry *touch(struct sw_plan *plan, struct sw_core_job *job)
{
	if (job->plan_slot == SW_NO_SLOT) {
		struct sw_plan_entry *entry = sw_vec_push(&plan->entries);
		assert(entry != NULL); /* reserved at submit */
		entry->before = job->seen;
		entry->parts_before = job->parts;
		entry->split_before = job->split_milli;
		entry->was_alone = sw_ledger_is_alone(&plan->engine->ledger, job->parts);
		job->plan_slot = (uint32_t)(plan->entries.count - 1);
	}
	return &plan->entries.items[job->plan_slot];
}

/* Gives back what it holds; the list of parts survives if it is the one from before. */
static void give(struct sw_plan *plan, struct sw_core_job *job)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	sw_ledger_give(ledger, job->parts, sw_share_of(&job->seen));
	if (job->parts != plan->entries.items[job->plan_slot].parts_before && job->parts != job->home)
		sw_ledger_drop_parts(ledger, job->parts);
}

void sw_plan_lift(struct sw_plan *plan, struct sw_core_job *job)
{
	const struct sw_plan_entry *entry = touch(plan, job);
	give(plan, job);
	sw_engine_set_waiting(plan->engine, job, plan->engine->config.terms.keeps_state);
	/* Whoever comes there must fit beside its run, if that stands there. */
	if (sw_plan_is_homebound(plan->engine, job))
		sw_engine_stand(plan->engine, job, job->home);
	else if (entry->before.state == SW_JOB_RUNNING && entry->split_before == 0 && sw_engine_would_stand(plan->engine, job))
		sw_engine_stand(plan->engine, job, entry->parts_before);
}

uint32_t sw_plan_rise(struct sw_plan *plan, struct sw_core_job *job)
{
	uint32_t stood = job->stands;
	sw_engine_rise(plan->engine, job);
	return stood;
}

enum sw_answer sw_plan_stand_unless(struct sw_plan *plan, struct sw_core_job *job, uint32_t stood, enum sw_answer answer)
{
	if (answer != SW_YES && stood != SW_NO_PART)
		sw_engine_stand(plan->engine, job, stood);
	return answer;
}

bool sw_plan_has_newcomer(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_ledger *ledger = &engine->ledger;
	if (job->plan_slot == SW_NO_SLOT)
		return false; /* it was not lifted: it stopped by itself */
	const struct sw_plan_entry *entry = &engine->plan.entries.items[job->plan_slot];
	if (entry->was_alone)
		return false; /* it goes back only where nobody is */
	for (uint32_t p = entry->parts_before; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu =
				&ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			for (uint32_t r = 0; r < gpu->residents; r++)
				if (!engine->jobs.items[gpu->who[r]].ranks_as_running)
					return true;
		}
	}
	return false;
}

/* Whether the job, as a newcomer, has the host memory that it asks for beside runs that stand. */
static bool has_asked(const struct sw_ledger *ledger, uint32_t parts, const struct sw_core_job *job)
{
	for (uint32_t p = ledger->standing.count > 0 ? parts : SW_NO_PART; p != SW_NO_PART; p = ledger->parts[p].next)
		if (!sw_ledger_has_asked(ledger, &ledger->parts[p], sw_share_of(&job->seen)))
			return false;
	return true;
}

/* Whether this decision has put a job on a node of these parts that takes host memory there. */
static bool has_put_beside(const struct sw_plan *plan, uint32_t parts)
{
	const struct sw_engine *engine = plan->engine;
	for (size_t e = 0; e < plan->entries.count; e++) {
		const struct sw_plan_entry *entry = &plan->entries.items[e];
		const struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
		const struct sw_part *all = engine->ledger.parts;
		for (uint32_t p = job->parts != entry->parts_before ? job->parts : SW_NO_PART; p != SW_NO_PART; p = all[p].next) {
			bool takes = job->seen.host_memory_bytes > 0 || all[p].memory_bytes > 0;
			if (takes && sw_ledger_touches(&engine->ledger, parts, all[p].node))
				return true;
		}
	}
	return false;
}

bool sw_plan_put_back(struct sw_plan *plan, struct sw_core_job *job)
{
	struct sw_plan_entry *entry = touch(plan, job);
	struct sw_ledger *ledger = &plan->engine->ledger;
	if (entry->before.state != SW_JOB_RUNNING)
		return false;
	uint32_t stood = sw_plan_rise(plan, job);
	/* It is the same run, with the limits it has. */
	job->seen.job_class = entry->before.job_class;
	job->seen.gpu_memory_bytes = entry->before.gpu_memory_bytes;
	job->seen.compute_milli = entry->before.compute_milli;
	/* Another job may have taken its place in the quota, or its host memory; and no wish asked it to share. */
	if (!sw_ledger_fits(ledger, entry->parts_before, sw_share_of(&job->seen)) ||
	    !sw_engine_quota_allows(plan->engine, &job->seen, entry->before.gpus_held) ||
	    (entry->was_alone && !sw_ledger_is_free(ledger, entry->parts_before)) ||
	    (!has_asked(ledger, entry->parts_before, job) && has_put_beside(plan, entry->parts_before))) {
		job->seen.job_class = job->seen.asked_class;
		job->seen.gpu_memory_bytes = job->asked_memory_bytes;
		job->seen.compute_milli = job->asked_compute_milli;
		(void)sw_plan_stand_unless(plan, job, stood, SW_NO_ROOM);
		return false;
	}
	sw_ledger_take(ledger, entry->parts_before, sw_share_of(&job->seen));
	job->split_milli = entry->split_before;
	sw_engine_set_running(plan->engine, job, entry->before.gpus_held, entry->parts_before);
	/* It has run all the time, at the speed that it had: so it looks to whoever comes next in this plan. */
	job->seen.since = entry->before.since;
	job->seen.ran_ns = entry->before.ran_ns;
	job->seen.gpu_time_ns = entry->before.gpu_time_ns;
	job->seen.work_left_ns = entry->before.work_left_ns;
	job->seen.work_left_as_of = entry->before.work_left_as_of;
	job->seen.ends_at = entry->before.ends_at;
	return true;
}

bool sw_plan_home_is_free(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_ledger *ledger = &engine->ledger;
	bool homebound = sw_plan_is_homebound(engine, job);
	if (job->home == SW_NO_PART || !sw_ledger_is_free(ledger, job->home) || sw_ledger_touches_closed(ledger, job->home) ||
	    (!homebound && sw_ledger_touches(ledger, job->home, job->avoid)))
		return false;
	/* Memory that never left is there, whatever others that stand there hold. */
	bool has_memory = homebound && !job->seen.frees_gpus;
	return has_memory ? sw_ledger_host_fits(ledger, job->home) : sw_ledger_fits(ledger, job->home, sw_share_of(&job->seen));
}

/* The same, and it has as many GPUs there. */
static bool home_is_free(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus)
{
	return sw_plan_home_is_free(engine, job) && sw_ledger_count_gpus(&engine->ledger, job->home) == gpus;
}

/* Where to look: on one node, or where the rule says, or (no rule) anywhere. */
struct place {
	uint32_t node; /* UINT32_MAX: any */
	const struct sw_placement *rule;
};

static bool fill_spot(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct place where,
		      struct sw_spot *spot)
{
	if (where.node != UINT32_MAX)
		return sw_spot_add(spot, (struct sw_node_id){where.node}, gpus, 0, 0);
	return where.rule == NULL ? sw_spot_fill(&engine->view, spot, gpus) : where.rule->place(&engine->view, &job->seen, gpus, spot);
}

static bool look(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct place where, struct sw_spot *ret_spot)
{
	sw_spot_begin(ret_spot, engine->view.ledger, sw_share_of(&job->seen));
	if (fill_spot(engine, job, gpus, where, ret_spot) && ret_spot->gpus == gpus)
		return true;
	sw_spot_discard(ret_spot);
	return false;
}

static bool is_as_near(const struct sw_ledger *ledger, uint32_t parts, uint32_t others)
{
	bool near = sw_ledger_distance(ledger, parts) <= sw_ledger_distance(ledger, others);
	while (parts != SW_NO_PART && others != SW_NO_PART) {
		parts = ledger->parts[parts].next;
		others = ledger->parts[others].next;
	}
	return near && parts == SW_NO_PART;
}

/* The same on GPUs that are nobody's home, if any; otherwise false. */
static bool look_beside_homes(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct place where,
			      struct sw_spot *ret_spot)
{
	sw_ledger_hide_homes(engine->view.ledger, true);
	bool found = look(engine, job, gpus, where, ret_spot);
	sw_ledger_hide_homes(engine->view.ledger, false);
	return found;
}

/* Who stands still there would have to start anew elsewhere: a place that is as good and no home of others comes first. */
static void spare_homes(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct place where,
			struct sw_spot *spot)
{
	struct sw_ledger *ledger = engine->view.ledger;
	struct sw_spot other;
	sw_ledger_mark_home(ledger, job->home, false); /* there is nobody to spare but itself */
	if (sw_ledger_has_homes(ledger, spot->head) && look_beside_homes(engine, job, gpus, where, &other)) {
		bool better = is_as_near(ledger, other.head, spot->head);
		sw_spot_discard(better ? spot : &other);
		*spot = better ? other : *spot;
	}
	sw_ledger_mark_home(ledger, job->home, true);
}

/* A spot for the job, or false. The caller owns the parts, unless they are its home. The place is looked for first: whether a job fits must
 * not depend on where it once was, or jobs of one lane would not be alike. */
static bool find_spot(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct place where, uint32_t *ret_parts)
{
	struct sw_engine *engine = plan->engine;
	if (engine->ledger.gpus_free < gpus)
		return false;
	struct sw_spot spot;
	/* The node it keeps off is closed for as long as we look. */
	bool homebound = sw_plan_is_homebound(engine, job);
	bool avoids = !homebound && job->avoid != UINT32_MAX && !engine->ledger.nodes[job->avoid].closed;
	if (avoids)
		sw_ledger_set_closed(&engine->ledger, job->avoid, true);
	bool crowded = engine->ledger.standing.count > 0;
	bool can_go_home =
		home_is_free(engine, job, gpus) && (where.node == UINT32_MAX || sw_ledger_touches(&engine->ledger, job->home, where.node));
	if (crowded)
		sw_ledger_hide_crowded(&engine->ledger, sw_share_of(&job->seen), true);
	/* One whose run stands at home goes nowhere else, whatever the rule says. */
	bool found = !homebound && look(engine, job, gpus, where, &spot);
	bool goes_home = (found || homebound) && can_go_home;
	if (found && goes_home)
		sw_spot_discard(&spot);
	else if (found)
		spare_homes(engine, job, gpus, where, &spot);
	found |= goes_home;
	if (crowded)
		sw_ledger_hide_crowded(&engine->ledger, sw_share_of(&job->seen), false);
	if (avoids)
		sw_ledger_set_closed(&engine->ledger, job->avoid, false);
	if (found)
		*ret_parts = goes_home ? job->home : spot.head;
	return found;
}

/* Parts that were found and are not taken. */
static void let_go(struct sw_plan *plan, const struct sw_core_job *job, uint32_t parts)
{
	if (parts != job->home)
		sw_ledger_drop_parts(&plan->engine->ledger, parts);
}

/* Whether a policy may have running jobs elsewhere. */
static bool may_move(const struct sw_engine *engine)
{
	return engine->config.terms.moves != SW_MOVES_NEVER;
}

static enum sw_answer put(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct place where)
{
	struct sw_engine *engine = plan->engine;
	uint32_t parts;
	/* It goes on with what it had. */
	if (sw_plan_is_homebound(engine, job))
		gpus = sw_ledger_count_gpus(&engine->ledger, job->home);
	if (!sw_engine_quota_allows(engine, &job->seen, gpus))
		return SW_OVER_QUOTA;
	uint32_t stood = sw_plan_rise(plan, job);
	bool found = find_spot(plan, job, gpus, where, &parts);
	return sw_plan_stand_unless(plan, job, stood, found ? sw_plan_settle(plan, job, gpus, parts) : SW_NO_ROOM);
}

/* A run that goes on at home has its host memory there, also where it comes back beside others, without CPUs. */
static void keep_host_memory(struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts)
{
	struct sw_part *all = engine->ledger.parts;
	if (!sw_plan_is_homebound(engine, job))
		return;
	for (uint32_t p = parts, q = job->home; p != SW_NO_PART; p = all[p].next, q = all[q].next)
		all[p].memory_bytes = all[q].memory_bytes;
}

enum sw_answer sw_plan_settle(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, uint32_t parts)
{
	struct sw_engine *engine = plan->engine;
	const struct sw_plan_entry *entry = touch(plan, job);
	if (!sw_plan_may_be_at(plan, job, parts)) {
		let_go(plan, job, parts);
		return SW_NO_ROOM;
	}
	sw_engine_rise(engine, job);
	keep_host_memory(engine, job, parts);
	sw_ledger_take(&engine->ledger, parts, sw_share_of(&job->seen));
	/* The very spot it had: then it has not moved. */
	if (entry->before.state == SW_JOB_RUNNING && sw_ledger_same_parts(&engine->ledger, parts, entry->parts_before)) {
		sw_ledger_drop_parts(&engine->ledger, parts);
		parts = entry->parts_before;
	}
	sw_engine_set_running(engine, job, gpus, parts);
	return SW_YES;
}

enum sw_answer sw_plan_put(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, const struct sw_placement *rule)
{
	return put(plan, job, gpus, (struct place){UINT32_MAX, rule});
}

/* The quantum; and for a job that was preempted often, so long that most of its time goes into its work. */
static sw_ns protected_for(const struct sw_engine *engine, const struct sw_job *job)
{
	sw_ns cost = engine->config.terms.preemption_cost_ns, quantum = engine->config.terms.quantum_ns;
	uint32_t times = job->preemptions / SW_PREEMPTIONS_PER_STEP;
	times = times < SW_PREEMPTION_STEPS_MAX ? times : SW_PREEMPTION_STEPS_MAX;
	return cost * times > quantum ? cost * times : quantum;
}

bool sw_plan_is_protected(struct sw_engine *engine, const struct sw_core_job *job)
{
	/* What it holds of a closed node would be no use to others. */
	if (job->seen.state == SW_JOB_RUNNING && sw_ledger_touches_closed(&engine->ledger, job->parts))
		return true;
	sw_ns needed = protected_for(engine, &job->seen);
	/* Its start may be of this very step: it names parts that a stop or a move could drop. */
	if (needed == 0 && engine->went_on && sw_rule_suspends(&job->seen))
		needed = 1;
	if (needed == 0 || job->seen.state != SW_JOB_RUNNING || engine->now - job->seen.since >= needed)
		return false;
	sw_ns until = needed > INT64_MAX - job->seen.since ? SW_TIME_NEVER : job->seen.since + needed;
	if (until < engine->plan.protected_until)
		engine->plan.protected_until = until;
	return true;
}

/* Ran before this decision, and was put elsewhere by it. Its run is still where it was, which others may have been given by now. */
static bool was_put_elsewhere(const struct sw_plan *plan, const struct sw_core_job *job)
{
	const struct sw_plan_entry *entry = job->plan_slot != SW_NO_SLOT ? &plan->entries.items[job->plan_slot] : NULL;
	return entry != NULL && entry->before.state == SW_JOB_RUNNING && job->parts != entry->parts_before;
}

bool sw_plan_stays(const struct sw_engine *engine, const struct sw_core_job *job)
{
	switch (job->seen.stop_rule) {
	case SW_STOP_NEVER:
		return true;
	case SW_STOP_SUSPEND:
	case SW_STOP_IF_FREE:
		/* Stopped, it would stand where it was before. */
		return !engine->config.terms.keeps_state && (job->keeps != SW_KEEPS_YES || was_put_elsewhere(&engine->plan, job));
	default:
		return false;
	}
}

/* The same for another place or size. Where that takes a stop and a start, only a job that may start anew is moved. */
enum sw_answer sw_plan_may_go(struct sw_engine *engine, const struct sw_core_job *job)
{
	bool restarts = engine->config.terms.moves != SW_MOVES_FREELY;
	if (restarts && (sw_rule_suspends(&job->seen) || job->seen.stop_rule == SW_STOP_NEVER))
		return SW_KEPT;
	return sw_plan_may_stop(engine, job);
}

/* Limits hold for one run: suspended there, the job comes back with all that it asked for. */
static bool could_come_back(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts)
{
	const struct sw_ledger *ledger = &engine->ledger;
	bool comes_back = sw_rule_suspends(&job->seen) && !engine->config.terms.keeps_state;
	for (uint32_t p = comes_back ? parts : SW_NO_PART; p != SW_NO_PART; p = ledger->parts[p].next)
		if (engine->topology->nodes[ledger->parts[p].node].gpu_memory_bytes < job->asked_memory_bytes)
			return false;
	return true;
}

bool sw_plan_may_be_at(struct sw_plan *plan, struct sw_core_job *job, uint32_t parts)
{
	const struct sw_engine *engine = plan->engine;
	const struct sw_plan_entry *entry = touch(plan, job);
	if (sw_plan_is_homebound(engine, job))
		return sw_ledger_same_gpus(&engine->ledger, parts, job->home);
	bool ran = entry->before.state == SW_JOB_RUNNING;
	if (ran && sw_ledger_same_parts(&engine->ledger, parts, entry->parts_before))
		return true;
	/* Lifted and put elsewhere in one decision would be a move. */
	bool stays =
		engine->config.terms.moves != SW_MOVES_FREELY && (sw_rule_suspends(&job->seen) || job->seen.stop_rule == SW_STOP_NEVER);
	return (!ran || (may_move(engine) && !stays && could_come_back(engine, job, parts))) && has_asked(&engine->ledger, parts, job);
}

/* ---- the verbs of policies */

static enum sw_answer misuse(struct sw_plan *plan)
{
	plan->misuses++;
	return SW_MISUSE;
}

enum sw_answer sw_plan_start(struct sw_plan *plan, const struct sw_job *seen)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	return job == NULL ? misuse(plan) : sw_plan_start_with(plan, seen, job->seen.gpus);
}

enum sw_answer sw_plan_start_with(struct sw_plan *plan, const struct sw_job *seen, uint32_t gpus)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || !sw_job_is_waiting(&job->seen) || gpus < job->seen.min_gpus || gpus > job->seen.max_gpus)
		return misuse(plan);
	enum sw_answer answer = sw_plan_put(plan, job, gpus, plan->engine->config.placement);
	if (answer == SW_NO_ROOM && sw_order_takes_any_place(plan->engine))
		answer = sw_plan_put(plan, job, gpus, NULL);
	return answer;
}

enum sw_answer sw_plan_start_on(struct sw_plan *plan, const struct sw_job *seen, uint32_t gpus, struct sw_node_id node)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || !sw_job_is_waiting(&job->seen) || gpus < job->seen.min_gpus || gpus > job->seen.max_gpus ||
	    node.v >= plan->engine->topology->node_count)
		return misuse(plan);
	return put(plan, job, gpus, (struct place){node.v, NULL});
}

/* Beside the other; with the compute that it asked for, or with none that is promised. */
static enum sw_answer join(struct sw_plan *plan, struct sw_core_job *job, struct sw_core_job *host, bool promised)
{
	struct sw_engine *engine = plan->engine;
	uint32_t gpus = host->seen.gpus_held;
	if (job->seen.gpu_memory_bytes == 0 || host->seen.gpu_memory_bytes == 0 || gpus < job->seen.min_gpus || gpus > job->seen.max_gpus)
		return misuse(plan);
	if (!sw_engine_quota_allows(engine, &job->seen, gpus))
		return SW_OVER_QUOTA;
	struct sw_job as = job->seen;
	as.compute_milli = promised ? as.compute_milli : 0;
	struct sw_share wanted = sw_share_of(&as);
	if (!sw_ledger_fits(&engine->ledger, host->parts, wanted) || sw_ledger_touches_closed(&engine->ledger, host->parts) ||
	    sw_ledger_touches(&engine->ledger, host->parts, job->avoid))
		return SW_NO_ROOM;
	/* Its parts are of no use to a neighbour. */
	if (host->split_milli != 0)
		return SW_NO_ROOM;
	/* Lifted and put beside another in one decision would be a move, even to where it was. */
	if (touch(plan, job)->before.state == SW_JOB_RUNNING && !may_move(engine))
		return SW_NO_ROOM;
	/* As a guest it takes what it asks for, not what the rule gave its host. */
	uint32_t parts = sw_ledger_copy_parts(&engine->ledger, host->parts);
	if (parts == SW_NO_PART)
		return SW_NO_ROOM;
	if (!sw_plan_may_be_at(plan, job, parts)) {
		sw_ledger_drop_parts(&engine->ledger, parts);
		return SW_NO_ROOM;
	}
	job->seen.compute_milli = as.compute_milli;
	keep_host_memory(engine, job, parts);
	sw_ledger_take(&engine->ledger, parts, wanted);
	sw_engine_set_running(engine, job, gpus, parts);
	/* Should it be lifted and put back, the guest is no reason to stay away. */
	if (host->plan_slot != SW_NO_SLOT)
		plan->entries.items[host->plan_slot].was_alone = false;
	return SW_YES;
}

static enum sw_answer share(struct sw_plan *plan, const struct sw_job *seen, const struct sw_job *with, bool promised)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen), *host = sw_engine_own(plan->engine, with);
	if (job == NULL || host == NULL || job == host || !sw_job_is_waiting(&job->seen) || host->seen.state != SW_JOB_RUNNING)
		return misuse(plan);
	uint32_t stood = sw_plan_rise(plan, job);
	return sw_plan_stand_unless(plan, job, stood, join(plan, job, host, promised));
}

enum sw_answer sw_plan_share(struct sw_plan *plan, const struct sw_job *job, const struct sw_job *with)
{
	return share(plan, job, with, true);
}

enum sw_answer sw_plan_pack(struct sw_plan *plan, const struct sw_job *job, const struct sw_job *with)
{
	return share(plan, job, with, false);
}

enum sw_answer sw_plan_preempt(struct sw_plan *plan, const struct sw_job *seen)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING)
		return misuse(plan);
	enum sw_answer answer = sw_plan_may_stop(plan->engine, job);
	if (answer == SW_YES)
		sw_plan_lift(plan, job);
	return answer;
}

/* Lifts the job and puts it elsewhere or with another size; back where it was if that fails. */
static enum sw_answer move(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct place where)
{
	struct sw_engine *engine = plan->engine;
	struct sw_core_job held = *job;
	uint32_t parts;
	if (job->split_milli != 0)
		return SW_NO_ROOM;
	const struct sw_plan_entry *entry = touch(plan, job);
	sw_ledger_give(&engine->ledger, job->parts, sw_share_of(&job->seen));
	sw_engine_set_waiting(engine, job, engine->config.terms.keeps_state);
	/* It is the same run, with the limits it has. */
	job->seen.gpu_memory_bytes = held.seen.gpu_memory_bytes;
	job->seen.compute_milli = held.seen.compute_milli;
	job->seen.job_class = held.seen.job_class;
	bool allowed = sw_engine_quota_allows(engine, &job->seen, gpus);
	bool found = allowed && find_spot(plan, job, gpus, where, &parts);
	if (found && (sw_ledger_same_parts(&engine->ledger, parts, held.parts) || !could_come_back(engine, job, parts))) {
		let_go(plan, job, parts);
		found = false;
	}
	uint32_t target = found ? parts : held.parts;
	sw_ledger_take(&engine->ledger, target, sw_share_of(&job->seen));
	if (!found) { /* it never left */
		sw_engine_set_running(engine, job, held.seen.gpus_held, target);
		job->seen = held.seen;
		return allowed ? SW_NO_ROOM : SW_OVER_QUOTA;
	}
	if (held.parts != entry->parts_before)
		let_go(plan, job, held.parts);
	/* Back where it was before this decision: then it has not moved. */
	if (entry->before.state == SW_JOB_RUNNING && sw_ledger_same_parts(&engine->ledger, parts, entry->parts_before)) {
		sw_ledger_drop_parts(&engine->ledger, parts);
		target = entry->parts_before;
	}
	sw_engine_set_running(engine, job, gpus, target);
	return SW_YES;
}

enum sw_answer sw_plan_migrate_by(struct sw_plan *plan, const struct sw_job *seen, const struct sw_placement *rule)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING || rule == NULL || rule->place == NULL)
		return misuse(plan);
	if (job->seen.paused)
		return SW_NO_ROOM;
	enum sw_answer answer = sw_plan_may_go(plan->engine, job);
	if (answer != SW_YES)
		return answer;
	return may_move(plan->engine) ? move(plan, job, job->seen.gpus_held, (struct place){UINT32_MAX, rule}) : SW_NO_ROOM;
}

enum sw_answer sw_plan_migrate(struct sw_plan *plan, const struct sw_job *seen)
{
	return sw_plan_migrate_by(plan, seen, plan->engine->config.placement);
}

enum sw_answer sw_plan_resize(struct sw_plan *plan, const struct sw_job *seen, uint32_t gpus)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING || gpus < job->seen.min_gpus || gpus > job->seen.max_gpus)
		return misuse(plan);
	if (gpus == job->seen.gpus_held)
		return SW_YES;
	if (job->seen.paused)
		return SW_NO_ROOM;
	enum sw_answer answer = sw_plan_may_go(plan->engine, job);
	if (answer != SW_YES)
		return answer;
	return may_move(plan->engine) ? move(plan, job, gpus, (struct place){UINT32_MAX, plan->engine->config.placement}) : SW_NO_ROOM;
}

enum sw_answer sw_plan_move_to(struct sw_plan *plan, const struct sw_job *seen, uint32_t gpus, struct sw_node_id node)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING || gpus < job->seen.min_gpus || gpus > job->seen.max_gpus ||
	    node.v >= plan->engine->topology->node_count)
		return misuse(plan);
	if (job->seen.paused)
		return SW_NO_ROOM;
	enum sw_answer answer = sw_plan_may_go(plan->engine, job);
	if (answer != SW_YES)
		return answer;
	return may_move(plan->engine) ? move(plan, job, gpus, (struct place){node.v, NULL}) : SW_NO_ROOM;
}

enum sw_answer sw_plan_limit(struct sw_plan *plan, const struct sw_job *seen, uint64_t gpu_memory_bytes, uint32_t compute_milli)
{
	struct sw_engine *engine = plan->engine;
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING || gpu_memory_bytes == 0 || compute_milli == 0 ||
	    compute_milli > SW_COMPUTE_WHOLE)
		return misuse(plan);
	if (job->split_milli != 0 || job->seen.paused)
		return SW_NO_ROOM;
	struct sw_share old = sw_share_of(&job->seen);
	struct sw_job limited = job->seen;
	limited.gpu_memory_bytes = gpu_memory_bytes;
	limited.compute_milli = compute_milli;
	struct sw_share wanted = sw_share_of(&limited);
	touch(plan, job);
	sw_ledger_give(&engine->ledger, job->parts, old);
	bool fits = sw_ledger_fits(&engine->ledger, job->parts, wanted);
	sw_ledger_take(&engine->ledger, job->parts, fits ? wanted : old);
	if (!fits)
		return SW_NO_ROOM;
	job->seen.gpu_memory_bytes = gpu_memory_bytes;
	job->seen.compute_milli = compute_milli;
	plan->entries.items[job->plan_slot].limits_changed = true;
	return SW_YES;
}

/* ---- commit */

/* The job is where it was: forget that it was lifted. */
static void undo(struct sw_engine *engine, struct sw_core_job *job, const struct sw_plan_entry *entry)
{
	struct sw_job now = job->seen;
	engine->paused += (uint32_t)entry->before.paused - (uint32_t)now.paused;
	job->seen = entry->before;
	job->seen.gpu_memory_bytes = now.gpu_memory_bytes;
	job->seen.compute_milli = now.compute_milli;
	job->seen.fresh = now.fresh;
	job->seen.promotions = now.promotions;
	if (now.state == SW_JOB_RUNNING) {
		job->seen.job_class = now.job_class;
		if (now.paused != entry->before.paused)
			sw_engine_set_paused(engine, job, now.paused);
	}
}

static void tell_stop(struct sw_engine *engine, const struct sw_core_job *job, const struct sw_plan_entry *entry, enum sw_reason reason)
{
	sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_STOP,
						      .reason = (uint8_t)reason,
						      .stands = job->stands != SW_NO_PART,
						      .job = job->seen.id.v,
						      .epoch = job->epoch,
						      .gpus = entry->before.gpus_held,
						      .parts = SW_NO_PART});
}

static void commit_stop(struct sw_engine *engine, struct sw_core_job *job, const struct sw_plan_entry *entry)
{
	sw_engine_leave(engine, job, entry->parts_before);
	job->seen.preemptions++;
	tell_stop(engine, job, entry, SW_REASON_PREEMPTED);
	sw_alarm_drop(engine, job->seen.id.v);
	if (engine->policy->stopped != NULL)
		engine->policy->stopped(&engine->view, &job->seen);
}

static void commit_run(struct sw_engine *engine, struct sw_core_job *job, const struct sw_plan_entry *entry)
{
	bool ran = entry->before.state == SW_JOB_RUNNING;
	struct sw_command command = {.kind = SW_CMD_MOVE, .job = job->seen.id.v, .gpus = job->seen.gpus_held, .parts = job->parts};
	if (ran) {
		sw_ledger_drop_parts(&engine->ledger, entry->parts_before);
		job->seen.migrations++;
	}
	if (!ran || engine->config.terms.moves != SW_MOVES_FREELY) {
		command.kind = SW_CMD_START;
		command.resume = entry->before.state == SW_JOB_SUSPENDED;
		job->epoch++;
		/* At home it is the run that it was. */
		if (job->home == SW_NO_PART || !sw_ledger_same_gpus(&engine->ledger, job->parts, job->home)) {
			job->keeps = SW_KEEPS_UNKNOWN;
			sw_engine_set_frees(engine, job, engine->config.terms.keeps_state);
		}
		sw_engine_forget_home(engine, job);
		if (job->seen.first_start_at == SW_TIME_NEVER)
			job->seen.first_start_at = engine->now;
	}
	command.epoch = job->epoch;
	sw_engine_command(engine, command);
	sw_alarm_drop(engine, job->seen.id.v);
	if (engine->policy->started != NULL)
		engine->policy->started(&engine->view, &job->seen);
}

void sw_plan_commit(struct sw_plan *plan)
{
	struct sw_engine *engine = plan->engine;
	for (size_t e = 0; e < plan->entries.count; e++) {
		struct sw_plan_entry *entry = &plan->entries.items[e];
		struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
		if (entry->before.state != SW_JOB_RUNNING)
			continue;
		if (job->seen.state != SW_JOB_RUNNING)
			commit_stop(engine, job, entry);
		else if (job->parts != entry->parts_before && engine->config.terms.moves != SW_MOVES_FREELY)
			tell_stop(engine, job, entry, SW_REASON_MOVED);
	}
	for (size_t e = 0; e < plan->entries.count; e++) {
		struct sw_plan_entry *entry = &plan->entries.items[e];
		struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
		bool ran = entry->before.state == SW_JOB_RUNNING, runs = job->seen.state == SW_JOB_RUNNING;
		if (runs && !(ran && job->parts == entry->parts_before))
			commit_run(engine, job, entry);
		else if (ran == runs)
			undo(engine, job, entry);
		/* One that was lifted and put back where it was may be of another class now. */
		bool reclassed = job->parts == entry->parts_before && job->seen.job_class != entry->before.job_class;
		bool limited = entry->limits_changed || (ran && (reclassed || job->seen.paused != entry->before.paused ||
								 job->seen.gpu_memory_bytes != entry->before.gpu_memory_bytes ||
								 job->seen.compute_milli != entry->before.compute_milli));
		if (runs && limited)
			sw_engine_command(
				engine,
				(struct sw_command){.kind = SW_CMD_LIMIT, .job = job->seen.id.v, .epoch = job->epoch, .parts = job->parts});
	}
	sw_order_settle(engine);
	for (size_t e = 0; e < plan->entries.count; e++) {
		struct sw_core_job *job = &engine->jobs.items[plan->entries.items[e].before.id.v];
		job->plan_slot = SW_NO_SLOT;
		sw_engine_hold_if_due(engine, job);
	}
}

/* ---- for the verbs of sharing.c */

struct sw_plan_entry *sw_plan_touch(struct sw_plan *plan, struct sw_core_job *job)
{
	return touch(plan, job);
}

enum sw_answer sw_plan_misuse(struct sw_plan *plan)
{
	return misuse(plan);
}

bool sw_plan_may_move(const struct sw_engine *engine)
{
	return may_move(engine);
}

bool sw_plan_find(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, uint32_t *ret_parts)
{
	return find_spot(plan, job, gpus, (struct place){UINT32_MAX, plan->engine->config.placement}, ret_parts);
}

void sw_plan_let_go(struct sw_plan *plan, const struct sw_core_job *job, uint32_t parts)
{
	let_go(plan, job, parts);
}
