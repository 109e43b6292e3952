/* Columns of lists of jobs: names and letters, cells, orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/columns.h"

static struct sw_err err;

static int parse(const char *text, struct sw_cli_columns *columns)
{
	err = (struct sw_err){0};
	return sw_cli_columns_parse(text, columns, &err);
}

static void expect_titles(const char *text, const char *titles)
{
	struct sw_cli_columns columns;
	char found[512] = "";
	if (parse(text, &columns) < 0)
		fail_msg("'%s': %s", text, err.fact);
	for (size_t i = 0; i < columns.count; i++) {
		strcat(found, i > 0 ? " " : "");
		strcat(found, columns.shown[i].name);
	}
	assert_string_equal(found, titles);
}

/* Columns go by our names, by Slurm's in any case, by squeue's letters with widths;
 * widths change nothing. */
static void test_names(void **state)
{
	(void)state;
	expect_titles("jobid,name,time", "JOBID NAME TIME");
	expect_titles("JobID,UserName,StateCompact,TimeUsed,NumNodes,ReasonList", "JOBID USER ST TIME NODES NODE(REASON)");
	expect_titles("jobid:10, name:30 ,gpus", "JOBID NAME GPUS");
	expect_titles("jobid name", "JOBID NAME");
	expect_titles("%.18i %9j %.8u %t %.10M %.6D %R", "JOBID NAME USER ST TIME NODES NODE(REASON)");
	expect_titles("account,qos", "TENANT CLASS");
}

/* What is no column is named, with the nearest that is; too many are refused. */
static void test_refused(void **state)
{
	(void)state;
	struct sw_cli_columns columns = {.count = 77};
	static const char *const cases[] = {"", ",", "jobid,", ",jobid", "nme", "%Z", "%", "jobid,,name", "-jobid"};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (parse(cases[i], &columns) != SW_EINPUT)
			fail_msg("'%s' is taken", cases[i]);
	assert_int_equal(columns.count, 77);
	assert_int_equal(parse("nme", &columns), SW_EINPUT);
	assert_non_null(strstr(err.hint, "'name'"));
	char many[512] = "jobid";
	for (size_t i = 0; i < SW_CLI_COLUMNS_MAX; i++)
		strcat(many, ",jobid");
	assert_int_equal(parse(many, &columns), SW_ELIMIT);
}

/* The controller is asked for more only where a column needs it. */
static void test_needs(void **state)
{
	(void)state;
	struct sw_cli_columns columns;
	assert_int_equal(parse("jobid,name", &columns), 0);
	assert_false(columns.needs_asked || columns.needs_start);
	assert_int_equal(parse("jobid,timelimit", &columns), 0);
	assert_true(columns.needs_asked && !columns.needs_start);
	assert_int_equal(parse("jobid,estimate", &columns), 0);
	assert_true(columns.needs_start && !columns.needs_asked);
}

/* An exit code is that of a job that has ended, and only where one may see it. */
static void test_exit_codes(void **state)
{
	(void)state;
	static const struct {
		const char *job, *cell;
	} cases[] = {
		{"{\"id\": 1, \"state\": \"F\", \"code\": 3, \"signal\": 9}", "3:9"},
		{"{\"id\": 1, \"state\": \"CD\", \"code\": 0, \"signal\": 0}", "0:0"},
		{"{\"id\": 1, \"state\": \"R\", \"code\": 0, \"signal\": 0}", "-"},
		{"{\"id\": 1, \"state\": \"S\", \"code\": 1, \"signal\": 0}", "-"},
		{"{\"id\": 1, \"state\": \"CD\"}", "-"},
	};
	struct sw_cli_columns columns;
	assert_int_equal(parse("exitcode", &columns), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		json_t *job = json_loads(cases[i].job, 0, NULL);
		struct sw_cli_rows rows = {columns.shown, columns.count, {0}};
		assert_int_equal(sw_cli_columns_add(&columns, &rows, job), 0);
		assert_string_equal(rows.cells.items[0], cases[i].cell);
		sw_cli_rows_release(&rows);
		json_decref(job);
	}
}

