/* Snapshots under the server: a start that needs only the last one and what came after, records
 * that go, and what happens when it is damaged. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
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

#include "store/journal.h"
#include "unit/server/served.h"

#define JOBS 400
#define EVERY 50 /* records between snapshots */

#ifdef SYS_dup2
#define DUP2_NUMBER SYS_dup2
#else
#define DUP2_NUMBER SYS_dup3
#endif
#define NOTES_SIZE 65536u

static struct served served;
static char *notes; /* what the controller has noted */

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	served.options.snapshot_records = EVERY;
	served.options.events_kept = 20;
	served.options.keep_events = 1;
	served_start(&served);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	return 0;
}

/* In the controller's process. */
static void keep_note(void *user, const char *line)
{
	(void)user;
	strncat(notes, line, NOTES_SIZE - strlen(notes) - 1);
}

static void join(const char *node)
{
	char body[400];
	int fd = dial(&served);
	snprintf(body, sizeof body,
		 "{\"node\": \"%s\", \"instance\": \"a\", \"number\": 1, \"have\": 0, \"inventory\": {\"gpus\": [{\"uuid\": \"G-%s\","
		 " \"name\": \"c\", \"memory_bytes\": 17179869184, \"link_group\": 0}], \"cpus\": 8, \"memory_bytes\": 34359738368}}",
		 node, node);
	struct reply reply = ask(fd, "POST", "/v1/agents/sync", NULL, body);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	close(fd);
}

static void submit_many(void)
{
	for (int i = 0; i < JOBS; i++)
		submit(&served, "{\"command\": [\"x\"], \"name\": \"many\"}");
}

static void wait_for_snapshots(double least)
{
	for (int i = 0; i < 500 && figure(&served, "sharewell_snapshots_total") < least; i++)
		usleep(10000);
	assert_true(figure(&served, "sharewell_snapshots_total") >= least);
}

/* Page by page: a busy controller ends one early. */
static long long jobs_there(void)
{
	long long count = 0, cursor = 0;
	do {
		char target[80];
		snprintf(target, sizeof target, "/v1/jobs?limit=1000&cursor=%lld", cursor);
		json_t *page = ask_json(&served, "GET", target, NULL, 200);
		count += (long long)json_array_size(json_object_get(page, "jobs"));
		cursor = json_integer_value(json_object_get(page, "next"));
		json_decref(page);
	} while (cursor > 0);
	return count;
}

/* Aim: a controller that is killed comes back with every job and node from a snapshot
 * and the records after it. */
static void test_killed(void **state)
{
	(void)state;
	join("n1");
	submit_many();
	wait_for_snapshots(2);
	uint64_t all = (uint64_t)figure(&served, "sharewell_journal_seq");
	served_kill(&served);
	served_start(&served);
	assert_int_equal(served.records, all);
	assert_in_range(served.replayed, 0, all - EVERY);
	assert_int_equal(jobs_there(), JOBS);
	expect_state(&served, 1, "CF");
	expect_state(&served, JOBS, "PD");
	/* Its GPU is known by name, though the record that told it is gone. */
	json_t *nodes = ask_json(&served, "GET", "/v1/nodes", NULL, 200);
	char *text = json_dumps(nodes, 0);
	assert_non_null(strstr(text, "G-n1"));
	free(text);
	json_decref(nodes);
	assert_int_equal(submit(&served, "{\"command\": [\"x\"]}"), JOBS + 1);
}

/* Aim: an orderly end leaves nothing to replay, and a start after it is as after any other. */
static void test_orderly_end(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	json_decref(ask_json(&served, "POST", "/v1/jobs/2/cancel", NULL, 200));
	served_stop(&served);
	served_start(&served);
	assert_int_equal(served.records, 6);
	assert_int_equal(served.replayed, 0);
	expect_state(&served, 1, "PD");
	expect_state(&served, 2, "CA");
	/* Nothing new: no second snapshot of the same. */
	served_stop(&served);
	served_start(&served);
	assert_int_equal(served.records, 6);
	assert_int_equal(submit(&served, "{\"command\": [\"x\"]}"), 6);
}

/* Aim: records that two snapshots cover go, except the last ones, which a watcher that comes back
 * still gets with the right jobs. */
static void test_old_records_go(void **state)
{
	(void)state;
	submit_many();
	json_decref(ask_json(&served, "POST", "/v1/jobs/3/cancel", NULL, 200));
	wait_for_snapshots(3);
	served_stop(&served);
	struct sw_journal *journal = NULL;
	assert_int_equal(sw_journal_open(served.journal, &journal, NULL), 0);
	assert_int_equal(sw_journal_last_seq(journal), JOBS + 1);
	assert_in_range(sw_journal_first_seq(journal), EVERY + 1, JOBS + 1 - 20 + 1);
	assert_in_range(sw_journal_first_seq(journal), 1, sw_journal_older_snapshot(journal) + 1);
	sw_journal_close(journal);
	served_start(&served);
	int fd = dial(&served);
	say_text(fd, "GET /v1/events HTTP/1.1\r\nLast-Event-ID: 390\r\n\r\n");
	hear_head(fd, 200);
	char *text = hear_until(fd, "id: 401\n");
	assert_null(strstr(text, "reset"));
	const char *first = strstr(text, "id: 391\n");
	assert_non_null(first);
	assert_non_null(strstr(first, "\"job\":{\"id\":391,"));
	free(text);
	close(fd);
}

