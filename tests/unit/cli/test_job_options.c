/* Options become the fields of a job, with the meaning that Slurm's users expect. */
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "cli/help.h"
#include "cli/job_options.h"
#include "cli/parse.h"

static int64_t limit_of(const char *text)
{
	int64_t ns = -1;
	return sw_cli_time_limit(text, &ns) == 0 ? ns / SW_NS_PER_S : -1;
}

/* Times without a unit are read as Slurm reads them; with one, as everywhere else. */
static void test_time_limit(void **state)
{
	(void)state;
	assert_int_equal(limit_of("90"), 90 * 60);
	assert_int_equal(limit_of("10:30"), 630);
	assert_int_equal(limit_of("2:30:00"), 9000);
	assert_int_equal(limit_of("1-12"), 36 * 3600);
	assert_int_equal(limit_of("1-12:30"), 36 * 3600 + 1800);
	assert_int_equal(limit_of("1-00:00:01"), 86401);
	assert_int_equal(limit_of("90s"), 90);
	assert_int_equal(limit_of("2h"), 7200);
	assert_int_equal(limit_of(""), -1);
	assert_int_equal(limit_of("1:2:3:4"), -1);
	assert_int_equal(limit_of("1-"), -1);
	assert_int_equal(limit_of("-5"), -1);
	assert_int_equal(limit_of("soon"), -1);
	assert_int_equal(limit_of("99999999999999999999"), -1);
}

/* Moments are exact, local, or counted from now in the direction that makes sense. */
static void test_moment(void **state)
{
	(void)state;
	const int64_t now = INT64_C(1900000000) * SW_NS_PER_S;
	int64_t ns;
	setenv("TZ", "UTC", 1);
	assert_int_equal(sw_cli_moment("2030-01-31T18:00:00Z", now, false, &ns), 0);
	assert_int_equal(ns / SW_NS_PER_S, 1896112800);
	assert_int_equal(sw_cli_moment("2030-01-31T18:00", now, false, &ns), 0);
	assert_int_equal(ns / SW_NS_PER_S, 1896112800);
	assert_int_equal(sw_cli_moment("8h", now, false, &ns), 0);
	assert_int_equal((ns - now) / SW_NS_PER_S, 8 * 3600);
	assert_int_equal(sw_cli_moment("8h", now, true, &ns), 0);
	assert_int_equal((now - ns) / SW_NS_PER_S, 8 * 3600);
	assert_int_equal(sw_cli_moment("tomorrow", now, false, &ns), SW_EINPUT);
}

/* The fields that a command line of `submit` makes; its words have no spaces within. */
static int try_apply(const char *line, json_t *fields, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *copy = NULL;
	SW_CLEANUP(sw_freep) void *values = calloc(1, sw_cli_submit.values_size);
	char *words[40], *rest = NULL;
	int count = 0;
	bool help = false;
	assert_true(asprintf(&copy, "submit %s%s", strstr(line, "--export") != NULL ? "" : "--export NONE ", line) > 0);
	for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	words[count] = NULL;
	assert_int_equal(sw_cli_parse(&sw_cli_submit, count, words, values, &help, err), 0);
	int r = sw_cli_job_apply(values, fields, err);
	sw_cli_release(&sw_cli_submit, values);
	return r;
}

static json_t *apply(const char *line)
{
	struct sw_err err = {0};
	json_t *fields = json_object();
	if (try_apply(line, fields, &err) < 0)
		fail_msg("%s: %s: %s", line, err.fact, err.detail);
	return fields;
}

static int64_t gpus_of(const char *line)
{
	json_t *fields = apply(line);
	const json_t *gpus = json_object_get(fields, "gpus");
	int64_t count = json_is_string(gpus) ? strtoll(json_string_value(gpus), NULL, 10) : json_integer_value(gpus);
	json_decref(fields);
	return count;
}

/* Slurm's ways of asking for GPUs come to the same number of them; nodes and tasks multiply
 * what is asked for each. */
