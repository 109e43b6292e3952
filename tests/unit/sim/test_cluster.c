/* Clusters as people write them: counts, YAML, and the CSV of Tiresias and Muri. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "sim/cluster.h"

static struct sw_cluster_spec *load(const char *text)
{
	struct sw_err err = {0};
	struct sw_cluster_spec *spec = NULL;
	if (sw_cluster_load(text, &spec, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return spec;
}

static struct sw_cluster_spec *parse(const char *text)
{
	struct sw_err err = {0};
	struct sw_cluster_spec *spec = NULL;
	if (sw_cluster_parse("c", text, strlen(text), &spec, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return spec;
}

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' does not contain '%s'", text, part);
}

static void refused(int r, const struct sw_cluster_spec *spec, const struct sw_err *err, const char *text, const char *detail)
{
	if (r == 0)
		fail_msg("accepted: %s", text);
	assert_null(spec);
	assert_has(err->detail, detail);
}

struct node {
	uint32_t rack;
	const struct sw_cluster_shape *shape;
};

static struct node node_at(const struct sw_cluster_spec *spec, uint32_t index)
{
	const struct sw_cluster_run *run = &spec->runs.items[0];
	assert_in_range(index, 0, spec->nodes - 1);
	while (index >= run->first_node + run->nodes)
		run++;
	return (struct node){run->first_rack + (index - run->first_node) / run->nodes_per_rack, &spec->shapes.items[run->shape]};
}

/* "8x8" is eight nodes of eight GPUs in one rack, with the stated defaults. */
static void test_counts(void **state)
{
	(void)state;
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = load("8x4");
	assert_int_equal(spec->nodes, 8);
	assert_int_equal(spec->gpus, 32);
	assert_int_equal(spec->racks, 1);
	const struct sw_cluster_shape *shape = node_at(spec, 7).shape;
	assert_int_equal(shape->gpus, 4);
	assert_int_equal(shape->link_group, 4);
	assert_int_equal(shape->cpus, 128);
	assert_int_equal(shape->mem_bytes, UINT64_C(1) << 40);
	assert_int_equal(shape->gpu_mem_bytes, UINT64_C(80) << 30);
	assert_string_equal(spec->gpu_types.items[shape->gpu_type], "gpu");
	char text[96];
	assert_string_equal(sw_cluster_describe(spec, text), "8 nodes x 4 GPUs");
}

/* Three numbers are racks, nodes of each, GPUs of each. */
static void test_racks(void **state)
{
	(void)state;
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = load("2x16X8");
	assert_int_equal(spec->nodes, 32);
	assert_int_equal(spec->gpus, 256);
	assert_int_equal(spec->racks, 2);
	assert_int_equal(node_at(spec, 15).rack, 0);
	assert_int_equal(node_at(spec, 16).rack, 1);
	assert_int_equal(node_at(spec, 31).rack, 1);
	char text[96];
	assert_string_equal(sw_cluster_describe(spec, text), "2 racks x 16 nodes x 8 GPUs");
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *one = load("1x1");
	assert_string_equal(sw_cluster_describe(one, text), "1 node x 1 GPU");
}

/* A million GPUs are as quickly said as one, and one more is refused. */
static void test_largest(void **state)
{
	(void)state;
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = load("15625x64");
	assert_int_equal(spec->gpus, 1000000);
	assert_int_equal(spec->runs.count, 1);
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *single = load("1000x1000x1");
	assert_int_equal(single->nodes, 1000000);
	assert_int_equal(node_at(single, 999999).rack, 999);
}

/* Counts that make no cluster are refused with the reason and a hint. */
static void test_refused_counts(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"8", "single number"},
		{"8x", "not a whole number"},
		{"8x8x8x8", "more than three numbers"},
		{"0x8", "at least 1"},
		{"8x0", "at least 1"},
		{"0x8x8", "at least 1"},
		{"8x65", "at most 64 GPUs"},
		{"15626x64", "at most 1,000,000 GPUs"},
		{"1000001x1", "at most 1,000,000 nodes"},
		{"1000x1001x1", "at most 1,000,000 nodes"},
		{"8x-8", "not a whole number"},
		{"8.5x8", "not a whole number"},
		{"8 x 8", "not a whole number"},
		{"99999999999999999999x8", "far too large"},
		{"999999999999x999999999999x64", "at most 1,000,000 nodes"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_cluster_spec *spec = NULL;
		struct sw_err err = {0};
		int r = sw_cluster_load(cases[i][0], &spec, &err);
		refused(r, spec, &err, cases[i][0], cases[i][1]);
		assert_int_equal(r, SW_EINPUT);
		assert_has(err.hint, "8x8");
	}
}

