/* Rows that are wrong: each is refused with its line, its column and the value in the words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "unit/sim/trace/support.h"

#define TIRESIAS "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
#define MURI "job_id,num_gpu,submit_time,iterations,duration,iteration_time,resource_time_0,priority\n"
#define PHILLY "timestamp,duration,num_gpus,gpu_time,cluster\n"
#define CHRONUS "job_id,num_gpu,submit_time,duration,expect_time_list,job_type\n"
#define SHAREWELL "submit_s,duration_s,gpus,min_gpus,max_gpus,class,deadline_s,deadline_kind,weight,tenant\n"

static const struct {
	const char *text;
	const char *says;
} wrong_rows[] = {
	/* numbers */
	{TIRESIAS "0,-1,0,1,m,1,0\n", "line 2, column num_gpu: '-1' is not a whole number from 1 to 1000000"},
	{TIRESIAS "0,0,0,1,m,1,0\n", "line 2, column num_gpu: '0' is not a whole number from 1 to 1000000"},
	{TIRESIAS "0,1,0,1,m,1,0\n1,1000001,0,1,m,1,0\n", "line 3, column num_gpu: '1000001'"},
	{TIRESIAS "0,99999999999999999999,0,1,m,1,0\n", "column num_gpu: '99999999999999999999'"},
	{TIRESIAS "0,1.5,0,1,m,1,0\n", "column num_gpu: '1.5'"},
	{TIRESIAS "0,,0,1,m,1,0\n", "column num_gpu: it is empty"},
	{TIRESIAS "0,many,0,1,m,1,0\n", "column num_gpu: 'many'"},
	{TIRESIAS "0,1,-5,1,m,1,0\n", "column submit_time: '-5' is not a number of seconds from 0 to 100 years"},
	{TIRESIAS "0,1,nan,1,m,1,0\n", "column submit_time: 'nan'"},
	{TIRESIAS "0,1,0x10,1,m,1,0\n", "column submit_time: '0x10'"},
	{TIRESIAS "0,1,3153600001,1,m,1,0\n", "column submit_time: '3153600001'"},
	{TIRESIAS "0,1,1e300,1,m,1,0\n", "column submit_time: '1e300'"},
	{TIRESIAS "0,1,0,1,m,inf,0\n", "column duration: 'inf'"},
	{TIRESIAS "0,1,0,1,m,-0.5,0\n", "column duration: '-0.5'"},
	{TIRESIAS "0,1,0,-7,m,1,0\n", "column iterations: '-7'"},
	{TIRESIAS "0,1,0,1000000000000001,m,1,0\n", "column iterations: '1000000000000001'"},
	{TIRESIAS "-3,1,0,1,m,1,0\n", "column job_id: '-3' is not a job number"},
	{TIRESIAS "3,1,0,1,m,1,0\nx,1,0,1,m,1,0\n", "line 3, column job_id: 'x' is not a job number, as the first job's is"},
	{MURI "0,1,0,0,1,1,1,0\n", "column iterations: '0'"},
	{MURI "0,1,0,1,1,1,1,2\n", "column priority: '2' is not 0 (guaranteed) or 1 (opportunistic)"},
	{MURI "0,1,0,1,1,1,-1,0\n", "column resource_time_0: '-1' is not a number from 0 to 3.6e+06"},
	{MURI "0,1,0,1,3153600000001,1,1,0\n", "column duration: '3153600000001' is not a number of milliseconds"},
	/* shapes */
	{TIRESIAS "0,1,0,1,m\n", "line 2: it has 5 columns, expected 7"},
	{TIRESIAS "0,1,0,1,m,1,0,9\n", "line 2: it has 8 columns, expected 7"},
	{TIRESIAS "\"0,1,0,1,m,1,0\n", "line 2: a quoted field is not closed on the same line"},
	{TIRESIAS "\"0\"x,1,0,1,m,1,0\n", "line 2: something follows the closing quote of column 1"},
	{TIRESIAS "0,1,0,1,m\xe4,1,0\n", "column model_name: 'm?' is not valid UTF-8"},
	{"m\tb\tc\t1\tx\t3\t4\n", "line 1, column total_steps: 'x' is not a whole number from 1"},
	{"m\tb\tc\t1\t2\t3\t1\nm\t2\n", "line 2: it has 2 columns, expected 7"},
	{"m (batch size x)\tb\tc\t1\t2\t3\t1\n", "column job_type: 'm (batch size x)' is not a model with a batch size"},
	/* dates */
	{PHILLY "2017-02-29 00:00:00,1,1,1,a\n", "column timestamp: '2017-02-29 00:00:00' is not a date"},
	{PHILLY "2017-13-01 00:00:00,1,1,1,a\n", "column timestamp"},
	{PHILLY "2017-01-01 24:00:00,1,1,1,a\n", "column timestamp"},
	{PHILLY "1969-12-31 23:59:59,1,1,1,a\n", "column timestamp"},
	{PHILLY "2017-01-01,1,1,1,a\n", "column timestamp"},
	{PHILLY "1970-01-01 00:00:00,1,1,1,a\n2170-01-01 00:00:00,1,1,1,a\n", "line 3: its date is more than 100 years away"},
	/* deadlines and ranges */
	{CHRONUS "0,1,0,1,5,hard\n", "column job_type: 'hard' is not strict, soft or best"},
	{CHRONUS "0,1,0,1,-5,strict\n", "column expect_time_list: '-5' is not a list of minutes"},
	{CHRONUS "0,1,52560000,1,52560000,strict\n", "line 2: its deadline is more than 100 years away"},
	{SHAREWELL "0,1,4,5,8,,,,,\n", "line 2: GPUs 4, at least 5, at most 8 contradict each other"},
	{SHAREWELL "0,1,4,1,3,,,,,\n", "contradict"},
	{SHAREWELL "0,1,4,,,best,,,,\n", "column class: 'best' is not guaranteed or opportunistic"},
	{SHAREWELL "0,1,4,,,,5,maybe,,\n", "column deadline_kind: 'maybe' is not strict or soft"},
	{SHAREWELL "0,1,4,,,,,,0,\n", "column weight: '0' is not a number from 0.001 to 1e+06"},
	{SHAREWELL "0,1,0,,,,,,,\n", "column gpus: '0'"},
};

