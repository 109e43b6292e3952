/* The rules of the agent's brain for runs that stand still, are off their GPUs
 * whole, or go to others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* A suspended run that is to stop gets no grace beside a run that stays on its GPUs. It waits for
 * one that goes; and then they are its own until it has gone, before any other, whatever the
 * order of their numbers. */
static void test_stop_of_suspended(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, SUSPEND(1, 1), RUN(2, 1, 1));
	ACTS("suspend 1.1");
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("start 2.1");
	fixture_link(brain, 2, 1, true);
	fixture_said(brain, 2, 1, SW_RUN_RUNNING);
	now += 100 * MS;
	ANSWER(now, 3, STOP(1, 1), SUSPEND(2, 1), RUN(3, 1, 1));
	ACTS("suspend 2.1");
	ACTS("");
	fixture_said(brain, 2, 1, SW_RUN_SUSPENDED);
	ACTS("stop 1.1 0 -1");
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_EXITED);
	ACTS("start 3.1");
	fixture_link(brain, 3, 1, true);
	fixture_said(brain, 3, 1, SW_RUN_RUNNING);
	now += 100 * MS;
	ANSWER(now, 4, FORGET(1, 1), STOP(2, 1), RUN(3, 1, 1));
	ACTS("delete 1.1; stop 2.1 0 0");
	fixture_said(brain, 2, 1, SW_RUN_EXITED);
}

/* A newcomer whose number comes first does not slip in ahead of a suspended run that
 * must leave its GPU to it. */
static void test_leaving_comes_first(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 9, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, SUSPEND(9, 1));
	ACTS("suspend 9.1");
	fixture_said(brain, 9, 1, SW_RUN_SUSPENDED);
	now += 100 * MS;
	ANSWER(now, 3, RUN(2, 1, 1), STOP(9, 1));
	ACTS("stop 9.1 0 -1");
	ACTS("");
	fixture_said(brain, 9, 1, SW_RUN_EXITED);
	ACTS("start 2.1");
}

/* Suspend and resume follow the last wish even when it changes before the supervisor
 * has shown the one before. */
static void test_changed_mind(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, SUSPEND(1, 1));
	ACTS("suspend 1.1");
	now += 100 * MS;
	ANSWER(now, 3, RUN(1, 1, 1));
	ACTS("resume 1.1");
	fixture_said_early(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("");
	now += 100 * MS;
	ANSWER(now, 4, SUSPEND(1, 1), RUN(2, 1, 1));
	ACTS("suspend 1.1");
	/* It is suspended, but a resume is on its way to it: its GPU is not free until the
	 * last order is carried out. */
	fixture_said_early(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("");
	fixture_said_early(brain, 1, 1, SW_RUN_RUNNING);
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_RUNNING);
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("start 2.1");
	RUNS("1.1 suspended; 2.1 starting");
}

/* A suspended run that is linked to anew is left alone until its supervisor has spoken: it might be
 * told to move beside another. */
static void test_relink_of_suspended(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, SUSPEND(1, 1), RUN(2, 1, 1));
	ACTS("suspend 1.1");
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("start 2.1");
	fixture_link(brain, 1, 1, false);
	fixture_link(brain, 1, 1, true);
	now += 100 * MS;
	ANSWER(now, 3, RUN(1, 1, 1), RUN(2, 1, 1));
	ACTS("");
	now += 100 * MS;
	ANSWER(now, 4, STOP(1, 1), RUN(2, 1, 1));
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("stop 1.1 0 0");
}

static void said_depth(struct sw_agent_brain *brain, enum sw_run_state state, enum sw_run_depth depth, uint64_t order)
{
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {1, 1}, .state = state, .depth = depth, .reason = ""}, order);
}

static enum sw_run_depth told_depth(struct sw_agent_brain *brain)
{
	const struct sw_sync_run *runs;
	assert_true(sw_agent_brain_runs(brain, &runs) > 0);
	return runs[0].depth;
}

static struct sw_want deep(struct sw_want want)
{
	want.deep = true;
	return want;
}

/* The order of the only action there is, which must be to suspend. */
static uint64_t suspends(struct sw_agent_brain *brain, int64_t now, bool deep)
{
	struct sw_agent_action actions[3];
	size_t count = sw_agent_brain_act(brain, now, actions, 3);
	for (size_t i = 0; i < count; i++)
		if (actions[i].act == SW_ACT_SUSPEND) {
			assert_int_equal(actions[i].deep, deep);
			return actions[i].order;
		}
	fail_msg("no run is suspended");
	return 0;
}

/* A run that is to be off its GPUs whole keeps them until it is, or until the controller
 * knows that it cannot be. */
