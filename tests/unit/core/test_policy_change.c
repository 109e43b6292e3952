/* Policies that misbehave, sleep, or are replaced: the engine throws them out, says so, and goes
 * on with what is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "rig.h"

static const struct sw_topology_node four_gpus[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};

/* ---- a policy that counts its calls and misuses the plan as often as it is told ---- */

static struct {
	int starts, submits, started, stopped, ended;
	int misuses; /* per decision */
	bool sleeps;
	sw_ns wake;
	const char *complaint;
} calls;

static const char *on_start(struct sw_view *view)
{
	(void)view;
	calls.starts++;
	return calls.complaint;
}

static void on_submit(struct sw_view *view, const struct sw_job *job)
{
	/* Its bytes are there and zeroed. */
	uint64_t *own = sw_job_state(view, job);
	assert_non_null(own);
	assert_int_equal(*own, 0);
	*own = job->id.v + 1;
	calls.submits++;
}

static void on_started(struct sw_view *view, const struct sw_job *job)
{
	assert_int_equal(*(uint64_t *)sw_job_state(view, job), job->id.v + 1);
	calls.started++;
}

static void on_stopped(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	(void)job;
	calls.stopped++;
}

static void on_ended(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	(void)job;
	calls.ended++;
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (int m = 0; m < calls.misuses; m++)
		assert_int_equal(sw_plan_run(plan, NULL, NULL), SW_MISUSE);
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL), *next; !calls.sleeps && job != NULL; job = next) {
		next = sw_view_next_waiting(view, job);
		(void)sw_plan_run(plan, job, NULL);
	}
	return calls.wake;
}

static const struct sw_policy rascal = {
	.abi = SW_POLICY_ABI,
	.name = "rascal",
	.about = "misbehaves as told",
	.state_size = 8,
	.job_state_size = 8,
	.start = on_start,
	.submit = on_submit,
	.started = on_started,
	.stopped = on_stopped,
	.ended = on_ended,
	.decide = decide,
};

static void open_rascal(struct rig *rig, uint32_t misuse_limit, const struct sw_policy *fallback)
{
	memset(&calls, 0, sizeof calls);
	calls.wake = SW_TIME_NEVER;
	rig_open(rig, four_gpus, 2, (struct sw_engine_config){.policy = &rascal, .fallback = fallback, .misuse_limit = misuse_limit}, NULL);
}

/* The step that the engine asked for: the policy that took over decides at the next instant. */
static void wake(struct rig *rig)
{
	struct sw_err err = {0};
	sw_ns at = rig->step.wake_at;
	assert_int_equal(at, sw_view_now(sw_engine_view(rig->engine)) + 1);
	assert_int_equal(sw_engine_step(rig->engine, at, NULL, 0, &rig->step, &err), 0);
}

/* Aim: a policy hears of every job that comes, starts, stops and ends, once. */
static void test_callbacks(void **state)
{
	(void)state;
	struct rig rig;
	open_rascal(&rig, 0, NULL);
	assert_int_equal(calls.starts, 1);
	uint32_t a = rig_submit_plain(&rig, 0, 3, 10), b = rig_submit_plain(&rig, 0, 2, 10);
	assert_int_equal(calls.submits, 2);
	assert_int_equal(calls.started, 1);
	rig_event(&rig, 1, rig_node_event(SW_EV_NODE_DOWN, 0));
	assert_int_equal(calls.stopped, 1);
	assert_true(rig_runs(&rig, b));
	rig_finish(&rig, 2, b);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_CANCEL, .job = {a}});
	assert_int_equal(calls.ended, 2);
	assert_int_equal(calls.started, 2);
	rig_close(&rig);
}

/* Aim: once no node may join any more, a job that is too large for those that are here is refused;
 * it does not wait for ever. */
static void test_nodes_join_no_more(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_config config = {.policy = &sw_policy_fifo, .terms = {.may_grow = true}};
	rig_open(&rig, four_gpus, 2, config, NULL);
	uint32_t small = rig_submit_plain(&rig, 0, 2, 10), large = rig_submit_plain(&rig, 0, 8, 10);
	assert_int_equal(rig_state(&rig, large), SW_JOB_WAITING);
	config.terms.may_grow = false;
	assert_int_equal(sw_engine_set_terms(rig.engine, &config.terms, NULL), 0);
	rig_tick(&rig, 1);
	assert_int_equal(rig_state(&rig, large), SW_JOB_REFUSED);
	assert_int_equal(rig_command(&rig, SW_CMD_REFUSE, large)->reason, SW_REASON_NO_SUCH_PLACE);
	assert_true(rig_runs(&rig, small));
	rig_close(&rig);
}

