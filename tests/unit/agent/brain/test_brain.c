/* The rules of the agent's brain, one by one: what starts, what stops, what is told. Those of runs
 * that stand still are in test_brain_suspend.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* A wish becomes one START with its GPUs and lease; the same wish again, or repeated
 * answers, start nothing. */
static void test_start_once(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_sync sync;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	struct sw_run_spec spec = *fixture_spec();
	spec.lease_ms = LEASE_MS;
	struct sw_want want = RUN(1, 1, 3);
	want.spec = &spec;
	struct sw_answer_message answer = {.version = 4, .lease_ms = SW_LEASE_OF_OLD_MS, .wants = &want, .want_count = 1};
	now += 5 * MS;
	assert_int_equal(sw_agent_brain_answer(brain, now, sync.number, &answer), 0);
	struct sw_agent_action actions[8];
	assert_int_equal(sw_agent_brain_act(brain, now, actions, 8), 1);
	assert_int_equal(actions[0].act, SW_ACT_START);
	assert_int_equal(actions[0].want->gpus.count, 2);
	assert_string_equal(actions[0].want->gpus.items[1], "GPU-1");
	assert_string_equal(actions[0].want->spec->argv.items[0], "true");
	/* The lease counts from when the question was sent. */
	assert_true(actions[0].lease_boot_ns == START_NS + LEASE_MS * MS);
	RUNS("1.1 starting");
	/* Again the same answer: it was to a question that is answered. */
	assert_int_equal(sw_agent_brain_answer(brain, now, sync.number, &answer), 0);
	ACTS("");
	now += 100 * MS;
	ANSWER(now, 4, RUN(1, 1, 3));
	ACTS("");
}

/* Only the answer to the latest sync counts: one to an older question could
 * bring back old wishes. */
static void test_only_latest_answer(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_sync first, second;
	assert_true(sw_agent_brain_sync(brain, now, &first));
	sw_agent_brain_nudge(brain);
	now += 100 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &second));
	assert_true(second.number == first.number + 1);
	struct sw_want want = RUN(1, 1, 1);
	struct sw_answer_message answer = {.version = 1, .lease_ms = SW_LEASE_OF_OLD_MS, .wants = &want, .want_count = 1};
	assert_int_equal(sw_agent_brain_answer(brain, now, first.number, &answer), 0);
	assert_int_equal(sw_agent_brain_answer(brain, now, second.number + 1, &answer), 0);
	ACTS("");
	RUNS("");
	assert_int_equal(sw_agent_brain_answer(brain, now, second.number, &answer), 0);
	ACTS("start 1.1");
}

/* A start waits while one of its GPUs is used, until that run is suspended or exited. */
static void test_start_waits_for_gpus(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += MS * 100;
	ANSWER(now, 2, RUN(1, 1, 1), RUN(2, 1, 3), RUN(3, 1, 4));
	ACTS("start 3.1");
	RUNS("1.1 running; 2.1 starting; 3.1 starting");
	now += MS * 100;
	ANSWER(now, 3, SUSPEND(1, 1), RUN(2, 1, 3), RUN(3, 1, 4));
	ACTS("suspend 1.1");
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("start 2.1");
	fixture_said(brain, 2, 1, SW_RUN_EXITED);
	ACTS("");
}

/* A resume waits in the same way, and of two that want one GPU only one gets it. */
static void test_resume_waits_for_gpus(void **state)
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
	ANSWER(now, 3, RUN(1, 1, 1), RUN(2, 1, 1));
	ACTS("");
	now += 100 * MS;
	ANSWER(now, 4, RUN(1, 1, 1), SUSPEND(2, 1));
	ACTS("suspend 2.1");
	fixture_said(brain, 2, 1, SW_RUN_SUSPENDED);
	ACTS("resume 1.1");
	/* Told, not yet shown: its GPU is taken. */
	now += 100 * MS;
	ANSWER(now, 5, RUN(1, 1, 1), RUN(2, 1, 1), RUN(3, 1, 1));
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_RUNNING);
	ACTS("");
}

/* An epoch below one that was seen is not started, even after the later one is forgotten; nor
 * is the same epoch twice. */
