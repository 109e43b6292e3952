/* Many jobs changed by one request, through the controller's own door. */
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

static json_t *change(const char *body, int status)
{
	return ask_json(&served, "POST", "/v1/jobs/change", body, status);
}

/* The answer about job `index`: "7 CA changed", "7 CA ended", "7 PD idle". */
static void expect(const json_t *answer, size_t index, const char *words)
{
	json_t *job = json_array_get(json_object_get(answer, "jobs"), index);
	char text[80];
	keys_are_described(job, "ChangedJob");
	bool changed = json_is_true(json_object_get(job, "changed")), ended = json_is_true(json_object_get(job, "ended"));
	assert_false(changed && ended);
	snprintf(text, sizeof text, "%lld %s %s", (long long)json_integer_value(json_object_get(job, "id")),
		 json_string_value(json_object_get(job, "state")),
		 changed ? "changed"
		 : ended ? "ended"
			 : "idle");
	assert_string_equal(text, words);
}

static void expect_error(json_t *error, const char *fact, const char *hint)
{
	const json_t *problem = json_object_get(error, "error");
	assert_string_equal(json_string_value(json_object_get(problem, "fact")), fact);
	if (hint != NULL)
		assert_string_equal(json_string_value(json_object_get(problem, "hint")), hint);
	json_decref(error);
}

static bool is(const char *word, long long id)
{
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld", id);
	json_t *job = ask_json(&served, "GET", target, NULL, 200);
	bool yes = json_is_true(json_object_get(job, word));
	json_decref(job);
	return yes;
}

static bool is_held(long long id)
{
	return is("held", id);
}

/* It has left the state. */
static bool is_past(long long id)
{
	return is("past", id);
}

/* All are changed with one commit, and the answer is in the order of the request, with each job
 * once; every job has its event. */
static void test_all(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		submit(&served, "{\"command\": [\"x\"]}");
	int watcher = dial(&served);
	say_text(watcher, "GET /v1/events HTTP/1.1\r\n\r\n");
	hear_head(watcher, 200);
	free(hear_until(watcher, "event: ready"));
	double commits = figure(&served, "sharewell_journal_commits_total"), records = figure(&served, "sharewell_journal_records_total");
	json_t *answer = change("{\"verb\": \"hold\", \"jobs\": [4, 2, 4, 3]}", 200);
	assert_true(figure(&served, "sharewell_journal_commits_total") == commits + 1);
	assert_true(figure(&served, "sharewell_journal_records_total") == records + 3);
	keys_are_described(answer, "Changed");
	assert_int_equal(json_array_size(json_object_get(answer, "jobs")), 3);
	expect(answer, 0, "4 PD changed");
	expect(answer, 1, "2 PD changed");
	expect(answer, 2, "3 PD changed");
	json_decref(answer);
	assert_true(!is_held(1) && is_held(2) && is_held(3) && is_held(4));
	for (int i = 0; i < 3; i++)
		free(hear_until(watcher, "event: hold"));
	close(watcher);
	answer = change("{\"verb\": \"resume\", \"jobs\": [1, 2]}", 200);
	expect(answer, 0, "1 PD idle");
	expect(answer, 1, "2 PD changed");
	json_decref(answer);
	answer = change("{\"verb\": \"cancel\", \"jobs\": [1, 2, 3, 4]}", 200);
	for (size_t i = 0; i < 4; i++) {
		char words[32];
		snprintf(words, sizeof words, "%zu CA changed", i + 1);
		expect(answer, i, words);
	}
	json_decref(answer);
}

/* Jobs that have left the state are told as what they were; without 'skip_ended' they are refused
 * as others that have ended. */
static void test_past(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.keep_jobs = 1;
	served_start(&served);
	for (int i = 0; i < 5; i++)
		submit(&served, "{\"command\": [\"x\"]}");
	json_decref(change("{\"verb\": \"cancel\", \"jobs\": [1, 2, 3, 4]}", 200));
	for (int i = 0; i < 300 && !(is_past(1) && is_past(3)); i++)
		usleep(20000);
	assert_true(is_past(1) && is_past(3) && !is_past(5));
	json_t *answer = change("{\"verb\": \"hold\", \"skip_ended\": true, \"jobs\": [3, 5, 1]}", 200);
	assert_int_equal(json_array_size(json_object_get(answer, "jobs")), 3);
	expect(answer, 0, "3 CA ended");
	expect(answer, 1, "5 PD changed");
	expect(answer, 2, "1 CA ended");
	json_decref(answer);
	expect_error(change("{\"verb\": \"release\", \"jobs\": [5, 1]}", 409), "cannot release job 1", "None of the 2 jobs was changed.");
	assert_true(is_held(5));
	int fd = dial_tcp(&served);
	struct reply reply =
		ask(fd, "POST", "/v1/jobs/change", SERVED_STRANGER, "{\"verb\": \"cancel\", \"skip_ended\": true, \"jobs\": [1]}");
	assert_int_equal(reply.status, 403);
	reply_free(&reply);
	close(fd);
}

