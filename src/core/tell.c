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
	if (ledger->gpus_up != engine->gpus_up_left || ledger->gpus_free != engine->gpus_free_left)
		engine->changes |= SW_CHANGE_CAPACITY;
}

void sw_tell_end(struct sw_engine *engine)
{
	engine->changes = 0;
	engine->gpus_up_left = engine->ledger.gpus_up;
	engine->gpus_free_left = engine->ledger.gpus_free;
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
