/* Thousands of lives of a whole Sharewell under loss, delay, repetition, reordering,
 * partitions and crashes. A failure prints the seed that replays it; SEED=n runs that one
 * alone, SEEDS=n that many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "system.h"

static struct sw_system_score live(uint64_t seed)
{
	struct sw_system_plan plan = sw_system_draw(seed);
	struct sw_system_score score = {0};
	struct sw_err err = {0};
	if (sw_system_live(&plan, &score, &err) < 0)
		fail_msg("SEED=%llu: %s: %s", (unsigned long long)seed, err.fact, err.detail);
	return score;
}

static void test_no_job_is_lost_none_runs_twice_and_leases_are_honoured(void **state)
{
	(void)state;
	const char *one = getenv("SEED"), *many = getenv("SEEDS");
	uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 0;
	uint64_t end = one != NULL ? first + 1 : many != NULL ? strtoull(many, NULL, 10) : 150;
	struct sw_system_score sum = {0};
	for (uint64_t seed = first; seed < end; seed++) {
		struct sw_system_score score = live(seed);
		sum.messages += score.messages;
		sum.crashes += score.crashes;
		sum.jobs_acknowledged += score.jobs_acknowledged;
		sum.runs += score.runs;
		sum.suspensions += score.suspensions;
		sum.resumes += score.resumes;
		sum.off += score.off;
		sum.moves += score.moves;
		sum.snapshots += score.snapshots;
		sum.refits += score.refits;
		sum.leases += score.leases;
		sum.removals += score.removals;
		sum.lost += score.lost;
	}
	printf("%llu lives: %llu jobs in %llu runs, suspended %llu times and resumed %llu times, %llu messages, %llu crashes, %llu starts "
	       "from a snapshot\n",
	       (unsigned long long)(end - first), (unsigned long long)sum.jobs_acknowledged, (unsigned long long)sum.runs,
	       (unsigned long long)sum.suspensions, (unsigned long long)sum.resumes, (unsigned long long)sum.messages,
	       (unsigned long long)sum.crashes, (unsigned long long)sum.snapshots);
	/* Lives without them would show nothing. */
	if (end - first >= 50)
		assert_true(sum.suspensions > end - first && sum.resumes > (end - first) / 4 && sum.off > 0 && sum.moves > 0 &&
			    sum.snapshots > 0 && sum.refits > end - first && sum.leases > end - first && sum.removals > 10 &&
			    sum.lost > 10);
}

/* Crashes of controller and agents and a network that loses, for up to half an hour at a time, cost
 * no job its run: each comes to its own end. */
static void test_an_outage_costs_no_run(void **state)
{
	(void)state;
	const char *one = getenv("SEED");
	uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 0;
	uint64_t crashes = 0;
	for (uint64_t seed = first; seed < (one != NULL ? first + 1 : 60); seed++) {
		struct sw_system_plan plan = sw_system_draw(seed);
		plan.policy = SW_SYSTEM_FIFO;
		plan.meddling = plan.kill_supervisors = plan.refits = plan.removes = false;
		plan.crash_controller = plan.crash_agents = plan.partitions = true;
		plan.restart_milli = 0;
		plan.outage_max_ns = INT64_C(1800000000000);
		struct sw_system_score score = {0};
		struct sw_err err = {0};
		if (sw_system_live(&plan, &score, &err) < 0)
			fail_msg("SEED=%llu: %s: %s", (unsigned long long)seed, err.fact, err.detail);
		crashes += score.crashes;
		if (score.cut_short > 0)
			fail_msg("SEED=%llu: %llu of %llu runs were cut short", (unsigned long long)seed,
				 (unsigned long long)score.cut_short, (unsigned long long)score.runs);
	}
	assert_true(one != NULL || crashes > 600);
}

/* Lives that once went wrong, and that the usual number does not reach. */
static void test_known_lives(void **state)
{
	(void)state;
	/* under gandiva one was stopped for a job that its node did not take, and the node
	 * was not looked at again */
	live(1057);
	/* under gandiva one stood still on another node than that on which it took
	 * turns, which did not take it */
	live(2591);
}

static void test_same_seed_same_life(void **state)
{
	(void)state;
	struct sw_system_plan plan = sw_system_draw(7);
	struct sw_system_score a, b;
	assert_int_equal(sw_system_live(&plan, &a, NULL), 0);
	assert_int_equal(sw_system_live(&plan, &b, NULL), 0);
	assert_memory_equal(&a, &b, sizeof a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_job_is_lost_none_runs_twice_and_leases_are_honoured),
		cmocka_unit_test(test_an_outage_costs_no_run),
		cmocka_unit_test(test_known_lives),
		cmocka_unit_test(test_same_seed_same_life),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
