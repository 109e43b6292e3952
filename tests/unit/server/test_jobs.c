/* Jobs through the controller's own door: submit, list, look, change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/routes.h"
#include "unit/server/served.h"

static struct served served;

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	served_start(&served);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	return 0;
}

/* A job that was accepted is there, with what was asked for and the user. */
static void test_submit_and_get(void **state)
{
	(void)state;
	long long id = submit(&served, "{\"command\": [\"train\", \"x\"], \"name\": \"first\", \"gpus\": 2}");
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld", id);
	json_t *job = ask_json(&served, "GET", target, NULL, 200);
	keys_are_described(job, "Job");
	keys_are_described(json_object_get(job, "request"), "JobRequest");
	assert_int_equal(json_integer_value(json_object_get(job, "id")), id);
	assert_string_equal(json_string_value(json_object_get(job, "state")), "PD");
	assert_string_equal(json_string_value(json_object_get(job, "name")), "first");
	assert_int_equal(json_integer_value(json_object_get(job, "gpus")), 2);
	assert_int_equal(json_integer_value(json_object_get(job, "uid")), getuid());
	assert_true(json_is_null(json_object_get(job, "started_at")));
	assert_true(json_is_string(json_object_get(job, "submitted_at")));
	json_decref(job);
	json_t *why = ask_json(&served, "GET", strcat(target, "/why"), NULL, 200);
	keys_are_described(why, "Why");
	assert_true(json_string_length(json_object_get(why, "why")) > 5);
	json_decref(why);
}

/* A list is submitted whole or not at all, and an array stands for its members. */
static void test_many(void **state)
{
	(void)state;
	json_t *made = ask_json(&served, "POST", "/v1/jobs", "[{\"command\": [\"a\"]}, {\"command\": [\"b\"], \"array\": \"2-6:2\"}]", 201);
	keys_are_described(made, "Submitted");
	json_t *ids = json_object_get(made, "ids");
	assert_int_equal(json_array_size(ids), 4);
	long long second = json_integer_value(json_array_get(ids, 1));
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld", second + 1);
	json_t *job = ask_json(&served, "GET", target, NULL, 200);
	json_t *request = json_object_get(job, "request");
	assert_int_equal(json_integer_value(json_object_get(request, "array_index")), 4);
	assert_string_equal(json_string_value(json_object_get(request, "array")), "2-6:2");
	json_decref(job);
	long long last = json_integer_value(json_array_get(ids, 3));
	json_decref(made);

	json_t *error = ask_json(&served, "POST", "/v1/jobs",
				 "[{\"command\": [\"a\"]}, {\"command\": [\"b\"], \"depends\": \"afterok:4000000\"}]", 400);
	assert_non_null(strstr(json_string_value(json_object_get(json_object_get(error, "error"), "hint")), "number 2"));
	json_decref(error);
	error = ask_json(&served, "POST", "/v1/jobs", "[{\"command\": [\"a\"]}, {\"comand\": [\"b\"]}]", 400);
	keys_are_described(error, "Error");
	keys_are_described(json_object_get(error, "error"), "Problem");
	assert_non_null(strstr(json_string_value(json_object_get(json_object_get(error, "error"), "hint")), "'command'"));
	json_decref(error);
	assert_int_equal(submit(&served, "{\"command\": [\"c\"]}"), last + 1);
	json_decref(ask_json(&served, "POST", "/v1/jobs", "[]", 400));
	json_decref(ask_json(&served, "POST", "/v1/jobs", "[{\"command\": [\"a\"], \"array\": \"0-9999\"}, {\"command\": [\"b\"]}]", 413));
}

/* Megabytes in one request are taken, and other clients are served meanwhile. */
static void test_large_list(void **state)
{
	(void)state;
	enum { JOBS = 3000, EACH = 1000 };
	char *body = malloc((size_t)JOBS * (EACH + 100)), *end = body, text[EACH + 1];
	memset(text, 'x', EACH);
	text[EACH] = '\0';
	for (int i = 0; i < JOBS; i++)
		end += sprintf(end, "%s{\"command\": [\"%d\"], \"env\": {\"X\": \"%s\"}}", i == 0 ? "[" : ",", i, text);
	strcpy(end, "]");
	char head[128];
	snprintf(head, sizeof head, "POST /v1/jobs HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", strlen(body));
	int fd = dial(&served);
	say_text(fd, head);
	say(fd, body, strlen(body) / 2);
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
	say_text(fd, body + strlen(body) / 2);
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 201);
	json_t *made = json_loads(reply.body, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(made, "ids")), JOBS);
	json_decref(made);
	reply_free(&reply);
	close(fd);
	free(body);
}

static size_t count_jobs(const char *target)
{
	json_t *page = ask_json(&served, "GET", target, NULL, 200);
	keys_are_described(page, "JobList");
	size_t count = json_array_size(json_object_get(page, "jobs"));
	json_decref(page);
	return count;
}