/* One job that cannot be changed, and none is; the error is that of the job alone,
 * with word of the others. */
static void test_none(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		submit(&served, "{\"command\": [\"x\"]}");
	json_decref(change("{\"verb\": \"cancel\", \"jobs\": [2]}", 200));
	double records = figure(&served, "sharewell_journal_records_total");
	expect_error(change("{\"verb\": \"hold\", \"jobs\": [1, 3, 4]}", 404), "there is no job 4", "None of the 3 jobs was changed.");
	expect_error(change("{\"verb\": \"suspend\", \"jobs\": [1, 2, 3]}", 409), "cannot suspend job 2",
		     "None of the 3 jobs was changed.");
	expect_error(change("{\"verb\": \"suspend\", \"deep\": true, \"jobs\": [3, 1]}", 409), "cannot take job 3 off its GPUs whole",
		     NULL);
	expect_error(change("{\"verb\": \"cancel\", \"jobs\": [2]}", 409), "cannot cancel job 2", "");
	expect_error(change("{\"verb\": \"cancel\", \"jobs\": [1, 2, 3, 0]}", 400), "the body of the request cannot be used", NULL);
	int fd = dial_tcp(&served);
	struct reply reply =
		ask(fd, "POST", "/v1/jobs/change", SERVED_STRANGER, "{\"verb\": \"cancel\", \"jobs\": [1, 3], \"skip_ended\": true}");
	assert_int_equal(reply.status, 403);
	assert_non_null(strstr(reply.body, "job 1 belongs to another user"));
	reply_free(&reply);
	close(fd);
	assert_true(figure(&served, "sharewell_journal_records_total") == records);
	assert_true(!is_held(1) && !is_held(3));
	/* Where ended ones do not matter, they are left alone. */
	json_t *answer = change("{\"verb\": \"cancel\", \"skip_ended\": true, \"jobs\": [2, 3]}", 200);
	expect(answer, 0, "2 CA ended");
	expect(answer, 1, "3 CA changed");
	json_decref(answer);
	answer = change("{\"verb\": \"hold\", \"skip_ended\": true, \"jobs\": [2, 3]}", 200);
	expect(answer, 0, "2 CA ended");
	expect(answer, 1, "3 CA ended");
	json_decref(answer);
	assert_true(figure(&served, "sharewell_journal_records_total") == records + 1);
}

/* How many of the jobs are held, and that these are all or none. */
static void expect_all_or_none(size_t jobs, bool all)
{
	bool some = is_held(1);
	assert_true(some || !all);
	for (size_t id = 1; id <= jobs; id += 37)
		if (is_held((long long)id) != some)
			fail_msg("job %zu is%s held, job 1 is%s", id, some ? " not" : "", some ? "" : " not");
	assert_true(is_held((long long)jobs) == some);
}

/* A controller that is killed in the middle has changed all or none; what it answered it has done.
 * Snapshots that fall into the middle make no difference. */
static void test_killed(void **state)
{
	(void)state;
	enum { JOBS = 4000 };
	served_stop(&served);
	served.options.snapshot_records = 100;
	served_start(&served);
	json_decref(ask_json(&served, "POST", "/v1/jobs", "{\"command\": [\"x\"], \"array\": \"1-4000\"}", 201));
	char *body = malloc(JOBS * 8 + 100), *head = malloc(JOBS * 8 + 300);
	for (int round = 0; round < 12; round++) {
		char *end = body + sprintf(body, "{\"verb\": \"%s\", \"jobs\": [", round % 2 == 0 ? "hold" : "release");
		for (int id = 1; id <= JOBS; id++)
			end += sprintf(end, "%s%d", id > 1 ? "," : "", id);
		strcpy(end, "]}");
		if (round >= 10) {
			json_decref(change(body, 200));
		} else {
			sprintf(head, "POST /v1/jobs/change HTTP/1.1\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
			int fd = dial(&served);
			say_text(fd, head);
			usleep((useconds_t)round * 15000);
			close(fd);
		}
		served_kill(&served);
		served_start(&served);
		expect_all_or_none(JOBS, round == 10);
	}
	free(body);
	free(head);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_all), TEST(test_past), TEST(test_none), TEST(test_killed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
