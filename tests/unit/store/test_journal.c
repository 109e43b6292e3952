/* The journal when nothing goes wrong with the disk: batches, replay, snapshots, pruning, and
 * files that it must refuse. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "unit/store/scratch.h"

static void refused(const char *path, int code, const char *detail)
{
	struct sw_err err = {0};
	struct sw_journal *journal = NULL;
	int r = sw_journal_open(path, &journal, &err);
	assert_int_equal(r, code);
	assert_null(journal);
	assert_contains(err.fact, path);
	assert_contains(err.detail, detail);
}

/* Changes the closed file as a person with the sqlite3 program would. */
static void edit(const char *path, const char *statements)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, statements, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A new journal makes its folders and file for the owner only, and is empty. */
static void test_new(void **state)
{
	const struct scratch *scratch = *state;
	char path[192], folder[128];
	snprintf(folder, sizeof folder, "%s/a/b", scratch->folder);
	snprintf(path, sizeof path, "%s/journal", folder);
	mode_t before = umask(0);
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(path);
	assert_int_equal(append(journal, 1), 0);
	must_commit(journal);
	umask(before);
	struct stat info;
	assert_int_equal(stat(folder, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0700);
	static const char *const files[] = {"journal", "journal-wal", "journal.lock"};
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 0777, 0600);
	}
}

/* What was committed is there after closing and opening, byte for byte, in order. */
static void test_reopen(void **state)
{
	const struct scratch *scratch = *state;
	uint64_t total = 0;
	for (uint64_t round = 0; round < 6; round++) {
		SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(scratch->path);
		assert_int_equal(sw_journal_last_seq(journal), total);
		assert_int_equal(sw_journal_first_seq(journal), 1);
		must_be_whole(journal);
		assert_int_equal(append(journal, round * 20), 0);
		assert_int_equal(journal->pending, round * 20);
		assert_int_equal(sw_journal_last_seq(journal), total);
		must_commit(journal);
		total += round * 20;
		assert_int_equal(journal->pending, 0);
		assert_int_equal(sw_journal_last_seq(journal), total);
		must_be_whole(journal);
	}
}

/* What was appended and not committed is gone after closing, and its numbers are given again. */
static void test_uncommitted(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 5), 0);
	must_commit(journal);
	assert_int_equal(append(journal, 7), 0);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_last_seq(journal), 5);
	assert_int_equal(append(journal, 1), 0);
	must_commit(journal);
	assert_int_equal(sw_journal_last_seq(journal), 6);
	must_be_whole(journal);
	sw_journal_close(journal);
}

struct stop {
	uint64_t first, count, stop_at;
};

static int stop_there(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	(void)at_ns, (void)kind, (void)bytes, (void)size;
	struct stop *stop = user;
	if (stop->count++ == 0)
		stop->first = seq;
	return seq == stop->stop_at ? 42 : 0;
}

/* A replay starts where it is told and ends when the callback says so, with
 * the callback's result. */
static void test_replay_part(void **state)
{
	const struct scratch *scratch = *state;
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 30), 0);
	must_commit(journal);
	struct sw_err err = {0};
	struct stop stop = {.stop_at = 0};
	assert_int_equal(sw_journal_replay(journal, 21, stop_there, &stop, &err), 0);
	assert_int_equal(stop.first, 21);
	assert_int_equal(stop.count, 10);
	stop = (struct stop){.stop_at = 25};
	assert_int_equal(sw_journal_replay(journal, 21, stop_there, &stop, &err), 42);
	assert_int_equal(stop.count, 5);
	stop = (struct stop){.stop_at = 0};
	assert_int_equal(sw_journal_replay(journal, 31, stop_there, &stop, &err), 0);
	assert_int_equal(sw_journal_replay(journal, UINT64_MAX, stop_there, &stop, &err), 0);
	assert_int_equal(stop.count, 0);
	assert_int_equal(err.code, 0);
}