static void change(const char *sql)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(served.journal, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* Aim: where the last snapshot is damaged, the one before and the records since then give every
 * job; the next snapshots are sound again. */
static void test_falls_back(void **state)
{
	(void)state;
	submit_many();
	wait_for_snapshots(2);
	served_stop(&served);
	change("UPDATE snapshot_parts SET body = zeroblob(length(body)) WHERE snapshot = (SELECT max(id) FROM snapshots)");
	served_start(&served);
	assert_int_equal(served.records, JOBS);
	assert_true(served.replayed > 0);
	assert_int_equal(jobs_there(), JOBS);
	assert_true(figure(&served, "sharewell_snapshots_damaged_total") == 1);
	assert_int_equal(submit(&served, "{\"command\": [\"x\"]}"), JOBS + 1);
	served_stop(&served);
	served_start(&served);
	assert_int_equal(served.replayed, 0);
	assert_true(figure(&served, "sharewell_snapshots_damaged_total") == 0);
	assert_int_equal(jobs_there(), JOBS + 1);
}

/* Aim: where both snapshots are damaged and the records before them are gone, that is an error with
 * a hint; it is never passed over. */
static void test_damaged(void **state)
{
	(void)state;
	struct sw_err err;
	submit_many();
	wait_for_snapshots(3);
	served_stop(&served);
	change("UPDATE snapshot_parts SET body = CAST(substr(body, 1, 100) || x'00' || substr(body, 102) AS BLOB)");
	served_refused(&served, &err);
	assert_non_null(strstr(err.fact, "is damaged"));
	assert_true(err.hint[0] != '\0');
}

static void submit_and_cancel(int first, int count)
{
	char body[80];
	snprintf(body, sizeof body, "{\"command\": [\"x\"], \"hold\": true, \"array\": \"1-%d\"}", count);
	json_decref(ask_json(&served, "POST", "/v1/jobs", body, 201));
	json_t *change = json_pack("{s:s, s:[]}", "verb", "cancel", "jobs");
	for (int i = 0; i < count; i++)
		json_array_append_new(json_object_get(change, "jobs"), json_integer(first + i));
	char *text = json_dumps(change, 0);
	json_decref(ask_json(&served, "POST", "/v1/jobs/change", text, 200));
	free(text);
	json_decref(change);
}

/* Jobs leave in steps, some time after their end. */
static void wait_until_left(int job)
{
	char target[40];
	bool left = false;
	snprintf(target, sizeof target, "/v1/jobs/%d", job);
	for (int i = 0; i < 3000 && !left; i++) {
		json_t *found = ask_json(&served, "GET", target, NULL, 200);
		left = json_is_true(json_object_get(found, "past"));
		json_decref(found);
		usleep(left ? 0 : 10000);
	}
	assert_true(left);
}

/* Aim: how many records a start after a kill must apply depends on the jobs that are there, not on
 * how many there ever were. */
static void test_as_often_as_ever(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.keep_jobs = 10;
	served_start(&served);
	for (int i = 0; i < 15; i++)
		submit_and_cancel(i * 100 + 1, 100);
	wait_until_left(1350);
	double before = figure(&served, "sharewell_snapshots_total");
	/* A snapshot for each half of 1,500 jobs would not come by then. */
	for (int i = 0; i < 400; i++)
		submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	wait_for_snapshots(before + 1);
	uint64_t all = (uint64_t)figure(&served, "sharewell_journal_seq");
	served_kill(&served);
	served_start(&served);
	assert_int_equal(served.records, all);
	assert_in_range(served.replayed, 0, 400 + 100);
	expect_state(&served, 1900, "PD");
}

static json_t *events_after(long long after, long long limit)
{
	char target[80];
	snprintf(target, sizeof target, "/v1/journal/events?all=true&after=%lld&limit=%lld", after, limit);
	return ask_json(&served, "GET", target, NULL, 200);
}

/* Page by page: a busy controller ends one early. */
static json_t *all_events(void)
{
	json_t *all = events_after(0, 1000);
	while (json_is_integer(json_object_get(all, "next"))) {
		json_t *page = events_after(json_integer_value(json_object_get(all, "next")), 1000);
		json_array_extend(json_object_get(all, "events"), json_object_get(page, "events"));
		json_object_set(all, "next", json_object_get(page, "next"));
		json_object_set(all, "since", json_object_get(page, "since"));
		json_decref(page);
	}
	return all;
}

static void expect_event(json_t *page, size_t index, const char *kind, long long job)
{
	json_t *event = json_array_get(json_object_get(page, "events"), index);
	assert_string_equal(json_string_value(json_object_get(event, "kind")), kind);
	assert_int_equal(json_integer_value(json_object_get(event, "job")), job);
	assert_non_null(json_string_value(json_object_get(event, "at")));
}

static void hold_and_release(int job)
{
	char target[60];
	snprintf(target, sizeof target, "/v1/jobs/%d/hold", job);
	json_decref(ask_json(&served, "POST", target, NULL, 200));
	snprintf(target, sizeof target, "/v1/jobs/%d/release", job);
	json_decref(ask_json(&served, "POST", target, NULL, 200));
}

/* Aim: records are kept for queries of the past, as many as the operator says, though snapshots
 * cover them; pages of submits, holds and releases come from them and say what is missing. */
static void test_events_are_kept(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.keep_events = 300;
	served_start(&served);
	submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	hold_and_release(1);
	json_t *page = events_after(0, 1);
	expect_event(page, 0, "submit", 0);
	json_t *submit = json_array_get(json_object_get(page, "events"), 0), *spec = json_object_get(submit, "spec");
	assert_int_equal(json_integer_value(json_object_get(spec, "gpus")), 1);
	assert_int_equal(json_integer_value(json_object_get(spec, "held")), 1);
	assert_non_null(json_string_value(json_object_get(submit, "tenant")));
	long long first = json_integer_value(json_object_get(page, "next"));
	json_decref(page);
	page = events_after(first, 1);
	expect_event(page, 0, "hold", 1);
	assert_true(json_is_null(json_object_get(page, "since")));
	long long next = json_integer_value(json_object_get(page, "next"));
	assert_true(next > 0);
	json_decref(page);
	page = events_after(next, 10);
	expect_event(page, 0, "release", 1);
	assert_int_equal(json_array_size(json_object_get(page, "events")), 1);
	assert_true(json_is_null(json_object_get(page, "next")));
	json_decref(page);
	/* Clients of an earlier version do not ask for all, and know holds and releases alone. */
	page = ask_json(&served, "GET", "/v1/journal/events", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(page, "events")), 2);
	expect_event(page, 0, "hold", 1);
	expect_event(page, 1, "release", 1);
	assert_int_equal(json_object_size(json_array_get(json_object_get(page, "events"), 0)), 5);
	assert_int_equal(json_object_size(json_array_get(json_object_get(page, "events"), 1)), 4);
	assert_true(json_is_null(json_object_get(page, "next")) && json_is_null(json_object_get(page, "since")));
	json_decref(page);
	/* The first ones go once there are more than 300 and two snapshots cover them. */
	submit_many();
	hold_and_release(7);
	wait_for_snapshots(3);
	served_stop(&served);
	served_start(&served);
	page = all_events();
	size_t last = json_array_size(json_object_get(page, "events")) - 1;
	for (size_t i = 0; i + 1 < last; i++)
		expect_event(page, i, "submit", 0);
	expect_event(page, last - 1, "hold", 7);
	expect_event(page, last, "release", 7);
	assert_true(json_is_string(json_object_get(page, "since")));
	json_decref(page);
	served_stop(&served);
	struct sw_journal *journal = NULL;
	assert_int_equal(sw_journal_open(served.journal, &journal, NULL), 0);
	assert_in_range(sw_journal_first_seq(journal), sw_journal_last_seq(journal) - 300 - EVERY, sw_journal_last_seq(journal) - 299);
	sw_journal_close(journal);
	served_start(&served);
}

