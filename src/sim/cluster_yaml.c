/* A cluster from YAML: `racks`, each with kinds of `nodes`; or `nodes` alone, which is one rack.
 * See examples/cluster.yaml. */
#include <inttypes.h>
#include <string.h>

#include "base/yaml.h"
#include "sim/cluster_build.h"

#define MAX_KINDS 1024

/* A kind of node as the file has it; starts as the file's defaults. */
struct kind {
	int64_t count, gpus, link_group, cpus;
	uint64_t mem_bytes, gpu_mem_bytes;
	const char *gpu_type;
};

#define AT(member) .offset = offsetof(struct kind, member)
static const struct sw_yaml_field kind_fields[] = {
	{"count", SW_YAML_INTEGER, AT(count), .min = 1, .max = SW_CLUSTER_NODES_MAX},
	{"gpus", SW_YAML_INTEGER, AT(gpus), .min = 1, .max = SW_NODE_GPUS_MAX},
	{"link_group", SW_YAML_INTEGER, AT(link_group), .min = 1, .max = SW_NODE_GPUS_MAX},
	{"gpu_type", SW_YAML_STRING, AT(gpu_type), .max = 60},
	{"gpu_memory", SW_YAML_BYTES, AT(gpu_mem_bytes), .min = 1 << 20, .max = INT64_C(1) << 46},
	{"cpus", SW_YAML_INTEGER, AT(cpus), .min = 1, .max = 1000000},
	{"memory", SW_YAML_BYTES, AT(mem_bytes), .min = 1 << 20, .max = INT64_C(1) << 56},
};
#undef AT

/* The kinds of node of one rack, resolved. */
struct rack {
	uint32_t shapes[MAX_KINDS];
	uint64_t counts[MAX_KINDS];
	size_t kinds;
};

static int read_kind(const struct sw_yaml_node *node, const struct kind *defaults, struct sw_cluster_spec *spec, struct rack *rack,
		     struct sw_err *err)
{
	struct kind kind = *defaults;
	kind.count = 1;
	int r = sw_yaml_decode(node, "a kind of node", kind_fields, SW_YAML_COUNT(kind_fields), &kind, err);
	if (r < 0)
		return r;
	if (kind.gpus == 0)
		return sw_yaml_fail(node, err, "a kind of node needs 'gpus', here or under 'defaults'");
	if (kind.link_group == 0)
		kind.link_group = kind.gpus;
	if (kind.link_group > kind.gpus)
		return sw_yaml_fail(node, err, "'link_group' is %" PRId64 ", but the node has %" PRId64 " GPUs", kind.link_group,
				    kind.gpus);
	struct sw_cluster_shape shape = {
		.gpus = (uint32_t)kind.gpus,
		.link_group = (uint32_t)kind.link_group,
		.cpus = (uint32_t)kind.cpus,
		.mem_bytes = kind.mem_bytes,
		.gpu_mem_bytes = kind.gpu_mem_bytes,
	};
	r = sw_cluster_build_type(spec, kind.gpu_type, &shape.gpu_type, err);
	if (r == 0)
		r = sw_cluster_build_shape(spec, &shape, &rack->shapes[rack->kinds], err);
	rack->counts[rack->kinds++] = (uint64_t)kind.count;
	return r;
}

/* Adds `racks` copies of a rack with these kinds of node. A rack of one kind is one run however
 * often it stands there. */
