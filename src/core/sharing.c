/* The verbs of policies that put several jobs on one GPU and tell guaranteed jobs from opportunistic ones: wishes of a plan like those of plan.c.
 *
 * A job that is paused runs, on its GPUs, and holds less of them: sw_share_of() says what. It goes on once it is lifted, even if it is put back.
 *
 * The class that a job has for one run is in `seen.job_class` while it runs; a job that waits has the one that it asked for.
 */
#include <assert.h>

#include "core/state.h"

/* One that may not be stopped does not run where it would have to make way. */
static bool may_be(const struct sw_core_job *job, enum sw_job_class job_class)
{
	return job_class == SW_CLASS_GUARANTEED || (job->seen.stop_rule != SW_STOP_NEVER && job->seen.stop_rule != SW_STOP_IF_FREE);
}

/* A waiting job in this class: it stays so only if it starts. */
static enum sw_answer keep_class_if(struct sw_core_job *job, enum sw_answer answer)
{
	if (answer != SW_YES)
		job->seen.job_class = job->seen.asked_class;
	return answer;
}

enum sw_answer sw_plan_start_as(struct sw_plan *plan, const struct sw_job *seen, enum sw_job_class job_class)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || !sw_job_is_waiting(&job->seen) || job_class > SW_CLASS_OPPORTUNISTIC)
		return sw_plan_misuse(plan);
	if (!may_be(job, job_class))
		return SW_KEPT;
	job->seen.job_class = (uint8_t)job_class;
	return keep_class_if(job, sw_plan_start(plan, seen));
}

enum sw_answer sw_plan_start_by(struct sw_plan *plan, const struct sw_job *seen, enum sw_job_class job_class,
				const struct sw_placement *rule)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || !sw_job_is_waiting(&job->seen) || job_class > SW_CLASS_OPPORTUNISTIC || rule == NULL || rule->place == NULL)
		return sw_plan_misuse(plan);
	if (!may_be(job, job_class))
		return SW_KEPT;
	job->seen.job_class = (uint8_t)job_class;
	return keep_class_if(job, sw_plan_put(plan, job, job->seen.gpus, rule));
}

/* ---- on GPUs of the policy's choice */

static bool is_mask_of(const struct sw_topology *topology, const struct sw_gpus *gpus)
{
	if (gpus->node.v >= topology->node_count || gpus->mask == 0)
		return false;
	uint32_t count = topology->nodes[gpus->node.v].gpus;
	return count == 64 || gpus->mask >> count == 0;
}

static bool is_open(const struct sw_ledger *ledger, uint32_t node, uint64_t mask, const struct sw_core_job *job)
{
	const struct sw_ledger_node *n = &ledger->nodes[node];
	return n->up && !n->closed && (n->shut & mask) == 0 && node != job->avoid;
}

static enum sw_answer start_at(struct sw_plan *plan, struct sw_core_job *job, const struct sw_gpus *where, size_t count)
{
	struct sw_engine *engine = plan->engine;
	struct sw_spot spot;
	bool sensible = true, open = true;
	uint32_t stood = sw_plan_rise(plan, job);
	sw_spot_begin(&spot, &engine->ledger, sw_share_of(&job->seen));
	for (size_t i = 0; i < count && sensible; i++) {
		sensible = is_mask_of(engine->topology, &where[i]) &&
			   (sw_spot_put(&spot, &(struct sw_part){.mask = where[i].mask, .node = where[i].node.v}) || spot.failed);
		open = sensible && open && is_open(&engine->ledger, where[i].node.v, where[i].mask, job);
	}
	sensible &= spot.failed || (spot.gpus >= job->seen.min_gpus && spot.gpus <= job->seen.max_gpus);
	enum sw_answer answer = SW_YES;
	if (!sensible)
		answer = sw_plan_misuse(plan);
	else if (!sw_engine_quota_allows(engine, &job->seen, spot.gpus))
		answer = SW_OVER_QUOTA;
	else if (spot.failed || !open || !sw_ledger_fits(&engine->ledger, spot.head, spot.share))
		answer = SW_NO_ROOM;
	if (answer == SW_YES)
		answer = sw_plan_settle(plan, job, spot.gpus, spot.head);
	else
		sw_spot_discard(&spot);
	return sw_plan_stand_unless(plan, job, stood, answer);
}

enum sw_answer sw_plan_start_at(struct sw_plan *plan, const struct sw_job *seen, enum sw_job_class job_class, const struct sw_gpus *where,
				size_t count)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || !sw_job_is_waiting(&job->seen) || job_class > SW_CLASS_OPPORTUNISTIC || count == 0)
		return sw_plan_misuse(plan);
	if (!may_be(job, job_class))
		return SW_KEPT;
	job->seen.job_class = (uint8_t)job_class;
	return keep_class_if(job, start_at(plan, job, where, count));
}