/* While a batch is open, what would not see it is refused. */
static void test_batch_open(void **state)
{
	const struct scratch *scratch = *state;
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 3), 0);
	must_commit(journal);
	assert_int_equal(append(journal, 1), 0);
	struct sw_err err = {0};
	struct stop stop = {.stop_at = 0};
	bool more = true;
	assert_int_equal(sw_journal_replay(journal, 1, stop_there, &stop, &err), SW_EBUG);
	assert_contains(err.detail, "batch");
	assert_int_equal(sw_journal_prune(journal, 1, &more, NULL), SW_EBUG);
	assert_int_equal(write_snapshot(journal, 3, 1, NULL), SW_EBUG);
	must_commit(journal);
	assert_int_equal(write_snapshot(journal, 4, 1, NULL), 0);
	must_be_whole(journal);
}

/* A record over the limit is refused alone; the batch around it is stored. */
static void test_too_large(void **state)
{
	const struct scratch *scratch = *state;
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 2), 0);
	SW_CLEANUP(sw_freep) void *large = calloc(1, SW_JOURNAL_RECORD_MAX + 1);
	assert_non_null(large);
	uint64_t seq = 77;
	assert_int_equal(sw_journal_append(journal, 1, 1, large, SW_JOURNAL_RECORD_MAX + 1, &seq), SW_ELIMIT);
	assert_int_equal(seq, 77);
	assert_int_equal(append(journal, 2), 0);
	must_commit(journal);
	assert_int_equal(sw_journal_last_seq(journal), 4);
	must_be_whole(journal);
	assert_int_equal(sw_journal_append(journal, 1, 1, large, SW_JOURNAL_RECORD_MAX, &seq), 0);
	must_commit(journal);
	assert_int_equal(seq, 5);
}

/* The last snapshot comes back whole, whether empty, small, or of many steps, and
 * also after opening again. */
static void test_snapshot(void **state)
{
	const struct scratch *scratch = *state;
	static const size_t repeats[] = {1, 0, 100, 2500, 3};
	struct sw_journal *journal = must_open(scratch->path);
	for (size_t i = 0; i < sizeof repeats / sizeof repeats[0]; i++) {
		assert_int_equal(append(journal, 16), 0);
		must_commit(journal);
		uint64_t last = sw_journal_last_seq(journal);
		struct sw_err err = {0};
		assert_int_equal(write_snapshot(journal, last, repeats[i], &err), 0);
		must_be_whole(journal);
		sw_journal_close(journal);
		journal = must_open(scratch->path);
		SW_CLEANUP(sw_freep) void *bytes = NULL;
		uint64_t seq;
		size_t size, one;
		assert_int_equal(sw_journal_snapshot_read(journal, &seq, &bytes, &size, &err), 0);
		free(record_new(last, &one));
		assert_int_equal(seq, last);
		assert_int_equal(size, one * repeats[i]);
		assert_non_null(bytes);
		must_be_whole(journal);
	}
	sw_journal_close(journal);
	/* Of the last two the small one has one part, the large one before it some; those
	 * before leave nothing behind. */
	edit(scratch->path, "CREATE TEMP TABLE check_two (n INTEGER CHECK (n = 2)); INSERT INTO check_two SELECT count(*) FROM snapshots;"
			    "INSERT INTO check_two SELECT count(DISTINCT snapshot) FROM snapshot_parts;");
}

/* A snapshot that is begun and not finished does not count; the next one clears it away. */
static void test_snapshot_given_up(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 20), 0);
	must_commit(journal);
	struct sw_err err = {0};
	assert_int_equal(write_snapshot(journal, 10, 1, &err), 0);
	bool more = false;
	void *bytes = calloc(3, SW_JOURNAL_SNAPSHOT_STEP);
	assert_non_null(bytes);
	assert_int_equal(sw_journal_snapshot_begin(journal, 20, bytes, 3 * SW_JOURNAL_SNAPSHOT_STEP, &err), 0);
	assert_int_equal(sw_journal_snapshot_step(journal, &more, &err), 0);
	assert_true(more);
	assert_int_equal(sw_journal_snapshot_step(journal, &more, &err), 0);
	assert_true(more);
	must_be_whole(journal);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	must_be_whole(journal);
	assert_int_equal(write_snapshot(journal, 20, 1, &err), 0);
	must_be_whole(journal);
	sw_journal_close(journal);
	edit(scratch->path,
	     "CREATE TEMP TABLE check_two (n INTEGER CHECK (n = 2)); INSERT INTO check_two SELECT count(*) FROM snapshot_parts;");
}