static void test_off_its_gpus(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, deep(SUSPEND(1, 1)), RUN(2, 1, 1));
	uint64_t order = suspends(brain, now, true);
	said_depth(brain, SW_RUN_RUNNING, SW_DEPTH_LEAVING, order);
	ACTS("");
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_USUAL, order);
	ACTS("");
	assert_int_equal(told_depth(brain), SW_DEPTH_REFUSED);
	now += 100 * MS;
	ANSWER(now, 3, SUSPEND(1, 1), RUN(2, 1, 1));
	assert_int_equal(told_depth(brain), SW_DEPTH_USUAL);
	ACTS("start 2.1");
	fixture_link(brain, 2, 1, true);
	fixture_said(brain, 2, 1, SW_RUN_RUNNING);
	/* Again, from where it stands: what was said before is not about this. */
	now += 100 * MS;
	ANSWER(now, 4, deep(SUSPEND(1, 1)), RUN(2, 1, 1));
	assert_int_equal(told_depth(brain), SW_DEPTH_USUAL);
	order = suspends(brain, now, true);
	assert_int_equal(told_depth(brain), SW_DEPTH_USUAL);
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_LEAVING, order);
	assert_int_equal(told_depth(brain), SW_DEPTH_LEAVING);
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_OFF, order);
	assert_int_equal(told_depth(brain), SW_DEPTH_OFF);
	/* Another agent takes it as it is. */
	fixture_link(brain, 1, 1, false);
	fixture_link(brain, 1, 1, true);
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_OFF, order);
	ACTS("");
	fixture_said(brain, 2, 1, SW_RUN_EXITED);
	now += 100 * MS;
	ANSWER(now, 5, RUN(1, 1, 1), FORGET(2, 1));
	ACTS("resume 1.1; delete 2.1");
}

/* That a run was off is not said of the next time that it is to be: not before its
 * supervisor has answered. */
static void test_off_is_of_this_time(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, deep(SUSPEND(1, 1)));
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_OFF, suspends(brain, now, true));
	assert_int_equal(told_depth(brain), SW_DEPTH_OFF);
	now += 100 * MS;
	ANSWER(now, 3, RUN(1, 1, 1));
	ACTS("resume 1.1");
	now += 100 * MS;
	ANSWER(now, 4, deep(SUSPEND(1, 1)));
	uint64_t order = suspends(brain, now, true);
	assert_int_not_equal(told_depth(brain), SW_DEPTH_OFF);
	said_depth(brain, SW_RUN_RUNNING, SW_DEPTH_LEAVING, order);
	assert_int_equal(told_depth(brain), SW_DEPTH_LEAVING);
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_OFF, order);
	assert_int_equal(told_depth(brain), SW_DEPTH_OFF);
}

/* A new agent finds a run suspended that is not off, and has it taken off. */
static void test_relink_on_its_way_off(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, deep(SUSPEND(1, 1)));
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_LEAVING, suspends(brain, now, true));
	fixture_link(brain, 1, 1, false);
	fixture_link(brain, 1, 1, true);
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_USUAL, 0);
	assert_int_equal(told_depth(brain), SW_DEPTH_USUAL);
	said_depth(brain, SW_RUN_SUSPENDED, SW_DEPTH_OFF, suspends(brain, now, true));
	ACTS("");
}

/* The order of the only move there is, which must be to these GPUs. */
static uint64_t moves(struct sw_agent_brain *brain, int64_t now, const char *gpus)
{
	struct sw_agent_action actions[3];
	size_t count = sw_agent_brain_act(brain, now, actions, 3);
	for (size_t i = 0; i < count; i++)
		if (actions[i].act == SW_ACT_MOVE) {
			assert_string_equal(actions[i].gpus, gpus);
			return actions[i].order;
		}
	fail_msg("no run is moved");
	return 0;
}

static void said_place(struct sw_agent_brain *brain, const char *gpus, const char *moving, const char *unmoved, uint64_t order)
{
	sw_agent_brain_said(brain,
			    &(struct sw_sync_run){.id = {1, 1},
						  .state = SW_RUN_RUNNING,
						  .reason = "",
						  .gpus = gpus,
						  .moving = moving,
						  .unmoved = unmoved,
						  .movable = true},
			    order);
}

static const struct sw_sync_run *told_run(struct sw_agent_brain *brain)
{
	const struct sw_sync_run *runs;
	assert_true(sw_agent_brain_runs(brain, &runs) > 0);
	return &runs[0];
}

/* A run that goes to other GPUs has both until it is there: no run starts on either. It
 * is suspended only then. */
