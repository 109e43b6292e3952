/* Requests for jobs: what is understood, what is refused and in which words, and that text and
 * value are two forms of one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "api/job.h"
#include "api/json.h"
#include "base/number.h"
#include "base/rng.h"

static struct sw_job_request *decode(const char *json)
{
	struct sw_err err = {0};
	struct sw_job_request *request = NULL;
	if (sw_job_request_decode("request", json, strlen(json), &request, &err) < 0)
		fail_msg("refused: %s: %s", err.fact, err.detail);
	return request;
}

/* Refused with this code, with `word` in the detail or the hint. */
static void refused(const char *json, int code, const char *word)
{
	struct sw_err err = {0};
	struct sw_job_request *request = (struct sw_job_request *)&err;
	int r = sw_job_request_decode("request", json, strlen(json), &request, &err);
	if (r != code)
		fail_msg("%s gave %d, expected %d", json, r, code);
	assert_ptr_equal(request, &err);
	assert_int_equal(err.code, code);
	assert_string_equal(err.fact, "cannot take the job of request");
	if (strstr(err.detail, word) == NULL && strstr(err.hint, word) == NULL)
		fail_msg("'%s' is not in '%s' nor '%s'", word, err.detail, err.hint);
}

/* The shortest request is complete: everything else has the value that its absence stands for. */
static void test_defaults(void **state)
{
	(void)state;
	struct sw_job_request *job = decode("{\"command\": [\"/usr/bin/python3\", \"train.py\"]}");
	assert_string_equal(job->name, "python3");
	assert_int_equal(job->argc, 2);
	assert_string_equal(job->argv[1], "train.py");
	assert_null(job->argv[2]);
	assert_int_equal(job->gpus, 1);
	assert_int_equal(job->min_gpus, 1);
	assert_int_equal(job->max_gpus, 1);
	assert_int_equal(job->weight_milli, 1000);
	assert_true(job->grace_ns == 30 * SW_NS_PER_S);
	assert_int_equal(job->kind, SW_CLASS_GUARANTEED);
	assert_string_equal(job->tenant, "");
	assert_null(job->workdir);
	assert_null(job->stdout_path);
	assert_int_equal(job->env_count, 0);
	assert_false(job->is_array || job->held || job->slurm_env || job->bare_gpu);
	sw_job_request_free(job);
}

/* Every field lands in its member, in each form that people write it. */
static void test_fields(void **state)
{
	(void)state;
	struct sw_job_request *job = decode(
		"{\"name\": \"n\", \"command\": \"sleep 1 && echo \\u00e9\", \"env\": {\"B\": \"2=3\", \"A\": 1}, \"workdir\": \"/w\","
		" \"stdout\": \"o\", \"stderr\": \"e\", \"tenant\": \"t\", \"comment\": \"c\", \"gpus\": \"2-8\", \"gpu_memory\": \"20G\","
		" \"cpus\": 4, \"memory\": 1024, \"weight\": 1.5, \"retries\": 3, \"signal\": \"SIGUSR1\", \"grace\": \"90s\","
		" \"time_limit\": \"1-00:00:00\", \"expected\": 7.25, \"deadline\": \"2030-01-31T18:00:00.5+02:00\", \"class\": \"auto\","
		" \"preempt\": \"suspend\", \"hold\": true, \"slurm_env\": true, \"gpu_runtime\": \"off\", \"depends\": "
		"\"afterok:12:14,afterany:13\","
		" \"array\": \"0-9:3%2\"}");
	assert_int_equal(job->argc, 3);
	assert_string_equal(job->argv[0], "/bin/sh");
	assert_string_equal(job->argv[2], "sleep 1 && echo \xC3\xA9");
	assert_int_equal(job->env_count, 2);
	assert_string_equal(job->env[0], "A=1");
	assert_string_equal(job->env[1], "B=2=3");
	assert_null(job->env[2]);
	assert_string_equal(job->workdir, "/w");
	assert_string_equal(job->stdout_path, "o");
	assert_string_equal(job->stderr_path, "e");
	assert_string_equal(job->tenant, "t");
	assert_string_equal(job->comment, "c");
	assert_int_equal(job->min_gpus, 2);
	assert_int_equal(job->gpus, 2);
	assert_int_equal(job->max_gpus, 8);
	assert_true(job->gpu_memory_bytes == UINT64_C(20) << 30);
	assert_int_equal(job->cpus, 4);
	assert_true(job->memory_bytes == 1024);
	assert_int_equal(job->weight_milli, 1500);
	assert_int_equal(job->retries, 3);
	assert_int_equal(job->signal, 10);
	assert_true(job->grace_ns == 90 * SW_NS_PER_S);
	assert_true(job->time_limit_ns == 86400 * SW_NS_PER_S);
	assert_true(job->expected_ns == 7250 * SW_NS_PER_MS);
	assert_true(job->deadline_at_ns == INT64_C(1896105600500000000));
	assert_int_equal(job->kind, SW_CLASS_AUTO);
	assert_int_equal(job->preempt_by, SW_PREEMPT_BY_SUSPEND);
	assert_true(job->held && job->slurm_env && job->bare_gpu);
	assert_int_equal(job->depend_count, 3);
	assert_int_equal(job->depends[1].job, 14);
	assert_int_equal(job->depends[1].kind, SW_AFTER_OK);
	assert_int_equal(job->depends[2].kind, SW_AFTER_ANY);
	assert_true(job->is_array && !job->is_member);
	assert_int_equal(job->array_step, 3);
	assert_int_equal(job->array_limit, 2);
	assert_int_equal(sw_job_request_count(job), 4);
	sw_job_request_free(job);
}

