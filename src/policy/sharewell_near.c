#include "policy/sharewell.h"

/* Whole nodes for what fills them, idle ones in index order, and the tightest gap for the rest. */
static bool gather(const struct sw_view *view, uint32_t gpus, struct sw_spot *spot, struct sw_node_id first, struct sw_node_id end)
{
	uint32_t most = sw_view_node_gpus_max(view);
	struct sw_node_id from = first;
	while (gpus - sw_spot_gpus(spot) > most) {
		struct sw_node_id node = sw_nodes_first(view, most, from, end);
		if (node.v == SW_NO_NODE.v)
			return false;
		(void)sw_spot_add(spot, node, most, 0, 0); /* one that does not suit adds nothing */
		from.v = node.v + 1;
	}
	uint32_t rest = gpus - sw_spot_gpus(spot);
	struct sw_node_id node = sw_nodes_tightest(view, rest, first, end);
	while (node.v != SW_NO_NODE.v && !sw_spot_add(spot, node, rest, 0, 0))
		node = sw_nodes_tightest(view, rest, (struct sw_node_id){node.v + 1}, end);
	return node.v != SW_NO_NODE.v;
}

static bool place(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot)
{
	(void)job;
	for (uint32_t rack = 0; rack < sw_view_racks(view) && sw_view_racks(view) > 1; rack++) {
		struct sw_node_id first, end;
		sw_view_rack(view, rack, &first, &end);
		if (gather(view, gpus, spot, first, end))
			return true;
		sw_spot_clear(spot);
	}
	return gather(view, gpus, spot, (struct sw_node_id){0}, (struct sw_node_id){sw_view_nodes(view)});
}

const struct sw_placement sw_sharewell_near = {
	.abi = SW_POLICY_ABI, .name = "near", .about = "on as few nodes as can hold it, one rack if possible", .place = place};
