/* The mark beside the journal: what is missing is noticed, what is not missing raises no alarm, and
 * numbers are remembered. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/rng.h"
#include "store/mark.h"
#include "unit/store/scratch.h"

static char *beside(const struct scratch *scratch, const char *suffix)
{
	static char path[160];
	snprintf(path, sizeof path, "%s%s", scratch->path, suffix);
	return path;
}

/* Opens; 0 or the code, with the words. */
static int try_open(const struct scratch *scratch, struct sw_err *err, char *news, uint64_t *ret_last)
{
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = NULL;
	int r = sw_journal_open(scratch->path, &journal, err);
	if (r == 0 && news != NULL)
		snprintf(news, 480, "%s", sw_journal_news(journal));
	if (r == 0 && ret_last != NULL)
		*ret_last = sw_journal_last_seq(journal);
	return r;
}

/* Stores `commits` times 10 records in a process that is then killed, so that its log stays. */
static void live_and_die(const struct scratch *scratch, int commits)
{
	pid_t child = fork();
	if (child == 0) {
		struct sw_journal *journal = NULL;
		if (sw_journal_open(scratch->path, &journal, NULL) < 0)
			_exit(1);
		for (int i = 0; i < commits; i++) {
			if (append(journal, 10) < 0 || sw_journal_commit(journal, NULL) < 0)
				_exit(2);
			sw_journal_gave_out(journal, sw_journal_last_seq(journal));
		}
		kill(getpid(), SIGKILL);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

/* A write-ahead log that is removed takes acknowledged records with it: the journal does not
 * open, and says which ones. */
static void test_log_removed(void **state)
{
	const struct scratch *scratch = *state;
	live_and_die(scratch, 3);
	struct scratch kept;
	scratch_make(&kept);
	scratch_copy(scratch, &kept);
	assert_int_equal(unlink(beside(scratch, "-wal")), 0);
	struct sw_err err = {0};
	assert_int_equal(try_open(scratch, &err, NULL, NULL), SW_EINPUT);
	/* The tables were in the log as well. */
	assert_contains(err.fact, "is gone");
	assert_contains(err.detail, "30 records");
	/* Back it comes. */
	scratch_copy(&kept, scratch);
	uint64_t last = 0;
	sw_err_clear(&err);
	assert_int_equal(try_open(scratch, &err, NULL, &last), 0);
	assert_int_equal(last, 30);
	live_and_die(scratch, 2);
	assert_int_equal(unlink(beside(scratch, "-wal")), 0);
	assert_int_equal(try_open(scratch, &err, NULL, NULL), SW_EINPUT);
	assert_contains(err.fact, "20 records");
	assert_contains(err.detail, "record 50 was stored, and the last one there is 30");
	assert_contains(err.hint, "journal repair");
	scratch_remove(&kept);
}

/* A log that is cut or changed anywhere is noticed, or nothing of it was needed; the
 * refused log stays as it is. */
static void test_log_damaged(void **state)
{
	const struct scratch *scratch = *state;
	sw_journal_close(must_open(scratch->path));
	live_and_die(scratch, 4);
	struct stat info;
	assert_int_equal(stat(beside(scratch, "-wal"), &info), 0);
	struct sw_rng rng;
	sw_rng_seed(&rng, 7);
	unsigned refused = 0;
	for (int round = 0; round < 60; round++) {
		struct scratch copy;
		scratch_make(&copy);
		scratch_copy(scratch, &copy);
		off_t at = (off_t)sw_rng_below(&rng, (uint64_t)info.st_size);
		if (round % 2 == 0) {
			assert_int_equal(truncate(beside(&copy, "-wal"), at), 0);
		} else {
			int fd = open(beside(&copy, "-wal"), O_RDWR | O_CLOEXEC);
			unsigned char byte = 0;
			assert_int_equal(pread(fd, &byte, 1, at), 1);
			byte ^= (unsigned char)(1u << sw_rng_below(&rng, 8));
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
			close(fd);
		}
		struct sw_err err = {0};
		uint64_t last = 0;
		int r = try_open(&copy, &err, NULL, &last);
		assert_true(r == 0 ? last == 40 : r == SW_EINPUT && err.hint[0] != '\0');
		struct stat after;
		if (r < 0 && round % 2 == 0) {
			assert_int_equal(stat(beside(&copy, "-wal"), &after), 0);
			assert_int_equal(after.st_size, at);
		}
		refused += r < 0;
		scratch_remove(&copy);
	}
	assert_true(refused > 50);
}

/* An older file in the journal's place, and another journal, are noticed. */
static void test_other_file(void **state)
{
	const struct scratch *scratch = *state;
	struct scratch old;
	scratch_make(&old);
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 10), 0);
	must_commit(journal);
	sw_journal_close(journal);
	scratch_copy(scratch, &old);
	journal = must_open(scratch->path);
	assert_int_equal(append(journal, 1), 0);
	must_commit(journal);
	sw_journal_close(journal);
	char mark[160];
	snprintf(mark, sizeof mark, "%s", beside(scratch, ".mark"));
	char away[160];
	snprintf(away, sizeof away, "%s/mark", scratch->folder);
	assert_int_equal(rename(mark, away), 0);
	scratch_copy(&old, scratch);
	assert_int_equal(rename(away, mark), 0);
	struct sw_err err = {0};
	assert_int_equal(try_open(scratch, &err, NULL, NULL), SW_EINPUT);
	assert_contains(err.fact, "1 record of the journal");
	assert_contains(err.fact, "is missing");
	assert_int_equal(unlink(scratch->path), 0);
	sw_err_clear(&err);
	assert_int_equal(try_open(scratch, &err, NULL, NULL), SW_EINPUT);
	assert_contains(err.fact, "is gone");
	/* Another one. */
	assert_int_equal(unlink(beside(&old, ".mark")), 0);
	assert_int_equal(unlink(old.path), 0);
	journal = must_open(old.path);
	assert_int_equal(append(journal, 30), 0);
	must_commit(journal);
	sw_journal_close(journal);
	assert_int_equal(rename(old.path, scratch->path), 0);
	sw_err_clear(&err);
	assert_int_equal(try_open(scratch, &err, NULL, NULL), SW_EINPUT);
	assert_contains(err.fact, "is not the one that was here");
	scratch_remove(&old);
}

