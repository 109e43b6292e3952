/* Whatever a request may say, an order can carry: every bound of the table, and one beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/bounds.h"
#include "api/run_spec.h"

static char *copy(const char *text)
{
	char *made = strdup(text);
	assert_non_null(made);
	return made;
}

static struct sw_job_request *small_request(void)
{
	struct sw_job_request *request = NULL;
	static const char text[] = "{\"command\":[\"true\"],\"gpus\":2,\"on_lost\":\"restart\"}";
	assert_int_equal(sw_job_request_decode("test", text, sizeof text - 1, &request, NULL), 0);
	return request;
}

/* On a node and for a job with the longest names and numbers. */
static struct sw_run_facts large_facts(const struct sw_job_request *request)
{
	static char node[SW_SYNC_NAME_MAX + 1];
	memset(node, 'n', SW_SYNC_NAME_MAX);
	return (struct sw_run_facts){
		.job = SW_JOB_ID_MAX,
		.array_first = SW_JOB_ID_MAX,
		.name = request->name,
		.node = node,
		.uid = UINT32_MAX - 1,
		.gid = UINT32_MAX - 1,
		.array_index = SW_JOB_ARRAY_INDEX_MAX,
		.is_member = true,
		.is_prerun = true,
		.is_again = true,
		.gpus = SW_SPEC_GPUS_MAX,
		.gpu_memory_bytes = request->gpu_memory_bytes,
		.is_opportunistic = true,
		.config = {SW_CONFIG_BATCH_MOST, SW_CONFIG_MOST, SW_CONFIG_MOST, SW_CONFIG_MOST, SW_CONFIG_CPUS_MOST,
			   SW_CONFIG_MEMORY_MOST},
	};
}

/* The order of the request travels to an agent and to a supervisor, and is the same there. */
static void expect_carried(const struct sw_job_request *request, const char *field)
{
	struct sw_err err = {0};
	struct sw_made_spec *made = NULL;
	const struct sw_run_facts facts = large_facts(request);
	if (sw_job_request_check("test", request, &err) < 0 || sw_run_spec_check("test", request, &err) < 0 ||
	    sw_run_spec_make(request, &facts, &made, &err) < 0)
		fail_msg("%s at its bound: %s: %s", field, err.fact, err.detail);
	struct sw_want want = {.id = {SW_JOB_ID_MAX, UINT32_MAX}, .want = SW_WANT_RUN, .spec = &made->spec, .grace_ms = -1};
	const struct sw_answer_message answer = {.version = 1, .lease_ms = 1, .wants = &want, .want_count = 1};
	char *text = NULL, *again = NULL;
	size_t size;
	struct sw_answer_message *back = NULL;
	assert_int_equal(sw_answer_encode(&answer, &text, &size, NULL), 0);
	assert_true(size < sw_run_spec_size(&made->spec) + 500);
	assert_int_equal(sw_answer_decode(text, size, &back, &err), 0);
	if (back->want_count != 1)
		fail_msg("%s at its bound: %s", field, back->unread[0].why);
	assert_int_equal(sw_answer_encode(back, &again, &size, NULL), 0);
	assert_string_equal(text, again);
	free(text);
	free(again);
	sw_answer_free(back);
	const struct sw_run_order order = {.node = facts.node, .want = want};
	struct sw_run_order *read = NULL;
	assert_int_equal(sw_run_order_encode(&order, &text, &size, NULL), 0);
	if (sw_run_order_decode(text, size, &read, &err) < 0)
		fail_msg("%s at its bound: %s", field, err.detail);
	sw_run_order_free(read);
	free(text);
	sw_made_spec_free(made);
}

static char *long_text(size_t size, char first)
{
	char *text = malloc(size + 1);
	assert_non_null(text);
	memset(text, 'a', size);
	text[0] = first;
	text[size] = '\0';
	return text;
}

static void set_texts(struct sw_job_request *request, const char *field, size_t count, size_t length)
{
	bool is_env = strcmp(field, "env") == 0;
	char ***texts = is_env ? &request->env : &request->argv;
	size_t *number = is_env ? &request->env_count : &request->argc;
	for (size_t i = 0; i < *number; i++)
		free((*texts)[i]);
	*texts = realloc(*texts, (count + 1) * sizeof **texts);
	assert_non_null(*texts);
	for (size_t i = 0; i < count; i++) {
		char name[40];
		snprintf(name, sizeof name, "V%05zu=", i);
		(*texts)[i] = length > 0 ? long_text(length, 'V') : copy(name);
		if (length > 0)
			memcpy((*texts)[i], name, strlen(name));
	}
	(*texts)[count] = NULL;
	*number = count;
}

static int64_t most_of(const struct sw_field *field)
{
	int64_t most = field->max;
	if (field->kind == SW_FIELD_WORD)
		for (most = field->min; field->words[most + 1 - field->min] != NULL; most++)
			;
	return most;
}

