/* Numbers as text: what is accepted, what is refused, and that nothing is written on refusal. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/number.h"
#include "base/rng.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* What a refused parse must leave in place. */
#define UNTOUCHED 0x5ca1ab1e

#define assert_parses(call, text, value, expected)                                                                         \
	do {                                                                                                               \
		if ((call) != 0)                                                                                           \
			fail_msg("'%s' was refused", text);                                                                \
		if ((value) != (expected))                                                                                 \
			fail_msg("'%s' gave %" PRId64 ", expected %" PRId64, text, (int64_t)(value), (int64_t)(expected)); \
	} while (0)

#define assert_refused(call, text, value)                                            \
	do {                                                                         \
		(value) = UNTOUCHED;                                                 \
		if ((call) != SW_EINPUT)                                             \
			fail_msg("'%s' was accepted", text);                         \
		if ((value) != UNTOUCHED)                                            \
			fail_msg("'%s' was refused, but a value was written", text); \
	} while (0)

struct signed_case {
	const char *text;
	int64_t expected;
};

struct unsigned_case {
	const char *text;
	uint64_t expected;
};

/* Integers are read over the whole range, with a sign, and with zeros behind a point as
 * spreadsheets write them. */
static void test_i64_accepts(void **state)
{
	(void)state;
	static const struct signed_case cases[] = {
		{"0", 0},
		{"-0", 0},
		{"+7", 7},
		{"007", 7},
		{"-12", -12},
		{"17.0", 17},
		{"-17.000", -17},
		{"9223372036854775807", INT64_MAX},
		{"-9223372036854775808", INT64_MIN},
		{"9223372036854775807.0", INT64_MAX},
		{"00000000000000000000000000000000000000000000001", 1},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t value = 0;
		assert_parses(sw_parse_i64(cases[i].text, strlen(cases[i].text), &value), cases[i].text, value, cases[i].expected);
	}
}

/* Everything that is not wholly an integer is refused: rests, spaces, fractions, exponents, other
 * bases, and the first value too large. */
static void test_i64_refuses(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"",
		" ",
		"+",
		"-",
		"--1",
		"+-1",
		"1 ",
		" 1",
		"1x",
		"0x10",
		"17.5",
		"17.",
		".0",
		".",
		"1e3",
		"1,000",
		"nan",
		"inf",
		"1.0.0",
		"17.01",
		"\xd9\xa1",
		"9223372036854775808",
		"-9223372036854775809",
		"99999999999999999999999999",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t value;
		assert_refused(sw_parse_i64(cases[i], strlen(cases[i]), &value), cases[i], value);
	}
}

/* The size bounds the text: bytes behind it are not looked at, and a zero byte inside it is
 * refused. */
static void test_size_bounds_text(void **state)
{
	(void)state;
	int64_t value = 0;
	assert_parses(sw_parse_i64("1234567", 3, &value), "123|4567", value, 123);
	assert_parses(sw_parse_decimal("1.5e9", 3, 1000, &value), "1.5|e9", value, 1500);
	assert_parses(sw_parse_duration("90s5", 3, &value), "90s|5", value, 90 * SW_NS_PER_S);
	assert_refused(sw_parse_i64("12\0", 3, &value), "12\\0", value);
	assert_refused(sw_parse_decimal("1\0002", 3, 1, &value), "1\\0002", value);
}

/* Unsigned integers reach 2^64 - 1 and refuse what is below zero. */
static void test_u64(void **state)
{
	(void)state;
	static const struct unsigned_case good[] = {
		{"0", 0}, {"-0", 0}, {"+5", 5}, {"18446744073709551615", UINT64_MAX}, {"42.00", 42},
	};
	for (size_t i = 0; i < COUNT(good); i++) {
		uint64_t value = 1;
		assert_parses(sw_parse_u64(good[i].text, strlen(good[i].text), &value), good[i].text, value, good[i].expected);
	}
	static const char *const bad[] = {"", "-1", "18446744073709551616", "184467440737095516150", "1.5", "1e2", "0x1", "-"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		uint64_t value;
		assert_refused(sw_parse_u64(bad[i], strlen(bad[i]), &value), bad[i], value);
	}
}

