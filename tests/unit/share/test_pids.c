/* The processes of a job are found by a process that looks from another namespace of process
 * numbers. */
#include "share/pids.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];
static struct sw_share_page *page;

static int up(void **state)
{
	(void)state;
	const char *const uuids[] = {"GPU-5ba7e001-0000-4000-8000-000000000001"};
	snprintf(path, sizeof path, "/tmp/sw-pids-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	return sw_share_page_new(path, uuids, 1, &page, NULL);
}

static int down(void **state)
{
	(void)state;
	sw_share_page_close(page);
	return unlink(path);
}

/* Opens the page if it is told to, and waits for its end. */
static pid_t start(bool opens, int *ret_end)
{
	int ready[2], stop[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(stop), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* What it has of us it closes, and opens again what it is to have. */
		for (int fd = 3; fd < 64; fd++)
			if (fd != ready[1] && fd != stop[0])
				close(fd);
		int fd = opens ? open(path, O_RDWR) : 0;
		(void)!write(ready[1], fd >= 0 ? "r" : "", 1);
		(void)!read(stop[0], &byte, 1);
		_exit(0);
	}
	close(ready[1]);
	close(stop[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*ret_end = stop[1];
	return child;
}

static void finish(pid_t child, int end)
{
	close(end);
	waitpid(child, NULL, 0);
}

/* In the same namespace each is what it says; a stranger that happens to have its number is not. */
static void test_same_namespace(void **state)
{
	(void)state;
	int end;
	assert_int_equal(sw_share_pid(page, getpid()), getpid());
	pid_t child = start(true, &end);
	assert_int_equal(sw_share_pid(page, child), child);
	finish(child, end);
	assert_int_equal(sw_share_pid(page, child), 0);
	child = start(false, &end);
	assert_int_equal(sw_share_pid(page, child), 0);
	finish(child, end);
}

/* One that calls itself 1 is found under the number that it has here. */
static void test_other_namespace(void **state)
{
	(void)state;
	int end, own = open("/proc/self/ns/pid_for_children", O_RDONLY | O_CLOEXEC);
	if (own < 0 || unshare(CLONE_NEWPID) != 0) {
		print_message("SKIPPED: no new namespace of process numbers is permitted here\n");
		skip();
	}
	pid_t child = start(true, &end);
	assert_int_equal(setns(own, CLONE_NEWPID), 0);
	close(own);
	assert_int_equal(sw_share_pid(page, 1), child);
	finish(child, end);
	assert_int_equal(sw_share_pid(page, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_namespace, up, down),
		cmocka_unit_test_setup_teardown(test_other_namespace, up, down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
