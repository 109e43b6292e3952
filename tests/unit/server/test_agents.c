/* Agents: long polls, wishes, exits, figures of GPUs, logs. The agent here is a
 * hand that writes syncs. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/routes.h"
#include "unit/server/served.h"

static struct served served;
static int number; /* of the last sync */

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	served_start(&served);
	number = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	return 0;
}

#define INVENTORY                                                                                                                         \
	"\"inventory\": {\"gpus\": [{\"uuid\": \"GPU-a\", \"name\": \"Card \\\"X\\\"\\u001b\\u0085<b>\", \"memory_bytes\": 17179869184, " \
	"\"link_group\": "                                                                                                                \
	"0},"                                                                                                                             \
	" {\"uuid\": \"GPU-b\", \"name\": \"Card\", \"memory_bytes\": 17179869184, \"link_group\": 0}],"                                  \
	" \"cpus\": 8, \"memory_bytes\": 34359738368}"

/* Sends a sync; `more` are further fields, with their comma in front. */
static void say_sync(int fd, long long have, const char *more)
{
	char body[4096], head[256];
	int size = snprintf(body, sizeof body, "{\"node\": \"n1\", \"instance\": \"abc\", \"number\": %d, \"have\": %lld%s}", ++number,
			    have, more);
	snprintf(head, sizeof head, "POST /v1/agents/sync HTTP/1.1\r\nContent-Length: %d\r\n\r\n", size);
	say_text(fd, head);
	say_text(fd, body);
}

static json_t *hear_answer(int fd)
{
	struct reply reply = hear(fd);
	if (reply.status != 200)
		fail_msg("the sync gave %d: %s", reply.status, reply.body);
	json_t *answer = json_loads(reply.body, 0, NULL);
	assert_non_null(answer);
	reply_free(&reply);
	return answer;
}

static long long version_of(json_t *answer)
{
	return json_integer_value(json_object_get(answer, "version"));
}

/* The word for this job in the answer ("run", "stop", ...), or "". */
static const char *wanted(json_t *answer, long long job)
{
	json_t *wants = json_object_get(answer, "wants");
	for (size_t i = 0; i < json_array_size(wants); i++)
		if (json_integer_value(json_object_get(json_array_get(wants, i), "job")) == job)
			return json_string_value(json_object_get(json_array_get(wants, i), "want"));
	return "";
}

/* A poll that has nothing to hear stays open, and is answered as soon as there is something. */
static void test_long_poll(void **state)
{
	(void)state;
	int fd = dial(&served);
	say_sync(fd, 0, ", " INVENTORY);
	json_t *answer = hear_answer(fd);
	long long version = version_of(answer);
	assert_true(json_integer_value(json_object_get(answer, "lease_ms")) > 0);
	assert_int_equal(json_array_size(json_object_get(answer, "wants")), 0);
	json_decref(answer);
	say_sync(fd, version, "");
	/* It is parked: the controller serves others meanwhile, and the job wakes it. */
	assert_int_equal((int)figure(&served, "sharewell_gpus"), 2);
	long long id = submit(&served, "{\"command\": [\"x\"], \"gpus\": 2}");
	answer = hear_answer(fd);
	assert_true(version_of(answer) > version);
	assert_string_equal(wanted(answer, id), "run");
	version = version_of(answer);
	json_decref(answer);
	/* A poll whose agent went away is forgotten, and leaves no trace. */
	say_sync(fd, version, ", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\"}]");
	shutdown(fd, SHUT_WR);
	assert_true(hears_end(fd));
	close(fd);
	expect_state(&served, id, "R");
}

/* A job runs, its exit is told until it is recorded, then the agent may forget it; the
 * end is known for ever. */
