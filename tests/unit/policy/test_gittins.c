/* The Gittins index by hand, and the policy that follows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/gittins_index.h"
#include "policy/published/gittins.h"
#include "unit/core/rig.h"

/* ---- the index ---- */

static double index_of(const int64_t *samples, size_t count, int64_t a, int64_t delta, int compat)
{
	int64_t sums[64] = {0};
	assert_true(count < 64);
	for (size_t i = 0; i < count; i++)
		sums[i + 1] = sums[i] + samples[i];
	return (double)(compat ? sw_gittins_published_index : sw_gittins_index)(samples, sums, count, a, delta) / (double)SW_GITTINS_UNIT;
}

/* Aim: for samples 4, 8 and 12 and a look of 4 ahead, the index is 1/12 at 0,
 * 1/8 at 4 and 1/4 at 8. */
static void test_published_values(void **state)
{
	(void)state;
	static const int64_t samples[] = {4, 8, 12};
	assert_float_equal(index_of(samples, 3, 0, 4, 0), 1.0 / 12, 1e-9);
	assert_float_equal(index_of(samples, 3, 4, 4, 0), 1.0 / 8, 1e-9);
	assert_float_equal(index_of(samples, 3, 8, 4, 0), 1.0 / 4, 1e-9);
	assert_float_equal(index_of(samples, 3, 12, 4, 0), 0.0, 1e-12); /* no job lived that long */
	assert_float_equal(index_of(samples, 3, 1000, 4, 0), 0.0, 1e-12);
}

/* The definition, one sample after the other. */
static double by_definition(const int64_t *samples, size_t count, int64_t a, int64_t delta)
{
	double alive = 0, soon = 0, spent = 0;
	for (size_t i = 0; i < count; i++) {
		if (samples[i] <= a)
			continue;
		int64_t left = samples[i] - a;
		alive++;
		soon += left <= delta;
		spent += (double)(left < delta ? left : delta);
	}
	return alive == 0 || spent == 0 ? 0 : soon / alive / (spent / alive);
}

/* Aim: the index is that of its definition for any samples, age and look ahead. */
static void test_against_the_definition(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 3);
	for (int round = 0; round < 2000; round++) {
		int64_t samples[40];
		size_t count = 1 + sw_rng_below(&rng, 40);
		for (size_t i = 0; i < count; i++)
			samples[i] = (i == 0 ? 0 : samples[i - 1]) + (int64_t)sw_rng_below(&rng, 30);
		int64_t a = (int64_t)sw_rng_below(&rng, 700), delta = 1 + (int64_t)sw_rng_below(&rng, 500);
		assert_float_equal(index_of(samples, count, a, delta, 0), by_definition(samples, count, a, delta), 1e-9);
	}
}

/* Aim: the artifact's form adds whole sizes, from the point just below the next sample. */
static void test_compat(void **state)
{
	(void)state;
	static const int64_t samples[] = {4, 8, 12};
	/* At 0 the next sample is 4: looked at from 3, 4 is within reach of 4, and 8 and 12 are
	 * not: (1/3) / ((4 + 4 + 4) / 3). */
	assert_float_equal(index_of(samples, 3, 0, 4, 1), 1.0 / 12, 1e-9);
	/* At 4, from 7: 8 is within reach: 1 / (8 + 4). */
	assert_float_equal(index_of(samples, 3, 4, 4, 1), 1.0 / 12, 1e-9);
	/* At 8, from 11: 1 / 12. */
	assert_float_equal(index_of(samples, 3, 8, 4, 1), 1.0 / 12, 1e-9);
	assert_float_equal(index_of(samples, 3, 12, 4, 1), 0.0, 1e-12);
	/* From 3 with a look of 5, 4 and 8 are within reach: 2 / (4 + 8 + 5). */
	assert_float_equal(index_of(samples, 3, 0, 5, 1), 2.0 / 17, 1e-9);
}

/* Aim: no samples, no look ahead and numbers near the edge give an index, not a crash. */
static void test_edges(void **state)
{
	(void)state;
	static const int64_t one[] = {1}, large[] = {1, INT64_C(4000000000000000000)};
	assert_float_equal(index_of(one, 0, 0, 10, 0), 0, 1e-12);
	assert_float_equal(index_of(one, 1, 0, 0, 0), 0, 1e-12);
	assert_float_equal(index_of(one, 1, 0, 1, 0), 1, 1e-12);
	assert_true(index_of(large, 2, 0, INT64_MAX, 0) >= 0);
	assert_true(index_of(large, 2, 5, INT64_MAX, 0) >= 0);
	assert_true(index_of(large, 2, 5, 1000000000, 1) >= 0);
}

/* ---- the policy ---- */

static const struct sw_topology_node one_gpu[] = {RIG_NODE(0, 1)};

static void open_gittins(struct rig *rig, const char *const *words)
{
	rig_open(rig, one_gpu, 1, (struct sw_engine_config){.policy = &sw_policy_gittins}, words);
}

/* Aim: a job whose chance to end soon has grown is kept; one whose chance is
 * gone yields to a newcomer. */