/* Pages follow each other without gap or repetition in both directions, and filters let
 * through what they say. */
static void test_list(void **state)
{
	(void)state;
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"name\": \"paged\", \"array\": \"1-25\"}", 201));
	for (int down = 0; down < 2; down++) {
		char target[160];
		long long cursor = 0, before = 0;
		size_t seen = 0, pages = 0;
		do {
			snprintf(target, sizeof target, "/v1/jobs?name=paged&limit=10&order=%s&cursor=%lld", down ? "desc" : "asc", cursor);
			json_t *page = ask_json(&served, "GET", target, NULL, 200);
			json_t *jobs = json_object_get(page, "jobs");
			for (size_t i = 0; i < json_array_size(jobs); i++) {
				long long id = json_integer_value(json_object_get(json_array_get(jobs, i), "id"));
				assert_true(before == 0 || (down ? id == before - 1 : id == before + 1));
				before = id;
				seen++;
			}
			cursor = json_integer_value(json_object_get(page, "next"));
			json_decref(page);
			pages++;
		} while (cursor != 0);
		assert_int_equal(seen, 25);
		assert_int_equal(pages, 3);
	}
	assert_int_equal(count_jobs("/v1/jobs?name=pag*"), 25);
	assert_int_equal(count_jobs("/v1/jobs?name=pag"), 0);
	assert_int_equal(count_jobs("/v1/jobs?name=paged&state=PD,R"), 25);
	assert_int_equal(count_jobs("/v1/jobs?name=paged&state=ended"), 0);
	assert_int_equal(count_jobs("/v1/jobs?name=paged&user=me"), 25);
	assert_int_equal(count_jobs("/v1/jobs?name=paged&user=4000000"), 0);
	json_decref(ask_json(&served, "GET", "/v1/jobs?limit=0", NULL, 400));
	json_decref(ask_json(&served, "GET", "/v1/jobs?state=XX", NULL, 400));
	json_t *error = ask_json(&served, "GET", "/v1/jobs?stat=PD", NULL, 400);
	assert_non_null(strstr(json_string_value(json_object_get(json_object_get(error, "error"), "hint")), "'state'"));
	json_decref(error);
}

/* The job's verb, and whether there was anything to do. */
static bool changes(long long id, const char *verb)
{
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld/%s", id, verb);
	json_t *job = ask_json(&served, "POST", target, NULL, 200), *changed = json_object_get(job, "changed");
	assert_true(json_is_boolean(changed));
	bool did = json_is_true(changed);
	json_decref(job);
	return did;
}

/* Hold, release, cancel do what they say; what makes no sense for an ended job is a conflict. */
static void test_changes(void **state)
{
	(void)state;
	long long id = submit(&served, "{\"command\": [\"x\"]}");
	char target[64];
	assert_false(changes(id, "requeue") || changes(id, "resume") || changes(id, "release"));
	assert_true(changes(id, "hold"));
	snprintf(target, sizeof target, "/v1/jobs/%lld/why", id);
	json_t *why = ask_json(&served, "GET", target, NULL, 200);
	assert_non_null(strstr(json_string_value(json_object_get(why, "why")), "hold"));
	json_decref(why);
	assert_true(changes(id, "resume"));
	assert_false(changes(id, "resume"));
	snprintf(target, sizeof target, "/v1/jobs/%lld/cancel", id);
	json_t *job = ask_json(&served, "POST", target, NULL, 200);
	keys_are_described(job, "Job");
	assert_string_equal(json_string_value(json_object_get(job, "state")), "CA");
	json_decref(job);
	json_decref(ask_json(&served, "POST", target, NULL, 409));
	/* Each by its own name. */
	static const char *const verbs[] = {"cancel", "hold", "release", "requeue", "suspend", "resume"};
	for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++) {
		char fact[64];
		snprintf(target, sizeof target, "/v1/jobs/%lld/%s", id, verbs[v]);
		snprintf(fact, sizeof fact, "cannot %s job %lld", verbs[v], id);
		json_t *error = ask_json(&served, "POST", target, NULL, 409);
		assert_string_equal(json_string_value(json_object_get(json_object_get(error, "error"), "fact")), fact);
		json_decref(error);
	}
	json_decref(ask_json(&served, "POST", "/v1/jobs/4000000/cancel", NULL, 404));
	json_decref(ask_json(&served, "GET", "/v1/jobs/4000000", NULL, 404));
	json_decref(ask_json(&served, "GET", "/v1/jobs/0", NULL, 404));
	json_decref(ask_json(&served, "GET", "/v1/jobs/abc", NULL, 404));
	json_decref(ask_json(&served, "GET", target, NULL, 405));
}

