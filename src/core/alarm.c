/* Alarms of jobs: a heap by due time. Slack lets the engine wait for an event that comes anyway. */
#include <stdlib.h>

#include "core/state.h"

void sw_alarm_set(struct sw_view *view, const struct sw_job *seen, sw_ns due, sw_ns slack)
{
	struct sw_engine *engine = view->engine;
	struct sw_core_job *job = sw_engine_own(engine, seen);
	if (job == NULL || job->seen.state > SW_JOB_RUNNING) {
		engine->plan.misuses++;
		return;
	}
	job->alarm_slack = slack < 0 ? 0 : slack;
	/* An alarm for the past or for now rings at the next instant there is. */
	sw_heap_set(&engine->alarms, seen->id.v, due > engine->now ? due : engine->now + 1);
}

void sw_alarm_clear(struct sw_view *view, const struct sw_job *job)
{
	if (sw_engine_own(view->engine, job) != NULL)
		sw_heap_remove(&view->engine->alarms, job->id.v);
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
		sw_heap_remove(&engine->alarms, id);
		uint32_t *slot = sw_vec_push(&engine->ringing);
		if (slot == NULL)
			break; /* the rest rings at the next step */
		*slot = id;
	}
	if (engine->ringing.count > 1)
		qsort(engine->ringing.items, engine->ringing.count, sizeof *engine->ringing.items, by_id);
	for (size_t i = 0; i < engine->ringing.count && engine->policy->alarm != NULL; i++)
		engine->policy->alarm(&engine->view, &engine->jobs.items[engine->ringing.items[i]].seen);
}

/* The earliest due + slack. Entries due after the best found so far cannot beat it, nor can those below them in the heap. */
static sw_ns earliest(const struct sw_engine *engine, uint32_t at, sw_ns best)
{
	const struct sw_heap *heap = &engine->alarms;
	if (at >= heap->count || heap->entries[at].key >= best)
		return best;
	sw_ns slack = engine->jobs.items[heap->entries[at].id].alarm_slack;
	if (heap->entries[at].key <= INT64_MAX - slack && heap->entries[at].key + slack < best)
		best = heap->entries[at].key + slack;
	for (uint32_t child = 4 * at + 1; child <= 4 * at + 4; child++)
		best = earliest(engine, child, best);
	return best;
}

sw_ns sw_alarms_next(const struct sw_engine *engine)
{
	return earliest(engine, 0, SW_TIME_NEVER);
}
