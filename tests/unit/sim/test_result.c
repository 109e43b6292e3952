/* The summary of a result says what the outcomes say. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "sim/result.h"

#define S SW_NS_PER_S

/* cmocka compares as float, which has seven digits. */
static void assert_near(double actual, double expected, double tolerance)
{
	if (!(fabs(actual - expected) <= tolerance))
		fail_msg("%.17g, expected %.17g", actual, expected);
}

static struct sw_result *new_result(uint64_t gpus)
{
	struct sw_result *result = calloc(1, sizeof *result);
	assert_non_null(result);
	result->gpus = gpus;
	return result;
}

/* A job that ran without a break once it started. */
static struct sw_outcome *add(struct sw_result *result, int64_t submit_s, int64_t start_s, int64_t end_s, uint32_t gpus)
{
	struct sw_outcome *outcome = sw_vec_push(&result->outcomes);
	assert_non_null(outcome);
	*outcome = (struct sw_outcome){.id = (int64_t)result->outcomes.count,
				       .submit_ns = submit_s * S,
				       .start_ns = start_s * S,
				       .end_ns = end_s * S,
				       .run_ns = (end_s - start_s) * S,
				       .wait_ns = (start_s - submit_s) * S,
				       .work_ns = (end_s - start_s) * S,
				       .deadline_ns = SW_NEVER,
				       .gpus = gpus};
	return outcome;
}

static struct sw_outcome *add_lost(struct sw_result *result, int64_t submit_s, enum sw_outcome_state state)
{
	struct sw_outcome *outcome = add(result, submit_s, submit_s, submit_s, 1);
	outcome->start_ns = SW_NEVER;
	outcome->end_ns = SW_NEVER;
	outcome->state = (uint8_t)state;
	return outcome;
}

static void add_usage(struct sw_result *result, int64_t at_s, uint32_t used, uint32_t up)
{
	struct sw_usage *sample = sw_vec_push(&result->usage);
	assert_non_null(sample);
	*sample = (struct sw_usage){.at_ns = at_s * S, .gpus_used = used, .gpus_up = up};
}

/* Four jobs whose figures were worked out by hand: JCTs 10, 20, 30, 40; waits 0, 5, 10, 25. */
static void test_by_hand(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(4);
	add(result, 100, 100, 110, 1);
	add(result, 100, 125, 140, 2);
	add(result, 105, 110, 125, 1)->preemptions = 3;
	add(result, 105, 115, 135, 1);
	result->outcomes.items[1].migrations = 2;
	result->outcomes.items[3].restarts = 1;
	sw_result_summarise(result);
	const struct sw_summary *summary = &result->summary;
	assert_int_equal(summary->jobs, 4);
	assert_int_equal(summary->finished, 4);
	assert_near(summary->jct_avg_s, 25, 0);
	assert_near(summary->jct_median_s, 25, 0);
	assert_near(summary->jct_p95_s, 38.5, 1e-9);
	assert_near(summary->jct_p99_s, 39.7, 1e-9);
	assert_near(summary->jct_max_s, 40, 0);
	assert_near(summary->queue_avg_s, 10, 0);
	assert_near(summary->queue_p95_s, 22.75, 1e-9);
	assert_int_equal(summary->preemptions, 3);
	assert_int_equal(summary->migrations, 2);
	assert_int_equal(summary->restarts, 1);
	/* Counted from time zero, not from the first submit. */
	assert_near(summary->makespan_s, 140, 0);
	/* 10 + 2 * 15 + 15 + 20 GPU seconds of 4 * 40. */
	assert_near(summary->gpu_utilization, 75.0 / 160, 1e-12);
}

/* Slowdowns worked out by hand: a tenant's counts GPU time, so that its large job weighs more; a
 * job of a second is not the worst served. */
static void test_fairness(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(4);
	add(result, 0, 0, 100, 1);		 /* slowdown 1 */
	add(result, 0, 100, 200, 3);		 /* 2 */
	add(result, 0, 300, 400, 2)->tenant = 7; /* 4 */
	add(result, 0, 119, 120, 1)->tenant = 7; /* 120 by its second of work, 2 by the minute that it counts as */
	add(result, 0, 900, 1000, 1)->state = SW_OUTCOME_FAILED;
	result->gpu_up_s = 1000;
	sw_result_summarise(result);
	const struct sw_summary *summary = &result->summary;
	assert_near(summary->slowdown_worst, 4, 0);
	assert_int_equal(summary->tenants, 2);
	double first = 700.0 / 400, second = 920.0 / 201, all = 1620.0 / 601;
	assert_near(summary->tenants_jain, (first + second) * (first + second) / (2 * (first * first + second * second)), 1e-12);
	assert_near(summary->tenants_worst, second / all, 1e-12);
	assert_near(summary->gpu_work, 0.601, 1e-12);
}

