/* The checker: goes on after errors, names every line, and knows when to stop talking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sim/trace/check.h"
#include "unit/sim/trace/support.h"

/* Everything that was reported, one per line: "error 3 num_gpu: ...". */
struct record {
	char text[16384];
	size_t size;
	uint64_t last_line;
};

static void note(void *user, const struct sw_trace_problem *problem)
{
	struct record *record = user;
	int size = snprintf(record->text + record->size, sizeof record->text - record->size, "%s %llu %s: %s\n",
			    sw_trace_severity_name(problem->severity), (unsigned long long)problem->line,
			    problem->column != NULL ? problem->column : "-", problem->text);
	record->size += (size_t)size;
	assert_true(record->size < sizeof record->text);
	/* In the order of lines, the file as a whole last. */
	assert_true(problem->line == 0 || problem->line >= record->last_line);
	record->last_line = problem->line == 0 ? UINT64_MAX : problem->line;
}

static struct sw_trace_verdict check_bytes(const void *bytes, size_t size, uint64_t limit, struct record *record)
{
	static int number;
	char name[40];
	struct sw_trace_verdict verdict = {0};
	struct sw_err err = {0};
	snprintf(name, sizeof name, "check%d.csv", number++);
	if (sw_trace_check(temporary_file(name, bytes, size), NULL, limit, note, record, &verdict, &err) < 0)
		fail_msg("%s", words(&err));
	return verdict;
}

static void test_a_good_file_has_no_problems(void **state)
{
	(void)state;
	static const char text[] = "id,submit_s,duration_s,gpus,deadline_s\n0,0,10,1,\n1,5,10,2,15\n";
	struct record record = {0};
	struct sw_trace_verdict verdict = check_bytes(text, sizeof text - 1, 100, &record);
	assert_string_equal(record.text, "");
	assert_string_equal(verdict.format, "sharewell");
	assert_int_equal(verdict.jobs, 2);
	assert_int_equal(verdict.found[SW_TRACE_ERROR] + verdict.found[SW_TRACE_WARNING] + verdict.found[SW_TRACE_NOTE], 0);
}

static void test_every_problem_is_reported(void **state)
{
	(void)state;
	static const char text[] = "# a comment\n"
				   "id,submit_s,duration_s,gpus,deadline_s,iterations,iteration_ms\n"
				   "0,10,10,1,,,\n"
				   "1,11,10,0,,,\n"
				   "2,-1,10,1,,,\n"
				   "0,12,10,1,,,\n"
				   "3,13,10,1\n"
				   "4,5,10,1,,,\n"
				   "5,14,10,1,3,,\n"
				   "6,15,100,1,20,,\n"
				   "7,16,100,1,,100,2000\n"
				   "8,17,0,1,,100,2000\n"
				   "9,18,0,1,,,\n"
				   "0,19,10,1,,,\n";
	struct record record = {0};
	struct sw_trace_verdict verdict = check_bytes(text, sizeof text - 1, 100, &record);
	assert_string_equal(
		record.text,
		"error 4 gpus: '0' is not a whole number from 1 to 1000000\n"
		"error 5 submit_s: '-1' is not a number of seconds from 0 to 100 years\n"
		"error 6 -: job 0 is on line 3 too\n"
		"error 7 -: it has 4 columns, expected 7\n"
		"warning 9 -: the deadline lies 11 s before the submit time\n"
		"note 11 -: 100 iterations of 2000.000 ms are 200 s, but the duration is 100 s\n"
		"error 14 -: job 0 is on line 3 too\n"
		"warning 0 -: 1 job with iterations but a duration of 0 (first on line 12)\n"
		"note 0 -: 1 job without duration or iterations: their work must come from a profile of the model (first on line 13)\n"
		"note 0 -: 1 job with a deadline that cannot be met on the given number of GPUs (first on line 10)\n"
		"note 0 -: 1 job submitted before the line above: sorted when read (first on line 8)\n");
	assert_int_equal(verdict.jobs, 9);
	assert_int_equal(verdict.left_out, 1);
	assert_int_equal(verdict.found[SW_TRACE_ERROR], 5);
	assert_int_equal(verdict.found[SW_TRACE_WARNING], 2);
	assert_int_equal(verdict.found[SW_TRACE_NOTE], 4);
}

static void test_names_that_repeat(void **state)
{
	(void)state;
	static const char text[] = "name,time,application,num_replicas,batch_size\na,0,m,1,1\nb,0,m,1,1\na,0,m,1,1\n";
	struct record record = {0};
	check_bytes(text, sizeof text - 1, 100, &record);
	assert_non_null(strstr(record.text, "error 4 -: the job 'a' is on line 2 too\n"));
}