static void test_epochs(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 5, 1);
	fixture_said(brain, 1, 5, SW_RUN_EXITED);
	now += 100 * MS;
	ANSWER(now, 2, FORGET(1, 5));
	ACTS("delete 1.5");
	RUNS("");
	now += 100 * MS;
	ANSWER(now, 3, RUN(1, 4, 1), RUN(2, 1, 2));
	ACTS("start 2.1");
	RUNS("1.4 exited (stale-epoch); 2.1 starting");
	now += 100 * MS;
	ANSWER(now, 4, RUN(1, 5, 1), RUN(2, 1, 2));
	ACTS("");
	RUNS("1.5 exited (stale-epoch); 2.1 starting");
	now += 100 * MS;
	ANSWER(now, 5, RUN(1, 6, 1), RUN(2, 1, 2));
	ACTS("start 1.6");
}

/* A lower epoch that waits for its GPU gives way to a higher one of its job. */
static void test_waiting_epoch_is_overtaken(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 9, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, RUN(9, 1, 1), RUN(1, 1, 1));
	ACTS("");
	now += 100 * MS;
	ANSWER(now, 3, RUN(9, 1, 1), RUN(1, 1, 1), RUN(1, 2, 2));
	ACTS("start 1.2");
	RUNS("1.1 exited (stale-epoch); 1.2 starting; 9.1 running");
}

/* Two runs of one job never live at the same time, whatever GPUs they have. */
static void test_one_life_at_a_time(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, SUSPEND(1, 1), RUN(1, 2, 2));
	ACTS("suspend 1.1");
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	ACTS("");
	now += 100 * MS;
	ANSWER(now, 3, RUN(1, 2, 2));
	ACTS("stop 1.1 0 -1");
	fixture_said(brain, 1, 1, SW_RUN_EXITED);
	ACTS("start 1.2");
}

/* An exit is told in every sync until it is to be forgotten; only then is its folder deleted. */
static void test_exit_until_forget(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_EXITED, .code = 3, .reason = "", .detail = "first"},
			    0);
	/* What comes later changes nothing. */
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_EXITED, .code = 4, .reason = ""}, 0);
	fixture_said(brain, 1, 1, SW_RUN_RUNNING);
	for (uint64_t version = 2; version < 6; version++) {
		now += 100 * MS;
		struct sw_sync sync;
		assert_true(sw_agent_brain_sync(brain, now, &sync));
		assert_int_equal(sync.run_count, 1);
		assert_true(sync.runs[0].state == SW_RUN_EXITED && sync.runs[0].code == 3);
		assert_string_equal(sync.runs[0].detail, "first");
		/* Neither a wish to run it nor no wish at all makes it go away. */
		struct sw_want want = RUN(1, 1, 1);
		struct sw_answer_message answer = {
			.version = version, .lease_ms = SW_LEASE_OF_OLD_MS, .wants = &want, .want_count = version % 2};
		assert_int_equal(sw_agent_brain_answer(brain, now, sync.number, &answer), 0);
		ACTS("");
	}
	now += 100 * MS;
	ANSWER(now, 9, FORGET(1, 1));
	ACTS("delete 1.1");
	RUNS("");
}

/* What lives and is to be forgotten was given up by the controller: it is killed
 * first, then forgotten. */
static void test_forget_alive(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, FORGET(1, 1));
	ACTS("stop 1.1 0 0");
	fixture_said(brain, 1, 1, SW_RUN_EXITED);
	ACTS("delete 1.1");
}

/* A run that is not wished for is stopped; before the first answer everything that
 * was found is left alone. */
static void test_unknown_runs_are_stopped(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_texts gpus = fixture_gpus(1);
	assert_int_equal(sw_agent_brain_found(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""}, &gpus), 0);
	assert_int_equal(sw_agent_brain_found(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""}, &gpus),
			 SW_EINPUT);
	fixture_link(brain, 1, 1, true);
	ACTS("");
	ANSWER(now, 1, RUN(2, 1, 1));
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_RUNNING);
	ACTS("stop 1.1 0 -1");
	ACTS("");
	fixture_said(brain, 1, 1, SW_RUN_EXITED);
	ACTS("start 2.1");
	RUNS("1.1 exited; 2.1 starting");
}