/* The example in the tree says what its comments say. */
static void test_example(void **state)
{
	(void)state;
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = load(SW_SOURCE_DIR "/examples/cluster.yaml");
	assert_int_equal(spec->racks, 3);
	assert_int_equal(spec->nodes, 38);
	assert_int_equal(spec->gpus, 292);
	struct node node = node_at(spec, 31);
	assert_int_equal(node.rack, 1);
	assert_string_equal(spec->gpu_types.items[node.shape->gpu_type], "A100");
	node = node_at(spec, 32);
	assert_int_equal(node.rack, 2);
	assert_int_equal(node.shape->gpu_mem_bytes, UINT64_C(32) << 30);
	assert_int_equal(node.shape->link_group, 4);
	node = node_at(spec, 37);
	assert_int_equal(node.rack, 2);
	assert_int_equal(node.shape->gpus, 2);
	assert_int_equal(node.shape->cpus, 32);
	char text[96];
	assert_string_equal(sw_cluster_describe(spec, text), "38 nodes, 292 GPUs, 3 racks");
}

/* Several racks of several kinds repeat the kinds in each rack. */
static void test_mixed_racks(void **state)
{
	(void)state;
	SW_CLEANUP(sw_cluster_freep)
	struct sw_cluster_spec *spec =
		parse("racks:\n  - count: 2\n    nodes:\n      - {count: 2, gpus: 8}\n      - {gpus: 4}\n  - nodes: [{gpus: 1}]\n");
	static const uint32_t gpus[] = {8, 8, 4, 8, 8, 4, 1}, racks[] = {0, 0, 0, 1, 1, 1, 2};
	assert_int_equal(spec->nodes, 7);
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(node_at(spec, i).shape->gpus, gpus[i]);
		assert_int_equal(node_at(spec, i).rack, racks[i]);
	}
	assert_int_equal(spec->gpus, 41);
	assert_int_equal(spec->racks, 3);
}

/* The core's topology has every node as the spec has it. */
static void test_topology(void **state)
{
	(void)state;
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = load(SW_SOURCE_DIR "/examples/cluster.yaml");
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_cluster_topology(spec, &topology, &err), 0);
	assert_int_equal(topology->node_count, spec->nodes);
	assert_int_equal(topology->rack_count, spec->racks);
	assert_int_equal(topology->gpu_count, spec->gpus);
	for (uint32_t i = 0; i < spec->nodes; i++) {
		struct node node = node_at(spec, i);
		assert_int_equal(topology->nodes[i].rack, node.rack);
		assert_int_equal(topology->nodes[i].gpus, node.shape->gpus);
		assert_int_equal(topology->nodes[i].link_group, node.shape->link_group);
		assert_int_equal(topology->nodes[i].cpus, node.shape->cpus);
		assert_int_equal(topology->nodes[i].memory_bytes, node.shape->mem_bytes);
		assert_int_equal(topology->nodes[i].gpu_memory_bytes, node.shape->gpu_mem_bytes);
		assert_int_equal(topology->nodes[i].gpu_type, node.shape->gpu_type);
	}
}

/* The peers' CSV, with and without a last newline or Windows line ends. */
static void test_csv(void **state)
{
	(void)state;
	static const char *const ends[] = {"", "\n", "\r\n", "\n\n"};
	for (size_t i = 0; i < 4; i++) {
		char text[200];
		snprintf(text, sizeof text, "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node%s5,32,8,128,256%s",
			 i == 2 ? "\r\n" : "\n", ends[i]);
		SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = parse(text);
		assert_int_equal(spec->racks, 5);
		assert_int_equal(spec->nodes, 160);
		assert_int_equal(spec->gpus, 1280);
		assert_int_equal(spec->shapes.items[0].mem_bytes, UINT64_C(256) << 30);
		assert_int_equal(spec->shapes.items[0].cpus, 128);
	}
}

