/* Quantiles found by selection are those of the ordered numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sim/quantile.h"

/* cmocka compares as float, which has seven digits. */
static void assert_near(double actual, double expected, double tolerance)
{
	if (!(fabs(actual - expected) <= tolerance))
		fail_msg("%.17g, expected %.17g", actual, expected);
}

static bool plain(const void *context, size_t index, int64_t *ret_value)
{
	*ret_value = ((const int64_t *)context)[index];
	return true;
}

static bool even_only(const void *context, size_t index, int64_t *ret_value)
{
	*ret_value = ((const int64_t *)context)[index];
	return *ret_value % 2 == 0;
}

static double one(const int64_t *values, size_t count, unsigned thousandths)
{
	double found = -1;
	assert_int_equal(sw_quantiles(plain, values, count, &thousandths, 1, &found), count);
	return found;
}

/* Known answers, as numpy.percentile gives them. */
static void test_known(void **state)
{
	(void)state;
	const int64_t four[] = {40, 10, 30, 20};
	assert_near(one(four, 4, 0), 10, 0);
	assert_near(one(four, 4, 500), 25, 0);
	assert_near(one(four, 4, 950), 38.5, 1e-12);
	assert_near(one(four, 4, 990), 39.7, 1e-12);
	assert_near(one(four, 4, 1000), 40, 0);
	const int64_t single[] = {7};
	assert_near(one(single, 1, 500), 7, 0);
	assert_near(one(single, 1, 990), 7, 0);
	const int64_t mixed[] = {-5, 5, -15};
	assert_near(one(mixed, 3, 250), -10, 0);
	assert_near(one(mixed, 3, 750), 0, 0);
}

/* Values at the ends of the range do not confuse the order. */
static void test_extremes(void **state)
{
	(void)state;
	const int64_t values[] = {INT64_MAX, INT64_MIN, 0};
	assert_near(one(values, 3, 0), (double)INT64_MIN, 0);
	assert_near(one(values, 3, 500), 0, 0);
	assert_near(one(values, 3, 1000), (double)INT64_MAX, 0);
}

/* No values give zeros and a count of zero; what is left out does not take part. */
static void test_left_out(void **state)
{
	(void)state;
	const unsigned wanted[] = {500, 1000};
	const int64_t odd[] = {1, 3, 5}, mixed[] = {9, 8, 7, 2};
	double found[2] = {1, 1};
	assert_int_equal(sw_quantiles(even_only, odd, 3, wanted, 2, found), 0);
	assert_near(found[0], 0, 0);
	assert_near(found[1], 0, 0);
	assert_int_equal(sw_quantiles(even_only, mixed, 4, wanted, 2, found), 2);
	assert_near(found[0], 5, 0);
	assert_near(found[1], 8, 0);
	assert_int_equal(sw_quantiles(plain, NULL, 0, wanted, 2, found), 0);
}

static int ascending(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

static double naive(const int64_t *ordered, size_t count, unsigned thousandths)
{
	size_t rank = (count - 1) * thousandths / 1000, rest = (count - 1) * thousandths % 1000;
	double low = (double)ordered[rank];
	return rest == 0 ? low : low + ((double)ordered[rank + 1] - low) * (double)rest / 1000;
}

/* Random numbers, with few and with many repetitions, against sorting them. */
static void test_against_sorting(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 11);
	for (int round = 0; round < 300; round++) {
		int64_t values[200], ordered[200];
		size_t count = 1 + sw_rng_below(&rng, 200);
		uint64_t bound = UINT64_C(1) << (1 + sw_rng_below(&rng, 50));
		for (size_t i = 0; i < count; i++)
			ordered[i] = values[i] = (int64_t)sw_rng_below(&rng, bound) - (int64_t)(bound / 4);
		qsort(ordered, count, sizeof *ordered, ascending);
		unsigned wanted[4];
		double found[4];
		for (int i = 0; i < 4; i++)
			wanted[i] = (unsigned)sw_rng_below(&rng, 1001);
		assert_int_equal(sw_quantiles(plain, values, count, wanted, 4, found), count);
		for (int i = 0; i < 4; i++)
			assert_true(found[i] == naive(ordered, count, wanted[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_against_sorting),
	};
	return cmocka_run_group_tests_name("sim/quantile", tests, NULL, NULL);
}