/* Found runs count as started: their epoch is not started again, and their GPUs are theirs even
 * before their supervisors answer. */
static void test_found_runs(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_texts gpus = fixture_gpus(1);
	assert_int_equal(sw_agent_brain_found(brain, &(struct sw_sync_run){.id = {1, 2}, .state = SW_RUN_SUSPENDED, .reason = ""}, &gpus),
			 0);
	assert_int_equal(sw_agent_brain_found(brain, &(struct sw_sync_run){.id = {4, 1}, .state = SW_RUN_EXITED, .reason = ""}, &gpus), 0);
	ANSWER(now, 1, SUSPEND(1, 2), RUN(1, 1, 2), RUN(3, 1, 1), RUN(4, 1, 2));
	ACTS("");
	RUNS("1.1 exited (stale-epoch); 1.2 suspended; 3.1 starting; 4.1 exited");
	fixture_link(brain, 1, 2, true);
	ACTS("");
	fixture_said(brain, 1, 2, SW_RUN_SUSPENDED);
	ACTS("start 3.1");
}

/* What was never started and is not wanted any more ends without a trace: told once as an exit if
 * it is asked for, else dropped. */
static void test_never_started(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 9, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, RUN(9, 1, 1), RUN(1, 1, 1), RUN(2, 1, 1), RUN(3, 1, 1), STOP(4, 1), SUSPEND(5, 1), FORGET(6, 1));
	ACTS("");
	RUNS("1.1 starting; 2.1 starting; 3.1 starting; 4.1 exited (never-started); 5.1 exited (never-started); 9.1 running");
	now += 100 * MS;
	ANSWER(now, 3, RUN(9, 1, 1), STOP(1, 1), SUSPEND(3, 1), FORGET(4, 1));
	ACTS("");
	RUNS("1.1 exited (never-started); 3.1 suspended; 9.1 running");
	/* It is over: a later wish to run it comes too late. But 2.1 was only dropped. */
	fixture_said(brain, 9, 1, SW_RUN_EXITED);
	now += 100 * MS;
	ANSWER(now, 4, RUN(1, 1, 1), RUN(2, 1, 2), FORGET(9, 1));
	ACTS("start 2.1; delete 9.1");
	RUNS("1.1 exited (never-started); 2.1 starting");
}

/* A wish for a GPU that the node does not have is answered with an exit that says so. */
static void test_missing_gpu(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	static const char *uuids[] = {"GPU-0", "GPU-77", NULL};
	struct sw_want want = RUN(1, 1, 0);
	want.gpus = (struct sw_texts){uuids, 2};
	fixture_answer(brain, now, 1, &want, 1);
	ACTS("");
	RUNS("1.1 exited (launch)");
	const struct sw_sync_run *runs;
	sw_agent_brain_runs(brain, &runs);
	assert_string_equal(runs[0].detail, "GPU 'GPU-77' is not in this node");
}

/* A wish without a spec for a run that is not here cannot be followed: the next sync has no
 * version, so that the spec comes. */
static void test_missing_spec(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_want want = RUN(1, 1, 1);
	want.spec = NULL;
	fixture_answer(brain, now, 7, &want, 1);
	ACTS("");
	RUNS("");
	struct sw_sync sync;
	assert_false(sw_agent_brain_sync(brain, now + 99 * MS, &sync));
	now += 1000 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_int_equal(sync.have, 0);
	sw_agent_brain_failed(brain, now, sync.number);
	now += 100 * MS;
	ANSWER(now, 7, RUN(1, 1, 1));
	ACTS("start 1.1");
	/* Once it is known it need not be told again. */
	now += 100 * MS;
	fixture_answer(brain, now, 8, &want, 1);
	ACTS("");
	RUNS("1.1 starting");
	assert_true(sw_agent_brain_sync(brain, now + 10 * MS, &sync));
	assert_int_equal(sync.have, 8);
}

