/* Requests from their parts: routes, parameters, bodies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/query.h"
#include "api/request.h"

static struct sw_request *open_request(enum sw_method method, const char *target)
{
	struct sw_err err = {0};
	struct sw_request *request = NULL;
	int status = 0;
	if (sw_request_open(method, target, &request, &status, &err) < 0)
		fail_msg("%s gave %d: %s: %s", target, status, err.fact, err.detail);
	return request;
}

static void refused(enum sw_method method, const char *target, int status, const char *word)
{
	struct sw_err err = {0};
	struct sw_request *request = NULL;
	int got = 0;
	assert_true(sw_request_open(method, target, &request, &got, &err) < 0);
	assert_null(request);
	if (got != status)
		fail_msg("%s gave %d, expected %d", target, got, status);
	if (strstr(err.fact, word) == NULL && strstr(err.detail, word) == NULL && strstr(err.hint, word) == NULL)
		fail_msg("%s: '%s' is not in '%s', '%s', '%s'", target, word, err.fact, err.detail, err.hint);
}

/* Each path of the table leads to its route, with the job's number where there is one. */
static void test_routes(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_ROUTES; i++) {
		const struct sw_route *route = &sw_routes[i];
		assert_int_equal(route->id, i);
		char target[64];
		const char *hole = strstr(route->path, "{id}");
		if (hole != NULL)
			snprintf(target, sizeof target, "%.*s4294967295%s", (int)(hole - route->path), route->path, hole + 4);
		else
			snprintf(target, sizeof target, "%s", route->path);
		struct sw_request *request = open_request(route->method, target);
		assert_ptr_equal(request->route, route);
		assert_int_equal(request->job, hole != NULL ? 4294967295u : 0);
		sw_request_free(request);
		/* What the table names exists, and nothing is described twice. */
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(sw_routes[j].name, route->name);
		assert_true(route->response == NULL || sw_schema_find(route->response + 1) != NULL);
		assert_int_equal(route->method == SW_POST, route->body_max > 0);
	}
	refused(SW_GET, "/", 404, "openapi");
	refused(SW_GET, "/v1/jobs/", 404, "nothing");
	refused(SW_GET, "/v1/jobs/0", 404, "nothing");
	refused(SW_GET, "/v1/jobs/-1", 404, "nothing");
	refused(SW_GET, "/v1/jobs/1.0", 404, "nothing");
	refused(SW_GET, "/v1/jobs/4294967296", 404, "nothing");
	refused(SW_GET, "/v1/jobs/1/2/why", 404, "nothing");
	refused(SW_GET, "/v1/jobs/1/cancel", 405, "POST");
	refused(SW_OTHER_METHOD, "/v1/jobs", 405, "GET and POST");
	refused(SW_POST, "/healthz", 405, "GET");
}

