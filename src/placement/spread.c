/* The emptiest nodes first, one GPU after the other: least heat and least contention for host CPUs
 * and memory, most fragmentation. */
#include <sharewell/policy.h>

static bool place(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot)
{
	(void)job;
	const struct sw_node_id end = {sw_view_nodes(view)};
	/* Levels of free GPUs from the top: every node gives one GPU before any gives two. A node
	 * gives all of its GPUs in one part, so first find how many each must give at most. */
	uint32_t nodes = 0, most = sw_view_node_gpus_max(view);
	for (struct sw_node_id node = sw_nodes_first(view, 1, (struct sw_node_id){0}, end); node.v != SW_NO_NODE.v && nodes < gpus;
	     node = sw_nodes_first(view, 1, (struct sw_node_id){node.v + 1}, end))
		nodes++;
	if (nodes == 0)
		return false;
	for (uint32_t each = (gpus + nodes - 1) / nodes; each <= most; each++) {
		for (uint32_t level = most; level > 0 && sw_spot_gpus(spot) < gpus; level--) {
			struct sw_node_id node = sw_nodes_tightest(view, level, (struct sw_node_id){0}, end);
			while (node.v != SW_NO_NODE.v && sw_spot_gpus(spot) < gpus) {
				struct sw_node seen;
				sw_view_node(view, node, &seen);
				uint32_t missing = gpus - sw_spot_gpus(spot), take = seen.gpus_free < each ? seen.gpus_free : each;
				if (seen.gpus_free == level)
					(void)sw_spot_add(spot, node, take < missing ? take : missing, 0, 0);
				node = sw_nodes_first(view, level, (struct sw_node_id){node.v + 1}, end);
			}
		}
		if (sw_spot_gpus(spot) == gpus)
			return true;
		sw_spot_clear(spot);
	}
	return false;
}

const struct sw_placement sw_placement_spread = {
	.abi = SW_POLICY_ABI,
	.name = "spread",
	.about = "emptiest nodes first, as few GPUs on each as possible",
	.counts_only = true,
	.place = place,
};