/* Aim: misuses in a row of decisions add up; one decision without any forgives them all. */
static void test_misuse_limit(void **state)
{
	(void)state;
	struct rig rig;
	open_rascal(&rig, 10, &sw_policy_fifo);
	calls.misuses = 3;
	for (int t = 0; t < 3; t++)
		rig_tick(&rig, t);
	assert_string_equal(sw_engine_policy(rig.engine), "rascal");
	assert_string_equal(sw_engine_notes(rig.engine), "");
	calls.misuses = 0;
	rig_tick(&rig, 3);
	calls.misuses = 3;
	for (int t = 4; t < 7; t++)
		rig_tick(&rig, t);
	assert_string_equal(sw_engine_policy(rig.engine), "rascal");
	rig_tick(&rig, 7);
	assert_string_equal(sw_engine_policy(rig.engine), "fifo");
	assert_non_null(strstr(sw_engine_notes(rig.engine), "'rascal' was replaced by 'fifo' at 7.000 s"));
	assert_non_null(strstr(sw_engine_notes(rig.engine), "misused the plan 12 times"));
	rig_close(&rig);
}

/* Aim: a policy that is thrown out takes nothing along: what runs goes on, what waits is started by
 * its successor in the same step. */
static void test_thrown_out_in_midstream(void **state)
{
	(void)state;
	struct rig rig;
	open_rascal(&rig, 5, &sw_policy_fifo);
	uint32_t runs = rig_submit_plain(&rig, 0, 3, 10);
	calls.sleeps = true;
	uint32_t waits = rig_submit_plain(&rig, 1, 1, 10);
	assert_int_equal(rig_state(&rig, waits), SW_JOB_WAITING);
	calls.misuses = 5;
	rig_tick(&rig, 2);
	assert_string_equal(sw_engine_policy(rig.engine), "fifo");
	wake(&rig);
	assert_true(rig_runs(&rig, runs) && rig_runs(&rig, waits));
	assert_int_equal(rig_job(&rig, runs)->first_start_at, 0);
	assert_int_equal(calls.started, 1); /* it is not told any more */
	rig_finish(&rig, 3, runs);
	assert_int_equal(calls.ended, 0);
	rig_close(&rig);
}

/* Aim: without a fall-back a policy stays in charge whatever it does, and the engine stays
 * sound. */
static void test_no_fallback(void **state)
{
	(void)state;
	struct rig rig;
	open_rascal(&rig, 5, NULL);
	calls.misuses = 50;
	rig_submit_plain(&rig, 0, 1, 10);
	rig_tick(&rig, 1);
	rig_tick(&rig, 2);
	assert_string_equal(sw_engine_policy(rig.engine), "rascal");
	rig_close(&rig);
}

/* Aim: a wish to be woken now or in the past is misuse, and time does not stand still. */
static void test_wake_in_the_past(void **state)
{
	(void)state;
	const sw_ns wishes[] = {0, -5, 5 * SW_NS_PER_S, INT64_MIN};
	for (size_t w = 0; w < RIG_COUNT(wishes); w++) {
		struct rig rig;
		open_rascal(&rig, 2, &sw_policy_fifo);
		calls.wake = wishes[w];
		rig_tick(&rig, 5);
		assert_true(rig.step.wake_at > 5 * SW_NS_PER_S);
		rig_tick(&rig, 6);
		assert_string_equal(sw_engine_policy(rig.engine), "fifo");
		rig_close(&rig);
	}
}

/* ---- the watchdog ---- */

/* Aim: a policy that lets jobs wait for ever on an idle cluster is replaced,
 * and the note says why. */
static void test_watchdog(void **state)
{
	(void)state;
	struct rig rig;
	open_rascal(&rig, 0, &sw_policy_fifo);
	calls.sleeps = true;
	uint32_t id = rig_submit_plain(&rig, 0, 1, 10);
	assert_string_equal(sw_engine_policy(rig.engine), "fifo");
	assert_non_null(strstr(sw_engine_notes(rig.engine), "nothing ran, jobs waited"));
	wake(&rig);
	assert_true(rig_runs(&rig, id));
	rig_close(&rig);
}

/* Aim: waiting is not sleeping where something runs, a node is down, a wake-up is asked for, a
 * quota forbids, or a user holds the job. */
