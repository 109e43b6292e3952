#include "core/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int check_nodes(const struct sw_topology_node *nodes, uint32_t count, struct sw_err *err)
{
	uint64_t gpus = 0;
	if (count == 0 || count > SW_CLUSTER_NODES_MAX)
		return sw_err_set(err, SW_EINPUT, "a cluster has 1 to %u nodes, not %u", SW_CLUSTER_NODES_MAX, count);
	for (uint32_t n = 0; n < count; n++) {
		if (nodes[n].gpus > SW_NODE_GPUS_MAX)
			return sw_err_set(err, SW_EINPUT, "node %u has %u GPUs, the most is %u", n, nodes[n].gpus, SW_NODE_GPUS_MAX);
		if (nodes[n].gpu_type >= SW_GPU_TYPES_MAX)
			return sw_err_set(err, SW_EINPUT, "a cluster has GPUs of at most %u types", SW_GPU_TYPES_MAX);
		uint32_t expected = n == 0 ? 0 : nodes[n - 1].rack;
		if (nodes[n].rack != expected && (n == 0 || nodes[n].rack != expected + 1))
			return sw_err_set(err, SW_EINPUT, "racks must be numbered in runs, and node %u is in rack %u", n, nodes[n].rack);
		gpus += nodes[n].gpus;
	}
	if (gpus == 0 || gpus > SW_CLUSTER_GPUS_MAX)
		return sw_err_set(err, SW_EINPUT, "a cluster has 1 to %u GPUs, not %llu", SW_CLUSTER_GPUS_MAX, (unsigned long long)gpus);
	return 0;
}

int sw_topology_new_empty(struct sw_topology **ret_topology)
{
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = calloc(1, sizeof *topology);
	if (topology == NULL)
		return SW_ENOMEM;
	topology->rack_first = calloc(1, sizeof *topology->rack_first);
	if (topology->rack_first == NULL)
		return SW_ENOMEM;
	*ret_topology = SW_TAKE(topology);
	return 0;
}

static int make_room(struct sw_topology *topology, uint32_t nodes, uint32_t racks)
{
	if (nodes > topology->node_capacity) {
		uint32_t wanted = topology->node_capacity + topology->node_capacity / 2 + 8;
		wanted = wanted < nodes ? nodes : wanted;
		struct sw_topology_node *grown = realloc(topology->nodes, wanted * sizeof *grown);
		if (grown == NULL)
			return SW_ENOMEM;
		topology->nodes = grown;
		topology->node_capacity = wanted;
	}
	if (racks > topology->rack_capacity) {
		uint32_t wanted = topology->rack_capacity + topology->rack_capacity / 2 + 8;
		wanted = wanted < racks ? racks : wanted;
		uint32_t *first = realloc(topology->rack_first, (wanted + 1) * sizeof *first);
		if (first == NULL)
			return SW_ENOMEM;
		topology->rack_first = first;
		uint32_t *largest = realloc(topology->rack_node_gpus, wanted * sizeof *largest);
		if (largest == NULL)
			return SW_ENOMEM;
		topology->rack_node_gpus = largest;
		uint32_t *all = realloc(topology->rack_gpus, wanted * sizeof *all);
		if (all == NULL)
			return SW_ENOMEM;
		topology->rack_gpus = all;
		topology->rack_capacity = wanted;
	}
	return 0;
}

int sw_topology_reserve(struct sw_topology *topology, const struct sw_topology_node *node)
{
	if (node->rack > topology->rack_count || node->rack + 1 < topology->rack_count)
		return SW_EINPUT;
	if (node->gpus > SW_NODE_GPUS_MAX || node->gpu_type >= SW_GPU_TYPES_MAX || topology->node_count >= SW_CLUSTER_NODES_MAX ||
	    topology->gpu_count + node->gpus > SW_CLUSTER_GPUS_MAX)
		return SW_ELIMIT;
	return make_room(topology, topology->node_count + 1, node->rack + 1);
}

