/* The shape of a cluster: GPUs in link groups (NVLink or one PCIe switch) in nodes in racks (one
 * InfiniBand domain) in the cluster. A plain value whose nodes may change and never go; what is up,
 * free or held is the ledger's. */
#ifndef SW_CORE_TOPOLOGY_H
#define SW_CORE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_NODE_GPUS_MAX 64u /* one word of a mask */
#define SW_CLUSTER_NODES_MAX 1000000u
#define SW_CLUSTER_GPUS_MAX 1000000u
#define SW_GPU_TYPES_MAX 64u /* one word of a mask, too */

struct sw_topology_node {
	uint32_t rack;
	uint32_t gpus;
	uint32_t link_group; /* GPUs [0, link_group), [link_group, 2 link_group), ... share a fast link; 0: all of the node */
	uint32_t cpus;
	uint32_t gpu_type; /* of all its GPUs; below SW_GPU_TYPES_MAX */
	uint64_t memory_bytes;
	uint64_t gpu_memory_bytes; /* of each GPU */
};

#define SW_GPU_GONE UINT8_MAX
/* A node that has other GPUs than it had: its shape now. Of each GPU that it had there is the
 * number that it has now, if it is still there. */
struct sw_topology_change {
	struct sw_topology_node shape; /* its rack stays, whatever this says */
	uint8_t to[SW_NODE_GPUS_MAX];  /* SW_GPU_GONE */
};

struct sw_topology {
	struct sw_topology_node *nodes;
	uint32_t node_count;
	uint32_t node_capacity;
	uint32_t *rack_first;	  /* rack r holds nodes [rack_first[r], rack_first[r + 1]) */
	uint32_t *rack_node_gpus; /* GPUs of the largest node of each rack */
	uint32_t *rack_gpus;	  /* of all its nodes */
	uint32_t rack_count;
	uint32_t rack_capacity;
	uint32_t gpu_count;
	uint32_t link_gpus_max; /* of the largest link group, node and rack */
	uint32_t node_gpus_max;
	uint32_t rack_gpus_max;
	uint32_t node_gpus_min;	       /* of nodes that have any; 0: none has */
	uint64_t gpu_memory_min_bytes; /* of the smallest GPU */
	uint64_t gpu_types;	       /* a bit for each type that some node has */
};

/* Copies the nodes; racks must be numbered 0, 1, 2, ... in runs. */
int sw_topology_new(const struct sw_topology_node *nodes, uint32_t count, struct sw_topology **ret_topology, struct sw_err *err);
/* The same with room to grow; `nodes` may be none at all. */
int sw_topology_copy(const struct sw_topology *other, struct sw_topology **ret_topology);
int sw_topology_new_empty(struct sw_topology **ret_topology);
/* Makes room for one more node of this shape. 0, SW_ENOMEM, SW_ELIMIT, or SW_EINPUT for a rack that
 * is neither the last one nor the next. */
int sw_topology_reserve(struct sw_topology *topology, const struct sw_topology_node *node);
/* Adds a node for which room was made. */
void sw_topology_add(struct sw_topology *topology, const struct sw_topology_node *node);
/* The node has this shape from now on; it fits, as one more would. */
void sw_topology_change(struct sw_topology *topology, uint32_t node, const struct sw_topology_node *shape);
/* Whether a node that is changed from `before` has less beside its GPUs, or smaller ones: then it
 * is not known which jobs could stay. */
bool sw_topology_has_less(const struct sw_topology_node *before, const struct sw_topology_node *after);
/* These GPUs as they are numbered after the change, without those that are gone. */
uint64_t sw_topology_renumber(const struct sw_topology_change *change, uint64_t mask);
void sw_topology_free(struct sw_topology *topology);
SW_DEFINE_FREEP(struct sw_topology, sw_topology_free)

/* How far apart the parts of a placement are. */
enum sw_distance {
	SW_WITHIN_GROUP = 0, /* one GPU, or GPUs on one fast link */
	SW_WITHIN_NODE,
	SW_WITHIN_RACK,
	SW_ACROSS_RACKS,
};

/* How close together so many GPUs can be here at the best. */
static inline enum sw_distance sw_topology_best(const struct sw_topology *topology, uint32_t gpus)
{
	if (gpus <= topology->link_gpus_max)
		return SW_WITHIN_GROUP;
	if (gpus <= topology->node_gpus_max)
		return SW_WITHIN_NODE;
	return gpus <= topology->rack_gpus_max ? SW_WITHIN_RACK : SW_ACROSS_RACKS;
}

#endif
