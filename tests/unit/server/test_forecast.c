/* Forecasts under the server: one figure for all users, requests that are tried, and children that
 * fail. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <sharewell/policy.h>

#include "unit/server/served.h"

static struct served served;
static int number; /* of the last sync */

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	served_add_stranger(&served);
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

/* The agent of a node with one GPU; `jobs` is what it says of its runs. */
static void join_saying(const char *jobs)
{
	char body[700];
	int fd = dial(&served);
	snprintf(body, sizeof body,
		 "{\"node\": \"n1\", \"instance\": \"a\", \"number\": %d, \"have\": 0, \"inventory\": {\"gpus\": [{\"uuid\": \"G-1\","
		 " \"name\": \"c\", \"memory_bytes\": 17179869184, \"link_group\": 0}], \"cpus\": 8, \"memory_bytes\": 34359738368},"
		 " \"jobs\": [%s]}",
		 ++number, jobs);
	struct reply reply = ask(fd, "POST", "/v1/agents/sync", NULL, body);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	close(fd);
}

/* The estimate of a job, as this caller hears it; NULL: over the socket, as the owner. The caller
 * drops it. */
static json_t *estimate(const char *token, long long job)
{
	char target[64];
	snprintf(target, sizeof target, "/v1/forecast?job=%lld", job);
	int fd = token != NULL ? dial_tcp(&served) : dial(&served);
	struct reply reply = ask(fd, "GET", target, token, NULL);
	close(fd);
	if (reply.status != 200)
		fail_msg("%d: %s", reply.status, reply.body);
	json_t *answer = json_loads(reply.body, 0, NULL);
	json_t *found = json_array_get(json_object_get(answer, "jobs"), 0);
	assert_non_null(found);
	assert_int_equal(json_integer_value(json_object_get(found, "id")), job);
	json_incref(found);
	json_object_set(found, "failed", json_object_get(answer, "failed"));
	json_decref(answer);
	reply_free(&reply);
	return found;
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	return value != NULL ? value : "";
}

static long long count(const json_t *found, const char *basis)
{
	return json_integer_value(json_object_get(json_object_get(found, "basis"), basis));
}

/* Aim: two users hear the same moment for the same job, of which one may see nothing; why there is
 * none is for its owner. */
static void test_same_for_all(void **state)
{
	(void)state;
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	long long waits = submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"10m\"}");
	long long held = submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	json_t *own = estimate(NULL, waits), *other = estimate(SERVED_STRANGER, waits);
	assert_true(strlen(text(own, "estimated_start_at")) > 20);
	assert_string_equal(text(own, "estimated_start_at"), text(other, "estimated_start_at"));
	assert_int_equal(count(own, "limits"), 1);
	assert_true(json_equal(own, other));
	json_decref(own);
	json_decref(other);
	own = estimate(NULL, held);
	other = estimate(SERVED_STRANGER, held);
	assert_string_equal(text(own, "no_estimate"), "it is on hold");
	assert_string_equal(text(other, "no_estimate"), "it belongs to another user");
	json_decref(own);
	json_decref(other);
	own = estimate(NULL, 1);
	assert_string_equal(text(own, "no_estimate"), "it has started");
	json_decref(own);
	json_decref(ask_json(&served, "GET", "/v1/forecast?job=99", NULL, 404));
}

/* Aim: an answer is never older than its question, and while nothing happens the same table answers
 * all. */
static void test_never_older(void **state)
{
	(void)state;
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	long long waits = submit(&served, "{\"command\": [\"x\"]}");
	char change[64];
	for (int round = 0; round < 2; round++) {
		json_t *found = estimate(NULL, waits);
		assert_int_equal(json_is_string(json_object_get(found, "estimated_start_at")), round == 0);
		json_decref(found);
		snprintf(change, sizeof change, "/v1/jobs/%lld/hold", waits);
		json_decref(ask_json(&served, "POST", change, NULL, 200));
	}
	assert_true(figure(&served, "sharewell_forecasts_total") >= 2);
	assert_true(figure(&served, "sharewell_forecasts_failed_total") == 0);
}

