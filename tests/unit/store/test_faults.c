/* The journal on disks that are full, fail, or lose power, at every operation in turn. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/vec.h"
#include "unit/store/disk.h"

/* What is known from outside: the records that a commit acknowledged, and those
 * of the commit under way. */
static uint64_t acknowledged, attempted;

/* Opens a copy as after a crash: all that was acknowledged is there, and of a batch
 * under way all or nothing. */
static void check_copy(const struct scratch *copy, uint64_t least, uint64_t most)
{
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(copy->path);
	uint64_t last = sw_journal_last_seq(journal);
	if (last != least && last != most)
		fail_msg("%lu records, expected %lu or %lu", (unsigned long)last, (unsigned long)least, (unsigned long)most);
	must_be_whole(journal);
}

static int commit(struct sw_journal *journal, uint64_t count, struct sw_err *err)
{
	int appended = append(journal, count);
	attempted = acknowledged + count;
	int r = sw_journal_commit(journal, err);
	/* A batch whose append failed must not be stored. */
	assert_true(appended == 0 || r == appended);
	if (r == 0)
		acknowledged = attempted;
	return r;
}

/* The n-th thing that a journal is made to do; false when there is nothing more. */
static bool work(struct sw_journal *journal, unsigned n, int *ret_result, struct sw_err *err)
{
	bool more;
	switch (n) {
	case 0:
	case 1:
	case 3:
	case 7:
		*ret_result = commit(journal, n == 1 ? 60 : 7, err);
		return true;
	case 2:
	case 4:
	case 6:
		*ret_result = write_snapshot(journal, sw_journal_last_seq(journal), 40, err);
		return true;
	case 5:
		*ret_result = sw_journal_prune(journal, 50, &more, err);
		return true;
	default:
		return false;
	}
}

static void check_words(const struct sw_err *err, enum disk_fault fault, unsigned n)
{
	if (n == 0 || n == 1 || n == 3 || n == 7)
		assert_contains(err->fact, n == 1 ? "cannot store 60 records" : "cannot store 7 records");
	if (fault == DISK_FULL)
		assert_contains(err->detail, "the disk is full");
	assert_true(err->detail[0] != '\0');
}

/* Does all the work with a fault at one operation; returns whether it was reached. */
static bool work_with_fault(enum disk_fault fault, unsigned at, bool lasts)
{
	struct scratch scratch, copy;
	scratch_make(&scratch);
	scratch_make(&copy);
	disk_reset();
	acknowledged = attempted = 0;
	struct sw_journal *journal = must_open(scratch.path);
	disk_reset();
	disk_break(fault, at, lasts);
	int r;
	struct sw_err err = {0};
	for (unsigned n = 0; work(journal, n, &r, &err); n++) {
		if (r == 0)
			continue;
		assert_true(disk_has_failed());
		assert_int_equal(r, SW_EIO);
		check_words(&err, fault, n);
		/* A disk that refuses everything also refuses to take back.
		 * The words then say so. */
		bool may_return = strstr(err.hint, "bring them back") != NULL;
		assert_true(!may_return || (lasts && fault != DISK_FULL));
		scratch_copy(&scratch, &copy);
		disk_repair();
		check_copy(&copy, acknowledged, may_return ? attempted : acknowledged);
		/* The journal can be used on. */
		must_be_whole(journal);
		sw_err_clear(&err);
		assert_true(work(journal, n, &r, &err));
		assert_int_equal(r, 0);
	}
	assert_int_equal(sw_journal_last_seq(journal), acknowledged);
	must_be_whole(journal);
	bool reached = disk_has_failed();
	disk_repair();
	sw_journal_close(journal);
	scratch_copy(&scratch, &copy);
	check_copy(&copy, acknowledged, acknowledged);
	assert_int_equal(acknowledged, 81);
	scratch_remove(&scratch);
	scratch_remove(&copy);
	return reached;
}

