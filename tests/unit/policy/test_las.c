/* Least attained service: when a job leaves its queue, when it comes back, and
 * which yields to which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/core/rig.h"

static const struct sw_topology_node four_gpus[] = {RIG_NODE(0, 4)};

static void open_las(struct rig *rig, const char *thresholds, const char *more)
{
	const char *const words[] = {thresholds, more, NULL};
	rig_open(rig, four_gpus, 1, (struct sw_engine_config){.policy = &sw_policy_las}, words);
}

/* Aim: a job leaves its queue at the very GPU-second: a nanosecond earlier a newcomer does not
 * overtake it, then it does. */
static void test_demotion_is_exact(void **state)
{
	(void)state;
	static const struct {
		uint32_t gpus;
		sw_ns at; /* when 12 GPU-seconds are used */
	} cases[] = {{1, 12 * SW_NS_PER_S}, {2, 6 * SW_NS_PER_S}, {3, 4 * SW_NS_PER_S}, {4, 3 * SW_NS_PER_S}};
	for (size_t c = 0; c < RIG_COUNT(cases); c++) {
		for (sw_ns before = 0; before < 2; before++) {
			struct rig rig;
			open_las(&rig, "thresholds=12", NULL);
			uint32_t old = rig_submit_plain(&rig, 0, cases[c].gpus, 1000);
			assert_int_equal(rig.step.wake_at, cases[c].at);
			struct sw_job_spec spec = rig_spec(4, 1000);
			const struct sw_event arrival = {.kind = SW_EV_SUBMIT, .spec = &spec};
			rig_step_ns(&rig, cases[c].at - before, &arrival, 1);
			assert_int_equal(rig_runs(&rig, old), before);
			assert_int_equal(rig_runs(&rig, 1), !before);
			rig_close(&rig);
		}
	}
}

/* Aim: where the GPU-second falls between two seconds, the next whole second of run time is early
 * enough, and a step in between is used. */
static void test_demotion_between_seconds(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = rig_spec(4, 1000);
	const struct sw_event arrival = {.kind = SW_EV_SUBMIT, .spec = &spec};
	open_las(&rig, "thresholds=10", NULL);
	uint32_t old = rig_submit_plain(&rig, 0, 3, 1000); /* 10 GPU-seconds after 3.33 s */
	assert_int_equal(rig.step.wake_at, 4 * SW_NS_PER_S);
	rig_step_ns(&rig, 3400 * SW_NS_PER_MS, &arrival, 1);
	assert_false(rig_runs(&rig, old));
	rig_close(&rig);
	open_las(&rig, "thresholds=10", NULL);
	old = rig_submit_plain(&rig, 0, 3, 1000);
	rig_step_ns(&rig, 3300 * SW_NS_PER_MS, &arrival, 1);
	assert_true(rig_runs(&rig, old));
	rig_close(&rig);
}

/* Aim: queue after queue, each at its threshold of all service so far; waiting does not count. */
static void test_queue_after_queue(void **state)
{
	(void)state;
	struct rig rig;
	open_las(&rig, "thresholds=10,30,60", NULL);
	uint32_t old = rig_submit_plain(&rig, 0, 1, 1000);
	assert_int_equal(rig.step.wake_at, 10 * SW_NS_PER_S);
	rig_tick(&rig, 10);
	assert_int_equal(rig.step.wake_at, 30 * SW_NS_PER_S);
	rig_tick(&rig, 20);
	uint32_t other = rig_submit_plain(&rig, 20, 4, 1000); /* preempts it */
	assert_false(rig_runs(&rig, old));
	rig_finish(&rig, 22, other); /* two seconds on four GPUs: still in the first queue */
	assert_int_equal(rig.step.wake_at, 32 * SW_NS_PER_S);
	rig_tick(&rig, 32);
	assert_int_equal(rig.step.wake_at, 62 * SW_NS_PER_S);
	rig_tick(&rig, 62);
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER); /* the last queue has no end */
	rig_close(&rig);
}

/* Aim: service can be counted in time alone, whatever the number of GPUs. */
static void test_time_alone(void **state)
{
	(void)state;
	struct rig rig;
	open_las(&rig, "thresholds=12", "count-gpus=off");
	rig_submit_plain(&rig, 0, 4, 1000);
	assert_int_equal(rig.step.wake_at, 12 * SW_NS_PER_S);
	rig_close(&rig);
}

/* Aim: a job that moves down joins the end of its new queue; after that,
 * equals do not take turns. */