static void test_life_of_a_job(void **state)
{
	(void)state;
	long long id = submit(&served, "{\"command\": [\"x\"]}");
	int fd = dial(&served);
	say_sync(fd, 0, ", " INVENTORY);
	json_t *answer = hear_answer(fd);
	assert_string_equal(wanted(answer, id), "run");
	long long version = version_of(answer);
	json_decref(answer);
	say_sync(fd, version, ", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"exited\", \"code\": 3, \"reason\": \"\"}]");
	answer = hear_answer(fd);
	assert_string_equal(wanted(answer, id), "forget");
	json_decref(answer);
	expect_state(&served, id, "F");
	served_kill(&served);
	served_start(&served);
	json_t *job = ask_json(&served, "GET", "/v1/jobs/1", NULL, 200);
	assert_string_equal(json_string_value(json_object_get(job, "state")), "F");
	assert_int_equal(json_integer_value(json_object_get(job, "code")), 3);
	assert_string_equal(json_string_value(json_object_get(job, "node")), "n1");
	json_decref(job);
	close(fd);
}

/* Samples come out as figures under DCGM's names, and as facts of the nodes; the text is
 * what Prometheus reads. */
static void test_samples(void **state)
{
	(void)state;
	int fd = dial(&served);
	say_sync(fd, 0,
		 ", " INVENTORY ", \"samples\": [{\"at_ns\": 1700000000000000000, \"gpu\": \"GPU-a\", \"memory_bytes\": 4294967296,"
		 " \"busy_milli\": 875, \"power_mw\": 250500, \"temperature_c\": 61},"
		 " {\"at_ns\": 1700000000000000000, \"host_bytes\": 3000, \"limit_bytes\": 5000}]");
	json_decref(hear_answer(fd));
	struct reply reply = ask(fd, "GET", "/metrics", NULL, NULL);
	assert_non_null(strstr(reply.head, "text/plain; version=0.0.4"));
	assert_non_null(
		strstr(reply.body, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",modelName=\"Card \\\"X\\\"b\",Hostname=\"n1\"} 87\n"));
	assert_non_null(
		strstr(reply.body, "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-a\",modelName=\"Card \\\"X\\\"b\",Hostname=\"n1\"} 4096\n"));
	assert_non_null(strstr(reply.body, "} 250.500\n"));
	assert_non_null(strstr(reply.body, "sharewell_node_gpu_host_bytes{Hostname=\"n1\"} 3000\n"));
	assert_non_null(strstr(reply.body, "sharewell_node_gpu_host_limit_bytes{Hostname=\"n1\"} 5000\n"));
	assert_null(strstr(reply.body, "GPU-b"));
	/* Each line is a comment or a name, labels and a number; each name is introduced once,
	 * before its first value. */
	char *rest = reply.body, *line, *known = strdup("\n");
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		char name[128], type[16], value[64];
		if (sscanf(line, "# TYPE %127s %15s", name, type) == 2) {
			assert_true(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0 || strcmp(type, "histogram") == 0);
			char *longer = NULL;
			char item[140];
			snprintf(item, sizeof item, "\n%s\n", name);
			assert_null(strstr(known, item));
			/* A histogram is several figures under one name. */
			bool parts = strcmp(type, "histogram") == 0;
			assert_true((parts ? asprintf(&longer, "%s%s_bucket\n%s_sum\n%s_count\n", known, name, name, name)
					   : asprintf(&longer, "%s%s\n", known, name)) > 0);
			free(known);
			known = longer;
		}
		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%127[A-Za-z0-9_]", name), 1);
		char item[140];
		snprintf(item, sizeof item, "\n%s\n", name);
		assert_non_null(strstr(known, item));
		const char *number_at = strrchr(line, ' ');
		assert_non_null(number_at);
		char *end;
		snprintf(value, sizeof value, "%s", number_at + 1);
		strtod(value, &end);
		assert_true(end != value && *end == '\0');
	}
	free(known);
	reply_free(&reply);
	json_t *nodes = ask_json(&served, "GET", "/v1/nodes", NULL, 200);
	json_t *node = json_array_get(json_object_get(nodes, "nodes"), 0);
	json_t *device = json_array_get(json_object_get(node, "devices"), 0);
	assert_string_equal(json_string_value(json_object_get(device, "uuid")), "GPU-a");
	assert_int_equal(json_integer_value(json_object_get(device, "memory_used_bytes")), 4294967296);
	assert_int_equal(json_array_size(json_object_get(node, "devices")), 2);
	assert_int_equal(json_integer_value(json_object_get(node, "gpu_host_bytes")), 3000);
	assert_int_equal(json_integer_value(json_object_get(node, "gpu_host_limit_bytes")), 5000);
	json_decref(nodes);
	close(fd);
}

