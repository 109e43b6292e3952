/* Consolidated placement as clusters run by YARN did it: all GPUs of a job in one rack. Up to a
 * node's GPUs are on the first node in index order that has room. More are on completely idle nodes
 * plus one more node for the rest. All or nothing, no spill.
 *
 * Each worker takes CPUs and host memory. A job of one GPU has 2 CPUs, others 6 per GPU (2 for the
 * worker, 4 for its parameter server). A job on one node has 5 GB, those on several (11 + 0.1 x
 * GPUs) GB per GPU. A job that says how much it needs overrides this.
 */
#include <sharewell/policy.h>

#include "placement/idle_nodes.h"

#define GB UINT64_C(1073741824)
#define WORKER_MEMORY (5 * GB)

struct need {
	uint32_t cpus_per_gpu;
	uint64_t memory_per_gpu; /* on jobs over several nodes */
	uint64_t memory_on_one_node;
};

static struct need need_of(const struct sw_job *job, uint32_t gpus)
{
	struct need need = {
		.cpus_per_gpu = job->cpus != 0 ? job->cpus
				: gpus == 1    ? 2
					       : 6,
		.memory_per_gpu = 11 * GB + gpus * GB / 10,
		.memory_on_one_node = WORKER_MEMORY,
	};
	if (job->host_memory_bytes != 0) {
		need.memory_per_gpu = job->host_memory_bytes;
		need.memory_on_one_node = job->host_memory_bytes * gpus;
	}
	return need;
}

/* The first node that has room, from `from` on. */
static bool add_first(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus, uint32_t cpus, uint64_t memory,
		      struct sw_node_id from, struct sw_node_id end)
{
	struct sw_node_id node = sw_nodes_first(view, gpus, from, end);
	while (node.v != SW_NO_NODE.v) {
		if (sw_spot_add(spot, node, gpus, cpus, memory))
			return true;
		node = sw_nodes_first(view, gpus, (struct sw_node_id){node.v + 1}, end);
	}
	return false;
}

static bool place_in_rack(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot, uint32_t per_node,
			  struct sw_node_id first, struct sw_node_id end)
{
	struct need need = need_of(job, gpus);
	if (per_node == 0)
		return false;
	if (gpus <= per_node)
		return add_first(view, spot, gpus, gpus * need.cpus_per_gpu, need.memory_on_one_node, first, end);
	sw_take_idle_nodes(view, spot, gpus, per_node, need.cpus_per_gpu, need.memory_per_gpu, first, end);
	uint32_t rest = gpus - sw_spot_gpus(spot);
	return rest == 0 ||
	       (rest < per_node && add_first(view, spot, rest, rest * need.cpus_per_gpu, rest * need.memory_per_gpu, first, end));
}

static bool place(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot)
{
	for (uint32_t rack = 0; rack < sw_view_racks(view); rack++) {
		struct sw_node_id first, end;
		sw_view_rack(view, rack, &first, &end);
		if (place_in_rack(view, job, gpus, spot, sw_view_rack_node_gpus_max(view, rack), first, end))
			return true;
		if (sw_spot_gpus(spot) > 0)
			sw_spot_clear(spot);
	}
	return false;
}

const struct sw_placement sw_placement_yarn = {
	.abi = SW_POLICY_ABI,
	.name = "yarn",
	.about = "consolidated in one rack: the first node with room, or idle nodes plus one; no spill",
	.place = place,
};
