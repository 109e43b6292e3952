/* The emptiest nodes first, as few GPUs on each as possible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "spots.h"

#define RULE &sw_placement_spread

/* Aim: each node gives one GPU before any gives two; the emptiest give first. */
static void test_one_each(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(1, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 3);
	spots_occupy(&rig, 0, 2);
	spots_occupy(&rig, 1, 1);
	assert_string_equal(spots_place_plain(&rig, RULE, 1), "2:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 2), "2:1 1:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 3), "2:1 1:1 0:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 4), "2:2 1:2");
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "2:2 1:2 0:2");
	rig_close(&rig);
}

/* Aim: nodes that have less to give do not hold up the job: the others give more. */
static void test_uneven_gaps(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 1), RIG_NODE(0, 8), RIG_NODE(0, 2)};
	struct rig rig;
	spots_open(&rig, nodes, 3);
	assert_string_equal(spots_place_plain(&rig, RULE, 6), "1:3 2:2 0:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 11), "1:8 2:2 0:1");
	assert_string_equal(spots_place_plain(&rig, RULE, 12), "nowhere");
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
		cmocka_unit_test(test_one_each),
		cmocka_unit_test(test_uneven_gaps),
		cmocka_unit_test(test_promises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