static void test_wrong_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof wrong_rows / sizeof *wrong_rows; i++) {
		struct sw_trace *trace = NULL;
		struct sw_err err = {0};
		int r = sw_trace_parse("bad.csv", wrong_rows[i].text, strlen(wrong_rows[i].text), NULL, &trace, &err);
		if (r != SW_EINPUT)
			fail_msg("accepted: %s", wrong_rows[i].text);
		assert_null(trace);
		assert_says(&err, "cannot read trace 'bad.csv'");
		assert_says(&err, wrong_rows[i].says);
		assert_says(&err, "sharewell trace check");
	}
}

static void test_bounds_are_usable(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse(SHAREWELL "3153600000,3153600000,1000000,1,1000000,,3153600000,,1000000,\n"
						      "0,0,1,,,,,soft,0.001,\n",
					    NULL);
	const struct sw_trace_job *last = &trace->jobs.items[1];
	assert_true(last->submit_ns + last->duration_ns > 0);
	assert_true(last->submit_ns == SW_TRACE_MAX_NS);
	assert_int_equal(last->gpus, 1000000);
	assert_int_equal(last->weight_milli, 1000000000);
	/* A kind without a deadline says nothing. */
	assert_int_equal(trace->jobs.items[0].deadline_kind, SW_TRACE_NO_DEADLINE);
	assert_int_equal(trace->jobs.items[0].weight_milli, 1);
}

static void test_long_values_are_cut_in_messages(void **state)
{
	(void)state;
	char text[4000];
	int size = snprintf(text, sizeof text, TIRESIAS "0,%0*d,0,1,m,1,0\n", 3000, 7);
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	/* Zeros in front are fine, however many. */
	assert_int_equal(sw_trace_parse("x", text, (size_t)size, NULL, &trace, &err), 0);
	sw_trace_free(trace);
	trace = NULL;
	memset(strstr(text, "0000"), '9', 3000);
	assert_int_equal(sw_trace_parse("x", text, (size_t)size, NULL, &trace, &err), SW_EINPUT);
	assert_says(&err, "'9999999999999999999999999999999999999999...' is not a whole number");
}

static void test_names_have_a_bound(void **state)
{
	(void)state;
	char text[4000];
	for (int length = (int)SW_TRACE_MAX_NAME; length <= (int)SW_TRACE_MAX_NAME + 1; length++) {
		int size = snprintf(text, sizeof text, TIRESIAS "0,1,0,1,%0*d,1,0\n", length, 7);
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
		struct sw_err err = {0};
		int r = sw_trace_parse("x", text, (size_t)size, NULL, &trace, &err);
		assert_int_equal(r, length == (int)SW_TRACE_MAX_NAME ? 0 : SW_EINPUT);
	}
}

static void test_many_columns(void **state)
{
	(void)state;
	char text[2000] = "submit_s,duration_s,gpus";
	for (int i = 3; i < 256; i++)
		strcat(text, ",c");
	strcat(text, "\n1,2,3");
	for (int i = 3; i < 256; i++)
		strcat(text, ",");
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_parse(text, NULL);
	assert_int_equal(trace->jobs.items[0].gpus, 3);
	strcat(text, ",");
	struct sw_trace *none = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_trace_parse("x", text, strlen(text), NULL, &none, &err), SW_EINPUT);
	assert_says(&err, "line 2: it has more than 256 columns");
}

static void test_utf8(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool good;
	} names[] = {
		{"plain", true},
		{"\xc3\xa9", true},
		{"\xe2\x82\xac", true},
		{"\xf0\x9f\x98\x80", true},
		{"\xf4\x8f\xbf\xbf", true},
		{"\x80", false},
		{"\xc0\xaf", false},
		{"\xc3", false},
		{"\xe2\x82", false},
		{"\xe0\x80\x80", false},
		{"\xed\xa0\x80", false},
		{"\xf0\x80\x80\x80", false},
		{"\xf4\x90\x80\x80", false},
		{"\xf5\x80\x80\x80", false},
		{"\xe2\x82x", false},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[200];
		int size = snprintf(text, sizeof text, "submit_s,duration_s,gpus,tenant\n0,1,1,%s\n", names[i].name);
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
		int r = sw_trace_parse("x", text, (size_t)size, NULL, &trace, NULL);
		if ((r == 0) != names[i].good)
			fail_msg("name %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_rows),
		cmocka_unit_test(test_bounds_are_usable),
		cmocka_unit_test(test_long_values_are_cut_in_messages),
		cmocka_unit_test(test_names_have_a_bound),
		cmocka_unit_test(test_many_columns),
		cmocka_unit_test(test_utf8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