/* What the n-th node adds to what is known of all up to it. */
static void count_in(struct sw_topology *topology, uint32_t n)
{
	const struct sw_topology_node *node = &topology->nodes[n];
	if (node->gpus > topology->rack_node_gpus[node->rack])
		topology->rack_node_gpus[node->rack] = node->gpus;
	topology->rack_gpus[node->rack] += node->gpus;
	if (topology->rack_gpus[node->rack] > topology->rack_gpus_max)
		topology->rack_gpus_max = topology->rack_gpus[node->rack];
	uint32_t group = node->link_group == 0 ? node->gpus : node->link_group;
	if (group > topology->link_gpus_max)
		topology->link_gpus_max = group;
	topology->gpu_count += node->gpus;
	topology->gpu_types |= UINT64_C(1) << node->gpu_type;
	if (n == 0 || node->gpu_memory_bytes < topology->gpu_memory_min_bytes)
		topology->gpu_memory_min_bytes = node->gpu_memory_bytes;
	if (node->gpus > 0 && (topology->node_gpus_min == 0 || node->gpus < topology->node_gpus_min))
		topology->node_gpus_min = node->gpus;
	if (node->gpus > topology->node_gpus_max)
		topology->node_gpus_max = node->gpus;
}

void sw_topology_add(struct sw_topology *topology, const struct sw_topology_node *node)
{
	assert(topology->rack_node_gpus != NULL); /* room was made */
	if (node->rack == topology->rack_count) {
		topology->rack_node_gpus[node->rack] = topology->rack_gpus[node->rack] = 0;
		topology->rack_count++;
	}
	topology->nodes[topology->node_count++] = *node;
	topology->rack_first[topology->rack_count] = topology->node_count;
	count_in(topology, topology->node_count - 1);
}

void sw_topology_change(struct sw_topology *topology, uint32_t node, const struct sw_topology_node *shape)
{
	uint32_t rack = topology->nodes[node].rack;
	topology->nodes[node] = *shape;
	topology->nodes[node].rack = rack;
	topology->gpu_count = topology->node_gpus_max = topology->node_gpus_min = 0;
	topology->link_gpus_max = topology->rack_gpus_max = 0;
	topology->gpu_types = 0;
	memset(topology->rack_node_gpus, 0, topology->rack_count * sizeof *topology->rack_node_gpus);
	memset(topology->rack_gpus, 0, topology->rack_count * sizeof *topology->rack_gpus);
	for (uint32_t n = 0; n < topology->node_count; n++)
		count_in(topology, n);
}

bool sw_topology_has_less(const struct sw_topology_node *before, const struct sw_topology_node *after)
{
	return after->cpus < before->cpus || after->memory_bytes < before->memory_bytes ||
	       after->gpu_memory_bytes < before->gpu_memory_bytes;
}

uint64_t sw_topology_renumber(const struct sw_topology_change *change, uint64_t mask)
{
	uint64_t now = 0;
	for (; mask != 0; mask &= mask - 1) {
		uint8_t to = change->to[__builtin_ctzll(mask)];
		now |= to < change->shape.gpus ? UINT64_C(1) << to : 0;
	}
	return now;
}

static int add_all(struct sw_topology *topology, const struct sw_topology_node *nodes, uint32_t count)
{
	if (count > 0 && make_room(topology, count, nodes[count - 1].rack + 1) < 0)
		return SW_ENOMEM;
	for (uint32_t n = 0; n < count; n++)
		sw_topology_add(topology, &nodes[n]);
	return 0;
}

int sw_topology_copy(const struct sw_topology *other, struct sw_topology **ret_topology)
{
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	if (sw_topology_new_empty(&topology) < 0 || add_all(topology, other->nodes, other->node_count) < 0)
		return SW_ENOMEM;
	*ret_topology = SW_TAKE(topology);
	return 0;
}

int sw_topology_new(const struct sw_topology_node *nodes, uint32_t count, struct sw_topology **ret_topology, struct sw_err *err)
{
	int r = check_nodes(nodes, count, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	if (sw_topology_new_empty(&topology) < 0 || add_all(topology, nodes, count) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for a cluster of %u nodes", count);
	*ret_topology = SW_TAKE(topology);
	return 0;
}

void sw_topology_free(struct sw_topology *topology)
{
	if (topology == NULL)
		return;
	free(topology->nodes);
	free(topology->rack_first);
	free(topology->rack_node_gpus);
	free(topology->rack_gpus);
	free(topology);
}
