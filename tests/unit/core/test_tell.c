/* What a policy is told: what has changed since its last decision, another decision when it asks
 * for one, scratch memory for each, and its context. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripted.h"

#define SCRATCH 64u

static uint32_t changes;
static uint32_t decisions;
static bool dirty; /* the scratch memory was not zero */
static sw_ns first_at;

static sw_ns listening_decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	unsigned char *scratch = sw_plan_scratch(plan);
	changes = sw_view_changes(view);
	decisions++;
	for (size_t i = 0; i < SCRATCH; i++) {
		dirty |= scratch[i] != 0;
		scratch[i] = 0xff;
	}
	assert_ptr_equal(sw_view_policy(view)->context, &first_at);
	return scripted_decide(plan);
}

static const struct sw_policy listening = {.abi = SW_POLICY_ABI,
					   .name = "listening",
					   .about = "notes what it is told",
					   .scratch_size = SCRATCH,
					   .context = &first_at,
					   .decide = listening_decide};

static void open_listening(struct rig *rig)
{
	script = NULL;
	decisions = 0;
	dirty = false;
	rig_open(rig, two_by_two, 2, (struct sw_engine_config){.policy = &listening}, NULL);
}

static void stop_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	/* What a decision does counts for the next one. */
	assert_int_equal(sw_view_changes(sw_plan_view(plan)), 0);
}

/* Aim: a decision is told of arrivals, stops, releases, capacity, quotas, speeds and alarms, and of
 * each once. */
static void test_changes(void **state)
{
	(void)state;
	struct rig rig;
	open_listening(&rig);
	rig_tick(&rig, 0);
	assert_int_equal(changes, SW_CHANGE_ALL);
	rig_tick(&rig, 1);
	assert_int_equal(changes, 0);
	rig_submit_plain(&rig, 1, 1, 100);
	assert_int_equal(changes, SW_CHANGE_ARRIVALS);
	run_script(&rig, 2, start_first);
	assert_int_equal(changes, 0);
	run_script(&rig, 3, stop_first);
	rig_tick(&rig, 4);
	assert_int_equal(changes, SW_CHANGE_STOPS);
	rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
	assert_int_equal(changes, SW_CHANGE_RELEASES);
	rig_event(&rig, 6, (struct sw_event){.kind = SW_EV_RELEASE, .job = {0}});
	assert_int_equal(changes, SW_CHANGE_ARRIVALS);
	rig_event(&rig, 7, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 3});
	assert_int_equal(changes, SW_CHANGE_QUOTAS);
	rig_event(&rig, 8, (struct sw_event){.kind = SW_EV_NODE_CLOSE, .node = {1}});
	assert_int_equal(changes, SW_CHANGE_CAPACITY);
	run_script(&rig, 9, start_first);
	rig_event(&rig, 10, (struct sw_event){.kind = SW_EV_SPEED, .job = {0}, .epoch = 2, .speed_milli = 900});
	assert_int_equal(changes, SW_CHANGE_SPEEDS);
	rig_event(&rig, 11, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {0}});
	assert_int_equal(changes, SW_CHANGE_STOPS | SW_CHANGE_LOSSES | SW_CHANGE_CAPACITY);
	rig_event(&rig, 12, (struct sw_event){.kind = SW_EV_CANCEL, .job = {0}});
	assert_int_equal(changes, SW_CHANGE_RELEASES);
	rig_tick(&rig, 13);
	assert_int_equal(changes, 0);
	rig_close(&rig);
}

/* Aim: other terms are a change of everything to a policy that skips decisions without one; the
 * same terms again are none. */
static void test_terms_are_a_change(void **state)
{
	(void)state;
	struct rig rig;
	open_listening(&rig);
	struct sw_terms terms = *sw_engine_terms(rig.engine);
	rig_tick(&rig, 0);
	rig_tick(&rig, 1);
	assert_int_equal(changes, 0);
	terms.quantum_ns = 60 * SW_NS_PER_S;
	assert_int_equal(sw_engine_set_terms(rig.engine, &terms, NULL), 0);
	rig_tick(&rig, 2);
	assert_int_equal(changes, SW_CHANGE_ALL);
	assert_int_equal(sw_engine_set_terms(rig.engine, &terms, NULL), 0);
	rig_tick(&rig, 3);
	assert_int_equal(changes, 0);
	rig_close(&rig);
}

static void tell_shut(struct rig *rig, int64_t at_s, uint64_t mask)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = mask});
}

/* Aim: capacity that comes is a change also where as many GPUs are free as before: larger ones,
 * another node in the same instant, another GPU that takes jobs. */
static void test_capacity_of_the_same_size(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_topology_change larger = {.shape = two_by_two[0]}, same = {.shape = two_by_two[0]};
	larger.shape.gpu_memory_bytes *= 2;
	for (uint32_t g = 0; g < SW_NODE_GPUS_MAX; g++)
		larger.to[g] = same.to[g] = g < 2 ? (uint8_t)g : SW_GPU_GONE;
	open_listening(&rig);
	rig_tick(&rig, 0);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {0}, .change = &larger});
	assert_int_equal(changes, SW_CHANGE_CAPACITY);
	rig_event(&rig, 2, rig_node_event(SW_EV_NODE_CLOSE, 0));
	rig_tick(&rig, 3);
	assert_int_equal(changes, 0);
	const struct sw_event swap[] = {rig_node_event(SW_EV_NODE_OPEN, 0), rig_node_event(SW_EV_NODE_CLOSE, 1)};
	rig_step(&rig, 4, swap, 2);
	assert_int_equal(changes, SW_CHANGE_CAPACITY);
	const struct sw_event back[] = {rig_node_event(SW_EV_NODE_DOWN, 0), rig_node_event(SW_EV_NODE_OPEN, 1),
					rig_node_event(SW_EV_NODE_DOWN, 1), rig_node_event(SW_EV_NODE_UP, 0)};
	rig_step(&rig, 5, back, 4);
	assert_int_equal(changes, SW_CHANGE_CAPACITY);
	tell_shut(&rig, 6, 1);
	tell_shut(&rig, 7, 2);
	assert_int_equal(changes, SW_CHANGE_CAPACITY);
	tell_shut(&rig, 8, 2);
	assert_int_equal(changes, 0);
	rig_close(&rig);
}

static void set_alarm(struct sw_plan *plan)
{
	sw_alarm_set(sw_plan_view(plan), job_of(plan, 0), 5 * SW_NS_PER_S, 0);
}

/* Aim: an alarm is a change for a policy without an alarm callback too. */
static void test_alarm(void **state)
{
	(void)state;
	struct rig rig;
	open_listening(&rig);
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 1, set_alarm);
	rig_tick(&rig, 5);
	assert_int_equal(changes, SW_CHANGE_ALARMS);
	rig_close(&rig);
}

static void again(struct sw_plan *plan)
{
	first_at = sw_view_now(sw_plan_view(plan));
	sw_plan_again(plan);
}

/* Aim: a policy that asks for it decides once more, at the next nanosecond and only once; its
 * scratch memory is zero each time. */
static void test_again(void **state)
{
	(void)state;
	struct rig rig;
	open_listening(&rig);
	run_script(&rig, 1, again);
	assert_int_equal(rig.step.wake_at, first_at + 1);
	rig_tick(&rig, 2);
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	assert_true(decisions >= 2);
	assert_false(dirty);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_terms_are_a_change),
		cmocka_unit_test(test_capacity_of_the_same_size),
		cmocka_unit_test(test_alarm),
		cmocka_unit_test(test_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