/* Aim: pages of all that wait have each of them once. */
static void test_pages(void **state)
{
	(void)state;
	join_saying("");
	for (int i = 0; i < 26; i++)
		submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1m\"}");
	long long cursor = 0, seen = 0;
	do {
		char target[64];
		snprintf(target, sizeof target, "/v1/forecast?limit=10&cursor=%lld", cursor);
		json_t *page = ask_json(&served, "GET", target, NULL, 200), *found;
		size_t i;
		json_array_foreach(json_object_get(page, "jobs"), i, found)
			assert_int_equal(json_integer_value(json_object_get(found, "id")), 2 + seen++);
		cursor = json_integer_value(json_object_get(page, "next"));
		json_decref(page);
	} while (cursor > 0);
	assert_int_equal(seen, 25);
}

/* Aim: a request that is tried is answered as the next job would be; no job and no record comes of
 * it, and what a submit refuses is refused. */
static void test_trial(void **state)
{
	(void)state;
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	double records = figure(&served, "sharewell_journal_seq");
	const char *jobs = "[{\"command\": [\"x\"], \"time_limit\": \"5m\"}, {\"command\": [\"x\"], \"array\": \"0-3\", \"time_limit\": "
			   "\"1m\"}, {\"command\": [\"x\"], \"depends\": \"afternotok:1\"}]";
	json_t *answer = ask_json(&served, "POST", "/v1/forecast", jobs, 200);
	json_t *list = json_object_get(answer, "jobs");
	assert_int_equal(json_array_size(list), 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(json_is_null(json_object_get(json_array_get(list, i), "id")));
	assert_int_equal(count(json_array_get(list, 0), "limits"), 1);
	assert_int_equal(count(json_array_get(list, 1), "limits"), 2);
	assert_non_null(strstr(text(json_array_get(list, 2), "no_estimate"), "only if a job fails"));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(json_integer_value(json_object_get(json_array_get(list, i), "makes_jobs")), i == 1 ? 4 : 1);
	json_decref(answer);
	json_decref(ask_json(&served, "POST", "/v1/forecast", "{\"command\": [\"x\"], \"gpus\": 2}", 400));
	json_decref(ask_json(&served, "POST", "/v1/forecast", "{\"gpus\": 1}", 400));
	assert_true(figure(&served, "sharewell_journal_seq") == records);
	json_decref(ask_json(&served, "GET", "/v1/jobs/2", NULL, 404));
	assert_int_equal(submit(&served, "{\"command\": [\"x\"]}"), 2);
}

/* ---- a policy with moods */

/* What the policy does in children, where jobs end; in the controller no job ends. The memory is
 * shared with the controller and its children. */
enum mood { WELL = 0, FAILS, SPINS, WAITS, HOARDS };
static volatile struct shared {
	enum mood mood;
	unsigned begun, may_end; /* of children that wait: how many there were, and the first so many go on */
	long oom_score;		 /* of a child */
	unsigned notes;		 /* of failed forecasts */
	char note[200];
} * shared;

static void wait_for_leave(void)
{
	static unsigned own; /* of this process: a child is a copy of one that never was here */
	if (own == 0)
		own = ++shared->begun;
	while (own > shared->may_end)
		usleep(1000);
}

/* Takes 8 GiB of address space, which is not used. */
static void hoard(void)
{
	char text[32] = "";
	int file = open("/proc/self/oom_score_adj", O_RDONLY);
	if (file >= 0 && read(file, text, sizeof text - 1) > 0)
		shared->oom_score = strtol(text, NULL, 10);
	for (unsigned i = 0; i < 128; i++)
		if (mmap(NULL, (size_t)64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
			_exit(9);
}

static void hear_note(void *user, const char *line)
{
	(void)user;
	if (strstr(line, "forecast") == NULL)
		return;
	shared->notes++;
	for (size_t i = 0; i + 1 < sizeof shared->note && (i == 0 || line[i - 1] != '\0'); i++)
		shared->note[i] = line[i];
}

static void ended(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	(void)job;
	while (shared->mood == SPINS)
		__asm__ volatile("");
	if (shared->mood == FAILS)
		_exit(7);
	if (shared->mood == WAITS)
		wait_for_leave();
	if (shared->mood == HOARDS)
		hoard();
}

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->id.v;
}

static void admit(struct sw_view *view, const struct sw_job *job, struct sw_admission *admission)
{
	(void)view;
	if (job->job_class != SW_CLASS_OPPORTUNISTIC)
		return;
	admission->verdict = SW_REFUSE;
	snprintf(admission->reason, sizeof admission->reason, "not here");
}

static const struct sw_order order;
static const struct sw_policy moody = {.abi = SW_POLICY_ABI,
				       .name = "moody",
				       .about = "fails when a job ends",
				       .order = &order,
				       .key = key,
				       .admit = admit,
				       .ended = ended};

static void start_moody(enum mood first)
{
	served_stop(&served);
	served.options.plugin = &moody;
	served.options.policy = "moody";
	served.options.on_note = hear_note;
	shared->mood = first;
	served_start(&served);
}

/* Aim: a trial says that a submit would be taken though its job ends at once, and that one would be
 * refused by the scheduler. */
static void test_trial_that_ends(void **state)
{
	(void)state;
	start_moody(WELL);
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	json_decref(ask_json(&served, "POST", "/v1/jobs/1/cancel", NULL, 200));
	const char *jobs = "[{\"command\": [\"x\"], \"depends\": \"afterok:1\"}, {\"command\": [\"x\"], \"class\": \"opportunistic\"}]";
	json_t *answer = ask_json(&served, "POST", "/v1/forecast", jobs, 200), *list = json_object_get(answer, "jobs");
	assert_non_null(strstr(text(json_array_get(list, 0), "no_estimate"), "it would end at once"));
	assert_true(json_is_false(json_object_get(json_array_get(list, 0), "would_be_refused")));
	assert_string_equal(text(json_array_get(list, 1), "no_estimate"), "it would be refused");
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "would_be_refused")));
	json_decref(answer);
	expect_state(&served, submit(&served, "{\"command\": [\"x\"], \"depends\": \"afterok:1\"}"), "CA");
}