/* Decimals are scaled exactly, whatever the exponent, and rounded half away from zero. */
static void test_decimal_accepts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t scale;
		int64_t expected;
	} cases[] = {
		{"1.5", 1000, 1500},
		{"-1.5", 1000, -1500},
		{"1e-3", 1000, 1},
		{"1E+3", 1, 1000},
		{".5", 10, 5},
		{"5.", 10, 50},
		{"0.1", SW_NS_PER_S, 100000000},
		{"0.0004", 1000, 0},
		{"0.0005", 1000, 1},
		{"-0.0005", 1000, -1},
		{"-0.0004", 1000, 0},
		{"0.00049999999999999999999999", 1000, 0},
		{"0.00050000000000000000000000", 1000, 1},
		{"2.5", 1, 3},
		{"-2.5", 1, -3},
		{"2.4999999999999999999999999999", 1, 2},
		{"0e999999999999999999999999", 1, 0},
		{"0.000e-999999999999999999999999", 1000, 0},
		{"1e-999999999999999999999999", 1, 0},
		{"5e-1", 1, 1},
		{"4.9e-1", 1, 0},
		{"0.5e-1", 1, 0},
		{"9.223372036854775807e18", 1, INT64_MAX},
		{"9223372036.854775807", SW_NS_PER_S, INT64_MAX},
		{"-9223372036.854775808", SW_NS_PER_S, INT64_MIN},
		{"9223372036.8547758074", SW_NS_PER_S, INT64_MAX},
		{"0.00000000000000000000000000000000000000009e41", 1, 9},
		{"9000000000000000000000000000000000000000e-39", 1, 9},
		{"1506638000.0", SW_NS_PER_S, INT64_C(1506638000000000000)},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t value = UNTOUCHED;
		assert_parses(sw_parse_decimal(cases[i].text, strlen(cases[i].text), cases[i].scale, &value), cases[i].text, value,
			      cases[i].expected);
	}
}

/* What is not a decimal number, or overflows after scaling or rounding, is refused. */
static void test_decimal_refuses(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"",
		".",
		"+",
		"e5",
		"1e",
		"1e+",
		"1.2.3",
		"0x1p3",
		"nan",
		"inf",
		"1 ",
		"1,5",
		"-.",
		"1e400",
		"1e10",
		"9223372036.854775808",
		"-9223372036.854775809",
		"9223372036.8547758075",
		"--1",
		"1e18446744073709551616",
		"1e1e1",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t value;
		assert_refused(sw_parse_decimal(cases[i], strlen(cases[i]), SW_NS_PER_S, &value), cases[i], value);
	}
}

/* Random decimals agree with a naive model that works on the digits in 128 bits. */
static void test_decimal_against_model(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 20240229);
	for (int round = 0; round < 20000; round++) {
		uint64_t digits = sw_rng_below(&rng, UINT64_C(1) << sw_rng_below(&rng, 60));
		unsigned places = (unsigned)sw_rng_below(&rng, 13);
		int exponent = (int)sw_rng_below(&rng, 9) - 4;
		int64_t power = (int64_t)sw_rng_below(&rng, 10);
		char text[64];
		uint64_t divisor = 1;
		for (unsigned i = 0; i < places; i++)
			divisor *= 10;
		int n = snprintf(text, sizeof text, "%" PRIu64, digits / divisor);
		if (places > 0)
			n += snprintf(text + n, sizeof text - (size_t)n, ".%0*" PRIu64, (int)places, digits % divisor);
		if (exponent != 0)
			n += snprintf(text + n, sizeof text - (size_t)n, "e%d", exponent);

		int64_t scale = 1;
		for (int64_t i = 0; i < power; i++)
			scale *= 10;
		int shift = (int)power + exponent - (int)places;
		__int128 expected = (__int128)digits;
		for (int i = 0; i < shift; i++)
			expected *= 10;
		__int128 cut = 1;
		for (int i = 0; i > shift; i--)
			cut *= 10;
		expected = (expected + cut / 2) / cut;

		int64_t value = UNTOUCHED;
		if (expected > INT64_MAX)
			assert_refused(sw_parse_decimal(text, (size_t)n, scale, &value), text, value);
		else
			assert_parses(sw_parse_decimal(text, (size_t)n, scale, &value), text, value, (int64_t)expected);
	}
}

/* Durations are read in every unit that people write, fractions included, and as clock times. */
static void test_duration_accepts(void **state)
{
	(void)state;
	static const struct signed_case cases[] = {
		{"0", 0},
		{"90", 90 * SW_NS_PER_S},
		{"90s", 90 * SW_NS_PER_S},
		{"15m", 900 * SW_NS_PER_S},
		{"2h", 7200 * SW_NS_PER_S},
		{"1d", 86400 * SW_NS_PER_S},
		{"1.5h", 5400 * SW_NS_PER_S},
		{"0.25m", 15 * SW_NS_PER_S},
		{"250ms", 250 * SW_NS_PER_MS},
		{"10us", 10 * SW_NS_PER_US},
		{"5ns", 5},
		{"0.4ns", 0},
		{"0.5ns", 1},
		{"59.2 s", 59200 * SW_NS_PER_MS},
		{"1e3s", 1000 * SW_NS_PER_S},
		{"0.0000000000001h", 0},
		{"0.000000000001h", 4},
		{"106751d", INT64_C(106751) * 86400 * SW_NS_PER_S},
		{"9223372036.854775807", INT64_MAX},
		{"00:00:00", 0},
		{"01:02:03", 3723 * SW_NS_PER_S},
		{"1:02:03", 3723 * SW_NS_PER_S},
		{"100:00:00", 360000 * SW_NS_PER_S},
		{"1-00:00:01", 86401 * SW_NS_PER_S},
		{"2562047:47:16", INT64_C(9223372036) * SW_NS_PER_S},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t value = UNTOUCHED;
		assert_parses(sw_parse_duration(cases[i].text, strlen(cases[i].text), &value), cases[i].text, value, cases[i].expected);
	}
}

