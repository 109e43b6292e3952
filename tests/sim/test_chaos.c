/* The policy that misbehaves on purpose: no invariant of the core breaks, whatever its manners, and
 * once it went too far the engine throws it out and says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/registry.h"
#include "sim/simulator.h"
#include "soak.h"

#define SEEDS 60u

static struct sw_profiles *profiles;

static void set(struct sw_params *params, const char *name, unsigned percent)
{
	char text[16];
	int length = snprintf(text, sizeof text, "%u", percent);
	assert_int_equal(sw_params_set(params, sw_params_find(&sw_policy_chaos, name, NULL), text, (size_t)length, NULL), 0);
}

/* A simulation of this seed's world, validated after every step. */
static struct sw_result *simulate(uint64_t seed, unsigned manners, unsigned sloth)
{
	struct sw_soak_case drawn;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	sw_soak_draw(seed, &sw_policy_chaos, &drawn);
	set(drawn.params, "manners", manners);
	set(drawn.params, "sloth", sloth);
	const struct sw_sim_config config = {
		.trace = drawn.trace,
		.topology = drawn.topology,
		.profiles = profiles,
		.world = drawn.world,
		.policy = &sw_policy_chaos,
		.params = drawn.params,
		.placement = drawn.placement,
		.seed = seed,
		.cluster = "soak",
		.validate = true,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("seed %llu, manners %u, sloth %u: %s", (unsigned long long)seed, manners, sloth, err.fact);
	for (size_t j = 0; j < result->outcomes.count; j++)
		if (result->outcomes.items[j].state == SW_OUTCOME_UNFINISHED)
			fail_msg("seed %llu, manners %u, sloth %u: job %zu never ended; %s", (unsigned long long)seed, manners, sloth, j,
				 result->notes);
	sw_soak_release(&drawn);
	return result;
}

static bool has_work(const struct sw_result *result)
{
	return result->summary.finished + result->summary.failed > 0;
}

/* Aim: from the worst manners to the best, no invariant breaks and every job ends. */
static void test_all_manners(void **state)
{
	(void)state;
	static const unsigned manners[] = {0, 1, 25, 50, 75, 90, 99, 100};
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		for (size_t m = 0; m < sizeof manners / sizeof manners[0]; m++)
			sw_result_free(simulate(seed, manners[m], 10));
}

/* Aim: a policy without manners is thrown out, and the result tells by which policy it was
 * replaced, when and why. */
static void test_fallback_is_reported(void **state)
{
	(void)state;
	uint32_t thrown_out = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(seed, 0, 0);
		if (result->notes[0] == '\0')
			continue; /* all jobs had ended before it went too far */
		thrown_out++;
		assert_non_null(strstr(result->notes, "policy 'chaos' was replaced by 'fifo' at "));
		assert_non_null(strstr(result->notes, "misused the plan"));
		assert_string_equal(result->policy, "chaos"); /* as asked for */
	}
	assert_true(thrown_out >= SEEDS / 10);
}

/* Aim: a policy that never does anything is thrown out too, for that reason. */
static void test_sloth_is_reported(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(seed, 100, 100);
		if (has_work(result))
			assert_non_null(strstr(result->notes, "it did not start any"));
	}
}

/* Aim: perfect manners are never mistaken for bad ones. */
static void test_good_manners_stay(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(seed, 100, 0);
		assert_null(strstr(result->notes, "misused"));
	}
}

static int set_up(void **state)
{
	(void)state;
	return sw_profiles_load_default(&profiles, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	sw_profiles_free(profiles);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_manners),
		cmocka_unit_test(test_fallback_is_reported),
		cmocka_unit_test(test_sloth_is_reported),
		cmocka_unit_test(test_good_manners_stay),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
