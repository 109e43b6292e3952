/* Server-sent events: what happens is told, in order, once, and a watcher that
 * comes back misses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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

static int watch(const char *query, const char *last_event_id)
{
	char head[256];
	int fd = dial(&served);
	snprintf(head, sizeof head, "GET /v1/events%s HTTP/1.1\r\n%s%s%s\r\n", query, last_event_id != NULL ? "Last-Event-ID: " : "",
		 last_event_id != NULL ? last_event_id : "", last_event_id != NULL ? "\r\n" : "");
	say_text(fd, head);
	hear_head(fd, 200);
	return fd;
}

/* The ids of the messages in the text, checked to be ascending; returns how many, and the last. */
static size_t count_ids(const char *text, long long *last)
{
	size_t count = 0;
	for (const char *at = strstr(text, "\nid: "); at != NULL; at = strstr(at + 1, "\nid: ")) {
		long long id = atoll(at + 5);
		assert_true(id > *last);
		*last = id;
		count++;
	}
	return count;
}

/* A watcher hears of what comes after it came, each with the number of its
 * record and the job as it is. */
static void test_watch(void **state)
{
	(void)state;
	submit(&served, "{\"command\": [\"before\"]}");
	int fd = watch("", NULL);
	char *text = hear_until(fd, "event: ready\nid: 1\n");
	free(text);
	submit(&served, "{\"command\": [\"after\"], \"name\": \"mine\"}");
	json_decref(ask_json(&served, "POST", "/v1/jobs/2/cancel", NULL, 200));
	text = hear_until(fd, "event: cancel");
	assert_null(strstr(text, "before"));
	assert_non_null(strstr(text, "event: submit\nid: 2\ndata: {\"seq\":2,"));
	assert_non_null(strstr(text, "\"name\":\"mine\""));
	long long last = 1;
	assert_int_equal(count_ids(text, &last), 2);
	/* Each message is one line of JSON. */
	const char *data = strstr(text, "event: cancel");
	data = strstr(data, "data: ") + 6;
	json_t *event = json_loadb(data, strcspn(data, "\n"), 0, NULL);
	assert_string_equal(json_string_value(json_object_get(event, "kind")), "cancel");
	assert_string_equal(json_string_value(json_object_get(json_object_get(event, "job"), "state")), "CA");
	json_decref(event);
	free(text);
	close(fd);
}

/* A watcher that comes back with the number of the last event gets all after it and none twice,
 * also after the controller was killed. */
static void test_resume(void **state)
{
	(void)state;
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"array\": \"1-9\"}", 201));
	int fd = watch("?after=0", NULL);
	char *text = hear_until(fd, "id: 9\n");
	long long last = 0;
	assert_int_equal(count_ids(text, &last), 9);
	free(text);
	close(fd);
	served_kill(&served);
	served_start(&served);
	assert_int_equal(served.records, 9);
	submit(&served, "{\"command\": [\"x\"]}");
	fd = watch("", "4");
	text = hear_until(fd, "id: 10\n");
	last = 4;
	assert_int_equal(count_ids(text, &last), 6);
	assert_null(strstr(text, "reset"));
	free(text);
	close(fd);
}

/* A number that never was, or that was too long ago, leads to a reset that says where
 * we are; then it goes on. */
static void test_reset(void **state)
{
	(void)state;
	submit(&served, "{\"command\": [\"x\"]}");
	int fd = watch("", "77");
	free(hear_until(fd, "event: reset\nid: 1\n"));
	submit(&served, "{\"command\": [\"x\"]}");
	free(hear_until(fd, "event: submit\nid: 2\n"));
	close(fd);
	/* More than is kept. */
	served_stop(&served);
	served.options.events_kept = 100;
	served_start(&served);
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"array\": \"1-998\"}", 201));
	fd = watch("?after=1", NULL);
	free(hear_until(fd, "event: reset\nid: 1000\n"));
	close(fd);
	fd = watch("?after=900", NULL);
	char *text = hear_until(fd, "id: 1000\n");
	long long last = 900;
	assert_int_equal(count_ids(text, &last), 100);
	free(text);
	close(fd);
}

/* A watcher of one job hears of that one only; one that does not read holds up no other. */
static void test_one_job_and_no_reader(void **state)
{
	(void)state;
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"array\": \"1-3\"}", 201));
	int deaf = watch("?after=0", NULL);
	int fd = watch("?job=2", NULL);
	json_decref(ask_json(&served, "POST", "/v1/jobs/1/cancel", NULL, 200));
	json_decref(ask_json(&served, "POST", "/v1/jobs/2/cancel", NULL, 200));
	char *text = hear_until(fd, "event: cancel");
	assert_null(strstr(text, "\"id\":1,"));
	assert_non_null(strstr(text, "\"id\":2,"));
	free(text);
	for (int i = 0; i < 3; i++)
		json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"array\": \"1-2000\"}", 201));
	json_decref(ask_json(&served, "POST", "/v1/jobs/3/cancel", NULL, 200));
	/* It hears all of it once it listens. */
	free(hear_until(deaf, "\nid: 6006\n"));
	close(deaf);
	close(fd);
}

/* A watcher of a job that ends because another one did hears of it. */
static void test_end_with_another(void **state)
{
	(void)state;
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"]}", 201));
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"y\"], \"depends\": \"afterok:1\"}", 201));
	int fd = watch("?job=2", NULL);
	json_decref(ask_json(&served, "POST", "/v1/jobs/1/cancel", NULL, 200));
	char *text = hear_until(fd, "event: ended");
	assert_non_null(strstr(text, "\"id\":2,"));
	free(text);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_watch), TEST(test_resume), TEST(test_reset), TEST(test_one_job_and_no_reader),
					   TEST(test_end_with_another)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