static int add_racks(const struct sw_yaml_node *where, const struct sw_yaml_node *kinds, int64_t racks, const struct kind *defaults,
		     struct sw_cluster_spec *spec, struct sw_err *err)
{
	struct rack rack = {.kinds = 0};
	uint64_t nodes = 0, gpus = 0;
	for (const struct sw_yaml_node *node = kinds->first; node != NULL; node = node->next) {
		int r = read_kind(node, defaults, spec, &rack, err);
		if (r < 0)
			return r;
		nodes += rack.counts[rack.kinds - 1];
		gpus += rack.counts[rack.kinds - 1] * spec->shapes.items[rack.shapes[rack.kinds - 1]].gpus;
	}
	/* At most a thousand kinds of a million nodes, a million times: far from 64 bits. */
	if (nodes * (uint64_t)racks + spec->nodes > SW_CLUSTER_NODES_MAX)
		return sw_yaml_fail(where, err, "with this the cluster has more than 1,000,000 nodes");
	if (gpus * (uint64_t)racks + spec->gpus > SW_CLUSTER_GPUS_MAX)
		return sw_yaml_fail(where, err, "with this the cluster has more than 1,000,000 GPUs");
	if (rack.kinds == 1)
		return sw_cluster_build_run(spec, (uint64_t)racks, rack.counts[0], rack.shapes[0], err);
	for (int64_t i = 0; i < racks; i++) {
		for (size_t k = 0; k < rack.kinds; k++) {
			int r = sw_cluster_build_run(spec, k == 0 ? 1 : 0, rack.counts[k], rack.shapes[k], err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int read_rack(const struct sw_yaml_node *node, const struct kind *defaults, struct sw_cluster_spec *spec, struct sw_err *err)
{
	struct entry {
		int64_t count;
		const struct sw_yaml_node *nodes;
	} entry = {.count = 1};
	static const struct sw_yaml_field fields[] = {
		{"count", SW_YAML_INTEGER, false, offsetof(struct entry, count), .min = 1, .max = SW_CLUSTER_NODES_MAX},
		{"nodes", SW_YAML_LIST, true, offsetof(struct entry, nodes), .max = MAX_KINDS},
	};
	int r = sw_yaml_decode(node, "a rack", fields, SW_YAML_COUNT(fields), &entry, err);
	return r < 0 ? r : add_racks(node, entry.nodes, entry.count, defaults, spec, err);
}

static int read_defaults(const struct sw_yaml_node *node, struct kind *defaults, struct sw_err *err)
{
	if (node == NULL)
		return 0;
	int r = sw_yaml_decode(node, "the defaults of nodes", kind_fields, SW_YAML_COUNT(kind_fields), defaults, err);
	if (r == 0 && defaults->count != 0)
		return sw_yaml_fail(node, err, "'count' has no place under 'defaults'");
	return r;
}

static int read_root(const struct sw_yaml_node *root, struct sw_cluster_spec *spec, struct sw_err *err)
{
	struct top {
		const struct sw_yaml_node *defaults, *racks, *nodes;
	} top = {0};
	static const struct sw_yaml_field fields[] = {
		{"defaults", SW_YAML_MAP, false, offsetof(struct top, defaults), .min = 0},
		{"racks", SW_YAML_LIST, false, offsetof(struct top, racks), .min = 0},
		{"nodes", SW_YAML_LIST, false, offsetof(struct top, nodes), .max = MAX_KINDS},
	};
	struct kind defaults = {
		.cpus = SW_CLUSTER_CPUS,
		.mem_bytes = SW_CLUSTER_MEM_BYTES,
		.gpu_mem_bytes = SW_CLUSTER_GPU_MEM_BYTES,
		.gpu_type = SW_CLUSTER_GPU_TYPE,
	};
	int r = sw_yaml_decode(root, "a cluster", fields, SW_YAML_COUNT(fields), &top, err);
	if (r == 0)
		r = read_defaults(top.defaults, &defaults, err);
	if (r < 0)
		return r;
	if ((top.racks != NULL) == (top.nodes != NULL))
		return sw_yaml_fail(root, err, "a cluster needs either 'racks' or 'nodes'");
	if (top.nodes != NULL)
		return add_racks(top.nodes, top.nodes, 1, &defaults, spec, err);
	for (const struct sw_yaml_node *node = top.racks->first; node != NULL && r == 0; node = node->next)
		r = read_rack(node, &defaults, spec, err);
	return r;
}

int sw_cluster_parse_yaml(const char *name, const char *text, size_t size, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = NULL;
	int r = sw_yaml_parse("cluster", name, text, size, &doc, err);
	if (r == 0)
		r = sw_cluster_build_new(name, &spec, err);
	if (r == 0)
		r = read_root(sw_yaml_root(doc), spec, err);
	if (r < 0)
		return r;
	*ret_spec = SW_TAKE(spec);
	return 0;
}
