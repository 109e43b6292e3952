/* Consolidate only models whose largest tensor dominates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "spots.h"

#define RULE &sw_placement_skew

static struct sw_job skewed(uint32_t gpus, uint16_t skew_milli)
{
	return (struct sw_job){.gpus = gpus, .min_gpus = gpus, .max_gpus = gpus, .skew_milli = skew_milli};
}

/* Aim: above the limit, and where it is not known, a job stands on one node or waits; below, it
 * goes wherever there is room. */
static void test_who_is_consolidated(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 2);
	spots_occupy(&rig, 0, 2);
	spots_occupy(&rig, 1, 2);
	assert_string_equal(spots_place(&rig, RULE, skewed(3, 740)), "nowhere"); /* VGG16 */
	assert_string_equal(spots_place(&rig, RULE, skewed(3, 301)), "nowhere");
	assert_string_equal(spots_place(&rig, RULE, skewed(3, 0)), "nowhere");
	assert_string_equal(spots_place(&rig, RULE, skewed(3, 300)), "0:2 1:1");
	assert_string_equal(spots_place(&rig, RULE, skewed(3, 110)), "0:2 1:1"); /* ResNet-50 */
	assert_string_equal(spots_place(&rig, RULE, skewed(1, 740)), "0:1");	 /* one GPU is always together */
	rig_close(&rig);
}

/* Aim: jobs that are treated differently are of different kinds, so that one that waits
 * does not stop the other. */
static void test_kinds(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 1);
	const struct sw_view *view = sw_engine_view(rig.engine);
	const struct sw_job vgg = skewed(2, 740), resnet = skewed(2, 110), unknown = skewed(2, 0), single = skewed(1, 740);
	assert_int_equal(sw_placement_skew.kind(view, &vgg), sw_placement_skew.kind(view, &unknown));
	assert_int_not_equal(sw_placement_skew.kind(view, &vgg), sw_placement_skew.kind(view, &resnet));
	assert_int_equal(sw_placement_skew.kind(view, &single), sw_placement_skew.kind(view, &resnet));
	rig_close(&rig);
}

/* Aim: a consolidated job takes the tightest node; a larger one whole nodes and the tightest for
 * the rest, in one rack. */
static void test_consolidated(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(1, 4), RIG_NODE(1, 4), RIG_NODE(1, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 5);
	spots_occupy(&rig, 1, 2);
	assert_string_equal(spots_place(&rig, RULE, skewed(2, 740)), "1:2");
	assert_string_equal(spots_place(&rig, RULE, skewed(3, 740)), "0:3");
	assert_string_equal(spots_place(&rig, RULE, skewed(6, 740)), "0:4 1:2");
	assert_string_equal(spots_place(&rig, RULE, skewed(7, 740)), "2:4 3:3");
	assert_string_equal(spots_place(&rig, RULE, skewed(12, 740)), "2:4 3:4 4:4");
	assert_string_equal(spots_place(&rig, RULE, skewed(13, 740)), "nowhere");
	rig_close(&rig);
}

/* Aim: a node whose GPUs are too small is passed over, also when the one that
 * suits comes before it. */
static void test_small_gpus(void **state)
{
	(void)state;
	struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 2)};
	nodes[1].gpu_memory_bytes = 16 * RIG_GIB;
	struct rig rig;
	spots_open(&rig, nodes, 2);
	struct sw_job job = skewed(2, 740);
	assert_string_equal(spots_place(&rig, RULE, job), "1:2");
	job.gpu_memory_bytes = 40 * RIG_GIB;
	assert_string_equal(spots_place(&rig, RULE, job), "0:2");
	rig_close(&rig);
}

/* Aim: nodes of different sizes: as few nodes as can hold the job, also where the
 * largest are not enough. */
static void test_uneven_nodes(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 8), RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4)};
	struct rig rig;
	spots_open(&rig, nodes, 4);
	assert_string_equal(spots_place(&rig, RULE, skewed(12, 740)), "0:8 1:4");
	assert_string_equal(spots_place(&rig, RULE, skewed(16, 740)), "0:8 1:4 2:4");
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
		cmocka_unit_test(test_who_is_consolidated), cmocka_unit_test(test_kinds),	 cmocka_unit_test(test_consolidated),
		cmocka_unit_test(test_small_gpus),	    cmocka_unit_test(test_uneven_nodes), cmocka_unit_test(test_promises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
