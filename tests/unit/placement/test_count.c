/* Any free GPUs: one node if one is enough, the tightest; else nodes in index order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "spots.h"

#define RULE &sw_placement_count

/* Aim: a job that fits on one node goes to the tightest; the lowest index breaks ties. */
static void test_one_node(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 8), RIG_NODE(0, 4), RIG_NODE(0, 8), RIG_NODE(0, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 4);
	assert_string_equal(spots_place_plain(&rig, RULE, 1), "1:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 5), "0:5");
	spots_occupy(&rig, 2, 6);
	assert_string_equal(spots_place_plain(&rig, RULE, 2), "2:2");
	assert_string_equal(spots_place_plain(&rig, RULE, 3), "1:3");
	rig_close(&rig);
}

/* Aim: a larger job takes what is free in index order, over racks, and needs no CPUs or memory. */
static void test_several_nodes(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 4), RIG_NODE(1, 2), RIG_NODE(2, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 4);
	spots_occupy_with(&rig, 0, 1, 128, 512 * RIG_GIB);
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "0:1 1:4 2:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 11), "0:1 1:4 2:2 3:4");
	assert_string_equal(spots_place_plain(&rig, RULE, 12), "nowhere");
	rig_close(&rig);
}

/* Aim: GPUs that are too small for the job, and nodes that are down, do not count. */
static void test_unsuitable_nodes(void **state)
{
	(void)state;
	struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 4), RIG_NODE(0, 4)};
	nodes[0].gpu_memory_bytes = 16 * RIG_GIB;
	struct rig rig;
	struct sw_job large = {.gpus = 2, .gpu_memory_bytes = 40 * RIG_GIB};
	spots_open(&rig, nodes, 3);
	assert_string_equal(spots_place_plain(&rig, RULE, 2), "0:2");
	/* The tightest node is too small, and another one is enough alone. */
	assert_string_equal(spots_place(&rig, RULE, large), "1:2");
	large.gpus = 6;
	assert_string_equal(spots_place(&rig, RULE, large), "1:4 2:2");
	sw_ledger_set_up(spots_ledger(&rig), 1, false);
	assert_string_equal(spots_place(&rig, RULE, large), "nowhere");
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "0:2 2:4");
	rig_close(&rig);
}

/* Aim: on any cluster, whenever enough GPUs that suit are free there is a spot on them. */
static void test_promises(void **state)
{
	(void)state;
	spots_try_all(RULE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_node),
		cmocka_unit_test(test_several_nodes),
		cmocka_unit_test(test_unsuitable_nodes),
		cmocka_unit_test(test_promises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