static bool is_past(long long job)
{
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld", job);
	json_t *answer = ask_json(&served, "GET", target, NULL, 200);
	bool past = json_is_true(json_object_get(answer, "past"));
	json_decref(answer);
	return past;
}

/* Of three jobs on one GPU, the second is of a kind whose only job that ended well is past. */
static void expect_alike(void)
{
	long long first = submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	submit(&served, "{\"command\": [\"x\"], \"name\": \"train\"}");
	json_t *found = estimate(NULL, submit(&served, "{\"command\": [\"x\"]}"));
	assert_int_equal(count(found, "limits"), 1);
	assert_int_equal(count(found, "alike"), 1);
	json_decref(found);
	for (long long job = first; job < first + 3; job++) {
		char target[64];
		snprintf(target, sizeof target, "/v1/jobs/%lld/cancel", job);
		json_decref(ask_json(&served, "POST", target, NULL, 200));
	}
}

/* Aim: the lengths of jobs that have left are known, also after a restart, from their rows. */
static void test_lengths_of_the_past(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.keep_jobs = 1;
	served_start(&served);
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"name\": \"train\"}");
	join_saying("{\"job\": 1, \"epoch\": 1, \"state\": \"running\"}");
	join_saying("{\"job\": 1, \"epoch\": 1, \"state\": \"exited\", \"code\": 0, \"reason\": \"\"}");
	expect_state(&served, 1, "CD");
	for (int i = 2; i < 6; i++) {
		char target[64];
		snprintf(target, sizeof target, "/v1/jobs/%lld/cancel", submit(&served, "{\"command\": [\"x\"], \"hold\": true}"));
		json_decref(ask_json(&served, "POST", target, NULL, 200));
	}
	for (int i = 0; i < 500 && !is_past(1); i++)
		usleep(20000);
	assert_true(is_past(1));
	expect_alike();
	served_stop(&served);
	served_start(&served);
	expect_alike();
}