/* Sets the field to its bound, or `beyond` it by one. False: it has none. */
static bool set_field(struct sw_job_request *request, const struct sw_field *field, int64_t beyond)
{
	char *at = (char *)request + field->offset;
	char **text = (char **)(void *)at;
	int64_t most = most_of(field) + beyond;
	/* What goes with it. */
	if (strcmp(field->name, "lease") == 0)
		request->on_lost = SW_ON_LOST_RESTART; /* the only jobs that hold one */
	if (strcmp(field->name, "gpu_floor") == 0)
		request->gpu_memory_bytes = SW_JOB_BYTES_MAX;
	if (strcmp(field->name, "array_index") == 0) {
		request->is_array = request->is_member = true;
		request->array_first = request->array_last = SW_JOB_ARRAY_INDEX_MAX;
		request->array_step = 1;
	}
	if (strcmp(field->name, "gpus") == 0 || strcmp(field->name, "min_gpus") == 0)
		request->gpus = request->max_gpus = (uint32_t)most;
	switch (field->kind) {
	case SW_FIELD_TEXT:
		free(*text);
		*text = long_text((size_t)most, '/');
		return true;
	case SW_FIELD_LIST:
		set_texts(request, field->name, 1, (size_t)most);
		return true;
	case SW_FIELD_U32:
	case SW_FIELD_WORD:
	case SW_FIELD_MILLI:
		*(uint32_t *)(void *)at = (uint32_t)most;
		return true;
	case SW_FIELD_BYTES:
	case SW_FIELD_SPAN:
	case SW_FIELD_MOMENT:
		*(int64_t *)(void *)at = most;
		return true;
	default:
		return false;
	}
}

static void expect_refused(const struct sw_job_request *request, const struct sw_field *field)
{
	struct sw_err err = {0};
	char name[64];
	snprintf(name, sizeof name, "field '%s'", field->name);
	assert_true(sw_job_request_check("test", request, &err) < 0);
	/* More than one number of GPUs is beyond then. */
	if (strstr(err.detail, name) == NULL && strstr(field->name, "gpus") == NULL)
		fail_msg("'%s' does not name '%s'", err.detail, field->name);
}

/* Every field at its bound becomes an order that an agent reads; one beyond is
 * refused when it is asked for. */
static void test_every_bound(void **state)
{
	(void)state;
	for (size_t i = 0; i < sw_job_field_count; i++)
		for (int64_t beyond = 0; beyond <= 1; beyond++) {
			struct sw_job_request *request = small_request();
			bool is_bounded = set_field(request, &sw_job_fields[i], beyond);
			if (is_bounded && beyond > 0)
				expect_refused(request, &sw_job_fields[i]);
			else
				expect_carried(request, sw_job_fields[i].name);
			sw_job_request_free(request);
		}
}

/* As many arguments and variables as a request may have, beside those that are added on the way. */
static void test_most_members(void **state)
{
	(void)state;
	for (size_t i = 0; i < sw_job_field_count; i++)
		for (size_t beyond = 0; sw_job_fields[i].kind == SW_FIELD_LIST && beyond <= 1; beyond++) {
			struct sw_job_request *request = small_request();
			request->slurm_env = true;
			set_texts(request, sw_job_fields[i].name, sw_job_fields[i].most + beyond, 0);
			if (beyond > 0)
				expect_refused(request, &sw_job_fields[i]);
			else
				expect_carried(request, sw_job_fields[i].name);
			sw_job_request_free(request);
		}
}

/* The least that a duration can be is not nothing in the order. */
static void test_least_durations(void **state)
{
	(void)state;
	struct sw_job_request *request = small_request();
	request->grace_ns = request->time_limit_ns = 1;
	const struct sw_run_facts facts = large_facts(request);
	struct sw_made_spec *made = NULL;
	assert_int_equal(sw_run_spec_make(request, &facts, &made, NULL), 0);
	assert_true(made->spec.grace_ms == 1 && made->spec.time_limit_ms == 1);
	sw_made_spec_free(made);
	sw_job_request_free(request);
}

/* The whole of a request at its bound: characters that take six bytes each. */
static void test_largest_request(void **state)
{
	(void)state;
	struct sw_job_request *request = small_request();
	set_texts(request, "env", 2, 20900);
	for (size_t i = 0; i < 2; i++)
		memset(request->env[i] + 8, 1, 20880);
	expect_carried(request, "the whole");
	sw_job_request_free(request);
}

/* What patterns in paths can become is looked at before the user hears yes, for the
 * longest name of a node. */