/* The wish for this job in the answer. */
static json_t *wish_for(json_t *answer, long long job)
{
	json_t *wants = json_object_get(answer, "wants");
	for (size_t i = 0; i < json_array_size(wants); i++)
		if (json_integer_value(json_object_get(json_array_get(wants, i), "job")) == job)
			return json_array_get(wants, i);
	return NULL;
}

/* A limit reaches the agent that waits at once, is an event, and is still there after a restart,
 * from the journal and from a snapshot. */
static void test_limit(void **state)
{
	(void)state;
	int fd = dial(&served), events = dial(&served);
	say_sync(fd, 0, ", " INVENTORY);
	json_decref(hear_answer(fd));
	long long id = submit(&served, "{\"command\": [\"x\"]}");
	say_text(events, "GET /v1/events HTTP/1.1\r\n\r\n");
	hear_head(events, 200);
	say_sync(fd, 0, "");
	json_t *answer = hear_answer(fd);
	assert_null(json_object_get(wish_for(answer, id), "gpu_limit_bytes"));
	long long version = version_of(answer);
	json_decref(answer);
	say_sync(fd, version, ", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\"}]");
	json_t *job = ask_json(&served, "POST", "/v1/jobs/1/limit", "{\"gpu_memory\": \"10G\", \"compute\": 30}", 200);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(job, "limit"), "gpu_memory")), INT64_C(10) << 30);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(job, "limit"), "compute")), 30);
	json_decref(job);
	free(hear_until(events, "\"kind\":\"limit\""));
	close(events);
	answer = hear_answer(fd);
	assert_true(version_of(answer) > version);
	assert_int_equal(json_integer_value(json_object_get(wish_for(answer, id), "gpu_limit_bytes")), INT64_C(10) << 30);
	assert_int_equal(json_integer_value(json_object_get(wish_for(answer, id), "gpu_share_milli")), 300);
	json_decref(answer);
	close(fd);
	for (int clean = 0; clean < 2; clean++) {
		clean ? served_stop(&served) : served_kill(&served);
		served_start(&served);
		job = ask_json(&served, "GET", "/v1/jobs/1", NULL, 200);
		assert_int_equal(json_integer_value(json_object_get(json_object_get(job, "limit"), "compute")), 30);
		json_decref(job);
	}
	json_decref(ask_json(&served, "POST", "/v1/jobs/1/limit", "{\"gpu_memory\": null, \"compute\": 100}", 200));
	job = ask_json(&served, "GET", "/v1/jobs/1", NULL, 200);
	assert_true(json_is_null(json_object_get(job, "limit")));
	json_decref(job);
	json_decref(ask_json(&served, "POST", "/v1/jobs/1/limit", "{\"gpu_memory\": \"17G\"}", 409));
	json_decref(ask_json(&served, "POST", "/v1/jobs/1/limit", "{\"gpu_memory\": \"1M\"}", 400));
	json_decref(ask_json(&served, "POST", "/v1/jobs/9/limit", "{\"compute\": 30}", 404));
}

/* The gpu figures of job 1. */
static json_t *use_of_job(json_t **ret_job)
{
	*ret_job = ask_json(&served, "GET", "/v1/jobs/1", NULL, 200);
	return json_object_get(*ret_job, "gpu");
}

#define RUNS ", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\"}]"

/* What agents say of a run on its GPUs is told of the job and as metrics, all its GPUs together and
 * each; it ends with the run. */
