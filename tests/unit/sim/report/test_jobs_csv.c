/* The table of jobs as CSV, to the digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "sim/report/jobs_csv.h"
#include "unit/sim/report/fixture.h"

#define HEAD \
	"job_id,num_gpu,submit_time,start_time,end_time,executed_time,JCT,duration,pending_time,preempt,migrate,restart,promote,state\n"

struct set {
	const struct sw_result *results[2];
	size_t count;
};

static int write_csv(FILE *out, const void *context)
{
	const struct set *set = context;
	struct sw_err err = {0};
	return sw_results_jobs_csv(out, set->results, set->count, &err);
}

static void assert_csv(const struct set *set, const char *expected)
{
	char *text = fixture_text(write_csv, set);
	assert_string_equal(text, expected);
	free(text);
}

/* Whole seconds have no decimals, others as many as they need, and nothing is rounded. */
static void test_exact(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("las");
	struct sw_outcome *job = fixture_job(result, 512036, 14, 565, 8);
	job->id = 4;
	job->end_ns += 1;
	job->run_ns -= 142350000;
	job->preemptions = 1;
	job->migrations = 2;
	job->restarts = 3;
	job->promotions = 4;
	fixture_job(result, 0, 0, 0, 1);
	const struct set set = {{result}, 1};
	assert_csv(&set, HEAD "4,8,512036,512050,512615.000000001,564.85765,579.000000001,565,14,1,2,3,4,finished\n"
			      "1,1,0,0,0,0,0,0,0,0,0,0,0,finished\n");
}

/* What did not happen leaves its cell empty; every state has its word. */
static void test_states(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("las");
	for (uint8_t i = 0; i < 4; i++)
		fixture_job(result, i, 0, 5, 1)->state = i;
	result->outcomes.items[2].start_ns = result->outcomes.items[2].end_ns = SW_NEVER;
	result->outcomes.items[3].end_ns = SW_NEVER;
	const struct set set = {{result}, 1};
	assert_csv(&set, HEAD "0,1,0,0,5,5,5,5,0,0,0,0,0,finished\n"
			      "1,1,1,1,6,5,5,5,0,0,0,0,0,failed\n"
			      "2,1,2,,,5,,5,0,0,0,0,0,refused\n"
			      "3,1,3,3,,5,,5,0,0,0,0,0,unfinished\n");
}

/* Several results are told apart by a first column, quoted where a name has commas or quotes. */
static void test_several(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *first = fixture_empty("fifo");
	SW_CLEANUP(sw_result_freep) struct sw_result *second = fixture_empty("las:3250,7200 \"x\"");
	fixture_job(first, 0, 0, 1, 1);
	fixture_job(second, 0, 0, 1, 1);
	const struct set set = {{first, second}, 2};
	assert_csv(&set, "policy," HEAD "fifo,0,1,0,0,1,1,1,1,0,0,0,0,0,finished\n"
			 "\"las:3250,7200 \"\"x\"\"\",0,1,0,0,1,1,1,1,0,0,0,0,0,finished\n");
}

/* No jobs and no results give the head alone. */
static void test_empty(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("fifo");
	const struct set none = {{NULL}, 0}, empty = {{result}, 1};
	assert_csv(&none, HEAD);
	assert_csv(&empty, HEAD);
}

static int write_events(FILE *out, const void *context)
{
	const struct set *set = context;
	struct sw_err err = {0};
	return sw_results_events_csv(out, set->results, set->count, &err);
}

/* What was done to the jobs has a word each, in its order. */
static void test_events(void **state)
{
	(void)state;
	static const struct sw_job_event happened[] = {
		{0, 7, SW_JOB_STARTED},
		{1500000000, 7, SW_JOB_STOPPED},
		{1500000000, 9, SW_JOB_WAS_REFUSED},
		{2, 7, SW_JOB_RESUMED},
		{3, 7, SW_JOB_MOVED},
		{4, 7, SW_JOB_BROKE},
		{5, 7, SW_JOB_ENDED},
	};
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("las");
	SW_CLEANUP(sw_result_freep) struct sw_result *other = fixture_empty("fifo");
	for (size_t i = 0; i < sizeof happened / sizeof *happened; i++)
		*sw_vec_push(&result->job_events) = happened[i];
	const struct set one = {{result}, 1}, two = {{other, result}, 2};
	char *text = fixture_text(write_events, &one);
	assert_string_equal(text, "time,job_id,event\n0,7,start\n1.5,7,stop\n1.5,9,refuse\n0.000000002,7,resume\n0.000000003,7,move\n"
				  "0.000000004,7,fail\n0.000000005,7,end\n");
	free(text);
	result->job_events.count = 1;
	text = fixture_text(write_events, &two);
	assert_string_equal(text, "policy,time,job_id,event\nlas,0,7,start\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact), cmocka_unit_test(test_states), cmocka_unit_test(test_several),
		cmocka_unit_test(test_empty), cmocka_unit_test(test_events),
	};
	return cmocka_run_group_tests_name("sim/report/jobs_csv", tests, NULL, NULL);
}