/* What is wrong is named by its field, and a slip of the pen by what was meant. */
static void test_refusals(void **state)
{
	(void)state;
	refused("", SW_EINPUT, "not JSON");
	refused("[]", SW_EINPUT, "not an object");
	refused("{}", SW_EINPUT, "no command");
	refused("{\"command\": \"  \"}", SW_EINPUT, "no command");
	refused("{\"command\": [\"\"]}", SW_EINPUT, "no command");
	refused("{\"command\": [\"a\"], \"command\": [\"b\"]}", SW_EINPUT, "duplicate");
	refused("{\"command\": [\"a\\u0000b\"]}", SW_EINPUT, "\\u0000");
	refused("{\"command\": [\"a\xFF\"]}", SW_EINPUT, "byte 0xff");
	refused("{\"command\": 7}", SW_EINPUT, "'command' is 7");
	refused("{\"command\": [\"a\"], \"gpu\": 2}", SW_EINPUT, "Did you mean 'gpus'?");
	refused("{\"command\": [\"a\"], \"nonsense\": 2}", SW_EINPUT, "no field 'nonsense'");
	refused("{\"command\": [\"a\"], \"gpus\": 0}", SW_EINPUT, "'gpus' is 0");
	refused("{\"command\": [\"a\"], \"gpus\": -1}", SW_EINPUT, "'gpus' is -1");
	refused("{\"command\": [\"a\"], \"gpus\": \"8-2\"}", SW_EINPUT, "'8-2'");
	refused("{\"command\": [\"a\"], \"gpus\": 65537}", SW_EINPUT, "65536");
	refused("{\"command\": [\"a\"], \"gpus\": 4, \"max_gpus\": 2}", SW_EINPUT, "contradict");
	refused("{\"command\": [\"a\"], \"gpu_floor\": 1}", SW_EINPUT, "'gpu_floor' needs 'gpu_memory'");
	refused("{\"command\": [\"a\"], \"gpu_floor\": 3, \"gpu_memory\": 2}", SW_EINPUT, "'gpu_floor' is more than 'gpu_memory'");
	refused("{\"command\": [\"a\"], \"gpu_memory\": \"20X\"}", SW_EINPUT, "'20X'");
	refused("{\"command\": [\"a\"], \"gpu_memory\": -1}", SW_EINPUT, "gpu_memory");
	refused("{\"command\": [\"a\"], \"weight\": 0}", SW_EINPUT, "0.001");
	refused("{\"command\": [\"a\"], \"gpu_use\": 1.001}", SW_EINPUT, "from 0 to 1");
	refused("{\"command\": [\"a\"], \"gpu_use\": -0.5}", SW_EINPUT, "from 0 to 1");
	refused("{\"command\": [\"a\"], \"gpu_use\": \"nan\"}", SW_EINPUT, "from 0 to 1");
	refused("{\"command\": [\"a\"], \"model\": \"a\\n\"}", SW_EINPUT, "control character");
	refused("{\"command\": [\"a\"], \"model\": 5}", SW_EINPUT, "expected a text");
	refused("{\"command\": [\"a\"], \"weight\": 1e300}", SW_EINPUT, "weight");
	refused("{\"command\": [\"a\"], \"grace\": 0}", SW_EINPUT, "KILL");
	refused("{\"command\": [\"a\"], \"grace\": 1e-10}", SW_EINPUT, "grace");
	refused("{\"command\": [\"a\"], \"time_limit\": \"-5\"}", SW_EINPUT, "time_limit");
	refused("{\"command\": [\"a\"], \"time_limit\": 1e18}", SW_EINPUT, "time_limit");
	refused("{\"command\": [\"a\"], \"deadline\": \"2030-02-30T00:00:00Z\"}", SW_EINPUT, "deadline");
	refused("{\"command\": [\"a\"], \"deadline\": \"2030-02-20T00:00:00\"}", SW_EINPUT, "deadline");
	refused("{\"command\": [\"a\"], \"class\": \"gold\"}", SW_EINPUT, "guaranteed, opportunistic or auto");
	refused("{\"command\": [\"a\"], \"signal\": 65}", SW_EINPUT, "signal");
	refused("{\"command\": [\"a\"], \"signal\": \"USR3\"}", SW_EINPUT, "signal");
	refused("{\"command\": [\"a\"], \"hold\": 1}", SW_EINPUT, "true or false");
	refused("{\"command\": [\"a\"], \"depends\": \"after:1\"}", SW_EINPUT, "afternotok");
	refused("{\"command\": [\"a\"], \"depends\": \"afterok:0\"}", SW_EINPUT, "depends");
	refused("{\"command\": [\"a\"], \"depends\": \"afterok:1,\"}", SW_EINPUT, "depends");
	refused("{\"command\": [\"a\"], \"array\": \"9-0\"}", SW_EINPUT, "array");
	refused("{\"command\": [\"a\"], \"array\": \"0-9:0\"}", SW_EINPUT, "array");
	refused("{\"command\": [\"a\"], \"array\": \"0-9%0\"}", SW_EINPUT, "array");
	refused("{\"command\": [\"a\"], \"array\": \"0-10000\"}", SW_ELIMIT, "10001 members");
	refused("{\"command\": [\"a\"], \"array_index\": 1}", SW_EINPUT, "without an 'array'");
	refused("{\"command\": [\"a\"], \"array\": \"0-8:2\", \"array_index\": 3}", SW_EINPUT, "not in the array");
	refused("{\"command\": [\"a\"], \"workdir\": \"here\"}", SW_EINPUT, "absolute");
	refused("{\"command\": [\"a\"], \"env\": {\"\": \"x\"}}", SW_EINPUT, "env");
	refused("{\"command\": [\"a\"], \"env\": {\"A=B\": \"x\"}}", SW_EINPUT, "A=B");
	refused("{\"command\": [\"a\"], \"env\": {\"A\": []}}", SW_EINPUT, "a list");
	refused("{\"command\": [\"a\"], \"name\": \"a\\nb\"}", SW_EINPUT, "control character");
	refused("{\"command\": [\"a\"], \"name\": \"a\\u009b2Jb\"}", SW_EINPUT, "control character");
	refused("{\"command\": [\"a\"], \"tenant\": \"\\u0080\"}", SW_EINPUT, "control character");
	refused("{\"command\": [\"a\"], \"umask\": \"0888\"}", SW_EINPUT, "octal");
	refused("{\"command\": [\"a\"], \"umask\": \"1000\"}", SW_EINPUT, "octal");
	refused("{\"command\": [\"a\"], \"umask\": 22}", SW_EINPUT, "octal");
}