/* Parameters are understood in the forms that people write, and refused by name. */
static void test_parameters(void **state)
{
	(void)state;
	struct sw_request *request = open_request(SW_GET, "/v1/jobs");
	assert_int_equal(request->list.states, (1u << SW_STATES) - 1);
	assert_int_equal(request->list.limit, SW_LIST_USUAL);
	sw_request_free(request);
	request = open_request(SW_GET, "/v1/jobs?state=pd,Running&user=j%C3%B6rg+x&name=a%2ab*&limit=1000&cursor=7&order=desc&");
	assert_int_equal(request->list.states, 1u << 0 | 1u << 2);
	assert_string_equal(request->list.user, "j\xC3\xB6rg x");
	assert_string_equal(request->list.name, "a*b");
	assert_true(request->list.name_is_prefix && request->list.descending);
	assert_int_equal(request->list.limit, 1000);
	assert_int_equal(request->list.cursor, 7);
	sw_request_free(request);
	request = open_request(SW_GET, "/v1/jobs?state=active");
	for (unsigned i = 0; i < SW_STATES; i++)
		assert_int_equal(request->list.states >> i & 1, !sw_state_names[i].ended);
	sw_request_free(request);
	request = open_request(SW_GET, "/v1/jobs/5/logs?offset=-10&limit=3&follow&run=2");
	assert_int_equal(request->logs.offset, -10);
	assert_int_equal(request->logs.limit, 3);
	assert_int_equal(request->logs.run, 2);
	assert_true(request->logs.follow);
	sw_request_free(request);
	request = open_request(SW_GET, "/v1/events?after=9&job=3");
	assert_true(request->has_after && request->after == 9 && request->job == 3);
	sw_request_free(request);

	request = open_request(SW_GET, "/v1/journal/events?all=true&after=9&limit=7");
	assert_true(request->all_events && request->after == 9 && request->list.limit == 7);
	sw_request_free(request);
	request = open_request(SW_GET, "/v1/journal/events");
	assert_false(request->all_events);
	sw_request_free(request);

	refused(SW_GET, "/v1/journal/events?all=perhaps", 400, "true or false");
	refused(SW_GET, "/v1/events?all=true", 400, "'all'");
	refused(SW_GET, "/v1/jobs?limit=1001", 400, "1 to 1000");
	refused(SW_GET, "/v1/jobs?limit=", 400, "limit");
	refused(SW_GET, "/v1/jobs?state=", 400, "states");
	refused(SW_GET, "/v1/jobs?state=PD,,R", 400, "states");
	refused(SW_GET, "/v1/jobs?order=up", 400, "asc or desc");
	refused(SW_GET, "/v1/jobs?limt=3", 400, "'limit'");
	refused(SW_GET, "/v1/jobs?name=%", 400, "escape");
	refused(SW_GET, "/v1/jobs?name=%0", 400, "escape");
	refused(SW_GET, "/v1/jobs?name=%00", 400, "escape");
	refused(SW_GET, "/v1/jobs?name=%ff", 400, "UTF-8");
	refused(SW_GET, "/v1/jobs/5/logs?follow=maybe", 400, "true or false");
	refused(SW_GET, "/v1/cluster?x=1", 400, "'x'");
	refused(SW_GET,
		"/v1/"
		"jobs?limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&limit=1&"
		"limit=1"
		"&limit=1&limit=1",
		414, "16 parameters");
	refused(SW_POST, "/v1/jobs?force=1", 400, "'force'");
}

static int read_body(struct sw_request *request, const char *body, int *ret_status)
{
	return sw_request_read(request, body, strlen(body), ret_status, NULL);
}

