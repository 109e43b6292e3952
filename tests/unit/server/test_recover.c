/* Records that cannot be applied, under the server: set aside at the start and while it runs, and
 * each later start gives the same state. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include <sharewell/policy.h>

#include "brain/brain.h"
#include "store/journal.h"
#include "unit/server/served.h"

static struct served served;
static time_t wrong_by_s; /* what the clock of the day is wrong by */

int clock_gettime(clockid_t id, struct timespec *ret_now)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret_now);
	if (r == 0 && id == CLOCK_REALTIME)
		ret_now->tv_sec += wrong_by_s;
	return r;
}

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

/* Puts a record behind the last, as a controller with a fault would. */
static void put(struct sw_journal *journal, enum sw_record_kind kind, const char *body)
{
	uint64_t seq;
	assert_int_equal(sw_journal_append(journal, 0, kind, body, strlen(body), &seq), 0);
	assert_int_equal(sw_journal_commit(journal, NULL), 0);
}

static struct sw_journal *open_journal(void)
{
	struct sw_journal *journal = NULL;
	struct sw_err err = {0};
	if (sw_journal_open(served.journal, &journal, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return journal;
}

static void expect_jobs(int count)
{
	json_t *list = ask_json(&served, "GET", "/v1/jobs?limit=1000", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(list, "jobs")), count);
	json_decref(list);
}

static const char submit_record[] = "{\"gid\":0,\"request\":{\"command\":[\"x\"],\"hold\":true},\"uid\":0}";

/* Aim: records that do not fit, and those that fail half of the way, are set aside at the start;
 * the rest goes on, now and after more starts, orderly or not. */
static void test_at_start(void **state)
{
	(void)state;
	assert_int_equal(submit(&served, "{\"command\": [\"x\"], \"hold\": true}"), 1);
	served_stop(&served);
	struct sw_journal *journal = open_journal();
	put(journal, SW_RECORD_CANCEL, "{\"by\":0,\"job\":77}");
	put(journal, SW_RECORD_SUBMIT, submit_record);
	/* A request that cannot be decoded: it shows only while it is applied. */
	put(journal, SW_RECORD_SUBMIT, "{\"gid\":0,\"request\":{\"gpus\":\"many\"},\"uid\":0}");
	/* The members behind it belong to nothing. */
	put(journal, SW_RECORD_SUBMIT, "{\"member\":2}");
	put(journal, SW_RECORD_SUBMIT, "not JSON");
	put(journal, SW_RECORD_SUBMIT, submit_record);
	put(journal, SW_RECORD_HOLD, "{\"by\":0,\"job\":1234567}");
	uint64_t last = sw_journal_last_seq(journal);
	sw_journal_close(journal);
	served_start(&served);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(served.records, last);
		expect_jobs(3);
		assert_true(figure(&served, "sharewell_journal_aside") == 5);
		json_t *cluster = ask_json(&served, "GET", "/v1/cluster", NULL, 200);
		assert_int_equal(json_integer_value(json_object_get(cluster, "aside")), 5);
		json_decref(cluster);
		json_t *health = ask_json(&served, "GET", "/healthz", NULL, 200);
		assert_non_null(strstr(json_string_value(json_object_get(health, "journal")), "5 records are set aside"));
		json_decref(health);
		if (round == 1)
			served_kill(&served);
		else
			served_stop(&served);
		served_start(&served);
	}
	assert_int_equal(submit(&served, "{\"command\": [\"x\"], \"hold\": true}"), 4);
}

/* Aim: a kind that only a newer version knows is no reason to set it aside: the start is refused,
 * and nothing has changed. */
static void test_newer(void **state)
{
	(void)state;
	submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	served_stop(&served);
	struct sw_journal *journal = open_journal();
	put(journal, (enum sw_record_kind)9999, "{}");
	sw_journal_close(journal);
	struct sw_err err = {0};
	served_refused(&served, &err);
	assert_non_null(strstr(err.fact, "record 2 of the journal cannot be applied"));
	assert_non_null(strstr(err.hint, "newer version"));
	journal = open_journal();
	assert_int_equal(sw_journal_aside_count(journal), 0);
	sw_journal_close(journal);
}

/* Aim: a journal whose log was removed is not started from, and says what is missing; so is one
 * whose file was replaced. */
static void test_log_removed(void **state)
{
	(void)state;
	served_stop(&served);
	served_start(&served);
	for (int i = 0; i < 20; i++)
		submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	served_kill(&served);
	char log[160];
	snprintf(log, sizeof log, "%s-wal", served.journal);
	assert_int_equal(unlink(log), 0);
	struct sw_err err = {0};
	served_refused(&served, &err);
	assert_non_null(strstr(err.fact, "20 records of the journal"));
	assert_non_null(strstr(err.hint, "journal repair"));
}

static void expect_now(const char *year)
{
	json_t *cluster = ask_json(&served, "GET", "/v1/cluster", NULL, 200);
	assert_int_equal(strncmp(json_string_value(json_object_get(cluster, "now")), year, strlen(year)), 0);
	json_decref(cluster);
}

