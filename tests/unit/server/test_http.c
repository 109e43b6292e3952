/* HTTP as it should not be: nothing that a client sends makes the controller fall, hang or
 * give more than it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
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

/* These bytes get this status, and then the end of the connection. */
static void refused(const char *bytes, int status)
{
	int fd = dial(&served);
	say_text(fd, bytes);
	struct reply reply = hear(fd);
	if (reply.status != status)
		fail_msg("'%.60s' gave %d, expected %d", bytes, reply.status, status);
	json_t *error = json_loads(reply.body, 0, NULL);
	assert_true(json_string_length(json_object_get(json_object_get(error, "error"), "fact")) > 0);
	json_decref(error);
	assert_true(reply.closes);
	assert_true(hears_end(fd));
	reply_free(&reply);
	close(fd);
}

/* What is not HTTP, or could be read in two ways, is refused with a word and a closed
 * connection. */
static void test_malformed(void **state)
{
	(void)state;
	refused("\r\n\r\n", 400);
	refused("\x16\x03\x01\x02\x00", 400);
	refused("GET\r\n\r\n", 400);
	refused("GET /healthz\r\n\r\n", 400);
	refused("GET healthz HTTP/1.1\r\n\r\n", 400);
	refused("GET /healthz HTTP/2.0\r\n\r\n", 505);
	refused("GET /healthz HTTP/1.1\nHost: x\r\n\r\n", 400);
	refused("GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n", 400);
	refused("GET /healthz HTTP/1.1\r\nA: 1\r\n b: folded\r\n\r\n", 400);
	refused("GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400);
	refused("POST /v1/jobs HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400);
	refused("POST /v1/jobs HTTP/1.1\r\nContent-Length: +5\r\n\r\n", 400);
	refused("POST /v1/jobs HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n", 400);
	refused("POST /v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 501);
	refused("POST /v1/jobs HTTP/1.1\r\nExpect: magic\r\n\r\n", 417);
	refused("GET /v1/jobs/1\x01 HTTP/1.1\r\n\r\n", 400);
}

/* Heads and bodies beyond their bounds are refused before they have come. */
static void test_oversized(void **state)
{
	(void)state;
	refused("POST /v1/jobs HTTP/1.1\r\nContent-Length: 16777217\r\n\r\n", 413);
	refused("POST /v1/jobs HTTP/1.1\r\nContent-Length: 9999999999999999999999\r\n\r\n", 413);
	refused("POST /v1/quota HTTP/1.1\r\nContent-Length: 5000\r\n\r\n", 413);
	refused("GET /v1/jobs HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 413);
	char *head = malloc(40000);
	strcpy(head, "GET /healthz HTTP/1.1\r\nX: ");
	char *value = head + strlen(head);
	memset(value, 'y', 20000);
	strcpy(value + 20000, "\r\n\r\n");
	refused(head, 431);
	strcpy(head, "GET /");
	memset(head + 5, 'y', 5000);
	strcpy(head + 5005, " HTTP/1.1\r\n\r\n");
	refused(head, 414);
	strcpy(head, "GET /healthz HTTP/1.1\r\n");
	for (int i = 0; i < 70; i++)
		strcat(head, "a: b\r\n");
	strcat(head, "\r\n");
	refused(head, 431);
	free(head);
	/* One job has its own bound. */
	char *body = malloc(300 * 1024);
	memset(body, 'x', 300 * 1024);
	memcpy(body, "{\"command\": [\"", 14);
	strcpy(body + 300 * 1024 - 4, "\"]}");
	int fd = dial(&served);
	struct reply reply = ask(fd, "POST", "/v1/jobs", NULL, body);
	assert_int_equal(reply.status, 413);
	reply_free(&reply);
	close(fd);
	free(body);
}

/* A body that is too large is answered even while it is still being sent. */
static void test_answer_before_the_end(void **state)
{
	(void)state;
	for (int tcp = 0; tcp < 2; tcp++) {
		int fd = tcp ? dial_tcp(&served) : dial(&served);
		char *token = served_token(&served, 1);
		char head[300];
		snprintf(head, sizeof head, "POST /v1/jobs HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: 30000000\r\n\r\n",
			 token);
		say_text(fd, head);
		char *bytes = calloc(1, 1 << 20);
		for (int i = 0; i < 4; i++)
			say(fd, bytes, 1 << 20);
		struct reply reply = hear(fd);
		assert_int_equal(reply.status, 413);
		reply_free(&reply);
		free(bytes);
		free(token);
		close(fd);
	}
}

/* One connection serves many requests, one after the other or all at once, in their order. */
static void test_pipelining(void **state)
{
	(void)state;
	int fd = dial(&served);
	say_text(fd, "POST /v1/jobs HTTP/1.1\r\nContent-Length: 17\r\n\r\n{\"command\":[\"a\"]}"
		     "GET /v1/jobs/1 HTTP/1.1\r\n\r\nGET /nowhere HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n");
	static const int expected[] = {201, 200, 404, 200};
	for (size_t i = 0; i < 4; i++) {
		struct reply reply = hear(fd);
		assert_int_equal(reply.status, expected[i]);
		assert_false(reply.closes);
		reply_free(&reply);
	}
	close(fd);
	fd = dial(&served);
	for (int i = 0; i < 200; i++)
		say_text(fd, "GET /healthz HTTP/1.1\r\n\r\n");
	say_text(fd, "GET /healthz HTTP/1.0\r\n\r\n");
	for (int i = 0; i < 201; i++) {
		struct reply reply = hear(fd);
		assert_int_equal(reply.status, 200);
		assert_int_equal(reply.closes, i == 200);
		reply_free(&reply);
	}
	assert_true(hears_end(fd));
	close(fd);
}

/* A head and a body that come byte by byte are understood like any other. */
static void test_byte_by_byte(void **state)
{
	(void)state;
	int fd = dial(&served);
	const char *text = "POST /v1/jobs HTTP/1.1\r\nContent-Length: 17\r\n\r\n{\"command\":[\"a\"]}";
	for (; *text != '\0'; text++) {
		say(fd, text, 1);
		usleep(200);
	}
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 201);
	reply_free(&reply);
	close(fd);
}

/* A client that asks first whether its body is welcome is told so; one that shuts its side after
 * asking gets its answer. */
static void test_manners(void **state)
{
	(void)state;
	int fd = dial(&served);
	say_text(fd, "POST /v1/jobs HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 17\r\n\r\n");
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 100);
	reply_free(&reply);
	say_text(fd, "{\"command\":[\"a\"]}");
	shutdown(fd, SHUT_WR);
	reply = hear(fd);
	assert_int_equal(reply.status, 201);
	reply_free(&reply);
	assert_true(hears_end(fd));
	close(fd);
	/* Half a request and no more: the end, without an answer and without harm. */
	fd = dial(&served);
	say_text(fd, "POST /v1/jobs HTTP/1.1\r\nContent-Length: 17\r\n\r\n{\"comm");
	shutdown(fd, SHUT_WR);
	assert_true(hears_end(fd));
	close(fd);
}

/* Any bytes at all leave a controller that answers the next client. */
static void test_noise(void **state)
{
	(void)state;
	static const char *const pieces[] = {
		"GET ",	 "POST ",  "/v1/jobs", "/healthz", " HTTP/1.1", "\r\n",	      "\r\n\r\n",	 "Content-Length: 9",	"{\"a\":1}",
		"\x00x", "?a=%zz", ":",	       " ",	   "\n",	"/v1/events", "/v1/agents/sync", "Expect: 100-continue"};
	struct sw_rng rng;
	sw_rng_seed(&rng, 9);
	for (int i = 0; i < 300; i++) {
		int fd = dial(&served);
		for (uint64_t n = sw_rng_below(&rng, 20); n > 0; n--)
			say_text(fd, pieces[sw_rng_below(&rng, sizeof pieces / sizeof pieces[0])]);
		close(fd);
	}
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
}

/* When all places are taken, a client that only sits there makes room for one that asks. */
static void test_many_connections(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.connections_max = 16;
	served_start(&served);
	int fds[64];
	for (int i = 0; i < 64; i++)
		fds[i] = dial(&served);
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
	/* Those that began a request keep their place; then there is none. */
	for (int i = 0; i < 64; i++)
		close(fds[i]);
	for (int i = 0; i < 16; i++) {
		fds[i] = dial(&served);
		say_text(fds[i], "GET /healthz HTTP/1.1\r\nX: ");
	}
	/* The controller must have read these first: one of them is finished and answered. */
	say_text(fds[15], "y\r\n\r\n");
	struct reply reply = hear(fds[15]);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	int extra = dial(&served);
	say_text(extra, "GET /healthz HTTP/1.1\r\n\r\n");
	reply = hear(extra);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	close(extra);
	for (int i = 0; i < 16; i++)
		close(fds[i]);
}

/* The list of nodes is written once for many: each that asks gets it whole, again and again on one
 * connection, and one that goes meanwhile is no trouble. */
static void test_shared_answers(void **state)
{
	(void)state;
	enum { CLIENTS = 20, EACH = 10 };
	int fds[CLIENTS];
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = dial(&served);
		for (int k = 0; k < EACH; k++)
			say_text(fds[i], "GET /v1/nodes HTTP/1.1\r\n\r\n");
		if (i % 5 == 4) {
			close(fds[i]);
			fds[i] = -1;
		}
	}
	for (int k = 0; k < EACH; k++)
		for (int i = 0; i < CLIENTS; i++) {
			if (fds[i] < 0)
				continue;
			struct reply reply = hear(fds[i]);
			assert_int_equal(reply.status, 200);
			assert_string_equal(reply.body, "{\"nodes\":[]}\n");
			reply_free(&reply);
		}
	for (int i = 0; i < CLIENTS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_malformed),  TEST(test_oversized),	    TEST(test_answer_before_the_end),
		TEST(test_pipelining), TEST(test_byte_by_byte),	    TEST(test_manners),
		TEST(test_noise),      TEST(test_many_connections), TEST(test_shared_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