enum sw_answer sw_plan_pack_at(struct sw_plan *plan, const struct sw_job *seen, const struct sw_gpus *where, size_t count)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || !sw_job_is_waiting(&job->seen) || job->seen.gpu_memory_bytes == 0 || count == 0)
		return sw_plan_misuse(plan);
	job->seen.compute_milli = 0;
	enum sw_answer answer = start_at(plan, job, where, count);
	if (answer != SW_YES)
		job->seen.compute_milli = job->asked_compute_milli;
	return answer;
}

static size_t add_gpus(struct sw_gpus *where, size_t count, size_t max, uint32_t node, uint64_t mask)
{
	for (size_t i = 0; i < count; i++) {
		if (where[i].node.v == node) {
			where[i].mask |= mask;
			return count;
		}
	}
	if (count < max)
		where[count] = (struct sw_gpus){{node}, mask};
	return count + 1;
}

/* The lowest `count` of the mask, or all of it. */
static uint64_t lowest(uint64_t mask, uint32_t count)
{
	uint64_t rest = mask;
	for (; count > 0 && rest != 0; count--)
		rest &= rest - 1;
	return mask & ~rest;
}

/* The free GPUs of a node on which the share fits beside runs that stand there. */
static uint64_t free_for(const struct sw_ledger *ledger, uint32_t node, struct sw_share share)
{
	const struct sw_ledger_node *n = &ledger->nodes[node];
	uint64_t mask = n->free;
	for (uint64_t rest = n->free & n->standing; rest != 0; rest &= rest - 1)
		if (!sw_ledger_gpu_fits(ledger, n->first_gpu + (uint32_t)__builtin_ctzll(rest), share))
			mask &= ~(rest & (~rest + 1));
	return mask;
}

/* How many of them it may have at once: there is host memory for no more. */
static uint32_t count_free_for(const struct sw_ledger *ledger, uint32_t node, struct sw_share share)
{
	struct sw_part part = {.mask = free_for(ledger, node, share), .node = node};
	while (part.mask != 0 && !sw_ledger_has_asked(ledger, &part, share))
		part.mask &= part.mask - 1;
	return (uint32_t)__builtin_popcountll(part.mask);
}

uint32_t sw_view_gpus_free_for(const struct sw_view *view, const struct sw_job *seen)
{
	const struct sw_ledger *ledger = view->ledger;
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	uint32_t free = ledger->gpus_free, at_home = 0;
	if (job != NULL && sw_plan_is_homebound(view->engine, job)) {
		for (uint32_t p = job->home; p != SW_NO_PART; p = ledger->parts[p].next)
			at_home += (uint32_t)__builtin_popcountll(ledger->parts[p].mask & ledger->nodes[ledger->parts[p].node].free);
		return at_home;
	}
	for (uint32_t node = ledger->standing.count > 0 ? sw_bitmap_next(&ledger->standing, 0) : SW_BITMAP_NONE; node != SW_BITMAP_NONE;
	     node = sw_bitmap_next(&ledger->standing, node + 1))
		if (ledger->nodes[node].up && !ledger->nodes[node].closed)
			free -= (uint32_t)__builtin_popcountll(ledger->nodes[node].free) - count_free_for(ledger, node, sw_share_of(seen));
	return free;
}

