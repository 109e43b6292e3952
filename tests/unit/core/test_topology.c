#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/topology.h"

static const struct sw_topology_node mixed[] = {
	{.rack = 0, .gpus = 4, .gpu_memory_bytes = 80}, {.rack = 0, .gpus = 8, .gpu_memory_bytes = 40},
	{.rack = 1, .gpus = 2, .gpu_memory_bytes = 80}, {.rack = 2, .gpus = 8, .gpu_memory_bytes = 80},
	{.rack = 2, .gpus = 1, .gpu_memory_bytes = 80},
};

/* Aim: racks, totals and the largest and smallest node follow from the nodes. */
static void test_sums(void **state)
{
	(void)state;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	assert_int_equal(sw_topology_new(mixed, 5, &topology, NULL), 0);
	assert_int_equal(topology->node_count, 5);
	assert_int_equal(topology->gpu_count, 23);
	assert_int_equal(topology->node_gpus_max, 8);
	assert_int_equal(topology->node_gpus_min, 1);
	assert_int_equal(topology->gpu_memory_min_bytes, 40);
	assert_int_equal(topology->rack_count, 3);
	const uint32_t first[] = {0, 2, 3, 5};
	assert_memory_equal(topology->rack_first, first, sizeof first);
	assert_memory_equal(topology->nodes, mixed, sizeof mixed);
}

/* Aim: a cluster that makes no sense is refused with a fact that names the node,
 * and nothing is written. */
static void test_nonsense_is_refused(void **state)
{
	(void)state;
	static const struct {
		struct sw_topology_node nodes[2];
		uint32_t count;
		const char *fact;
	} cases[] = {
		{{{.gpus = 1}}, 0, "nodes, not 0"},
		{{{.gpus = 65}}, 1, "node 0 has 65 GPUs"},
		{{{.rack = 1, .gpus = 1}}, 1, "node 0 is in rack 1"},
		{{{.gpus = 1}, {.rack = 2, .gpus = 1}}, 2, "node 1 is in rack 2"},
		{{{.gpus = 0}, {.gpus = 0}}, 2, "GPUs, not 0"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_topology *topology = NULL;
		struct sw_err err = {0};
		assert_int_equal(sw_topology_new(cases[i].nodes, cases[i].count, &topology, &err), SW_EINPUT);
		assert_null(topology);
		if (strstr(err.fact, cases[i].fact) == NULL)
			fail_msg("'%s' does not say '%s'", err.fact, cases[i].fact);
	}
	const struct sw_topology_node back[] = {{.rack = 0, .gpus = 1}, {.rack = 1, .gpus = 1}, {.rack = 0, .gpus = 1}};
	struct sw_topology *topology = NULL;
	assert_int_equal(sw_topology_new(back, 3, &topology, NULL), SW_EINPUT);
}

/* Aim: a cluster that grows node by node is the same as one that was given at once. */
static void test_growing(void **state)
{
	(void)state;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *whole = NULL, *grown = NULL, *copy = NULL;
	assert_int_equal(sw_topology_new(mixed, 5, &whole, NULL), 0);
	assert_int_equal(sw_topology_new_empty(&grown), 0);
	for (size_t n = 0; n < 5; n++) {
		assert_int_equal(sw_topology_reserve(grown, &mixed[n]), 0);
		sw_topology_add(grown, &mixed[n]);
	}
	assert_int_equal(sw_topology_copy(whole, &copy), 0);
	for (int i = 0; i < 2; i++) {
		const struct sw_topology *other = i == 0 ? grown : copy;
		assert_int_equal(other->node_count, whole->node_count);
		assert_int_equal(other->gpu_count, whole->gpu_count);
		assert_int_equal(other->rack_count, whole->rack_count);
		assert_int_equal(other->node_gpus_max, whole->node_gpus_max);
		assert_int_equal(other->node_gpus_min, whole->node_gpus_min);
		assert_int_equal(other->gpu_memory_min_bytes, whole->gpu_memory_min_bytes);
		assert_memory_equal(other->rack_first, whole->rack_first, (whole->rack_count + 1) * sizeof whole->rack_first[0]);
		assert_memory_equal(other->nodes, whole->nodes, sizeof mixed);
	}
}

/* Aim: a new node joins the last rack or the next one; anything else, or too many GPUs, is
 * refused and changes nothing. */
static void test_growing_within_bounds(void **state)
{
	(void)state;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	assert_int_equal(sw_topology_new(mixed, 5, &topology, NULL), 0);
	assert_int_equal(sw_topology_reserve(topology, &(struct sw_topology_node){.rack = 1, .gpus = 1}), SW_EINPUT);
	assert_int_equal(sw_topology_reserve(topology, &(struct sw_topology_node){.rack = 4, .gpus = 1}), SW_EINPUT);
	assert_int_equal(sw_topology_reserve(topology, &(struct sw_topology_node){.rack = UINT32_MAX, .gpus = 1}), SW_EINPUT);
	assert_int_equal(sw_topology_reserve(topology, &(struct sw_topology_node){.rack = 3, .gpus = 65}), SW_ELIMIT);
	assert_int_equal(sw_topology_reserve(topology, &(struct sw_topology_node){.rack = 2, .gpus = 64}), 0);
	assert_int_equal(sw_topology_reserve(topology, &(struct sw_topology_node){.rack = 3, .gpus = 64}), 0);
	assert_int_equal(topology->node_count, 5);
	assert_int_equal(topology->gpu_count, 23);
}

/* Aim: a cluster with a node that was changed is like one that was made so. */
static void test_change(void **state)
{
	(void)state;
	struct sw_topology_node nodes[] = {
		{.gpus = 8, .gpu_memory_bytes = 9}, {.gpus = 2, .gpu_memory_bytes = 7}, {.rack = 1, .gpus = 4, .gpu_memory_bytes = 8}};
	const struct sw_topology_node shapes[] = {
		{.gpus = 3, .gpu_memory_bytes = 5}, {.gpu_memory_bytes = 9}, {.rack = 1, .gpus = 16, .gpu_memory_bytes = 6}};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *changed = NULL;
	assert_int_equal(sw_topology_new(nodes, 3, &changed, NULL), 0);
	for (uint32_t n = 0; n < 3; n++) {
		SW_CLEANUP(sw_topology_freep) struct sw_topology *made = NULL;
		struct sw_topology_node elsewhere = nodes[n] = shapes[n];
		elsewhere.rack = 7; /* is not believed */
		sw_topology_change(changed, n, &elsewhere);
		assert_int_equal(sw_topology_new(nodes, 3, &made, NULL), 0);
		assert_memory_equal(changed->nodes, made->nodes, sizeof nodes);
		assert_memory_equal(changed->rack_node_gpus, made->rack_node_gpus, 2 * sizeof(uint32_t));
		assert_int_equal(changed->gpu_count, made->gpu_count);
		assert_int_equal(changed->node_gpus_max, made->node_gpus_max);
		assert_int_equal(changed->node_gpus_min, made->node_gpus_min);
		assert_true(changed->gpu_memory_min_bytes == made->gpu_memory_min_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),	cmocka_unit_test(test_nonsense_is_refused),
		cmocka_unit_test(test_growing), cmocka_unit_test(test_growing_within_bounds),
		cmocka_unit_test(test_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
