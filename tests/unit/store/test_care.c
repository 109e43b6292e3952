/* Checking, repairing, copying and restoring journals, of files that are damaged at random, and
 * on disks that are full. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "store/care.h"
#include "unit/store/scratch.h"

enum { RECORDS = 120, SNAPSHOT = 40, ROUNDS = 80 };

static const char *beside(const struct scratch *scratch, const char *suffix)
{
	static char path[4][200];
	static int turn;
	char *text = path[turn++ % 4];
	snprintf(text, sizeof path[0], "%s%s", scratch->path, suffix);
	return text;
}

/* A journal with two snapshots whose owner was killed: most of it is in the
 * file, the end in its log. */
static void make(const struct scratch *scratch)
{
	pid_t child = fork();
	if (child == 0) {
		struct sw_journal *journal = NULL;
		if (sw_journal_open(scratch->path, &journal, NULL) < 0)
			_exit(1);
		for (uint64_t part = 0; part < 3; part++) {
			if (append(journal, RECORDS / 3) < 0 || sw_journal_commit(journal, NULL) < 0)
				_exit(2);
			sw_journal_gave_out(journal, 1000 + sw_journal_last_seq(journal));
			if (part < 2 && write_snapshot(journal, part == 0 ? SNAPSHOT / 2 : SNAPSHOT, 3, NULL) < 0)
				_exit(3);
			if (part == 1) {
				sw_journal_close(journal);
				if (sw_journal_open(scratch->path, &journal, NULL) < 0)
					_exit(4);
			}
		}
		kill(getpid(), SIGKILL);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static bool same_file(const char *one, const char *other)
{
	char line[500];
	snprintf(line, sizeof line, "cmp -s '%s' '%s'", one, other);
	return system(line) == 0;
}

/* What is there of a journal that opens. */
struct there {
	bool seen[RECORDS + 1];
	uint64_t last, snapshot, asides;
	bool told; /* something is amiss, it says */
};

static int see(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	struct there *there = user;
	size_t expected;
	SW_CLEANUP(sw_freep) unsigned char *record = record_new(seq, &expected);
	assert_true(seq <= RECORDS && !there->seen[seq]);
	assert_true(at_ns == record_at(seq) && kind == record_kind(seq) && size == expected);
	assert_true(size == 0 || memcmp(bytes, record, size) == 0);
	there->seen[seq] = true;
	return 0;
}

static int see_aside(void *user, const struct sw_journal_aside *aside)
{
	struct there *there = user;
	assert_true(aside->seq <= RECORDS && !there->seen[aside->seq] && aside->reason[0] != '\0');
	there->seen[aside->seq] = true;
	there->asides++;
	return 0;
}

/* 0, or what the journal was refused with. */
static int look(const struct scratch *scratch, struct there *there)
{
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = NULL;
	SW_CLEANUP(sw_freep) void *bytes = NULL;
	struct sw_err err = {0};
	size_t size;
	*there = (struct there){0};
	int r = sw_journal_open(scratch->path, &journal, &err);
	if (r == 0)
		r = sw_journal_replay(journal, 1, see, there, &err);
	if (r == 0)
		r = sw_journal_asides(journal, RECORDS, see_aside, there, &err);
	if (r == 0)
		r = sw_journal_snapshot_read(journal, &there->snapshot, &bytes, &size, &err);
	assert_true(r == 0 || (err.fact[0] != '\0' && err.detail[0] != '\0'));
	there->last = r == 0 ? sw_journal_last_seq(journal) : 0;
	there->told = r == 0 && sw_journal_news(journal)[0] != '\0';
	return r;
}

/* Of what was acknowledged, each record behind the snapshot is there or set aside; the end is lost
 * only where that was said. */
static void must_account_for_all(const struct there *there, bool said, uint64_t lost)
{
	for (uint64_t seq = there->snapshot + 1; seq <= there->last; seq++)
		if (!there->seen[seq])
			fail_msg("record %lu is lost silently", (unsigned long)seq);
	if (there->last < RECORDS && !said && there->last + lost != RECORDS)
		fail_msg("the records from %lu on are lost silently", (unsigned long)there->last + 1);
}

static void change_bytes(const char *path, struct sw_rng *rng, int kind)
{
	struct stat info;
	if (stat(path, &info) != 0 || info.st_size == 0)
		return;
	off_t at = (off_t)sw_rng_below(rng, (uint64_t)info.st_size);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	unsigned char page[4096];
	memset(page, (int)sw_rng_below(rng, 256), sizeof page);
	if (kind == 0) {
		assert_int_equal(pread(fd, page, 1, at), 1);
		page[0] ^= (unsigned char)(1u << sw_rng_below(rng, 8));
		assert_int_equal(pwrite(fd, page, 1, at), 1);
	} else if (kind == 1) {
		assert_int_equal(ftruncate(fd, at), 0);
	} else {
		assert_int_equal(pwrite(fd, page, sizeof page, at / 4096 * 4096), (ssize_t)sizeof page);
	}
	close(fd);
}

static void damage(const struct scratch *scratch, struct sw_rng *rng)
{
	for (uint64_t i = 1 + sw_rng_below(rng, 3); i > 0; i--) {
		uint64_t what = sw_rng_below(rng, 10);
		if (what < 6)
			change_bytes(scratch->path, rng, (int)(what % 3));
		else if (what < 8)
			change_bytes(beside(scratch, "-wal"), rng, (int)(what % 3));
		else
			unlink(beside(scratch, what == 8 ? "-wal" : ".mark"));
	}
}

/* Aim: whatever is damaged, no record is made up, none is lost without a word, and a refused repair
 * leaves everything as it was. */
static void test_damaged_at_random(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_rng rng;
	unsigned repaired = 0, opened = 0, hopeless = 0;
	make(scratch);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct scratch copy, before;
		sw_rng_seed(&rng, 1000 + round);
		scratch_make(&copy);
		scratch_make(&before);
		scratch_copy(scratch, &copy);
		damage(&copy, &rng);
		scratch_copy(&copy, &before);
		struct sw_journal_report report;
		struct sw_err err = {0};
		int r = sw_journal_check(copy.path, NULL, &report, &err);
		assert_true(r == 0 || err.fact[0] != '\0');
		assert_true(same_file(copy.path, before.path));
		struct there there;
		r = sw_journal_repair(copy.path, NULL, &report, &err);
		if (r < 0) {
			assert_true(same_file(copy.path, before.path));
			hopeless++;
		} else {
			bool sound = report.sound;
			bool said = report.mark[0] != '\0' || report.unsure;
			assert_int_equal(look(&copy, &there), 0);
			must_account_for_all(&there, said, report.lost);
			assert_true(sound || same_file(report.kept, before.path));
			repaired += !sound;
			opened += sound;
		}
		/* Without a repair: all, or a word. */
		r = look(&before, &there);
		if (r == 0)
			must_account_for_all(&there, there.told, 0);
		scratch_remove(&copy);
		scratch_remove(&before);
	}
	print_message("%u repaired, %u sound, %u beyond repair\n", repaired, opened, hopeless);
	assert_true(repaired > ROUNDS / 4);
}

/* Aim: a record in the middle that does not match is set aside by a repair, with the bytes that are
 * there, and the journal opens and goes on. */
static void test_bad_record(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 50), 0);
	must_commit(journal);
	sw_journal_gave_out(journal, 7);
	sw_journal_close(journal);
	char line[300];
	snprintf(line, sizeof line,
		 "python3 -c \"import sqlite3; d = sqlite3.connect('%s'); d.execute('UPDATE records SET at = 5 WHERE seq = 12'); "
		 "d.execute('DELETE FROM records WHERE seq = 20'); d.commit()\"",
		 scratch->path);
	assert_int_equal(system(line), 0);
	struct sw_journal_report report;
	struct sw_err err = {0};
	assert_int_equal(sw_journal_check(scratch->path, NULL, &report, &err), 0);
	assert_false(report.sound);
	assert_true(report.usable);
	assert_int_equal(report.bad_count, 2);
	assert_int_equal(report.bad[0].seq, 12);
	assert_int_equal(report.bad[1].seq, 20);
	assert_int_equal(sw_journal_repair(scratch->path, NULL, &report, &err), 0);
	assert_int_equal(report.records, 48);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_aside_count(journal), 2);
	assert_int_equal(sw_journal_floor(journal), 1000);
	assert_false(sw_journal_is_unsure(journal));
	assert_string_equal(sw_journal_news(journal), "");
	assert_int_equal(append(journal, 3), 0);
	must_commit(journal);
	sw_journal_close(journal);
	assert_int_equal(sw_journal_check(scratch->path, NULL, &report, &err), 0);
	assert_true(report.sound);
	assert_int_equal(report.aside, 2);
	assert_int_equal(report.last, 53);
}

