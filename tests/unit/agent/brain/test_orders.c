/* One order, one fate: what the agent's brain makes of wishes that could not be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

static void answer_with(struct sw_agent_brain *brain, int64_t now, uint64_t version, const struct sw_want *wants, size_t count,
			struct sw_unread unread)
{
	struct sw_sync sync;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	struct sw_want copies[4];
	for (size_t i = 0; i < count; i++)
		copies[i] = wants[i];
	const struct sw_answer_message answer = {.version = version,
						 .lease_ms = SW_LEASE_OF_OLD_MS,
						 .wants = copies,
						 .want_count = count,
						 .unread = &unread,
						 .unread_count = 1};
	assert_int_equal(sw_agent_brain_answer(brain, now, sync.number, &answer), 0);
}

/* An order that cannot be read ends its own run, with the reason; the run beside it goes on and the
 * one that is wished for starts. */
static void test_its_run_ends_alone(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	const struct sw_want wants[] = {RUN(1, 1, 1), RUN(3, 1, 2)};
	answer_with(brain, now, 2, wants, 2, (struct sw_unread){{2, 1}, true, "'wants[1].spec.time_limit_ms' is 5"});
	ACTS("start 3.1");
	RUNS("1.1 running; 2.1 exited (order); 3.1 starting");
	struct sw_sync sync;
	assert_true(sw_agent_brain_sync(brain, now + 1000 * MS, &sync));
	/* The answer as a whole was taken: it need not be given again. */
	assert_true(sync.have == 2 && sync.run_count == 3 && sync.runs[1].code == 125);
	assert_string_equal(sync.runs[1].detail, "'wants[1].spec.time_limit_ms' is 5");
}

/* A run that is here goes on as it was wished before, while the wish for it cannot be read; and
 * hears the next one that can. */
static void test_running_run_goes_on(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	answer_with(brain, now, 2, NULL, 0, (struct sw_unread){{1, 1}, true, "?"});
	ACTS("");
	RUNS("1.1 running");
	now += 100 * MS;
	ANSWER(now, 3, STOP(1, 1));
	ACTS("stop 1.1 0 -1");
}

/* Where not even the id can be read, no run is stopped for not being listed, and none that waits is
 * dropped; what is listed is heard. */
static void test_any_run_may_be_meant(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, RUN(1, 1, 1), RUN(2, 1, 1), RUN(3, 1, 2));
	ACTS("start 3.1");
	fixture_link(brain, 3, 1, true);
	fixture_said(brain, 3, 1, SW_RUN_RUNNING);
	now += 100 * MS;
	const struct sw_want stop = STOP(3, 1);
	answer_with(brain, now, 3, &stop, 1, (struct sw_unread){.why = "'wants[0].job' is missing"});
	ACTS("stop 3.1 0 -1");
	RUNS("1.1 running; 2.1 starting; 3.1 running");
	now += 100 * MS;
	ANSWER(now, 4, RUN(2, 1, 1));
	ACTS("stop 1.1 0 -1"); /* the other was told before */
}

/* An order that the controller could not make ends the run with what the controller says of it. */
static void test_unfit(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_want want = RUN(1, 1, 1);
	want.spec = NULL;
	want.unfit = "its request cannot be read";
	ANSWER(now, 1, want);
	ACTS("");
	RUNS("1.1 exited (order)");
	/* Told until the controller has recorded it. */
	now += 100 * MS;
	ANSWER(now, 2, want);
	RUNS("1.1 exited (order)");
	now += 100 * MS;
	ANSWER(now, 3, FORGET(1, 1));
	ACTS("");
	RUNS("");
}

/* The reason of a wish reaches the order that follows from it, in one line: what it is made of can
 * neither be a second order nor move a cursor. A wish without one has none. */
static void test_why(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_agent_action action[3];
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	struct sw_want want = SUSPEND(1, 1);
	want.why = "for job 7\nstop 9 9 0\033[2J \xc2\x9b"
		   "1m";
	ANSWER(now, 2, want);
	assert_int_equal(sw_agent_brain_act(brain, now, action, 3), 1);
	assert_true(action[0].act == SW_ACT_SUSPEND);
	assert_string_equal(action[0].why, "for job 7 stop 9 9 0 [2J ??1m");
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_SUSPENDED, .reason = ""}, action[0].order);
	now += 100 * MS;
	ANSWER(now, 3, STOP(1, 1));
	assert_int_equal(sw_agent_brain_act(brain, now, action, 3), 1);
	assert_true(action[0].act == SW_ACT_STOP);
	assert_string_equal(action[0].why, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_up, fixture_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_its_run_ends_alone),
		TEST(test_running_run_goes_on),
		TEST(test_any_run_may_be_meant),
		TEST(test_unfit),
		TEST(test_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