static void test_moves(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	said_place(brain, NULL, NULL, NULL, 0);
	now += 100 * MS;
	ANSWER(now, 2, RUN(1, 1, 2), RUN(2, 1, 1));
	uint64_t order = moves(brain, now, "GPU-1");
	ACTS("");
	said_place(brain, NULL, "GPU-1", NULL, order);
	now += 100 * MS;
	struct sw_want parked = SUSPEND(1, 1);
	parked.gpus = fixture_gpus(2);
	ANSWER(now, 3, parked, RUN(2, 1, 1), RUN(3, 1, 2));
	ACTS("");
	/* Another agent finds it on its way. */
	fixture_link(brain, 1, 1, false);
	fixture_link(brain, 1, 1, true);
	said_place(brain, NULL, "GPU-1", NULL, order);
	ACTS("");
	said_place(brain, "GPU-1", NULL, NULL, order);
	ACTS("suspend 1.1; start 2.1");
	assert_null(told_run(brain)->unmoved);
	assert_string_equal(told_run(brain)->gpus, "GPU-1");
}

/* A run that cannot go stays, lets none in before the controller knows, and is not told again. */
static void test_does_not_move(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	said_place(brain, NULL, NULL, NULL, 0);
	now += 100 * MS;
	ANSWER(now, 2, RUN(1, 1, 2), RUN(2, 1, 1));
	uint64_t order = moves(brain, now, "GPU-1");
	said_place(brain, NULL, "GPU-1", NULL, order);
	said_place(brain, NULL, NULL, "the driver is too old", order);
	ACTS("");
	assert_string_equal(told_run(brain)->unmoved, "the driver is too old");
	now += 100 * MS;
	ANSWER(now, 3, RUN(1, 1, 1), RUN(2, 2, 2));
	assert_null(told_run(brain)->unmoved);
	ACTS("start 2.2");
	/* Without the runtime it is not even tried; and one that is suspended before
	 * it could go stays too. */
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""}, order);
	now += 100 * MS;
	ANSWER(now, 4, RUN(1, 1, 4), RUN(2, 2, 2));
	ACTS("");
	assert_string_equal(told_run(brain)->unmoved, "it runs without the GPU runtime");
	said_place(brain, NULL, NULL, NULL, order);
	now += 100 * MS;
	struct sw_want parked = SUSPEND(1, 1);
	parked.gpus = fixture_gpus(8);
	ANSWER(now, 5, parked, RUN(2, 2, 2), RUN(3, 1, 1));
	ACTS("suspend 1.1");
	assert_non_null(strstr(told_run(brain)->unmoved, "suspended"));
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("");
	now += 100 * MS;
	parked.gpus = fixture_gpus(1);
	ANSWER(now, 6, parked, RUN(2, 2, 2), RUN(3, 1, 1));
	ACTS("start 3.1");
}

/* An agent that starts finds job 1, ordered for GPU-0, and hears from its supervisor that it is on
 * GPU-1, all before it knows the GPUs of its node. */
static struct sw_agent_brain *find_moved(enum sw_run_state state)
{
	struct sw_agent_brain *brain = fixture_blank("bb", 2);
	struct sw_texts ordered = fixture_gpus(1);
	struct sw_sync_run run = {.id = {1, 1}, .state = state, .reason = "", .gpus = "GPU-1", .movable = true};
	assert_int_equal(sw_agent_brain_found(brain, &run, &ordered), 0);
	fixture_link(brain, 1, 1, true);
	sw_agent_brain_said(brain, &run, 0);
	fixture_inventory(brain);
	return brain;
}

/* A run that moved before its agent restarted is where its supervisor says: it is not moved again,
 * and its old GPU is free. */
static void test_moved_before_restart(void **state)
{
	(void)state;
	int64_t now = START_NS;
	SW_CLEANUP(sw_agent_brain_freep) struct sw_agent_brain *brain = find_moved(SW_RUN_RUNNING);
	ANSWER(now, 1, RUN(1, 1, 2), RUN(2, 1, 1));
	ACTS("start 2.1");
}

/* The same of a suspended one: it can be resumed. */
static void test_moved_and_suspended_before_restart(void **state)
{
	(void)state;
	int64_t now = START_NS;
	SW_CLEANUP(sw_agent_brain_freep) struct sw_agent_brain *brain = find_moved(SW_RUN_SUSPENDED);
	struct sw_want parked = SUSPEND(1, 1);
	parked.gpus = fixture_gpus(2);
	ANSWER(now, 1, parked, RUN(2, 1, 1));
	ACTS("start 2.1");
	assert_null(told_run(brain)->unmoved);
	now += 100 * MS;
	ANSWER(now, 2, RUN(1, 1, 2), RUN(2, 1, 1));
	ACTS("resume 1.1");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_up, fixture_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stop_of_suspended),
		TEST(test_leaving_comes_first),
		TEST(test_changed_mind),
		TEST(test_relink_of_suspended),
		TEST(test_off_its_gpus),
		TEST(test_off_is_of_this_time),
		TEST(test_moves),
		TEST(test_does_not_move),
		TEST(test_relink_on_its_way_off),
		cmocka_unit_test(test_moved_before_restart),
		cmocka_unit_test(test_moved_and_suspended_before_restart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
