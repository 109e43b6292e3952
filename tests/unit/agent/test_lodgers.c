/* Which processes on GPUs belong to control groups of the agent's runs. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/cgroup.h"
#include "agent/lodgers.h"

#define GROUP "/system.slice/agent.service/sharewell-1"

/* A line of /proc/<pid>/cgroup tells of a group below the agent's, and not of one
 * that only has its name. */
static void test_groups(void **state)
{
	(void)state;
	assert_true(sw_lodger_line_is_below("0::" GROUP "/7.1\n", GROUP));
	assert_true(sw_lodger_line_is_below("0::" GROUP "/7.1/inner\n", GROUP));
	assert_true(sw_lodger_line_is_below("0::/sharewell-1/7.1\n", "/sharewell-1"));
	/* Any user can make groups below his own, with any name. */
	assert_false(sw_lodger_line_is_below("0::/user.slice/user-1000.slice/user@1000.service/sharewell-1/7.1\n", GROUP));
	assert_false(sw_lodger_line_is_below("0::/user.slice/user@1000.service" GROUP "/7.1\n", GROUP));
	assert_false(sw_lodger_line_is_below("0::" GROUP "2/7.1\n", GROUP));
	assert_false(sw_lodger_line_is_below("0::" GROUP "\n", GROUP));
	assert_false(sw_lodger_line_is_below("4:memory:" GROUP "/7.1\n", GROUP));
	/* Where there are no groups none is ours. */
	assert_false(sw_lodger_line_is_below("0::/7.1\n", ""));
}

/* The group of a folder is the one that the kernel names for a process that was put there. */
static void test_real_group(void **state)
{
	(void)state;
	char path[4096], group[4096], note[200], name[64];
	snprintf(name, sizeof name, "sharewell-lodgers-%d", getpid());
	int error = sw_cgroup_prepare(name, path, sizeof path, note, sizeof note);
	if (error != 0) {
		print_message("[  SKIPPED ] no control groups of version 2: %s\n", strerror(error));
		skip();
	}
	struct sw_cgroup run;
	assert_int_equal(sw_cgroup_open(&run, path, "7.1", 0, 0, note, sizeof note), 0);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	int procs = sw_cgroup_procs(&run);
	assert_true(dprintf(procs, "%d", child) > 0);
	close(procs);
	assert_int_equal(sw_cgroup_group(path, group, sizeof group), 0);
	assert_true(sw_lodger_is_in_group((uint32_t)child, group));
	assert_false(sw_lodger_is_in_group((uint32_t)getpid(), group));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sw_cgroup_close(&run);
	rmdir(path);
	assert_int_not_equal(sw_cgroup_group("/proc", group, sizeof group), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_real_group)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