static void test_uses(void **state)
{
	(void)state;
	int fd = dial(&served);
	say_sync(fd, 0, ", " INVENTORY);
	json_decref(hear_answer(fd));
	submit(&served, "{\"command\": [\"x\"], \"gpus\": 2}");
	json_t *job, *use = use_of_job(&job);
	assert_true(json_is_null(use));
	json_decref(job);
	say_sync(fd, 0,
		 RUNS ", \"samples\": ["
		      "{\"at_ns\": 1700000000000000000, \"gpu\": \"GPU-a\", \"job\": 1, \"epoch\": 1, \"memory_bytes\": 1000,"
		      " \"limit_bytes\": 5000, \"host_bytes\": 300, \"iteration_ns\": 312000000, \"runtime\": true, \"share_milli\": 1000},"
		      "{\"at_ns\": 1700000000000000000, \"gpu\": \"GPU-b\", \"job\": 1, \"epoch\": 1, \"memory_bytes\": 20,"
		      " \"limit_bytes\": 5000, \"iteration_ns\": 311000000, \"outside\": 2,"
		      " \"runtime\": true, \"share_milli\": 125, \"yields\": true},"
		      "{\"at_ns\": 1700000000000000000, \"gpu\": \"GPU-b\", \"job\": 1, \"epoch\": 7, \"memory_bytes\": 99}]");
	json_decref(hear_answer(fd));
	use = use_of_job(&job);
	assert_int_equal(json_integer_value(json_object_get(use, "memory_bytes")), 1020);
	assert_int_equal(json_integer_value(json_object_get(use, "limit_bytes")), 10000);
	assert_int_equal(json_integer_value(json_object_get(use, "host_bytes")), 300);
	assert_int_equal(json_integer_value(json_object_get(use, "outside_processes")), 2);
	assert_true(json_real_value(json_object_get(use, "iteration_s")) == 0.312);
	assert_true(json_number_value(json_object_get(use, "compute")) == 12.5);
	assert_true(json_is_true(json_object_get(use, "yields")));
	assert_string_equal(json_string_value(json_object_get(use, "sampled_at")), "2023-11-14T22:13:20Z");
	json_decref(job);
	struct reply reply = ask(fd, "GET", "/metrics", NULL, NULL);
	static const char *const lines[] = {
		"\nsharewell_job_gpu_memory_bytes{job=\"1\",gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 1000\n",
		"\nsharewell_job_gpu_memory_bytes{job=\"1\",gpu=\"1\",UUID=\"GPU-b\",Hostname=\"n1\"} 20\n",
		"\nsharewell_job_gpu_host_bytes{job=\"1\",gpu=\"1\",UUID=\"GPU-b\",Hostname=\"n1\"} 0\n",
		"\nsharewell_job_gpu_outside_processes{job=\"1\",gpu=\"1\",UUID=\"GPU-b\",Hostname=\"n1\"} 2\n",
		"\nsharewell_job_gpu_limit_bytes{job=\"1\",gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 5000\n",
		"\nsharewell_job_iteration_seconds{job=\"1\",gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 0.312000000\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_non_null(strstr(reply.body, lines[i]));
	reply_free(&reply);
	/* A GPU without a limit leaves the whole without one; an older look changes nothing. */
	say_sync(fd, 0,
		 RUNS
		 ", \"samples\": [{\"at_ns\": 1700000000000000001, \"gpu\": \"GPU-b\", \"job\": 1, \"epoch\": 1, \"memory_bytes\": 30},"
		 "{\"at_ns\": 1600000000000000000, \"gpu\": \"GPU-a\", \"job\": 1, \"epoch\": 1, \"memory_bytes\": 7}]");
	json_decref(hear_answer(fd));
	use = use_of_job(&job);
	assert_int_equal(json_integer_value(json_object_get(use, "memory_bytes")), 1030);
	assert_true(json_is_null(json_object_get(use, "limit_bytes")));
	json_decref(job);
	say_sync(fd, 0, ", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"exited\", \"code\": 0, \"reason\": \"\"}]");
	json_decref(hear_answer(fd));
	use = use_of_job(&job);
	assert_true(json_is_null(use));
	json_decref(job);
	reply = ask(fd, "GET", "/metrics", NULL, NULL);
	assert_null(strstr(reply.body, "sharewell_job_"));
	reply_free(&reply);
	close(fd);
}

/* A user's token is no agent's, and a sync that is not one changes nothing. */
static void test_not_an_agent(void **state)
{
	(void)state;
	char *user = served_token(&served, SW_ROLE_USER);
	int fd = dial_tcp(&served);
	struct reply reply = ask(fd, "POST", "/v1/agents/sync", user, "{}");
	assert_int_equal(reply.status, 403);
	reply_free(&reply);
	close(fd);
	free(user);
	json_decref(ask_json(&served, "POST", "/v1/agents/sync", "{\"node\": 7}", 400));
	json_decref(
		ask_json(&served, "POST", "/v1/agents/sync", "{\"node\": \"n\", \"instance\": \"i\", \"number\": 1, \"have\": 0}", 404));
	assert_int_equal((int)figure(&served, "sharewell_journal_records_total"), 0);
}

/* A name that is no node has no figures, whatever is said under it: figures take memory and places,
 * and only nodes are bounded. */
static void test_figures_of_no_node(void **state)
{
	(void)state;
	static const char host[] = ", \"samples\": [{\"at_ns\": 1700000000000000000, \"host_bytes\": 3000, \"limit_bytes\": 5000}]";
	static const char shown[] = "sharewell_node_gpu_host_bytes{Hostname=\"n1\"} 3000\n";
	int fd = dial(&served);
	say_sync(fd, 0, host);
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 404);
	reply_free(&reply);
	reply = ask(fd, "GET", "/metrics", NULL, NULL);
	assert_null(strstr(reply.body, shown));
	reply_free(&reply);
	/* The same with GPUs makes it one. */
	char more[1024];
	snprintf(more, sizeof more, ", %s%s", INVENTORY, host);
	say_sync(fd, 0, more);
	json_decref(hear_answer(fd));
	reply = ask(fd, "GET", "/metrics", NULL, NULL);
	assert_non_null(strstr(reply.body, shown));
	reply_free(&reply);
	close(fd);
}

