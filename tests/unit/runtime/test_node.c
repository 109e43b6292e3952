/* The machine's bound on host memory for contents of GPUs: never passed by any number of processes,
 * and free again when they are gone. */
#include "runtime/node.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "share/node.h"

#define UNIT (UINT64_C(2) << 20)
#define PATIENCE_S 60

static char folder[64], path[96];

static void set_head(size_t place, uint64_t value)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &value, sizeof value, (off_t)place), sizeof value);
	close(fd);
}

static uint64_t used(void)
{
	uint64_t bytes = UINT64_MAX, most;
	assert_true(sw_share_node_look(&bytes, &most));
	return bytes;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/sw-node-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/ledger", folder);
	setenv(SW_SHARE_NODE_ENV, path, 1);
	assert_true(sw_share_node_limit(16 * UNIT));
	set_head(offsetof(struct sw_host_ledger, head.reserve_bytes), 0);
	sw_node_open(path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sw_node_forget();
	unlink(path);
	return rmdir(folder);
}

/* ---- many processes */

enum { PROCESSES = 5, ROUNDS = 12 };

/* What each has been granted, as it says itself, for as long as it is not about to be killed. */
static struct { /* shared by all */
	_Atomic uint64_t granted[PROCESSES];
	_Atomic bool lives[PROCESSES];
	_Atomic uint64_t grants, beyond;
} * seen;

static void take_and_give(unsigned self, uint64_t seed)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, seed);
	sw_node_forget();
	sw_node_open(path);
	for (;;) {
		uint64_t held = atomic_load(&seen->granted[self]), bytes = (1 + sw_rng_below(&rng, 6)) * UNIT;
		if (sw_rng_below(&rng, 2) == 0 && held >= bytes) {
			atomic_fetch_sub(&seen->granted[self], bytes);
			sw_node_give(bytes);
		} else if (sw_node_take(bytes, sw_rng_below(&rng, 4) == 0)) {
			uint64_t sum = 0;
			atomic_fetch_add(&seen->granted[self], bytes);
			for (unsigned i = 0; i < PROCESSES; i++)
				sum += atomic_load(&seen->lives[i]) ? atomic_load(&seen->granted[i]) : 0;
			atomic_fetch_add(&seen->grants, 1);
			atomic_fetch_add(&seen->beyond, sum > 16 * UNIT);
		}
	}
}

static pid_t start(unsigned self, uint64_t seed)
{
	atomic_store(&seen->granted[self], 0);
	atomic_store(&seen->lives[self], true);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_and_give(self, seed);
	}
	return pid;
}

