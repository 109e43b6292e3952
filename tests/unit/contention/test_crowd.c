/* Residents by number and class: the same as the prediction of their profiles, remembered or not, in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "contention/crowd.h"
#include "unit/contention/models.h"

static const struct sw_crowd_rule rule = {
	.model = {.host_mem_kappa_milli = 5000, .switch_cost_milli = 70, .gate_cost_milli = 20, .gate_use_milli = 800},
	.among = SW_WAY_MPS,
	.gated = true,
};

static struct sw_crowd *gather(const struct sw_crowd_rule *how)
{
	struct sw_crowd *crowd = NULL;
	assert_int_equal(sw_crowd_new(profiles, how, &crowd, NULL), 0);
	return crowd;
}

/* What the profiles say of these, the guaranteed ones put first. */
static void expect(const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_slow_milli)
{
	const struct sw_profile *jobs[SW_CROWD_MAX];
	struct sw_prediction found[SW_CROWD_MAX];
	size_t at[SW_CROWD_MAX], placed = 0, ahead = 0;
	for (int behind = 0; behind < 2; behind++) {
		for (size_t i = 0; i < count; i++) {
			if (guaranteed[i] == (behind == 1))
				continue;
			jobs[placed] = sw_profiles_by_number(profiles, models[i]);
			at[placed++] = i;
			ahead += behind == 0;
		}
	}
	sw_predict_gated(&rule.model, rule.among, jobs, ahead, count, found);
	for (size_t i = 0; i < count; i++)
		ret_slow_milli[at[i]] = found[i].slow_milli;
}

/* Aim: 20,000 questions about few models, more than can be remembered, each have the answer that the profiles give. */
static void test_remembers_what_is_true(void **state)
{
	(void)state;
	SW_CLEANUP(sw_crowd_freep) struct sw_crowd *crowd = gather(&rule);
	struct sw_rng rng;
	sw_rng_seed(&rng, 7);
	for (int round = 0; round < 20000; round++) {
		uint32_t models[SW_CROWD_MAX], slow[SW_CROWD_MAX], expected[SW_CROWD_MAX];
		bool guaranteed[SW_CROWD_MAX];
		size_t count = 1 + sw_rng_below(&rng, 4);
		for (size_t i = 0; i < count; i++) {
			const struct sw_profile *profile = sw_profiles_at(profiles, sw_rng_below(&rng, 12));
			models[i] = sw_rng_below(&rng, 12) == 0 ? 0 : profile->number;
			guaranteed[i] = sw_rng_below(&rng, 2) == 0;
		}
		sw_crowd_slowdowns(crowd, models, guaranteed, count, slow);
		expect(models, guaranteed, count, expected);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(slow[i], expected[i]);
	}
}

/* Aim: speeds are told of profiled models only, alone it is full speed, and without a gate classes do not matter. */
static void test_speeds(void **state)
{
	(void)state;
	uint32_t resnet = model("resnet50")->number, speech = model("data2vec")->number;
	SW_CLEANUP(sw_crowd_freep) struct sw_crowd *crowd = gather(&rule);
	uint32_t speed[2] = {7, 7};
	assert_false(sw_crowd_speeds(crowd, (uint32_t[]){resnet, 0}, (bool[]){true, true}, 2, speed));
	assert_int_equal(speed[0], 7);
	assert_true(sw_crowd_speeds(crowd, &resnet, (bool[]){true}, 1, speed));
	assert_int_equal(speed[0], 1000);
	assert_true(sw_crowd_speeds(crowd, (uint32_t[]){resnet, speech}, (bool[]){true, true}, 2, speed));
	assert_true(speed[0] == 1000 && speed[1] == 1000);
	assert_true(sw_crowd_speeds(crowd, (uint32_t[]){speech, resnet}, (bool[]){false, true}, 2, speed));
	assert_true(speed[0] <= 1 && speed[1] == 980); /* a ResNet-50 is never idle */
	struct sw_crowd_rule open = rule;
	open.gated = false;
	SW_CLEANUP(sw_crowd_freep) struct sw_crowd *alike = gather(&open);
	assert_true(sw_crowd_speeds(alike, (uint32_t[]){speech, resnet}, (bool[]){false, true}, 2, speed));
	assert_true(speed[0] == 1000 && speed[1] == 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remembers_what_is_true),
		cmocka_unit_test(test_speeds),
	};
	return cmocka_run_group_tests(tests, load_profiles, unload_profiles);
}