/* Only finished jobs enter averages; failed ones still move the end; every state is counted. */
static void test_states(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(8);
	add(result, 0, 0, 10, 1);
	add(result, 0, 0, 90, 1)->state = SW_OUTCOME_FAILED;
	add_lost(result, 5, SW_OUTCOME_REFUSED);
	add_lost(result, 6, SW_OUTCOME_UNFINISHED);
	sw_result_summarise(result);
	assert_int_equal(result->summary.jobs, 4);
	assert_int_equal(result->summary.finished, 1);
	assert_int_equal(result->summary.failed, 1);
	assert_int_equal(result->summary.refused, 1);
	assert_near(result->summary.jct_avg_s, 10, 0);
	assert_near(result->summary.jct_max_s, 10, 0);
	assert_near(result->summary.makespan_s, 90, 0);
}

/* A deadline is missed by ending later, or by not finishing at all; meeting it to the
 * nanosecond is meeting it. */
static void test_deadlines(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(8);
	add(result, 0, 0, 10, 1)->deadline_ns = 10 * S;
	add(result, 0, 0, 10, 1)->deadline_ns = 10 * S - 1;
	add(result, 0, 0, 10, 1);
	add_lost(result, 0, SW_OUTCOME_REFUSED)->deadline_ns = 100 * S;
	add_lost(result, 0, SW_OUTCOME_UNFINISHED)->deadline_ns = 100 * S;
	sw_result_summarise(result);
	assert_int_equal(result->summary.deadlines, 4);
	assert_int_equal(result->summary.deadlines_missed, 3);
}

/* The cluster's own account decides utilisation where there is one: it knows lost nodes, and
 * shared and resized jobs. */
static void test_utilization_of_account(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(10);
	add(result, 100, 100, 200, 10);
	result->gpu_used_s = 650;
	result->gpu_up_s = 850;
	sw_result_summarise(result);
	assert_near(result->summary.gpu_utilization, 650.0 / 850, 1e-12);
}

/* Utilisation stays within 0..1, also where shared GPUs count twice in the outcomes. */
static void test_utilization_bound(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(1);
	add(result, 0, 0, 10, 1);
	add(result, 0, 0, 10, 1);
	sw_result_summarise(result);
	assert_near(result->summary.gpu_utilization, 1, 0);
}

/* The order of the jobs does not change a single bit, and sums beyond 64 bits are exact. */
static void test_order(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *forward = new_result(1);
	SW_CLEANUP(sw_result_freep) struct sw_result *backward = new_result(1);
	for (int64_t i = 0; i < 1000; i++)
		add(forward, 0, i * i, INT64_C(9000000000) + i * 7919 % 1000, 1);
	for (size_t i = forward->outcomes.count; i-- > 0;)
		*sw_vec_push(&backward->outcomes) = forward->outcomes.items[i];
	sw_result_summarise(forward);
	sw_result_summarise(backward);
	assert_memory_equal(&forward->summary, &backward->summary, sizeof forward->summary);
	assert_near(forward->summary.jct_avg_s, 9000000499.5, 0);
}

/* No jobs, no finished jobs, jobs of no length: all figures are numbers. */
static void test_nothing(void **state)
{
	(void)state;
	const struct sw_summary zero = {0};
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(8);
	sw_result_summarise(result);
	assert_memory_equal(&result->summary, &zero, sizeof zero);
	add_lost(result, 50, SW_OUTCOME_UNFINISHED);
	add_usage(result, 50, 0, 8);
	sw_result_summarise(result);
	assert_int_equal(result->summary.jobs, 1);
	assert_near(result->summary.jct_p99_s, 0, 0);
	assert_near(result->summary.gpu_utilization, 0, 0);
	result->outcomes.count = 0;
	add(result, 7, 7, 7, 1);
	sw_result_summarise(result);
	assert_near(result->summary.makespan_s, 7, 0);
	assert_near(result->summary.jct_avg_s, 0, 0);
	assert_near(result->summary.gpu_utilization, 0, 0);
}

/* Summarising again starts afresh. */
static void test_again(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = new_result(8);
	add(result, 0, 0, 10, 1)->preemptions = 2;
	sw_result_summarise(result);
	sw_result_summarise(result);
	assert_int_equal(result->summary.jobs, 1);
	assert_int_equal(result->summary.preemptions, 2);
}

/* Freeing nothing is allowed; freeing frees all (the leak checker watches). */
static void test_freeing(void **state)
{
	(void)state;
	sw_result_free(NULL);
	struct sw_result *result = new_result(1);
	result->policy = strdup("fifo");
	result->placement = strdup("count");
	result->world = strdup("ideal");
	result->trace = strdup("x.csv");
	result->cluster = strdup("1 node x 1 GPU");
	result->assumptions = strdup("none");
	result->notes = strdup("");
	add(result, 0, 0, 1, 1);
	add_usage(result, 0, 0, 1);
	sw_result_free(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_fairness),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_deadlines),
		cmocka_unit_test(test_utilization_of_account),
		cmocka_unit_test(test_utilization_bound),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_freeing),
	};
	return cmocka_run_group_tests_name("sim/result", tests, NULL, NULL);
}