/* Stop is told once, again when its terms change or the link was down, and is never taken back. */
static void test_stop(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	struct sw_want stop = STOP(1, 1);
	stop.signal = 10;
	stop.grace_ms = 5000;
	now += 100 * MS;
	fixture_answer(brain, now, 2, &stop, 1);
	ACTS("stop 1.1 10 5000");
	ACTS("");
	stop.grace_ms = 0;
	now += 100 * MS;
	fixture_answer(brain, now, 3, &stop, 1);
	ACTS("stop 1.1 10 0");
	now += 100 * MS;
	ANSWER(now, 4, RUN(1, 1, 1));
	ACTS("");
	now += 100 * MS;
	ANSWER(now, 5, SUSPEND(1, 1));
	ACTS("");
	now += 100 * MS;
	fixture_answer(brain, now, 6, &stop, 1);
	fixture_link(brain, 1, 1, false);
	ACTS("");
	fixture_link(brain, 1, 1, true);
	ACTS("stop 1.1 10 0");
}

/* The deadline that the last LEASE gave; 0: none was given. */
static int64_t lease_given(struct sw_agent_brain *brain, int64_t now_ns)
{
	struct sw_agent_action actions[16];
	int64_t given = 0;
	for (size_t count; (count = sw_agent_brain_act(brain, now_ns, actions, 16)) > 0;)
		for (size_t i = 0; i < count; i++)
			given = actions[i].act == SW_ACT_LEASE ? actions[i].lease_boot_ns : given;
	return given;
}

/* The lease of a run is passed on as it grows, in steps worth a message, and to a link that
 * comes up; it never shrinks. */
static void test_lease(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_run_spec spec = *fixture_spec();
	spec.lease_ms = LEASE_MS;
	struct sw_want want = RUN(1, 1, 1);
	want.spec = &spec;
	fixture_answer(brain, now, 1, &want, 1);
	ACTS("start 1.1");
	fixture_link(brain, 1, 1, true);
	fixture_said(brain, 1, 1, SW_RUN_RUNNING);
	assert_true(lease_given(brain, now) == now + LEASE_MS * MS);
	now += 1000 * MS;
	ANSWER(now, 1, RUN(1, 1, 1));
	assert_true(lease_given(brain, now) == 0);
	now += 2500 * MS;
	ANSWER(now, 1, RUN(1, 1, 1));
	assert_true(lease_given(brain, now) == now + LEASE_MS * MS);
	assert_true(lease_given(brain, now) == 0);
	fixture_link(brain, 1, 1, false);
	fixture_link(brain, 1, 1, true);
	assert_true(lease_given(brain, now) == now + LEASE_MS * MS);
	/* An answer that does not come is given up early enough for another try. */
	struct sw_sync sync;
	spec.lease_ms = 5000;
	struct sw_want brief = RUN(2, 1, 2);
	brief.spec = &spec;
	struct sw_want both[] = {RUN(1, 1, 1), brief};
	now += 2000 * MS;
	fixture_answer(brain, now, 2, both, 2);
	ACTS("start 2.1");
	now += 10 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_true(sw_agent_brain_wake(brain) <= now + 2150 * MS);
	/* What is wished to stop gets no more of it. */
	int64_t then = now - 10 * MS;
	now += 10000 * MS;
	struct sw_want stop = fixture_want(1, 1, SW_WANT_STOP, 1);
	fixture_answer(brain, now, 3, &stop, 1);
	fixture_link(brain, 1, 1, false);
	fixture_link(brain, 1, 1, true);
	assert_true(lease_given(brain, now) == then + LEASE_MS * MS);
}

/* A run without a lease is told once for each link that it may go on for ever, also before the
 * first answer: its supervisor may be one of version 0.1, which has a lease all the same. */
