/* Moments as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "api/when.h"
#include "base/error.h"
#include "base/number.h"
#include "base/rng.h"

static int parse(const char *text, int64_t *ret_ns)
{
	return sw_when_parse(text, strlen(text), ret_ns);
}

/* Known moments, with and without offset and fraction. */
static void test_known(void **state)
{
	(void)state;
	int64_t ns;
	assert_int_equal(parse("1970-01-01T00:00:00Z", &ns), 0);
	assert_true(ns == 0);
	assert_int_equal(parse("2000-02-29t12:00:00z", &ns), 0);
	assert_true(ns == 951825600 * SW_NS_PER_S);
	assert_int_equal(parse("2000-02-29 14:30:00.000000001+02:30", &ns), 0);
	assert_true(ns == 951825600 * SW_NS_PER_S + 1);
	assert_int_equal(parse("2199-12-31T23:59:59.999999999Z", &ns), 0);
	assert_true(ns == SW_WHEN_MAX_NS);
}

/* What is not a moment, or not one without knowing where, is refused and writes nothing. */
static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"2030-01-01",
		"2030-01-01T00:00:00",
		"2030-13-01T00:00:00Z",
		"2030-02-29T00:00:00Z",
		"2100-02-29T00:00:00Z",
		"2030-04-31T00:00:00Z",
		"2030-01-01T24:00:00Z",
		"2030-01-01T00:60:00Z",
		"2030-01-01T00:00:60Z",
		"2030-01-01T00:00:00.Z",
		"2030-01-01T00:00:00.1234567890Z",
		"2030-01-01T00:00:00+2:00",
		"2030-01-01T00:00:00+24:00",
		"2030-01-01T00:00:00Zx",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00:00+01:00",
		"2199-12-31T23:59:59-01:00",
		"2200-01-01T00:00:00Z",
		"2030-01-01x00:00:00Z",
		"2o30-01-01T00:00:00Z",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		int64_t ns = 77;
		if (parse(bad[i], &ns) != SW_EINPUT)
			fail_msg("'%s' was accepted", bad[i]);
		assert_true(ns == 77);
	}
}

/* What is written is read back, and agrees with the C library's calendar. */
static void test_round_trip(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 4);
	for (int i = 0; i < 20000; i++) {
		int64_t ns = (int64_t)sw_rng_below(&rng, (uint64_t)SW_WHEN_MAX_NS + 1), back;
		if (i % 2 == 0)
			ns -= ns % SW_NS_PER_S;
		char text[SW_WHEN_SIZE], expected[SW_WHEN_SIZE];
		sw_when_format(ns, text);
		assert_int_equal(parse(text, &back), 0);
		assert_true(back == ns);
		time_t seconds = ns / SW_NS_PER_S;
		struct tm parts;
		strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
		assert_memory_equal(text, expected, 19);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
