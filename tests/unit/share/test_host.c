/* The budget of host memory that a job has by default. */
#include "share/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* It is something, and not more than half of the machine: two jobs that start one after the other
 * cannot be promised all of it. */
static void test_budget(void **state)
{
	(void)state;
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	assert_in_range(sw_share_host_budget(), 1 << 20, machine / 2);
}

static char tree[64];

static void put(const char *name, const char *text)
{
	char path[160];
	snprintf(path, sizeof path, "%s/%s", tree, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void make(const char *name)
{
	char path[160];
	snprintf(path, sizeof path, "%s/%s", tree, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

/* The tightest group on the way up is what counts, less what it uses and cannot drop. */
static void test_groups(void **state)
{
	(void)state;
	char command[96];
	snprintf(tree, sizeof tree, "/tmp/sw-host-XXXXXX");
	assert_non_null(mkdtemp(tree));
	assert_true(sw_share_host_room(tree, "") == UINT64_MAX);
	make("a");
	make("a/b");
	put("a/b/memory.max", "max\n");
	put("a/b/memory.current", "1000\n");
	assert_true(sw_share_host_room(tree, "/a/b") == UINT64_MAX);
	put("a/memory.max", "5000\n");
	put("a/memory.current", "4000\n");
	assert_int_equal(sw_share_host_room(tree, "/a/b"), 1000);
	put("a/memory.stat", "anon 3\nfile 600\ninactive_file 500\n");
	assert_int_equal(sw_share_host_room(tree, "/a/b"), 1500);
	put("a/b/memory.max", "1200\n");
	assert_int_equal(sw_share_host_room(tree, "/a/b"), 200);
	assert_int_equal(sw_share_host_room(tree, "/a"), 1500);
	put("memory.max", "100\n");
	put("memory.current", "200\n");
	assert_int_equal(sw_share_host_room(tree, "/a/b"), 0);
	assert_int_equal(sw_share_host_room(tree, "/"), 0);
	snprintf(command, sizeof command, "rm -rf '%s'", tree);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_budget), cmocka_unit_test(test_groups)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