static void test_slurm_gpus(void **state)
{
	(void)state;
	assert_int_equal(gpus_of("--gres=gpu:2"), 2);
	assert_int_equal(gpus_of("--gres=gpu"), 1);
	assert_int_equal(gpus_of("--gres=gpu:a100"), 1);
	assert_int_equal(gpus_of("--gres=shard:3,gpu:a100:4"), 4);
	assert_int_equal(gpus_of("--gres=shard:3"), 0);
	assert_int_equal(gpus_of("--gres=gpu:4 --nodes=2"), 8);
	assert_int_equal(gpus_of("--gpus-per-node=h100:4 --nodes=2-3"), 8);
	assert_int_equal(gpus_of("--gpus-per-task=1 --ntasks=6"), 6);
	assert_int_equal(gpus_of("--gpus-per-task=1 --nodes=2 --ntasks-per-node=3"), 6);
	assert_int_equal(gpus_of("--gpus=h100:3 --gres=gpu:4 --nodes=2"), 3);
	assert_int_equal(gpus_of("--nodes=1"), 0);
}

/* What cannot be turned into GPUs is refused, with what to say instead. */
static void test_slurm_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"--nodes=2",	      "--nodes=0",	     "--nodes=x",	  "--ntasks=-1",
		"--gres=gpu:9999999", "--gpus-per-node=two", "--gpus-per-task=0", "--gpus-per-node=65536 --nodes=65536",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct sw_err err = {0};
		json_t *fields = json_object();
		assert_int_equal(try_apply(wrong[i], fields, &err), SW_EINPUT);
		if (i == 0)
			assert_non_null(strstr(err.hint, "--gpus-per-node"));
		json_decref(fields);
	}
}

/* Cores are for each task where there are several. */
static void test_tasks(void **state)
{
	(void)state;
	json_t *fields = apply("--gpus=2 --ntasks=4 --cpus=3");
	assert_int_equal(json_integer_value(json_object_get(fields, "cpus")), 6);
	json_decref(fields);
	fields = apply("--ntasks=4");
	assert_int_equal(json_integer_value(json_object_get(fields, "cpus")), 4);
	json_decref(fields);
}

/* The user of an output file is written by name; other patterns are left for the controller. */
static void test_output_user(void **state)
{
	(void)state;
	const struct passwd *user = getpwuid(geteuid());
	char expected[300];
	json_t *fields = apply("--output=/o/%u-%%u-%j%");
	snprintf(expected, sizeof expected, "/o/%s-%%%%u-%%j%%", user != NULL ? user->pw_name : "%u");
	assert_string_equal(json_string_value(json_object_get(fields, "stdout")), expected);
	json_decref(fields);
}

/* What is asked for the whole job is divided among its GPUs; what is asked for each of them is
 * not. */
static void test_shares(void **state)
{
	(void)state;
	json_t *fields = apply("--gpus=4 --mem=64G --cpus=10");
	assert_int_equal(json_integer_value(json_object_get(fields, "memory")), INT64_C(16) << 30);
	assert_int_equal(json_integer_value(json_object_get(fields, "cpus")), 3);
	json_decref(fields);
	fields = apply("--gpus=2-8 --mem=1024");
	assert_int_equal(json_integer_value(json_object_get(fields, "memory")), INT64_C(512) << 20);
	json_decref(fields);
	fields = apply("--gpus=4 --mem-per-gpu=64G --cpus-per-gpu=10");
	assert_int_equal(json_integer_value(json_object_get(fields, "memory")), INT64_C(64) << 30);
	assert_int_equal(json_integer_value(json_object_get(fields, "cpus")), 10);
	json_decref(fields);
}

/* The signal of Slurm's form carries the grace time; --grace of its own wins. */
static void test_signal(void **state)
{
	(void)state;
	json_t *fields = apply("--signal=B:USR1@120");
	assert_string_equal(json_string_value(json_object_get(fields, "signal")), "USR1");
	assert_int_equal(json_integer_value(json_object_get(fields, "grace")), 120);
	json_decref(fields);
	fields = apply("--signal=USR1@120 --grace=5s");
	assert_int_equal(json_integer_value(json_object_get(fields, "grace")), 5);
	json_decref(fields);
}

/* The environment: nothing, a list, or all but what is of the shell and of this
 * machine; --env wins over it. */