/* Bodies by route; wrong ones leave nothing behind. */
static void test_bodies(void **state)
{
	(void)state;
	int status = 0;
	struct sw_request *request = open_request(SW_POST, "/v1/jobs");
	assert_int_equal(read_body(request, " [{\"command\":[\"a\"]},{\"command\":\"b\",\"array\":\"0-9\"}]", &status), 0);
	assert_int_equal(request->jobs.count, 2);
	assert_int_equal(request->job_total, 11);
	assert_true(request->jobs_are_listed);
	sw_request_free(request);
	request = open_request(SW_POST, "/v1/jobs");
	assert_int_equal(read_body(request, "", &status), SW_EINPUT);
	assert_int_equal(status, 400);
	sw_request_free(request);
	request = open_request(SW_POST, "/v1/policy");
	assert_int_equal(read_body(request, "{\"policy\":\"las\",\"set\":{\"a\":\"x\",\"b\":2,\"c\":1.5,\"d\":true}}", &status), 0);
	assert_string_equal(request->policy, "las");
	assert_int_equal(request->setting_count, 4);
	assert_string_equal(request->settings[2], "c=1.5");
	sw_request_free(request);
	static const char *const bad[] = {"[]",
					  "{}",
					  "{\"policy\":1}",
					  "{\"policy\":\"a\",\"set\":[]}",
					  "{\"policy\":\"a\",\"set\":{\"a\":[]}}",
					  "{\"policy\":\"a\",\"x\":1}"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		request = open_request(SW_POST, "/v1/policy");
		assert_int_equal(read_body(request, bad[i], &status), SW_EINPUT);
		sw_request_free(request);
	}
	request = open_request(SW_POST, "/v1/quota");
	assert_int_equal(read_body(request, "{\"tenant\":\"t\",\"gpus\":null}", &status), 0);
	assert_int_equal(request->quota_gpus, UINT32_MAX);
	sw_request_free(request);
	static const char *const wrong[] = {"{\"tenant\":\"t\"}", "{\"gpus\":1}", "{\"tenant\":\"\",\"gpus\":1}",
					    "{\"tenant\":\"t\",\"gpus\":-1}", "{\"tenant\":\"t\",\"gpus\":1,\"x\":1}"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		request = open_request(SW_POST, "/v1/quota");
		assert_int_equal(read_body(request, wrong[i], &status), SW_EINPUT);
		sw_request_free(request);
	}
	request = open_request(SW_POST, "/v1/agents/sync");
	assert_int_equal(read_body(request, "{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"have\":0}", &status), 0);
	assert_string_equal(request->sync->node, "n");
	sw_request_free(request);
	/* A verb on a job has no body that matters. */
	request = open_request(SW_POST, "/v1/jobs/1/cancel");
	assert_int_equal(read_body(request, "{}", &status), 0);
	sw_request_free(request);
}

static int read_limit(const char *body, struct sw_job_limit *ret_limit)
{
	int status = 0;
	struct sw_request *request = open_request(SW_POST, "/v1/jobs/7/limit");
	int r = read_body(request, body, &status);
	assert_int_equal(status, r < 0 ? 400 : 0);
	assert_int_equal(request->job, 7);
	*ret_limit = request->limit;
	sw_request_free(request);
	return r;
}

static int read_move(const char *body, uint64_t *ret_mask)
{
	int status = 0;
	struct sw_request *request = open_request(SW_POST, "/v1/jobs/7/move");
	int r = read_body(request, body, &status);
	assert_int_equal(status, r < 0 ? 400 : 0);
	*ret_mask = request->gpu_mask;
	sw_request_free(request);
	return r;
}

