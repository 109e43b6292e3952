/* How jobs do on their GPUs, as syncs tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "server/uses.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct sw_run_id moved = {1, 1}, other = {2, 1};

static void hear(struct sw_machine *machine, struct sw_sync_sample *samples, size_t count)
{
	struct sw_sync_run runs[] = {{.id = moved, .state = SW_RUN_RUNNING}, {.id = other, .state = SW_RUN_RUNNING}};
	for (size_t s = 0; s < count; s++)
		samples[s].has_run = true;
	sw_uses_hear(machine, &(struct sw_sync){.runs = runs, .run_count = COUNT(runs), .samples = samples, .sample_count = count});
}

/* What a job held on a GPU that it has left is forgotten with its first figures of another; those
 * of jobs that stayed, and of jobs that were not looked at, are not. */
static void test_moved(void **state)
{
	(void)state;
	struct sw_machine machine = {0};
	struct sw_sync_sample before[] = {
		{.at_ns = 10, .gpu = "a", .run = moved, .memory_bytes = 7},
		{.at_ns = 10, .gpu = "b", .run = moved, .memory_bytes = 7},
		{.at_ns = 10, .gpu = "c", .run = other, .memory_bytes = 5},
	};
	struct sw_sync_sample after[] = {
		{.at_ns = 20, .gpu = "b", .run = moved, .memory_bytes = 8},
		{.at_ns = 20, .gpu = "d", .run = moved, .memory_bytes = 9},
	};
	hear(&machine, before, COUNT(before));
	assert_int_equal(machine.uses.count, 3);
	hear(&machine, NULL, 0);
	assert_int_equal(machine.uses.count, 3);
	hear(&machine, after, COUNT(after));
	assert_int_equal(machine.uses.count, 3);
	uint64_t sum = 0;
	for (size_t u = 0; u < machine.uses.count; u++)
		sum += machine.uses.items[u].memory_bytes;
	assert_int_equal(sum, 8 + 9 + 5);
	free(machine.uses.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_moved)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
