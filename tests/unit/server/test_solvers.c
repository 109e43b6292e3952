/* Questions of a policy under the server: children answer them, may be killed, and are asked again
 * by a controller that starts anew. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/server/served.h"
#include "unit/solve/pairs.h"

static struct served served;
static int number; /* of the last sync */

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	served.options.plugin = &pairs;
	served.options.policy = "pairs";
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

/* The agent of a node with one GPU speaks; which of the first two jobs it is to run, as bits. */
static unsigned sync_node(void)
{
	char body[500];
	int fd = dial(&served);
	snprintf(body, sizeof body,
		 "{\"node\": \"n1\", \"instance\": \"a\", \"number\": %d, \"have\": 0, \"inventory\": {\"gpus\": [{\"uuid\": \"G-1\","
		 " \"name\": \"c\", \"memory_bytes\": 85899345920, \"link_group\": 0}], \"cpus\": 8, \"memory_bytes\": 34359738368},"
		 " \"jobs\": []}",
		 ++number);
	struct reply reply = ask(fd, "POST", "/v1/agents/sync", NULL, body);
	assert_int_equal(reply.status, 200);
	unsigned wanted = (strstr(reply.body, "\"job\":1,") != NULL ? 1u : 0) | (strstr(reply.body, "\"job\":2,") != NULL ? 2u : 0);
	reply_free(&reply);
	close(fd);
	return wanted;
}

/* Until the node is to run these. */
static void await_runs(unsigned jobs)
{
	for (int tries = 0; sync_node() != jobs; tries++) {
		assert_true(tries < 6000);
		usleep(10000);
	}
}

static void submit_two(void)
{
	for (int j = 0; j < 2; j++)
		submit(&served, "{\"command\": [\"x\"], \"gpu_memory\": \"10GiB\"}");
}

/* So long a question that a test can get at its child: a tenth of a second at least. */
static void ask_at_length(void)
{
	json_decref(ask_json(&served, "POST", "/v1/policy", "{\"policy\": \"pairs\", \"set\": {\"vertices\": \"490\"}}", 200));
}

/* The controller's child of this name; 0: there is none. */
static pid_t find_child(const char *name)
{
	char path[64], text[1000] = "", comm[32];
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)served.pid, (int)served.pid);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = '\0';
	for (char *at = text, *end; *at != '\0'; at = end) {
		long pid = strtol(at, &end, 10);
		if (end == at)
			break;
		snprintf(path, sizeof path, "/proc/%ld/comm", pid);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		bool is_it = fgets(comm, sizeof comm, file) != NULL && strncmp(comm, name, strlen(name)) == 0;
		fclose(file);
		if (is_it)
			return (pid_t)pid;
	}
	return 0;
}

static pid_t await_child(void)
{
	pid_t child = 0;
	for (int tries = 0; (child = find_child("sw-solver")) == 0; tries++) {
		assert_true(tries < 600000);
		usleep(100);
	}
	return child;
}

/* What the policy says of this job. */
static void expect_why(long long job, const char *words)
{
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld/why", job);
	json_t *why = ask_json(&served, "GET", target, NULL, 200);
	char *text = json_dumps(why, 0);
	if (strstr(text, words) == NULL)
		fail_msg("job %lld: %s does not say '%s'", job, text, words);
	free(text);
	json_decref(why);
}

/* Aim: a child answers, and the policy puts both jobs on the GPU as it says. */
static void test_answered(void **state)
{
	(void)state;
	submit_two();
	sync_node();
	await_runs(3);
}

/* Aim: a child that is killed is an answer too, the policy goes on without, and so does the
 * controller. */
static void test_killed(void **state)
{
	(void)state;
	ask_at_length();
	submit_two();
	sync_node();
	pid_t child = await_child();
	assert_int_equal(kill(child, SIGKILL), 0);
	await_runs(1);
	expect_why(2, "the last failed");
}

/* Aim: a controller that starts anew between question and answer asks again; one that starts after
 * the answer does not. */
static void test_restart(void **state)
{
	(void)state;
	ask_at_length();
	submit_two();
	sync_node();
	for (int graceful = 0; graceful < 2; graceful++) {
		pid_t child = await_child();
		assert_int_equal(kill(child, SIGSTOP), 0);
		if (graceful)
			served_stop(&served);
		else
			served_kill(&served);
		/* It ends with its controller. */
		for (int tries = 0; kill(child, 0) == 0 && tries < 6000; tries++)
			usleep(10000);
		assert_int_equal(kill(child, 0), -1);
		served_start(&served);
	}
	await_runs(3);
	served_kill(&served);
	served_start(&served);
	assert_int_equal(find_child("sw-solver"), 0);
	await_runs(3);
}

/* Aim: a change of policy ends the child of a question that is not open any more. */
static void test_other_policy(void **state)
{
	(void)state;
	ask_at_length();
	submit_two();
	sync_node();
	pid_t child = await_child();
	assert_int_equal(kill(child, SIGSTOP), 0);
	json_decref(ask_json(&served, "POST", "/v1/policy", "{\"policy\": \"fifo\"}", 200));
	for (int tries = 0; find_child("sw-solver") == child; tries++) {
		assert_true(tries < 6000);
		usleep(10000);
	}
	await_runs(1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_answered), CASE(test_killed), CASE(test_restart), CASE(test_other_policy)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