static void test_paths(void **state)
{
	(void)state;
	static const struct {
		const char *pattern;
		size_t each;
	} cases[] = {{"%x", 255}, {"%N", 255}, {"%j", 10}, {"%A", 10}, {"%a", 10}, {"%u", 10}, {"%%", 1}, {"%q", 2}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
		for (size_t beyond = 0; beyond <= 1; beyond++) {
			size_t count = SW_SYNC_PATH_MAX / cases[c].each < 1000 ? SW_SYNC_PATH_MAX / cases[c].each : 1000;
			size_t rest = SW_SYNC_PATH_MAX - count * cases[c].each + beyond;
			struct sw_job_request *request = small_request();
			free(request->name);
			request->name = long_text(SW_JOB_NAME_MAX, 'a');
			char path[2 * SW_SYNC_PATH_MAX] = "";
			for (size_t i = 0; i < count; i++)
				memcpy(path + 2 * i, cases[c].pattern, 3);
			memset(path + 2 * count, 'r', rest);
			path[2 * count + rest] = '\0';
			request->stderr_path = copy(path);
			struct sw_err err = {0};
			if (2 * count + rest > SW_JOB_PATH_MAX) {
				assert_true(sw_job_request_check("test", request, &err) < 0);
			} else if (beyond > 0) {
				assert_int_equal(sw_run_spec_check("test", request, &err), SW_EINPUT);
				assert_non_null(strstr(err.detail, "field 'stderr' may have 4096 bytes once its patterns are filled in"));
				/* Nor is there an order for one that was taken
				 * by an earlier version. */
				const struct sw_run_facts facts = large_facts(request);
				struct sw_made_spec *made = NULL;
				int r = sw_run_spec_make(request, &facts, &made, NULL);
				assert_int_equal(r, cases[c].pattern[1] == 'a' ? 0 : SW_EINPUT); /* no index has ten digits */
				sw_made_spec_free(made);
			} else {
				expect_carried(request, cases[c].pattern);
			}
			sw_job_request_free(request);
		}
}

/* A pre-run's name is longer than that of its job, and goes into paths, too. */
static void test_name_of_prerun(void **state)
{
	(void)state;
	struct sw_job_request *request = small_request();
	free(request->name);
	request->name = long_text(248, 'a');
	char path[64] = "", *at = path;
	for (int i = 0; i < 16; i++)
		at = stpcpy(at, "%x");
	request->stdout_path = copy(path); /* 3,968 bytes, or 4,080 of a pre-run */
	assert_int_equal(sw_run_spec_check("test", request, NULL), 0);
	request->prerun_ns = 1;
	assert_int_equal(sw_run_spec_check("test", request, NULL), 0);
	free(request->stdout_path);
	strcpy(at, "0123456789abcde0");
	request->stdout_path = copy(path);
	assert_int_equal(sw_run_spec_check("test", request, NULL), SW_EINPUT);
	request->prerun_ns = 0;
	assert_int_equal(sw_run_spec_check("test", request, NULL), 0);
	sw_job_request_free(request);
}

/* What the controller adds to an environment replaces what the user called so. */
static void test_added_variables(void **state)
{
	(void)state;
	struct sw_job_request *request = NULL;
	static const char text[] =
		"{\"command\":[\"true\"],\"env\":{\"A\":\"1\",\"SHAREWELL_ARRAY_INDEX\":\"9\",\"SHAREWELL_ARRAY_INDEX2\":\"x\","
		"\"SHAREWELL_PRERUN\":\"0\"}}";
	assert_int_equal(sw_job_request_decode("test", text, sizeof text - 1, &request, NULL), 0);
	struct sw_run_facts facts = {.name = "a", .node = "n", .is_member = true, .array_index = 7, .is_prerun = true};
	static const char *const expected[] = {"A=1", "SHAREWELL_ARRAY_INDEX2=x", "SHAREWELL_ARRAY_INDEX=7", "SHAREWELL_PRERUN=1"};
	struct sw_made_spec *made = NULL;
	assert_int_equal(sw_run_spec_make(request, &facts, &made, NULL), 0);
	assert_int_equal(made->spec.env.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(made->spec.env.items[i], expected[i]);
	sw_made_spec_free(made);
	sw_job_request_free(request);
}

/* Aim: a program hears how its policy set its run up, and its CPUs and memory are those. */
static void test_set_up(void **state)
{
	(void)state;
	struct sw_job_request *request = small_request();
	request->cpus = 2;
	struct sw_run_facts facts = {
		.name = "a", .node = "n", .gpus = 3, .config = {.batch = 64, .servers = 2, .cpus = 5, .host_memory_bytes = 7}};
	struct sw_made_spec *made = NULL;
	assert_int_equal(sw_run_spec_make(request, &facts, &made, NULL), 0);
	assert_int_equal(made->spec.env.count, 2);
	assert_string_equal(made->spec.env.items[0], "SHAREWELL_BATCH=64");
	assert_string_equal(made->spec.env.items[1], "SHAREWELL_SERVERS=2");
	assert_int_equal(made->spec.cpus, 15);
	assert_int_equal(made->spec.memory_bytes, 21);
	sw_made_spec_free(made);
	sw_job_request_free(request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_bound),	cmocka_unit_test(test_most_members), cmocka_unit_test(test_least_durations),
		cmocka_unit_test(test_largest_request), cmocka_unit_test(test_paths),	     cmocka_unit_test(test_name_of_prerun),
		cmocka_unit_test(test_added_variables), cmocka_unit_test(test_set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
