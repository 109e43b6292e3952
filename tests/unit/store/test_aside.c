/* Records that are set aside, and snapshots that are given up for the one before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "unit/store/scratch.h"

struct seen {
	uint64_t sum, count, last;
};

static int add_up(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	(void)bytes, (void)size;
	struct seen *seen = user;
	assert_true(seq > seen->last);
	assert_true(at_ns == record_at(seq) && kind == record_kind(seq));
	seen->sum += seq;
	seen->count++;
	seen->last = seq;
	return 0;
}

static struct seen replay(struct sw_journal *journal)
{
	struct seen seen = {0};
	struct sw_err err = {0};
	if (sw_journal_replay(journal, 1, add_up, &seen, &err) != 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return seen;
}

static int set_aside(struct sw_journal *journal, uint64_t seq, struct sw_err *err)
{
	const struct sw_journal_bad bad = {.seq = seq, .reason = "it does not fit"};
	return sw_journal_set_aside(journal, &bad, 1, err);
}

struct listed {
	uint64_t seqs[16];
	size_t count;
};

static int list(void *user, const struct sw_journal_aside *aside)
{
	struct listed *listed = user;
	size_t size;
	SW_CLEANUP(sw_freep) unsigned char *record = record_new(aside->seq, &size);
	assert_int_equal(aside->size, size);
	if (size > 0)
		assert_memory_equal(aside->bytes, record, size);
	assert_true(aside->at_ns == record_at(aside->seq) && aside->kind == record_kind(aside->seq));
	assert_string_equal(aside->reason, "it does not fit");
	assert_true(aside->set_at_s > 0);
	listed->seqs[listed->count++] = aside->seq;
	return 0;
}

/* Whichever record is set aside, first, last or in between, no replay sees it, nothing is missing,
 * and numbers go on behind it. */
static void test_set_aside(void **state)
{
	const struct scratch *scratch = *state;
	static const uint64_t which[] = {1, 2, 12, 20, 19};
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 20), 0);
	must_commit(journal);
	uint64_t sum = 210, count = 20;
	for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
		struct sw_err err = {0};
		if (set_aside(journal, which[i], &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		sum -= which[i];
		count--;
		for (int round = 0; round < 2; round++) {
			struct seen seen = replay(journal);
			assert_int_equal(seen.sum, sum);
			assert_int_equal(seen.count, count);
			assert_int_equal(sw_journal_last_seq(journal), 20);
			assert_int_equal(sw_journal_aside_count(journal), i + 1);
			sw_journal_close(journal);
			journal = must_open(scratch->path);
		}
	}
	struct listed listed = {0};
	assert_int_equal(sw_journal_asides(journal, 3, list, &listed, NULL), 0);
	assert_int_equal(listed.count, 3);
	assert_int_equal(listed.seqs[0], 20);
	assert_int_equal(append(journal, 1), 0);
	must_commit(journal);
	assert_int_equal(replay(journal).sum, sum + 21);
	assert_int_equal(set_aside(journal, 22, NULL), SW_ENOTFOUND);
	/* Snapshots and pruning go on around it. */
	bool more;
	assert_int_equal(write_snapshot(journal, 12, 1, NULL), 0);
	assert_int_equal(write_snapshot(journal, 20, 1, NULL), 0);
	assert_int_equal(sw_journal_prune(journal, 13, &more, NULL), 0);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	assert_int_equal(replay(journal).count, 7);
	sw_journal_close(journal);
}

/* What is not set aside and is not there stays an error. */
static void test_hole_beside(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 20), 0);
	must_commit(journal);
	assert_int_equal(set_aside(journal, 8, NULL), 0);
	sw_journal_close(journal);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(scratch->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM records WHERE seq = 9", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	journal = must_open(scratch->path);
	struct seen seen = {0};
	struct sw_err err = {0};
	assert_int_equal(sw_journal_replay(journal, 1, add_up, &seen, &err), SW_EINPUT);
	assert_contains(err.detail, "record 8 is missing");
	sw_journal_close(journal);
}

static uint64_t snapshot_of(struct sw_journal *journal)
{
	SW_CLEANUP(sw_freep) void *bytes = NULL;
	uint64_t seq = 77;
	size_t size;
	assert_int_equal(sw_journal_snapshot_read(journal, &seq, &bytes, &size, NULL), 0);
	return seq;
}

/* A snapshot that is of no use is given up for the one before, then for the records alone,
 * while these are there. */
static void test_fall_back(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(append(journal, 10), 0);
		must_commit(journal);
		assert_int_equal(write_snapshot(journal, sw_journal_last_seq(journal), 1000, NULL), 0);
	}
	assert_int_equal(sw_journal_older_snapshot(journal), 20);
	assert_int_equal(snapshot_of(journal), 30);
	sw_journal_close(journal);
	struct scratch pruned;
	scratch_make(&pruned);
	scratch_copy(scratch, &pruned);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_snapshot_fall_back(journal, NULL), 0);
	assert_int_equal(snapshot_of(journal), 20);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	assert_int_equal(snapshot_of(journal), 20);
	assert_int_equal(sw_journal_snapshot_fall_back(journal, NULL), 0);
	assert_int_equal(snapshot_of(journal), 0);
	/* The next ones have their places. */
	assert_int_equal(write_snapshot(journal, 25, 3000, NULL), 0);
	assert_int_equal(write_snapshot(journal, 30, 3000, NULL), 0);
	must_be_whole(journal);
	assert_int_equal(snapshot_of(journal), 30);
	sw_journal_close(journal);
	bool more;
	journal = must_open(pruned.path);
	assert_int_equal(sw_journal_prune(journal, 21, &more, NULL), 0);
	assert_int_equal(sw_journal_snapshot_fall_back(journal, NULL), 0);
	assert_int_equal(snapshot_of(journal), 20);
	struct sw_err err = {0};
	assert_int_equal(sw_journal_snapshot_fall_back(journal, &err), SW_ENOTFOUND);
	assert_contains(err.detail, "the records from 1 on");
	assert_int_equal(snapshot_of(journal), 20);
	sw_journal_close(journal);
	scratch_remove(&pruned);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {TEST(test_set_aside), TEST(test_hole_beside), TEST(test_fall_back)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
