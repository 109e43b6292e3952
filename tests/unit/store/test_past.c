/* Rows about jobs that have left, and texts by digest, beside the records of a journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "scratch.h"
#include "store/care.h"
#include "store/past.h"

static struct sw_past_row row_of(uint64_t job)
{
	static char name[32];
	snprintf(name, sizeof name, "job %d", (int)job);
	return (struct sw_past_row){
		.job = job,
		.uid = 1000 + (uint32_t)(job % 3),
		.epoch = 2,
		.state = (uint32_t)(job % 4),
		.submitted_at_ns = (int64_t)job * 10,
		.ended_at_ns = (int64_t)job * 10 + 5,
		.name = name,
		.node = "n1",
		.texts = {"a", "b", "", "d", "why"},
	};
}

/* One record, and rows with it. */
static void put(struct sw_journal *journal, uint64_t from, uint64_t to)
{
	uint64_t seq;
	assert_int_equal(sw_journal_append(journal, 1, 24, "x", 1, &seq), 0);
	for (uint64_t job = from; job <= to; job++) {
		struct sw_past_row row = row_of(job);
		assert_int_equal(sw_past_put(journal, &row), 0);
	}
}

static uint64_t total(struct sw_journal *journal)
{
	uint64_t counts[SW_PAST_STATES], sum = 0;
	assert_int_equal(sw_past_count(journal, counts, NULL), 0);
	for (size_t i = 0; i < SW_PAST_STATES; i++)
		sum += counts[i];
	return sum;
}

struct seen {
	uint64_t jobs[64];
	size_t count, most;
};

static int see(void *user, const struct sw_past_row *row)
{
	struct seen *seen = user;
	struct sw_past_row expected = row_of(row->job);
	assert_string_equal(row->name, expected.name);
	assert_string_equal(row->texts[4], "why");
	assert_int_equal(row->ended_at_ns, expected.ended_at_ns);
	seen->jobs[seen->count++] = row->job;
	return seen->count == seen->most;
}

/* Aim: rows are there after the commit, in the order of their numbers, both ways and for one
 * user, from any number on. */
static void test_pages(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct sw_journal *journal = must_open(path);
	put(journal, 1, 20);
	assert_int_equal(sw_journal_commit(journal, NULL), 0);
	sw_journal_close(journal);
	journal = must_open(path);
	struct seen seen = {.most = 3};
	assert_int_equal(sw_past_each(journal, &(struct sw_past_query){.from = 5}, see, &seen, NULL), 1);
	assert_true(seen.count == 3 && seen.jobs[0] == 5 && seen.jobs[2] == 7);
	seen = (struct seen){.most = 64};
	assert_int_equal(sw_past_each(journal, &(struct sw_past_query){.from = 4, .descending = true}, see, &seen, NULL), 0);
	assert_true(seen.count == 4 && seen.jobs[0] == 4 && seen.jobs[3] == 1);
	seen = (struct seen){.most = 64};
	const struct sw_past_query mine = {.from = UINT64_MAX, .descending = true, .by_user = true, .uid = 1001};
	assert_int_equal(sw_past_each(journal, &mine, see, &seen, NULL), 0);
	assert_true(seen.count == 7 && seen.jobs[0] == 19 && seen.jobs[6] == 1);
	seen = (struct seen){.most = 64};
	assert_int_equal(sw_past_find(journal, 13, see, &seen, NULL), 0);
	assert_true(seen.count == 1 && seen.jobs[0] == 13);
	assert_int_equal(sw_past_find(journal, 21, see, &seen, NULL), SW_ENOTFOUND);
	assert_int_equal(total(journal), 20);
	uint64_t first = 99;
	assert_int_equal(sw_past_first_since(journal, 125, &first, NULL), 0);
	assert_int_equal(first, 12);
	assert_int_equal(sw_past_first_since(journal, 999, &first, NULL), 0);
	assert_int_equal(first, 0);
	sw_journal_close(journal);
}

/* Aim: a batch that is not committed leaves no row; a row that is put twice is
 * there and counted once. */