/* ---- logs */

static FILE *open_log(long long job, int epoch)
{
	char path[200];
	mkdir(served.runs, 0700);
	snprintf(path, sizeof path, "%s/%lld.%d", served.runs, job, epoch);
	mkdir(path, 0700);
	strcat(path, "/out.log");
	return fopen(path, "a");
}

static void check_log(const char *query, int status, const char *expected)
{
	char target[128];
	snprintf(target, sizeof target, "/v1/jobs/1/logs%s", query);
	int fd = dial(&served);
	struct reply reply = ask(fd, "GET", target, NULL, NULL);
	if (reply.status != status || (status == 200 && strcmp(reply.body, expected) != 0))
		fail_msg("%s gave %d: %s", target, reply.status, reply.body);
	reply_free(&reply);
	close(fd);
}

/* A range of the output can be read; where there is none it is said why. */
static void test_logs(void **state)
{
	(void)state;
	submit(&served, "{\"command\": [\"x\"]}");
	check_log("", 404, "");
	int fd = dial(&served);
	say_sync(fd, 0, ", " INVENTORY);
	json_decref(hear_answer(fd));
	check_log("", 404, "");
	FILE *log = open_log(1, 1);
	fputs("hello world\n", log);
	fclose(log);
	check_log("", 200, "hello world\n");
	check_log("?offset=6", 200, "world\n");
	check_log("?offset=-6&limit=5", 200, "world");
	check_log("?offset=100", 200, "");
	check_log("?offset=-100", 200, "hello world\n");
	check_log("?run=1", 200, "hello world\n");
	check_log("?run=2", 404, "");
	check_log("?offset=x", 400, "");
	/* A link is not followed, wherever it leads. */
	char path[200];
	snprintf(path, sizeof path, "%s/1.1/out.log", served.runs);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(served.tokens, path), 0);
	check_log("", 404, "");
	/* What the agent has put away is still found. */
	mkdir(served.logs, 0700);
	snprintf(path, sizeof path, "%s/1.1.log", served.logs);
	log = fopen(path, "w");
	fputs("kept\n", log);
	fclose(log);
	check_log("", 200, "kept\n");
	assert_int_equal(submit(&served, "{\"command\": [\"x\"], \"stdout\": \"/tmp/elsewhere\"}"), 2);
	json_t *error = ask_json(&served, "GET", "/v1/jobs/2/logs", NULL, 409);
	assert_non_null(strstr(json_string_value(json_object_get(json_object_get(error, "error"), "detail")), "/tmp/elsewhere"));
	json_decref(error);
	close(fd);
}

/* A client that follows a job from before it starts hears all of it, over several
 * runs, until it has ended. */