/* Aim: a child that ends badly, or never, means that there is no estimate now; the controller goes
 * on. */
static void test_failing_child(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		start_moody(round == 1 ? SPINS : FAILS);
		join_saying("");
		submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
		long long waits = submit(&served, "{\"command\": [\"x\"]}");
		json_t *found = estimate(NULL, waits);
		/* Until the child is ended at its limit, callers hear that it is not
		 * ready. */
		for (int i = 0; i < 60 && strstr(text(found, "failed"), "not ready") != NULL; i++) {
			assert_string_equal(text(found, "no_estimate"), text(found, "failed"));
			json_decref(found);
			found = estimate(NULL, waits);
		}
		assert_non_null(strstr(text(found, "no_estimate"), "the forecast failed"));
		assert_non_null(strstr(text(found, "failed"), "the forecast failed"));
		json_decref(found);
		/* It is not tried again at once. */
		json_decref(estimate(NULL, waits));
		assert_true(figure(&served, "sharewell_forecasts_total") == 1);
		assert_true(figure(&served, "sharewell_forecasts_failed_total") == 1);
		if (round == 0)
			json_decref(ask_json(&served, "POST", "/v1/forecast", "{\"command\": [\"x\"]}", 200));
		expect_state(&served, waits, "PD");
		submit(&served, "{\"command\": [\"x\"]}");
	}
}

/* Aim: a caller that waited in vain for a new table is not told of the past: a job that came after
 * the last table is not ready, and one that is held since is on hold. */
static void test_last_table(void **state)
{
	(void)state;
	start_moody(WELL);
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	long long waits = submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	json_t *found = estimate(NULL, waits);
	assert_true(json_is_string(json_object_get(found, "estimated_start_at")));
	json_decref(found);
	shared->mood = SPINS;
	long long newer = submit(&served, "{\"command\": [\"x\"]}");
	json_decref(ask_json(&served, "POST", "/v1/jobs/2/hold", NULL, 200));
	found = estimate(NULL, newer);
	assert_null(strstr(text(found, "no_estimate"), "started"));
	assert_non_null(strstr(text(found, "no_estimate"), "again"));
	json_decref(found);
	found = estimate(NULL, waits);
	assert_string_equal(text(found, "no_estimate"), "it is on hold");
	json_decref(found);
	found = estimate(NULL, 1);
	assert_string_equal(text(found, "no_estimate"), "it has started");
	json_decref(found);
}

/* A trial, whose answer is heard later; `token` NULL: of the owner. */
static int begin_trial(const char *token)
{
	static const char job[] = "{\"command\": [\"x\"]}";
	char request[400];
	int fd = token != NULL ? dial_tcp(&served) : dial(&served);
	int used = snprintf(request, sizeof request, "POST /v1/forecast HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n");
	if (token != NULL)
		used += snprintf(request + used, sizeof request - (size_t)used, "Authorization: Bearer %s\r\n", token);
	snprintf(request + used, sizeof request - (size_t)used, "Content-Length: %zu\r\n\r\n%s", strlen(job), job);
	say_text(fd, request);
	return fd;
}

/* Ends the trial; whether it was said that the forecast failed. */
static bool has_trial_failed(int fd)
{
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 200);
	bool failed = strstr(reply.body, "the forecast failed") != NULL;
	reply_free(&reply);
	close(fd);
	return failed;
}

/* One job runs, and the number of one that waits. */
static long long fill(enum mood first)
{
	start_moody(first);
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	return submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
}

/* Aim: a trial whose child dies is told so, and holds back trials of this user; the table of all
 * and the trials of others do not suffer. */