/* Those on which its run stands, if they are used so little. Whether it fits there is for the plan to say: it holds some of their memory itself. */
static size_t home_of(const struct sw_ledger *ledger, const struct sw_core_job *job, uint32_t below_milli, struct sw_gpus *ret_where,
		      size_t max)
{
	size_t count = 0;
	for (uint32_t p = job->home; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_part *part = &ledger->parts[p];
		if (count == max || !is_open(ledger, part->node, part->mask, job))
			return 0;
		for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[ledger->nodes[part->node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			if (gpu->residents > 0 && gpu->use_milli >= below_milli)
				return 0;
		}
		ret_where[count++] = (struct sw_gpus){{part->node}, part->mask};
	}
	return count;
}

size_t sw_gpus_least_used(const struct sw_view *view, const struct sw_job *seen, uint32_t below_milli, struct sw_gpus *ret_where,
			  size_t max)
{
	const struct sw_ledger *ledger = view->ledger;
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	if (job == NULL)
		return 0;
	uint32_t end = ledger->topology->node_count, missing = seen->gpus;
	struct sw_share share = sw_share_of(seen);
	size_t count = 0;
	share.guaranteed = false;
	if (sw_plan_is_homebound(view->engine, job))
		return home_of(ledger, job, below_milli, ret_where, max);
	for (uint32_t node = sw_ledger_first(ledger, 1, 0, end); node != UINT32_MAX && missing > 0 && count <= max;
	     node = sw_ledger_first(ledger, 1, node + 1, end)) {
		if (!is_open(ledger, node, 0, job) || ledger->topology->nodes[node].gpu_memory_bytes < share.gpu_memory_bytes)
			continue;
		uint64_t mask = lowest(free_for(ledger, node, share), missing);
		if (mask == 0)
			continue;
		missing -= (uint32_t)__builtin_popcountll(mask);
		count = add_gpus(ret_where, count, max, node, mask);
	}
	if (share.gpu_memory_bytes == 0)
		return missing == 0 && count <= max ? count : 0;
	for (uint32_t step = 0, gpu = 0; missing > 0 && count <= max && sw_ledger_next_used(ledger, below_milli, &step, &gpu); gpu++) {
		uint32_t node = ledger->gpus[gpu].node;
		if (!is_open(ledger, node, 0, job) || !sw_ledger_gpu_fits(ledger, gpu, share))
			continue;
		missing--;
		count = add_gpus(ret_where, count, max, node, UINT64_C(1) << (gpu - ledger->nodes[node].first_gpu));
	}
	return missing == 0 && count <= max ? count : 0;
}

/* ---- over opportunistic jobs */

/* Whether the job holds some of the node's CPUs or host memory. */
static bool holds_of_host(const struct sw_ledger *ledger, const struct sw_core_job *job, uint32_t node)
{
	for (uint32_t p = job->parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if (ledger->parts[p].node == node)
			return ledger->parts[p].cpus > 0 || ledger->parts[p].memory_bytes > 0 || job->seen.host_memory_bytes > 0;
	return false;
}

/* The youngest opportunistic job on these GPUs of a node (of the host: that holds CPUs or memory there), or NULL. */
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

/* Somebody who is in the way of this part, NULL where nobody is; *ret_fits: it is free. */
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
static void put_lifted_back(struct sw_plan *plan)
{
	for (size_t i = plan->lifted.count; i-- > 0;)
		(void)sw_plan_put_back(plan, &plan->engine->jobs.items[plan->lifted.items[i]]);
	plan->lifted.count = 0;
}

/* Preempts who is in the way of these parts; if one of them cannot go, all are put back. */
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
			sw_plan_lift(plan, other);
			/* Its run may hold memory of an earlier part now. */
			p = other->stands != SW_NO_PART ? parts : p;
		}
	}
	if (answer != SW_YES)
		put_lifted_back(plan);
	return answer;
}

/* Whether there is a place at all, cleared or not. The job runs and keeps what it has. */
static bool is_place(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	struct sw_share share = sw_share_of(&job->seen);
	uint32_t parts;
	if (ledger->gpus_free + ledger->gpus_yielding < gpus)
		return false;
	sw_ledger_see_through(ledger, share, true);
	bool found = sw_plan_find(plan, job, gpus, &parts);
	sw_ledger_see_through(ledger, share, false);
	if (found)
		sw_plan_let_go(plan, job, parts);
	return found;
}

/* A place for the guaranteed job, found as if opportunistic jobs held nothing, and cleared. A caller
 * that does not take it puts the lifted jobs back. */
static enum sw_answer find_over(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, uint32_t *ret_parts)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	uint32_t parts;
	plan->lifted.count = 0;
	if (sw_plan_find(plan, job, gpus, ret_parts))
		return SW_YES;
	if (ledger->gpus_yielding == 0 || ledger->gpus_free + ledger->gpus_yielding < gpus)
		return SW_NO_ROOM;
	struct sw_share share = sw_share_of(&job->seen);
	sw_ledger_see_through(ledger, share, true);
	bool found = sw_plan_find(plan, job, gpus, &parts);
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

enum sw_answer sw_plan_start_over(struct sw_plan *plan, const struct sw_job *seen)
{
	struct sw_engine *engine = plan->engine;
	struct sw_core_job *job = sw_engine_own(engine, seen);
	uint32_t parts;
	if (job == NULL || !sw_job_is_waiting(&job->seen) || job->seen.asked_class != SW_CLASS_GUARANTEED)
		return sw_plan_misuse(plan);
	if (!sw_engine_quota_allows(engine, &job->seen, job->seen.gpus))
		return SW_OVER_QUOTA;
	uint32_t stood = sw_plan_rise(plan, job);
	enum sw_answer answer = find_over(plan, job, job->seen.gpus, &parts);
	if (answer == SW_YES)
		answer = sw_plan_settle(plan, job, job->seen.gpus, parts);
	if (answer != SW_YES)
		put_lifted_back(plan);
	if (sw_plan_stand_unless(plan, job, stood, answer) == SW_YES)
		return SW_YES;
	return answer == SW_NO_ROOM && sw_order_takes_any_place(engine) ? sw_plan_put(plan, job, job->seen.gpus, NULL) : answer;
}