/* The cluster, its policy and quotas can be seen, and changed while it runs. */
static void test_cluster(void **state)
{
	(void)state;
	json_t *cluster = ask_json(&served, "GET", "/v1/cluster", NULL, 200);
	keys_are_described(cluster, "Cluster");
	assert_string_equal(json_string_value(json_object_get(cluster, "policy")), "fifo");
	json_decref(cluster);
	json_t *policy = ask_json(&served, "POST", "/v1/policy", "{\"policy\": \"las\", \"set\": {\"thresholds\": \"100,200\"}}", 200);
	keys_are_described(policy, "Policy");
	assert_string_equal(json_string_value(json_object_get(policy, "policy")), "las");
	assert_string_equal(json_string_value(json_object_get(json_object_get(policy, "settings"), "thresholds")), "100,200");
	assert_string_equal(json_string_value(json_object_get(json_object_get(policy, "settings"), "tick")), "60s");
	json_decref(policy);
	json_decref(ask_json(&served, "POST", "/v1/policy", "{\"policy\": \"lass\"}", 400));
	json_decref(ask_json(&served, "POST", "/v1/policy", "{\"policy\": \"las\", \"set\": {\"treshold\": 1}}", 400));
	json_t *quota = ask_json(&served, "POST", "/v1/quota", "{\"tenant\": \"team\", \"gpus\": 4}", 200);
	keys_are_described(quota, "Quota");
	json_decref(quota);
	json_t *tenants = ask_json(&served, "GET", "/v1/quota", NULL, 200), *team = json_array_get(json_object_get(tenants, "tenants"), 0);
	keys_are_described(tenants, "TenantList");
	keys_are_described(team, "Tenant");
	assert_string_equal(json_string_value(json_object_get(team, "tenant")), "team");
	assert_int_equal(json_integer_value(json_object_get(team, "quota")), 4);
	json_decref(tenants);
	json_decref(ask_json(&served, "POST", "/v1/quota", "{\"tenant\": \"team\", \"gpus\": null}", 200));
	tenants = ask_json(&served, "GET", "/v1/quota", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(tenants, "tenants")), 0);
	json_decref(tenants);
	json_decref(ask_json(&served, "POST", "/v1/quota", "{\"tenant\": \"team\"}", 400));
	json_t *nodes = ask_json(&served, "GET", "/v1/nodes", NULL, 200);
	keys_are_described(nodes, "NodeList");
	json_decref(nodes);
	json_t *openapi = ask_json(&served, "GET", "/v1/openapi.json", NULL, 200);
	assert_non_null(json_object_get(json_object_get(openapi, "paths"), "/v1/jobs/{id}/logs"));
	json_decref(openapi);
	json_t *health = ask_json(&served, "GET", "/healthz", NULL, 200);
	keys_are_described(health, "Health");
	assert_string_equal(json_string_value(json_object_get(health, "status")), "ok");
	json_decref(health);
}

/* A page tells what jobs asked for where that is wanted; moments choose. */
static void test_asked(void **state)
{
	(void)state;
	static const char *const requests[] = {
		"{\"command\": \"true\", \"time_limit\": 90, \"weight\": 2, \"class\": \"opportunistic\"}",
		"{\"command\": \"true\", \"depends\": \"afterok:1\", \"hold\": true}",
	};
	for (size_t i = 0; i < 2; i++)
		json_decref(ask_json(&served, "POST", "/v1/jobs", requests[i], 201));
	json_t *page = ask_json(&served, "GET", "/v1/jobs?asked=true", NULL, 200), *jobs = json_object_get(page, "jobs");
	json_t *first = json_object_get(json_array_get(jobs, 0), "asked"), *second = json_array_get(jobs, 1);
	keys_are_described(first, "Asked");
	assert_int_equal(json_integer_value(json_object_get(first, "time_limit_s")), 90);
	assert_string_equal(json_string_value(json_object_get(first, "class")), "opportunistic");
	assert_true(json_is_null(json_object_get(first, "expected_s")));
	assert_int_equal(json_integer_value(json_array_get(json_object_get(json_object_get(second, "asked"), "depends"), 0)), 1);
	assert_true(json_is_true(json_object_get(second, "held")));
	json_decref(page);
	page = ask_json(&served, "GET", "/v1/jobs", NULL, 200);
	assert_null(json_object_get(json_array_get(json_object_get(page, "jobs"), 0), "asked"));
	json_decref(page);
	page = ask_json(&served, "GET", "/v1/jobs?until=2001-01-01T00:00:00Z", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(page, "jobs")), 0);
	json_decref(page);
	page = ask_json(&served, "GET", "/v1/jobs?since=2100-01-01T00:00:00Z", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(page, "jobs")), 2); /* they have not ended */
	json_decref(page);
	json_decref(ask_json(&served, "GET", "/v1/jobs?since=yesterday", NULL, 400));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_submit_and_get), TEST(test_many),    TEST(test_large_list), TEST(test_list),
		TEST(test_changes),	   TEST(test_cluster), TEST(test_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
