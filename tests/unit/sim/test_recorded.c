/* What really happened, as a result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/recorded.h"

static const char *const recorded = "submit_s,duration_s,gpus,started_s,ended_s,preemptions,outcome\n"
				    "0,10,2,0,10,0,completed\n"
				    "0,10,4,10,30,1,failed\n"
				    "5,15,1,20,40,0,unfinished\n"
				    "6,1,1,,,,\n";

static struct sw_trace *read_trace(const char *text)
{
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	if (sw_trace_parse("test", text, strlen(text), "sharewell", &trace, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return trace;
}

/* Completion, waiting and use of the GPUs come from the recorded moments; a job
 * without them did not finish. */
static void test_figures(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = read_trace(recorded);
	struct sw_result *result = NULL;
	assert_int_equal(sw_recorded_result(trace, "really", "1 node", 4, &result, NULL), 0);
	assert_true(result->recorded);
	assert_string_equal(result->policy, "really");
	assert_int_equal(result->summary.jobs, 4);
	assert_int_equal(result->summary.finished, 3);
	assert_int_equal(result->summary.preemptions, 1);
	assert_float_equal(result->summary.jct_avg_s, (10 + 30 + 35) / 3.0, 1e-9);
	assert_float_equal(result->summary.queue_avg_s, (0 + 20 + 20) / 3.0, 1e-9);
	assert_float_equal(result->summary.makespan_s, 40, 1e-9);
	assert_float_equal(result->summary.gpu_utilization, (20 + 40 + 15) / 160.0, 1e-9);
	sw_result_free(result);
	uint64_t ends[SW_TRACE_ENDS];
	sw_recorded_count(trace, ends);
	assert_int_equal(ends[SW_TRACE_COMPLETED] + ends[SW_TRACE_FAILED] + ends[SW_TRACE_UNFINISHED], 3);
	assert_int_equal(ends[SW_TRACE_END_UNKNOWN], 1);
}

/* A trace that does not tell is refused, with where such traces come from. */
static void test_nothing_recorded(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = read_trace("submit_s,duration_s,gpus\n0,1,1\n");
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_recorded_result(trace, "really", "", 4, &result, &err), SW_EINPUT);
	assert_non_null(strstr(err.hint, "history --export"));
	assert_null(result);
}

/* The policy that was in charge is compared with what happened, no other, and small
 * differences do not count. */
static void test_far(void **state)
{
	(void)state;
	const struct {
		const char *label, *policy;
		double real, simulated;
		bool far;
	} cases[] = {
		{"really (las)", "las", 100, 70, true}, {"really (las)", "las", 100, 130, true}, {"really (las)", "las", 100, 90, false},
		{"really (las)", "las", 1, 2.5, false}, {"really (las)", "la", 100, 10, false},	 {"really (las)", "fifo", 100, 10, false},
		{"really", "las", 100, 10, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char label[32], policy[32];
		snprintf(label, sizeof label, "%s", cases[i].label);
		snprintf(policy, sizeof policy, "%s", cases[i].policy);
		const struct sw_result record = {.policy = label, .summary.jct_avg_s = cases[i].real};
		const struct sw_result simulated = {.policy = policy, .summary.jct_avg_s = cases[i].simulated};
		assert_int_equal(sw_recorded_is_far(&record, &simulated), cases[i].far);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_figures), cmocka_unit_test(test_nothing_recorded),
					   cmocka_unit_test(test_far)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