static void test_no_turns_within_a_queue(void **state)
{
	(void)state;
	struct rig rig;
	open_las(&rig, "thresholds=10", NULL);
	uint32_t first = rig_submit_plain(&rig, 0, 4, 1000), second = rig_submit_plain(&rig, 0, 4, 1000);
	rig_tick(&rig, 3); /* 12 GPU-seconds: the second is in the first queue and overtakes */
	assert_true(rig_runs(&rig, second));
	rig_tick(&rig, 6); /* it moves down too, behind the other */
	assert_true(rig_runs(&rig, first));
	for (int64_t t = 7; t < 100; t += 13)
		rig_tick(&rig, t);
	assert_true(rig_runs(&rig, first));
	assert_int_equal(rig_job(&rig, first)->preemptions, 1);
	assert_int_equal(rig_job(&rig, second)->preemptions, 1);
	rig_close(&rig);
}

/* A job of all GPUs that ran for 7 s, left the first queue after 5 and was then preempted by one
 * that holds a GPU in the first queue for 20 s. */
static uint32_t demote_and_stop(struct rig *rig)
{
	uint32_t id = rig_submit_plain(rig, 0, 4, 100000);
	rig_tick(rig, 5);
	uint32_t keeper = rig_submit_plain(rig, 7, 1, 100000);
	assert_true(rig_runs(rig, keeper));
	assert_false(rig_runs(rig, id));
	return id;
}

/* Aim: a job that has waited so many times its run time comes back to the first
 * queue at that very second. */
static void test_promotion_is_exact(void **state)
{
	(void)state;
	static const struct {
		const char *knob;
		int64_t patience_s; /* of a job that ran 7 s */
	} cases[] = {{"promote=1", 7}, {"promote=2", 14}, {"promote=0.5", 3}, {"promote=10", 70}};
	for (size_t c = 0; c < RIG_COUNT(cases); c++) {
		struct rig rig;
		open_las(&rig, "thresholds=20,1000000", cases[c].knob);
		uint32_t id = demote_and_stop(&rig);
		int64_t last = 7;
		for (int64_t t = 8; t < 7 + cases[c].patience_s; t++) {
			if (t == last + 15) { /* a job always holds a GPU in the first queue */
				rig_submit_plain(&rig, t, 1, 100000);
				last = t;
			}
			rig_tick(&rig, t);
			assert_int_equal(rig_job(&rig, id)->promotions, 0);
		}
		rig_step_ns(&rig, (7 + cases[c].patience_s) * SW_NS_PER_S - 1, NULL, 0);
		assert_int_equal(rig.step.wake_at, (7 + cases[c].patience_s) * SW_NS_PER_S);
		assert_int_equal(rig_job(&rig, id)->promotions, 0);
		rig_tick(&rig, 7 + cases[c].patience_s);
		assert_int_equal(rig_job(&rig, id)->promotions, 1);
		rig_close(&rig);
	}
}

/* Aim: after a promotion the job has the whole of the first queue again, and must run
 * before it is promoted again. */
static void test_promotion_begins_anew(void **state)
{
	(void)state;
	struct rig rig;
	open_las(&rig, "thresholds=20,1000000", "promote=1");
	uint32_t id = demote_and_stop(&rig);
	rig_tick(&rig, 14);
	assert_int_equal(rig_job(&rig, id)->promotions, 1);
	rig_finish(&rig, 25, 1);
	assert_true(rig_runs(&rig, id));
	assert_int_equal(rig.step.wake_at, 30 * SW_NS_PER_S); /* 20 GPU-seconds on four GPUs */
	assert_int_equal(rig_job(&rig, id)->promotions, 1);
	rig_close(&rig);
}

/* Aim: waits add up over several runs, as run time does. */
static void test_promotion_counts_all_waits(void **state)
{
	(void)state;
	struct rig rig;
	open_las(&rig, "thresholds=20,1000000", "promote=1");
	uint32_t id = demote_and_stop(&rig);
	rig_finish(&rig, 11, 1); /* waited 4 of 7 s, runs again */
	assert_true(rig_runs(&rig, id));
	uint32_t keeper = rig_submit_plain(&rig, 13, 1, 1000); /* ran 9 s in all */
	assert_true(rig_runs(&rig, keeper));
	assert_int_equal(rig.step.wake_at, 18 * SW_NS_PER_S); /* 5 more */
	rig_tick(&rig, 18);
	assert_int_equal(rig_job(&rig, id)->promotions, 1);
	rig_close(&rig);
}

/* Aim: without the knob none is promoted; in the first queue, or before it ever ran, there
 * is nothing to promote. */
static void test_no_promotion(void **state)
{
	(void)state;
	struct rig rig;
	open_las(&rig, "thresholds=20,1000000", "promote=0");
	uint32_t id = demote_and_stop(&rig);
	assert_int_equal(rig.step.wake_at, 27 * SW_NS_PER_S); /* the other leaves the first queue then */
	rig_tick(&rig, 26);
	assert_int_equal(rig_job(&rig, id)->promotions, 0);
	assert_false(rig_runs(&rig, id));
	rig_close(&rig);

	open_las(&rig, "thresholds=20,1000000", "promote=0.001");
	rig_submit_plain(&rig, 0, 4, 100);
	uint32_t waits = rig_submit_plain(&rig, 0, 4, 100);
	for (int64_t t = 1; t < 5; t++)
		rig_tick(&rig, t);
	assert_int_equal(rig_job(&rig, waits)->promotions, 0);
	rig_close(&rig);
}