/* Where a job is to go: GPUs by their numbers, each once, or anywhere. */
static void test_moves(void **state)
{
	(void)state;
	uint64_t mask;
	assert_int_equal(read_move("{\"gpus\":[1,63]}", &mask), 0);
	assert_true(mask == (UINT64_C(1) << 63 | 2));
	assert_int_equal(read_move("{\"gpus\":null}", &mask), 0);
	assert_true(mask == 0);
	assert_int_equal(read_move("{}", &mask), 0);
	assert_true(mask == 0);
	static const char *const bad[] = {"{\"gpus\":[]}",    "{\"gpus\":[64]}",  "{\"gpus\":[-1]}", "{\"gpus\":[1,1]}",
					  "{\"gpus\":[1.5]}", "{\"gpus\":\"1\"}", "{\"gpu\":[1]}",   "[]"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(read_move(bad[i], &mask), SW_EINPUT);
}

/* Limits of a job: sizes and percentages, null lifts, what is not named is not
 * set; all else is refused. */
static void test_limits(void **state)
{
	(void)state;
	struct sw_job_limit limit;
	assert_int_equal(read_limit("{\"gpu_memory\":\"10G\"}", &limit), 0);
	assert_true(limit.sets_memory && !limit.sets_share && limit.memory_bytes == UINT64_C(10) << 30);
	assert_int_equal(read_limit("{\"gpu_memory\":16777216,\"compute\":1}", &limit), 0);
	assert_true(limit.sets_memory && limit.sets_share && limit.memory_bytes == 16777216 && limit.share_milli == 10);
	assert_int_equal(read_limit("{\"gpu_memory\":null,\"compute\":100}", &limit), 0);
	assert_true(limit.sets_memory && limit.sets_share && limit.memory_bytes == 0 && limit.share_milli == 0);
	assert_int_equal(read_limit("{\"compute\":null}", &limit), 0);
	assert_true(!limit.sets_memory && limit.sets_share && limit.share_milli == 0);
	static const char *const wrong[] = {"{}",
					    "[]",
					    "7",
					    "{\"gpu_memory\":16777215}",
					    "{\"gpu_memory\":-1}",
					    "{\"gpu_memory\":\"much\"}",
					    "{\"gpu_memory\":\"\"}",
					    "{\"gpu_memory\":1e9}",
					    "{\"gpu_memory\":\"2000000P\"}",
					    "{\"gpu_memory\":true}",
					    "{\"compute\":0}",
					    "{\"compute\":101}",
					    "{\"compute\":30.5}",
					    "{\"compute\":\"30\"}",
					    "{\"compute\":30,\"memory\":1}"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(read_limit(wrong[i], &limit), SW_EINPUT);
}

/* A change of many jobs: a verb, jobs by their numbers, and how; all else is refused,
 * and says what is wrong. */
static void test_changes(void **state)
{
	(void)state;
	static const struct {
		const char *body, *word;
	} wrong[] = {
		{"[]", "not an object"},
		{"{}", "'verb'"},
		{"{\"jobs\":[1]}", "'verb'"},
		{"{\"verb\":7,\"jobs\":[1]}", "'verb'"},
		{"{\"verb\":\"cancle\",\"jobs\":[1]}", "'cancel'"},
		{"{\"verb\":\"limit\",\"jobs\":[1]}", "'verb'"},
		{"{\"verb\":\"cancel\"}", "'jobs'"},
		{"{\"verb\":\"cancel\",\"jobs\":[]}", "'jobs'"},
		{"{\"verb\":\"cancel\",\"jobs\":7}", "'jobs'"},
		{"{\"verb\":\"cancel\",\"jobs\":{\"7\":7}}", "'jobs'"},
		{"{\"verb\":\"cancel\",\"jobs\":[1,\"2\"]}", "number 2"},
		{"{\"verb\":\"cancel\",\"jobs\":[1,2,0]}", "number 3"},
		{"{\"verb\":\"cancel\",\"jobs\":[-1]}", "number 1"},
		{"{\"verb\":\"cancel\",\"jobs\":[1.0]}", "number 1"},
		{"{\"verb\":\"cancel\",\"jobs\":[4294967296]}", "number 1"},
		{"{\"verb\":\"cancel\",\"jobs\":[[1]]}", "number 1"},
		{"{\"verb\":\"cancel\",\"jobs\":[1],\"deep\":true}", "'suspend' alone"},
		{"{\"verb\":\"suspend\",\"jobs\":[1],\"deep\":1}", "'deep'"},
		{"{\"verb\":\"cancel\",\"jobs\":[1],\"skip_ended\":null}", "'skip_ended'"},
		{"{\"verb\":\"cancel\",\"jobs\":[1],\"job\":1}", "'job'"},
		{"{\"verb\":\"cancel\",\"jobs\":[1],\"jobs\":[2]}", "JSON"},
	};
	int status = 0;
	struct sw_request *request = open_request(SW_POST, "/v1/jobs/change");
	assert_int_equal(read_body(request, "{\"verb\":\"suspend\",\"deep\":true,\"jobs\":[7,1,4294967295,7]}", &status), 0);
	assert_int_equal(request->change.verb, SW_ROUTE_SUSPEND);
	assert_true(request->deep && !request->change.skips_ended);
	assert_int_equal(request->change.jobs.count, 4);
	assert_int_equal(request->change.jobs.items[2], 4294967295u);
	sw_request_free(request);
	static const char *const verbs[] = {"cancel", "hold", "release", "requeue", "suspend", "resume"};
	for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++) {
		char body[128], path[64];
		snprintf(body, sizeof body, "{\"verb\":\"%s\",\"skip_ended\":true,\"deep\":false,\"jobs\":[3]}", verbs[v]);
		snprintf(path, sizeof path, "/v1/jobs/{id}/%s", verbs[v]);
		request = open_request(SW_POST, "/v1/jobs/change");
		assert_int_equal(read_body(request, body, &status), 0);
		assert_string_equal(sw_routes[request->change.verb].path, path);
		assert_true(request->change.skips_ended && !request->deep);
		sw_request_free(request);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct sw_err err = {0};
		request = open_request(SW_POST, "/v1/jobs/change");
		assert_int_equal(sw_request_read(request, wrong[i].body, strlen(wrong[i].body), &status, &err), SW_EINPUT);
		assert_int_equal(status, 400);
		if (strstr(err.detail, wrong[i].word) == NULL && strstr(err.hint, wrong[i].word) == NULL)
			fail_msg("%s: '%s' is not in '%s', '%s'", wrong[i].body, wrong[i].word, err.detail, err.hint);
		sw_request_free(request);
	}
	refused(SW_GET, "/v1/jobs/change", 405, "POST");
}

/* So many jobs can be changed by one request, with the longest numbers and spaces between
 * them, and not one more. */
static void test_most_changes(void **state)
{
	(void)state;
	char *body = malloc((size_t)(SW_REQUEST_CHANGES_MAX + 1) * 13 + 64);
	for (unsigned count = SW_REQUEST_CHANGES_MAX; count <= SW_REQUEST_CHANGES_MAX + 1; count++) {
		bool fits = count == SW_REQUEST_CHANGES_MAX;
		char *end = body + sprintf(body, "{\"verb\": \"cancel\", \"jobs\": [");
		for (unsigned i = 0; i < count; i++)
			end += sprintf(end, "%s%u", i > 0 ? ", " : "", UINT32_MAX - i);
		strcpy(end, "]}");
		int status = 0;
		struct sw_request *request = open_request(SW_POST, "/v1/jobs/change");
		assert_int_equal(read_body(request, body, &status), fits ? 0 : SW_ELIMIT);
		assert_int_equal(status, fits ? 0 : 413);
		sw_request_free(request);
	}
	free(body);
}

/* Ten thousand jobs in one request are the most, however they are written. */
static void test_most_jobs(void **state)
{
	(void)state;
	size_t size = 10001 * 20;
	char *body = malloc(size);
	for (int count = 10000; count <= 10001; count++) {
		strcpy(body, "[");
		char *end = body + 1;
		for (int i = 0; i < count; i++)
			end += sprintf(end, "%s{\"command\":\"a\"}", i > 0 ? "," : "");
		strcpy(end, "]");
		int status = 0;
		struct sw_request *request = open_request(SW_POST, "/v1/jobs");
		assert_int_equal(read_body(request, body, &status), count == 10000 ? 0 : SW_ELIMIT);
		assert_int_equal(status, count == 10000 ? 0 : 413);
		sw_request_free(request);
	}
	free(body);
}

/* A long list of jobs is read in steps; what comes of it is what comes of reading it at one go, and
 * a list that is broken is refused at whatever place. */
static void test_list_in_steps(void **state)
{
	(void)state;
	const size_t count = 3000;
	char *body = malloc(count * 80 + 10);
	size_t used = (size_t)sprintf(body, " [");
	for (size_t i = 0; i < count; i++)
		used += (size_t)sprintf(body + used, "%s{\"command\": [\"x\", \"[,{\\\"\"], \"name\": \"job-%zu-\u00e9\"} ",
					i > 0 ? ",\n" : "", i);
	used += (size_t)sprintf(body + used, "]\n ");
	struct sw_request *request = NULL;
	struct sw_err err = {0};
	int status = 0, steps = 0;
	bool more = true;
	assert_int_equal(sw_request_open(SW_POST, "/v1/jobs", &request, &status, &err), 0);
	for (; more; steps++)
		assert_int_equal(sw_request_read_some(request, body, used, &more, &status, &err), 0);
	assert_true(steps > 1);
	assert_int_equal(request->jobs.count, count);
	assert_true(request->jobs_are_listed);
	assert_string_equal(request->jobs.items[2999].job->name, "job-2999-\u00e9");
	sw_request_free(request);
	/* Without its end, and with something behind it. */
	static const char *const ends[] = {" ", "]]", "] x", ",]", ", 7]", "{}]"};
	size_t whole = used - 3;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		sw_err_clear(&err);
		strcpy(body + whole, ends[i]);
		assert_int_equal(sw_request_open(SW_POST, "/v1/jobs", &request, &status, &err), 0);
		assert_int_equal(sw_request_read(request, body, strlen(body), &status, &err), SW_EINPUT);
		assert_int_equal(status, 400);
		sw_request_free(request);
	}
	free(body);
}

