/* Alarms of jobs. Slack lets the engine wait for an event that comes anyway. So one heap says what
 * rings by now, another when the engine must wake at the latest.
 *
 * Invariant: both heaps hold the same jobs; a job's place in `latest` is its place in `alarms`
 * plus its slack, or never.
 */
#include <stdlib.h>

#include "core/state.h"

sw_ns sw_alarm_latest(sw_ns due, sw_ns slack)
{
	return due > SW_TIME_NEVER - slack ? SW_TIME_NEVER : due + slack;
}

void sw_alarm_put(struct sw_engine *engine, struct sw_core_job *job, sw_ns due, sw_ns slack)
{
	job->alarm_slack = slack;
	sw_heap_set(&engine->alarms, job->seen.id.v, due);
	sw_heap_set(&engine->latest, job->seen.id.v, sw_alarm_latest(due, slack));
}

void sw_alarm_drop(struct sw_engine *engine, uint32_t job)
{
	sw_heap_remove(&engine->alarms, job);
	sw_heap_remove(&engine->latest, job);
}

void sw_alarm_set(struct sw_view *view, const struct sw_job *seen, sw_ns due, sw_ns slack)
{
	struct sw_engine *engine = view->engine;
	struct sw_core_job *job = sw_engine_own(engine, seen);
	if (job == NULL || job->seen.state > SW_JOB_RUNNING) {
		engine->plan.misuses++;
		return;
	}
	/* An alarm for the past or for now rings at the next instant there is. */
	sw_alarm_put(engine, job, due > engine->now ? due : engine->now + 1, slack < 0 ? 0 : slack);
}

void sw_alarm_clear(struct sw_view *view, const struct sw_job *job)
{
	if (sw_engine_own(view->engine, job) != NULL)
		sw_alarm_drop(view->engine, job->id.v);
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

void sw_alarms_ring(struct sw_engine *engine)
{
	engine->ringing.count = 0;
	while (sw_heap_top_key(&engine->alarms) <= engine->now) {
		uint32_t id = engine->alarms.entries[0].id;
		sw_alarm_drop(engine, id);
		uint32_t *slot = sw_vec_push(&engine->ringing);
		if (slot == NULL)
			break; /* the rest rings at the next step */
		*slot = id;
	}
	if (engine->ringing.count > 1)
		qsort(engine->ringing.items, engine->ringing.count, sizeof *engine->ringing.items, by_id);
	for (size_t i = 0; i < engine->ringing.count; i++)
		sw_tell_alarm(engine, &engine->jobs.items[engine->ringing.items[i]]);
}

sw_ns sw_alarms_next(const struct sw_engine *engine)
{
	return sw_heap_top_key(&engine->latest);
}
