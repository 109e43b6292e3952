/* Axes: whatever the numbers are, there is a scale, and its ticks are round, ordered and apart. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sim/report/scale.h"

static void place(struct sw_scale *scale, double from, double to)
{
	scale->from = from;
	scale->to = to;
}

/* Numbers that make no axis are widened until they do. */
static void test_degenerate(void **state)
{
	(void)state;
	static const double odd[] = {0, -1, 1, 1e-9, 1e300, INFINITY, -INFINITY, NAN};
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
			struct sw_scale linear = sw_scale_linear(SW_UNIT_COUNT, odd[i], odd[k]);
			struct sw_scale logarithmic = sw_scale_log(SW_UNIT_DURATION, odd[i], odd[k]);
			assert_true(isfinite(linear.low) && isfinite(linear.high));
			assert_true(linear.low < linear.high);
			assert_true(logarithmic.low > 0 && logarithmic.high >= logarithmic.low * 9.99 && isfinite(logarithmic.high));
		}
	}
}

/* Values are drawn in order, the ends at the ends, and nothing outside. */
static void test_places(void **state)
{
	(void)state;
	struct sw_scale up = sw_scale_linear(SW_UNIT_SHARE, 0, 1);
	place(&up, 300, 20);
	assert_true(sw_scale_at(&up, 0) == 300 && sw_scale_at(&up, 1) == 20 && sw_scale_at(&up, 0.5) == 160);
	assert_true(sw_scale_at(&up, -5) == 300 && sw_scale_at(&up, 5) == 20);
	struct sw_scale decades = sw_scale_log(SW_UNIT_FACTOR, 1, 100);
	place(&decades, 0, 200);
	assert_true(fabs(sw_scale_at(&decades, 10) - 100) < 1e-9);
	assert_true(sw_scale_at(&decades, 0) == 0 && sw_scale_at(&decades, NAN) == 0 && sw_scale_at(&decades, INFINITY) == 200);
	decades.floor = 20;
	assert_true(sw_scale_at(&decades, 0.5) == 0 && sw_scale_at(&decades, 1) == 20 && sw_scale_at(&decades, 100) == 200);
}

static void check_ticks(const struct sw_scale *scale, double distance)
{
	double ticks[SW_TICKS_MAX];
	size_t count = sw_scale_ticks(scale, distance, ticks);
	assert_true(count <= SW_TICKS_MAX);
	for (size_t i = 0; i < count; i++) {
		double slack = (scale->high - scale->low) * 1e-9;
		assert_true(ticks[i] >= scale->low - slack && ticks[i] <= scale->high + slack);
		if (i > 0)
			assert_true(fabs(sw_scale_at(scale, ticks[i]) - sw_scale_at(scale, ticks[i - 1])) > distance * 0.99);
	}
}

/* Random axes of every unit: ticks lie on the axis, in order, apart; a logarithmic one of some
 * length has at least two. */
static void test_ticks(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 3);
	for (int round = 0; round < 2000; round++) {
		enum sw_unit unit = (enum sw_unit)sw_rng_below(&rng, 4);
		double low = pow(10, (double)sw_rng_below(&rng, 9) - 3) * (1 + sw_rng_unit(&rng));
		double high = low * (1 + pow(10, (double)sw_rng_below(&rng, 8) - 1));
		struct sw_scale linear = unit == SW_UNIT_SHARE ? sw_scale_linear(unit, 0, 1) : sw_scale_linear(unit, low, high);
		struct sw_scale logarithmic = sw_scale_log(unit, low, high);
		place(&linear, 50, 600);
		place(&logarithmic, 300, 20);
		check_ticks(&linear, 60);
		check_ticks(&logarithmic, 26);
		double ticks[SW_TICKS_MAX];
		assert_true(sw_scale_ticks(&logarithmic, 26, ticks) >= 1);
	}
}

/* Durations get the ticks that people expect. */
static void test_duration_labels(void **state)
{
	(void)state;
	struct sw_scale scale = sw_scale_log(SW_UNIT_DURATION, 9, 200000);
	double ticks[SW_TICKS_MAX];
	char label[SW_TEXT_SIZE];
	place(&scale, 50, 600);
	static const char *const expected[] = {"10 s", "1 min", "10 min", "1 h", "6 h", "1 d"};
	size_t count = sw_scale_ticks(&scale, 58, ticks);
	assert_int_equal(count, 6);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(sw_scale_label(SW_UNIT_DURATION, ticks[i], label), expected[i]);
	assert_true(sw_scale_round_down(3 * 3600 + 29 * 60) == 7200);
	assert_string_equal(sw_scale_label(SW_UNIT_DURATION, 0, label), "0");
	assert_string_equal(sw_scale_label(SW_UNIT_SHARE, 0.25, label), "25 %");
	assert_string_equal(sw_scale_label(SW_UNIT_FACTOR, 1000, label), "1,000\xC3\x97");
	assert_string_equal(sw_scale_label(SW_UNIT_COUNT, 2500, label), "2,500");
}

/* An axis whose ends mean something shows them, and its middle where that is a whole number. */
static void test_halves(void **state)
{
	(void)state;
	double ticks[SW_TICKS_MAX];
	struct sw_scale even = sw_scale_linear(SW_UNIT_COUNT, 0, 192), odd = sw_scale_linear(SW_UNIT_COUNT, 0, 5);
	even.halves = odd.halves = true;
	assert_int_equal(sw_scale_ticks(&even, 26, ticks), 3);
	assert_true(ticks[0] == 0 && ticks[1] == 96 && ticks[2] == 192);
	assert_int_equal(sw_scale_ticks(&odd, 26, ticks), 2);
	assert_true(ticks[1] == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_degenerate),	cmocka_unit_test(test_places), cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_duration_labels), cmocka_unit_test(test_halves),
	};
	return cmocka_run_group_tests_name("sim/report/scale", tests, NULL, NULL);
}
