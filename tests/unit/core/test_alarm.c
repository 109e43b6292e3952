/* Alarms of jobs: when they ring, in which order, how long they may be late, and
 * when they are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "rig.h"

static const struct sw_topology_node four_gpus[] = {RIG_NODE(0, 4)};

/* What rang, in order: the job, and when. */
static struct {
	uint32_t job;
	sw_ns at;
} rung[64];
static size_t rung_count;

/* What the policy does before it decides, once. */
static void (*before)(struct sw_view *view);

static void on_alarm(struct sw_view *view, const struct sw_job *job)
{
	assert_true(rung_count < RIG_COUNT(rung));
	rung[rung_count].job = job->id.v;
	rung[rung_count++].at = sw_view_now(view);
}

static sw_ns decide(struct sw_plan *plan)
{
	void (*once)(struct sw_view *) = before;
	before = NULL;
	if (once != NULL)
		once(sw_plan_view(plan));
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

static const struct sw_order order = {0};
static const struct sw_policy watchful = {
	.abi = SW_POLICY_ABI, .name = "watchful", .about = "sets alarms", .order = &order, .decide = decide, .alarm = on_alarm};

static void open_watchful(struct rig *rig, int jobs)
{
	rig_open(rig, four_gpus, 1, (struct sw_engine_config){.policy = &watchful}, NULL);
	for (int j = 0; j < jobs; j++)
		rig_submit_plain(rig, 0, 1, 1000);
	rung_count = 0;
}

static const struct sw_job *job_in(struct sw_view *view, uint32_t id)
{
	return sw_view_job(view, (struct sw_job_id){id});
}

static void set(struct rig *rig, int64_t at_s, void (*what)(struct sw_view *view))
{
	before = what;
	rig_tick(rig, at_s);
	assert_null(before);
}

static void three_alarms(struct sw_view *view)
{
	sw_alarm_set(view, job_in(view, 2), 30 * SW_NS_PER_S, 0);
	sw_alarm_set(view, job_in(view, 1), 20 * SW_NS_PER_S, 0);
	sw_alarm_set(view, job_in(view, 0), 30 * SW_NS_PER_S, 0);
}

/* Aim: the engine wakes for the earliest alarm; those of one moment ring in
 * the order of the jobs. */
static void test_order_of_alarms(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, 3);
	set(&rig, 1, three_alarms);
	assert_int_equal(rig.step.wake_at, 20 * SW_NS_PER_S);
	rig_tick(&rig, 19);
	assert_int_equal(rung_count, 0);
	rig_tick(&rig, 20);
	assert_int_equal(rung_count, 1);
	assert_int_equal(rung[0].job, 1);
	assert_int_equal(rig.step.wake_at, 30 * SW_NS_PER_S);
	rig_tick(&rig, 31); /* a step that comes late rings what is due */
	assert_int_equal(rung_count, 3);
	assert_int_equal(rung[1].job, 0);
	assert_int_equal(rung[2].job, 2);
	assert_int_equal(rung[2].at, 31 * SW_NS_PER_S);
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	rig_close(&rig);
}

static void alarms_with_slack(struct sw_view *view)
{
	sw_alarm_set(view, job_in(view, 0), 10 * SW_NS_PER_S, 50 * SW_NS_PER_S); /* at 60 at the latest */
	sw_alarm_set(view, job_in(view, 1), 20 * SW_NS_PER_S, 5 * SW_NS_PER_S);	 /* at 25 at the latest */
	sw_alarm_set(view, job_in(view, 2), 40 * SW_NS_PER_S, 0);
}

/* Aim: an alarm with slack waits for a step that comes anyway, but not longer than its slack; it
 * never rings before it is due. */
