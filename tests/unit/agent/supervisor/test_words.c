/* What the job's own log says of its stops. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/agent/harness.h"

/* Steps of the job are told by files: it goes on when there is one, whatever
 * else the machine does. */
#define AWAIT(name) "while [ ! -e " name " ]; do sleep 0.01; done; "

static void let(const struct harness *harness, const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", harness->state, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("x", file);
	fclose(file);
}

/* Waits until the log has it. Output and lines come to the log writer on ways of their own: only
 * what is in the log is before the next line for certain. */
static void await_text(const struct harness *harness, const struct run *run, const char *name, const char *text)
{
	for (int looks = 0; looks < 20000; looks++) {
		const char *log = name[0] == '/' ? harness_run_file(run, name + 1) : harness_read(harness, name);
		if (strstr(log, text) != NULL)
			return;
		harness_sleep_ms(5);
	}
	fail_msg("'%s' does not come in '%s'", text, name);
}

static void wait_for(struct run *run, enum sw_run_state state)
{
	sw_run_account_free(harness_wait(run, state));
}

/* Takes the moments out of the lines: "sharewell: suspended". */
static const char *without_times(const char *log)
{
	static char text[4096];
	size_t used = 0;
	for (const char *at = log; *at != '\0' && used + 1 < sizeof text;) {
		text[used++] = *at++;
		text[used] = '\0';
		int year, size = 0;
		bool ends = used >= 11 && strcmp(text + used - 11, "sharewell: ") == 0;
		if (ends && sscanf(at, "%4d-%*2d-%*2d %*2d:%*2d:%*2d %n", &year, &size) == 1 && size == 20)
			at += size;
	}
	return text;
}

/* A run that is suspended, goes on and is stopped says so in its log, between its own lines, with
 * the reasons that came with the orders. */
static void test_lines(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness,
		      harness_spec(harness, "echo begin; printf half; echo x >a; " AWAIT("b") "echo more; echo x >c; exec sleep 1000"),
		      &run);
	harness_await(harness, "a");
	await_text(harness, &run, "/out.log", "half");
	harness_tell(&run, "why for job 7 (guaranteed, user ann): it goes on when that job ends\nsuspend 1\n");
	wait_for(&run, SW_RUN_SUSPENDED);
	harness_tell(&run, "resume 2\n");
	wait_for(&run, SW_RUN_RUNNING);
	let(harness, "b");
	harness_await(harness, "c");
	await_text(harness, &run, "/out.log", "more\n");
	harness_tell(&run, "why by user ann (cancel)\nstop 3 0 10000\n");
	harness_expect(&run, 0, SIGTERM, SW_REASON_STOPPED);
	const char *log = without_times(harness_run_file(&run, "out.log"));
	const char *expected[] = {"begin\n",
				  "half",
				  "\nsharewell: suspended for job 7 (guaranteed, user ann): it goes on when that job ends\n",
				  "sharewell: goes on, after standing still for ",
				  "more\n",
				  "sharewell: stopped by user ann (cancel)\n"};
	const char *at = log;
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		const char *found = strstr(at, expected[i]);
		if (found == NULL)
			fail_msg("'%s' is missing in:\n%s", expected[i], log);
		at = found + strlen(expected[i]);
	}
	assert_string_equal(at, "");
	/* A stop that wakes it up is no "goes on". */
	assert_null(strstr(strstr(log, "goes on, ") + 1, "goes on, "));
}

/* An order without a reason has a line without one; a job that has written nothing has a log all
 * the same; and the lines do not count as its output. */
static void test_silent_job(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness, harness_spec(harness, "echo x >a; exec sleep 1000"), &run);
	harness_await(harness, "a");
	harness_tell(&run, "suspend 1\n");
	wait_for(&run, SW_RUN_SUSPENDED);
	harness_tell(&run, "stop 2 0 10000\n");
	struct sw_run_account *account = harness_finish(&run);
	assert_int_equal(account->run.log_bytes, 0);
	sw_run_account_free(account);
	assert_string_equal(without_times(harness_run_file(&run, "out.log")), "sharewell: suspended\nsharewell: stopped\n");
}

/* One that is told to suspend before it runs is suspended once it does; told to go
 * on meanwhile it is not. */
