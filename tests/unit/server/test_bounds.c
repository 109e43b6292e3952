/* Bounds: whatever one caller takes, the others, the owner and the agents find room. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/request.h"
#include "api/routes.h"
#include "unit/server/served.h"

#define ALICE "a0112233445566778899aabbccddeeff00112233"
#define BOB "b0112233445566778899aabbccddeeff00112233"
#define MANY 64

static struct served served;
static int fds[2 * MANY];
static size_t fd_count;

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	FILE *file = fopen(served.tokens, "a");
	assert_non_null(file);
	fputs("user " ALICE " 4242:4242\nuser " BOB " 4343:4343\n", file);
	assert_int_equal(fclose(file), 0);
	fd_count = 0;
	return 0;
}

static void close_kept(void)
{
	while (fd_count > 0)
		close(fds[--fd_count]);
}

static int tear_down(void **state)
{
	(void)state;
	close_kept();
	served_remove(&served);
	return 0;
}

/* A connection over TCP that stays open until the end. */
static int keep_tcp(void)
{
	assert_true(fd_count < sizeof fds / sizeof fds[0]);
	return fds[fd_count++] = dial_tcp(&served);
}

/* The status of a request on a connection of its own; an error must say what, and 429 and 503
 * when to come back. */
static int status_of(const char *method, const char *target, const char *token, const char *body)
{
	int fd = dial_tcp(&served);
	struct reply reply = ask(fd, method, target, token, body);
	int status = reply.status;
	if (status == 429 || status == 503) {
		json_t *root = json_loads(reply.body, 0, NULL);
		const json_t *error = json_object_get(root, "error");
		assert_true(json_string_length(json_object_get(error, "fact")) > 0);
		assert_true(json_string_length(json_object_get(error, "detail")) > 0);
		assert_true(json_string_length(json_object_get(error, "hint")) > 0);
		assert_non_null(strstr(reply.head, "Retry-After: "));
		json_decref(root);
	}
	reply_free(&reply);
	close(fd);
	return status;
}

/* Begins a request in this name and does not end its head. */
static int begin_head(const char *token)
{
	int fd = keep_tcp();
	/* One whole request first: from then on the connection is this user's. */
	struct reply reply = ask(fd, "GET", "/v1/cluster", token, NULL);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	say_text(fd, "GET /v1/cluster HTTP/1.1\r\nX: ");
	return fd;
}

static int announce(const char *token, size_t size)
{
	char head[300];
	int fd = keep_tcp();
	snprintf(head, sizeof head,
		 "POST /v1/jobs HTTP/1.1\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: %zu\r\n\r\n", token, size);
	say_text(fd, head);
	struct reply reply = hear(fd);
	int status = reply.status;
	reply_free(&reply);
	return status;
}

static double refused(const char *bound, const char *of)
{
	char name[120];
	snprintf(name, sizeof name, "sharewell_bound_refused_total{bound=\"%s\",of=\"%s\"}", bound, of);
	return figure(&served, name);
}

static int sync_status(int fd, const char *token, int number)
{
	char body[500];
	snprintf(body, sizeof body,
		 "{\"node\": \"n1\", \"instance\": \"a\", \"number\": %d, \"have\": 0, \"inventory\": {\"gpus\": [{\"uuid\": \"G\","
		 " \"name\": \"c\", \"memory_bytes\": 17179869184, \"link_group\": 0}], \"cpus\": 8, \"memory_bytes\": 34359738368}}",
		 number);
	struct reply reply = ask(fd, "POST", "/v1/agents/sync", token, body);
	int status = reply.status;
	reply_free(&reply);
	return status;
}

/* Connections without a token, one byte each, keep no other out: neither the owner on the socket,
 * nor an agent or a user with a token. */
