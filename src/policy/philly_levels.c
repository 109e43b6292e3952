/* The levels of locality of philly, each a placement rule:
 *	0: one rack, as few nodes as would do were they idle;
 *	1: one rack, up to twice as many nodes;
 *	2: one rack, any nodes;
 *	3: any nodes.
 * A rule looks for the best place of level 0, then of level 1, and so on up to its own. Of
 * several racks the one with most nodes that suit comes first. In a rack as few nodes as
 * possible: the emptiest ones, and for the rest the tightest gap. Jobs of one GPU fill the
 * tightest gap of the cluster. */
#include "policy/philly.h"

#define NODE_GPUS_MAX 64u

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
	return b == 0 ? 0 : a / b + (a % b != 0);
}

/* How many nodes of a rack whose largest has `per_node` GPUs a job may have. */
static uint32_t nodes_allowed(uint32_t level, uint32_t gpus, uint32_t per_node)
{
	uint32_t fewest = ceil_div(gpus, per_node);
	return level == 0 ? fewest : level == 1 ? 2 * fewest : UINT32_MAX;
}

/* The tightest gap for all of the rest. Nodes that are in the spot or do not suit refuse. */
static bool add_tightest(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus, struct sw_node_id from, struct sw_node_id end)
{
	struct sw_node_id node = sw_nodes_tightest(view, gpus, from, end);
	while (node.v != SW_NO_NODE.v && !sw_spot_add(spot, node, gpus, 0, 0))
		node = sw_nodes_tightest(view, gpus, (struct sw_node_id){node.v + 1}, end);
	return node.v != SW_NO_NODE.v;
}

/* The emptiest node, with all that it has, up to `most`. */
static bool add_emptiest(const struct sw_view *view, struct sw_spot *spot, uint32_t most, struct sw_node_id from, struct sw_node_id end)
{
	for (uint32_t take = most; take > 0; take--) {
		struct sw_node_id node = sw_nodes_first(view, take, from, end);
		while (node.v != SW_NO_NODE.v) {
			if (sw_spot_add(spot, node, take, 0, 0))
				return true;
			node = sw_nodes_first(view, take, (struct sw_node_id){node.v + 1}, end);
		}
	}
	return false;
}

static bool gather(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus, uint32_t nodes, struct sw_node_id from,
		   struct sw_node_id end)
{
	uint32_t most = sw_view_node_gpus_max(view);
	for (uint32_t n = 0; n < nodes; n++) {
		uint32_t missing = gpus - sw_spot_gpus(spot);
		if (missing <= most && add_tightest(view, spot, missing, from, end))
			return true;
		/* A place that this is the last node of needs no look. */
		if (n + 1 == nodes || !add_emptiest(view, spot, missing <= most ? missing - 1 : most, from, end))
			break;
	}
	sw_spot_clear(spot);
	return false;
}

static bool gather_in_rack(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus, uint32_t level, uint32_t rack)
{
	struct sw_node_id first, end;
	sw_view_rack(view, rack, &first, &end);
	return gather(view, spot, gpus, nodes_allowed(level, gpus, sw_view_rack_node_gpus_max(view, rack)), first, end);
}

/* Nodes of the rack that have as many free GPUs as each must give. */
static uint32_t count_suitable(const struct sw_view *view, uint32_t gpus, uint32_t level, uint32_t rack)
{
	uint32_t per_node = sw_view_rack_node_gpus_max(view, rack), nodes = nodes_allowed(level, gpus, per_node), count = 0;
	uint32_t each = nodes >= gpus ? 1 : level == 0 && gpus > per_node ? per_node : ceil_div(gpus, nodes);
	struct sw_node_id first, end;
	sw_view_rack(view, rack, &first, &end);
	for (struct sw_node_id node = sw_nodes_first(view, each, first, end); node.v != SW_NO_NODE.v; count++)
		node = sw_nodes_first(view, each, (struct sw_node_id){node.v + 1}, end);
	return count;
}

