/* From a wish to what makes it so: which fields make sense together, and which file does the
 * work.
 *
 * A waiting job has the class and the compute of its wish while a place is looked for, and keeps
 * them only if it starts.
 */
#include "core/state.h"

bool sw_plan_is_rare_where(const struct sw_engine *engine, const struct sw_where *where)
{
	switch (where->kind) {
	case SW_WHERE_NODE:
		return where->node.v < engine->topology->node_count;
	case SW_WHERE_GPUS:
		return where->gpus != NULL && where->count > 0;
	case SW_WHERE_PARTS:
		return where->parts != NULL;
	default:
		return false;
	}
}

struct sw_place sw_plan_place_of(const struct sw_engine *engine, const struct sw_where *where)
{
	if (where->kind == SW_WHERE_NODE)
		return (struct sw_place){.node = where->node.v};
	bool own = where->kind == SW_WHERE_RULE && where->rule != NULL;
	return (struct sw_place){.node = UINT32_MAX, .rule = own ? where->rule : engine->config.placement};
}

/* ---- a waiting job */

/* What is promised nothing says how much memory it takes, and is no reason to preempt others. */
static bool is_start(const struct sw_core_job *job, const struct sw_wish *wish)
{
	bool asked = wish->gpus == 0 || wish->gpus == job->seen.gpus;
	if (wish->promise == SW_REST && (job->seen.gpu_memory_bytes == 0 || wish->evict != SW_EVICT_NONE))
		return false;
	if (wish->where.kind == SW_WHERE_PARTS && wish->promise != SW_REST)
		return false;
	switch (wish->evict) {
	case SW_EVICT_NONE:
		return true;
	case SW_EVICT_OPPORTUNISTIC:
		return !sw_where_is_exact(&wish->where) && wish->as != SW_AS_OPPORTUNISTIC && job->seen.asked_class == SW_CLASS_GUARANTEED;
	default:
		return !sw_where_is_exact(&wish->where) && wish->where.kind != SW_WHERE_NODE && wish->as == SW_AS_ASKED && asked;
	}
}

/* One that may not be stopped does not run where it would have to make way. */
static bool may_be(const struct sw_core_job *job, uint8_t as)
{
	return as != SW_AS_OPPORTUNISTIC || (job->seen.stop_rule != SW_STOP_NEVER && job->seen.stop_rule != SW_STOP_IF_FREE);
}

static enum sw_answer put(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish)
{
	uint32_t gpus = wish->gpus != 0 ? wish->gpus : job->seen.gpus;
	struct sw_place place = sw_plan_place_of(plan->engine, &wish->where);
	enum sw_answer answer =
		wish->evict == SW_EVICT_OPPORTUNISTIC ? sw_plan_put_over(plan, job, gpus, place) : sw_plan_put_at(plan, job, gpus, place);
	if (answer == SW_NO_ROOM && wish->where.kind == SW_WHERE_CLUSTER && sw_order_takes_any_place(plan->engine))
		answer = sw_plan_put(plan, job, gpus, NULL);
	return answer;
}

static enum sw_answer start(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish)
{
	const struct sw_where *where = &wish->where;
	switch (where->kind) {
	case SW_WHERE_GPUS:
		return sw_plan_settle_at(plan, job, where->gpus, where->count);
	case SW_WHERE_BESIDE:
		return sw_plan_join(plan, job, where->beside);
	case SW_WHERE_PARTS:
		return sw_plan_put_parts(plan, job, where->parts);
	default:
		break;
	}
	if (wish->evict < SW_EVICT_BEHIND)
		return put(plan, job, wish);
	return sw_greedy_put_ahead(plan, job, where->kind == SW_WHERE_RULE ? where->rule : NULL, wish->evict == SW_EVICT_SPARING);
}

/* How the job was before a wish that sets it up otherwise. */
struct set_up {
	struct sw_config before;
	uint32_t stood;
};

/* SW_YES: it is set up so while a place is looked for. Its run may stand where it was lifted in
 * this decision: then it does not any more. */
static enum sw_answer set_up(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish, struct set_up *ret_set_up)
{
	struct sw_config config = sw_config_with(job->config, &wish->config);
	*ret_set_up = (struct set_up){job->config, SW_NO_PART};
	if (sw_config_is_same(&job->config, &config))
		return SW_YES;
	if (sw_plan_is_homebound(plan->engine, job))
		return SW_KEPT;
	ret_set_up->stood = sw_plan_rise(plan, job);
	sw_config_put(job, &config);
	return SW_YES;
}

