/* Guaranteed jobs over opportunistic ones: a place as if those held nothing, cleared of those that
 * cannot stay. Also the way of a running job from one class to the other.
 *
 * The class that a job has for one run is in `seen.job_class` while it runs. A job that waits has
 * the one that it asked for.
 */
#include <assert.h>

#include "core/state.h"

/* Whether the job holds some of the node's CPUs or host memory. */
static bool holds_of_host(const struct sw_ledger *ledger, const struct sw_core_job *job, uint32_t node)
{
	for (uint32_t p = job->parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if (ledger->parts[p].node == node)
			return ledger->parts[p].cpus > 0 || ledger->parts[p].memory_bytes > 0 || job->seen.host_memory_bytes > 0;
	return false;
}

/* The youngest opportunistic job on these GPUs of a node (of the host: that holds CPUs or memory
 * there), or NULL. */
static struct sw_core_job *youngest_on(struct sw_engine *engine, uint32_t node, uint64_t mask, bool of_host)
{
	const struct sw_ledger *ledger = &engine->ledger;
	struct sw_core_job *youngest = NULL;
	for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
		const struct sw_gpu *gpu = &ledger->gpus[ledger->nodes[node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
		for (uint32_t r = 0; r < gpu->residents; r++) {
			struct sw_core_job *job = &engine->jobs.items[gpu->who[r]];
			if (job->seen.job_class == SW_CLASS_OPPORTUNISTIC && (!of_host || holds_of_host(ledger, job, node)) &&
			    (youngest == NULL || job->seen.id.v > youngest->seen.id.v))
				youngest = job;
		}
	}
	return youngest;
}

/* A job that is in the way of this part, NULL where none is; *ret_fits: it is free. */
static struct sw_core_job *in_the_way(struct sw_engine *engine, const struct sw_part *part, struct sw_share share, bool *ret_fits)
{
	const struct sw_ledger *ledger = &engine->ledger;
	const struct sw_ledger_node *n = &ledger->nodes[part->node];
	*ret_fits = false;
	for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
		uint64_t bit = rest & (~rest + 1);
		if (!sw_ledger_gpu_fits(ledger, n->first_gpu + (uint32_t)__builtin_ctzll(rest), share))
			return youngest_on(engine, part->node, bit, false);
	}
	if (n->cpus_free < part->cpus || n->memory_free_bytes < part->memory_bytes || !sw_ledger_has_asked(ledger, part, share))
		return youngest_on(engine, part->node, n->yielding | part->mask, true);
	*ret_fits = true;
	return NULL;
}

/* Puts back the jobs that were preempted for a job that does not start after all. */
void sw_plan_put_lifted_back(struct sw_plan *plan)
{
	for (size_t i = plan->lifted.count; i-- > 0;)
		(void)sw_plan_put_back(plan, &plan->engine->jobs.items[plan->lifted.items[i]]);
	plan->lifted.count = 0;
}

/* Preempts the jobs in the way of these parts; if one of them cannot go, all are put back. */
static enum sw_answer clear_the_way(struct sw_plan *plan, uint32_t parts, struct sw_share share)
{
	struct sw_engine *engine = plan->engine;
	enum sw_answer answer = SW_YES;
	for (uint32_t p = parts; p != SW_NO_PART && answer == SW_YES;) {
		bool fits;
		struct sw_core_job *other = in_the_way(engine, &engine->ledger.parts[p], share, &fits);
		uint32_t *slot = other != NULL ? sw_vec_push(&plan->lifted) : NULL;
		if (fits) {
			p = engine->ledger.parts[p].next;
		} else if (slot == NULL) {
			answer = SW_NO_ROOM;
		} else if (sw_plan_may_stop(engine, other) != SW_YES) {
			plan->lifted.count--;
			answer = sw_plan_may_stop(engine, other);
		} else {
			*slot = other->seen.id.v;
			assert(other->seen.job_class == SW_CLASS_OPPORTUNISTIC);
			sw_plan_lift(plan, other);
			/* Its run may hold memory of an earlier part now. */
			p = other->stands != SW_NO_PART ? parts : p;
		}
	}
	if (answer != SW_YES)
		sw_plan_put_lifted_back(plan);
	return answer;
}

/* Whether there is a place at all, cleared or not. The job runs and keeps what it has. */
static bool is_place(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	struct sw_share share = sw_share_of(&job->seen);
	uint32_t parts;
	if (ledger->gpus_free + ledger->gpus_yielding < gpus)
		return false;
	sw_ledger_see_through(ledger, share, true);
	bool found = sw_plan_find(plan, job, gpus, where, &parts);
	sw_ledger_see_through(ledger, share, false);
	if (found)
		sw_plan_let_go(plan, job, parts);
	return found;
}

/* A place for the guaranteed job, found as if opportunistic jobs held nothing, and cleared. A
 * caller that does not take it puts the lifted jobs back. */
static enum sw_answer find_over(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where, uint32_t *ret_parts)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	uint32_t parts;
	plan->lifted.count = 0;
	if (sw_plan_find(plan, job, gpus, where, ret_parts))
		return SW_YES;
	if (ledger->gpus_yielding == 0 || ledger->gpus_free + ledger->gpus_yielding < gpus)
		return SW_NO_ROOM;
	struct sw_share share = sw_share_of(&job->seen);
	sw_ledger_see_through(ledger, share, true);
	bool found = sw_plan_find(plan, job, gpus, where, &parts);
	sw_ledger_see_through(ledger, share, false);
	if (!found)
		return SW_NO_ROOM;
	enum sw_answer answer = clear_the_way(plan, parts, share);
	if (answer == SW_YES)
		*ret_parts = parts;
	else
		sw_plan_let_go(plan, job, parts);
	return answer;
}