static bool place_in_a_rack(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus, uint32_t level)
{
	uint32_t racks = sw_view_racks(view), best = 0, most = 0;
	for (uint32_t rack = 0; rack < racks && racks > 1; rack++) {
		uint32_t count = count_suitable(view, gpus, level, rack);
		best = count > most ? rack : best;
		most = count > most ? count : most;
	}
	if (racks == 0 || gather_in_rack(view, spot, gpus, level, best))
		return racks > 0;
	for (uint32_t rack = 0; rack < racks; rack++)
		if (rack != best && gather_in_rack(view, spot, gpus, level, rack))
			return true;
	return false;
}

static bool place_up_to(const struct sw_view *view, uint32_t gpus, struct sw_spot *spot, uint32_t level)
{
	struct sw_node_id first = {0}, end = {sw_view_nodes(view)};
	if (gpus == 1)
		return add_tightest(view, spot, 1, first, end);
	for (uint32_t l = 0; l <= level && l + 1 < SW_PHILLY_LEVELS; l++)
		if (place_in_a_rack(view, spot, gpus, l))
			return true;
	return level + 1 == SW_PHILLY_LEVELS && sw_view_racks(view) > 1 && gather(view, spot, gpus, UINT32_MAX, first, end);
}

#define LEVEL(n)                                                                                                         \
	static bool place_##n(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot) \
	{                                                                                                                \
		(void)job;                                                                                               \
		return place_up_to(view, gpus, spot, n);                                                                 \
	}

LEVEL(0)
LEVEL(1)
LEVEL(2)
LEVEL(3)

const struct sw_placement sw_philly_levels[SW_PHILLY_LEVELS] = {
	{.abi = SW_POLICY_ABI, .name = "philly-0", .about = "the fewest nodes of one rack", .place = place_0},
	{.abi = SW_POLICY_ABI, .name = "philly-1", .about = "up to twice as many nodes of one rack", .place = place_1},
	{.abi = SW_POLICY_ABI, .name = "philly-2", .about = "any nodes of one rack", .place = place_2},
	{.abi = SW_POLICY_ABI, .name = "philly-3", .about = "any nodes", .place = place_3},
};

/* ---- were the cluster idle */

static uint32_t first_level_in_rack(const struct sw_view *view, const struct sw_job *job, uint32_t rack)
{
	uint32_t with[NODE_GPUS_MAX + 1] = {0}, missing = job->gpus, nodes = 0;
	struct sw_node_id at, end;
	for (sw_view_rack(view, rack, &at, &end); at.v < end.v; at.v++) {
		struct sw_node node;
		sw_view_node(view, at, &node);
		if (node.up && node.gpus <= NODE_GPUS_MAX && node.gpu_memory_bytes >= job->gpu_memory_bytes)
			with[node.gpus]++;
	}
	for (uint32_t gpus = NODE_GPUS_MAX; gpus > 0 && missing > 0; gpus--) {
		uint32_t wanted = ceil_div(missing, gpus), taken = wanted < with[gpus] ? wanted : with[gpus];
		nodes += taken;
		missing -= taken * gpus < missing ? taken * gpus : missing;
	}
	if (missing > 0)
		return SW_PHILLY_LEVELS - 1;
	uint32_t level = 0;
	while (nodes > nodes_allowed(level, job->gpus, sw_view_rack_node_gpus_max(view, rack)))
		level++;
	return level;
}

uint32_t sw_philly_first_level(const struct sw_view *view, const struct sw_job *job)
{
	uint32_t best = job->gpus <= sw_view_node_gpus_min(view) && job->gpu_memory_bytes == 0 ? 0 : SW_PHILLY_LEVELS - 1;
	for (uint32_t rack = 0; rack < sw_view_racks(view) && best > 0; rack++) {
		uint32_t level = first_level_in_rack(view, job, rack);
		best = level < best ? level : best;
	}
	return best;
}