static void test_slack(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, 3);
	set(&rig, 1, alarms_with_slack);
	assert_int_equal(rig.step.wake_at, 25 * SW_NS_PER_S);
	rig_tick(&rig, 9);
	assert_int_equal(rung_count, 0);
	assert_int_equal(rig.step.wake_at, 25 * SW_NS_PER_S);
	rig_tick(&rig, 25); /* takes the first along, which could have waited */
	assert_int_equal(rung_count, 2);
	assert_int_equal(rung[0].job, 0);
	assert_int_equal(rung[1].job, 1);
	assert_int_equal(rig.step.wake_at, 40 * SW_NS_PER_S);
	rig_close(&rig);
}

static void many_alarms(struct sw_view *view)
{
	/* Due early with much slack, due later with none: the heap's top is
	 * not the one that wakes. */
	for (uint32_t id = 0; id < 30; id++)
		sw_alarm_set(view, job_in(view, id), (10 + id) * SW_NS_PER_S, (300 - 10 * (sw_ns)id) * SW_NS_PER_S);
}

/* Aim: the engine finds the earliest of due and slack together wherever it is in the heap. */
static void test_slack_in_a_full_heap(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, 30);
	set(&rig, 1, many_alarms);
	assert_int_equal(rig.step.wake_at, (39 + 10) * SW_NS_PER_S);
	rig_tick(&rig, 12);
	assert_int_equal(rung_count, 3);
	assert_int_equal(rig.step.wake_at, (39 + 10) * SW_NS_PER_S);
	rig_close(&rig);
}

static void replaced(struct sw_view *view)
{
	sw_alarm_set(view, job_in(view, 0), 10 * SW_NS_PER_S, 100 * SW_NS_PER_S);
	sw_alarm_set(view, job_in(view, 0), 20 * SW_NS_PER_S, 0);
	sw_alarm_set(view, job_in(view, 1), 15 * SW_NS_PER_S, 0);
	sw_alarm_clear(view, job_in(view, 1));
	sw_alarm_clear(view, job_in(view, 2)); /* had none */
}

/* Aim: a job has one alarm: a new one replaces the old, and it can be cleared. */
static void test_replace_and_clear(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, 3);
	set(&rig, 1, replaced);
	assert_int_equal(rig.step.wake_at, 20 * SW_NS_PER_S);
	rig_tick(&rig, 15);
	assert_int_equal(rung_count, 0);
	rig_tick(&rig, 20);
	assert_int_equal(rung_count, 1);
	rig_close(&rig);
}

static void in_the_past(struct sw_view *view)
{
	sw_alarm_set(view, job_in(view, 0), -5, -7);
	sw_alarm_set(view, job_in(view, 1), sw_view_now(view), 0);
	sw_alarm_set(view, job_in(view, 2), SW_TIME_NEVER - 1, SW_TIME_NEVER);
}

/* Aim: an alarm for the past or for now rings at the next instant there is, not in an endless loop;
 * one beyond all time never does. */
static void test_alarm_in_the_past(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, 3);
	set(&rig, 5, in_the_past);
	assert_int_equal(rung_count, 0);
	assert_int_equal(rig.step.wake_at, 5 * SW_NS_PER_S + 1);
	rig_step_ns(&rig, rig.step.wake_at, NULL, 0);
	assert_int_equal(rung_count, 2);
	assert_true(rig.step.wake_at >= SW_TIME_NEVER - 1);
	rig_close(&rig);
}

static void all_at_ten(struct sw_view *view)
{
	for (uint32_t id = 0; id < 6; id++)
		sw_alarm_set(view, job_in(view, id), 10 * SW_NS_PER_S, 0);
}

/* Aim: a job that starts, stops or ends loses its alarm; one that goes on
 * waiting or running keeps it. */
static void test_alarms_are_forgotten(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, 6); /* 0 to 3 run, 4 and 5 wait */
	set(&rig, 1, all_at_ten);
	rig_finish(&rig, 2, 1);				     /* 4 starts in its place */
	rig_event(&rig, 3, rig_answer(&rig, SW_EV_FAIL, 2)); /* no retries: failed; 5 starts */
	rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_HOLD, .job = {3}});
	rig_tick(&rig, 10);
	assert_int_equal(rung_count, 1);
	assert_int_equal(rung[0].job, 0);
	rig_close(&rig);
}

