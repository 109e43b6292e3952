/* What follows from a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "failure/decide.h"

static struct sw_failure_case infrastructure(void)
{
	return (struct sw_failure_case){.layer = SW_LAYER_INFRASTRUCTURE, .action = SW_ACTION_ELSEWHERE, .budget = 3, .retries_left = 3};
}

/* Whatever the case, no class is tried again beyond its budget, and no job beyond its retries. */
static void test_never_beyond_a_budget(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 4);
	for (int round = 0; round < 100000; round++) {
		uint64_t bits = sw_rng_next(&rng);
		struct sw_failure_case failure = {
			.layer = (enum sw_failure_layer)(bits & 3),
			.action = (enum sw_failure_action)(bits >> 2 & 3),
			.budget = (uint32_t)(bits >> 4 & 3),
			.tried = (uint32_t)(bits >> 6 & 3),
			.retries_left = (uint32_t)(bits >> 8 & 3),
			.free = bits >> 10 & 1,
			.asked = bits >> 11 & 1,
			.same_elsewhere = bits >> 12 & 1,
			.ended_others = bits >> 13 & 1,
			.can_have_more_memory = bits >> 14 & 1,
		};
		struct sw_failure_decision decision = sw_failure_decide(&failure);
		if (decision.verdict != SW_VERDICT_STOP) {
			assert_true(failure.tried < failure.budget && failure.action != SW_ACTION_NONE);
			assert_true(failure.free || failure.retries_left > 0);
			assert_string_equal(decision.why, "");
		} else {
			assert_true(strlen(decision.why) > 0);
		}
		assert_true(decision.verdict != SW_VERDICT_RETRY_FREE || failure.free);
	}
}

/* Each reason to stop stops what would otherwise be tried again. */
static void test_reasons_to_stop(void **state)
{
	(void)state;
	struct sw_failure_case failure = infrastructure();
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_RETRY);
	assert_true(sw_failure_decide(&failure).elsewhere);
	failure.same_elsewhere = true;
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_STOP);
	failure = infrastructure();
	failure.retries_left = 0;
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_STOP);
	failure.free = true;
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_RETRY_FREE);
	failure = infrastructure();
	failure.action = SW_ACTION_RETRY;
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_RETRY);
	failure.ended_others = true;
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_STOP);
}

/* What is not understood is tried again only for jobs that asked; GPU memory that ran out only
 * where there is more to give. */
static void test_unknown_and_memory(void **state)
{
	(void)state;
	struct sw_failure_case failure = {.layer = SW_LAYER_UNKNOWN, .action = SW_ACTION_RETRY, .budget = 1, .retries_left = 5};
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_STOP);
	failure.asked = true;
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_RETRY);
	failure.tried = 1;
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_STOP);
	failure = (struct sw_failure_case){.layer = SW_LAYER_USER, .action = SW_ACTION_MEMORY, .budget = 3, .retries_left = 3};
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_STOP);
	failure.can_have_more_memory = true;
	failure.same_elsewhere = true; /* with more memory it is not the same again */
	assert_int_equal(sw_failure_decide(&failure).verdict, SW_VERDICT_RETRY);
	assert_true(sw_failure_decide(&failure).more_memory);
}

/* Back-off doubles, and stops doubling. */
static void test_backoff(void **state)
{
	(void)state;
	assert_int_equal(sw_failure_backoff_ns(30, 0), 30);
	assert_int_equal(sw_failure_backoff_ns(30, 2), 120);
	assert_int_equal(sw_failure_backoff_ns(30, 1000), 30 * 1024);
}

/* Numbers, addresses and times do not tell failures apart; words do. */
static void test_signature(void **state)
{
	(void)state;
	uint64_t one = sw_failure_signature("nccl-failure", "[Rank 5] timeout at 0x7f2c, 10.1.4.22:4711");
	assert_true(one == sw_failure_signature("nccl-failure", "[Rank 12] timeout at 0x11aa, 10.1.5.3:9"));
	assert_true(one != sw_failure_signature("nccl-failure", "[Rank 5] broken at 0x7f2c, 10.1.4.22:4711"));
	assert_true(one != sw_failure_signature("mpi-failure", "[Rank 5] timeout at 0x7f2c, 10.1.4.22:4711"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_beyond_a_budget),
		cmocka_unit_test(test_reasons_to_stop),
		cmocka_unit_test(test_unknown_and_memory),
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_signature),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