/* Whatever is too long is refused as a limit, at the bound and not before it. */
static void test_bounds(void **state)
{
	(void)state;
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key(&json, "command");
	sw_json_array(&json);
	for (unsigned i = 0; i < SW_JOB_ARGS_MAX; i++)
		sw_json_string(&json, "a");
	char *at_bound = NULL;
	assert_true(asprintf(&at_bound, "%s]}", json.text) > 0);
	sw_job_request_free(decode(at_bound));
	sw_json_string(&json, "a");
	sw_json_end_array(&json);
	sw_json_end_object(&json);
	refused(json.text, SW_ELIMIT, "4097 words");
	free(at_bound);
	sw_json_release(&json);

	/* One string of the kernel's size is fine, two of them are; a third is beyond the whole. */
	char *huge = malloc(SW_JOB_STRING_MAX + 2);
	memset(huge, 'x', SW_JOB_STRING_MAX + 1);
	huge[SW_JOB_STRING_MAX + 1] = '\0';
	char *text = NULL;
	assert_true(asprintf(&text, "{\"command\": [\"%s\"]}", huge) > 0);
	refused(text, SW_ELIMIT, "131072 bytes");
	free(text);
	huge[SW_JOB_STRING_MAX] = '\0';
	assert_true(asprintf(&text, "{\"command\": [\"%s\"]}", huge) > 0);
	sw_job_request_free(decode(text));
	free(text);
	assert_true(asprintf(&text, "{\"command\": [\"%s\", \"%s\"]}", huge, huge) > 0);
	refused(text, SW_ELIMIT, "bytes");
	free(text);
	free(huge);
}

