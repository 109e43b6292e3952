/* Job files are YAML whose scalars stay text, but for the truth values of a job itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/job.h"
#include "cli/job_options.h"

static int load(const char *text, json_t **ret_jobs, struct sw_err *err)
{
	char path[] = "/tmp/sw-jobfile-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	*err = (struct sw_err){0};
	int r = sw_cli_jobfile(path, ret_jobs, err);
	unlink(path);
	return r;
}

/* Every kind of field arrives as the decoder of jobs takes it. */
static void test_one(void **state)
{
	(void)state;
	json_t *jobs;
	struct sw_err err;
	struct sw_job_request *request;
	assert_int_equal(load("name: 007\ncommand: [python, train.py, true]\ngpus: 2-4\ngpu_memory: 20G\nhold: true\ntime_limit: "
			      "2h\nenv:\n  DEBUG: true\n  N: 5\n",
			      &jobs, &err),
			 0);
	char *text = json_dumps(jobs, 0);
	assert_int_equal(sw_job_request_decode("test", text, strlen(text), &request, &err), 0);
	assert_string_equal(request->name, "007");
	assert_int_equal(request->argc, 3);
	assert_string_equal(request->argv[2], "true");
	assert_int_equal(request->min_gpus, 2);
	assert_int_equal(request->max_gpus, 4);
	assert_true(request->held);
	assert_string_equal(request->env[0], "DEBUG=true");
	assert_int_equal(request->time_limit_ns, INT64_C(7200000000000));
	sw_job_request_free(request);
	free(text);
	json_decref(jobs);
}

/* A list of jobs is one, with truth values one level deeper. */
static void test_list(void **state)
{
	(void)state;
	json_t *jobs;
	struct sw_err err;
	assert_int_equal(load("- command: echo a\n  hold: true\n- command: echo b\n", &jobs, &err), 0);
	assert_int_equal(json_array_size(jobs), 2);
	assert_true(json_is_true(json_object_get(json_array_get(jobs, 0), "hold")));
	json_decref(jobs);
}

/* What is no job is refused with its line; what is no YAML, too. */
static void test_wrong(void **state)
{
	(void)state;
	json_t *jobs;
	struct sw_err err;
	assert_int_equal(load("just words\n", &jobs, &err), SW_EINPUT);
	assert_int_equal(load("- command: x\n- words\n", &jobs, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "line 2"));
	assert_int_equal(load("command: [x\n", &jobs, &err), SW_EINPUT);
	assert_int_equal(load("command: x\ncommand: y\n", &jobs, &err), SW_EINPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