static void test_watchdog_is_patient(void **state)
{
	(void)state;
	for (int reason = 0; reason < 5; reason++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 10);
		open_rascal(&rig, 0, &sw_policy_fifo);
		if (reason == 0)
			rig_submit_plain(&rig, 0, 1, 10);
		if (reason == 1)
			rig_event(&rig, 0, rig_node_event(SW_EV_NODE_DOWN, 1));
		if (reason == 2)
			calls.wake = 100 * SW_NS_PER_S;
		if (reason == 3)
			rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 0});
		spec.held = reason == 4;
		calls.sleeps = true;
		rig_submit(&rig, 1, &spec);
		if (strcmp(sw_engine_policy(rig.engine), "rascal") != 0)
			fail_msg("reason %d: %s", reason, sw_engine_notes(rig.engine));
		rig_close(&rig);
	}
}

/* Aim: the watchdog also bites when the last running job ends and the policy
 * does not start the next. */
static void test_watchdog_after_an_end(void **state)
{
	(void)state;
	struct rig rig;
	open_rascal(&rig, 0, &sw_policy_fifo);
	uint32_t first = rig_submit_plain(&rig, 0, 4, 10), second = rig_submit_plain(&rig, 0, 4, 10);
	calls.sleeps = true;
	rig_finish(&rig, 10, first);
	wake(&rig);
	assert_true(rig_runs(&rig, second));
	assert_string_equal(sw_engine_policy(rig.engine), "fifo");
	rig_close(&rig);
}

/* ---- replacing a policy on purpose ---- */

/* Aim: another policy takes over running and waiting jobs as they are, and decides
 * from the next step on. */
static void test_set_policy(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, four_gpus, 2, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	uint32_t runs = rig_submit_plain(&rig, 0, 4, 100), long_job = rig_submit_plain(&rig, 0, 4, 50),
		 short_job = rig_submit_plain(&rig, 0, 4, 5);
	uint64_t hash = sw_engine_log_hash(rig.engine);
	assert_int_equal(sw_engine_set_policy(rig.engine, &sw_policy_srtf, NULL, NULL), 0);
	assert_int_equal(sw_engine_validate(rig.engine, NULL), 0);
	assert_string_equal(sw_engine_policy(rig.engine), "srtf");
	assert_int_not_equal(sw_engine_log_hash(rig.engine), hash);
	assert_true(rig_runs(&rig, runs));
	rig_tick(&rig, 1);
	assert_true(rig_runs(&rig, short_job));
	assert_false(rig_runs(&rig, runs) || rig_runs(&rig, long_job));
	assert_int_equal(sw_job_ran(sw_engine_view(rig.engine), rig_job(&rig, runs)), SW_NS_PER_S);
	rig_close(&rig);
}

/* Aim: a policy that does not start leaves the old one in charge, with the
 * sentence that it gave. */
static void test_set_policy_that_does_not_start(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_err err = {0};
	rig_open(&rig, four_gpus, 2, (struct sw_engine_config){.policy = &sw_policy_srtf}, NULL);
	rig_submit_plain(&rig, 0, 4, 100);
	rig_submit_plain(&rig, 0, 4, 200);
	memset(&calls, 0, sizeof calls);
	calls.complaint = "rascal.mood cannot be bad";
	assert_int_equal(sw_engine_set_policy(rig.engine, &rascal, NULL, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "mood"));
	assert_string_equal(sw_engine_policy(rig.engine), "srtf");
	assert_int_equal(sw_engine_validate(rig.engine, NULL), 0);
	uint32_t shortest = rig_submit_plain(&rig, 1, 4, 5);
	assert_true(rig_runs(&rig, shortest));
	rig_close(&rig);
}

/* Aim: when a policy fails to take over, what the old one had learned about its jobs is still
 * there: a long job stays in its low queue. */
static void test_failed_change_keeps_what_was_learned(void **state)
{
	(void)state;
	static const char *const words[] = {"thresholds=10", NULL};
	struct rig rig;
	rig_open(&rig, four_gpus, 2, (struct sw_engine_config){.policy = &sw_policy_las}, words);
	uint32_t old = rig_submit_plain(&rig, 0, 4, 100);
	rig_tick(&rig, 3); /* 12 GPU-seconds: it has left the first queue */
	memset(&calls, 0, sizeof calls);
	calls.complaint = "no";
	assert_int_equal(sw_engine_set_policy(rig.engine, &rascal, NULL, NULL), SW_EINPUT);
	uint32_t fresh = rig_submit_plain(&rig, 4, 4, 100);
	assert_true(rig_runs(&rig, fresh));
	assert_false(rig_runs(&rig, old));
	rig_close(&rig);
}

/* Aim: jobs that only the old policy could place do not block the new one for ever: they are
 * refused when it takes over. */