/* The canonical text is what jansson calls sorted and compact, and has what was decided even
 * where it is the default. */
static void test_canonical(void **state)
{
	(void)state;
	struct sw_job_request *job = decode("{\"weight\": 1.001, \"grace\": 1.5, \"command\": [\"a\\u001f\\\"\\\\/\\u00e9\"], \"env\": "
					    "{\"b\": \"\\n\", \"a\": \"\"}, \"signal\": 40}");
	char *text = sw_job_request_encode(job);
	assert_string_equal(text,
			    "{\"class\":\"guaranteed\",\"command\":[\"a\\u001F\\\"\\\\/\xC3\xA9\"],\"env\":{\"a\":\"\",\"b\":\"\\n\"},"
			    "\"gpus\":1,\"grace\":\"1500ms\",\"name\":\"\xC3\xA9\",\"signal\":40,"
			    "\"weight\":\"1.001\"}");
	json_t *root = json_loads(text, 0, NULL);
	char *sorted = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(sorted, text);
	free(sorted);
	json_decref(root);
	free(text);
	sw_job_request_free(job);
}

/* ---- the property */

static uint64_t below(struct sw_rng *rng, uint64_t bound)
{
	return sw_rng_below(rng, bound);
}

/* Printable ASCII, things that must be escaped, two- to four-byte characters. */
static char *draw_text(struct sw_rng *rng, size_t least, size_t most, bool line)
{
	static const char *const characters[] = {
		"a", "Z", "0", " ", "=", "\"", "\\", "/", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\n", "\x01", "\x7F"};
	char text[512] = "";
	size_t count = least + below(rng, most - least + 1);
	for (size_t i = 0; i < count; i++)
		strcat(text, characters[below(rng, line ? 11 : 14)]);
	return strdup(text);
}

static void draw_words(struct sw_rng *rng, struct sw_job_request *job)
{
	job->argc = 1 + below(rng, 4);
	job->argv = calloc(job->argc + 1, sizeof *job->argv);
	for (size_t i = 0; i < job->argc; i++)
		job->argv[i] = draw_text(rng, i == 0, 20, false);
	job->env_count = below(rng, 4);
	job->env = job->env_count > 0 ? calloc(job->env_count + 1, sizeof *job->env) : NULL;
	for (size_t i = 0; i < job->env_count; i++) {
		char *value = draw_text(rng, 0, 10, false);
		/* Names in order, as a decoded request has them. */
		assert_true(asprintf(&job->env[i], "%c%s=%s", (char)('A' + i), below(rng, 2) ? "\xC3\xA9" : "", value) > 0);
		free(value);
	}
}

static int64_t draw_duration(struct sw_rng *rng, int64_t least)
{
	static const int64_t units[] = {1, SW_NS_PER_US, SW_NS_PER_MS, SW_NS_PER_S};
	return least + (int64_t)below(rng, 1000000) * units[below(rng, 4)];
}

static struct sw_job_request *draw(struct sw_rng *rng)
{
	struct sw_job_request *job = calloc(1, sizeof *job);
	draw_words(rng, job);
	job->name = below(rng, 2) ? draw_text(rng, 1, 30, true) : NULL;
	job->tenant = below(rng, 2) ? draw_text(rng, 0, 10, true) : NULL;
	job->comment = below(rng, 2) ? draw_text(rng, 0, 30, true) : NULL;
	job->workdir = below(rng, 2) ? strdup("/some/\nwhere") : NULL;
	job->stdout_path = below(rng, 2) ? draw_text(rng, 1, 10, false) : NULL;
	job->stderr_path = below(rng, 2) ? draw_text(rng, 1, 10, false) : NULL;
	job->min_gpus = 1 + (uint32_t)below(rng, 4);
	job->gpus = job->min_gpus + (uint32_t)below(rng, 4);
	job->max_gpus = job->gpus + (uint32_t)below(rng, 4);
	job->gpu_memory_bytes = below(rng, 2) ? below(rng, SW_JOB_BYTES_MAX + 1) : 0;
	job->memory_bytes = below(rng, 2) ? below(rng, SW_JOB_BYTES_MAX + 1) : 0;
	job->cpus = (uint32_t)below(rng, 9);
	job->model = below(rng, 2) ? draw_text(rng, 1, 10, true) : NULL;
	job->gpu_use_milli = (uint32_t)below(rng, 1001);
	job->weight_milli = (uint32_t)below(rng, 5000);
	job->retries = (uint32_t)below(rng, 4);
	job->signal = (uint32_t)below(rng, 65);
	job->grace_ns = draw_duration(rng, 0);
	job->time_limit_ns = draw_duration(rng, 0);
	job->expected_ns = draw_duration(rng, 0);
	job->deadline_at_ns = below(rng, 2) ? (int64_t)below(rng, INT64_C(7258118400000000000)) : 0;
	job->kind = (enum sw_job_class)below(rng, 3);
	job->preempt_by = (enum sw_preempt_by)(1 + below(rng, 2));
	job->held = below(rng, 2) != 0;
	job->slurm_env = below(rng, 2) != 0;
	job->bare_gpu = below(rng, 2) != 0;
	job->depend_count = below(rng, 4) ? below(rng, 4) : SW_JOB_DEPENDS_MAX;
	for (size_t i = 0; i < job->depend_count; i++)
		job->depends[i] = (struct sw_depend){(enum sw_depend_kind)below(rng, 3), 1 + below(rng, SW_JOB_ID_MAX)};
	job->is_array = below(rng, 2) != 0;
	if (job->is_array) {
		job->array_first = (uint32_t)below(rng, 1000);
		job->array_last = job->array_first + (uint32_t)below(rng, 9000);
		job->array_step = (uint32_t)below(rng, 5);
		job->array_limit = (uint32_t)below(rng, 5);
		job->is_member = below(rng, 2) != 0;
		job->array_index = job->is_member ? job->array_first : 0;
	}
	return job;
}

static void same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

static void same(const struct sw_job_request *a, const struct sw_job_request *b)
{
	assert_int_equal(a->argc, b->argc);
	for (size_t i = 0; i < a->argc; i++)
		same_text(a->argv[i], b->argv[i]);
	assert_int_equal(a->env_count, b->env_count);
	for (size_t i = 0; i < a->env_count; i++)
		same_text(a->env[i], b->env[i]);
	same_text(a->name, b->name);
	same_text(a->workdir, b->workdir);
	same_text(a->stdout_path, b->stdout_path);
	same_text(a->stderr_path, b->stderr_path);
	same_text(a->tenant, b->tenant);
	same_text(a->comment, b->comment);
	same_text(a->model, b->model);
	assert_int_equal(a->gpu_use_milli, b->gpu_use_milli);
	/* Everything else is plain bytes, with the pointers out of the way. */
	struct sw_job_request x = *a, y = *b;
	x.name = y.name = x.workdir = y.workdir = x.stdout_path = y.stdout_path = x.stderr_path = y.stderr_path = NULL;
	x.tenant = y.tenant = x.comment = y.comment = x.model = y.model = NULL;
	x.argv = y.argv = x.env = y.env = NULL;
	assert_int_equal(x.gpus, y.gpus);
	assert_int_equal(x.min_gpus, y.min_gpus);
	assert_int_equal(x.max_gpus, y.max_gpus);
	assert_true(x.gpu_memory_bytes == y.gpu_memory_bytes && x.memory_bytes == y.memory_bytes);
	assert_int_equal(x.weight_milli, y.weight_milli);
	assert_true(x.grace_ns == y.grace_ns && x.time_limit_ns == y.time_limit_ns && x.expected_ns == y.expected_ns);
	assert_true(x.deadline_at_ns == y.deadline_at_ns);
	assert_int_equal(x.depend_count, y.depend_count);
	for (size_t i = 0; i < x.depend_count; i++)
		assert_true(x.depends[i].kind == y.depends[i].kind && x.depends[i].job == y.depends[i].job);
	assert_true(x.cpus == y.cpus && x.retries == y.retries && x.signal == y.signal && x.kind == y.kind && x.preempt_by == y.preempt_by);
	assert_true(x.held == y.held && x.slurm_env == y.slurm_env && x.bare_gpu == y.bare_gpu && x.is_array == y.is_array &&
		    x.is_member == y.is_member);
	assert_true(x.array_first == y.array_first && x.array_last == y.array_last && x.array_step == y.array_step);
	assert_true(x.array_limit == y.array_limit && x.array_index == y.array_index);
}

/* Any request made by hand comes back from its text unchanged, and its text comes back from
 * that. */
static void test_round_trip(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 20);
	for (int i = 0; i < 3000; i++) {
		struct sw_err err = {0};
		struct sw_job_request *job = draw(&rng);
		assert_true(sw_job_request_defaults(job));
		if (sw_job_request_check("test", job, &err) < 0)
			fail_msg("round %d: %s: %s", i, err.fact, err.detail);
		char *text = sw_job_request_encode(job);
		struct sw_job_request *back = decode(text);
		same(job, back);
		char *again = sw_job_request_encode(back);
		assert_string_equal(again, text);
		free(text);
		free(again);
		sw_job_request_free(job);
		sw_job_request_free(back);
	}
}

