/* Memory of the engine: it grows with jobs and nodes before a step, and is given back
 * as jobs are forgotten.
 *
 * Invariants:
 *  1. a decision finds all memory that it can need;
 *  2. a job that is not known is zero.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"

#define FORGET_BLOCK 1024u /* so many jobs that follow each other give their memory back together */

/* Room for what one decision touches: running jobs and those it starts, both bounded by
 * what the GPUs can hold. */
static int reserve_scratch(struct sw_engine *engine, uint32_t gpus, uint32_t jobs)
{
	size_t touched = 2 * (size_t)gpus * SW_GPU_RESIDENTS_MAX;
	/* Parts: one for each GPU at the most, old and new ones side by side; and one job at a
	 * time on the empty cluster. */
	if (sw_ledger_reserve_parts(&engine->ledger, 2 * gpus + engine->hold_parts) < 0 ||
	    sw_ledger_reserve_parts(&engine->empty, gpus) < 0)
		return SW_ENOMEM;
	touched = touched < jobs ? touched : jobs;
	if (sw_order_reserve(engine, (uint32_t)touched, jobs, (uint32_t)engine->jobs.room) < 0 ||
	    sw_vec_reserve(&engine->plan.entries, touched) < 0 || sw_vec_reserve(&engine->plan.lifted, touched) < 0 ||
	    sw_vec_reserve(&engine->commands, 3 * touched + jobs + SW_QUESTIONS_MAX + 3 * (engine->topology->node_count + 1)) < 0 ||
	    sw_vec_reserve(&engine->ringing, touched) < 0)
		return SW_ENOMEM;
	return 0;
}

int sw_engine_reserve_holds(struct sw_engine *engine)
{
	if (engine->holds.count > 0 && sw_ledger_reserve_parts(&engine->ledger, 3 * engine->topology->gpu_count + engine->hold_parts) < 0)
		return SW_ENOMEM;
	return sw_vec_reserve(&engine->holds, engine->holds.count + SW_HOLDS_AT_ONCE);
}

int sw_engine_reserve_node_states(struct sw_engine *engine, size_t nodes)
{
	size_t per_node = engine->node_states_each, before = engine->node_states_capacity;
	if (per_node == 0 || nodes <= before)
		return 0;
	size_t wanted = nodes + nodes / 2;
	char *grown = realloc(engine->node_states, wanted * per_node);
	if (grown == NULL)
		return SW_ENOMEM;
	memset(grown + before * per_node, 0, (wanted - before) * per_node);
	engine->node_states = grown;
	engine->node_states_capacity = wanted;
	return 0;
}

/* For numbers below `numbers`, and so many jobs among them. */
static int reserve_jobs(struct sw_engine *engine, size_t numbers, uint32_t known)
{
	if (numbers > SW_ENGINE_JOBS_MAX)
		return SW_ELIMIT;
	if (sw_table_reserve(&engine->jobs, numbers) < 0)
		return SW_ENOMEM;
	uint32_t ids = (uint32_t)(engine->jobs.room > SW_ENGINE_JOBS_MAX ? SW_ENGINE_JOBS_MAX : engine->jobs.room);
	if (sw_bitmap_reserve(&engine->known, ids) < 0 || sw_bitmap_reserve(&engine->waiting, ids) < 0 ||
	    sw_bitmap_reserve(&engine->running, ids) < 0 || sw_heap_make_room(&engine->alarms, ids, known) < 0 ||
	    sw_heap_make_room(&engine->latest, ids, known) < 0 || sw_heap_make_room(&engine->leases, ids, known) < 0 ||
	    reserve_scratch(engine, engine->topology->gpu_count, known) < 0)
		return SW_ENOMEM;
	size_t per_job = engine->job_states_each;
	return per_job > 0 ? sw_table_make_room(&engine->job_states, &engine->job_states_room, per_job, engine->jobs.room) : 0;
}

int sw_engine_reserve(struct sw_engine *engine, size_t count)
{
	if (count >= SW_ENGINE_JOBS_MAX)
		return SW_ELIMIT;
	return count == 0 ? 0 : reserve_jobs(engine, engine->jobs.count + count, engine->known.count + (uint32_t)count);
}