static void test_no_lease(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS, year_ns = INT64_C(365) * 86400 * 1000 * MS;
	const struct sw_sync_run found = {.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	assert_int_equal(sw_agent_brain_found(brain, &found, &(struct sw_texts){0}), 0);
	sw_agent_brain_spec(brain, found.id, fixture_spec());
	fixture_link(brain, 1, 1, true);
	assert_true(lease_given(brain, now) > now + 50 * year_ns);
	assert_true(lease_given(brain, now + year_ns) == 0);
	ANSWER(now, 1, RUN(1, 1, 0));
	assert_true(lease_given(brain, now) == 0);
	fixture_link(brain, 1, 1, false);
	fixture_link(brain, 1, 1, true);
	assert_true(lease_given(brain, now) > now + 50 * year_ns);
	/* And nothing of a lease is said where it is started. */
	struct sw_agent_action actions[8];
	now += 100 * MS;
	ANSWER(now, 2, RUN(1, 1, 0), RUN(2, 1, 1));
	assert_int_equal(sw_agent_brain_act(brain, now, actions, 8), 1);
	assert_int_equal(actions[0].act, SW_ACT_START);
	assert_true(actions[0].lease_boot_ns == 0);
}

/* Nothing is started or resumed long after the last answer, since the controller may wish otherwise
 * by now; the next answer frees it. What runs goes on. */
static void test_nothing_starts_without_a_fresh_answer(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, RUN(1, 1, 1), RUN(2, 1, 1));
	ACTS("");
	now += (30000 + 1) * MS;
	fixture_said(brain, 1, 1, SW_RUN_EXITED);
	ACTS("");
	ANSWER(now, 2, RUN(1, 1, 1), RUN(2, 1, 1));
	ACTS("start 2.1");
}

/* A controller of version 0.1 runs the jobs of a silent node anew although they would run on here:
 * nothing is started for it. */
static void test_old_controller(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_sync sync;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_true(sync.leases);
	struct sw_want want = RUN(1, 1, 1);
	struct sw_answer_message answer = {.version = 1, .lease_ms = 30000, .wants = &want, .want_count = 1};
	assert_int_equal(sw_agent_brain_answer(brain, now, sync.number, &answer), 0);
	ACTS("");
	now += 1000 * MS;
	ANSWER(now, 2, RUN(1, 1, 1));
	ACTS("start 1.1");
}

/* A supervisor that is lost is asked to be cleaned up after, once for each time; its GPUs stay
 * taken until that is done. */
static void test_lost(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 100 * MS;
	ANSWER(now, 2, RUN(1, 1, 1), RUN(2, 1, 1));
	sw_agent_brain_lost(brain, (struct sw_run_id){1, 1}, true);
	ACTS("recover 1.1");
	ACTS("");
	sw_agent_brain_lost(brain, (struct sw_run_id){1, 1}, true);
	ACTS("recover 1.1");
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_EXITED, .reason = SW_REASON_SUPERVISOR_LOST}, 0);
	sw_agent_brain_lost(brain, (struct sw_run_id){1, 1}, true);
	ACTS("start 2.1");
	RUNS("1.1 exited (supervisor-lost); 2.1 starting");
}

/* One that died before it began gets another, for as long as the controller
 * wishes; three times at most. */
static void test_lost_before_it_began(void **state)
{
	struct sw_agent_brain *brain = *state;
	struct sw_run_id id = {1, 1};
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	for (int i = 0; i < 3; i++) {
		sw_agent_brain_lost(brain, id, false);
		ACTS("begin 1.1");
		ACTS("");
	}
	sw_agent_brain_lost(brain, id, false);
	ACTS("recover 1.1");
}

/* Not where one of its GPUs has left the node. */
static void test_lost_with_its_gpu(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	struct sw_sync_inventory none = {NULL, 0, 8, 1 << 30};
	assert_int_equal(sw_agent_brain_inventory(brain, &none), 0);
	sw_agent_brain_lost(brain, (struct sw_run_id){1, 1}, false);
	ACTS("recover 1.1");
}

/* An agent that finds such a run asks the controller first; a lease that may be over, or
 * another wish, ends the run. */
static void test_found_before_it_began(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	for (uint64_t job = 1; job <= 3; job++) {
		struct sw_run_spec spec = *fixture_spec();
		spec.lease_ms = job == 3 ? 60000 : 0;
		struct sw_texts gpus = fixture_gpus(1u << (job - 1));
		assert_int_equal(
			sw_agent_brain_found(brain, &(struct sw_sync_run){.id = {job, 1}, .state = SW_RUN_STARTING, .reason = ""}, &gpus),
			0);
		sw_agent_brain_spec(brain, (struct sw_run_id){job, 1}, &spec);
		sw_agent_brain_lost(brain, (struct sw_run_id){job, 1}, false);
	}
	ACTS("recover 3.1");
	ANSWER(now, 1, RUN(1, 1, 1));
	ACTS("begin 1.1; recover 2.1");
}