static void stop(unsigned self, pid_t pid)
{
	int status;
	atomic_store(&seen->lives[self], false);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void await_grants(uint64_t more)
{
	uint64_t before = atomic_load(&seen->grants);
	for (unsigned i = 0; i < PATIENCE_S * 1000 && atomic_load(&seen->grants) < before + more; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_true(atomic_load(&seen->grants) >= before + more);
}

/* Processes that take and give at random, and are killed at random moments, never have more than
 * the bound together; when all are gone, nothing is held. */
static void test_killed_processes_return_all(void **state)
{
	(void)state;
	pid_t pids[PROCESSES];
	seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(seen != MAP_FAILED);
	for (unsigned i = 0; i < PROCESSES; i++)
		pids[i] = start(i, i);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned victim = round % PROCESSES;
		await_grants(100);
		stop(victim, pids[victim]);
		pids[victim] = start(victim, PROCESSES + round);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		stop(i, pids[i]);
	assert_int_equal(atomic_load(&seen->beyond), 0);
	assert_int_equal(used(), 0);
	/* And all of it can be had by one that does not know that it was looked at. */
	assert_true(sw_node_take(16 * UNIT, false));
	assert_false(sw_node_take(UNIT, false));
	sw_node_give(16 * UNIT);
	munmap(seen, sizeof *seen);
}

/* What a killed one held can be had at once, without a look. */
static void test_taken_from_the_dead(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		sw_node_forget();
		sw_node_open(path);
		_exit(sw_node_take(16 * UNIT, false) && kill(getpid(), SIGKILL) == 0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_true(sw_node_has_room(16 * UNIT));
	assert_true(sw_node_take(16 * UNIT, false));
	assert_int_equal(used(), 16 * UNIT);
}

/* A child of fork() has nothing, and does not keep what its parent had, whichever of them ends
 * first; nor does a program that takes its place. */
static void test_fork_and_exec(void **state)
{
	(void)state;
	int ready[2], status;
	assert_int_equal(pipe(ready), 0);
	assert_true(sw_node_take(UNIT, false));
	pid_t child = fork();
	if (child == 0) {
		sw_node_forget();
		_exit(sw_node_take(UNIT, false) ? 0 : 1); /* as without a ledger */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(used(), UNIT);
	sw_node_give(UNIT);
	/* A parent that dies before its child. */
	pid_t parent = fork();
	if (parent == 0) {
		sw_node_forget();
		sw_node_open(path);
		(void)!sw_node_take(3 * UNIT, false);
		if (fork() == 0) {
			pid_t self = getpid();
			sw_node_forget();
			(void)!write(ready[1], &self, sizeof self);
			alarm(PATIENCE_S);
		}
		for (;;)
			pause();
	}
	pid_t orphan;
	char word;
	assert_int_equal(read(ready[0], &orphan, sizeof orphan), sizeof orphan);
	assert_int_equal(used(), 3 * UNIT);
	kill(parent, SIGKILL);
	waitpid(parent, &status, 0);
	assert_int_equal(kill(orphan, 0), 0);
	assert_int_equal(used(), 0);
	kill(orphan, SIGKILL);
	pid_t other = fork();
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sw_node_forget();
		sw_node_open(path);
		(void)!sw_node_take(3 * UNIT, false);
		(void)!write(ready[1], "r", 1);
		execlp("sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	for (unsigned i = 0; i < PATIENCE_S * 1000 && used() > 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(kill(other, 0), 0);
	assert_int_equal(used(), 0);
	kill(other, SIGKILL);
	waitpid(other, &status, 0);
	close(ready[0]);
	close(ready[1]);
}

/* ---- one process */

static void *take_much(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < 300; i++)
		if (sw_node_take(UNIT, i % 2 == 0))
			sw_node_give(UNIT);
	return NULL;
}

/* Threads of one process count as one. */
static void test_threads(void **state)
{
	(void)state;
	pthread_t threads[4];
	assert_true(sw_node_take(UNIT, false));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_much, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(used(), UNIT);
}

/* What is made ahead leaves room for those that need some now, and goes when
 * one of them was refused. */
static void test_made_ahead(void **state)
{
	(void)state;
	assert_true(sw_node_take(14 * UNIT, true));
	assert_false(sw_node_take(UNIT, true));
	assert_false(sw_node_is_short());
	assert_true(sw_node_take(2 * UNIT, false));
	assert_true(sw_node_is_short());
	sw_node_give(8 * UNIT);
	assert_false(sw_node_is_short());
	assert_false(sw_node_has_room(9 * UNIT));
	assert_true(sw_node_is_short());
	assert_false(sw_node_take(UNIT, true));
	assert_true(sw_node_take(UNIT, false));
	/* Not for ever. */
	set_head(offsetof(struct sw_host_ledger, head.refused_ns), 1);
	assert_false(sw_node_is_short());
	assert_true(sw_node_take(UNIT, true));
	/* What can never be had is no reason. */
	assert_false(sw_node_has_room(17 * UNIT));
	assert_false(sw_node_take(17 * UNIT, false));
	assert_false(sw_node_is_short());
}

/* Where the machine itself has no more to spare, nothing is given, whatever the bound. */
static void test_full_host_memory(void **state)
{
	(void)state;
	set_head(offsetof(struct sw_host_ledger, head.reserve_bytes), UINT64_MAX);
	assert_false(sw_node_take(UNIT, false));
	assert_false(sw_node_has_room(0));
	assert_int_equal(used(), 0);
	set_head(offsetof(struct sw_host_ledger, head.reserve_bytes), 0);
	assert_true(sw_node_take(UNIT, false));
	assert_false(sw_node_take(SIZE_MAX, false));
}

/* A ledger that is shortened, spoilt or closed by a process harms none: then only what
 * the machine has counts. */
static void test_spoilt(void **state)
{
	(void)state;
	assert_true(sw_node_take(UNIT, false));
	assert_int_equal(truncate(path, 100), 0);
	assert_true(sw_node_take(UNIT, false));
	assert_int_equal(truncate(path, 0), 0);
	assert_true(sw_node_take(100 * UNIT, false));
	sw_node_give(100 * UNIT);
	assert_false(sw_node_is_short());
	uint64_t bytes, most;
	assert_false(sw_share_node_look(&bytes, &most));
	/* Its number is another file's now, into which nothing is written. */
	char name[128];
	struct stat status;
	snprintf(name, sizeof name, "%s/other", folder);
	close_range(3, ~0U, 0);
	int fds[16];
	for (unsigned i = 0; i < 16; i++)
		fds[i] = open(name, O_RDWR | O_CREAT, 0600);
	assert_true(sw_node_take(UNIT, false));
	sw_node_give(UNIT);
	assert_int_equal(stat(name, &status), 0);
	assert_int_equal(status.st_size, 0);
	for (unsigned i = 0; i < 16; i++)
		close(fds[i]);
	unlink(name);
}

/* Where it was removed, the next that is made counts, with what all processes hold already; until
 * then the old one does. */
static void test_removed(void **state)
{
	(void)state;
	assert_true(sw_node_take(3 * UNIT, false));
	assert_int_equal(unlink(path), 0);
	assert_true(sw_node_take(UNIT, false));
	assert_false(sw_node_take(16 * UNIT, false));
	assert_true(sw_share_node_limit(8 * UNIT));
	set_head(offsetof(struct sw_host_ledger, head.reserve_bytes), 0);
	assert_int_equal(used(), 0);
	assert_false(sw_node_take(5 * UNIT, false));
	assert_int_equal(used(), 4 * UNIT);
	assert_true(sw_node_take(4 * UNIT, false));
	assert_int_equal(used(), 8 * UNIT);
}

/* A program that has closed its output does not write into it. */
static void test_closed_output(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		sw_node_forget();
		close_range(0, STDERR_FILENO, 0);
		sw_node_open(path);
		bool taken = sw_node_take(UNIT, false);
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			taken = taken && write(fd, "lost", 4) < 0;
		_exit(taken ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(used(), 0);
}

/* What other users are said to hold counts against the bound, for as long as that may still be
 * true; what is needed then can be told to them. */
static void test_others_count(void **state)
{
	(void)state;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	set_head(offsetof(struct sw_host_ledger, head.others_bytes), 12 * UNIT);
	assert_true(sw_node_take(5 * UNIT, false));
	sw_node_give(5 * UNIT);
	set_head(offsetof(struct sw_host_ledger, head.others_ns), now_ns);
	assert_false(sw_node_take(3 * UNIT, true));
	assert_true(sw_node_take(4 * UNIT, false));
	assert_false(sw_node_take(UNIT, false));
	assert_false(sw_node_has_room(UNIT));
	assert_true(sw_node_is_short());
	struct sw_host_ledger_head head;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, &head, sizeof head, 0), sizeof head);
	assert_true(head.refused_ns >= (int64_t)now_ns);
	close(fd);
	/* Said so long ago that the process that said it may be gone; or in a time to come. */
	set_head(offsetof(struct sw_host_ledger, head.others_ns), now_ns - UINT64_C(61000000000));
	assert_true(sw_node_take(UNIT, false));
	set_head(offsetof(struct sw_host_ledger, head.others_ns), now_ns + UINT64_C(3600000000000));
	assert_true(sw_node_take(UNIT, false));
}

/* What is no ledger, or another user's, is not taken for one, and one that is there is kept; no
 * other user can open it. */
static void test_join(void **state)
{
	(void)state;
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_true(sw_node_take(UNIT, false));
	assert_true(sw_share_node_limit(8 * UNIT));
	uint64_t bytes = 0, most = 0;
	assert_true(sw_share_node_look(&bytes, &most));
	assert_int_equal(bytes, UNIT);
	assert_int_equal(most, 8 * UNIT);
	assert_false(sw_node_take(8 * UNIT, false));
	/* By default half of what there is. */
	assert_true(sw_share_node_limit(0));
	assert_true(sw_share_node_look(&bytes, &most));
	assert_in_range(most, 1, (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65531, 65531), 0);
		assert_false(sw_share_node_look(&bytes, &most));
		assert_false(sw_share_node_limit(UNIT));
	}
	setenv(SW_SHARE_NODE_ENV, "/dev/null", 1);
	assert_false(sw_share_node_look(&bytes, &most));
	setenv(SW_SHARE_NODE_ENV, "/nowhere/ledger", 1);
	assert_false(sw_share_node_limit(UNIT));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_killed_processes_return_all),
		TEST(test_taken_from_the_dead),
		TEST(test_fork_and_exec),
		TEST(test_threads),
		TEST(test_made_ahead),
		TEST(test_full_host_memory),
		TEST(test_spoilt),
		TEST(test_removed),
		TEST(test_closed_output),
		TEST(test_others_count),
		TEST(test_join),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