int sw_engine_skip(struct sw_engine *engine, uint32_t next)
{
	int r = next > engine->jobs.count ? reserve_jobs(engine, next, engine->known.count) : 0;
	if (r == 0 && next > engine->jobs.count)
		engine->jobs.count = next;
	return r;
}

struct sw_core_job *sw_engine_add(struct sw_engine *engine)
{
	assert(engine->jobs.count < engine->jobs.room);
	sw_bitmap_add(&engine->known, (uint32_t)engine->jobs.count);
	return &engine->jobs.items[engine->jobs.count++];
}

bool sw_engine_grow_tenants(struct sw_engine *engine, uint32_t tenant)
{
	while (engine->tenants.count <= tenant) {
		struct sw_tenant *slot = sw_vec_push(&engine->tenants);
		if (slot == NULL)
			return false;
		slot->quota = UINT32_MAX;
	}
	return true;
}

/* Room for one more node of this shape. */
/* `jobs` is how many will be known then. */
int sw_engine_reserve_node(struct sw_engine *engine, const struct sw_topology_node *shape, size_t jobs)
{
	int r = sw_topology_reserve(engine->topology, shape);
	if (r == 0)
		r = sw_ledger_reserve_node(&engine->ledger, shape);
	if (r == 0)
		r = sw_ledger_reserve_node(&engine->empty, shape);
	if (r == 0)
		r = reserve_scratch(engine, engine->topology->gpu_count + shape->gpus, (uint32_t)jobs);
	if (r == 0)
		r = sw_engine_reserve_node_states(engine, engine->topology->node_count + 1);
	return r;
}

/* As much as for one more node like that, whatever it gives up. */
int sw_engine_reserve_change(struct sw_engine *engine, const struct sw_topology_change *change, size_t jobs)
{
	struct sw_topology_node shape = change->shape;
	shape.rack = engine->topology->rack_count - 1;
	return sw_engine_reserve_node(engine, &shape, jobs);
}

/* ---- giving back */

/* Whether no job of this block is known, and none will be. */
static bool is_empty(const struct sw_engine *engine, uint32_t block)
{
	uint64_t end = ((uint64_t)block + 1) * FORGET_BLOCK;
	return end <= engine->jobs.count && sw_engine_next(engine, block * FORGET_BLOCK) >= end;
}

/* A page may belong to two blocks: it goes with the second of them. */
static void give_back(struct sw_engine *engine, uint32_t block)
{
	if (!is_empty(engine, block))
		return;
	uint32_t from = (block > 0 && is_empty(engine, block - 1) ? block - 1 : block) * FORGET_BLOCK;
	uint32_t to = (is_empty(engine, block + 1) ? block + 2 : block + 1) * FORGET_BLOCK;
	sw_table_clear(&engine->jobs, from, to);
	sw_oset_links_forget(&engine->order.links, from, to);
	sw_heap_forget(&engine->alarms, from, to);
	sw_heap_forget(&engine->latest, from, to);
	sw_heap_forget(&engine->leases, from, to);
	if (engine->job_states_each > 0)
		sw_table_wipe(&engine->job_states, engine->job_states_room, engine->job_states_each, from, to);
}

bool sw_engine_forget(struct sw_engine *engine, struct sw_job_id id)
{
	if (!sw_engine_knows(engine, id.v))
		return false;
	struct sw_core_job *job = &engine->jobs.items[id.v];
	/* One that ended between two decisions is still listed for the next. */
	if (job->seen.state <= SW_JOB_RUNNING || job->seen.fresh != 0)
		return false;
	engine->avoiders -= job->avoid != UINT32_MAX;
	*job = (struct sw_core_job){0};
	engine->order.links.items[id.v] = (struct sw_oset_link){0};
	if (engine->job_states_each > 0)
		memset(engine->job_states + id.v * engine->job_states_each, 0, engine->job_states_each);
	sw_bitmap_remove(&engine->known, id.v);
	give_back(engine, id.v / FORGET_BLOCK);
	return true;
}