static const struct sw_job made_up = {.gpus = 1};

static void on_strangers(struct sw_view *view)
{
	sw_alarm_set(view, &made_up, 10 * SW_NS_PER_S, 0);
	sw_alarm_set(view, NULL, 10 * SW_NS_PER_S, 0);
	sw_alarm_set(view, job_in(view, 0), 10 * SW_NS_PER_S, 0); /* has ended */
	sw_alarm_clear(view, &made_up);
	sw_alarm_clear(view, NULL);
}

/* Aim: alarms for jobs that were not submitted or that have ended are misuse and do nothing. */
static void test_alarms_of_strangers(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, 1);
	rig_finish(&rig, 1, 0);
	set(&rig, 2, on_strangers);
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	rig_close(&rig);
}

/* The alarms as a list that is searched. */
enum { MANY = 60 };
static struct {
	bool set;
	sw_ns due, slack;
} naive[MANY];
static struct sw_rng rng;

static sw_ns naive_next(void)
{
	sw_ns next = SW_TIME_NEVER;
	for (uint32_t id = 0; id < MANY; id++)
		if (naive[id].set && naive[id].slack < SW_TIME_NEVER && naive[id].due + naive[id].slack < next)
			next = naive[id].due + naive[id].slack;
	return next;
}

/* Those that were due have rung, in the order of the jobs, and no others. */
static void expect_rung(sw_ns now)
{
	size_t expected = 0;
	for (uint32_t id = 0; id < MANY; id++) {
		if (!naive[id].set || naive[id].due > now)
			continue;
		assert_true(expected < rung_count);
		assert_int_equal(rung[expected++].job, id);
		naive[id].set = false;
	}
	assert_int_equal(rung_count, expected);
}

static void draw_alarms(struct sw_view *view)
{
	static const sw_ns slacks[] = {0, SW_NS_PER_S, 60 * SW_NS_PER_S, SW_TIME_NEVER};
	expect_rung(sw_view_now(view));
	for (uint64_t draws = sw_rng_below(&rng, 4); draws > 0; draws--) {
		uint32_t id = (uint32_t)sw_rng_below(&rng, MANY);
		naive[id].set = sw_rng_below(&rng, 4) > 0;
		if (!naive[id].set) {
			sw_alarm_clear(view, job_in(view, id));
			continue;
		}
		sw_ns now = sw_view_now(view), due = now + ((sw_ns)sw_rng_below(&rng, 90) - 5) * SW_NS_PER_S;
		naive[id].due = due > now ? due : now + 1;
		naive[id].slack = slacks[sw_rng_below(&rng, RIG_COUNT(slacks))];
		sw_alarm_set(view, job_in(view, id), due, naive[id].slack);
	}
}

/* Aim: whatever alarms are set, moved and cleared, the engine rings those that are due and wakes
 * for the next, as a list says that is searched. */
static void test_against_a_list(void **state)
{
	(void)state;
	struct rig rig;
	open_watchful(&rig, MANY);
	sw_rng_seed(&rng, 7);
	size_t rang = 0;
	for (int round = 0; round < 3000; round++) {
		sw_ns soon = rig.now + (sw_ns)sw_rng_below(&rng, 8) * SW_NS_PER_S, wake_at = naive_next();
		rung_count = 0;
		before = draw_alarms;
		rig_step_ns(&rig, soon < wake_at ? soon : wake_at, NULL, 0);
		rang += rung_count;
		assert_int_equal(rig.step.wake_at, naive_next());
	}
	assert_true(rang > 1000);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_alarms),	     cmocka_unit_test(test_slack),
		cmocka_unit_test(test_slack_in_a_full_heap), cmocka_unit_test(test_replace_and_clear),
		cmocka_unit_test(test_alarm_in_the_past),    cmocka_unit_test(test_alarms_are_forgotten),
		cmocka_unit_test(test_alarms_of_strangers),  cmocka_unit_test(test_against_a_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