/* A snapshot of records that do not exist, or older than the one before, is refused. */
static void test_snapshot_refused(void **state)
{
	const struct scratch *scratch = *state;
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(scratch->path);
	struct sw_err err = {0};
	assert_int_equal(write_snapshot(journal, 0, 1, NULL), SW_EBUG);
	assert_int_equal(append(journal, 20), 0);
	must_commit(journal);
	assert_int_equal(write_snapshot(journal, 21, 1, NULL), SW_EBUG);
	assert_int_equal(write_snapshot(journal, 15, 1, &err), 0);
	assert_int_equal(write_snapshot(journal, 14, 1, NULL), SW_EBUG);
	assert_int_equal(sw_journal_snapshot_begin(journal, 16, NULL, SW_JOURNAL_SNAPSHOT_MAX + 1, &err), SW_ELIMIT);
	assert_int_equal(write_snapshot(journal, 15, 2, NULL), 0);
	must_be_whole(journal);
}

/* Pruning removes only what a snapshot covers, in steps, and the numbers go on also
 * when no record is left. */
static void test_prune(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	const uint64_t count = SW_JOURNAL_PRUNE_STEP + 100;
	for (uint64_t i = 1, seq; i <= count; i++)
		assert_int_equal(sw_journal_append(journal, 0, 0, "x", 1, &seq), 0);
	must_commit(journal);
	struct sw_err err = {0};
	bool more = true;
	assert_int_equal(sw_journal_prune(journal, 2, &more, &err), SW_EINPUT);
	assert_contains(err.detail, "no two snapshots");
	sw_err_clear(&err);
	/* One snapshot is not enough: were it damaged, the records would be all there is. */
	assert_int_equal(write_snapshot(journal, count, 1, &err), 0);
	assert_int_equal(sw_journal_prune(journal, 2, &more, &err), SW_EINPUT);
	sw_err_clear(&err);
	assert_int_equal(write_snapshot(journal, count, 1, &err), 0);
	assert_int_equal(sw_journal_prune(journal, count + 2, &more, &err), SW_EINPUT);
	assert_contains(err.detail, "snapshot before the last ends with record 8292");
	sw_err_clear(&err);
	assert_int_equal(sw_journal_prune(journal, 11, &more, &err), 0);
	assert_false(more);
	assert_int_equal(sw_journal_first_seq(journal), 11);
	assert_int_equal(sw_journal_prune(journal, 5, &more, &err), 0);
	assert_int_equal(sw_journal_first_seq(journal), 11);
	assert_int_equal(sw_journal_prune(journal, count + 1, &more, &err), 0);
	assert_true(more);
	assert_int_equal(sw_journal_first_seq(journal), 11 + SW_JOURNAL_PRUNE_STEP);
	assert_int_equal(sw_journal_prune(journal, count + 1, &more, &err), 0);
	assert_false(more);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_last_seq(journal), count);
	assert_int_equal(sw_journal_first_seq(journal), count + 1);
	assert_int_equal(append(journal, 3), 0);
	must_commit(journal);
	must_be_whole(journal);
	assert_int_equal(sw_journal_last_seq(journal), count + 3);
	sw_journal_close(journal);
}

/* A name that means something to SQLite is the name of a file here. */
static void test_names(void **state)
{
	const struct scratch *scratch = *state;
	char before[4096];
	assert_non_null(getcwd(before, sizeof before));
	assert_int_equal(chdir(scratch->folder), 0);
	sw_journal_close(must_open(":memory:"));
	sw_journal_close(must_open("new/file:x?mode=ro"));
	assert_int_equal(access(":memory:", F_OK), 0);
	assert_int_equal(access("new/file:x?mode=ro", F_OK), 0);
	assert_int_equal(chdir(before), 0);
	refused("", SW_EINPUT, "not the name of a file");
	refused("/nowhere/", SW_EINPUT, "not the name of a file");
	char folder[128];
	snprintf(folder, sizeof folder, "%s/new", scratch->folder);
	refused(folder, SW_EIO, "Is a directory");
}