static void test_whole_or_not(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct sw_journal *journal = must_open(path);
	struct seen seen = {.most = 64};
	put(journal, 1, 3);
	sw_journal_close(journal);
	journal = must_open(path);
	assert_int_equal(total(journal), 0);
	put(journal, 1, 3);
	assert_int_equal(sw_journal_commit(journal, NULL), 0);
	put(journal, 2, 5);
	assert_int_equal(sw_journal_commit(journal, NULL), 0);
	assert_int_equal(total(journal), 5);
	assert_int_equal(sw_past_each(journal, &(struct sw_past_query){0}, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 5);
	sw_journal_close(journal);
}

/* Aim: rows beyond a number, or of before a moment, go in steps, the oldest first,
 * and the counts follow. */
static void test_trims(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct sw_journal *journal = must_open(path);
	bool more = true;
	int steps = 0;
	put(journal, 1, 1300);
	assert_int_equal(sw_journal_commit(journal, NULL), 0);
	for (; more; steps++)
		assert_int_equal(sw_past_trim(journal, 30, 0, &more, NULL), 0);
	assert_true(steps >= 3 && steps < 6);
	assert_int_equal(total(journal), 30);
	struct seen seen = {.most = 1};
	assert_int_equal(sw_past_each(journal, &(struct sw_past_query){0}, see, &seen, NULL), 1);
	assert_int_equal(seen.jobs[0], 1271);
	assert_int_equal(sw_past_trim(journal, UINT64_MAX, 12955, &more, NULL), 0);
	assert_int_equal(total(journal), 6);
	sw_journal_close(journal);
}

/* Aim: a row that was changed behind our back is an error that names it. */
static void test_damage(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct sw_journal *journal = must_open(path);
	put(journal, 1, 3);
	assert_int_equal(sw_journal_commit(journal, NULL), 0);
	sw_journal_close(journal);
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE past SET uid = 0 WHERE job = 2", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	journal = must_open(path);
	struct seen seen = {.most = 64};
	struct sw_err err = {0};
	assert_int_equal(sw_past_each(journal, &(struct sw_past_query){0}, see, &seen, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "job 2"));
	assert_int_equal(seen.count, 1);
	sw_journal_close(journal);
}

static bool is_odd(void *user, const unsigned char digest[SW_BLOB_DIGEST])
{
	(void)user;
	return digest[0] % 2 == 1;
}

/* Aim: a text is found by its digest, stands there once, and goes when nothing needs it. */
static void test_blobs(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct sw_journal *journal = must_open(path);
	char *bytes = NULL;
	size_t size = 0;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 200; i++) {
			unsigned char digest[SW_BLOB_DIGEST] = {(unsigned char)i};
			char text[32];
			snprintf(text, sizeof text, "text %d", i);
			assert_int_equal(sw_blob_put(journal, digest, text, strlen(text)), 0);
		}
		uint64_t seq;
		assert_int_equal(sw_journal_append(journal, 1, 1, "x", 1, &seq), 0);
		assert_int_equal(sw_journal_commit(journal, NULL), 0);
	}
	unsigned char even[SW_BLOB_DIGEST] = {42}, odd[SW_BLOB_DIGEST] = {43};
	assert_int_equal(sw_blob_get(journal, even, &bytes, &size, NULL), 0);
	assert_string_equal(bytes, "text 42");
	assert_int_equal(size, 7);
	free(bytes);
	int64_t cursor = 0;
	int steps = 0;
	do {
		assert_int_equal(sw_blob_sweep(journal, &cursor, is_odd, NULL, NULL), 0);
	} while (++steps < 40 && cursor != 0);
	assert_int_equal(cursor, 0);
	assert_int_equal(sw_blob_get(journal, even, &bytes, &size, NULL), SW_ENOTFOUND);
	assert_int_equal(sw_blob_get(journal, odd, &bytes, &size, NULL), 0);
	free(bytes);
	sw_journal_close(journal);
}

/* Aim: a repair keeps rows and texts, and counts them anew. */
static void test_repair(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct sw_journal *journal = must_open(path);
	const unsigned char digest[SW_BLOB_DIGEST] = {7};
	char *bytes = NULL;
	size_t size = 0;
	put(journal, 1, 20);
	assert_int_equal(sw_blob_put(journal, digest, "text", 4), 0);
	assert_int_equal(sw_journal_commit(journal, NULL), 0);
	sw_journal_close(journal);
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE records SET body = x'00' WHERE seq = 1", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	struct sw_journal_report report;
	struct sw_err err = {0};
	if (sw_journal_repair(path, NULL, &report, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	journal = must_open(path);
	struct seen seen = {.most = 64};
	assert_int_equal(sw_past_each(journal, &(struct sw_past_query){0}, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 20);
	assert_int_equal(total(journal), 20);
	assert_int_equal(sw_blob_get(journal, digest, &bytes, &size, NULL), 0);
	assert_string_equal(bytes, "text");
	free(bytes);
	sw_journal_close(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pages, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_whole_or_not, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_trims, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_damage, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_repair, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_blobs, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