static void break_everywhere(enum disk_fault fault, bool lasts)
{
	unsigned at = 1;
	/* Every operation at first, then some, since they repeat themselves. */
	while (work_with_fault(fault, at, lasts))
		at += at < 60 ? 1 : at / 12;
	assert_true(at > 60);
	disk_reset();
}

/* A disk without space, from any operation on: what was not stored is not there, and
 * works once there is space. */
static void test_full(void **state)
{
	(void)state;
	break_everywhere(DISK_FULL, false);
	break_everywhere(DISK_FULL, true);
}

/* A disk that fails once: nothing of a refused batch comes back, even after a crash. */
static void test_fails_once(void **state)
{
	(void)state;
	break_everywhere(DISK_EIO, false);
	break_everywhere(DISK_NO_SYNC, false);
}

/* A disk that fails for good: nothing acknowledged is lost, and where a refused batch may come
 * back the error says so. */
static void test_fails_for_good(void **state)
{
	(void)state;
	break_everywhere(DISK_EIO, true);
	break_everywhere(DISK_NO_SYNC, true);
}

/* A fault while a journal is opened is an error, and the next try works. */
static void test_open_fails(void **state)
{
	(void)state;
	for (int fault = DISK_FULL; fault <= DISK_NO_SYNC; fault++) {
		bool reached = true;
		for (unsigned at = 1; reached; at++) {
			struct scratch scratch;
			scratch_make(&scratch);
			disk_reset();
			disk_break((enum disk_fault)fault, at, false);
			struct sw_err err = {0};
			struct sw_journal *journal = NULL;
			int r = sw_journal_open(scratch.path, &journal, &err);
			reached = disk_has_failed();
			assert_true(r == 0 || (reached && r == SW_EIO && journal == NULL && err.detail[0] != '\0'));
			if (r < 0)
				journal = must_open(scratch.path);
			must_be_whole(journal);
			sw_journal_close(journal);
			scratch_remove(&scratch);
		}
	}
	disk_reset();
}

/* Power cuts that wait to be looked at. */
static struct {
	struct sw_rng rng;
	struct {
		struct scratch scratch;
		uint64_t least, most;
	} cuts[64];
	size_t count;
	unsigned total;
} cuts;

static void cut_now_and_then(unsigned operation)
{
	(void)operation;
	if (sw_rng_below(&cuts.rng, 30) != 0 || cuts.count == sizeof cuts.cuts / sizeof cuts.cuts[0])
		return;
	scratch_make(&cuts.cuts[cuts.count].scratch);
	disk_cut_power(&cuts.cuts[cuts.count].scratch, &cuts.rng);
	cuts.cuts[cuts.count].least = acknowledged;
	cuts.cuts[cuts.count++].most = attempted;
}

static void check_cuts(void)
{
	for (size_t i = 0; i < cuts.count; i++) {
		check_copy(&cuts.cuts[i].scratch, cuts.cuts[i].least, cuts.cuts[i].most);
		scratch_remove(&cuts.cuts[i].scratch);
	}
	cuts.total += (unsigned)cuts.count;
	cuts.count = 0;
}

static void work_with_cuts(uint64_t seed)
{
	struct scratch scratch;
	scratch_make(&scratch);
	struct sw_rng rng;
	sw_rng_seed(&rng, seed);
	sw_rng_seed(&cuts.rng, seed + 1000000);
	disk_reset();
	acknowledged = attempted = 0;
	disk_watch(&scratch, cut_now_and_then);
	struct sw_journal *journal = must_open(scratch.path);
	for (int step = 0; step < 25; step++) {
		struct sw_err err = {0};
		bool more;
		if (sw_rng_below(&rng, 8) == 0 && acknowledged > 0)
			assert_int_equal(write_snapshot(journal, acknowledged, 1 + sw_rng_below(&rng, 60), &err), 0);
		else if (sw_rng_below(&rng, 8) == 0)
			(void)sw_journal_prune(journal, sw_rng_below(&rng, acknowledged + 1), &more, NULL);
		else
			assert_int_equal(commit(journal, 1 + sw_rng_below(&rng, 80), &err), 0);
		check_cuts();
	}
	sw_journal_close(journal);
	check_cuts();
	disk_reset();
	scratch_remove(&scratch);
}