static void test_strangers(void **state)
{
	(void)state;
	served.options.strangers_max = 8;
	served.options.connections_max = 16;
	served_start(&served);
	char *token = served_token(&served, SW_ROLE_AGENT);
	for (int i = 0; i < MANY; i++)
		say_text(keep_tcp(), "G");
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
	int agent = dial_tcp(&served);
	assert_int_equal(sync_status(agent, token, 1), 200);
	assert_int_equal(status_of("GET", "/v1/cluster", ALICE, NULL), 200);
	for (int i = 0; i < MANY; i++)
		say_text(keep_tcp(), "G");
	/* An agent that is known keeps its connection. */
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
	submit(&served, "{\"command\": [\"x\"]}");
	assert_int_equal(sync_status(agent, token, 2), 200);
	assert_true(figure(&served, "sharewell_http_callers_connections{caller=\"stranger\"}") <= 8 + 32);
	close(agent);
	free(token);
}

/* A head that does not come whole in its time ends with 408, also of a client that sends a byte
 * now and then; and so does one of a stranger. */
static void test_slow_head(void **state)
{
	(void)state;
	served.options.head_ms = 400;
	served_start(&served);
	int local = dial(&served), stranger = dial_tcp(&served);
	say_text(local, "GET /healthz HTTP/1.1\r\nX: ");
	say_text(stranger, "G");
	struct reply reply = hear(local);
	assert_int_equal(reply.status, 408);
	assert_true(reply.closes);
	reply_free(&reply);
	assert_true(hears_end(local));
	reply = hear(stranger);
	assert_int_equal(reply.status, 408);
	reply_free(&reply);
	/* One that says nothing at all hears nothing. */
	int silent = dial(&served);
	assert_true(hears_end(silent));
	close(silent);
	close(local);
	close(stranger);
}

/* A user at the bound on connections hears 429; others have their own. */
static void test_connections(void **state)
{
	(void)state;
	served.options.bounds.connections = 4;
	served_start(&served);
	for (int i = 0; i < 4; i++)
		begin_head(ALICE);
	assert_int_equal(status_of("GET", "/v1/cluster", ALICE, NULL), 429);
	assert_int_equal(status_of("GET", "/v1/cluster", BOB, NULL), 200);
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
	assert_true(refused("connections", "user") == 1);
	close_kept();
	/* Idle ones make room. */
	for (int i = 0; i < 8; i++) {
		struct reply reply = ask(keep_tcp(), "GET", "/v1/cluster", ALICE, NULL);
		assert_int_equal(reply.status, 200);
		reply_free(&reply);
	}
}

/* A connection for which there is no room hears that, however many others were told so and stay. */
static void test_turned_away(void **state)
{
	(void)state;
	served.options.connections_max = 4;
	served_start(&served);
	for (int i = 0; i < 4; i++) {
		fds[fd_count++] = dial(&served);
		say_text(fds[fd_count - 1], "POST /v1/jobs HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n");
		struct reply reply = hear(fds[fd_count - 1]);
		assert_int_equal(reply.status, 100);
		reply_free(&reply);
	}
	for (int i = 0; i < 100; i++)
		fds[fd_count++] = dial(&served);
	for (int i = 0; i < 3; i++) {
		int fd = dial(&served);
		struct reply reply = ask(fd, "GET", "/v1/cluster", NULL, NULL);
		assert_int_equal(reply.status, 503);
		assert_non_null(strstr(reply.head, "Retry-After: 1"));
		reply_free(&reply);
		close(fd);
	}
	close_kept();
	json_decref(ask_json(&served, "GET", "/v1/cluster", NULL, 200));
}

/* Where the places of all users are taken, the user that has most of them loses one to a user
 * that has few. */
static void test_places_of_all(void **state)
{
	(void)state;
	served.options.connections_max = 8;
	served_start(&served);
	for (int i = 0; i < 8; i++)
		begin_head(ALICE);
	assert_int_equal(status_of("GET", "/v1/cluster", BOB, NULL), 200);
	assert_int_equal(status_of("GET", "/v1/cluster", BOB, NULL), 200);
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
}