static enum sw_answer run_waiting(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish, bool sets_up)
{
	if (!is_start(job, wish))
		return sw_plan_misuse(plan);
	if (!may_be(job, wish->as))
		return SW_KEPT;
	if (wish->as != SW_AS_ASKED)
		job->seen.job_class = wish->as == SW_AS_GUARANTEED ? SW_CLASS_GUARANTEED : SW_CLASS_OPPORTUNISTIC;
	if (wish->promise == SW_REST)
		job->seen.compute_milli = 0;
	struct set_up other;
	enum sw_answer answer = sets_up ? set_up(plan, job, wish, &other) : SW_YES;
	if (answer == SW_YES) {
		answer = start(plan, job, wish);
		if (sets_up && answer != SW_YES)
			sw_config_put(job, &other.before);
		if (sets_up)
			(void)sw_plan_stand_unless(plan, job, other.stood, answer);
	}
	if (answer == SW_YES && wish->until != 0)
		job->seen.until = wish->until;
	if (answer != SW_YES) {
		job->seen.job_class = job->seen.asked_class;
		job->seen.compute_milli = job->asked_compute_milli;
	}
	return answer;
}

/* ---- a running job */

static enum sw_answer change_running(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish, bool sets_up)
{
	bool resized = wish->gpus != 0, moved = wish->where.kind != SW_WHERE_CLUSTER;
	if (wish->promise != SW_SHARE || sw_where_is_exact(&wish->where))
		return sw_plan_misuse(plan);
	if (wish->as == SW_AS_GUARANTEED && job->seen.job_class == SW_CLASS_OPPORTUNISTIC && !resized && !moved && !sets_up &&
	    wish->evict <= SW_EVICT_OPPORTUNISTIC)
		return sw_plan_upgrade(plan, job, wish->evict == SW_EVICT_OPPORTUNISTIC);
	if (wish->as != SW_AS_ASKED || wish->evict != SW_EVICT_NONE)
		return sw_plan_misuse(plan);
	struct sw_config config = sw_config_with(job->config, &wish->config);
	bool other = sets_up && !sw_config_is_same(&config, &job->config);
	if (!resized && !moved && !sets_up)
		return job->seen.paused ? sw_plan_go(plan, job) : wish->until != 0 ? SW_YES : sw_plan_misuse(plan);
	bool here = !moved && (!resized || wish->gpus == job->seen.gpus_held);
	if (here && !other)
		return SW_YES;
	struct sw_place place = sw_plan_place_of(plan->engine, &wish->where);
	place.here = here;
	return sw_plan_move(plan, job, resized ? wish->gpus : job->seen.gpus_held, place, other ? &config : NULL);
}

static enum sw_answer run_running(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish, bool sets_up)
{
	bool stays = wish->where.kind == SW_WHERE_CLUSTER && (wish->gpus == 0 || wish->gpus == job->seen.gpus_held);
	/* From then on these GPUs are held for another. */
	if (wish->until != 0 && stays && sw_hold_closes_parts(plan->engine, job, job->parts, wish->until))
		return SW_NO_ROOM;
	enum sw_answer answer = change_running(plan, job, wish, sets_up);
	if (answer == SW_YES && wish->until != 0) {
		(void)sw_plan_touch(plan, job);
		job->seen.until = wish->until;
	}
	return answer;
}

enum sw_answer sw_plan_run(struct sw_plan *plan, const struct sw_job *seen, const struct sw_wish *wish)
{
	static const struct sw_wish ordinary = {0};
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	wish = wish != NULL ? wish : &ordinary;
	bool sets_up = !sw_config_is_zero(&wish->config);
	if (job == NULL || !sw_plan_is_wish(plan->engine, job, wish, sets_up))
		return sw_plan_misuse(plan);
	enum sw_answer answer = SW_MISUSE;
	bool shaded = sw_shade_cast(plan->engine, job, wish->until != 0 ? wish->until : job->seen.until);
	if (sw_job_is_waiting(&job->seen))
		answer = run_waiting(plan, job, wish, sets_up);
	else if (job->seen.state == SW_JOB_RUNNING)
		answer = run_running(plan, job, wish, sets_up);
	else
		sw_plan_misuse(plan);
	if (shaded) {
		sw_shade_lift(plan->engine);
		(void)sw_holds_end_of_starters(plan->engine);
	}
	if (answer == SW_TOO_SOON)
		sw_tell_change(plan->engine, SW_CHANGE_PROTECTION);
	return answer;
}
