/* A part of the soak for every test run; with arguments, the program behind tools/soak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/registry.h"
#include "soak.h"

#define SIMULATIONS 300u
#define STORMS 40u /* each is some hundred steps, twice, with books beside them */

static unsigned workers(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return cores > 4 ? 4 : cores > 0 ? (unsigned)cores : 1;
}

/* Aim: random clusters, jobs, worlds and faults under every policy break no invariant, every job
 * ends, and the same seed gives the same log. */
static void test_simulations(void **state)
{
	(void)state;
	const struct sw_soak_plan plan = {.end = SIMULATIONS, .simulate = true, .workers = workers()};
	assert_int_equal(sw_soak_many(&plan), 0);
}

/* Aim: what once went wrong does not again: a paused job that went on, moved and was paused in one
 * decision worked on in the simulated world. */
static void test_seeds_that_failed(void **state)
{
	(void)state;
	const struct sw_soak_plan plan = {.first = 966, .end = 967, .simulate = true, .only = &sw_policy_chaos, .workers = 1};
	assert_int_equal(sw_soak_many(&plan), 0);
}

/* Aim: no event, however wrong or late, breaks an invariant or keeps a job from ending. */
static void test_storms(void **state)
{
	(void)state;
	const struct sw_soak_plan plan = {.end = STORMS, .storm = true, .workers = workers()};
	assert_int_equal(sw_soak_many(&plan), 0);
}

int main(int count, char **words)
{
	if (count > 1)
		return sw_soak_main(count, words);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_simulations),
		cmocka_unit_test(test_seeds_that_failed),
		cmocka_unit_test(test_storms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
