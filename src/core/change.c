/* Changes to a job that does not run: its GPU memory, and the node that it keeps off.
 *
 * A job keeps off a node only while it has a place elsewhere. That is a place on the nodes that are
 * up and open, if they were empty but for GPUs that are shut. */
#include "core/state.h"

/* Whether the job, as it is now, has a place on the nodes that are up and open, were they empty. */
static bool has_place(struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_ledger *empty = &engine->empty;
	for (uint32_t n = 0; n < engine->topology->node_count; n++) {
		const struct sw_ledger_node *node = &engine->ledger.nodes[n];
		bool up = node->up || node->power != SW_POWER_ON;
		sw_ledger_set_closed(empty, n, !up || node->closed || n == job->avoid);
		sw_ledger_set_shut(empty, n, node->shut);
	}
	struct sw_spot spot;
	sw_spot_begin(&spot, empty, sw_share_of(&job->seen));
	bool found = engine->config.placement->place(&engine->empty_view, &job->seen, job->seen.gpus, &spot) && spot.gpus == job->seen.gpus;
	if (!found && sw_order_takes_any_place(engine)) {
		sw_spot_clear(&spot);
		found = sw_spot_fill(&engine->empty_view, &spot, job->seen.gpus);
	}
	sw_spot_discard(&spot);
	for (uint32_t n = 0; n < engine->topology->node_count; n++) {
		sw_ledger_set_closed(empty, n, false);
		sw_ledger_set_shut(empty, n, 0);
	}
	return found;
}

/* Whether any GPU of the cluster is large enough. */
static bool is_there_such_memory(const struct sw_engine *engine, uint64_t bytes)
{
	for (uint32_t n = 0; n < engine->topology->node_count; n++)
		if (engine->topology->nodes[n].gpus > 0 && engine->topology->nodes[n].gpu_memory_bytes >= bytes)
			return true;
	return false;
}

int sw_change_job(struct sw_engine *engine, struct sw_core_job *job, uint64_t gpu_memory_bytes, uint32_t avoid)
{
	uint64_t before = job->asked_memory_bytes;
	engine->avoiders -= job->avoid != UINT32_MAX;
	job->avoid = UINT32_MAX;
	if (is_there_such_memory(engine, gpu_memory_bytes)) {
		job->seen.gpu_memory_bytes = job->asked_memory_bytes = gpu_memory_bytes;
		int r = sw_order_change_lane(engine, job);
		if (r < 0)
			return r;
		if (!engine->config.terms.may_grow && !engine->order.lanes.items[job->lane].possible)
			job->seen.gpu_memory_bytes = job->asked_memory_bytes = before;
	}
	if (avoid < engine->topology->node_count) {
		job->avoid = avoid;
		if (has_place(engine, job))
			engine->avoiders++;
		else
			job->avoid = UINT32_MAX;
	}
	return sw_order_change_lane(engine, job);
}

int sw_change_recheck(struct sw_engine *engine)
{
	for (uint32_t id = sw_engine_next(engine, 0); engine->avoiders > 0 && id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (job->avoid == UINT32_MAX)
			continue;
		bool matters = job->seen.state <= SW_JOB_RUNNING;
		if (matters && has_place(engine, job))
			continue;
		job->avoid = UINT32_MAX;
		engine->avoiders--;
		int r = matters ? sw_order_change_lane(engine, job) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}