/* Heads that have begun and do not end. */
static void test_heads(void **state)
{
	(void)state;
	served.options.bounds.heads = 2;
	served_start(&served);
	begin_head(ALICE);
	begin_head(ALICE);
	struct reply reply = hear(begin_head(ALICE));
	assert_int_equal(reply.status, 429);
	reply_free(&reply);
	begin_head(BOB);
	assert_true(refused("heads", "user") == 1);
	/* Whole heads are not bounded by this. */
	assert_int_equal(status_of("GET", "/v1/cluster", ALICE, NULL), 200);
}

/* Large bodies that are announced and do not come: those of one user keep no other user from
 * sending one. */
static void test_bodies(void **state)
{
	(void)state;
	served_start(&served);
	int taken = 0;
	for (int i = 0; i < 17; i++)
		taken += announce(ALICE, (size_t)16 << 20) == 100;
	assert_int_equal(taken, 4); /* of 64 MiB */
	assert_int_equal(announce(BOB, (size_t)16 << 20), 100);
	char *body = malloc(200001);
	memset(body, ' ', 200000);
	memcpy(body, "{\"command\": [\"x\"]}", 18);
	body[200000] = '\0';
	assert_int_equal(status_of("POST", "/v1/jobs", BOB, body), 201);
	assert_int_equal(status_of("POST", "/v1/jobs", ALICE, body), 429);
	json_decref(ask_json(&served, "POST", "/v1/jobs", body, 201));
	/* What has gone is not counted on. */
	close_kept();
	int status = 429;
	for (int i = 0; i < 100 && status == 429; i++)
		status = status_of("POST", "/v1/jobs", ALICE, body);
	assert_int_equal(status, 201);
	free(body);
}

static int watch(const char *token)
{
	char head[300];
	int fd = keep_tcp();
	snprintf(head, sizeof head, "GET /v1/events HTTP/1.1\r\nAuthorization: Bearer %s\r\n\r\n", token);
	say_text(fd, head);
	hear_head(fd, 200);
	return fd;
}

/* Streams of events of one user leave room for those of others. */
static void test_streams(void **state)
{
	(void)state;
	served.options.bounds.streams = 3;
	served_start(&served);
	int watching[3];
	for (int i = 0; i < 3; i++)
		watching[i] = watch(ALICE);
	assert_int_equal(status_of("GET", "/v1/events", ALICE, NULL), 429);
	int other = watch(BOB);
	char *own = served_token(&served, SW_ROLE_OPERATOR);
	int owner = watch(own);
	submit(&served, "{\"command\": [\"x\"]}");
	free(hear_until(other, "event: submit"));
	free(hear_until(owner, "event: submit"));
	free(hear_until(watching[2], "event: submit"));
	free(own);
	assert_true(figure(&served, "sharewell_http_streams") == 5);
}

/* A user that asks too often hears 429 for a while; others do not. */
static void test_requests(void **state)
{
	(void)state;
	served.options.bounds.requests = 1;
	served_start(&served);
	int fd = keep_tcp(), good = 0, late = 0;
	for (int i = 0; i < 50; i++)
		say_text(fd, "GET /v1/cluster HTTP/1.1\r\nAuthorization: Bearer " ALICE "\r\n\r\n");
	for (int i = 0; i < 50; i++) {
		struct reply reply = hear(fd);
		good += reply.status == 200;
		late += reply.status == 429;
		reply_free(&reply);
	}
	assert_true(good >= 3);
	assert_true(late > 0);
	assert_int_equal(good + late, 50);
	/* Coming anew does not help, and another user is not touched. */
	assert_int_equal(status_of("GET", "/v1/cluster", BOB, NULL), 200);
	for (int i = 0; i < 20; i++)
		json_decref(ask_json(&served, "GET", "/v1/cluster", NULL, 200));
	assert_true(refused("requests", "user") >= late);
}

/* An agent's token that syncs too often hears 429, also on new connections and for fewer but larger
 * syncs; another token's agent and the users do not notice. */