static void test_follow(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.retry_backoff_ns = 1;
	served_start(&served);
	submit(&served, "{\"command\": [\"x\"], \"retries\": 1}");
	int follower = dial(&served);
	say_text(follower, "GET /v1/jobs/1/logs?follow=true HTTP/1.1\r\n\r\n");
	hear_head(follower, 200);
	int fd = dial(&served);
	say_sync(fd, 0, ", " INVENTORY);
	json_decref(hear_answer(fd));
	FILE *log = open_log(1, 1);
	fputs("first run\n", log);
	fflush(log);
	free(hear_until(follower, "first run\n"));
	fputs("fails\n", log);
	fclose(log);
	say_sync(fd, 0, ", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"exited\", \"code\": 1, \"reason\": \"\"}]");
	json_decref(hear_answer(fd));
	log = open_log(1, 2);
	fputs("second run\n", log);
	fclose(log);
	free(hear_until(follower, "fails\n"));
	/* The second run is begun when the controller's timer says so. */
	for (int i = 0; i < 200; i++) {
		say_sync(fd, 0, "");
		json_t *answer = hear_answer(fd);
		bool runs = strcmp(wanted(answer, 1), "run") == 0;
		json_decref(answer);
		if (runs)
			break;
		usleep(20000);
	}
	free(hear_until(follower, "second run\n"));
	say_sync(fd, 0, ", \"jobs\": [{\"job\": 1, \"epoch\": 2, \"state\": \"exited\", \"code\": 0, \"reason\": \"\"}]");
	json_decref(hear_answer(fd));
	/* The last chunk, and the connection is free for the next request. */
	char end[8] = "";
	for (size_t got = 0; got < 5;) {
		ssize_t n = recv(follower, end + got, 5 - got, 0);
		assert_true(n > 0);
		got += (size_t)n;
	}
	assert_string_equal(end, "0\r\n\r\n");
	struct reply reply = ask(follower, "GET", "/healthz", NULL, NULL);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	expect_state(&served, 1, "CD");
	close(follower);
	close(fd);
}

static void say_move(int fd, int gpu)
{
	char text[200];
	snprintf(text, sizeof text, "POST /v1/jobs/1/move HTTP/1.1\r\nContent-Length: 13\r\n\r\n{\"gpus\": [%d]}", gpu);
	say_text(fd, text);
}

/* Of two moves of one job that come together one is made, and the client that asked for the other
 * one hears why it is not. */
static void test_two_moves(void **state)
{
	(void)state;
	submit(&served, "{\"command\": [\"x\"]}");
	int fd = dial(&served), movers[] = {dial(&served), dial(&served)};
	say_sync(fd, 0,
		 ", \"inventory\": {\"gpus\": [{\"uuid\": \"GPU-a\", \"name\": \"Card\", \"memory_bytes\": 17179869184},"
		 " {\"uuid\": \"GPU-b\", \"name\": \"Card\", \"memory_bytes\": 17179869184},"
		 " {\"uuid\": \"GPU-c\", \"name\": \"Card\", \"memory_bytes\": 17179869184}], \"cpus\": 8, \"memory_bytes\": 34359738368}");
	json_decref(hear_answer(fd));
	say_sync(fd, 0, ", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\"}]");
	json_decref(hear_answer(fd));
	expect_state(&served, 1, "R");
	/* It finds both when it goes on. */
	kill(served.pid, SIGSTOP);
	say_move(movers[0], 1);
	say_move(movers[1], 2);
	kill(served.pid, SIGCONT);
	struct reply replies[] = {hear(movers[0]), hear(movers[1])};
	int made = replies[0].status == 200 ? 0 : 1;
	assert_int_equal(replies[made].status, 200);
	assert_non_null(strstr(replies[made].body, made == 0 ? "\"gpu_indexes\":[1]" : "\"gpu_indexes\":[2]"));
	assert_int_equal(replies[1 - made].status, 409);
	assert_non_null(strstr(replies[1 - made].body, "it is on its way to other GPUs already"));
	for (int m = 0; m < 2; m++) {
		reply_free(&replies[m]);
		close(movers[m]);
	}
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_long_poll),	 TEST(test_life_of_a_job),	TEST(test_samples), TEST(test_limit),  TEST(test_uses),
		TEST(test_not_an_agent), TEST(test_figures_of_no_node), TEST(test_logs),    TEST(test_follow), TEST(test_two_moves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
