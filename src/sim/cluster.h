/* The cluster that a simulation runs on, from what a person writes:
 *
 *	8x8             nodes x GPUs, one rack
 *	2x16x8          racks x nodes x GPUs
 *	a path          a YAML file (examples/cluster.yaml), or the one line of CSV that
 *	                Tiresias and Muri read
 *
 * Kept as runs of identical nodes, so that a million GPUs cost a few bytes, and expanded to the
 * core's topology on demand. Nodes count from 0 through the racks.
 *
 * Invariants of a spec:
 *  1. runs follow each other: run[i + 1].first_node == run[i].first_node +
 *     run[i].nodes; racks never go back.
 *  2. 1 <= gpus of a node <= 64; 1 <= link_group <= gpus; nodes, gpus and racks are the sums over
 *     the runs and at most a million each.
 */
#ifndef SW_SIM_CLUSTER_H
#define SW_SIM_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "core/topology.h"

/* What a node is by default. */
#define SW_CLUSTER_CPUS 128
#define SW_CLUSTER_MEM_BYTES (UINT64_C(1024) << 30)
#define SW_CLUSTER_GPU_MEM_BYTES (UINT64_C(80) << 30)
#define SW_CLUSTER_GPU_TYPE "gpu"

/* A kind of node. */
struct sw_cluster_shape {
	uint32_t gpus;
	uint32_t link_group; /* GPUs [0, link_group), [link_group, 2 link_group), ... share NVLink or a PCIe switch */
	uint32_t cpus;
	uint32_t gpu_type; /* number of a name in gpu_types */
	uint64_t mem_bytes;
	uint64_t gpu_mem_bytes; /* of each GPU */
};

/* Identical nodes in a row, filling racks of `nodes_per_rack`; a run may begin in a rack that
 * the run before left open. */
struct sw_cluster_run {
	uint32_t first_node;
	uint32_t nodes;
	uint32_t first_rack;
	uint32_t nodes_per_rack;
	uint32_t shape;
};

struct sw_cluster_spec {
	SW_VEC(struct sw_cluster_shape) shapes;
	SW_VEC(struct sw_cluster_run) runs;
	SW_VEC(char *) gpu_types;
	char *origin; /* as the user gave it */
	uint32_t nodes;
	uint32_t gpus;
	uint32_t racks;
};

int sw_cluster_load(const char *shape_or_path, struct sw_cluster_spec **ret_spec, struct sw_err *err);
/* The same from the text of a file, YAML or CSV; `name` is used in messages. */
int sw_cluster_parse(const char *name, const char *text, size_t size, struct sw_cluster_spec **ret_spec, struct sw_err *err);
void sw_cluster_free(struct sw_cluster_spec *spec);
SW_DEFINE_FREEP(struct sw_cluster_spec, sw_cluster_free)

/* "8 nodes x 8 GPUs", "2 racks x 16 nodes x 8 GPUs", "18 nodes, 136 GPUs, 2
 * racks". Returns `buffer`. */
char *sw_cluster_describe(const struct sw_cluster_spec *spec, char buffer[96]);

/* The cluster as the core wants it. */
int sw_cluster_topology(const struct sw_cluster_spec *spec, struct sw_topology **ret_topology, struct sw_err *err);

#endif