/* The inventory is in every sync until one that has it was answered, and again when it changes.
 * No sync goes without it. */
static void test_inventory(void **state)
{
	struct sw_agent_brain *brain = *state, *mute = NULL;
	int64_t now = START_NS;
	struct sw_sync sync;
	assert_int_equal(sw_agent_brain_new(&(struct sw_agent_brain_config){.node = "n", .instance = "i", .seed = 1}, &mute, NULL), 0);
	assert_false(sw_agent_brain_sync(mute, now, &sync));
	assert_true(sw_agent_brain_wake(mute) == SW_NEVER);
	sw_agent_brain_free(mute);

	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_true(sync.inventory != NULL && sync.inventory->gpu_count == 4 && sync.number == 1 && sync.have == 0);
	assert_string_equal(sync.instance, "aa");
	sw_agent_brain_failed(brain, now, 1);
	now += 100 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_true(sync.inventory != NULL && sync.number == 2);
	assert_int_equal(sw_agent_brain_answer(brain, now, 2, &(struct sw_answer_message){.version = 3, .lease_ms = SW_LEASE_OF_OLD_MS}),
			 0);
	now += 100 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_true(sync.inventory == NULL && sync.have == 3);
	/* It changes while the question is out: the answer to that one does not count. */
	assert_int_equal(sw_agent_brain_inventory(brain, &(struct sw_sync_inventory){.cpus = 1}), 0);
	assert_int_equal(
		sw_agent_brain_answer(brain, now, sync.number, &(struct sw_answer_message){.version = 3, .lease_ms = SW_LEASE_OF_OLD_MS}),
		0);
	now += 100 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_true(sync.inventory != NULL && sync.inventory->gpu_count == 0 && sync.inventory->cpus == 1);
}

/* Syncs go out at once after news, but not closer than they can be answered; idle ones wait for
 * the controller's answer. */
static void test_when_to_sync(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_sync sync;
	fixture_start(brain, now, 1, 1, 1, 1);
	now += 10 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	/* The controller keeps the question: nothing to do until it is overdue. */
	assert_false(sw_agent_brain_sync(brain, now + 10000 * MS, &sync));
	assert_true(sw_agent_brain_wake(brain) == now + 13000 * MS);
	fixture_said(brain, 1, 1, SW_RUN_EXITED);
	assert_true(sw_agent_brain_wake(brain) <= now + 10 * MS);
	now += 10 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	/* News after news before any answer: the distance grows, so that an
	 * answer can come in between. */
	int64_t last = 0;
	for (int i = 0; i < 12; i++) {
		sw_agent_brain_nudge(brain);
		int64_t wake = sw_agent_brain_wake(brain);
		assert_true(wake - now >= last && wake - now <= 1000 * MS);
		last = wake - now;
		now = wake;
		assert_true(sw_agent_brain_sync(brain, now, &sync));
	}
	assert_true(last >= 500 * MS);
	/* An answer that brings nothing and came at once: the controller does not keep
	 * questions, so do not flood it. */
	struct sw_answer_message answer = {.version = sync.have, .lease_ms = SW_LEASE_OF_OLD_MS, .retry_ms = 700};
	assert_int_equal(sw_agent_brain_answer(brain, now, sync.number, &answer), 0);
	assert_true(sw_agent_brain_wake(brain) == now + 700 * MS);
	sw_agent_brain_nudge(brain);
	assert_true(sw_agent_brain_wake(brain) <= now + 10 * MS);
}

/* A controller that has no room says when to come back: an agent comes no earlier, but is
 * not sent away for hours. */
static void test_put_off(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_sync sync;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	sw_agent_brain_failed(brain, now, sync.number);
	sw_agent_brain_put_off(brain, now, 5000 * MS);
	sw_agent_brain_nudge(brain);
	assert_true(sw_agent_brain_wake(brain) >= now + 5000 * MS && sw_agent_brain_wake(brain) < now + 6000 * MS);
	assert_false(sw_agent_brain_sync(brain, now + 4999 * MS, &sync));
	now += 6000 * MS;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	sw_agent_brain_failed(brain, now, sync.number);
	sw_agent_brain_put_off(brain, now, INT64_C(86400000) * MS);
	assert_true(sw_agent_brain_wake(brain) < now + 61000 * MS);
}