static void test_suspend_before_it_runs(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness, harness_spec(harness, "exec sleep 1000"), &run);
	harness_tell(&run, "suspend 1\n");
	wait_for(&run, SW_RUN_SUSPENDED);
	harness_tell(&run, "stop 2 0 10000\n");
	harness_expect(&run, 0, SIGTERM, SW_REASON_STOPPED);
}

/* A time limit says so, too. */
static void test_time_limit(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec = harness_spec(harness, "exec sleep 1000");
	spec->time_limit_ms = 200;
	harness_start(harness, spec, &run);
	harness_expect(&run, 0, SIGTERM, SW_REASON_TIME_LIMIT);
	assert_string_equal(without_times(harness_run_file(&run, "out.log")), "sharewell: stopped: its time limit of 200 ms is over\n");
}

/* Suspends it after its first step, and stops it after its second, once the
 * file has what it wrote. */
static void disturb(struct harness *harness, const struct sw_run_spec *spec, const char *file, const char *first, const char *last)
{
	struct run run;
	harness_start(harness, spec, &run);
	harness_await(harness, "a");
	await_text(harness, &run, file, first);
	harness_tell(&run, "suspend 1\n");
	wait_for(&run, SW_RUN_SUSPENDED);
	harness_tell(&run, "resume 2\n");
	let(harness, "b");
	harness_await(harness, "c");
	await_text(harness, &run, file, last);
	harness_tell(&run, "stop 3 0 10000\n");
	harness_expect(&run, 0, SIGTERM, SW_REASON_STOPPED);
}

/* A file that the user named for all output has the lines if what the job writes is text. */
static void test_named_file(void **state)
{
	struct harness *harness = *state;
	struct sw_run_spec *spec = harness_spec(harness, "echo one; echo x >a; " AWAIT("b") "echo two; echo x >c; exec sleep 1000");
	spec->stdout_path = "train.log";
	disturb(harness, spec, "train.log", "one\n", "two\n");
	const char *log = without_times(harness_read(harness, "train.log"));
	assert_non_null(strstr(log, "one\nsharewell: suspended\n"));
	assert_non_null(strstr(log, "two\nsharewell: stopped\n"));
}

/* It has none of them where that is not text, or where it is not known yet; with a file for
 * errors these have them. */
static void test_binary_output(void **state)
{
	struct harness *harness = *state;
	struct sw_run_spec *spec =
		harness_spec(harness, "printf 'P\\000\\001\\n'; echo x >a; " AWAIT("b") "printf Q; echo x >c; exec sleep 1000");
	spec->stdout_path = "data.bin";
	disturb(harness, spec, "data.bin", "P", "P");
	char path[256], bytes[64] = "";
	snprintf(path, sizeof path, "%s/data.bin", harness->state);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof bytes, file), 5);
	assert_memory_equal(bytes, "P\0\1\nQ", 5);
	fclose(file);
}

static void test_late_output(void **state)
{
	struct harness *harness = *state;
	struct sw_run_spec *spec = harness_spec(harness, "echo x >a; " AWAIT("b") "printf '\\001'; echo x >c; exec sleep 1000");
	spec->stdout_path = "data.bin";
	disturb(harness, spec, "data.bin", "", "");
	assert_string_equal(harness_read(harness, "data.bin"), "\1");
}

static void test_file_for_errors(void **state)
{
	struct harness *harness = *state;
	struct sw_run_spec *spec = harness_spec(harness, "echo 1,2,3; echo x >a; " AWAIT("b") "echo 4,5,6; echo x >c; exec sleep 1000");
	spec->stdout_path = "table.csv";
	spec->stderr_path = "errors.log";
	disturb(harness, spec, "table.csv", "1,2,3\n", "4,5,6\n");
	assert_string_equal(harness_read(harness, "table.csv"), "1,2,3\n4,5,6\n");
	const char *log = without_times(harness_read(harness, "errors.log"));
	assert_true(strncmp(log, "sharewell: suspended\n", 21) == 0 && strstr(log, "\nsharewell: stopped\n") != NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, harness_set_up, harness_tear_down)

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	const struct CMUnitTest tests[] = {
		TEST(test_lines),	TEST(test_silent_job),	    TEST(test_suspend_before_it_runs),
		TEST(test_time_limit),	TEST(test_named_file),	    TEST(test_binary_output),
		TEST(test_late_output), TEST(test_file_for_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
