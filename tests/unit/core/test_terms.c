/* The terms of a world: one table says all there is of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/terms.h"

static size_t size_of(const struct sw_term_row *row)
{
	return row->kind == SW_TERM_TIME || row->kind == SW_TERM_MILLI ? sizeof(int64_t) : 1;
}

/* All members, in their order, and none of them zero: one that is added and not named here does not
 * compile. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
static const struct sw_terms all_members = {1, 1, true, true, true, true, true, true, 1, 1, 1, 1, true, 1, 1};
#pragma GCC diagnostic pop

/* Aim: a member without a row would be lost on the way from the world to the engine, or not be
 * compared: each byte is of one row, but for padding. */
static void test_every_member_has_a_row(void **state)
{
	(void)state;
	unsigned char left[sizeof all_members];
	unsigned char covered[sizeof all_members] = {0};
	memcpy(left, &all_members, sizeof left);
	for (size_t r = 0; r < sw_term_count; r++) {
		assert_int_equal(sw_term_get(&all_members, &sw_term_rows[r]), 1);
		for (size_t b = 0; b < size_of(&sw_term_rows[r]); b++)
			assert_int_equal(covered[sw_term_rows[r].offset + b]++, 0);
	}
	for (size_t b = 0; b < sizeof left; b++)
		if (covered[b] == 0)
			assert_int_equal(left[b], 0);
}

/* Aim: what is set is read back, a value beyond the bounds changes nothing, and a
 * difference is found in each row. */
static void test_set_and_differ(void **state)
{
	(void)state;
	for (size_t r = 0; r < sw_term_count; r++) {
		const struct sw_term_row *row = &sw_term_rows[r];
		struct sw_terms terms = {0}, other = {0};
		int64_t good = row->kind == SW_TERM_TIME ? SW_TERMS_TIME_MAX : row->kind == SW_TERM_MILLI ? 1500 : 1;
		assert_int_equal(sw_term_set(&terms, row, good), 0);
		assert_int_equal(sw_term_get(&terms, row), good);
		assert_int_equal(sw_term_set(&terms, row, INT64_MAX), SW_EINPUT);
		assert_int_equal(sw_term_set(&terms, row, -1), SW_EINPUT);
		assert_int_equal(sw_term_get(&terms, row), good);
		assert_ptr_equal(sw_terms_differ(&terms, &other), row);
		assert_int_equal(sw_term_set(&other, row, good), 0);
		assert_null(sw_terms_differ(&terms, &other));
		assert_int_equal(sw_terms_check(&terms, NULL), 0);
	}
}

/* Aim: terms that no engine takes are refused by the name of the first that is wrong. */
static void test_check(void **state)
{
	(void)state;
	struct sw_err err = {0}, second = {0};
	struct sw_terms terms = sw_terms_unsaid;
	assert_int_equal(sw_terms_check(&terms, &err), 0);
	terms.quantum_ns = -1;
	assert_int_equal(sw_terms_check(&terms, &err), SW_EINPUT);
	assert_non_null(strstr(err.fact, "'quantum'"));
	terms = sw_terms_unsaid;
	terms.gate_milli = 999;
	assert_int_equal(sw_terms_check(&terms, &second), SW_EINPUT);
	assert_non_null(strstr(second.fact, "'gate'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_member_has_a_row),
		cmocka_unit_test(test_set_and_differ),
		cmocka_unit_test(test_check),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
