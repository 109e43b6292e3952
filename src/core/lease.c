/* Leases: a run that was started until a moment may be stopped from then on, and its policy hears
 * of that moment.
 *
 * Invariant: while no decision is made, the heap holds exactly the running jobs whose lease ends
 * after now.
 */
#include "core/state.h"

void sw_lease_settle(struct sw_engine *engine, const struct sw_core_job *job)
{
	bool held = job->seen.state == SW_JOB_RUNNING && job->seen.until != SW_TIME_NEVER && job->seen.until > engine->now;
	if (held)
		sw_heap_set(&engine->leases, job->seen.id.v, job->seen.until);
	else
		sw_heap_remove(&engine->leases, job->seen.id.v);
}

void sw_leases_expire(struct sw_engine *engine)
{
	while (sw_heap_top_key(&engine->leases) <= engine->now) {
		const struct sw_core_job *job = &engine->jobs.items[engine->leases.entries[0].id];
		sw_heap_remove(&engine->leases, job->seen.id.v);
		sw_tell_expired(engine, job);
	}
}

sw_ns sw_leases_next(const struct sw_engine *engine)
{
	return sw_heap_top_key(&engine->leases);
}
