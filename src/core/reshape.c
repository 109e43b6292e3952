/* A node that has other GPUs than it had.
 *
 * A run whose GPUs are all still there goes on, under their new numbers. Other runs stop and wait
 * again. The same is true of homes. So that the ledger need not know any of this, everything
 * on the node is given back before the change and taken again after it. */
#include "core/state.h"

bool sw_reshape_is_sound(const struct sw_topology_change *change)
{
	uint64_t taken = 0;
	for (uint32_t g = 0; g < SW_NODE_GPUS_MAX; g++) {
		uint64_t now = sw_topology_renumber(change, UINT64_C(1) << g);
		if ((taken & now) != 0)
			return false;
		taken |= now;
	}
	return true;
}

/* Whether these parts can stay, as far as they are on the node. */
static bool can_stay(const struct sw_engine *engine, uint32_t parts, uint32_t node, const struct sw_topology_change *change)
{
	const struct sw_ledger *ledger = &engine->ledger;
	bool has_less = sw_topology_has_less(&engine->topology->nodes[node], &change->shape);
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		uint64_t mask = ledger->parts[p].mask;
		if (ledger->parts[p].node == node &&
		    (has_less || __builtin_popcountll(sw_topology_renumber(change, mask)) != __builtin_popcountll(mask)))
			return false;
	}
	return true;
}

/* Whether a run that is on its way finds the GPUs that it leaves, should it have to stay. Else it
 * may never get to the others either. */
static bool is_left(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t node, const struct sw_topology_change *change)
{
	uint32_t parts = job->seen.state == SW_JOB_RUNNING ? job->parts : job->stands;
	uint64_t now = sw_topology_renumber(change, job->leaves);
	return engine->ledger.parts[parts].node != node || __builtin_popcountll(now) == __builtin_popcountll(job->leaves);
}

static void renumber(struct sw_engine *engine, uint32_t parts, uint32_t node, const struct sw_topology_change *change)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		if (engine->ledger.parts[p].node == node)
			engine->ledger.parts[p].mask = sw_topology_renumber(change, engine->ledger.parts[p].mask);
}

/* Stops the jobs that cannot stay. */
static void clear_out(struct sw_engine *engine, uint32_t node, const struct sw_topology_change *change)
{
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		bool has_left = job->leaves == 0 || is_left(engine, job, node, change);
		if (!can_stay(engine, job->parts, node, change))
			sw_engine_lose(engine, job, SW_REASON_NODE_LOST);
		else if (!has_left && job->seen.state == SW_JOB_RUNNING)
			sw_move_lose(engine, job);
		if (!can_stay(engine, job->home, node, change) || (!has_left && job->stands != SW_NO_PART))
			sw_engine_lose_home(engine, job, SW_REASON_NODE_LOST);
	}
}

/* Gives back what the others hold or would like to come back to; or takes it again,
 * under its new numbers. */
static void lift(struct sw_engine *engine, uint32_t node, const struct sw_topology_change *change, bool again)
{
	struct sw_ledger *ledger = &engine->ledger;
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		uint32_t at = job->seen.state == SW_JOB_RUNNING ? job->parts : job->home;
		if (again && job->leaves != 0 && sw_ledger_touches(ledger, at, node))
			job->leaves = sw_topology_renumber(change, job->leaves);
		if (sw_ledger_touches(ledger, job->parts, node)) {
			if (again)
				renumber(engine, job->parts, node, change);
			(again ? sw_ledger_take : sw_ledger_give)(ledger, job->parts, sw_share_of(&job->seen));
		}
		if (sw_ledger_touches(ledger, job->home, node)) {
			if (again) {
				renumber(engine, job->home, node, change);
				sw_engine_set_home(engine, job, job->home);
			} else {
				sw_engine_rise(engine, job);
				sw_ledger_mark_home(ledger, job->home, false);
			}
		}
	}
}

int sw_reshape_node(struct sw_engine *engine, uint32_t node, const struct sw_topology_change *change)
{
	struct sw_ledger *ledgers[] = {&engine->ledger, &engine->empty};
	uint32_t gpus_before = engine->topology->nodes[node].gpus;
	uint64_t shut = sw_topology_renumber(change, engine->ledger.nodes[node].shut);
	sw_power_is_up(engine, node); /* with the GPUs that it had */
	clear_out(engine, node, change);
	lift(engine, node, change, false);
	sw_ledger_set_shut(&engine->ledger, node, 0);
	for (int l = 0; l < 2; l++)
		sw_ledger_set_up(ledgers[l], node, false);
	sw_topology_change(engine->topology, node, &change->shape);
	for (int l = 0; l < 2; l++) {
		sw_ledger_change_node(ledgers[l], node, gpus_before);
		sw_ledger_set_up(ledgers[l], node, true);
	}
	sw_ledger_set_shut(&engine->ledger, node, shut);
	lift(engine, node, change, true);
	/* What is possible on the empty cluster has changed. */
	return sw_order_rebuild(engine);
}
