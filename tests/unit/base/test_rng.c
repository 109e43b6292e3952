/* The seeded generator: the published sequences, its bounds, and no visible bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

/* xoshiro256** from the state 1, 2, 3, 4 gives the numbers that its other
 * implementations publish. */
static void test_known_sequence(void **state)
{
	(void)state;
	static const uint64_t expected[] = {
		11520,
		0,
		1509978240,
		UINT64_C(1215971899390074240),
		UINT64_C(1216172134540287360),
		UINT64_C(607988272756665600),
		UINT64_C(16172922978634559625),
		UINT64_C(8476171486693032832),
		UINT64_C(10595114339597558777),
		UINT64_C(2904607092377533576),
	};
	struct sw_rng rng = {{1, 2, 3, 4}};
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
		assert_true(sw_rng_next(&rng) == expected[i]);
}

/* The seed 0 is spread by splitmix64 into the four words that it is known to give. */
static void test_known_seed(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 0);
	assert_true(rng.state[0] == UINT64_C(0xE220A8397B1DCDAF));
	assert_true(rng.state[1] == UINT64_C(0x6E789E6AA1B965F4));
	assert_true(rng.state[2] == UINT64_C(0x06C45D188009454F));
	assert_true(rng.state[3] == UINT64_C(0xF88BB8A8724C81EC));
}

/* Equal seeds give equal numbers; neighbouring seeds do not. */
static void test_seed_decides(void **state)
{
	(void)state;
	struct sw_rng a, b, c;
	sw_rng_seed(&a, 41);
	sw_rng_seed(&b, 41);
	sw_rng_seed(&c, 42);
	int equal = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t number = sw_rng_next(&a);
		assert_true(number == sw_rng_next(&b));
		equal += number == sw_rng_next(&c);
	}
	assert_int_equal(equal, 0);
}

/* Numbers below a bound stay below it, for bounds from 0 to the largest. */
static void test_below_keeps_bound(void **state)
{
	(void)state;
	static const uint64_t bounds[] = {1, 2, 3, 7, 1000, UINT64_C(1) << 32, (UINT64_C(1) << 63) + 1, UINT64_MAX};
	struct sw_rng rng;
	sw_rng_seed(&rng, 7);
	assert_true(sw_rng_below(&rng, 0) == 0);
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
		for (int round = 0; round < 2000; round++)
			assert_true(sw_rng_below(&rng, bounds[i]) < bounds[i]);
}

/* Every remainder comes about equally often. Bound 3 * 2^62 would show the bias of a plain
 * multiplication: a third of the numbers doubled. */
static void test_below_is_even(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 99);
	int counts[10] = {0};
	for (int i = 0; i < 100000; i++)
		counts[sw_rng_below(&rng, 10)]++;
	for (int i = 0; i < 10; i++)
		assert_in_range(counts[i], 9600, 10400);

	const uint64_t bound = UINT64_C(3) << 62;
	int thirds[3] = {0};
	for (int i = 0; i < 30000; i++) {
		uint64_t number = sw_rng_below(&rng, bound);
		thirds[number % 3]++;
	}
	for (int i = 0; i < 3; i++)
		assert_in_range(thirds[i], 9700, 10300);
}

/* Fractions lie in [0, 1) and fill it. */
static void test_unit_range(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 5);
	double least = 1, most = 0, sum = 0;
	for (int i = 0; i < 100000; i++) {
		double unit = sw_rng_unit(&rng);
		assert_true(unit >= 0 && unit < 1);
		least = unit < least ? unit : least;
		most = unit > most ? unit : most;
		sum += unit;
	}
	assert_true(least < 0.001 && most > 0.999);
	assert_true(sum > 49500 && sum < 50500);
	/* The largest number there is still stays below 1. */
	struct sw_rng high = {{0, UINT64_C(0x4FC71C71C71C71C7), 0, 0}}, copy = high;
	assert_true(sw_rng_next(&copy) == UINT64_MAX);
	assert_true(sw_rng_unit(&high) < 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_sequence),	  cmocka_unit_test(test_known_seed),	cmocka_unit_test(test_seed_decides),
		cmocka_unit_test(test_below_keeps_bound), cmocka_unit_test(test_below_is_even), cmocka_unit_test(test_unit_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