/* Broken cluster files are refused with their line. */
static void test_refused_files(void **state)
{
	(void)state;
#define HEAD "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"
	static const char *const cases[][2] = {
		{"num_switch,num_node\n1,2\n", "line 1: the names of the columns"},
		{"num_switch,num_node_p_switch,num_cpu_p_node,num_gpu_p_node,mem_p_node\n1,2,3,4,5\n",
		 "line 1: column 3 is 'num_cpu_p_node'"},
		{HEAD, "line 2: 1 columns, expected 5"},
		{HEAD "1,8,8,92\n", "line 2: 4 columns, expected 5"},
		{HEAD "1,8,8,92,520,7\n", "line 2: 6 columns, expected 5"},
		{HEAD "1,8,eight,92,520\n", "line 2: num_gpu_p_node is 'eight', expected a whole number"},
		{HEAD "1,8,-8,92,520\n", "line 2: num_gpu_p_node is '-8'"},
		{HEAD "1,8,8,92,520\n1,8,8,92,520\n", "line 3: a second line of numbers"},
		{HEAD "1,8,800,92,520\n", "line 2: a node has at most 64 GPUs"},
		{HEAD "1,0,8,92,520\n", "line 2: every count must be at least 1"},
		{HEAD "1,8,8,92,99999999999\n", "line 2: so many cores or so much memory"},
		{"nodes: [{count: 3}]\n", "line 1: a kind of node needs 'gpus'"},
		{"nodes: [{gpus: 65}]\n", "'gpus' is 65, expected 1 to 64"},
		{"nodes: [{gpus: 0}]\n", "'gpus' is 0, expected 1 to 64"},
		{"nodes:\n  - {gpus: 4, link_group: 8}\n", "line 2: 'link_group' is 8, but the node has 4 GPUs"},
		{"nodes: [{gpus: 8, count: 125001}]\n", "more than 1,000,000 GPUs"},
		{"racks:\n  - {count: 1000000, nodes: [{count: 2, gpus: 1}]}\n",
		 "line 2: with this the cluster has more than 1,000,000 nodes"},
		{"racks:\n  - {count: 1000000, nodes: [{count: 1000000, gpus: 64}]}\n", "more than 1,000,000 nodes"},
		{"racks: [{nodes: [{gpus: 1}]}]\nnodes: [{gpus: 1}]\n", "either 'racks' or 'nodes'"},
		{"defaults: {gpus: 8}\n", "either 'racks' or 'nodes'"},
		{"defaults: {count: 8}\nnodes: [{gpus: 1}]\n", "'count' has no place under 'defaults'"},
		{"nodes: [{gpus: 8, gpu_memory: 80}]\n", "'gpu_memory' is 80, expected 1.0 MiB to"},
		{"nodes: [{gpus: 8, memroy: 80G}]\n", "'memroy' is not a key of a kind of node; did you mean 'memory'?"},
		{"racks: [{gpus: 8}]\n", "'gpus' is not a key of a rack"},
		{"hello\n", "expected a cluster, that is, a map"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_cluster_spec *spec = NULL;
		struct sw_err err = {0};
		int r = sw_cluster_parse("c", cases[i][0], strlen(cases[i][0]), &spec, &err);
		refused(r, spec, &err, cases[i][0], cases[i][1]);
		assert_string_equal(err.fact, "cannot read cluster 'c'");
	}
}

/* Something that is neither counts nor a file says what a cluster may be. */
static void test_no_such_file(void **state)
{
	(void)state;
	struct sw_cluster_spec *spec = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_cluster_load("no-such-cluster", &spec, &err), SW_ENOTFOUND);
	assert_has(err.fact, "no-such-cluster");
	assert_has(err.hint, "8x8");
	assert_null(spec);
}

/* The peers' own files, where they are at hand. */
static void test_shared_files(void **state)
{
	(void)state;
	const char *shared = getenv("SHAREWELL_SHARED");
	char folder[512], path[600];
	snprintf(folder, sizeof folder, "%s", shared != NULL ? shared : SW_SOURCE_DIR "/../shared");
	struct stat info;
	if (stat(folder, &info) != 0) {
		print_message("skipped: there is no shared data at %s\n", folder);
		skip();
	}
	static const struct {
		const char *path;
		uint32_t racks, nodes, gpus;
	} cases[] = {{"tiresias/cluster_spec.csv", 1, 16, 64}, {"tiresias/n160g8.csv", 5, 160, 1280}, {"tiresias/n1g4.csv", 1, 1, 4},
		     {"tiresias/n256g8.csv", 8, 256, 2048},    {"tiresias/n32g4.csv", 1, 32, 128},    {"muri/n8g8.csv", 1, 8, 64}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(path, sizeof path, "%s/traces/%s", folder, cases[i].path);
		SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = load(path);
		assert_int_equal(spec->racks, cases[i].racks);
		assert_int_equal(spec->nodes, cases[i].nodes);
		assert_int_equal(spec->gpus, cases[i].gpus);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),	       cmocka_unit_test(test_racks),	    cmocka_unit_test(test_largest),
		cmocka_unit_test(test_refused_counts), cmocka_unit_test(test_example),	    cmocka_unit_test(test_mixed_racks),
		cmocka_unit_test(test_topology),       cmocka_unit_test(test_csv),	    cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_no_such_file),   cmocka_unit_test(test_shared_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
