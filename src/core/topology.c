#include "core/topology.h"

#include <string.h>

static int check_nodes(const struct sw_topology_node *nodes, uint32_t count, struct sw_err *err)
{
	uint64_t gpus = 0;
	if (count == 0 || count > SW_CLUSTER_NODES_MAX)
		return sw_err_set(err, SW_EINPUT, "a cluster has 1 to %u nodes, not %u", SW_CLUSTER_NODES_MAX, count);
	for (uint32_t n = 0; n < count; n++) {
		if (nodes[n].gpus > SW_NODE_GPUS_MAX)
			return sw_err_set(err, SW_EINPUT, "node %u has %u GPUs, the most is %u", n, nodes[n].gpus, SW_NODE_GPUS_MAX);
		uint32_t expected = n == 0 ? 0 : nodes[n - 1].rack;
		if (nodes[n].rack != expected && (n == 0 || nodes[n].rack != expected + 1))
			return sw_err_set(err, SW_EINPUT, "racks must be numbered in runs, and node %u is in rack %u", n, nodes[n].rack);
		gpus += nodes[n].gpus;
	}
	if (gpus == 0 || gpus > SW_CLUSTER_GPUS_MAX)
		return sw_err_set(err, SW_EINPUT, "a cluster has 1 to %u GPUs, not %llu", SW_CLUSTER_GPUS_MAX, (unsigned long long)gpus);
	return 0;
}

int sw_topology_new(const struct sw_topology_node *nodes, uint32_t count, struct sw_topology **ret_topology, struct sw_err *err)
{
	int r = check_nodes(nodes, count, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = calloc(1, sizeof *topology);
	if (topology == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory for a cluster of %u nodes", count);
	topology->rack_count = nodes[count - 1].rack + 1;
	topology->nodes = malloc(count * sizeof *nodes);
	topology->rack_first = calloc(topology->rack_count + 1, sizeof *topology->rack_first);
	if (topology->nodes == NULL || topology->rack_first == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory for a cluster of %u nodes", count);
	memcpy(topology->nodes, nodes, count * sizeof *nodes);
	topology->node_count = count;
	for (uint32_t n = 0; n < count; n++) {
		topology->rack_first[nodes[n].rack + 1] = n + 1;
		topology->gpu_count += nodes[n].gpus;
		if (n == 0 || nodes[n].gpu_memory_bytes < topology->gpu_memory_min_bytes)
			topology->gpu_memory_min_bytes = nodes[n].gpu_memory_bytes;
		if (nodes[n].gpus > topology->node_gpus_max)
			topology->node_gpus_max = nodes[n].gpus;
	}
	*ret_topology = SW_TAKE(topology);
	return 0;
}

void sw_topology_free(struct sw_topology *topology)
{
	if (topology == NULL)
		return;
	free(topology->nodes);
	free(topology->rack_first);
	free(topology);
}