/* ---- from one class to the other */

/* Where it is; false where a guaranteed neighbour holds the compute. */
static bool upgrade_in_place(struct sw_plan *plan, struct sw_core_job *job, struct sw_share old)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	struct sw_share wanted = old;
	wanted.guaranteed = true;
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

static enum sw_answer upgrade_elsewhere(struct sw_plan *plan, struct sw_core_job *job, struct sw_share old)
{
	struct sw_engine *engine = plan->engine;
	uint32_t parts_before = sw_plan_touch(plan, job)->parts_before, parts;
	struct sw_core_job held = *job;
	sw_ledger_give(&engine->ledger, job->parts, old);
	sw_engine_set_waiting(engine, job, engine->config.terms.keeps_state);
	/* It is the same run, with the limits it has. */
	job->seen.gpu_memory_bytes = held.seen.gpu_memory_bytes;
	job->seen.compute_milli = held.seen.compute_milli;
	job->seen.job_class = SW_CLASS_GUARANTEED;
	enum sw_answer answer = find_over(plan, job, held.seen.gpus_held, &parts);
	if (answer == SW_YES)
		answer = sw_plan_settle(plan, job, held.seen.gpus_held, parts);
	if (answer == SW_YES) {
		if (held.parts != parts_before)
			sw_plan_let_go(plan, job, held.parts);
		return SW_YES;
	}
	put_lifted_back(plan);
	job->seen.job_class = held.seen.job_class;
	sw_ledger_take(&engine->ledger, held.parts, old);
	sw_engine_set_running(engine, job, held.seen.gpus_held, held.parts);
	job->seen = held.seen; /* it never left */
	return answer;
}

enum sw_answer sw_plan_upgrade(struct sw_plan *plan, const struct sw_job *seen)
{
	struct sw_engine *engine = plan->engine;
	struct sw_core_job *job = sw_engine_own(engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING || job->seen.job_class != SW_CLASS_OPPORTUNISTIC)
		return sw_plan_misuse(plan);
	struct sw_job wanted = job->seen;
	wanted.job_class = SW_CLASS_GUARANTEED;
	if (!sw_engine_quota_allows(engine, &wanted, wanted.gpus_held))
		return SW_OVER_QUOTA;
	if (job->seen.paused)
		return SW_NO_ROOM;
	struct sw_share old = sw_share_of(&job->seen);
	if (upgrade_in_place(plan, job, old))
		return SW_YES;
	if (!sw_plan_may_move(engine) || job->split_milli != 0 || !is_place(plan, job, job->seen.gpus_held))
		return SW_NO_ROOM;
	enum sw_answer answer = sw_plan_may_go(engine, job);
	return answer == SW_YES ? upgrade_elsewhere(plan, job, old) : answer;
}

/* ---- standing still in place */

/* Changes what it holds with it; false, and nothing happens, where others hold the rest. */
static bool set_paused(struct sw_plan *plan, struct sw_core_job *job, bool paused)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	struct sw_share old = sw_share_of(&job->seen);
	struct sw_job wanted = job->seen;
	wanted.paused = paused;
	sw_ledger_give(ledger, job->parts, old);
	bool fits = sw_ledger_fits(ledger, job->parts, sw_share_of(&wanted));
	sw_ledger_take(ledger, job->parts, fits ? sw_share_of(&wanted) : old);
	if (!fits)
		return false;
	struct sw_plan_entry *entry = sw_plan_touch(plan, job);
	/* One that starts paused is told so. */
	entry->limits_changed |= entry->before.state != SW_JOB_RUNNING;
	sw_engine_set_paused(plan->engine, job, paused);
	return true;
}

enum sw_answer sw_plan_pause(struct sw_plan *plan, const struct sw_job *seen)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING || job->seen.paused || !plan->engine->policy->pauses)
		return sw_plan_misuse(plan);
	return !job->seen.cannot_pause && set_paused(plan, job, true) ? SW_YES : SW_NO_ROOM;
}

enum sw_answer sw_plan_go(struct sw_plan *plan, const struct sw_job *seen)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || !job->seen.paused)
		return sw_plan_misuse(plan);
	return set_paused(plan, job, false) ? SW_YES : SW_NO_ROOM;
}

void sw_plan_rouse(struct sw_plan *plan)
{
	struct sw_engine *engine = plan->engine;
	for (uint32_t id = sw_bitmap_next(&engine->running, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(&engine->running, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (job->seen.paused && !set_paused(plan, job, false) && sw_plan_may_stop(engine, job) == SW_YES)
			sw_plan_lift(plan, job);
	}
}