/* Of two assignments of one variable the last counts, as in a shell. */
static void test_repeated_variable(void **state)
{
	(void)state;
	char *argv[] = {strdup("a"), NULL}, *env[] = {strdup("X=1"), strdup("W=0"), strdup("X=2"), NULL};
	struct sw_job_request job = {.argv = argv, .argc = 1, .env = env, .env_count = 3};
	assert_true(sw_job_request_defaults(&job));
	char *text = sw_job_request_encode(&job);
	assert_non_null(strstr(text, "\"env\":{\"W\":\"0\",\"X\":\"2\"}"));
	free(text);
	free(argv[0]);
	for (int i = 0; i < 3; i++)
		free(env[i]);
	free(job.name);
	free(job.tenant);
	free(job.comment);
}

/* Signals go by name, with and without SIG, or by number. */
static void test_signals(void **state)
{
	(void)state;
	assert_int_equal(sw_job_signal("TERM"), 15);
	assert_int_equal(sw_job_signal("sigusr2"), 12);
	assert_int_equal(sw_job_signal("9"), 9);
	assert_int_equal(sw_job_signal("65"), 0);
	assert_int_equal(sw_job_signal(""), 0);
	assert_int_equal(sw_job_signal("SIG"), 0);
	for (uint32_t i = 1; i < 32; i++)
		assert_int_equal(sw_job_signal(sw_job_signal_name(i)), i);
	assert_null(sw_job_signal_name(0));
	assert_null(sw_job_signal_name(32));
}