/* Aim: without queues, service decides at every tick: the job that used least runs. */
static void test_plain(void **state)
{
	(void)state;
	struct rig rig;
	open_las(&rig, "thresholds=", "tick=10s");
	uint32_t a = rig_submit_plain(&rig, 0, 4, 1000), b = rig_submit_plain(&rig, 0, 4, 1000);
	assert_true(rig_runs(&rig, a));
	assert_int_equal(rig.step.wake_at, 10 * SW_NS_PER_S);
	rig_tick(&rig, 10);
	assert_true(rig_runs(&rig, b));
	rig_tick(&rig, 20); /* equal again: the older one */
	assert_true(rig_runs(&rig, a));
	rig_close(&rig);
}

/* Aim: thresholds that do not grow are refused before anything starts. */
static void test_thresholds_must_grow(void **state)
{
	(void)state;
	static const char *const lists[] = {"5,5", "7,3", "1,2,2"};
	for (size_t l = 0; l < RIG_COUNT(lists); l++) {
		struct sw_params *params = NULL;
		struct sw_topology *topology = NULL;
		struct sw_engine *engine = NULL;
		struct sw_err err = {0};
		assert_int_equal(sw_params_new(&sw_policy_las, &params, NULL), 0);
		assert_int_equal(
			sw_params_set(params, sw_params_find(&sw_policy_las, "thresholds", NULL), lists[l], strlen(lists[l]), NULL), 0);
		assert_int_equal(sw_topology_new(four_gpus, 1, &topology, NULL), 0);
		const struct sw_engine_config config = {
			.topology = topology, .policy = &sw_policy_las, .placement = &sw_placement_count, .params = params};
		assert_int_equal(sw_engine_new(&config, &engine, &err), SW_EINPUT);
		assert_non_null(strstr(err.detail, "must grow"));
		sw_topology_free(topology);
		sw_params_free(params);
	}
}

/* Aim: placement is a wish: a job goes where the rule wants it if it can, and anywhere
 * otherwise. */
static void test_placement_is_a_wish(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};
	struct rig rig;
	rig_open(&rig, nodes, 2, (struct sw_engine_config){.policy = &sw_policy_las, .placement = &sw_placement_yarn}, NULL);
	rig_submit_plain(&rig, 0, 1, 1000);
	uint32_t second = rig_submit_plain(&rig, 0, 2, 1000);
	assert_string_equal(rig_place(&rig, second), "1:3"); /* as yarn wants it */
	uint32_t third = rig_submit_plain(&rig, 0, 1, 1000);
	assert_string_equal(rig_place(&rig, third), "0:2");
	rig_finish(&rig, 1, second);
	uint32_t wide = rig_submit_plain(&rig, 1, 1, 1000);
	rig_finish(&rig, 2, 0);
	uint32_t split = rig_submit_plain(&rig, 2, 2, 1000); /* yarn would wait for one node */
	assert_true(rig_runs(&rig, wide));
	assert_string_equal(rig_place(&rig, split), "0:1 1:2");
	rig_close(&rig);
}

/* Aim: a job that waits is told its queue, what it used, and what it needs. */
static void test_explain(void **state)
{
	(void)state;
	struct rig rig;
	char text[256];
	open_las(&rig, "thresholds=20,1000000", "promote=0");
	uint32_t id = demote_and_stop(&rig);
	sw_engine_explain(rig.engine, (struct sw_job_id){id}, text, sizeof text);
	assert_non_null(strstr(text, "queue 2 of 3"));
	assert_non_null(strstr(text, "28 GPU-seconds"));
	assert_non_null(strstr(text, "needs 4 and 3 are free"));
	rig_close(&rig);
	open_las(&rig, "thresholds=", "tick=10s");
	rig_submit_plain(&rig, 0, 4, 100);
	rig_submit_plain(&rig, 0, 4, 100);
	rig_tick(&rig, 10);
	sw_engine_explain(rig.engine, (struct sw_job_id){0}, text, sizeof text);
	assert_non_null(strstr(text, "used 40 GPU-seconds"));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demotion_is_exact),
		cmocka_unit_test(test_demotion_between_seconds),
		cmocka_unit_test(test_queue_after_queue),
		cmocka_unit_test(test_time_alone),
		cmocka_unit_test(test_no_turns_within_a_queue),
		cmocka_unit_test(test_promotion_is_exact),
		cmocka_unit_test(test_promotion_begins_anew),
		cmocka_unit_test(test_promotion_counts_all_waits),
		cmocka_unit_test(test_no_promotion),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_thresholds_must_grow),
		cmocka_unit_test(test_placement_is_a_wish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
