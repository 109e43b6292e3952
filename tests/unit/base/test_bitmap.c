/* The set of small integers, against an array of truth values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bitmap.h"
#include "base/error.h"
#include "base/rng.h"

enum { VALUES = 70000 }; /* more than 64^2, so that three levels are in use */

static bool in[VALUES];

static uint32_t model_next(uint32_t from)
{
	while (from < VALUES && !in[from])
		from++;
	return from < VALUES ? from : SW_BITMAP_NONE;
}

/* Random additions and removals, thinly and thickly spread, leave the members and
 * successors of the model. */
static void test_against_model(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 3);
	struct sw_bitmap bitmap = {0};
	assert_int_equal(sw_bitmap_reserve(&bitmap, VALUES), 0);
	uint32_t count = 0;
	for (int step = 0; step < 30000; step++) {
		/* Half of the values crowd into a small range. */
		uint32_t value = (uint32_t)sw_rng_below(&rng, sw_rng_below(&rng, 2) == 0 ? 130 : VALUES);
		if (sw_rng_below(&rng, 2) == 0) {
			count += !in[value];
			in[value] = true;
			sw_bitmap_add(&bitmap, value);
		} else {
			count -= in[value];
			in[value] = false;
			sw_bitmap_remove(&bitmap, value);
		}
		assert_int_equal(bitmap.count, count);
		assert_int_equal(sw_bitmap_has(&bitmap, value), in[value]);
		uint32_t from = (uint32_t)sw_rng_below(&rng, VALUES);
		if (step % 16 == 0)
			assert_int_equal(sw_bitmap_next(&bitmap, from), model_next(from));
		assert_int_equal(sw_bitmap_next(&bitmap, value), in[value] ? value : sw_bitmap_next(&bitmap, value + 1));
	}
	/* A walk meets every member once, in order. */
	uint32_t met = 0, behind = 0;
	for (uint32_t v = sw_bitmap_next(&bitmap, 0); v != SW_BITMAP_NONE; v = sw_bitmap_next(&bitmap, v + 1)) {
		assert_int_equal(v, model_next(behind));
		behind = v + 1;
		met++;
	}
	assert_int_equal(met, count);
	sw_bitmap_release(&bitmap);
}

/* A single member is found from every distance, across words and levels, and not from behind it. */
static void test_lonely(void **state)
{
	(void)state;
	static const uint32_t values[] = {0, 1, 63, 64, 4095, 4096, 262143, 262144, 16777215};
	struct sw_bitmap bitmap = {0};
	assert_int_equal(sw_bitmap_next(&bitmap, 0), SW_BITMAP_NONE);
	assert_int_equal(sw_bitmap_reserve(&bitmap, UINT32_C(1) << 24), 0);
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		sw_bitmap_add(&bitmap, values[i]);
		for (uint32_t back = 1; back <= values[i]; back *= 2)
			assert_int_equal(sw_bitmap_next(&bitmap, values[i] - back), values[i]);
		assert_int_equal(sw_bitmap_next(&bitmap, values[i]), values[i]);
		assert_int_equal(sw_bitmap_next(&bitmap, values[i] + 1), SW_BITMAP_NONE);
		sw_bitmap_remove(&bitmap, values[i]);
		assert_int_equal(sw_bitmap_next(&bitmap, 0), SW_BITMAP_NONE);
	}
	sw_bitmap_release(&bitmap);
}

/* Growing keeps the members; what is out of reach is no member; more than 2^30 is
 * refused and changes nothing. */
static void test_growth(void **state)
{
	(void)state;
	struct sw_bitmap bitmap = {0};
	for (uint32_t value = 0; value < 20000; value += 7) {
		assert_int_equal(sw_bitmap_reserve(&bitmap, value + 1), 0);
		sw_bitmap_add(&bitmap, value);
		sw_bitmap_add(&bitmap, value);
	}
	uint32_t expected = 0;
	for (uint32_t value = sw_bitmap_next(&bitmap, 0); value != SW_BITMAP_NONE; value = sw_bitmap_next(&bitmap, value + 1)) {
		assert_int_equal(value, expected);
		expected += 7;
	}
	assert_int_equal(expected, 20006);
	assert_false(sw_bitmap_has(&bitmap, UINT32_MAX - 1));
	sw_bitmap_remove(&bitmap, UINT32_MAX - 1);
	uint32_t count = bitmap.count, capacity = bitmap.capacity;
	assert_int_equal(sw_bitmap_reserve(&bitmap, (UINT32_C(1) << 30) + 1), SW_ELIMIT);
	assert_int_equal(bitmap.count, count);
	assert_int_equal(bitmap.capacity, capacity);
	sw_bitmap_release(&bitmap);
}

/* How many members follow each other, at every place of a pattern that crosses words. */
static void test_rows(void **state)
{
	(void)state;
	struct sw_bitmap bitmap = {0};
	assert_int_equal(sw_bitmap_reserve(&bitmap, 2000), 0);
	for (uint32_t value = 0; value < 2000; value++)
		if (value % 131 != 7)
			sw_bitmap_add(&bitmap, value);
	for (uint32_t value = 0; value < 1900; value++) {
		uint32_t row = 0;
		while (sw_bitmap_has(&bitmap, value + row))
			row++;
		assert_int_equal(sw_bitmap_row(&bitmap, value), row);
	}
	sw_bitmap_release(&bitmap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_lonely),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
