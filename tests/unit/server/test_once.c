/* Submits with a key: however often they are sent, they make their jobs once. */
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
	served_add_stranger(&served);
	served_start(&served);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	return 0;
}

static void say_submit(int fd, const char *token, const char *key, const char *body)
{
	char head[1024];
	int used =
		snprintf(head, sizeof head, "POST /v1/jobs HTTP/1.1\r\nIdempotency-Key: %s\r\nContent-Length: %zu\r\n", key, strlen(body));
	if (token != NULL)
		used += snprintf(head + used, sizeof head - (size_t)used, "Authorization: Bearer %s\r\n", token);
	snprintf(head + used, sizeof head - (size_t)used, "\r\n");
	say_text(fd, head);
	say_text(fd, body);
}

/* The answer's body, on a connection of its own; the caller frees. */
static char *once(const char *key, const char *body, int status)
{
	int fd = dial(&served);
	say_submit(fd, NULL, key, body);
	struct reply reply = hear(fd);
	close(fd);
	if (reply.status != status)
		fail_msg("%d, expected %d: %s", reply.status, status, reply.body);
	free(reply.head);
	return reply.body;
}

static void expect(const char *key, const char *body, int status, const char *answer)
{
	char *said = once(key, body, status);
	if (strstr(said, answer) == NULL)
		fail_msg("'%s' does not have '%s'", said, answer);
	free(said);
}

static long long count_jobs(void)
{
	json_t *page = ask_json(&served, "GET", "/v1/jobs?limit=1000", NULL, 200);
	long long count = (long long)json_array_size(json_object_get(page, "jobs"));
	json_decref(page);
	return count;
}

#define ONE "{\"command\": [\"one\"]}"
#define TWO "{\"command\": [\"two\"]}"

/* The same key and body give the same jobs again: at once, after a restart, after a crash. */
static void test_again(void **state)
{
	(void)state;
	expect("k1", ONE, 201, "{\"id\":1,\"ids\":[1],");
	expect("k1", ONE, 201, "{\"id\":1,\"ids\":[1],");
	expect("k2", "{\"command\": [\"a\"], \"array\": \"0-2\"}", 201, "\"ids\":[2,3,4]");
	expect("k3", "[" ONE "," TWO "]", 201, "\"ids\":[5,6]");
	/* Pre-runs have numbers of their own, which are not among those. */
	expect("k4", "{\"command\": [\"p\"], \"gpus\": 2, \"prerun\": 60, \"array\": \"0-1\"}", 201, "\"ids\":[8,9]");
	expect("k4", "{\"command\": [\"p\"], \"gpus\": 2, \"prerun\": 60, \"array\": \"0-1\"}", 201, "\"ids\":[8,9]");
	served_stop(&served);
	served_start(&served);
	expect("k2", "{\"command\": [\"a\"], \"array\": \"0-2\"}", 201, "\"ids\":[2,3,4]");
	served_kill(&served);
	served_start(&served);
	expect("k1", ONE, 201, "\"ids\":[1]");
	expect("k3", "[" ONE "," TWO "]", 201, "\"ids\":[5,6]");
	assert_int_equal(count_jobs(), 9);
	/* Without a key, or with a new one, the same is another job. */
	assert_int_equal(submit(&served, ONE), 10);
	expect("k5", ONE, 201, "\"ids\":[11]");
}

/* Keys are part of what a snapshot keeps: they are known after a start that
 * read no record of them. */
static void test_after_snapshot(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.snapshot_records = 10;
	served.options.events_kept = 5;
	served_start(&served);
	expect("k1", "[" ONE "," TWO "]", 201, "\"ids\":[1,2]");
	for (int i = 0; i < 40; i++)
		submit(&served, ONE);
	for (int i = 0; i < 500 && figure(&served, "sharewell_snapshots_total") < 1; i++)
		usleep(10000);
	assert_true(figure(&served, "sharewell_snapshots_total") >= 1);
	served_kill(&served);
	served_start(&served);
	assert_true(served.replayed < 40);
	expect("k1", "[" ONE "," TWO "]", 201, "\"ids\":[1,2]");
	expect("k1", ONE, 409, "another request");
	assert_int_equal(count_jobs(), 42);
}

/* The same key with another body is refused, and makes nothing; it belongs to its user alone. */
static void test_other(void **state)
{
	(void)state;
	expect("k", ONE, 201, "\"ids\":[1]");
	expect("k", TWO, 409, "another request");
	assert_int_equal(count_jobs(), 1);
	int fd = dial_tcp(&served);
	say_submit(fd, SERVED_STRANGER, "k", TWO);
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 201);
	assert_non_null(strstr(reply.body, "\"ids\":[2]"));
	reply_free(&reply);
	close(fd);
	/* A request that was refused leaves its key free. */
	expect("bad", "{\"command\": []}", 400, "error");
	expect("bad", ONE, 201, "\"ids\":[3]");
}

/* Repetitions that overtake the answer, many at once and on connections of
 * their own, are one job. */
static void test_at_once(void **state)
{
	(void)state;
	enum { CLIENTS = 40 };
	int fds[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = dial(&served);
	for (int i = 0; i < CLIENTS; i++)
		say_submit(fds[i], NULL, i % 2 == 0 ? "even" : "odd", i % 2 == 0 ? ONE : TWO);
	char *seen[2] = {NULL, NULL};
	for (int i = 0; i < CLIENTS; i++) {
		struct reply reply = hear(fds[i]);
		assert_int_equal(reply.status, 201);
		if (seen[i % 2] == NULL)
			seen[i % 2] = strdup(reply.body);
		assert_string_equal(reply.body, seen[i % 2]);
		reply_free(&reply);
		close(fds[i]);
	}
	assert_string_not_equal(seen[0], seen[1]);
	free(seen[0]);
	free(seen[1]);
	assert_int_equal(count_jobs(), 2);
}

/* A key that cannot be kept whole is refused: half of it would be no promise. */
static void test_bad_keys(void **state)
{
	(void)state;
	char key[200];
	memset(key, 'x', sizeof key);
	key[129] = '\0';
	expect(key, ONE, 400, "1 to 128");
	key[128] = '\0';
	expect(key, ONE, 201, "\"ids\":[1]");
	expect("", ONE, 400, "1 to 128");
	expect("two words", ONE, 400, "visible");
	expect("k\r\nIdempotency-Key: k", ONE, 400, "two keys");
	expect("\"job\":7,\\", ONE, 201, "\"ids\":[2]");
	expect("\"job\":7,\\", ONE, 201, "\"ids\":[2]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_again), TEST(test_after_snapshot), TEST(test_other), TEST(test_at_once),
					   TEST(test_bad_keys)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
