/* Best fit: tightest gaps, fewest nodes, one rack if possible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "spots.h"

#define RULE &sw_placement_pack

/* Aim: a job goes to the tightest gap that holds all of it, so that large gaps stay. */
static void test_tightest_gap(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 8), RIG_NODE(0, 8), RIG_NODE(0, 8)};
	struct rig rig;
	spots_open(&rig, nodes, 3);
	spots_occupy(&rig, 1, 5);
	spots_occupy(&rig, 2, 6);
	assert_string_equal(spots_place_plain(&rig, RULE, 2), "2:2");
	assert_string_equal(spots_place_plain(&rig, RULE, 3), "1:3");
	assert_string_equal(spots_place_plain(&rig, RULE, 4), "0:4");
	rig_close(&rig);
}

/* Aim: a job larger than a node takes as few nodes as possible, the last part
 * into the tightest gap. */
static void test_fewest_nodes(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 8), RIG_NODE(0, 8), RIG_NODE(0, 8), RIG_NODE(0, 8)};
	struct rig rig;
	spots_open(&rig, nodes, 4);
	spots_occupy(&rig, 0, 6);
	spots_occupy(&rig, 3, 4);
	assert_string_equal(spots_place_plain(&rig, RULE, 10), "1:8 0:2");
	assert_string_equal(spots_place_plain(&rig, RULE, 11), "1:8 3:3");
	assert_string_equal(spots_place_plain(&rig, RULE, 22), "1:8 2:8 3:4 0:2");
	assert_string_equal(spots_place_plain(&rig, RULE, 23), "nowhere");
	rig_close(&rig);
}

/* Aim: gaps that are all too small are filled from the largest down. */
static void test_scattered_gaps(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 3);
	spots_occupy(&rig, 0, 3);
	spots_occupy(&rig, 1, 1);
	spots_occupy(&rig, 2, 2);
	assert_string_equal(spots_place_plain(&rig, RULE, 4), "1:3 0:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 5), "1:3 2:2");
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "1:3 2:2 0:1");
	rig_close(&rig);
}

/* Aim: one rack if there is one with room, several otherwise. */
static void test_one_rack_first(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(1, 4), RIG_NODE(1, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 4);
	spots_occupy(&rig, 0, 1);
	assert_string_equal(spots_place_plain(&rig, RULE, 8), "2:4 3:4");
	spots_occupy(&rig, 2, 1);
	assert_string_not_equal(spots_place_plain(&rig, RULE, 8), "nowhere");
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
		cmocka_unit_test(test_tightest_gap),   cmocka_unit_test(test_fewest_nodes), cmocka_unit_test(test_scattered_gaps),
		cmocka_unit_test(test_one_rack_first), cmocka_unit_test(test_promises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
