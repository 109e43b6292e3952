/* From a wish to what makes it so: which fields make sense together, and which file does the
 * work.
 *
 * A waiting job has the class and the compute of its wish while a place is looked for, and keeps
 * them only if it starts.
 */
#include "core/state.h"

static bool is_where(const struct sw_engine *engine, const struct sw_where *where)
{
	switch (where->kind) {
	case SW_WHERE_CLUSTER:
		return true;
	case SW_WHERE_RULE:
		return where->rule == NULL || where->rule->place != NULL;
	case SW_WHERE_NODE:
		return where->node.v < engine->topology->node_count;
	case SW_WHERE_GPUS:
		return where->gpus != NULL && where->count > 0;
	case SW_WHERE_BESIDE:
		return where->beside != NULL;
	case SW_WHERE_PARTS:
		return where->parts != NULL;
	default:
		return false;
	}
}

/* Whether the place says by itself how many GPUs these are. */
static bool is_exact(const struct sw_where *where)
{
	return where->kind == SW_WHERE_GPUS || where->kind == SW_WHERE_BESIDE || where->kind == SW_WHERE_PARTS;
}

/* What holds for every job. */
static bool is_wish(const struct sw_engine *engine, const struct sw_core_job *job, const struct sw_wish *wish)
{
	bool counts = wish->gpus == 0 || (wish->gpus >= job->seen.min_gpus && wish->gpus <= job->seen.max_gpus && !is_exact(&wish->where));
	bool leases = wish->until == 0 || wish->until > engine->now;
	return counts && leases && wish->as <= SW_AS_OPPORTUNISTIC && wish->promise <= SW_REST && wish->evict <= SW_EVICT_SPARING &&
	       is_where(engine, &wish->where);
}

static struct sw_place place_of(const struct sw_engine *engine, const struct sw_where *where)
{
	if (where->kind == SW_WHERE_NODE)
		return (struct sw_place){where->node.v, NULL};
	bool own = where->kind == SW_WHERE_RULE && where->rule != NULL;
	return (struct sw_place){UINT32_MAX, own ? where->rule : engine->config.placement};
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
		return !is_exact(&wish->where) && wish->as != SW_AS_OPPORTUNISTIC && job->seen.asked_class == SW_CLASS_GUARANTEED;
	default:
		return !is_exact(&wish->where) && wish->where.kind != SW_WHERE_NODE && wish->as == SW_AS_ASKED && asked;
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
	struct sw_place place = place_of(plan->engine, &wish->where);
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

static enum sw_answer run_waiting(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish)
{
	if (!is_start(job, wish))
		return sw_plan_misuse(plan);
	if (!may_be(job, wish->as))
		return SW_KEPT;
	if (wish->as != SW_AS_ASKED)
		job->seen.job_class = wish->as == SW_AS_GUARANTEED ? SW_CLASS_GUARANTEED : SW_CLASS_OPPORTUNISTIC;
	if (wish->promise == SW_REST)
		job->seen.compute_milli = 0;
	enum sw_answer answer = start(plan, job, wish);
	if (answer == SW_YES && wish->until != 0)
		job->seen.until = wish->until;
	if (answer != SW_YES) {
		job->seen.job_class = job->seen.asked_class;
		job->seen.compute_milli = job->asked_compute_milli;
	}
	return answer;
}

/* ---- a running job */

static enum sw_answer change_running(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish)
{
	bool resized = wish->gpus != 0, moved = wish->where.kind != SW_WHERE_CLUSTER;
	if (wish->promise != SW_SHARE || is_exact(&wish->where))
		return sw_plan_misuse(plan);
	if (wish->as == SW_AS_GUARANTEED && job->seen.job_class == SW_CLASS_OPPORTUNISTIC && !resized && !moved &&
	    wish->evict <= SW_EVICT_OPPORTUNISTIC)
		return sw_plan_upgrade(plan, job, wish->evict == SW_EVICT_OPPORTUNISTIC);
	if (wish->as != SW_AS_ASKED || wish->evict != SW_EVICT_NONE)
		return sw_plan_misuse(plan);
	if (!resized && !moved)
		return job->seen.paused ? sw_plan_go(plan, job) : wish->until != 0 ? SW_YES : sw_plan_misuse(plan);
	if (!moved && wish->gpus == job->seen.gpus_held)
		return SW_YES;
	return sw_plan_move(plan, job, resized ? wish->gpus : job->seen.gpus_held, place_of(plan->engine, &wish->where));
}

static enum sw_answer run_running(struct sw_plan *plan, struct sw_core_job *job, const struct sw_wish *wish)
{
	enum sw_answer answer = change_running(plan, job, wish);
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
	if (job == NULL || !is_wish(plan->engine, job, wish))
		return sw_plan_misuse(plan);
	enum sw_answer answer = SW_MISUSE;
	if (sw_job_is_waiting(&job->seen))
		answer = run_waiting(plan, job, wish);
	else if (job->seen.state == SW_JOB_RUNNING)
		answer = run_running(plan, job, wish);
	else
		sw_plan_misuse(plan);
	if (answer == SW_TOO_SOON)
		sw_tell_change(plan->engine, SW_CHANGE_PROTECTION);
	return answer;
}
