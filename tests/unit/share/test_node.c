/* Ledgers of host memory of several users: what one of them writes into his own takes no more
 * than the others' equal parts leave. Needs root, to be several users. */
#include "share/node.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define UNIT (UINT64_C(1) << 30)
#define MOST (12 * UNIT)
enum { ALICE = 65531, BOB = 65532 };

static char folder[64], base[96];

static int set_up(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	snprintf(folder, sizeof folder, "/tmp/sw-ledgers-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0711), 0);
	snprintf(base, sizeof base, "%s/ledger", folder);
	setenv(SW_SHARE_NODE_ENV, base, 1);
	assert_true(sw_share_node_limit(MOST));
	return 0;
}

static int tear_down(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return geteuid() == 0 ? system(command) : 0;
}

static void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("only root has ledgers of several users\n");
	skip();
}

static const char *path_of(uid_t uid)
{
	static char path[128];
	snprintf(path, sizeof path, "%s-%u", base, (unsigned)uid);
	return path;
}

/* A job of that user begins. */
static void join(uid_t uid)
{
	const char *const uuids[] = {"GPU-00112233-4455-6677-8899-aabbccddeeff"};
	struct sw_share_page *page = NULL;
	char path[128];
	snprintf(path, sizeof path, "%s/page", folder);
	assert_int_equal(sw_share_page_new(path, uuids, 1, &page, NULL), 0);
	sw_share_node_join(page, uid, uid);
	assert_string_equal(sw_share_page_shared(page)->host_ledger, path_of(uid));
	sw_share_page_close(page);
	unlink(path);
}

static void write_word(uid_t uid, size_t place, uint64_t value)
{
	int fd = open(path_of(uid), O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &value, sizeof value, (off_t)place), sizeof value);
	close(fd);
}

/* A process of that user says that it holds so much, and lives until the file is closed. */
static int hold(uid_t uid, unsigned slot, uint64_t bytes)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1};
	int fd = open(path_of(uid), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
	assert_int_equal(pwrite(fd, &bytes, sizeof bytes, (off_t)(offsetof(struct sw_host_ledger, slots) + slot * sizeof bytes)),
			 sizeof bytes);
	return fd;
}

static struct sw_host_ledger_head head_of(uid_t uid)
{
	struct sw_host_ledger_head head;
	int fd = open(path_of(uid), O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, &head, sizeof head, 0), sizeof head);
	close(fd);
	return head;
}

