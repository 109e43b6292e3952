/* The verb that keeps GPUs for a job that waits, and its start on them.
 *
 * For a hold that is to come, a place is looked for in the cluster as it will be then. That is
 * without the runs whose leases end by then, and without the holds of others that do not overlap
 * with it.
 */
#include "core/state.h"

/* ---- the cluster as it will be */

static bool will_have_left(const struct sw_engine *engine, const struct sw_core_job *job, sw_ns from)
{
	return job->seen.until <= from && !sw_plan_stays(engine, job);
}

/* What runs until then gives back all that it holds, or has it again. */
static void lift_leased(struct sw_engine *engine, sw_ns from, bool on)
{
	for (uint32_t id = sw_bitmap_next(&engine->running, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(&engine->running, id + 1)) {
		const struct sw_core_job *job = &engine->jobs.items[id];
		if (will_have_left(engine, job, from))
			(on ? sw_ledger_give : sw_ledger_take)(&engine->ledger, job->parts, sw_share_of(&job->seen));
	}
}

/* As this job may see it from `from` to `to`; or as it is. */
static void look_ahead(struct sw_engine *engine, const struct sw_core_job *job, sw_ns from, sw_ns to, bool on)
{
	for (size_t h = 0; h < engine->holds.count; h++) {
		const struct sw_hold_row *row = &engine->holds.items[h];
		bool closed = row->job != job->seen.id.v && row->from < to && row->to > from;
		if (row->parts != SW_NO_PART && closed != row->in_force)
			sw_ledger_keep(&engine->ledger, row->parts, closed == on);
	}
	if (from > engine->now)
		lift_leased(engine, from, on);
}

/* ---- where */

/* A list of the hold's own; SW_NO_PART: out of memory. */
static uint32_t copy_parts(struct sw_ledger *ledger, uint32_t parts)
{
	struct sw_spot spot;
	sw_spot_begin(&spot, ledger, (struct sw_share){0});
	for (uint32_t p = parts; p != SW_NO_PART && !spot.failed; p = ledger->parts[p].next) {
		const struct sw_part part = ledger->parts[p]; /* the pool may grow */
		(void)sw_spot_put(&spot, &part);
	}
	if (spot.failed)
		sw_spot_discard(&spot);
	return spot.head;
}

static uint32_t count_parts(const struct sw_ledger *ledger, uint32_t parts)
{
	uint32_t count = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		count++;
	return count;
}

static enum sw_answer find_exact(struct sw_plan *plan, struct sw_core_job *job, const struct sw_where *where, uint32_t *ret_parts)
{
	struct sw_engine *engine = plan->engine;
	bool sensible = true, free = true;
	struct sw_spot spot;
	sw_spot_begin(&spot, &engine->ledger, sw_share_of(&job->seen));
	for (size_t i = 0; i < where->count && sensible; i++) {
		const struct sw_gpus *gpus = &where->gpus[i];
		sensible = sw_plan_is_mask(engine->topology, gpus) &&
			   (sw_spot_put(&spot, &(struct sw_part){.mask = gpus->mask, .node = gpus->node.v}) || spot.failed);
		free = sensible && free && sw_plan_is_open(&engine->ledger, gpus->node.v, gpus->mask, job) &&
		       (gpus->mask & ~engine->ledger.nodes[gpus->node.v].free) == 0;
	}
	enum sw_answer answer = SW_YES;
	if (!sensible || spot.gpus > job->seen.max_gpus)
		answer = sw_plan_misuse(plan);
	else if (spot.failed || !free || !sw_ledger_fits(&engine->ledger, spot.head, spot.share))
		answer = SW_NO_ROOM;
	if (answer == SW_YES)
		*ret_parts = spot.head;
	else
		sw_spot_discard(&spot);
	return answer;
}

/* Parts that are free, in the ledger as it is seen now. */
static enum sw_answer find(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish, uint32_t *ret_parts)
{
	struct sw_engine *engine = plan->engine;
	uint32_t gpus = wish->gpus != 0 ? wish->gpus : job->seen.gpus, parts;
	if (wish->where.kind == SW_WHERE_GPUS)
		return find_exact(plan, job, &wish->where, ret_parts);
	struct sw_place place = sw_plan_place_of(engine, &wish->where);
	bool found = sw_plan_find(plan, job, gpus, place, &parts);
	if (!found && wish->where.kind == SW_WHERE_CLUSTER && sw_order_takes_any_place(engine))
		found = sw_plan_find(plan, job, gpus, (struct sw_place){UINT32_MAX, NULL, false}, &parts);
	if (!found)
		return SW_NO_ROOM;
	*ret_parts = parts != job->home ? parts : copy_parts(&engine->ledger, parts);
	return *ret_parts != SW_NO_PART ? SW_YES : SW_NO_ROOM;
}

/* ---- the verb */

static bool is_wish(const struct sw_engine *engine, const struct sw_core_job *job, const struct sw_wish *wish)
{
	bool exact = wish->where.kind == SW_WHERE_GPUS;
	return wish->as == SW_AS_ASKED && wish->promise == SW_SHARE && wish->evict == SW_EVICT_NONE && wish->until == 0 &&
	       sw_config_is_zero(&wish->config) && (exact ? wish->gpus == 0 : wish->gpus <= job->seen.max_gpus) &&
	       wish->where.kind <= SW_WHERE_GPUS && sw_plan_is_where(engine, &wish->where);
}

enum sw_answer sw_plan_hold(struct sw_plan *plan, const struct sw_job *seen, const struct sw_wish *wish, sw_ns from, sw_ns to)
{
	static const struct sw_wish ordinary = {0};
	struct sw_engine *engine = plan->engine;
	struct sw_core_job *job = sw_engine_own(engine, seen);
	wish = wish != NULL ? wish : &ordinary;
	from = from > engine->now ? from : engine->now;
	if (job == NULL || !sw_job_is_waiting(&job->seen))
		return sw_plan_misuse(plan);
	if (to == 0)
		return sw_hold_release(plan, job);
	if (to <= from || !is_wish(engine, job, wish))
		return sw_plan_misuse(plan);
	if (plan->holds_made == SW_HOLDS_AT_ONCE)
		return SW_NO_ROOM;
	uint32_t parts = SW_NO_PART, stood = sw_plan_rise(plan, job);
	engine->shade.on = true; /* a rule that asks what is free sees the same */
	look_ahead(engine, job, from, to, true);
	enum sw_answer answer = find(plan, job, wish, &parts);
	look_ahead(engine, job, from, to, false);
	engine->shade.on = false;
	(void)sw_plan_stand_unless(plan, job, stood, SW_NO_ROOM);
	if (answer != SW_YES)
		return answer;
	plan->hold_parts_made += count_parts(&engine->ledger, parts);
	if (plan->hold_parts_made > engine->topology->gpu_count ||
	    sw_hold_put(engine, (struct sw_hold_row){.job = job->seen.id.v, .parts = parts, .from = from, .to = to}) == NULL) {
		sw_ledger_drop_parts(&engine->ledger, parts);
		return SW_NO_ROOM;
	}
	plan->holds_made++;
	plan->holds_changed = true;
	return SW_YES;
}

/* ---- the start of a job that has one */

bool sw_hold_suffices(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus)
{
	const struct sw_hold_row *row = sw_hold_of(engine, job->seen.id.v);
	return row != NULL && row->in_force && !sw_plan_is_homebound(engine, job) &&
	       sw_ledger_count_gpus(&engine->ledger, row->parts) == gpus;
}

/* Preempts what still runs there: its lease is over. */
static enum sw_answer clear(struct sw_plan *plan, uint32_t parts)
{
	struct sw_engine *engine = plan->engine;
	const struct sw_ledger *ledger = &engine->ledger;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(rest);
			const struct sw_gpu *gpu = &ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + bit];
			while (gpu->residents > 0) {
				struct sw_core_job *other = &engine->jobs.items[gpu->who[0]];
				enum sw_answer answer = sw_plan_may_stop(engine, other);
				uint32_t *slot = answer == SW_YES ? sw_vec_push(&plan->lifted) : NULL;
				if (slot == NULL)
					return answer == SW_YES ? SW_NO_ROOM : answer;
				*slot = other->seen.id.v;
				sw_plan_lift(plan, other);
			}
		}
	}
	return SW_YES;
}

enum sw_answer sw_plan_put_held(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus)
{
	struct sw_engine *engine = plan->engine;
	uint32_t parts = sw_config_parts(engine, job, sw_hold_of(engine, job->seen.id.v)->parts);
	plan->lifted.count = 0;
	if (parts == SW_NO_PART)
		return SW_NO_ROOM;
	/* The shade has opened its own hold: what is kept is held for others from before it
	 * ends. */
	enum sw_answer answer = sw_ledger_touches_closed(&engine->ledger, parts) ? SW_NO_ROOM : clear(plan, parts);
	if (answer == SW_YES && !sw_ledger_fits(&engine->ledger, parts, sw_share_of(&job->seen)))
		answer = SW_NO_ROOM;
	if (answer == SW_YES)
		answer = sw_plan_settle(plan, job, gpus, parts);
	else
		sw_ledger_drop_parts(&engine->ledger, parts);
	if (answer != SW_YES)
		sw_plan_put_lifted_back(plan);
	return answer;
}
