/* Residents by number and class: the same as the prediction of their profiles,
 * remembered or not, in any order. */
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

/* Aim: 20,000 questions about few models, more than can be remembered, each have the answer
 * that the profiles give. */
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

/* Aim: speeds are told of profiled models only, alone it is full speed, and without a gate
 * classes do not matter. */
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

/* Aim: what a learner has seen corrects the answers from then on, on either side of the gate and
 * among equals; several guaranteed jobs with others stay as predicted. */
static void test_learner_corrects(void **state)
{
	(void)state;
	struct sw_crowd_rule slices = rule;
	slices.among = SW_WAY_SLICES;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = NULL;
	SW_CLEANUP(sw_crowd_freep) struct sw_crowd *plain = gather(&slices), *crowd = gather(&slices);
	assert_int_equal(sw_learn_new(profiles, &slices.model, &learn, NULL), 0);
	sw_crowd_correct(crowd, learn);
	static const char *const names[] = {"dlrm", "deepfm"};
	const uint32_t a = sw_profiles_find(profiles, names[0])->number, b = sw_profiles_find(profiles, names[1])->number;
	static const bool classes[][3] = {{true, true}, {true, false}, {true, true, false}};
	const uint32_t models[] = {a, b, b};
	for (int round = 0; round < 3; round++)
		for (size_t c = 0; c < 3; c++) {
			size_t count = c == 2 ? 3 : 2;
			uint32_t expected[3], found[3];
			sw_crowd_slowdowns(plain, models, classes[c], count, expected);
			sw_crowd_slowdowns(crowd, models, classes[c], count, found);
			enum sw_predict_way way = c == 0 ? SW_WAY_SLICES : SW_WAY_GATE;
			for (size_t i = 0; i < count; i++) {
				struct sw_learn_answer answer;
				sw_learn_ask(learn, &(struct sw_learn_case){way, names, 2, i % 2}, &answer);
				assert_int_equal(found[i], round == 0 || c == 2 ? expected[i] : answer.slow_milli);
				assert_true(round == 0 || c == 2 || found[i] != expected[i]);
				/* A third slower than predicted. */
				assert_int_equal(sw_learn_add(learn, &(struct sw_learn_case){way, names, 2, i % 2},
							      answer.prior_milli * 4 / 3, 99, NULL),
						 0);
			}
			if (c == 2)
				sw_crowd_forget(crowd);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remembers_what_is_true),
		cmocka_unit_test(test_speeds),
		cmocka_unit_test(test_learner_corrects),
	};
	return cmocka_run_group_tests(tests, load_profiles, unload_profiles);
}