/* A member of a list that is larger than a job may be is refused for that, and not read to its end,
 * where it is broken: megabytes at one go would hold up every client. */
static void test_large_member(void **state)
{
	(void)state;
	static const char *const fillings[] = {"[],", "{\"a\":1},", "\u00e9", " "};
	const size_t size = (size_t)2 << 20;
	char *body = malloc(size + 100);
	for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++) {
		size_t used = (size_t)sprintf(body, "[{\"command\": [\"x\"], \"env\": {\"A\": %s",
					      fillings[i][0] == '[' || fillings[i][0] == '{' ? "[" : "\"");
		while (used < size)
			used += (size_t)sprintf(body + used, "%s", fillings[i]);
		strcpy(body + used, "broken");
		struct sw_request *request = open_request(SW_POST, "/v1/jobs");
		struct sw_err err = {0};
		int status = 0;
		assert_int_equal(sw_request_read(request, body, strlen(body), &status, &err), SW_ELIMIT);
		assert_int_equal(status, 413);
		assert_string_equal(err.detail, "number 1 of its list is larger than a job may be");
		sw_request_free(request);
	}
	free(body);
}

/* Bodies of very many parts are refused before they are parsed; commas in text are no parts. */
static void test_many_parts(void **state)
{
	(void)state;
	static const struct {
		const char *path, *head;
		size_t most;
	} rows[] = {{"/v1/jobs/change", "{\"verb\": \"cancel\", \"jobs\": [[", 101000},
		    {"/v1/agents/sync", "{\"node\": \"a\", \"x\": [", 491520}};
	const size_t size = (size_t)2 << 20;
	char *body = malloc(size);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t used = (size_t)sprintf(body, "%s", rows[i].head);
		for (size_t part = 0; part <= rows[i].most; part++)
			used += (size_t)sprintf(body + used, "1,");
		struct sw_request *request = open_request(SW_POST, rows[i].path);
		int status = 0;
		assert_int_equal(read_body(request, body, &status), SW_ELIMIT);
		assert_int_equal(status, 413);
		sw_request_free(request);
		used = (size_t)sprintf(body, "%s\"\\\"", rows[i].head);
		while (used < size - 100)
			used += (size_t)sprintf(body + used, ",[{");
		request = open_request(SW_POST, rows[i].path);
		assert_int_equal(read_body(request, body, &status), SW_EINPUT);
		sw_request_free(request);
	}
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes),	     cmocka_unit_test(test_parameters),	  cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_limits),	     cmocka_unit_test(test_moves),	  cmocka_unit_test(test_most_jobs),
		cmocka_unit_test(test_changes),	     cmocka_unit_test(test_most_changes), cmocka_unit_test(test_list_in_steps),
		cmocka_unit_test(test_large_member), cmocka_unit_test(test_many_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
