/* The reserve of disk space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/reserve.h"

#define FULL ((size_t)1 << 20)

static size_t taken(const char *path)
{
	struct stat info;
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	return (size_t)info.st_blocks * 512;
}

/* Space is really taken, is given back piece by piece, and taken again; the next start goes on
 * with the same file. */
static void test_give_and_refill(void **state)
{
	(void)state;
	char folder[] = "/tmp/sharewell-test-XXXXXX", path[64];
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/reserve", folder);
	struct sw_reserve *reserve = NULL;
	assert_int_equal(sw_reserve_open(path, FULL, &reserve, NULL), 0);
	assert_int_equal(sw_reserve_left(reserve), FULL);
	assert_true(taken(path) >= FULL);
	assert_true(sw_reserve_give(reserve, 1000));
	assert_int_equal(sw_reserve_left(reserve), FULL - 1000);
	assert_true(sw_reserve_give(reserve, FULL / 2));
	assert_true(taken(path) < FULL);
	sw_reserve_close(reserve);
	assert_int_equal(sw_reserve_open(path, FULL, &reserve, NULL), 0);
	assert_int_equal(sw_reserve_left(reserve), FULL);
	assert_true(sw_reserve_give(reserve, 2 * FULL));
	assert_int_equal(sw_reserve_left(reserve), 0);
	assert_false(sw_reserve_give(reserve, 1));
	assert_true(sw_reserve_refill(reserve));
	assert_true(taken(path) >= FULL);
	sw_reserve_close(reserve);
	/* A smaller one lets go of what is too much. */
	assert_int_equal(sw_reserve_open(path, FULL / 4, &reserve, NULL), 0);
	assert_int_equal(sw_reserve_left(reserve), FULL / 4);
	sw_reserve_close(reserve);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/null", path), 0);
	struct sw_err err = {0};
	assert_int_equal(sw_reserve_open(path, FULL, &reserve, &err), SW_EIO);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_give_and_refill)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
