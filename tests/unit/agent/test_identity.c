/* Which agent it is: its folder and how often it was started there. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/folder.h"
#include "agent/identity.h"

struct place {
	char path[32];
	int folder;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof *place);
	strcpy(place->path, "/tmp/sw-identity-XXXXXX");
	if (mkdtemp(place->path) == NULL)
		return -1;
	place->folder = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = place;
	return place->folder >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	unlinkat(place->folder, "identity", 0);
	close(place->folder);
	rmdir(place->path);
	free(place);
	return 0;
}

/* Each start in a folder has the same home and the next number. */
static void test_starts_are_counted(void **state)
{
	const struct place *place = *state;
	struct sw_identity first, next;
	assert_int_equal(sw_identity_open(place->folder, "m1", &first, NULL), 0);
	assert_int_equal(strlen(first.home), SW_SYNC_HOME_MAX);
	assert_int_equal(first.start, 1);
	for (uint64_t start = 2; start < 5; start++) {
		assert_int_equal(sw_identity_open(place->folder, "m1", &next, NULL), 0);
		assert_string_equal(next.home, first.home);
		assert_true(next.start == start);
	}
}

/* A copy of the folder on another machine is another agent; so is one whose file cannot be read. */
static void test_copies_are_others(void **state)
{
	const struct place *place = *state;
	static const char *const broken[] = {"",
					     "x",
					     "0123456789abcdef0123456789abcdef",
					     "0123456789abcdef0123456789abcdef x m1\n",
					     "0123 5 m1\n",
					     "0123456789abcdef0123456789abcdef 9223372036854775807 m1\n"};
	struct sw_identity first, other;
	assert_int_equal(sw_identity_open(place->folder, "m1", &first, NULL), 0);
	assert_int_equal(sw_identity_open(place->folder, "m2", &other, NULL), 0);
	assert_string_not_equal(other.home, first.home);
	assert_int_equal(other.start, 1);
	for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
		assert_int_equal(sw_folder_write(place->folder, "identity", broken[i], strlen(broken[i]), false, NULL), 0);
		assert_int_equal(sw_identity_open(place->folder, "m1", &other, NULL), 0);
		assert_int_equal(other.start, 1);
		assert_int_equal(strlen(other.home), SW_SYNC_HOME_MAX);
	}
}

/* The word for this machine is always the same. */
static void test_machine(void **state)
{
	(void)state;
	char once[SW_IDENTITY_MACHINE_SIZE], twice[SW_IDENTITY_MACHINE_SIZE];
	sw_identity_machine(once);
	sw_identity_machine(twice);
	assert_string_equal(once, twice);
	assert_int_equal(strlen(once), SW_IDENTITY_MACHINE_SIZE - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_starts_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_copies_are_others, set_up, tear_down),
		cmocka_unit_test(test_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
