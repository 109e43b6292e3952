/* The simple cut: where it cuts, what a step then takes, and when it says no. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "split/cut.h"

#define GIB (UINT64_C(1) << 30)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool cut(uint32_t price_milli, uint64_t bytes, const struct sw_split_device *devices, size_t count, struct sw_split *ret_split)
{
	struct sw_cut made = sw_cut_make(price_milli);
	const struct sw_job job = {.gpus = 1, .gpu_memory_bytes = bytes};
	return made.splitter.split(&made.splitter, &job, devices, count, ret_split);
}

/* Aim: the parts are in proportion to what the GPUs have left, add up to the job, and a step
 * costs the price of the cut. */
static void test_parts_in_proportion(void **state)
{
	(void)state;
	const struct sw_split_device even[] = {{{0}, 0, 1000, 10 * GIB}, {{0}, 1, 1000, 10 * GIB}};
	const struct sw_split_device uneven[] = {{{3}, 5, 1000, 9 * GIB}, {{3}, 2, 1000, 3 * GIB}};
	struct sw_split split;
	assert_true(cut(1100, 12 * GIB, even, COUNT(even), &split));
	assert_int_equal(split.count, 2);
	assert_int_equal(split.parts[0].memory_bytes, 6 * GIB);
	assert_int_equal(split.parts[1].memory_bytes, 6 * GIB);
	assert_int_equal(split.alone_milli, 1100);
	assert_int_equal(split.step_milli, 1100);
	assert_true(cut(1000, 8 * GIB, uneven, COUNT(uneven), &split));
	assert_true(split.parts[0].node.v == 3 && split.parts[0].gpu == 5 && split.parts[0].memory_bytes == 6 * GIB);
	assert_true(split.parts[1].node.v == 3 && split.parts[1].gpu == 2 && split.parts[1].memory_bytes == 2 * GIB);
}

/* Aim: each part takes its time at the speed of its GPU: 3/4 at half speed and 1/4 at full speed
 * are 1.75 steps, times the price. */
static void test_speed_of_the_parts(void **state)
{
	(void)state;
	const struct sw_split_device devices[] = {{{0}, 0, 500, 9 * GIB}, {{0}, 1, 1000, 3 * GIB}};
	struct sw_split split;
	assert_true(cut(1200, 8 * GIB, devices, COUNT(devices), &split));
	assert_int_equal(split.step_milli, 2100);
	assert_int_equal(split.alone_milli, 1200);
}

/* Aim: of several pairs the one with the shortest step is taken, the first of equals. */
static void test_best_pair(void **state)
{
	(void)state;
	const struct sw_split_device devices[] = {
		{{0}, 0, 400, 8 * GIB}, {{0}, 1, 1000, 8 * GIB}, {{1}, 0, 800, 8 * GIB}, {{1}, 1, 800, 8 * GIB}, {{1}, 2, 800, 8 * GIB},
	};
	struct sw_split split;
	assert_true(cut(1000, 10 * GIB, devices, COUNT(devices), &split));
	assert_true(split.parts[0].node.v == 1 && split.parts[0].gpu == 0 && split.parts[1].gpu == 1);
	assert_int_equal(split.step_milli, 1250);
}

/* Aim: no cut where the memory is not there, not on one node, only on one GPU, or
 * there is nothing to cut. */
static void test_when_there_is_no_cut(void **state)
{
	(void)state;
	const struct sw_split_device small[] = {{{0}, 0, 1000, 4 * GIB}, {{0}, 1, 1000, 4 * GIB}};
	const struct sw_split_device apart[] = {{{0}, 0, 1000, 9 * GIB}, {{1}, 0, 1000, 9 * GIB}};
	const struct sw_split_device twice[] = {{{0}, 0, 1000, 9 * GIB}, {{0}, 0, 1000, 9 * GIB}};
	const struct sw_split_device stopped[] = {{{0}, 0, 0, 9 * GIB}, {{0}, 1, 1000, 9 * GIB}};
	const struct sw_split_device empty[] = {{{0}, 0, 1000, 0}, {{0}, 1, 1000, 9 * GIB}};
	struct sw_split split;
	assert_true(cut(1100, 8 * GIB, small, 2, &split)); /* it fits to the byte */
	assert_int_equal(split.parts[0].memory_bytes, 4 * GIB);
	assert_false(cut(1100, 8 * GIB + 1, small, 2, &split));
	assert_false(cut(1100, 8 * GIB, apart, 2, &split));
	assert_false(cut(1100, 8 * GIB, twice, 2, &split));
	assert_false(cut(1100, 8 * GIB, stopped, 2, &split));
	assert_false(cut(1100, 8 * GIB, empty, 2, &split));
	assert_false(cut(1100, 8 * GIB, small, 1, &split));
	assert_false(cut(1100, 8 * GIB, small, 0, &split));
	assert_false(cut(1100, 1, small, 2, &split));
	assert_false(cut(1100, 0, small, 2, &split));
	assert_true(cut(1100, 2, small, 2, &split));
	assert_true(split.parts[0].memory_bytes == 1 && split.parts[1].memory_bytes == 1);
}

/* Aim: whatever the figures, both parts have something, neither has more than there is, and
 * together they are the job. */
static void test_sums(void **state)
{
	(void)state;
	uint64_t number = 1;
	for (uint32_t round = 0; round < 20000; round++) {
		uint64_t drawn[3];
		for (uint32_t i = 0; i < 3; i++) {
			number = number * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			drawn[i] = (number >> 20) >> (number >> 58) % 44;
		}
		const struct sw_split_device devices[] = {{{0}, 0, 700, drawn[0]}, {{0}, 1, 900, drawn[1]}};
		struct sw_split split;
		bool fits = drawn[0] > 0 && drawn[1] > 0 && drawn[2] > 1 && drawn[2] <= drawn[0] + drawn[1];
		assert_int_equal(cut(1100, drawn[2], devices, 2, &split), fits);
		if (!fits)
			continue;
		uint64_t first = split.parts[0].memory_bytes, second = split.parts[1].memory_bytes;
		assert_true(first > 0 && second > 0 && first <= drawn[0] && second <= drawn[1] && first + second == drawn[2]);
		assert_in_range(split.step_milli, 1100 * 1000 / 900 - 2, 1100 * 1000 / 700 + 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_in_proportion),
		cmocka_unit_test(test_speed_of_the_parts),
		cmocka_unit_test(test_best_pair),
		cmocka_unit_test(test_when_there_is_no_cut),
		cmocka_unit_test(test_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
