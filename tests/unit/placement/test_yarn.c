/* Consolidated in one rack: the first node with room, or idle nodes and a first node for
 * the rest; all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "spots.h"

#define RULE &sw_placement_yarn

/* Aim: up to a node's GPUs go to the first node in index order that has room, not to the
 * tightest, and are never split. */
static void test_one_node(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(1, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 3);
	spots_occupy(&rig, 1, 3);
	assert_string_equal(spots_place_plain(&rig, RULE, 1), "0:1");
	spots_occupy(&rig, 0, 2);
	assert_string_equal(spots_place_plain(&rig, RULE, 2), "0:2");
	assert_string_equal(spots_place_plain(&rig, RULE, 3), "2:3"); /* 2 and 1 are free in the first rack */
	spots_occupy(&rig, 2, 2);
	assert_string_equal(spots_place_plain(&rig, RULE, 3), "nowhere");
	rig_close(&rig);
}

/* Aim: a larger job takes idle nodes in index order and the first node with room for the
 * rest, all in one rack. */
static void test_several_nodes(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4),
						 RIG_NODE(1, 4), RIG_NODE(1, 4), RIG_NODE(1, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 6);
	assert_string_equal(spots_place_plain(&rig, RULE, 8), "0:4 1:4");
	assert_string_equal(spots_place_plain(&rig, RULE, 10), "0:4 1:4 2:2");
	spots_occupy(&rig, 0, 1);
	assert_string_equal(spots_place_plain(&rig, RULE, 10), "1:4 2:4 0:2"); /* the rest may sit on a used node */
	assert_string_equal(spots_place_plain(&rig, RULE, 12), "3:4 4:4 5:4");
	spots_occupy(&rig, 4, 1);
	assert_string_equal(spots_place_plain(&rig, RULE, 12), "nowhere"); /* 22 are free, but not in one rack */
	assert_string_equal(spots_place_plain(&rig, RULE, 13), "nowhere");
	rig_close(&rig);
}

/* Aim: a job of one GPU takes 2 CPUs, a larger one 6 for each, and 5 GB where
 * it stands on one node. */
static void test_cpus_and_memory_on_one_node(void **state)
{
	(void)state;
	struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4)};
	nodes[0].cpus = 13;
	nodes[0].memory_bytes = 10 * RIG_GIB;
	struct rig rig;
	spots_open(&rig, nodes, 2);
	assert_string_equal(spots_place_plain(&rig, RULE, 2), "0:2"); /* 12 of 13 CPUs */
	assert_string_equal(spots_place_plain(&rig, RULE, 3), "1:3"); /* 18 */
	spots_occupy_with(&rig, 0, 1, 11, 0);
	assert_string_equal(spots_place_plain(&rig, RULE, 1), "0:1"); /* the last 2 */
	assert_string_equal(spots_place_plain(&rig, RULE, 2), "1:2");
	rig_close(&rig);
	spots_open(&rig, nodes, 2);
	spots_occupy_with(&rig, 0, 1, 0, 5 * RIG_GIB);
	assert_string_equal(spots_place_plain(&rig, RULE, 1), "0:1"); /* the last 5 GB */
	spots_occupy_with(&rig, 0, 1, 0, 1);
	assert_string_equal(spots_place_plain(&rig, RULE, 1), "1:1");
	rig_close(&rig);
}

/* Aim: over several nodes each GPU takes 6 CPUs and (11 + 0.1 x GPUs) GB. */
static void test_cpus_and_memory_on_several_nodes(void **state)
{
	(void)state;
	/* 6 GPUs: 11.6 GB each, 46.4 GB on the idle node and 23.2 GB on the other. */
	struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4)};
	nodes[0].memory_bytes = 47 * RIG_GIB;
	nodes[1].memory_bytes = 24 * RIG_GIB;
	nodes[0].cpus = 24;
	nodes[1].cpus = 12;
	struct rig rig;
	spots_open(&rig, nodes, 2);
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "0:4 1:2");
	rig_close(&rig);
	nodes[1].memory_bytes = 23 * RIG_GIB;
	spots_open(&rig, nodes, 2);
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "nowhere");
	rig_close(&rig);
	nodes[1].memory_bytes = 24 * RIG_GIB;
	nodes[1].cpus = 11;
	spots_open(&rig, nodes, 2);
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "nowhere");
	rig_close(&rig);
}

/* Aim: a job that says what it needs is believed. */
static void test_own_needs(void **state)
{
	(void)state;
	struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4)};
	nodes[0].cpus = 8;
	nodes[0].memory_bytes = 8 * RIG_GIB;
	struct rig rig;
	spots_open(&rig, nodes, 2);
	struct sw_job job = {.gpus = 4, .cpus = 2, .host_memory_bytes = 2 * RIG_GIB};
	assert_string_equal(spots_place(&rig, RULE, job), "0:4");
	job.cpus = 3;
	assert_string_equal(spots_place(&rig, RULE, job), "1:4");
	job.cpus = 1;
	job.host_memory_bytes = 3 * RIG_GIB;
	assert_string_equal(spots_place(&rig, RULE, job), "1:4");
	rig_close(&rig);
}

/* Aim: one larger node more does not take a job's place away. */
static void test_a_larger_node_does_no_harm(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 8)};
	struct rig rig;
	spots_open(&rig, nodes, 4);
	assert_string_equal(spots_place_plain(&rig, RULE, 16), "0:4 1:4 2:4 3:4");
	rig_close(&rig);
	spots_open(&rig, nodes, 5);
	assert_string_not_equal(spots_place_plain(&rig, RULE, 16), "nowhere");
	rig_close(&rig);
}

/* Aim: on any cluster a spot is of the right size, on GPUs that suit. */
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
		cmocka_unit_test(test_cpus_and_memory_on_one_node),
		cmocka_unit_test(test_cpus_and_memory_on_several_nodes),
		cmocka_unit_test(test_own_needs),
		cmocka_unit_test(test_a_larger_node_does_no_harm),
		cmocka_unit_test(test_promises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