static void test_change_to_a_stricter_policy(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, four_gpus, 2, (struct sw_engine_config){.policy = &sw_policy_las, .placement = &sw_placement_yarn}, NULL);
	struct sw_job_spec greedy = rig_spec(1, 100);
	greedy.cpus = 1000; /* yarn has no such node; las takes placement as a wish */
	uint32_t all = rig_submit_plain(&rig, 0, 4, 100), impossible = rig_submit(&rig, 0, &greedy),
		 behind = rig_submit_plain(&rig, 0, 1, 100);
	assert_int_equal(rig_state(&rig, impossible), SW_JOB_WAITING);
	assert_int_equal(sw_engine_set_policy(rig.engine, &sw_policy_fifo, NULL, NULL), 0);
	rig_finish(&rig, 10, all);
	assert_int_equal(rig_state(&rig, impossible), SW_JOB_REFUSED);
	assert_true(rig_runs(&rig, behind));
	rig_close(&rig);
}

/* Aim: a job that ran before the policy changed is not refused for that: it goes on, and when it
 * must wait again it may run anywhere. */
static void test_change_to_a_stricter_policy_while_running(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rig rig;
		rig_open(&rig, four_gpus, 2, (struct sw_engine_config){.policy = &sw_policy_las, .placement = &sw_placement_yarn}, NULL);
		struct sw_job_spec greedy = rig_spec(1, 100);
		greedy.cpus = 1000;
		greedy.retries = 1;
		uint32_t impossible = rig_submit(&rig, 0, &greedy);
		assert_true(rig_runs(&rig, impossible));
		assert_int_equal(sw_engine_set_policy(rig.engine, &sw_policy_fifo, NULL, NULL), 0);
		rig_tick(&rig, 1);
		assert_true(rig_runs(&rig, impossible));
		if (how == 0)
			rig_event(&rig, 2, rig_answer(&rig, SW_EV_FAIL, impossible));
		if (how == 1)
			rig_event(&rig, 2, rig_node_event(SW_EV_NODE_DOWN, 0));
		if (how == 2) {
			rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {impossible}});
			rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_RELEASE, .job = {impossible}});
		}
		uint32_t behind = rig_submit_plain(&rig, 4, 1, 100);
		assert_true(rig_runs(&rig, impossible));
		assert_true(rig_runs(&rig, behind));
		rig_close(&rig);
	}
}

/* ---- making an engine ---- */

/* Aim: a policy or a rule of another version, one that cannot decide, and one that does not start
 * are refused with a reason. */
static void test_bad_policies_are_refused(void **state)
{
	(void)state;
	struct sw_topology *topology = NULL;
	struct sw_engine *engine = NULL;
	struct sw_policy old = rascal, idle = rascal;
	struct sw_placement other = sw_placement_count;
	assert_int_equal(sw_topology_new(four_gpus, 2, &topology, NULL), 0);
	old.abi = SW_POLICY_ABI + 1;
	other.abi = SW_POLICY_ABI + 1;
	idle.decide = NULL;
	memset(&calls, 0, sizeof calls);
	calls.complaint = "rascal.mood cannot be bad";
	const struct {
		const struct sw_policy *policy;
		const struct sw_placement *placement;
		const char *words;
	} cases[] = {
		{&old, &sw_placement_count, "another version"},
		{&sw_policy_fifo, &other, "another version"},
		{&idle, &sw_placement_count, "neither an order nor a decide"},
		{&rascal, &sw_placement_count, "does not start"},
	};
	for (size_t c = 0; c < RIG_COUNT(cases); c++) {
		struct sw_err err = {0};
		const struct sw_engine_config config = {.topology = topology, .policy = cases[c].policy, .placement = cases[c].placement};
		assert_int_equal(sw_engine_new(&config, &engine, &err), SW_EINPUT);
		assert_null(engine);
		if (strstr(err.fact, cases[c].words) == NULL)
			fail_msg("'%s' does not say '%s'", err.fact, cases[c].words);
	}
	sw_topology_free(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callbacks),
		cmocka_unit_test(test_nodes_join_no_more),
		cmocka_unit_test(test_misuse_limit),
		cmocka_unit_test(test_thrown_out_in_midstream),
		cmocka_unit_test(test_no_fallback),
		cmocka_unit_test(test_wake_in_the_past),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_watchdog_is_patient),
		cmocka_unit_test(test_watchdog_after_an_end),
		cmocka_unit_test(test_set_policy),
		cmocka_unit_test(test_set_policy_that_does_not_start),
		cmocka_unit_test(test_failed_change_keeps_what_was_learned),
		cmocka_unit_test(test_change_to_a_stricter_policy),
		cmocka_unit_test(test_change_to_a_stricter_policy_while_running),
		cmocka_unit_test(test_bad_policies_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