/* Aim: on a machine whose kernel cannot close many files at once, or is kept from it, snapshots are
 * made like elsewhere, by a process. */
static void test_without_close_range(void **state)
{
	(void)state;
	served_stop(&served);
	if (!served_forbid(SYS_close_range, ENOSYS)) {
		print_message("system calls cannot be forbidden on this machine\n");
		skip();
	}
	notes[0] = '\0';
	served.options.on_note = keep_note;
	served_start(&served);
	submit_many();
	wait_for_snapshots(2);
	assert_false(strstr(notes, "failed") != NULL);
}

/* Aim: where the process that makes a snapshot fails, the next one is made without a process. */
static void test_failing_child(void **state)
{
	(void)state;
	served_stop(&served);
	/* Without it the process does not get so far as to copy. */
	if (!served_forbid(DUP2_NUMBER, EPERM)) {
		print_message("system calls cannot be forbidden on this machine\n");
		skip();
	}
	notes[0] = '\0';
	served.options.on_note = keep_note;
	served_start(&served);
	submit_many();
	for (int i = 0; i < 1000 && figure(&served, "sharewell_snapshots_total") < 1; i++)
		submit(&served, "{\"command\": [\"x\"]}");
	assert_true(figure(&served, "sharewell_snapshots_total") >= 1);
	assert_non_null(strstr(notes, "the process that copies the state for a snapshot failed"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_killed),	 TEST(test_orderly_end),      TEST(test_old_records_go),  TEST(test_falls_back),
		TEST(test_damaged),	 TEST(test_as_often_as_ever), TEST(test_events_are_kept), TEST(test_without_close_range),
		TEST(test_failing_child)};
	notes = mmap(NULL, NOTES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (notes == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