/* Aim: records that the mark knows of and that are gone are accepted by a repair, which says so;
 * numbers go on above those that were given out. */
static void test_lost_end(void **state)
{
	const struct scratch *scratch = *state;
	make(scratch);
	assert_int_equal(unlink(beside(scratch, "-wal")), 0);
	struct there there;
	assert_int_equal(look(scratch, &there), SW_EINPUT);
	struct sw_journal_report report;
	struct sw_err err = {0};
	assert_int_equal(sw_journal_repair(scratch->path, NULL, &report, &err), 0);
	assert_int_equal(report.lost, RECORDS / 3);
	assert_int_equal(look(scratch, &there), 0);
	assert_int_equal(there.last, RECORDS / 3 * 2);
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(sw_journal_floor(journal), 2000);
	sw_journal_close(journal);
}

/* Aim: a copy is put back only where that was wished, the old files stay, and numbers given out
 * since then are known, or known to be unknown. */
static void test_restore(void **state)
{
	const struct scratch *scratch = *state;
	struct scratch copy;
	scratch_make(&copy);
	struct sw_err err = {0};
	struct sw_journal_report report;
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 10), 0);
	must_commit(journal);
	sw_journal_gave_out(journal, 10);
	sw_journal_close(journal);
	assert_int_equal(sw_journal_copy(scratch->path, copy.path, NULL, &err), 0);
	assert_int_equal(sw_journal_copy(scratch->path, copy.path, NULL, NULL), SW_EINPUT);
	journal = must_open(scratch->path);
	assert_int_equal(append(journal, 5), 0);
	must_commit(journal);
	sw_journal_gave_out(journal, 5500);
	sw_journal_close(journal);
	assert_int_equal(sw_journal_restore(copy.path, scratch->path, false, NULL, &report, &err), SW_EINPUT);
	assert_contains(err.hint, "--force");
	sw_err_clear(&err);
	if (sw_journal_restore(copy.path, scratch->path, true, NULL, &report, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(report.floor, 6000);
	assert_int_equal(access(report.kept, F_OK), 0);
	journal = must_open(scratch->path);
	assert_int_equal(sw_journal_last_seq(journal), 10);
	assert_int_equal(sw_journal_floor(journal), 6000);
	assert_false(sw_journal_is_unsure(journal));
	assert_string_equal(sw_journal_news(journal), "");
	must_be_whole(journal);
	sw_journal_close(journal);
	/* On a new machine nothing tells. */
	struct scratch anew;
	scratch_make(&anew);
	assert_int_equal(sw_journal_restore(copy.path, anew.path, false, NULL, &report, &err), 0);
	assert_true(report.unsure);
	journal = must_open(anew.path);
	assert_true(sw_journal_is_unsure(journal));
	sw_journal_close(journal);
	/* A copy that is damaged is not put anywhere. */
	assert_int_equal(truncate(copy.path, 5000), 0);
	assert_int_equal(sw_journal_restore(copy.path, scratch->path, true, NULL, &report, NULL), SW_EINPUT);
	journal = must_open(scratch->path);
	must_be_whole(journal);
	sw_journal_close(journal);
	scratch_remove(&anew);
	scratch_remove(&copy);
}

/* Aim: killed between any two steps of putting a new file in place, the next one that opens the
 * journal has the new one whole, and never with the log of the old one. */
static void test_killed_while_swapping(void **state)
{
	const struct scratch *scratch = *state;
	struct scratch made;
	scratch_make(&made);
	struct sw_journal *journal = must_open(made.path);
	assert_int_equal(append(journal, 33), 0);
	must_commit(journal);
	sw_journal_close(journal);
	for (int steps = 0; steps <= 3; steps++) {
		struct scratch place;
		scratch_make(&place);
		make(&place);
		struct sw_journal_report report;
		struct sw_err err = {0};
		char copy[200];
		snprintf(copy, sizeof copy, "%s.copy", made.path);
		unlink(copy);
		/* What a restore has made when it is killed: the new file
		 * under the name that counts. */
		assert_int_equal(sw_journal_copy(made.path, copy, NULL, &err), 0);
		struct scratch third;
		scratch_make(&third);
		assert_int_equal(sw_journal_restore(copy, third.path, false, NULL, &report, &err), 0);
		assert_int_equal(rename(third.path, beside(&place, ".next")), 0);
		if (steps > 0)
			unlink(beside(&place, "-wal"));
		if (steps > 1)
			unlink(beside(&place, ".mark"));
		if (steps > 2)
			unlink(place.path);
		journal = must_open(place.path);
		assert_int_equal(sw_journal_last_seq(journal), 33);
		must_be_whole(journal);
		sw_journal_close(journal);
		assert_int_not_equal(access(beside(&place, ".next"), F_OK), 0);
		scratch_remove(&third);
		scratch_remove(&place);
	}
	(void)scratch;
	scratch_remove(&made);
}

/* Aim: a disk that is full in the middle of a repair, a copy or a restore leaves what was there. */
static void test_full_disk(void **state)
{
	const struct scratch *scratch = *state;
	struct scratch before, good;
	scratch_make(&before);
	scratch_make(&good);
	make(&good);
	make(scratch);
	assert_int_equal(unlink(beside(scratch, "-wal")), 0);
	scratch_copy(scratch, &before);
	char copy[200];
	snprintf(copy, sizeof copy, "%s.copy", good.path);
	for (rlim_t limit = 4096; limit <= 128 << 10; limit *= 2) {
		pid_t child = fork();
		if (child == 0) {
			signal(SIGXFSZ, SIG_IGN);
			setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, RLIM_INFINITY});
			struct sw_journal_report report;
			struct sw_err err = {0}, other = {0};
			int r = sw_journal_repair(scratch->path, NULL, &report, &err);
			int c = sw_journal_copy(good.path, copy, NULL, &other);
			_exit(r == SW_EIO && c == SW_EIO && access(copy, F_OK) != 0 ? 0 : r == 0 ? 2 : 1);
		}
		int status = -1;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_true(same_file(scratch->path, before.path));
		assert_int_not_equal(access(beside(scratch, ".repair"), F_OK), 0);
		assert_int_not_equal(access(beside(scratch, ".next"), F_OK), 0);
	}
	struct sw_journal_report report;
	struct sw_err err = {0};
	assert_int_equal(sw_journal_repair(scratch->path, NULL, &report, &err), 0);
	scratch_remove(&before);
	scratch_remove(&good);
}

