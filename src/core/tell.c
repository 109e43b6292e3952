/* What the policy hears: its callbacks, and what has changed since its last decision.
 *
 * A change that happens while a decision is made or carried out counts for the next one.
 */
#include "core/state.h"

uint32_t sw_view_changes(const struct sw_view *view)
{
	return view->engine->changes;
}

void sw_tell_change(struct sw_engine *engine, uint32_t change)
{
	engine->changes_next |= change;
}

void sw_tell_begin(struct sw_engine *engine)
{
	const struct sw_ledger *ledger = &engine->ledger;
	engine->changes = engine->changes_next;
	engine->changes_next = 0;
	/* What comes is told by its event; what is free by now says the rest. */
	if (ledger->gpus_up != engine->gpus_up_left || ledger->gpus_free != engine->gpus_free_left)
		engine->changes |= SW_CHANGE_CAPACITY;
}

void sw_tell_end(struct sw_engine *engine)
{
	engine->changes = 0;
	engine->gpus_up_left = engine->ledger.gpus_up;
	engine->gpus_free_left = engine->ledger.gpus_free;
}

/* Whether the verdict makes sense for this job; does what it says. */
static bool apply_verdict(struct sw_job *job, const struct sw_admission *admission)
{
	switch (admission->verdict) {
	case SW_DOWNGRADE:
		if (job->stop_rule == SW_STOP_NEVER)
			return false;
		/* Behind others, it cannot be one that may turn out not to be stopped. */
		if (job->stop_rule == SW_STOP_IF_FREE)
			job->stop_rule = SW_STOP_SUSPEND;
		job->job_class = job->asked_class = SW_CLASS_OPPORTUNISTIC;
		return true;
	case SW_QUOTE:
		if (admission->deadline_at <= job->deadline_at)
			return false;
		job->deadline_at = admission->deadline_at;
		return true;
	default:
		return admission->verdict <= SW_REFUSE;
	}
}

const struct sw_admission *sw_tell_admit(struct sw_engine *engine, struct sw_core_job *job)
{
	if (engine->policy->admit == NULL)
		return NULL;
	struct sw_admission *admission = sw_vec_push(&engine->admissions); /* reserved by the step */
	*admission = (struct sw_admission){0};
	engine->policy->admit(&engine->view, &job->seen, admission);
	admission->reason[SW_REASON_MAX - 1] = '\0';
	if (!apply_verdict(&job->seen, admission)) {
		engine->plan.misuses++;
		return NULL;
	}
	return admission->verdict == SW_ACCEPT ? NULL : admission;
}

void sw_tell_sampled(struct sw_engine *engine, const struct sw_core_job *job, const struct sw_sample *sample)
{
	sw_tell_change(engine, SW_CHANGE_SPEEDS);
	if (engine->policy->sampled != NULL)
		engine->policy->sampled(&engine->view, &job->seen, sample);
}

void sw_tell_submit(struct sw_engine *engine, const struct sw_core_job *job)
{
	sw_tell_change(engine, SW_CHANGE_ARRIVALS);
	if (engine->policy->submit != NULL)
		engine->policy->submit(&engine->view, &job->seen);
}

void sw_tell_started(struct sw_engine *engine, const struct sw_core_job *job)
{
	if (engine->policy->started != NULL)
		engine->policy->started(&engine->view, &job->seen);
}

void sw_tell_stopped(struct sw_engine *engine, const struct sw_core_job *job)
{
	sw_tell_change(engine, SW_CHANGE_STOPS);
	if (engine->policy->stopped != NULL)
		engine->policy->stopped(&engine->view, &job->seen);
}

void sw_tell_ended(struct sw_engine *engine, const struct sw_core_job *job)
{
	sw_tell_change(engine, SW_CHANGE_RELEASES);
	if (engine->policy->ended != NULL)
		engine->policy->ended(&engine->view, &job->seen);
	sw_lists_drop(engine, job);
}

void sw_tell_freed(struct sw_engine *engine, const struct sw_core_job *job)
{
	sw_tell_change(engine, SW_CHANGE_RELEASES);
	if (engine->policy->freed != NULL)
		engine->policy->freed(&engine->view, &job->seen);
}

void sw_tell_alarm(struct sw_engine *engine, const struct sw_core_job *job)
{
	sw_tell_change(engine, SW_CHANGE_ALARMS);
	if (engine->policy->alarm != NULL)
		engine->policy->alarm(&engine->view, &job->seen);
}

void sw_tell_expired(struct sw_engine *engine, const struct sw_core_job *job)
{
	sw_tell_change(engine, SW_CHANGE_LEASES);
	if (engine->policy->expired != NULL)
		engine->policy->expired(&engine->view, &job->seen);
}

void sw_tell_answered(struct sw_engine *engine, const struct sw_solution *solution)
{
	sw_tell_change(engine, SW_CHANGE_ANSWERS);
	engine->policy->answered(&engine->view, solution); /* it asked, so it has one */
}

void sw_tell_hold_over(struct sw_engine *engine, const struct sw_core_job *job)
{
	if (engine->policy->expired != NULL)
		engine->policy->expired(&engine->view, &job->seen);
}