/* A controller that is away is asked again after a while that grows up to two seconds, and
 * differs between agents. */
static void test_back_off(void **state)
{
	struct sw_agent_brain *brain = *state, *other = fixture_brain("bb", 2);
	int64_t now = START_NS;
	struct sw_sync sync;
	int64_t longest = 0;
	int differ = 0;
	for (int i = 0; i < 20; i++) {
		assert_true(sw_agent_brain_sync(brain, now, &sync));
		sw_agent_brain_failed(brain, now, sync.number);
		/* Once is enough. */
		sw_agent_brain_failed(brain, now, sync.number);
		assert_true(sw_agent_brain_sync(other, now, &sync));
		sw_agent_brain_failed(other, now, sync.number);
		/* News does not cut the wait short. */
		sw_agent_brain_nudge(brain);
		int64_t wait = sw_agent_brain_wake(brain) - now;
		assert_true(wait >= 25 * MS && wait <= 2000 * MS);
		differ += sw_agent_brain_wake(other) != sw_agent_brain_wake(brain);
		if (wait > longest)
			longest = wait;
		now += 2000 * MS;
	}
	assert_true(longest > 1000 * MS && differ > 15);
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_int_equal(
		sw_agent_brain_answer(brain, now, sync.number, &(struct sw_answer_message){.version = 1, .lease_ms = SW_LEASE_OF_OLD_MS}),
		0);
	assert_true(sw_agent_brain_wake(brain) <= now + 10 * MS);
	sw_agent_brain_free(other);
}

/* The agent keeps as many runs as a sync can tell; a wish beyond that is put off, not lost. */
static void test_bound(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	struct sw_texts none = {0};
	for (uint32_t i = 0; i < SW_SYNC_RUNS_MAX; i++)
		assert_int_equal(
			sw_agent_brain_found(brain, &(struct sw_sync_run){.id = {i + 100, 1}, .state = SW_RUN_EXITED, .reason = ""}, &none),
			0);
	assert_int_equal(sw_agent_brain_found(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_EXITED, .reason = ""}, &none),
			 SW_ELIMIT);
	ANSWER(now, 1, RUN(2, 1, 1));
	ACTS("");
	now += 1000 * MS;
	struct sw_sync sync;
	assert_true(sw_agent_brain_sync(brain, now, &sync));
	assert_true(sync.have == 0 && sync.run_count == SW_SYNC_RUNS_MAX);
	sw_agent_brain_failed(brain, now, sync.number);
	now += 1000 * MS;
	ANSWER(now, 1, RUN(2, 1, 1), FORGET(100, 1));
	ACTS("delete 100.1");
	now += 1000 * MS;
	ANSWER(now, 1, RUN(2, 1, 1));
	ACTS("start 2.1");
}

/* A run whose order cannot be read may have a lease: it is not told that it may go on for ever, or
 * it would run beside the one that follows it elsewhere. */
