/* What may be stopped, and how a job stops: it is preempted, or stands still where it is.
 *
 * A job that is paused runs, on its GPUs, and holds less of them: sw_share_of() says what. It
 * goes on once it is lifted, even if it is put back.
 */
#include <assert.h>

#include "core/state.h"

/* The quantum; and for a job that was preempted often, so long that most of its time goes into
 * its work. */
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
	if (job->seen.state == SW_JOB_RUNNING && sw_ledger_touches_shut(&engine->ledger, job->parts))
		return true;
	bool expired = job->seen.until <= engine->now;
	/* The minimum run time is the operator's, whatever lease the policy gave. */
	sw_ns needed = expired ? engine->config.terms.quantum_ns : protected_for(engine, &job->seen);
	/* Its start may be of this very step: it names parts that a stop or a move could drop. */
	if (needed == 0 && engine->went_on)
		needed = 1;
	if (needed == 0 || job->seen.state != SW_JOB_RUNNING || engine->now - job->seen.since >= needed)
		return false;
	sw_ns until = needed > INT64_MAX - job->seen.since ? SW_TIME_NEVER : job->seen.since + needed;
	if (until < engine->plan.protected_until)
		engine->plan.protected_until = until;
	return true;
}

/* Ran before this decision, and was put elsewhere by it. Its run is still where it was, which
 * others may have been given by now. */
static bool was_put_elsewhere(const struct sw_plan *plan, const struct sw_core_job *job)
{
	const struct sw_plan_entry *entry = job->plan_slot != SW_NO_SLOT ? &plan->entries.items[job->plan_slot] : NULL;
	return entry != NULL && entry->before.state == SW_JOB_RUNNING && job->parts != entry->parts_before;
}

bool sw_plan_stays(const struct sw_engine *engine, const struct sw_core_job *job)
{
	/* Another run of it may not begin. */
	bool stands = job->split_milli == 0 && sw_engine_would_stand(engine, job);
	if (job->seen.no_restart && !engine->config.terms.keeps_state && !stands)
		return true;
	switch (job->seen.stop_rule) {
	case SW_STOP_NEVER:
		return true;
	case SW_STOP_SUSPEND:
	case SW_STOP_IF_FREE:
		/* Stopped, it would stand where it was before; one that is split stands nowhere. */
		return !engine->config.terms.keeps_state &&
		       (job->keeps != SW_KEEPS_YES || job->split_milli != 0 || was_put_elsewhere(&engine->plan, job));
	default:
		return false;
	}
}

enum sw_answer sw_plan_may_go(struct sw_engine *engine, const struct sw_core_job *job)
{
	bool restarts = engine->config.terms.moves != SW_MOVES_FREELY;
	if (restarts && (sw_rule_suspends(&job->seen) || job->seen.stop_rule == SW_STOP_NEVER || job->seen.no_restart))
		return SW_KEPT;
	return sw_plan_may_stop(engine, job);
}

static enum sw_answer preempt(struct sw_plan *plan, struct sw_core_job *job)
{
	enum sw_answer answer = sw_plan_may_stop(plan->engine, job);
	if (answer == SW_YES)
		sw_plan_lift(plan, job);
	if (answer == SW_TOO_SOON)
		sw_tell_change(plan->engine, SW_CHANGE_PROTECTION);
	return answer;
}

/* ---- standing still in place */

/* Changes what it holds with it; false, and nothing happens, where others hold the rest. */
static bool set_paused(struct sw_plan *plan, struct sw_core_job *job, bool paused)
{
	assert(job->seen.state == SW_JOB_RUNNING && job->seen.paused != paused);
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

enum sw_answer sw_plan_go(struct sw_plan *plan, struct sw_core_job *job)
{
	return set_paused(plan, job, false) ? SW_YES : SW_NO_ROOM;
}

enum sw_answer sw_plan_stop(struct sw_plan *plan, const struct sw_job *seen, enum sw_how how)
{
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING)
		return sw_plan_misuse(plan);
	if (how == SW_PREEMPT)
		return preempt(plan, job);
	if (how != SW_PAUSE || job->seen.paused || !plan->engine->policy->pauses)
		return sw_plan_misuse(plan);
	return !job->seen.cannot_pause && set_paused(plan, job, true) ? SW_YES : SW_NO_ROOM;
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