static void test_index_decides(void **state)
{
	(void)state;
	static const char *const words[] = {"thresholds=", "samples=4\n8\n12\n", "delta=4", "tick=1s", NULL};
	struct rig rig;
	open_gittins(&rig, words);
	uint32_t old = rig_submit_plain(&rig, 0, 1, 100);
	for (int64_t t = 1; t <= 8; t++)
		rig_tick(&rig, t);
	uint32_t fresh = rig_submit_plain(&rig, 8, 1, 100); /* 1/4 against 1/12 */
	assert_true(rig_runs(&rig, old));
	for (int64_t t = 9; t <= 11; t++)
		rig_tick(&rig, t);
	assert_true(rig_runs(&rig, old));
	rig_tick(&rig, 12); /* it has outlived all samples */
	assert_true(rig_runs(&rig, fresh));
	rig_close(&rig);
}

/* Aim: queues come first: a job that used up its queue waits behind all of the queue
 * before, whatever its index. */
static void test_queues_come_first(void **state)
{
	(void)state;
	static const char *const words[] = {"thresholds=10,20", "samples=5\n11\n", "tick=1s", NULL};
	struct rig rig;
	open_gittins(&rig, words);
	uint32_t old = rig_submit_plain(&rig, 0, 1, 100);
	for (int64_t t = 1; t < 10; t++)
		rig_tick(&rig, t);
	uint32_t fresh = rig_submit_plain(&rig, 9, 1, 100);
	assert_true(rig_runs(&rig, old)); /* one more second to 11: a high index */
	rig_tick(&rig, 10);
	assert_true(rig_runs(&rig, fresh));
	rig_close(&rig);
}

/* Ends `count` jobs that used `used_s` seconds each, one after the other from `at_s` on;
 * returns the time after that. */
static int64_t make_history(struct rig *rig, int64_t at_s, int count, int64_t used_s)
{
	for (int j = 0; j < count; j++) {
		uint32_t id = rig_submit_plain(rig, at_s, 1, used_s);
		assert_true(rig_runs(rig, id));
		at_s += used_s;
		rig_finish(rig, at_s, id);
	}
	return at_s;
}

/* Aim: without samples the cluster's own history decides, as soon as enough jobs have ended, and
 * however many end after that. */
static void test_own_history(void **state)
{
	(void)state;
	static const char *const words[] = {"thresholds=", "delta=1000000", "tick=1s", NULL};
	static const int ends[] = {8, 20, 100, 127, 128, 129, 140, 1500}; /* the last: more than is kept */
	for (size_t e = 0; e < RIG_COUNT(ends); e++) {
		struct rig rig;
		open_gittins(&rig, words);
		/* Half of the jobs take 10 s, half 1000 s: one that is older
		 * than 10 s will take long. */
		int64_t now = make_history(&rig, 0, ends[e], 1000);
		now = make_history(&rig, now, ends[e], 10);
		uint32_t old = rig_submit_plain(&rig, now, 1, 1000);
		rig_tick(&rig, now + 50);
		rig_tick(&rig, now + 51);
		uint32_t fresh = rig_submit_plain(&rig, now + 51, 1, 1000);
		if (rig_runs(&rig, fresh) != (ends[e] >= 8))
			fail_msg("after 2 x %d ends the job with less chance to end soon keeps its GPU", ends[e]);
		assert_int_not_equal(rig_runs(&rig, old), rig_runs(&rig, fresh));
		rig_close(&rig);
	}
}

/* Aim: before enough jobs have ended, all are alike and none is preempted. */
static void test_no_history(void **state)
{
	(void)state;
	static const char *const words[] = {"thresholds=", "delta=1000", "tick=1s", NULL};
	struct rig rig;
	open_gittins(&rig, words);
	int64_t now = make_history(&rig, 0, 3, 5);
	uint32_t old = rig_submit_plain(&rig, now, 1, 1000);
	rig_submit_plain(&rig, now + 50, 1, 1000);
	rig_tick(&rig, now + 60);
	assert_true(rig_runs(&rig, old));
	rig_close(&rig);
}

/* Aim: settings that leave the index without a look ahead, or queues that do
 * not grow, are refused. */
static void test_bad_settings(void **state)
{
	(void)state;
	static const char *const lists[] = {"", "5,5", "7,3"};
	for (size_t l = 0; l < RIG_COUNT(lists); l++) {
		struct sw_params *params = NULL;
		struct sw_topology *topology = NULL;
		struct sw_engine *engine = NULL;
		struct sw_err err = {0};
		assert_int_equal(sw_params_new(&sw_policy_gittins, &params, NULL), 0);
		const struct sw_param *param = sw_params_find(&sw_policy_gittins, "thresholds", NULL);
		assert_int_equal(sw_params_set(params, param, lists[l], strlen(lists[l]), NULL), 0);
		assert_int_equal(sw_topology_new(one_gpu, 1, &topology, NULL), 0);
		const struct sw_engine_config config = {
			.topology = topology, .policy = &sw_policy_gittins, .placement = &sw_placement_count, .params = params};
		assert_int_equal(sw_engine_new(&config, &engine, &err), SW_EINPUT);
		assert_non_null(strstr(err.detail, "gittins."));
		sw_topology_free(topology);
		sw_params_free(params);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_values), cmocka_unit_test(test_against_the_definition),
		cmocka_unit_test(test_compat),		 cmocka_unit_test(test_edges),
		cmocka_unit_test(test_index_decides),	 cmocka_unit_test(test_queues_come_first),
		cmocka_unit_test(test_own_history),	 cmocka_unit_test(test_no_history),
		cmocka_unit_test(test_bad_settings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