static void test_failing_trial(void **state)
{
	(void)state;
	long long waits = fill(FAILS);
	assert_true(has_trial_failed(begin_trial(NULL)));
	shared->mood = WELL;
	json_t *found = estimate(SERVED_STRANGER, waits);
	assert_true(json_is_string(json_object_get(found, "estimated_start_at")));
	json_decref(found);
	assert_false(has_trial_failed(begin_trial(SERVED_STRANGER)));
	double runs = figure(&served, "sharewell_forecasts_total");
	assert_true(has_trial_failed(begin_trial(NULL)));
	assert_true(figure(&served, "sharewell_forecasts_total") == runs);
	assert_true(figure(&served, "sharewell_forecasts_failed_total") == 1);
}

static void expect_not_ready(int fd)
{
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "not ready yet"));
	reply_free(&reply);
	close(fd);
}

/* Aim: a trial that takes long, and one that waits behind it, are answered before their clients
 * give up; the child goes on, and the next trial is made. */
static void test_late_trials(void **state)
{
	(void)state;
	fill(WAITS);
	shared->begun = shared->may_end = 0;
	int first = begin_trial(NULL);
	while (shared->begun == 0)
		usleep(1000);
	int second = begin_trial(SERVED_STRANGER);
	expect_not_ready(first);
	expect_not_ready(second);
	shared->mood = WELL;
	shared->may_end = 1;
	assert_int_equal(shared->begun, 1);
	assert_false(has_trial_failed(begin_trial(SERVED_STRANGER)));
}

/* Aim: a child can take no more memory than is stated, and goes first where the machine has none;
 * what it died of is noted once. */
static void test_bound_child(void **state)
{
	(void)state;
	long long waits = fill(HOARDS);
	shared->notes = 0;
	json_t *found = estimate(NULL, waits);
	assert_non_null(strstr(text(found, "failed"), "the forecast failed"));
	json_decref(found);
	assert_true(has_trial_failed(begin_trial(NULL)));
	assert_true(figure(&served, "sharewell_forecasts_failed_total") == 2);
	assert_int_equal(shared->oom_score, 1000);
	assert_int_equal(shared->notes, 1);
	char note[sizeof shared->note] = "";
	for (size_t i = 0; i + 1 < sizeof note; i++)
		note[i] = shared->note[i];
	assert_non_null(strstr(note, "status 9"));
}

/* Aim: one user's trials do not stand before the first of another one. */
static void test_turns(void **state)
{
	(void)state;
	fill(WAITS);
	shared->begun = shared->may_end = 0;
	int own[3], stranger;
	own[0] = begin_trial(NULL);
	while (shared->begun == 0)
		usleep(1000);
	for (size_t i = 1; i < 3; i++)
		own[i] = begin_trial(NULL);
	figure(&served, "sharewell_forecasts_total"); /* the controller has heard them */
	stranger = begin_trial(SERVED_STRANGER);
	figure(&served, "sharewell_forecasts_total");
	shared->may_end = 2;
	has_trial_failed(own[0]);
	has_trial_failed(stranger);
	shared->may_end = 4;
	for (size_t i = 1; i < 3; i++)
		has_trial_failed(own[i]);
	assert_int_equal(shared->begun, 4);
}

/* Aim: forecasts are made where the kernel cannot close many files at once, or is kept from it. */
static void test_without_close_range(void **state)
{
	(void)state;
	served_stop(&served);
	if (!served_forbid(SYS_close_range, ENOSYS)) {
		print_message("system calls cannot be forbidden on this machine\n");
		skip();
	}
	served_start(&served);
	join_saying("");
	submit(&served, "{\"command\": [\"x\"], \"time_limit\": \"1h\"}");
	json_t *found = estimate(NULL, submit(&served, "{\"command\": [\"x\"]}"));
	assert_true(strlen(text(found, "estimated_start_at")) > 20);
	json_decref(found);
}

int main(void)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_for_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_never_older, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_trial, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_trial_that_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lengths_of_the_past, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failing_child, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_last_table, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failing_trial, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_trials, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bound_child, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_close_range, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