static void test_syncs(void **state)
{
	(void)state;
	served.options.bounds.syncs = 1;
	FILE *file = fopen(served.tokens, "a");
	assert_non_null(file);
	fputs("agent c0112233445566778899aabbccddeeff00112233\n", file);
	assert_int_equal(fclose(file), 0);
	served_start(&served);
	char *token = served_token(&served, SW_ROLE_AGENT);
	int status = 200, count = 0;
	for (; status == 200 && count < 200; count++) {
		int fd = dial_tcp(&served);
		status = sync_status(fd, token, count + 1);
		close(fd);
	}
	/* Four seconds' worth for eight nodes, and what time brought meanwhile. */
	assert_int_equal(status, 429);
	assert_true(count > 32);
	assert_true(refused("syncs", "user") > 0);
	assert_int_equal(status_of("POST", "/v1/agents/sync", token, "{}"), 429);
	assert_int_equal(status_of("POST", "/v1/agents/sync", "c0112233445566778899aabbccddeeff00112233", "{}"), 400);
	assert_int_equal(status_of("GET", "/v1/cluster", ALICE, NULL), 200);
	free(token);
}

static int announce_sync(const char *token, const char *size)
{
	char head[300];
	int fd = keep_tcp();
	snprintf(head, sizeof head, "POST /v1/agents/sync HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: %s\r\n\r\n", token, size);
	say_text(fd, head);
	struct reply reply = hear(fd);
	int status = reply.status;
	reply_free(&reply);
	return status;
}

/* A sync that is larger than any may be is refused and costs its token nothing,
 * whatever size was announced. */
static void test_sync_sizes(void **state)
{
	(void)state;
	static const char *const sizes[] = {"17825792", "1000000000000", "999999999999999999"};
	served.options.bounds.syncs = 1;
	served_start(&served);
	char *token = served_token(&served, SW_ROLE_AGENT);
	int fd = keep_tcp();
	assert_int_equal(sync_status(fd, token, 1), 200);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(announce_sync(token, sizes[i]), 413);
		assert_int_equal(sync_status(fd, token, 2 + i), 200);
	}
	assert_true(refused("syncs", "user") == 0);
	free(token);
}

/* Jobs of one user: the bound is of those that wait or run. What has ended counts no more. */
static void test_jobs(void **state)
{
	(void)state;
	served.options.bounds.jobs = 10;
	served_start(&served);
	assert_int_equal(status_of("POST", "/v1/jobs", ALICE, "{\"command\": [\"x\"], \"array\": \"1-10\"}"), 201);
	assert_int_equal(status_of("POST", "/v1/jobs", ALICE, "{\"command\": [\"x\"]}"), 429);
	assert_int_equal(status_of("POST", "/v1/jobs", BOB, "{\"command\": [\"x\"], \"array\": \"1-9\"}"), 201);
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"array\": \"1-30\"}", 201));
	assert_int_equal(status_of("POST", "/v1/jobs/3/cancel", ALICE, NULL), 200);
	int status = 429;
	for (int i = 0; i < 80 && status == 429; i++) {
		status = status_of("POST", "/v1/jobs", ALICE, "{\"command\": [\"x\"]}");
		usleep(100000);
	}
	assert_int_equal(status, 201);
	assert_int_equal(status_of("POST", "/v1/jobs", ALICE, "{\"command\": [\"x\"]}"), 429);
	/* A restart does not give more. */
	served_kill(&served);
	served_start(&served);
	status = 201;
	for (int i = 0; i < 3 && status == 201; i++)
		status = status_of("POST", "/v1/jobs", ALICE, "{\"command\": [\"x\"], \"array\": \"1-5\"}");
	assert_int_equal(status, 429);
}

/* Each request of the controller that starts next takes so long to read, at least. The linker puts
 * this function before the one that reads. */
static int64_t slow_ns;
/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
int __real_sw_request_read_some(struct sw_request *request, const char *body, size_t size, bool *ret_more, int *ret_status,
				struct sw_err *err);
int __wrap_sw_request_read_some(struct sw_request *request, const char *body, size_t size, bool *ret_more, int *ret_status,
				struct sw_err *err);