/* A cell shows what the job says, and a dash where it says nothing: other people's
 * jobs have few members. */
static void test_cells(void **state)
{
	(void)state;
	static const char *const wanted[] = {"7",	 "a b",		  "R",	 "RUNNING", "1:05", "1:00:00", "2", "node1:0,3",
					     "16.0 GiB", "opportunistic", "0.5", "-",	    "1",    "1.063",   "-"};
	static const char *const hidden[] = {"7", "-", "PD", "-", "-", "-", "-", "(Resources)", "-", "-", "-", "-", "0", "-", "-"};
	struct sw_cli_columns columns;
	assert_int_equal(
		parse("jobid,name,st,state,time,timelimit,gpus,place,gpumemory,class,weight,exitcode,nodes,slowdown,predicted", &columns),
		0);
	json_t *job = json_loads(
		       "{\"id\": 7, \"name\": \"a\\nb\", \"state\": \"R\", \"state_long\": \"RUNNING\", \"ran_s\": 65.9, \"gpus\": 2, "
		       "\"node\": \"node1\", \"gpu_indexes\": [0, 3], \"code\": 3, \"signal\": 9, \"reason\": \"\", \"asked\": "
		       "{\"time_limit_s\": "
		       "3600, \"gpu_memory_bytes\": 17179869184, \"class\": \"opportunistic\", \"weight\": 0.5}, \"speed\": {\"slowdown\": "
		       "1.063}, \"sharing\": {\"predicted\": null}}",
		       0, NULL),
	       *other = json_loads("{\"id\": 7, \"state\": \"PD\"}", 0, NULL);
	struct sw_cli_rows rows = {columns.shown, columns.count, {0}};
	assert_int_equal(sw_cli_columns_add(&columns, &rows, job), 0);
	assert_int_equal(sw_cli_columns_add(&columns, &rows, other), 0);
	assert_int_equal(rows.cells.count, 2 * columns.count);
	for (size_t i = 0; i < columns.count; i++) {
		assert_string_equal(rows.cells.items[i], wanted[i]);
		assert_string_equal(rows.cells.items[columns.count + i], hidden[i]);
	}
	sw_cli_rows_release(&rows);
	json_decref(job);
	json_decref(other);
}

static void expect_order(const char *order_text, const char *ids)
{
	json_t *jobs = json_loads(
		"[{\"id\": 1, \"name\": \"b\", \"ran_s\": 9}, {\"id\": 2, \"name\": \"a\", \"ran_s\": 100.5}, {\"id\": 3, \"name\": \"b\", "
		"\"ran_s\": 10}, {\"id\": 10, \"name\": \"a\", \"ran_s\": 9}]",
		0, NULL);
	struct sw_cli_columns order;
	char found[64] = "";
	assert_int_equal(sw_cli_columns_order(order_text, &order, &err), 0);
	assert_int_equal(sw_cli_columns_sort(&order, jobs), 0);
	for (size_t i = 0; i < json_array_size(jobs); i++)
		snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld", i > 0 ? " " : "",
			 json_integer_value(json_object_get(json_array_get(jobs, i), "id")));
	assert_string_equal(found, ids);
	json_decref(jobs);
}

/* Numbers sort as numbers, text as text; a minus turns one key around, and equal
 * jobs keep their places. */
static void test_sort(void **state)
{
	(void)state;
	expect_order("jobid", "1 2 3 10");
	expect_order("-jobid", "10 3 2 1");
	expect_order("time", "1 10 3 2");
	expect_order("-time,+jobid", "2 3 1 10");
	expect_order("name,-time", "2 10 3 1");
	expect_order("name", "2 10 1 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_refused), cmocka_unit_test(test_needs),
		cmocka_unit_test(test_exit_codes), cmocka_unit_test(test_cells),   cmocka_unit_test(test_sort),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