/* Aim: a copy that is made in steps while records are stored is whole, and has what was
 * stored before its last step. */
static void test_online(void **state)
{
	const struct scratch *scratch = *state;
	struct scratch copy;
	scratch_make(&copy);
	struct sw_err err = {0};
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(append(journal, 2000), 0);
	must_commit(journal);
	int fd = open(copy.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	struct sw_journal_backup *backup = NULL;
	assert_int_equal(sw_journal_backup_begin(journal, copy.path, &backup, &err), 0);
	bool more = true;
	unsigned steps = 0;
	while (more) {
		if (sw_journal_backup_step(backup, &more, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		if (more) {
			assert_int_equal(append(journal, 3), 0);
			must_commit(journal);
			if (steps % 5 == 2)
				assert_int_equal(write_snapshot(journal, sw_journal_last_seq(journal), 20, NULL), 0);
		}
		steps++;
	}
	assert_true(steps > 3);
	sw_journal_backup_free(backup);
	uint64_t last = sw_journal_last_seq(journal);
	sw_journal_close(journal);
	struct sw_journal_report report;
	assert_int_equal(sw_journal_check(copy.path, NULL, &report, &err), 0);
	assert_int_equal(report.last, last);
	assert_int_equal(report.bad_count, 0);
	journal = must_open(copy.path);
	assert_contains(sw_journal_news(journal), "mark");
	must_be_whole(journal);
	sw_journal_close(journal);
	scratch_remove(&copy);
}

/* Aim: a journal that is in use, one that is not there, and a file of others are refused with
 * words, and stay as they are. */
static void test_refused(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal_report report;
	struct sw_err err = {0};
	assert_int_equal(sw_journal_check(scratch->path, NULL, &report, &err), SW_ENOTFOUND);
	assert_int_not_equal(access(beside(scratch, ".lock"), F_OK), 0);
	FILE *file = fopen(scratch->path, "we");
	fputs("not a journal", file);
	fclose(file);
	sw_err_clear(&err);
	assert_int_equal(sw_journal_repair(scratch->path, NULL, &report, &err), SW_EINPUT);
	unlink(scratch->path);
	pid_t child = fork();
	if (child == 0) {
		struct sw_journal *journal = NULL;
		if (sw_journal_open(scratch->path, &journal, NULL) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	for (int i = 0; i < 1000 && access(beside(scratch, ".mark"), F_OK) != 0; i++)
		usleep(10000);
	sw_err_clear(&err);
	assert_true(sw_journal_check(scratch->path, NULL, &report, &err) < 0);
	assert_contains(err.fact, "in use");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_damaged_at_random),	  TEST(test_bad_record), TEST(test_lost_end), TEST(test_restore),
		TEST(test_killed_while_swapping), TEST(test_full_disk),	 TEST(test_online),   TEST(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
