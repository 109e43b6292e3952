/* Power of nodes: the policy switches those off that hold nothing, and on again; the driver says
 * when one that was switched on is up.
 *
 * A node that is off, or not up yet, is down to the ledger. It still counts for what could ever
 * fit, so jobs that need it wait.
 *
 * Invariants (sw_engine_validate() checks them, as number 15):
 *  1. a node whose power is not on is not up, and nothing is held or stands there;
 *  2. the engine counts the nodes that are off, and their GPUs.
 */
#include "core/state.h"

static void set_power(struct sw_engine *engine, uint32_t node, enum sw_power power)
{
	struct sw_ledger_node *n = &engine->ledger.nodes[node];
	uint32_t gpus = engine->topology->nodes[node].gpus;
	bool was_off = n->power == SW_POWER_OFF, is_off = power == SW_POWER_OFF;
	engine->nodes_off += (uint32_t)is_off - (uint32_t)was_off;
	engine->gpus_off += (is_off ? gpus : 0) - (was_off ? gpus : 0);
	n->power = (uint8_t)power;
}

static void command(struct sw_engine *engine, enum sw_command_kind kind, uint32_t node)
{
	sw_engine_command(engine, (struct sw_command){.kind = (uint8_t)kind, .job = UINT32_MAX, .parts = SW_NO_PART, .node = node});
}

static void switch_on(struct sw_engine *engine, uint32_t node)
{
	set_power(engine, node, SW_POWER_BOOTING);
	command(engine, SW_CMD_NODE_ON, node);
}

/* ---- what the driver says */

void sw_power_is_up(struct sw_engine *engine, uint32_t node)
{
	set_power(engine, node, SW_POWER_ON);
}

void sw_power_is_down(struct sw_engine *engine, uint32_t node)
{
	if (engine->ledger.nodes[node].power == SW_POWER_BOOTING)
		set_power(engine, node, SW_POWER_ON);
}

void sw_power_load(struct sw_engine *engine, uint32_t node, uint8_t power)
{
	set_power(engine, node, (enum sw_power)power);
}

void sw_power_restore(struct sw_engine *engine)
{
	for (uint32_t n = 0; engine->nodes_off > 0 && n < engine->topology->node_count; n++)
		if (engine->ledger.nodes[n].power == SW_POWER_OFF)
			switch_on(engine, n);
	engine->restores_power = false;
}

/* ---- the verb */

/* Whether this decision has taken a run off the node: its processes are there still. */
static bool was_left_now(const struct sw_plan *plan, uint32_t node)
{
	for (size_t e = 0; e < plan->entries.count; e++) {
		const struct sw_plan_entry *entry = &plan->entries.items[e];
		if (entry->before.state == SW_JOB_RUNNING && sw_ledger_touches(&plan->engine->ledger, entry->parts_before, node))
			return true;
	}
	return false;
}

static bool holds_nothing(const struct sw_engine *engine, uint32_t node)
{
	const struct sw_ledger_node *n = &engine->ledger.nodes[node];
	for (uint32_t g = 0; g < engine->topology->nodes[node].gpus; g++)
		if (engine->ledger.gpus[n->first_gpu + g].residents > 0)
			return false;
	return n->homes == 0 && n->standing == 0 && !sw_holds_touch(engine, node);
}

static enum sw_answer switch_off(struct sw_plan *plan, uint32_t node)
{
	struct sw_engine *engine = plan->engine;
	const struct sw_ledger_node *n = &engine->ledger.nodes[node];
	if (!n->up || n->closed || !holds_nothing(engine, node) || was_left_now(plan, node))
		return SW_NO_ROOM;
	sw_ledger_set_up(&engine->ledger, node, false);
	set_power(engine, node, SW_POWER_OFF);
	command(engine, SW_CMD_NODE_OFF, node);
	return SW_YES;
}

enum sw_answer sw_plan_node(struct sw_plan *plan, struct sw_node_id node, bool on)
{
	struct sw_engine *engine = plan->engine;
	if (node.v >= engine->topology->node_count || (engine->ledger.nodes[node.v].power == SW_POWER_OFF) != on)
		return sw_plan_misuse(plan);
	if (!engine->config.terms.nodes_switch)
		return SW_KEPT;
	if (!on)
		return switch_off(plan, node.v);
	switch_on(engine, node.v);
	return SW_YES;
}