static uint64_t balance(void)
{
	uint64_t used = 0, most = 0;
	assert_true(sw_share_node_balance(&used, &most));
	assert_int_equal(most, MOST);
	return used;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Each user has a ledger that is his alone, with the agent's bound, and reads there what the
 * others hold; what a process held is gone with it. */
static void test_each_hears_of_the_others(void **state)
{
	(void)state;
	need_root();
	join(ALICE);
	join(BOB);
	join(BOB); /* again: it is the same */
	struct stat status;
	assert_int_equal(stat(path_of(ALICE), &status), 0);
	assert_true(status.st_uid == ALICE && (status.st_mode & 0777) == 0600);
	int hers = hold(ALICE, 3, 2 * UNIT), more = hold(ALICE, 9, UNIT), his = hold(BOB, 3, UNIT);
	assert_int_equal(balance(), 4 * UNIT);
	assert_int_equal(head_of(ALICE).others_bytes, UNIT);
	assert_int_equal(head_of(BOB).others_bytes, 3 * UNIT);
	assert_true(head_of(BOB).others_ns > 0 && head_of(BOB).most_bytes == MOST);
	close(more);
	assert_int_equal(balance(), 3 * UNIT);
	assert_int_equal(head_of(BOB).others_bytes, 2 * UNIT);
	close(hers);
	close(his);
	assert_int_equal(balance(), 0);
	assert_int_equal(head_of(BOB).others_bytes, 0);
}

/* Whatever one writes into his ledger, half of the bound is left for the other, which need give
 * nothing of that back; and the bound that he wrote is gone again. */
static void test_lies_are_bounded(void **state)
{
	(void)state;
	need_root();
	join(ALICE);
	join(BOB);
	int hers = hold(ALICE, 3, 5 * UNIT), lies[3];
	for (unsigned i = 0; i < 3; i++)
		lies[i] = hold(BOB, i, UINT64_MAX - i);
	write_word(BOB, offsetof(struct sw_host_ledger, head.most_bytes), UINT64_MAX);
	write_word(BOB, offsetof(struct sw_host_ledger, head.refused_ns), now_ns());
	(void)balance();
	assert_int_equal(head_of(ALICE).others_bytes, MOST / 2);
	assert_int_equal(head_of(ALICE).refused_ns, 0);
	assert_int_equal(head_of(ALICE).most_bytes, MOST);
	assert_int_equal(head_of(BOB).most_bytes, MOST);
	for (unsigned i = 0; i < 3; i++)
		close(lies[i]);
	/* One that has less than its part and lacks some: one that has more hears of it, since
	 * what is made ahead may go. */
	int more = hold(ALICE, 4, 3 * UNIT), his = hold(BOB, 0, UNIT);
	write_word(BOB, offsetof(struct sw_host_ledger, head.refused_ns), now_ns());
	(void)balance();
	assert_true(head_of(ALICE).refused_ns > 0);
	close(more);
	close(hers);
	close(his);
}

static void become(uid_t uid)
{
	assert_int_equal(setresgid(uid, uid, uid), 0);
	assert_int_equal(setresuid(uid, uid, uid), 0);
}

/* What BOB tries from a process of his own; the number of what went wrong. */
static int attack(void)
{
	become(BOB);
	char name[160], own[160];
	snprintf(name, sizeof name, "%s-1", base);
	snprintf(own, sizeof own, "%s", path_of(BOB));
	if (open(path_of(ALICE), O_RDONLY) >= 0 || open(path_of(ALICE), O_RDWR) >= 0 || truncate(path_of(ALICE), 0) == 0)
		return 1;
	if (unlink(path_of(ALICE)) == 0 || rename(own, path_of(ALICE)) == 0 || chmod(path_of(ALICE), 0666) == 0)
		return 2;
	if (open(name, O_RDWR | O_CREAT, 0600) >= 0 || open(base, O_RDONLY) >= 0)
		return 3;
	/* His own he may do what he likes with. */
	char garbage[sizeof(struct sw_host_ledger)];
	memset(garbage, 0xff, sizeof garbage);
	int fd = open(path_of(BOB), O_RDWR);
	if (fd < 0 || pwrite(fd, garbage, sizeof garbage, 0) != (ssize_t)sizeof garbage || ftruncate(fd, 1 << 24) != 0)
		return 4;
	return chmod(path_of(BOB), 0666) == 0 && ftruncate(fd, 100) == 0 ? 0 : 5;
}

/* Another user can neither read, lock, write, shorten, remove nor replace a ledger, nor put
 * files beside it; one that its own user has spoilt is made anew for his next job. */
static void test_other_users_cannot_touch_it(void **state)
{
	(void)state;
	need_root();
	join(ALICE);
	join(BOB);
	int hers = hold(ALICE, 3, 2 * UNIT), status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(attack());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(balance(), 2 * UNIT);
	join(BOB);
	assert_int_equal(balance(), 2 * UNIT);
	assert_int_equal(head_of(BOB).others_bytes, 2 * UNIT);
	close(hers);
}

/* A ledger that its user has made huge is cut, since all of them lie in one file system. */
static void test_huge_is_cut(void **state)
{
	(void)state;
	need_root();
	join(BOB);
	struct stat status;
	assert_int_equal(truncate(path_of(BOB), 1 << 30), 0);
	assert_int_equal(balance(), 0);
	assert_int_equal(stat(path_of(BOB), &status), 0);
	assert_true(status.st_size < 1 << 20);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_hears_of_the_others),
		TEST(test_lies_are_bounded),
		TEST(test_other_users_cannot_touch_it),
		TEST(test_huge_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