static void test_env(void **state)
{
	(void)state;
	setenv("SW_TEST_A", "one", 1);
	setenv("SW_TEST_B", "two", 1);
	setenv("SHAREWELL_STATE", "/s", 1);
	setenv("SHAREWELL_EMU", "gpus=4", 1);
	json_t *fields = apply("--export=SW_TEST_A");
	const json_t *env = json_object_get(fields, "env");
	assert_int_equal(json_object_size(env), 1);
	assert_string_equal(json_string_value(json_object_get(env, "SW_TEST_A")), "one");
	json_decref(fields);
	fields = apply("--export=ALL --env=SW_TEST_A=other");
	env = json_object_get(fields, "env");
	assert_string_equal(json_string_value(json_object_get(env, "SW_TEST_A")), "other");
	assert_string_equal(json_string_value(json_object_get(env, "SW_TEST_B")), "two");
	assert_null(json_object_get(env, "PWD"));
	assert_null(json_object_get(env, "SHAREWELL_STATE"));
	assert_string_equal(json_string_value(json_object_get(env, "SHAREWELL_EMU")), "gpus=4");
	json_decref(fields);
	fields = apply("--export=NONE");
	assert_int_equal(json_object_size(json_object_get(fields, "env")), 0);
	json_decref(fields);
}

/* Wrong values name the option and what it takes. */
static void test_wrong(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"--time=soon", "--mem=much",	   "--cpus=-1",	   "--signal=WAVE", "--signal=USR1@x",
		"--grace=x",   "--deadline=never", "--expected=?", "--env=NOVALUE", "--job-name=\xff",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct sw_err err = {0};
		json_t *fields = json_object();
		assert_int_equal(try_apply(wrong[i], fields, &err), SW_EINPUT);
		assert_int_equal(strncmp(err.fact, "--", 2), 0);
		json_decref(fields);
	}
}

/* Every field of a job has an option, and stands in the help of `submit`, or is marked as none for
 * the command line; and every field is among the keys of a job file. */
static void test_every_field(void **state)
{
	(void)state;
	char *help = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&help, &size);
	sw_cli_print_command(out, &sw_cli_submit, 80);
	fclose(out);
	for (char *at = help; (at = strchr(at, '\n')) != NULL;)
		*at = ' ';
	const char *keys = strstr(help, "The keys of a job file are: ");
	assert_non_null(keys);
	SW_CLEANUP(sw_freep) char *line = strndup(keys + strlen("The keys of a job file are:"), strcspn(keys, ".") + 1);
	for (size_t i = 0; i < sw_job_field_count; i++) {
		const struct sw_field_option *option = sw_job_fields[i].option;
		char key[64];
		snprintf(key, sizeof key, " %s%c", sw_job_fields[i].name, i + 1 < sw_job_field_count ? ',' : '.');
		if (strstr(line, key) == NULL)
			fail_msg("'%s' is not among the keys of a job file", sw_job_fields[i].name);
		if (option == NULL)
			fail_msg("'%s' has neither an option nor sw_no_option", sw_job_fields[i].name);
		if (option == &sw_no_option)
			continue;
		snprintf(key, sizeof key, "--%s%s", option->name, option->argument != NULL ? " " : "");
		if (strstr(help, key) == NULL)
			fail_msg("the help of submit does not have --%s", option->name);
	}
	free(help);
}

/* What the option of a field says becomes that field of the request. */
static void test_options_become_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < sw_job_field_count; i++) {
		const struct sw_field *field = &sw_job_fields[i];
		const struct sw_field_option *option = field->option;
		char line[100];
		if (option == &sw_no_option)
			continue;
		const char *value = option->argument == NULL		 ? NULL
				    : field->words != NULL		 ? field->words[0]
				    : option->many			 ? "A=b"
				    : strcmp(field->name, "signal") == 0 ? "USR1"
				    : field->kind == SW_FIELD_MOMENT	 ? "8h"
									 : "1";
		snprintf(line, sizeof line, "--%s%s%s", option->name, value != NULL ? "=" : "", value != NULL ? value : "");
		json_t *fields = apply(line);
		if (json_object_get(fields, field->name) == NULL)
			fail_msg("%s does not become '%s'", line, field->name);
		json_decref(fields);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_limit),  cmocka_unit_test(test_moment),	  cmocka_unit_test(test_shares),
		cmocka_unit_test(test_slurm_gpus),  cmocka_unit_test(test_slurm_refused), cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_output_user), cmocka_unit_test(test_signal),	  cmocka_unit_test(test_env),
		cmocka_unit_test(test_wrong),	    cmocka_unit_test(test_every_field),	  cmocka_unit_test(test_options_become_fields),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