/* Files of other people and of newer programs are refused, and left as they are. */
static void test_other_files(void **state)
{
	const struct scratch *scratch = *state;
	FILE *file = fopen(scratch->path, "w");
	assert_non_null(file);
	for (int i = 0; i < 1000; i++)
		fprintf(file, "this is not a journal, line %d\n", i);
	fclose(file);
	refused(scratch->path, SW_EINPUT, "not a journal");
	unlink(scratch->path);
	edit(scratch->path, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)");
	refused(scratch->path, SW_EINPUT, "another program");
	edit(scratch->path, "SELECT x FROM mine; DROP TABLE mine; PRAGMA application_id = 7");
	refused(scratch->path, SW_EINPUT, "another program");
	unlink(scratch->path);

	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 9), 0);
	must_commit(journal);
	sw_journal_close(journal);
	edit(scratch->path, "UPDATE meta SET value = 3 WHERE name = 'format'");
	refused(scratch->path, SW_EINPUT, "it has format 3; this program knows formats up to 2");
	edit(scratch->path, "UPDATE meta SET value = 0 WHERE name = 'format'");
	refused(scratch->path, SW_EINPUT, "does not say its format");
	edit(scratch->path, "UPDATE meta SET value = 2 WHERE name = 'format'");
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_last_seq(journal), 9);
	must_be_whole(journal);
	sw_journal_close(journal);
}

static int ignore(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	(void)user, (void)seq, (void)at_ns, (void)kind, (void)bytes, (void)size;
	return 0;
}

/* Any change of a record, and any hole, is named; what is damaged is never handed on. */
static void test_changed_records(void **state)
{
	const struct scratch *scratch = *state;
	static const char *const cases[][2] = {
		{"UPDATE records SET body = zeroblob(length(body)) WHERE seq = 12", "record 12 does not match"},
		{"UPDATE records SET at = at + 1 WHERE seq = 12", "record 12 does not match"},
		{"UPDATE records SET kind = kind + 1 WHERE seq = 12", "record 12 does not match"},
		{"UPDATE records SET kind = -1 WHERE seq = 12", "record 12 does not match"},
		{"UPDATE records SET kind = kind + 4294967296 WHERE seq = 12", "record 12 does not match"},
		{"UPDATE records SET body = x'' WHERE seq = 12", "record 12 does not match"},
		{"UPDATE records SET seq = 13 + 100 * (seq = 13) WHERE seq IN (13); UPDATE records SET seq = 13 WHERE seq = 12",
		 "record 12 is missing"},
		{"DELETE FROM records WHERE seq = 12", "record 12 is missing"},
		{"DELETE FROM records WHERE seq IN (12, 13)", "record 12 is missing"},
	};
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 20), 0);
	must_commit(journal);
	sw_journal_close(journal);
	struct scratch copy;
	scratch_make(&copy);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		scratch_copy(scratch, &copy);
		edit(copy.path, cases[i][0]);
		journal = must_open(copy.path);
		struct sw_err err = {0};
		assert_int_equal(sw_journal_replay(journal, 1, ignore, NULL, &err), SW_EINPUT);
		assert_contains(err.fact, "is damaged");
		assert_contains(err.detail, cases[i][1]);
		assert_contains(err.hint, "backup");
		sw_journal_close(journal);
	}
	scratch_remove(&copy);
}

/* Records that are missing beside the snapshot, and a changed snapshot, are found. */
static void test_changed_snapshot(void **state)
{
	const struct scratch *scratch = *state;
	static const struct {
		const char *edit, *detail;
		bool opens;
	} cases[] = {
		{"DELETE FROM records WHERE seq <= 11", "record 11 is missing", false},
		{"DELETE FROM records WHERE seq >= 10", "record 10, up to which the snapshot goes", false},
		{"DELETE FROM records WHERE seq >= 11", "record 20 was stored, and the last one there is 10", false},
		{"DELETE FROM snapshots; DELETE FROM records WHERE seq = 1", "record 1 is missing", false},
		{"UPDATE snapshots SET size = -1", "makes no sense", false},
		{"UPDATE snapshots SET size = size + 1", "bytes instead of", true},
		{"UPDATE snapshots SET size = size - 1", "part 1 of its snapshot", true},
		{"UPDATE snapshot_parts SET body = zeroblob(length(body)) WHERE part = 1", "part 1 of its snapshot", true},
		{"UPDATE snapshot_parts SET part = 5 WHERE part = 0", "part 0 of its snapshot", true},
		{"DELETE FROM snapshot_parts", "its snapshot has 0 bytes instead of", true},
	};
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 20), 0);
	must_commit(journal);
	assert_int_equal(write_snapshot(journal, 10, 1000, NULL), 0);
	must_be_whole(journal);
	sw_journal_close(journal);
	struct scratch copy;
	scratch_make(&copy);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		scratch_copy(scratch, &copy);
		edit(copy.path, cases[i].edit);
		if (!cases[i].opens) {
			refused(copy.path, SW_EINPUT, cases[i].detail);
			continue;
		}
		journal = must_open(copy.path);
		struct sw_err err = {0};
		void *bytes = NULL;
		uint64_t seq = 77;
		size_t size = 77;
		assert_int_equal(sw_journal_snapshot_read(journal, &seq, &bytes, &size, &err), SW_EINPUT);
		assert_null(bytes);
		assert_int_equal(seq + size, 154);
		assert_contains(err.detail, cases[i].detail);
		sw_journal_close(journal);
	}
	scratch_remove(&copy);
}

