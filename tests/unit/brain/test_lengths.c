/* How long jobs are taken to run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "brain/lengths.h"

#define S SW_NS_PER_S

static uint64_t next_job;

static void note(struct sw_lengths *lengths, uint64_t kind, sw_ns ran_s)
{
	assert_int_equal(sw_lengths_note(lengths, &(struct sw_length){++next_job, kind, ran_s * S}), 0);
}

static void expect_left(const struct sw_lengths *lengths, uint64_t kind, sw_ns expected_s, sw_ns limit_s, sw_ns ran_s, sw_ns left_s,
			enum sw_basis basis)
{
	const struct sw_length_question question = {kind, expected_s * S, limit_s * S, ran_s * S};
	enum sw_basis found = SW_BASES;
	sw_ns left = sw_lengths_left(lengths, &question, &found);
	assert_int_equal(left, left_s == SW_TIME_NEVER ? SW_TIME_NEVER : left_s * S);
	assert_int_equal(found, basis);
}

/* Aim: what the owner said comes before the limit, that before medians of its kind, these before
 * the median of all. */
static void test_basis(void **state)
{
	(void)state;
	struct sw_lengths lengths = {0};
	expect_left(&lengths, 1, 0, 0, 0, SW_TIME_NEVER, SW_BASES);
	expect_left(&lengths, 1, 0, 0, 50, SW_TIME_NEVER, SW_BASES);
	expect_left(&lengths, 1, 0, 100, 30, 70, SW_BASIS_LIMIT);
	const sw_ns times[] = {50, 10, 30, 20, 40};
	for (size_t i = 0; i < 5; i++)
		note(&lengths, 7, times[i]);
	for (size_t i = 0; i < 4; i++)
		note(&lengths, 9, 1000);
	assert_int_equal(sw_lengths_sort(&lengths), 0);
	expect_left(&lengths, 7, 60, 100, 0, 60, SW_BASIS_EXPECTED);
	expect_left(&lengths, 7, 60, 100, 60, 40, SW_BASIS_LIMIT);
	expect_left(&lengths, 7, 0, 100, 100, 0, SW_BASIS_LIMIT);
	expect_left(&lengths, 7, 0, 0, 0, 30, SW_BASIS_ALIKE);
	expect_left(&lengths, 9, 0, 0, 0, 1000, SW_BASIS_ALIKE);
	expect_left(&lengths, 8, 0, 0, 0, 50, SW_BASIS_ALL);
	sw_lengths_release(&lengths);
}

/* Aim: a job that is expected to run longer than its limit ends at its limit. */
static void test_limit_before_expected(void **state)
{
	(void)state;
	const struct sw_lengths none = {0};
	expect_left(&none, 1, 7200, 3600, 600, 3000, SW_BASIS_LIMIT);
	expect_left(&none, 1, 3600, 3600, 600, 3000, SW_BASIS_EXPECTED);
}

/* Aim: a job that runs already is compared with those that ran longer, and beyond all of them taken
 * to run as long again. */
static void test_already_running(void **state)
{
	(void)state;
	struct sw_lengths lengths = {0};
	const sw_ns times[] = {10, 20, 100};
	for (size_t i = 0; i < 3; i++)
		note(&lengths, 7, times[i]);
	note(&lengths, 8, 5000);
	assert_int_equal(sw_lengths_sort(&lengths), 0);
	expect_left(&lengths, 7, 0, 0, 20, 80, SW_BASIS_ALIKE);
	expect_left(&lengths, 7, 0, 0, 100, 100, SW_BASIS_AGAIN);
	expect_left(&lengths, 6, 0, 0, 200, 4800, SW_BASIS_ALL);
	expect_left(&lengths, 6, 0, 0, 6000, 6000, SW_BASIS_AGAIN);
	sw_lengths_release(&lengths);
}

/* Aim: a job that is noted twice, by the state and by its row, counts once. */
static void test_noted_twice(void **state)
{
	(void)state;
	struct sw_lengths lengths = {0};
	note(&lengths, 7, 10);
	note(&lengths, 7, 20);
	note(&lengths, 7, 30);
	for (int i = 0; i < 5; i++) {
		next_job--;
		note(&lengths, 7, 30);
	}
	assert_int_equal(sw_lengths_sort(&lengths), 0);
	assert_int_equal(lengths.all.count, 3);
	expect_left(&lengths, 7, 0, 0, 0, 20, SW_BASIS_ALIKE);
	sw_lengths_release(&lengths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basis),
		cmocka_unit_test(test_limit_before_expected),
		cmocka_unit_test(test_already_running),
		cmocka_unit_test(test_noted_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