/* Without its mark, or with a damaged one, the journal opens, says so once, and knows that
 * numbers may have been given. */
static void test_mark_lost(void **state)
{
	const struct scratch *scratch = *state;
	for (int round = 0; round < 3; round++) {
		struct sw_journal *journal = must_open(scratch->path);
		assert_int_equal(append(journal, 10), 0);
		must_commit(journal);
		sw_journal_gave_out(journal, 5);
		assert_int_equal(sw_journal_set_numbers(journal, 0, false, NULL), 0);
		sw_journal_close(journal);
		char mark[160];
		snprintf(mark, sizeof mark, "%s", beside(scratch, ".mark"));
		if (round == 0)
			assert_int_equal(unlink(mark), 0);
		else if (round == 1)
			assert_int_equal(truncate(mark, 3), 0);
		else {
			int fd = open(mark, O_WRONLY | O_CLOEXEC);
			char noise[1024];
			memset(noise, 0x5a, sizeof noise);
			assert_int_equal(write(fd, noise, sizeof noise), (ssize_t)sizeof noise);
			close(fd);
		}
		journal = must_open(scratch->path);
		assert_contains(sw_journal_news(journal), round == 0 ? "is missing" : "is damaged");
		assert_true(sw_journal_is_unsure(journal));
		sw_journal_close(journal);
		journal = must_open(scratch->path);
		assert_string_equal(sw_journal_news(journal), "");
		assert_true(sw_journal_is_unsure(journal));
		sw_journal_close(journal);
	}
}

/* The highest number outlives its process, and a floor that was set is never undercut. */
static void test_numbers(void **state)
{
	const struct scratch *scratch = *state;
	live_and_die(scratch, 2);
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(sw_journal_floor(journal), 20);
	sw_journal_gave_out(journal, 7);
	assert_int_equal(sw_journal_floor(journal), 20);
	assert_int_equal(sw_journal_set_numbers(journal, 99, true, NULL), 0);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_floor(journal), 99);
	assert_true(sw_journal_is_unsure(journal));
	sw_journal_gave_out(journal, 100);
	assert_int_equal(sw_journal_floor(journal), 100);
	sw_journal_close(journal);
}

/* A torn write leaves the mark before it; a mark that is behind, as after a
 * power cut, raises no alarm. */
