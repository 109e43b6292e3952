/* The journal under the server: one commit for many clients, a full disk, a
 * crash, a second controller. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/tokens.h"
#include "unit/server/served.h"

#define CLIENTS 16
#define EACH 25

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

static void say_submits(int fd, int count)
{
	for (int i = 0; i < count; i++)
		say_text(fd, "POST /v1/jobs HTTP/1.1\r\nContent-Length: 17\r\n\r\n{\"command\":[\"a\"]}");
}

/* Requests that are there at the same time share a commit, and each still gets its own
 * answer with its own job. */
static void test_group_commit(void **state)
{
	(void)state;
	int fds[CLIENTS];
	bool seen[CLIENTS * EACH + 1] = {false};
	double before = figure(&served, "sharewell_journal_commits_total");
	for (int c = 0; c < CLIENTS; c++)
		fds[c] = dial(&served);
	for (int round = 0; round < EACH; round++) {
		/* Stopped, so that all of them are there when it wakes. */
		kill(served.pid, SIGSTOP);
		for (int c = 0; c < CLIENTS; c++)
			say_submits(fds[c], 1);
		kill(served.pid, SIGCONT);
		for (int c = 0; c < CLIENTS; c++) {
			struct reply reply = hear(fds[c]);
			assert_int_equal(reply.status, 201);
			long long id = 0;
			assert_int_equal(sscanf(reply.body, "{\"id\":%lld,", &id), 1);
			assert_in_range(id, 1, CLIENTS * EACH);
			assert_false(seen[id]);
			seen[id] = true;
			reply_free(&reply);
		}
	}
	double commits = figure(&served, "sharewell_journal_commits_total") - before;
	assert_int_equal((int)figure(&served, "sharewell_journal_records_total"), CLIENTS * EACH);
	/* Nearly one for each round; a turn is not held open for long, so on a slow machine a
	 * round may take some more. */
	if (commits < EACH || commits > EACH * 6)
		fail_msg("%g commits for %d rounds of %d submits", commits, EACH, CLIENTS);
	for (int c = 0; c < CLIENTS; c++)
		close(fds[c]);
}

/* From outside, and while it runs: no file may grow beyond this, which fails as a full disk
 * does. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit = {bytes, RLIM_INFINITY};
	assert_int_equal(prlimit(served.pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

/* A disk that is full: clients hear 507, nothing that was acknowledged is lost, agents are
 * answered, and it recovers by itself. */
static void test_full_disk(void **state)
{
	(void)state;
	int agent = dial(&served);
	struct reply reply =
		ask(agent, "POST", "/v1/agents/sync", NULL,
		    "{\"node\": \"n1\", \"instance\": \"a\", \"number\": 1, \"have\": 0, \"inventory\": {\"gpus\": [{\"uuid\": \"G\","
		    " \"name\": \"c\", \"memory_bytes\": 17179869184, \"link_group\": 0}], \"cpus\": 8, \"memory_bytes\": 34359738368}}");
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	long long before = submit(&served, "{\"command\": [\"runs\"]}");
	long long ended = submit(&served, "{\"command\": [\"ends\"]}");
	json_decref(ask_json(&served, "POST", "/v1/jobs/2/cancel", NULL, 200));
	limit_files(1);
	json_t *error = ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"]}", 507);
	assert_non_null(strstr(json_string_value(json_object_get(json_object_get(error, "error"), "fact")), "journal"));
	json_decref(error);
	json_decref(ask_json(&served, "POST", "/v1/jobs/1/cancel", NULL, 507));
	json_decref(ask_json(&served, "POST", "/v1/jobs/change", "{\"verb\": \"cancel\", \"jobs\": [1]}", 507));
	/* What needs no place is no sign that there is some. */
	json_decref(ask_json(&served, "POST", "/v1/jobs/change", "{\"verb\": \"cancel\", \"jobs\": [2], \"skip_ended\": true}", 200));
	json_t *health = ask_json(&served, "GET", "/healthz", NULL, 503);
	assert_string_equal(json_string_value(json_object_get(health, "status")), "failing");
	json_decref(health);
	/* What runs goes on: its agent gets its lease, and an exit that could not be
	 * stored is not forgotten. */
	reply = ask(agent, "POST", "/v1/agents/sync", NULL,
		    "{\"node\": \"n1\", \"instance\": \"a\", \"number\": 2, \"have\": 0, \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": "
		    "\"exited\","
		    " \"code\": 5, \"reason\": \"\"}]}");
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "\"lease_ms\""));
	assert_null(strstr(reply.body, "forget"));
	reply_free(&reply);
	expect_state(&served, before, "CF");
	limit_files(RLIM_INFINITY);
	/* It finds out by itself. */
	for (int i = 0; i < 100 && figure(&served, "sharewell_journal_failing") > 0; i++)
		usleep(100000);
	json_decref(ask_json(&served, "GET", "/healthz", NULL, 200));
	reply = ask(agent, "POST", "/v1/agents/sync", NULL,
		    "{\"node\": \"n1\", \"instance\": \"a\", \"number\": 3, \"have\": 0, \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": "
		    "\"exited\","
		    " \"code\": 5, \"reason\": \"\"}]}");
	assert_non_null(strstr(reply.body, "forget"));
	reply_free(&reply);
	close(agent);
	assert_int_equal(submit(&served, "{\"command\": [\"x\"]}"), ended + 1);
	served_kill(&served);
	served_start(&served);
	expect_state(&served, before, "F");
	expect_state(&served, ended + 1, "CF"); /* the GPU is free again */
}

