/* The journal when its process is killed (-9) at random moments, or runs out of memory. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/rng.h"
#include "unit/store/scratch.h"

enum { ROUNDS = 100, ACTIONS = 7 };

/* What the child says before it dies. */
struct shared {
	_Atomic uint64_t acknowledged, attempted, commits, snapshots, prunes;
};

/* Works until it is killed. */
__attribute__((noreturn)) static void live(const char *path, struct shared *shared, uint64_t seed)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, seed);
	struct sw_journal *journal = NULL;
	if (sw_journal_open(path, &journal, NULL) < 0)
		_exit(1);
	for (;;) {
		uint64_t last = sw_journal_last_seq(journal);
		uint64_t action = sw_rng_below(&rng, ACTIONS);
		bool more;
		if (action == 0 && last > 0) {
			if (write_snapshot(journal, last, 1 + sw_rng_below(&rng, 1500), NULL) < 0)
				_exit(2);
			shared->snapshots++;
		} else if (action == 1) {
			if (sw_journal_prune(journal, sw_rng_below(&rng, last + 1), &more, NULL) == 0)
				shared->prunes++;
		} else {
			uint64_t count = 1 + sw_rng_below(&rng, 60);
			if (append(journal, count) < 0)
				_exit(3);
			shared->attempted = last + count;
			if (sw_journal_commit(journal, NULL) < 0)
				_exit(4);
			shared->acknowledged = last + count;
			shared->commits++;
		}
	}
}

/* Kills the child a moment after it has committed some more times; its status. */
static int let_live(pid_t child, struct shared *shared, uint64_t commits, long moment_ns)
{
	int status = 0;
	uint64_t until = shared->commits + commits;
	while (shared->commits < until && waitpid(child, &status, WNOHANG) == 0)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	nanosleep(&(struct timespec){.tv_nsec = moment_ns}, NULL);
	if (status == 0) {
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	return status;
}

/* Whatever moment a process is killed at, all that a commit acknowledged is there, and a batch is
 * there whole or not at all. */
static void test_killed(void **state)
{
	const struct scratch *scratch = *state;
	struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	struct sw_rng rng;
	sw_rng_seed(&rng, 20240607);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t seed = sw_rng_next(&rng);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			live(scratch->path, shared, seed);
		int status = let_live(child, shared, sw_rng_below(&rng, 12), (long)sw_rng_below(&rng, 3000000));
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

		SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = must_open(scratch->path);
		uint64_t last = sw_journal_last_seq(journal);
		assert_true(last == shared->acknowledged || last == shared->attempted);
		must_be_whole(journal);
		/* What is there now is what the next round must find. */
		shared->acknowledged = shared->attempted = last;
	}
	print_message("%d kills, %lu commits, %lu snapshots, %lu prunes\n", ROUNDS, (unsigned long)shared->commits,
		      (unsigned long)shared->snapshots, (unsigned long)shared->prunes);
	assert_true(shared->commits > ROUNDS && shared->snapshots > 0 && shared->prunes > 0);
	munmap(shared, sizeof *shared);
}

/* SQLite's memory, of which one request fails. */
static struct {
	sqlite3_mem_methods real;
	unsigned countdown; /* 0: all work */
	bool has_failed;
} memory;

static bool refuse(void)
{
	if (memory.countdown == 0 || --memory.countdown > 0)
		return false;
	memory.has_failed = true;
	return true;
}

static void *failing_malloc(int size)
{
	return refuse() ? NULL : memory.real.xMalloc(size);
}

static void *failing_realloc(void *old, int size)
{
	return refuse() ? NULL : memory.real.xRealloc(old, size);
}

static void install_memory(void)
{
	assert_int_equal(sqlite3_shutdown(), SQLITE_OK);
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory.real), SQLITE_OK);
	sqlite3_mem_methods failing = memory.real;
	failing.xMalloc = failing_malloc;
	failing.xRealloc = failing_realloc;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing), SQLITE_OK);
	/* Without a private store of small pieces every request comes here. */
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
	assert_int_equal(sqlite3_initialize(), SQLITE_OK);
}

/* Opens, commits twice, stores a snapshot, prunes, replays; returns the first error. Counts
 * what was acknowledged. */
static int live_shortly(const char *path, uint64_t *acknowledged)
{
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = NULL;
	int r = sw_journal_open(path, &journal, NULL);
	if (r < 0)
		return r;
	bool more;
	for (int i = 0; i < 2; i++) {
		int appended = append(journal, 30);
		r = sw_journal_commit(journal, NULL);
		assert_true(appended == 0 || r == appended);
		if (r < 0)
			return r;
		*acknowledged += 30;
	}
	r = write_snapshot(journal, 35, 10, NULL);
	if (r == 0)
		r = write_snapshot(journal, 40, 10, NULL);
	if (r == 0)
		r = sw_journal_prune(journal, 20, &more, NULL);
	return r;
}

/* When any one request for memory fails, the error says so or nothing is lost by it, and
 * nothing acknowledged is gone. */
static void test_no_memory(void **state)
{
	(void)state;
	install_memory();
	unsigned at = 1;
	do {
		struct scratch scratch;
		scratch_make(&scratch);
		uint64_t acknowledged = 0;
		memory.has_failed = false;
		memory.countdown = at;
		int r = live_shortly(scratch.path, &acknowledged);
		memory.countdown = 0;
		assert_true(r == 0 || (memory.has_failed && r == SW_ENOMEM));
		struct sw_journal *journal = must_open(scratch.path);
		assert_int_equal(sw_journal_last_seq(journal), acknowledged);
		must_be_whole(journal);
		sw_journal_close(journal);
		scratch_remove(&scratch);
		at += at < 400 ? 1 : at / 40;
	} while (memory.has_failed);
	assert_true(at > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