int __wrap_sw_request_read_some(struct sw_request *request, const char *body, size_t size, bool *ret_more, int *ret_status,
				struct sw_err *err)
{
	if (slow_ns > 0)
		nanosleep(&(struct timespec){.tv_nsec = slow_ns}, NULL);
	return __real_sw_request_read_some(request, body, size, ret_more, ret_status, err);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void begin(int fd, const char *target, const char *token)
{
	char text[300];
	snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nAuthorization: Bearer %s\r\n\r\n", target, token);
	say_text(fd, text);
}

static void start_slow(void)
{
	slow_ns = 11000000;
	served_start(&served);
	slow_ns = 0;
}

/* A connection that is known to be this user's. */
static int keep_named(const char *token)
{
	int fd = keep_tcp();
	struct reply reply = ask(fd, "GET", "/v1/cluster", token, NULL);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	return fd;
}

/* What is sent from here on is all there when the controller looks again. */
static void stand_still(void)
{
	int stopped = 0;
	assert_int_equal(kill(served.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(served.pid, &stopped, WUNTRACED), served.pid);
	assert_true(WIFSTOPPED(stopped));
}

static long figure_of(const struct reply *reply, const char *name)
{
	const char *found = strstr(reply->body, name);
	assert_non_null(found);
	return strtol(found + strlen(name), NULL, 10);
}

/* Costly requests on all connections of one user, which came first: a request of another user is
 * heard after a few of them. */
static void test_slices(void **state)
{
	(void)state;
	enum { CONNS = 40 };
	start_slow();
	int alices[CONNS], bob = keep_named(BOB);
	for (int i = 0; i < CONNS; i++)
		alices[i] = keep_named(ALICE);
	stand_still();
	for (int i = 0; i < CONNS; i++)
		begin(alices[i], "/v1/cluster", ALICE);
	begin(bob, "/metrics", BOB);
	assert_int_equal(kill(served.pid, SIGCONT), 0);
	struct reply reply = hear(bob);
	assert_int_equal(reply.status, 200);
	/* What Bob hears says how many were heard before. */
	long before = figure_of(&reply, "\nsharewell_http_requests_total{operation=\"getCluster\"} ") - (CONNS + 1);
	reply_free(&reply);
	for (int i = 0; i < CONNS; i++) {
		reply = hear(alices[i]);
		assert_int_equal(reply.status, 200);
		reply_free(&reply);
	}
	if (before < 0 || before > 8)
		fail_msg("the other user was heard after %ld requests", before);
}

static void begin_submit(int fd, const char *token, const char *body)
{
	char text[300];
	snprintf(text, sizeof text, "POST /v1/jobs HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n%s", token,
		 strlen(body), body);
	say_text(fd, text);
}

/* Lists of jobs that fail at their last job, on a few connections of one user: something is ready
 * in every round of the loop. What another user submits is stored after a few of them. */
static void test_failing_lists(void **state)
{
	(void)state;
	enum { CONNS = 3, EACH = 40 };
	start_slow();
	int alices[CONNS], bob = keep_named(BOB);
	for (int i = 0; i < CONNS; i++)
		alices[i] = keep_named(ALICE);
	stand_still();
	for (int i = 0; i < CONNS * EACH; i++)
		begin_submit(alices[i % CONNS], ALICE, "[{\"command\": [\"x\"]}, {\"command\": 5}]");
	begin_submit(bob, BOB, "{\"command\": [\"x\"]}");
	/* Looked at as soon as the submit is answered. */
	begin(bob, "/metrics", BOB);
	assert_int_equal(kill(served.pid, SIGCONT), 0);
	struct reply reply = hear(bob);
	assert_int_equal(reply.status, 201);
	reply_free(&reply);
	reply = hear(bob);
	assert_int_equal(reply.status, 200);
	long before = figure_of(&reply, "\nsharewell_http_refused_total ");
	reply_free(&reply);
	for (int i = 0; i < CONNS * EACH; i++) {
		reply = hear(alices[i % CONNS]);
		assert_int_equal(reply.status, 400);
		reply_free(&reply);
	}
	if (before < 0 || before > 8)
		fail_msg("the other user's job was stored after %ld lists", before);
}

/* The same lists, one after another: the snapshot that is due is written among them. */
static void test_snapshot_among_failing_lists(void **state)
{
	(void)state;
	enum { CONNS = 3, EACH = 20, MOST = 3000 };
	static const char list[] = "[{\"command\": [\"x\"]}, {\"command\": 5}]";
	served.options.snapshot_records = 1;
	start_slow();
	int alices[CONNS], bob = keep_named(BOB), lists = 0;
	for (int i = 0; i < CONNS; i++)
		alices[i] = keep_named(ALICE);
	stand_still();
	for (int i = 0; i < CONNS * EACH; i++)
		begin_submit(alices[i % CONNS], ALICE, list);
	begin_submit(bob, BOB, "{\"command\": [\"x\"]}");
	assert_int_equal(kill(served.pid, SIGCONT), 0);
	struct reply reply = hear(bob);
	assert_int_equal(reply.status, 201);
	reply_free(&reply);
	for (long snapshots = 0; snapshots == 0 && lists < MOST; lists++) {
		reply = hear(alices[lists % CONNS]);
		assert_int_equal(reply.status, 400);
		reply_free(&reply);
		begin_submit(alices[lists % CONNS], ALICE, list);
		if (lists % EACH != 0)
			continue;
		reply = ask(bob, "GET", "/metrics", BOB, NULL);
		snapshots = figure_of(&reply, "\nsharewell_snapshots_total ");
		reply_free(&reply);
	}
	if (lists == MOST)
		fail_msg("no snapshot is written among %d lists", lists);
}

/* Bytes of environments of one user. The members of an array hold one together. */
static void test_held(void **state)
{
	(void)state;
	served.options.bounds.held = 100000;
	served_start(&served);
	char *body = malloc(61000);
	int used = sprintf(body, "{\"command\": [\"x\"], \"array\": \"1-50\", \"env\": {\"A\": \"");
	memset(body + used, 'y', 60000 - (size_t)used);
	strcpy(body + 60000, "\"}}");
	assert_int_equal(status_of("POST", "/v1/jobs", ALICE, body), 201);
	assert_int_equal(status_of("POST", "/v1/jobs", ALICE, body), 429);
	assert_int_equal(status_of("POST", "/v1/jobs", BOB, body), 201);
	assert_int_equal(status_of("POST", "/v1/jobs", ALICE, "{\"command\": [\"x\"]}"), 201);
	free(body);
}

/* Out of files: connections wait, the loop does not spin, and all goes on once there are files
 * again. */
static void test_no_files(void **state)
{
	(void)state;
	served_start(&served);
	struct rlimit before;
	assert_int_equal(prlimit(served.pid, RLIMIT_NOFILE, NULL, &before), 0);
	struct rlimit none = {0, before.rlim_max};
	assert_int_equal(prlimit(served.pid, RLIMIT_NOFILE, &none, NULL), 0);
	for (int i = 0; i < 40; i++)
		fds[fd_count++] = dial(&served);
	usleep(500000);
	assert_int_equal(prlimit(served.pid, RLIMIT_NOFILE, &before, NULL), 0);
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
	double failed = figure(&served, "sharewell_accepts_failed_total");
	assert_true(failed >= 1);
	/* One try each 100 ms. */
	assert_true(failed < 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_strangers),	  TEST(test_slow_head),
		TEST(test_connections),	  TEST(test_turned_away),
		TEST(test_places_of_all), TEST(test_heads),
		TEST(test_bodies),	  TEST(test_streams),
		TEST(test_requests),	  TEST(test_syncs),
		TEST(test_sync_sizes),	  TEST(test_slices),
		TEST(test_failing_lists), TEST(test_snapshot_among_failing_lists),
		TEST(test_jobs),	  TEST(test_held),
		TEST(test_no_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