static void test_left_out_rows_are_notes(void **state)
{
	(void)state;
	static const char text[] = "job_id,num_gpu,submit_time,duration,expect_time_list,job_type\n0,0,1,1,9,strict\n1,1,1,1,9,strict\n";
	struct record record = {0};
	struct sw_trace_verdict verdict = check_bytes(text, sizeof text - 1, 100, &record);
	assert_string_equal(record.text, "note 2 -: the job asks for no GPU and is left out\n");
	assert_int_equal(verdict.jobs, 1);
	assert_int_equal(verdict.left_out, 1);
}

static void test_rounding_is_no_problem(void **state)
{
	(void)state;
	/* One iteration more or less, or a duration in whole seconds. */
	static const char text[] = "submit_s,duration_s,gpus,iterations,iteration_ms\n0,1,1,1,886\n0,2,1,3,500\n0,100,1,10,9100\n";
	struct record record = {0};
	check_bytes(text, sizeof text - 1, 100, &record);
	assert_string_equal(record.text, "");
}

static void test_limit(void **state)
{
	(void)state;
	SW_CLEANUP(sw_freep) char *text = malloc(100000);
	size_t size = (size_t)sprintf(text, "submit_s,duration_s,gpus,deadline_s\n");
	for (int i = 0; i < 500; i++)
		size += (size_t)sprintf(text + size, "x,1,1,\n9,1,1,3\n");
	struct record record = {0};
	struct sw_trace_verdict verdict = check_bytes(text, size, 7, &record);
	assert_int_equal(verdict.found[SW_TRACE_ERROR], 500);
	assert_int_equal(verdict.unsaid[SW_TRACE_ERROR], 493);
	assert_int_equal(verdict.found[SW_TRACE_WARNING], 500);
	assert_int_equal(verdict.unsaid[SW_TRACE_WARNING], 493);
	size_t lines = 0;
	for (const char *c = record.text; *c != '\0'; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 14);
}

static void test_a_file_that_breaks_off(void **state)
{
	(void)state;
	SW_CLEANUP(sw_freep) char *text = malloc(1 << 20);
	size_t size = (size_t)sprintf(text, "submit_s,duration_s,gpus\n");
	for (unsigned i = 0; i < 30000; i++)
		size += (size_t)sprintf(text + size, "%u,%u,1\n", i, (i * 2654435761u) % 1000003);
	SW_CLEANUP(bytes_free) struct bytes packed = pack("gzip", text, size);
	struct record record = {0};
	struct sw_trace_verdict verdict = check_bytes(packed.data, packed.size / 2, 10, &record);
	assert_non_null(strstr(record.text, "the gzip data is cut off"));
	assert_int_equal(verdict.found[SW_TRACE_ERROR], 1);
	assert_in_range(verdict.jobs, 1000, 29000);
	/* The same for a byte that is no text. */
	text[size / 2] = '\0';
	record = (struct record){0};
	verdict = check_bytes(text, size, 10, &record);
	assert_non_null(strstr(record.text, "is not text"));
	assert_in_range(verdict.jobs, 10000, 20000);
}

static void test_no_usable_row(void **state)
{
	(void)state;
	static const char text[] = "submit_s,duration_s,gpus\nx,1,1\n";
	struct record record = {0};
	struct sw_trace_verdict verdict = check_bytes(text, sizeof text - 1, 10, &record);
	assert_non_null(strstr(record.text, "error 0 -: no job could be read\n"));
	assert_int_equal(verdict.jobs, 0);
}

static void test_what_cannot_be_checked(void **state)
{
	(void)state;
	struct record record = {0};
	struct sw_trace_verdict verdict = {.jobs = 77};
	struct sw_err err = {0};
	assert_int_equal(sw_trace_check("/nonexistent/x", NULL, 10, note, &record, &verdict, &err), SW_ENOTFOUND);
	sw_err_clear(&err);
	const char *path = temporary_file("nothing.csv", "a,b,c\n1,2,3\n", 12);
	assert_int_equal(sw_trace_check(path, NULL, 10, note, &record, &verdict, &err), SW_EINPUT);
	assert_says(&err, "no known format");
	sw_err_clear(&err);
	assert_int_equal(sw_trace_check(path, "murri", 10, note, &record, &verdict, &err), SW_ENOTFOUND);
	assert_says(&err, "muri");
	assert_int_equal(verdict.jobs, 77);
	assert_string_equal(record.text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_good_file_has_no_problems), cmocka_unit_test(test_every_problem_is_reported),
		cmocka_unit_test(test_names_that_repeat),	    cmocka_unit_test(test_left_out_rows_are_notes),
		cmocka_unit_test(test_rounding_is_no_problem),	    cmocka_unit_test(test_limit),
		cmocka_unit_test(test_a_file_that_breaks_off),	    cmocka_unit_test(test_no_usable_row),
		cmocka_unit_test(test_what_cannot_be_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