/* Aim: a clock of the day that cannot be, at the very first start, does not get into the journal
 * by the record of the world: with a right one, the controller has the right time. */
static void test_wrong_clock(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	char year[8];
	time_t now = time(NULL);
	struct tm today;
	served_stop(&served);
	assert_int_equal(unlink(served.journal), 0);
	char mark[160];
	snprintf(mark, sizeof mark, "%s.mark", served.journal);
	unlink(mark);
	assert_int_equal(sw_controller_load_world(NULL, &world, NULL), 0);
	served.options.world = world;
	wrong_by_s = 4000000000;
	served_start(&served);
	assert_int_equal(served.records, 1);
	expect_now("1970");
	served_stop(&served);
	wrong_by_s = 0;
	served_start(&served);
	assert_non_null(gmtime_r(&now, &today));
	snprintf(year, sizeof year, "%d", today.tm_year + 1900);
	expect_now(year);
}

static int starts;
static const char *start_once(struct sw_view *view)
{
	(void)view;
	/* It starts when it is tried, and not when it is put in charge. */
	return ++starts == 2 ? "not today" : NULL;
}

static sw_ns decide_nothing(struct sw_plan *plan)
{
	(void)plan;
	return SW_TIME_NEVER;
}

static const struct sw_policy moody = {
	.abi = SW_POLICY_ABI,
	.name = "moody",
	.about = "starts only sometimes",
	.start = start_once,
	.decide = decide_nothing,
};

/* Aim: a record that fails half of the way while the controller runs is told to its client; the
 * controller goes on with the state that it had, and so does the next one. */
static void test_live(void **state)
{
	(void)state;
	served_stop(&served);
	served.options.plugin = &moody;
	served_start(&served);
	for (int i = 0; i < 5; i++)
		submit(&served, "{\"command\": [\"x\"], \"hold\": true}");
	json_t *refusal = ask_json(&served, "POST", "/v1/policy", "{\"policy\": \"moody\"}", 409);
	char *text = json_dumps(refusal, 0);
	assert_non_null(strstr(text, "not today"));
	free(text);
	json_decref(refusal);
	assert_true(figure(&served, "sharewell_state_rebuilds_total") == 1);
	assert_true(figure(&served, "sharewell_journal_aside") == 1);
	json_t *policy = ask_json(&served, "GET", "/v1/policy", NULL, 200);
	assert_string_equal(json_string_value(json_object_get(policy, "policy")), "fifo");
	json_decref(policy);
	expect_jobs(5);
	assert_int_equal(submit(&served, "{\"command\": [\"x\"], \"hold\": true}"), 6);
	served_kill(&served);
	served_start(&served);
	expect_jobs(6);
	assert_true(figure(&served, "sharewell_journal_aside") == 1);
	policy = ask_json(&served, "GET", "/v1/policy", NULL, 200);
	assert_string_equal(json_string_value(json_object_get(policy, "policy")), "fifo");
	json_decref(policy);
}

/* Puts the journal that version 0.1 wrote in place of the controller's. */
static void bring_old_journal(bool with_snapshot)
{
	char command[512];
	snprintf(command, sizeof command, "rm -f '%s'* && cp '%s' '%s' && chmod 600 '%s'", served.journal,
		 SW_SOURCE_DIR "/tests/unit/store/journal-0.1.db", served.journal, served.journal);
	assert_int_equal(system(command), 0);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(served.journal, &db), SQLITE_OK);
	if (!with_snapshot)
		assert_int_equal(sqlite3_exec(db, "DELETE FROM snapshots; DELETE FROM snapshot_parts", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Aim: the jobs of a journal that version 0.1 wrote are all there, each in its state, from its
 * snapshot and from its records alone; nothing is set aside, and numbers go on. */
static void test_version_0_1(void **state)
{
	(void)state;
	static const char *const states[] = {"CD", "F", "PD", "PD", "CD", "CD", "CA"};
	for (int round = 0; round < 2; round++) {
		served_stop(&served);
		bring_old_journal(round == 0);
		served_start(&served);
		assert_int_equal(served.records, 21);
		assert_int_equal(served.replayed, round == 0 ? 0 : 21);
		for (int start = 0; start < 2; start++) {
			expect_jobs(7);
			for (int i = 0; i < 7; i++)
				expect_state(&served, i + 1, states[i]);
			assert_true(figure(&served, "sharewell_journal_aside") == 0);
			json_t *job = ask_json(&served, "GET", "/v1/jobs/2", NULL, 200);
			assert_int_equal(json_integer_value(json_object_get(job, "code")), 7);
			json_decref(job);
			served_kill(&served);
			served_start(&served);
		}
		assert_int_equal(submit(&served, "{\"command\": [\"x\"], \"hold\": true}"), 8);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_at_start), TEST(test_newer),	TEST(test_log_removed),
					   TEST(test_live),	TEST(test_version_0_1), TEST(test_wrong_clock)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
