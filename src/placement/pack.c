/* Best fit: the tightest node that holds the whole job. A larger job takes idle nodes and then the
 * tightest for the rest. If there is no such place, it gets as few nodes as possible, fullest gaps
 * first. Keeps whole nodes free for large jobs. Looks for one rack first. */
#include <sharewell/policy.h>

static bool gather(const struct sw_view *view, uint32_t gpus, struct sw_spot *spot, struct sw_node_id first, struct sw_node_id end)
{
	while (sw_spot_gpus(spot) < gpus) {
		uint32_t missing = gpus - sw_spot_gpus(spot), most = sw_view_node_gpus_max(view);
		/* The tightest node for all of the rest, or the emptiest for as much as it has.
		 * Nodes that are in the spot already refuse; step over them. */
		bool rest_fits = missing <= most;
		struct sw_node_id node = rest_fits ? sw_nodes_tightest(view, missing, first, end) : SW_NO_NODE;
		while (node.v != SW_NO_NODE.v && !sw_spot_add(spot, node, missing, 0, 0))
			node = sw_nodes_tightest(view, missing, (struct sw_node_id){node.v + 1}, end);
		if (node.v != SW_NO_NODE.v)
			return true;
		bool added = false;
		for (uint32_t take = most < missing ? most : missing; take > 0 && !added; take--) {
			node = sw_nodes_first(view, take, first, end);
			while (node.v != SW_NO_NODE.v && !(added = sw_spot_add(spot, node, take, 0, 0)))
				node = sw_nodes_first(view, take, (struct sw_node_id){node.v + 1}, end);
		}
		if (!added)
			return false;
	}
	return true;
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

const struct sw_placement sw_placement_pack = {
	.abi = SW_POLICY_ABI,
	.name = "pack",
	.about = "best fit: fewest nodes, tightest gaps, one rack if possible",
	.counts_only = true,
	.place = place,
};