static void test_torn(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 10), 0);
	must_commit(journal);
	struct sw_mark before, after;
	assert_int_equal(sw_mark_read(beside(scratch, ".mark"), &before), SW_MARK_FOUND);
	assert_int_equal(before.seq, 10);
	assert_true(before.open);
	assert_int_equal(append(journal, 10), 0);
	must_commit(journal);
	assert_int_equal(sw_mark_read(beside(scratch, ".mark"), &after), SW_MARK_FOUND);
	assert_int_equal(after.seq, 20);
	sw_journal_close(journal);
	assert_int_equal(sw_mark_read(beside(scratch, ".mark"), &after), SW_MARK_FOUND);
	assert_false(after.open);
	int fd = open(beside(scratch, ".mark"), O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "torn", 4, (off_t)(after.turn % 2) * 512 + 20), 4);
	close(fd);
	assert_int_equal(sw_mark_read(beside(scratch, ".mark"), &after), SW_MARK_FOUND);
	assert_int_equal(after.seq, 20);
	assert_true(after.open);
	/* One that is behind. */
	after = before;
	sw_mark_open(beside(scratch, ".mark"), &after);
	after.turn += 10;
	assert_int_equal(sw_mark_write(&after), 0);
	sw_mark_close(&after);
	char news[480] = "";
	uint64_t last = 0;
	struct sw_err err = {0};
	assert_int_equal(try_open(scratch, &err, news, &last), 0);
	assert_int_equal(last, 20);
	assert_string_equal(news, "");
}

struct found {
	uint64_t seq;
	unsigned submits;
};

static int count_record(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	struct found *found = user;
	(void)kind;
	assert_int_equal(seq, ++found->seq);
	assert_true(at_ns > 0 && size > 2 && ((const char *)bytes)[0] == '{' && ((const char *)bytes)[size - 1] == '}');
	found->submits += memmem(bytes, size, "\"request\":", 10) != NULL;
	return 0;
}

/* A journal that version 0.1 wrote (format 1, without a mark) opens without a word, holds what that
 * version stored, and has a mark then. */
static void test_format_1(void **state)
{
	const struct scratch *scratch = *state;
	scratch_bring(scratch, SW_SOURCE_DIR "/tests/unit/store/journal-0.1.db");
	for (int round = 0; round < 2; round++) {
		struct sw_journal *journal = must_open(scratch->path);
		assert_string_equal(sw_journal_news(journal), "");
		assert_false(sw_journal_is_unsure(journal));
		assert_int_equal(sw_journal_first_seq(journal), 1);
		assert_int_equal(sw_journal_last_seq(journal), 21);
		struct sw_err err = {0};
		struct found found = {0};
		if (sw_journal_replay(journal, 1, count_record, &found, &err) != 0)
			fail_msg("%s: %s", err.fact, err.detail);
		assert_int_equal(found.seq, 21);
		assert_int_equal(found.submits, 6);
		SW_CLEANUP(sw_freep) void *bytes = NULL;
		uint64_t seq = 0;
		size_t size = 0;
		assert_int_equal(sw_journal_snapshot_read(journal, &seq, &bytes, &size, &err), 0);
		assert_int_equal(seq, 21);
		assert_int_equal(size, 9734);
		assert_memory_equal((char *)bytes, "swbrain1", 8);
		sw_journal_close(journal);
	}
	struct sw_mark mark;
	assert_int_equal(sw_mark_read(beside(scratch, ".mark"), &mark), SW_MARK_FOUND);
	assert_int_equal(mark.seq, 21);
	/* It can be written from now on, as any other. */
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 3), 0);
	must_commit(journal);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_last_seq(journal), 24);
	sw_journal_close(journal);
}

/* A mark that cannot be written stops nothing, and is told. */
static void test_mark_refused(void **state)
{
	const struct scratch *scratch = *state;
	sw_journal_close(must_open(scratch->path));
	assert_int_equal(unlink(beside(scratch, ".mark")), 0);
	assert_int_equal(mkdir(beside(scratch, ".mark"), 0700), 0);
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_not_equal(sw_journal_mark_error(journal), 0);
	assert_contains(sw_journal_news(journal), "damaged");
	assert_int_equal(append(journal, 5), 0);
	must_commit(journal);
	must_be_whole(journal);
	sw_journal_close(journal);
	assert_int_equal(rmdir(beside(scratch, ".mark")), 0);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_mark_error(journal), 0);
	assert_int_equal(sw_journal_last_seq(journal), 5);
	sw_journal_close(journal);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_log_removed), TEST(test_log_damaged), TEST(test_other_file), TEST(test_mark_lost),
		TEST(test_numbers),	TEST(test_torn),	TEST(test_format_1),   TEST(test_mark_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
