/* Whole idle nodes for large jobs, shared by the rules that consolidate. */
#ifndef SW_PLACEMENT_IDLE_NODES_H
#define SW_PLACEMENT_IDLE_NODES_H

#include <sharewell/policy.h>

/* Adds completely idle nodes of [first, end), the largest (`most` GPUs) first and in
 * index order, while the rest of the job fills them. What is left for a node that need
 * not be idle is the caller's. */
static inline void sw_take_idle_nodes(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus, uint32_t most, uint32_t cpus_per_gpu,
				      uint64_t memory_per_gpu, struct sw_node_id first, struct sw_node_id end)
{
	uint32_t least = sw_view_node_gpus_min(view);
	for (uint32_t size = most; size > 0 && size >= least && sw_spot_gpus(spot) < gpus; size--) {
		struct sw_node_id node = sw_nodes_tightest(view, size, first, end);
		while (node.v != SW_NO_NODE.v && gpus - sw_spot_gpus(spot) >= size) {
			struct sw_node seen;
			sw_view_node(view, node, &seen);
			/* The tightest fit has more: of those with just so many free, idle ones
			 * among them, none is left. */
			if (seen.gpus_free != size)
				break;
			if (seen.gpus == size)
				(void)sw_spot_add(spot, node, size, size * cpus_per_gpu, size * memory_per_gpu);
			node = sw_nodes_tightest(view, size, (struct sw_node_id){node.v + 1}, end);
		}
	}
}

#endif