/* Unknown units, negative or overflowing durations and impossible clock times are refused. */
static void test_duration_refuses(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"",
		"s",
		"-5",
		"-5s",
		"5 ",
		"5  s",
		"5sec",
		"5w",
		"5S",
		"1h30m",
		"106752d",
		"1e10",
		"9223372036.854775808",
		"1:2:3",
		"01:60:00",
		"01:00:60",
		"00:00",
		":00:00",
		"1-24:00:00",
		"-1-00:00:00",
		"1-2-00:00:00",
		"2562047:47:17",
		"2562048:00:00",
		"999999999999999999:00:00",
		"01:02:03.5",
		"1-:00:00",
		"01:02:03:04",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t value;
		assert_refused(sw_parse_duration(cases[i], strlen(cases[i]), &value), cases[i], value);
	}
}

/* Sizes count in powers of 1024, whichever way the unit is written. */
static void test_bytes(void **state)
{
	(void)state;
	static const struct unsigned_case good[] = {
		{"0", 0},
		{"512", 512},
		{"512B", 512},
		{"4K", 4096},
		{"4k", 4096},
		{"4kB", 4096},
		{"1M", 1 << 20},
		{"20G", UINT64_C(20) << 30},
		{"1.5GiB", UINT64_C(3) << 29},
		{"80GB", UINT64_C(80) << 30},
		{"16.0 GiB", UINT64_C(16) << 30},
		{"2T", UINT64_C(2) << 40},
		{"0.5PiB", UINT64_C(1) << 49},
		{"16383P", UINT64_C(16383) << 50},
		{"18446744073709551615", UINT64_MAX},
		{"0.0004K", 0},
		{"0.0005K", 1},
	};
	for (size_t i = 0; i < COUNT(good); i++) {
		uint64_t value = UNTOUCHED;
		assert_parses(sw_parse_bytes(good[i].text, strlen(good[i].text), &value), good[i].text, value, good[i].expected);
	}
	static const char *const bad[] = {
		"", "K", "-1", "-1G", "1X", "1Ki", "1iB", "1KiBs", "1BB", "1GG", "16384P", "18446744073709551616", "1 ", "G1", "1m",
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		uint64_t value;
		assert_refused(sw_parse_bytes(bad[i], strlen(bad[i]), &value), bad[i], value);
	}
}

/* Durations are shown in the unit that suits them, and rounding never shows 60
 * seconds or 1000 milliseconds. */
static void test_format_duration(void **state)
{
	(void)state;
	static const struct {
		int64_t ns;
		const char *expected;
	} cases[] = {
		{0, "0 s"},
		{1, "1 ns"},
		{999, "999 ns"},
		{1000, "1 us"},
		{999499, "999 us"},
		{999500, "1 ms"},
		{350 * SW_NS_PER_MS, "350 ms"},
		{999500 * SW_NS_PER_US - 1, "999 ms"},
		{999500 * SW_NS_PER_US, "1.0 s"},
		{59200 * SW_NS_PER_MS, "59.2 s"},
		{59949 * SW_NS_PER_MS, "59.9 s"},
		{59950 * SW_NS_PER_MS, "0:01:00"},
		{900 * SW_NS_PER_S, "0:15:00"},
		{7384 * SW_NS_PER_S, "2:03:04"},
		{86400 * SW_NS_PER_S - SW_NS_PER_S / 2, "1d 00:00:00"},
		{93784 * SW_NS_PER_S, "1d 02:03:04"},
		{-7384 * SW_NS_PER_S, "-2:03:04"},
		{INT64_MIN, "-106751d 23:47:17"},
		{SW_NEVER - 1, "106751d 23:47:17"},
		{SW_NEVER, "never"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buffer[32];
		assert_ptr_equal(sw_format_duration(cases[i].ns, buffer), buffer);
		assert_string_equal(buffer, cases[i].expected);
	}
}

/* Sizes are shown with one decimal in the largest unit that has at least one of them. */
static void test_format_bytes(void **state)
{
	(void)state;
	static const struct {
		uint64_t bytes;
		const char *expected;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{(1 << 20) - 1, "1.0 MiB"},
		{UINT64_C(16) << 30, "16.0 GiB"},
		{UINT64_C(1) << 40, "1.0 TiB"},
		{UINT64_C(5) << 50, "5.0 PiB"},
		{UINT64_MAX, "16.0 EiB"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buffer[32];
		assert_ptr_equal(sw_format_bytes(cases[i].bytes, buffer), buffer);
		assert_string_equal(buffer, cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i64_accepts),	      cmocka_unit_test(test_i64_refuses),
		cmocka_unit_test(test_size_bounds_text),      cmocka_unit_test(test_u64),
		cmocka_unit_test(test_decimal_accepts),	      cmocka_unit_test(test_decimal_refuses),
		cmocka_unit_test(test_decimal_against_model), cmocka_unit_test(test_duration_accepts),
		cmocka_unit_test(test_duration_refuses),      cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_format_duration),	      cmocka_unit_test(test_format_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
