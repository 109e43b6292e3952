/* Nodes that are switched off and on in a simulated world: boot times, and failures meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/number.h"
#include "sim/boots.h"
#include "stage.h"

#define S SW_NS_PER_S

static void second_off(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, (struct sw_node_id){1}, false), SW_YES);
}

static void second_on(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, (struct sw_node_id){1}, true), SW_YES);
}

static sw_ns start_decide(struct sw_plan *plan)
{
	(void)scripted_decide(plan);
	start_all(plan);
	return SW_TIME_NEVER;
}

static const struct sw_policy starting = {.abi = SW_POLICY_ABI, .name = "starting", .about = "starts what fits", .decide = start_decide};

/* Aim: a node that was switched on is up after the boot time of its world, whatever that is, and
 * not earlier: a job that needs it starts then. */
static void test_boot_time(void **state)
{
	(void)state;
	const int64_t boots_s[] = {0, 60, 600};
	for (size_t b = 0; b < RIG_COUNT(boots_s); b++) {
		struct stage stage;
		stage_begin(&stage, "ideal");
		stage.world->boot_ns = boots_s[b] * S;
		stage_job(&stage, 4, 10, "resnet50");
		stage_rise(&stage, two_nodes, 2, &starting, &sw_placement_count);
		stage_at(&stage, 0, second_off);
		stage_at(&stage, 100, second_on);
		expect_end(&stage, 0, (100 + boots_s[b] + 10) * S);
		stage_end(&stage);
	}
}

/* Aim: off and on again before it was up takes a whole boot from the last time on. */
static void test_switched_twice(void **state)
{
	(void)state;
	struct sw_boots *boots;
	uint32_t node = 9;
	assert_int_equal(sw_boots_new(2, 60, &boots), 0);
	sw_boots_switch(boots, 1, false, 0);
	assert_int_equal(sw_boots_next(boots), INT64_MAX);
	sw_boots_switch(boots, 1, true, 10);
	assert_int_equal(sw_boots_next(boots), 70);
	assert_false(sw_boots_take(boots, 69, &node));
	sw_boots_switch(boots, 1, false, 20);
	assert_false(sw_boots_take(boots, 1000, &node));
	sw_boots_switch(boots, 1, true, 30);
	assert_true(sw_boots_take(boots, 90, &node));
	assert_int_equal(node, 1);
	assert_false(sw_boots_take(boots, 1000, &node));
	sw_boots_free(boots);
}

/* Aim: a failure of a node that is off is not told; switched on, it is up once it is repaired. One
 * that fails while it boots is told, and its boot is not. */
static void test_failures(void **state)
{
	(void)state;
	struct sw_boots *boots;
	uint32_t node;
	assert_int_equal(sw_boots_new(2, 60, &boots), 0);
	assert_true(sw_boots_passes_fault(boots, 0, false));
	assert_true(sw_boots_passes_fault(boots, 0, true));
	sw_boots_switch(boots, 1, false, 0);
	assert_false(sw_boots_passes_fault(boots, 1, false));
	sw_boots_switch(boots, 1, true, 10);
	assert_false(sw_boots_take(boots, 1000, &node));
	assert_true(sw_boots_passes_fault(boots, 1, true));
	sw_boots_switch(boots, 1, false, 20);
	sw_boots_switch(boots, 1, true, 30);
	assert_true(sw_boots_passes_fault(boots, 1, false));
	assert_false(sw_boots_take(boots, 1000, &node));
	assert_true(sw_boots_passes_fault(boots, 1, true));
	/* Repaired while it was off, it boots as any other. */
	sw_boots_switch(boots, 1, false, 40);
	assert_false(sw_boots_passes_fault(boots, 1, false));
	assert_false(sw_boots_passes_fault(boots, 1, true));
	sw_boots_switch(boots, 1, true, 50);
	assert_true(sw_boots_take(boots, 110, &node));
	sw_boots_free(boots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boot_time),
		cmocka_unit_test(test_switched_twice),
		cmocka_unit_test(test_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