/* After a shutdown that was not orderly, damage anywhere in the file is found on opening. */
static void test_damaged_file(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 400), 0);
	must_commit(journal);
	sw_journal_close(journal);
	struct stat info;
	assert_int_equal(stat(scratch->path, &info), 0);
	int fd = open(scratch->path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	/* Pages near the end are of the tree of records. */
	unsigned char noise[4096];
	memset(noise, 0xa5, sizeof noise);
	for (off_t page = info.st_size / 4096 / 2; page < info.st_size / 4096; page += 3)
		assert_int_equal(pwrite(fd, noise, sizeof noise, page * 4096), (ssize_t)sizeof noise);
	close(fd);
	/* What a killed process leaves behind. */
	char path[128];
	snprintf(path, sizeof path, "%s-wal", scratch->path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("a log that was cut short", file);
	fclose(file);
	struct sw_err err = {0};
	assert_int_equal(sw_journal_open(scratch->path, &journal, &err), SW_EINPUT);
	assert_contains(err.fact, "is damaged");
	assert_contains(err.hint, "backup");
}

/* The first record from a moment on is found, also between two and where there is none. */
static void test_first_since(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	uint64_t seq = 0;
	assert_int_equal(sw_journal_first_since(journal, 0, &seq, NULL), 0);
	assert_int_equal(seq, 1);
	for (int64_t i = 0; i < 100; i++)
		assert_int_equal(sw_journal_append(journal, 1000 + i / 2 * 10, 1, "x", 1, &seq), 0);
	must_commit(journal);
	static const struct {
		int64_t at_ns;
		uint64_t seq;
	} cases[] = {{INT64_MIN, 1}, {1000, 1}, {1001, 3}, {1010, 3}, {1489, 99}, {1490, 99}, {1491, 101}, {INT64_MAX, 101}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(sw_journal_first_since(journal, cases[i].at_ns, &seq, NULL), 0);
		assert_int_equal(seq, cases[i].seq);
	}
	sw_journal_close(journal);
}

/* In a folder that may not be written the error names the file; nothing is made. */
static void test_read_only_folder(void **state)
{
	const struct scratch *scratch = *state;
	assert_int_equal(chmod(scratch->folder, 0555), 0);
	pid_t child = fork();
	if (child == 0) {
		/* root may write everywhere. */
		if (getuid() == 0 && setuid(65534) != 0)
			_exit(3);
		struct sw_err err = {0};
		struct sw_journal *journal = NULL;
		int r = sw_journal_open(scratch->path, &journal, &err);
		_exit(r == SW_EIO && strstr(err.detail, "Permission denied") != NULL && strstr(err.detail, scratch->path) != NULL ? 0 : 1);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_not_equal(access(scratch->path, F_OK), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_new),
		TEST(test_reopen),
		TEST(test_uncommitted),
		TEST(test_replay_part),
		TEST(test_batch_open),
		TEST(test_too_large),
		TEST(test_snapshot),
		TEST(test_snapshot_given_up),
		TEST(test_snapshot_refused),
		TEST(test_prune),
		TEST(test_names),
		TEST(test_other_files),
		TEST(test_changed_records),
		TEST(test_changed_snapshot),
		TEST(test_damaged_file),
		TEST(test_first_since),
		TEST(test_read_only_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