/* Aim: a job that an earlier version took, with control characters of two bytes or a longer name,
 * is taken again with a name that can be shown; a new one is refused. */
static void test_stored_jobs_are_mended(void **state)
{
	(void)state;
	char json[SW_JOB_NAME_MAX + 200], wanted[SW_JOB_NAME_MAX + 1];
	struct sw_job_request *request = NULL;
	static const char odd[] = "{\"command\":[\"true\"],\"name\":\"a\\u0085b\\u009b1m\\u0007\\u00e9\",\"comment\":\"x\\ny\"}";
	assert_int_equal(sw_job_request_decode("request", odd, sizeof odd - 1, &request, NULL), SW_EINPUT);
	assert_int_equal(sw_job_request_decode(sw_job_stored, odd, sizeof odd - 1, &request, NULL), 0);
	assert_string_equal(request->name, "a??b??1m?\xc3\xa9");
	assert_string_equal(request->comment, "x?y");
	sw_job_request_free(request);
	/* One byte too long, in the middle of a character. */
	memset(wanted, 'n', SW_JOB_NAME_MAX - 1);
	wanted[SW_JOB_NAME_MAX - 1] = '\0';
	snprintf(json, sizeof json, "{\"command\":[\"true\"],\"name\":\"%s\xc3\xa9\"}", wanted);
	assert_int_equal(sw_job_request_decode("request", json, strlen(json), &request, NULL), SW_ELIMIT);
	assert_int_equal(sw_job_request_decode(sw_job_stored, json, strlen(json), &request, NULL), 0);
	assert_string_equal(request->name, wanted);
	sw_job_request_free(request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_repeated_variable),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_stored_jobs_are_mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