enum sw_answer sw_plan_put_over(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where)
{
	struct sw_engine *engine = plan->engine;
	uint32_t parts;
	if (!sw_engine_quota_allows(engine, &job->seen, gpus))
		return SW_OVER_QUOTA;
	enum sw_answer held = SW_NO_ROOM;
	if (sw_hold_suffices(engine, job, gpus) && where.rule == engine->config.placement)
		held = sw_plan_put_held(plan, job, gpus);
	if (held == SW_YES)
		return SW_YES;
	uint32_t stood = sw_plan_rise(plan, job);
	enum sw_answer answer = find_over(plan, job, gpus, where, &parts);
	if (answer == SW_YES)
		answer = sw_plan_settle(plan, job, gpus, parts);
	if (answer != SW_YES)
		sw_plan_put_lifted_back(plan);
	return sw_plan_stand_unless(plan, job, stood, answer == SW_NO_ROOM ? held : answer);
}

/* ---- from one class to the other */

static struct sw_place by_cluster(const struct sw_engine *engine)
{
	return (struct sw_place){.node = UINT32_MAX, .rule = engine->config.placement};
}

/* Where it is; false where a guaranteed neighbour holds the compute. */
static bool upgrade_in_place(struct sw_plan *plan, struct sw_core_job *job, struct sw_share old)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	struct sw_share wanted = old;
	wanted.guaranteed = true;
	assert(job->seen.state == SW_JOB_RUNNING && !old.guaranteed);
	if (!sw_ledger_could_guarantee(ledger, job->parts, old.compute_milli))
		return false;
	sw_ledger_give(ledger, job->parts, old);
	sw_ledger_take(ledger, job->parts, wanted);
	sw_plan_touch(plan, job)->limits_changed = true;
	job->seen.job_class = SW_CLASS_GUARANTEED;
	sw_order_mark(plan->engine, job);
	plan->engine->tenants.items[job->seen.tenant].held += job->seen.gpus_held;
	plan->engine->tenants.items[job->seen.tenant].borrowed -= job->seen.gpus_held;
	return true;
}

static enum sw_answer upgrade_elsewhere(struct sw_plan *plan, struct sw_core_job *job, struct sw_share old, bool evicts)
{
	struct sw_engine *engine = plan->engine;
	uint32_t parts_before = sw_plan_touch(plan, job)->parts_before, parts;
	struct sw_core_job held = *job;
	sw_ledger_give(&engine->ledger, job->parts, old);
	sw_engine_set_waiting(engine, job, engine->config.terms.keeps_state);
	/* It is the same run, with the limits it has. */
	job->seen.gpu_memory_bytes = held.seen.gpu_memory_bytes;
	job->seen.compute_milli = held.seen.compute_milli;
	job->seen.until = held.seen.until;
	job->seen.job_class = SW_CLASS_GUARANTEED;
	plan->lifted.count = 0;
	enum sw_answer answer = SW_NO_ROOM;
	if (evicts)
		answer = find_over(plan, job, held.seen.gpus_held, by_cluster(engine), &parts);
	else if (sw_plan_find(plan, job, held.seen.gpus_held, by_cluster(engine), &parts))
		answer = SW_YES;
	if (answer == SW_YES)
		answer = sw_plan_settle(plan, job, held.seen.gpus_held, parts);
	if (answer == SW_YES) {
		if (held.parts != parts_before)
			sw_plan_let_go(plan, job, held.parts);
		return SW_YES;
	}
	sw_plan_put_lifted_back(plan);
	job->seen.job_class = held.seen.job_class;
	sw_ledger_take(&engine->ledger, held.parts, old);
	sw_engine_set_running(engine, job, held.seen.gpus_held, held.parts);
	job->seen = held.seen; /* it never left */
	job->clock = held.clock;
	return answer;
}

enum sw_answer sw_plan_upgrade(struct sw_plan *plan, struct sw_core_job *job, bool evicts)
{
	struct sw_engine *engine = plan->engine;
	struct sw_job wanted = job->seen;
	wanted.job_class = SW_CLASS_GUARANTEED;
	if (!sw_engine_quota_allows(engine, &wanted, wanted.gpus_held))
		return SW_OVER_QUOTA;
	if (job->seen.paused)
		return SW_NO_ROOM;
	struct sw_share old = sw_share_of(&job->seen);
	if (upgrade_in_place(plan, job, old))
		return SW_YES;
	if (!sw_plan_may_move(engine) || job->split_milli != 0 || (evicts && !is_place(plan, job, job->seen.gpus_held, by_cluster(engine))))
		return SW_NO_ROOM;
	enum sw_answer answer = sw_plan_may_go(engine, job);
	return answer == SW_YES ? upgrade_elsewhere(plan, job, old, evicts) : answer;
}