static void test_unknown_lease(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	const struct sw_sync_run found = {.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	assert_int_equal(sw_agent_brain_found(brain, &found, &(struct sw_texts){0}), 0);
	fixture_link(brain, 1, 1, true);
	assert_true(lease_given(brain, now) == 0);
	ANSWER(now, 1, RUN(1, 1, 0));
	assert_true(lease_given(brain, now) == 0);
}

static void said_on(struct sw_agent_brain *brain, uint64_t job, const char *gpus, const char *moving)
{
	sw_agent_brain_said(
		brain, &(struct sw_sync_run){.id = {job, 1}, .state = SW_RUN_RUNNING, .reason = "", .gpus = gpus, .moving = moving}, 0);
}

/* A run trespasses on a GPU where its supervisor has not put it, nor is about to; that is news once
 * for each run, however many do. */
static void test_trespass(void **state)
{
	struct sw_agent_brain *brain = *state;
	const struct sw_run_id first = {1, 1}, second = {2, 1};
	fixture_start(brain, START_NS, 1, 1, 1, 1);
	ANSWER(START_NS + 100 * MS, 2, RUN(1, 1, 1), RUN(2, 1, 2));
	fixture_act(brain, START_NS + 100 * MS, false);
	/* What its folder says may be old; its supervisor has not spoken yet. */
	assert_int_equal(sw_agent_brain_trespass(brain, second, "GPU-3"), SW_TRESPASS_NONE);
	fixture_link(brain, 2, 1, true);
	said_on(brain, 2, NULL, "GPU-2");
	assert_int_equal(sw_agent_brain_trespass(brain, second, "GPU-1"), SW_TRESPASS_NONE);
	assert_int_equal(sw_agent_brain_trespass(brain, second, "GPU-2"), SW_TRESPASS_NONE);
	said_on(brain, 2, "GPU-2", NULL);
	assert_int_equal(sw_agent_brain_trespass(brain, second, "GPU-2"), SW_TRESPASS_NONE);
	for (int i = 0; i < 3; i++) {
		enum sw_trespass trespass = i == 0 ? SW_TRESPASS_NEW : SW_TRESPASS_KNOWN;
		assert_int_equal(sw_agent_brain_trespass(brain, first, "GPU-3"), trespass);
		assert_int_equal(sw_agent_brain_trespass(brain, second, "GPU-1"), trespass);
	}
	assert_int_equal(sw_agent_brain_trespass(brain, (struct sw_run_id){3, 1}, "GPU-1"), SW_TRESPASS_NONE);
	fixture_said(brain, 1, 1, SW_RUN_EXITED);
	assert_int_equal(sw_agent_brain_trespass(brain, first, "GPU-3"), SW_TRESPASS_NONE);
}

static bool frees(struct sw_agent_brain *brain)
{
	const struct sw_sync_run *runs;
	assert_int_equal(sw_agent_brain_runs(brain, &runs), 1);
	return runs[0].frees;
}

/* A run whose processes use its GPU outside the runtime does not free it; that is known until a
 * look at its GPU says otherwise. */
static void test_outside(void **state)
{
	struct sw_agent_brain *brain = *state;
	int64_t now = START_NS;
	fixture_start(brain, now, 1, 1, 1, 1);
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = "", .movable = true}, 0);
	struct sw_sync_sample samples[3] = {{.gpu = "GPU-0", .memory_bytes = 1},
					    {.gpu = "GPU-0", .has_run = true, .run = {1, 1}, .outside = 1},
					    {.gpu = "GPU-1", .memory_bytes = 1}};
	assert_true(frees(brain));
	sw_agent_brain_look(brain, now, samples, 2);
	assert_false(frees(brain));
	/* The driver is silent: processes are all that is seen, or another GPU. */
	sw_agent_brain_look(brain, now, &(struct sw_sync_sample){.has_run = true, .run = {1, 1}}, 1);
	assert_false(frees(brain));
	sw_agent_brain_look(brain, now, &samples[2], 1);
	assert_false(frees(brain));
	sw_agent_brain_look(brain, now, samples, 1);
	assert_true(frees(brain));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_up, fixture_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_start_once),
		TEST(test_only_latest_answer),
		TEST(test_start_waits_for_gpus),
		TEST(test_resume_waits_for_gpus),
		TEST(test_epochs),
		TEST(test_waiting_epoch_is_overtaken),
		TEST(test_one_life_at_a_time),
		TEST(test_exit_until_forget),
		TEST(test_forget_alive),
		TEST(test_unknown_runs_are_stopped),
		TEST(test_found_runs),
		TEST(test_never_started),
		TEST(test_missing_gpu),
		TEST(test_missing_spec),
		TEST(test_stop),
		TEST(test_lease),
		TEST(test_no_lease),
		TEST(test_unknown_lease),
		TEST(test_nothing_starts_without_a_fresh_answer),
		TEST(test_old_controller),
		TEST(test_lost),
		TEST(test_lost_before_it_began),
		TEST(test_lost_with_its_gpu),
		TEST(test_found_before_it_began),
		TEST(test_inventory),
		TEST(test_when_to_sync),
		TEST(test_back_off),
		TEST(test_put_off),
		TEST(test_bound),
		TEST(test_outside),
		TEST(test_trespass),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