/* Power cuts at random moments lose nothing that was acknowledged and tear nothing,
 * whatever sectors arrived. */
static void test_power_cuts(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		work_with_cuts(seed);
	print_message("%u power cuts\n", cuts.total);
	assert_true(cuts.total > 200);
}

/* Commits until the disk refuses; false when it does not, or with other words. */
static bool fill_up(struct sw_journal *journal, const char *detail)
{
	struct sw_err err = {0};
	int r = 0;
	for (int i = 0; i < 1000 && r == 0; i++)
		r = commit(journal, 20, &err);
	must_be_whole(journal);
	if (r == SW_EIO && sw_journal_last_seq(journal) == acknowledged && strstr(err.fact, "cannot store 20 records") != NULL &&
	    strstr(err.detail, detail) != NULL)
		return true;
	fprintf(stderr, "%s: %s\n", err.fact, err.detail);
	return false;
}

/* Fills the disk below `path` with records until it refuses, gives space back,
 * goes on; an exit status. */
static int fill_disk(const char *path, const char *ballast, const char *detail)
{
	struct sw_journal *journal = must_open(path);
	acknowledged = 0;
	if (!fill_up(journal, detail) || !fill_up(journal, detail))
		return 1;
	if (ballast != NULL)
		unlink(ballast);
	else
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
	must_be_whole(journal);
	if (commit(journal, 20, NULL) != 0)
		return 2;
	must_be_whole(journal);
	sw_journal_close(journal);
	journal = must_open(path);
	must_be_whole(journal);
	bool complete = sw_journal_last_seq(journal) == acknowledged;
	sw_journal_close(journal);
	return complete ? 0 : 3;
}

static int wait_for(pid_t child)
{
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The limit of the operating system for the size of a file is met as a full disk is. */
static void test_file_limit(void **state)
{
	const struct scratch *scratch = *state;
	pid_t child = fork();
	if (child == 0) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){3 << 20, RLIM_INFINITY});
		_exit(fill_disk(scratch->path, NULL, "File too large"));
	}
	assert_int_equal(wait_for(child), 0);
}

enum { SKIPPED = 77 };

static int fill_small_disk(const struct scratch *scratch)
{
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", scratch->folder, "tmpfs", 0, "size=4m") != 0)
		return SKIPPED;
	char ballast[128];
	snprintf(ballast, sizeof ballast, "%s/ballast", scratch->folder);
	FILE *file = fopen(ballast, "w");
	for (int i = 0; file != NULL && i < 2 << 20; i++)
		fputc('x', file);
	if (file == NULL || fclose(file) != 0)
		return 6;
	return fill_disk(scratch->path, ballast, "the disk is full");
}

/* A real file system that is full. */
static void test_small_disk(void **state)
{
	pid_t child = fork();
	if (child == 0)
		_exit(fill_small_disk(*state));
	int status = wait_for(child);
	if (status == SKIPPED) {
		print_message("skipped: no permission to mount a small disk\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest plain[] = {
		cmocka_unit_test_setup_teardown(test_file_limit, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_small_disk, scratch_setup, scratch_teardown),
	};
	const struct CMUnitTest faulty[] = {
		cmocka_unit_test(test_full),	   cmocka_unit_test(test_fails_once), cmocka_unit_test(test_fails_for_good),
		cmocka_unit_test(test_open_fails), cmocka_unit_test(test_power_cuts),
	};
	int failed = cmocka_run_group_tests_name("real disks", plain, NULL, NULL);
	disk_install();
	return failed + cmocka_run_group_tests_name("failing disk", faulty, NULL, NULL);
}