/* Takes all that is left of the disk. */
static void fill_disk(const char *path)
{
	static const char zeros[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	close(fd);
}

/* On a disk that is full, jobs can be cancelled and runs end, though nothing can be submitted; what
 * was said is there after a crash, and it recovers by itself. */
static void test_cancel_on_full_disk(void **state)
{
	(void)state;
	char path[200];
	served_stop(&served);
	/* A small disk of our own, which no other process sees. */
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", served.folder, "tmpfs", 0, "size=6m,mode=0700") < 0)
		skip();
	assert_int_equal(sw_tokens_make(served.tokens, NULL), 0);
	served.options.reserve_bytes = 1 << 20;
	served_start(&served);
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"array\": \"1-40\"}", 201));
	snprintf(path, sizeof path, "%s/filler", served.folder);
	int status = 201;
	for (int i = 0; i < 2000 && status == 201; i++) {
		fill_disk(path);
		int fd = dial(&served);
		struct reply reply = ask(fd, "POST", "/v1/jobs", NULL, "{\"command\": [\"x\"]}");
		status = reply.status;
		reply_free(&reply);
		close(fd);
	}
	assert_int_equal(status, 507);
	for (int i = 1; i <= 20; i++) {
		char target[64];
		snprintf(target, sizeof target, "/v1/jobs/%d/cancel", i);
		json_decref(ask_json(&served, "POST", target, NULL, 200));
		expect_state(&served, i, "CA");
		json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"]}", 507));
	}
	json_decref(ask_json(&served, "POST", "/v1/jobs/change", "{\"verb\": \"cancel\", \"jobs\": [21, 22, 23]}", 200));
	json_t *health = ask_json(&served, "GET", "/healthz", NULL, 503);
	assert_string_equal(json_string_value(json_object_get(health, "status")), "failing");
	json_decref(health);
	/* What was given back of the reserve is not taken for room. */
	usleep(1500000);
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"]}", 507));
	assert_int_equal(unlink(path), 0);
	for (int i = 0; i < 100 && figure(&served, "sharewell_journal_failing") > 0; i++)
		usleep(100000);
	submit(&served, "{\"command\": [\"x\"]}");
	served_kill(&served);
	served_start(&served);
	expect_state(&served, 20, "CA");
	expect_state(&served, 23, "CA");
	expect_state(&served, 24, "PD");
	served_stop(&served);
	assert_int_equal(umount(served.folder), 0);
}

static void *submit_until_killed(void *user)
{
	long long *acknowledged = user;
	int fd = dial(&served);
	for (;;) {
		say_submits(fd, 1);
		char bytes[1024];
		ssize_t got = recv(fd, bytes, sizeof bytes - 1, 0);
		if (got <= 0)
			break;
		bytes[got] = '\0';
		const char *id = strstr(bytes, "{\"id\":");
		if (id != NULL && strchr(id, '\n') != NULL)
			*acknowledged = atoll(id + 6);
	}
	close(fd);
	return NULL;
}

/* Whatever was acknowledged before the controller was killed is there afterwards. */
static void test_crash(void **state)
{
	(void)state;
	for (int round = 0; round < 5; round++) {
		pthread_t threads[4];
		long long acknowledged[4] = {0};
		for (int t = 0; t < 4; t++)
			assert_int_equal(pthread_create(&threads[t], NULL, submit_until_killed, &acknowledged[t]), 0);
		usleep(50000);
		served_kill(&served);
		for (int t = 0; t < 4; t++)
			pthread_join(threads[t], NULL);
		served_start(&served);
		for (int t = 0; t < 4; t++)
			if (acknowledged[t] > 0)
				expect_state(&served, acknowledged[t], "PD");
	}
}

/* A second controller on the same journal, or on the same socket, refuses to
 * start and disturbs nothing. */
static void test_second(void **state)
{
	(void)state;
	struct sw_err err;
	struct served second = served;
	char elsewhere[128];
	snprintf(elsewhere, sizeof elsewhere, "%s/other", served.folder);
	second.options.socket_path = elsewhere;
	served_refused(&second, &err);
	assert_non_null(strstr(err.fact, "journal"));
	second.options.socket_path = served.socket;
	second.options.journal_path = elsewhere;
	served_refused(&second, &err);
	assert_non_null(strstr(err.detail, "another controller"));
	assert_int_equal(submit(&served, "{\"command\": [\"x\"]}"), 1);
	/* A socket that a dead one left behind is no obstacle; a file that is none is. */
	served_kill(&served);
	served_start(&served);
	served_stop(&served);
	FILE *file = fopen(served.socket, "w");
	fclose(file);
	served_refused(&served, &err);
	assert_non_null(strstr(err.detail, "not a socket"));
	unlink(served.socket);
	served_start(&served);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_group_commit), TEST(test_full_disk), TEST(test_cancel_on_full_disk), TEST(test_crash),
					   TEST(test_second)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
