/* Numbers and foreign text as reports print them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

/* Fixed and short decimals are rounded, never in exponents, never "nan". */
static void test_decimals(void **state)
{
	(void)state;
	char text[SW_TEXT_SIZE];
	assert_string_equal(sw_text_decimal(7889.744, 2, text), "7889.74");
	assert_string_equal(sw_text_decimal(0.005, 2, text), "0.01");
	assert_string_equal(sw_text_decimal(-1.5, 1, text), "-1.5");
	assert_string_equal(sw_text_decimal(-0.01, 1, text), "0.0");
	assert_string_equal(sw_text_decimal(12, 0, text), "12");
	assert_string_equal(sw_text_decimal(1e300, 2, text), "9e18");
	assert_string_equal(sw_text_decimal(NAN, 2, text), "\xE2\x80\x93");
	assert_string_equal(sw_text_decimal(-INFINITY, 2, text), "\xE2\x80\x93");
	assert_string_equal(sw_text_short(7.50, 2, text), "7.5");
	assert_string_equal(sw_text_short(100, 2, text), "100");
}

/* Thousands are grouped and nouns agree with their number. */
static void test_counts(void **state)
{
	(void)state;
	char text[SW_TEXT_SIZE];
	assert_string_equal(sw_text_count(0, text), "0");
	assert_string_equal(sw_text_count(999, text), "999");
	assert_string_equal(sw_text_count(82247, text), "82,247");
	assert_string_equal(sw_text_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
	assert_string_equal(sw_text_plural(1, "job", "jobs", text), "1 job");
	assert_string_equal(sw_text_plural(0, "job", "jobs", text), "0 jobs");
	assert_string_equal(sw_text_plural(UINT64_MAX, "preemption", "preemptions", text), "18,446,744,073,709,551,615 preemptions");
}

/* Durations have two units at most, and rounding never gives "60 s" or "24 h". */
static void test_durations(void **state)
{
	(void)state;
	static const struct {
		double seconds;
		const char *expected;
	} cases[] = {
		{0, "0 s"},
		{-3, "0 s"},
		{41e-6, "41 \xC2\xB5s"},
		{0.35, "350 ms"},
		{0.9996, "1 s"},
		{4.256, "4.26 s"},
		{59.2, "59.2 s"},
		{59.96, "1 min"},
		{750, "12 min 30 s"},
		{3599.6, "1 h"},
		{7889, "2 h 11 min"},
		{86399, "1 d"},
		{86400 * 3 + 3600 * 4 + 120, "3 d 4 h"},
		{86400 * 99.6, "100 d"},
		{86400 * 1200.0, "1,200 d"},
		{9.3e9, "107,639 d"},
		{NAN, "\xE2\x80\x93"},
		{INFINITY, "\xE2\x80\x93"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[SW_TEXT_SIZE];
		assert_string_equal(sw_text_duration(cases[i].seconds, text), cases[i].expected);
	}
}

/* A share below all is never printed as all, a share above nothing never as nothing. */
static void test_percent(void **state)
{
	(void)state;
	char text[SW_TEXT_SIZE];
	assert_string_equal(sw_text_percent(0, text), "0 %");
	assert_string_equal(sw_text_percent(0.00001, text), "under 0.1 %");
	assert_string_equal(sw_text_percent(0.034, text), "3.4 %");
	assert_string_equal(sw_text_percent(0.714, text), "71 %");
	assert_string_equal(sw_text_percent(0.99999, text), "99.9 %");
	assert_string_equal(sw_text_percent(1, text), "100 %");
}

/* Factors have as many digits as they deserve. */
static void test_factors(void **state)
{
	(void)state;
	char text[SW_TEXT_SIZE];
	assert_string_equal(sw_text_factor(1.04, text), "1.04");
	assert_string_equal(sw_text_factor(3.345, text), "3.3");
	assert_string_equal(sw_text_factor(12.4, text), "12");
	assert_string_equal(sw_text_factor(1500, text), "1,500");
}

/* Seconds are exact to the nanosecond, also at the ends of the range. */
static void test_seconds(void **state)
{
	(void)state;
	char text[SW_TEXT_SIZE];
	assert_string_equal(sw_text_seconds(0, text), "0");
	assert_string_equal(sw_text_seconds(INT64_C(17000000000), text), "17");
	assert_string_equal(sw_text_seconds(500000000, text), "0.5");
	assert_string_equal(sw_text_seconds(1, text), "0.000000001");
	assert_string_equal(sw_text_seconds(INT64_C(512600857650000), text), "512600.85765");
	assert_string_equal(sw_text_seconds(INT64_C(-1500000000), text), "-1.5");
	assert_string_equal(sw_text_seconds(INT64_MAX, text), "9223372036.854775807");
	assert_string_equal(sw_text_seconds(INT64_MIN, text), "-9223372036.854775808");
}

static char *as_html(const char *raw)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	sw_text_html(out, raw);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Markup, quotes, control characters and broken UTF-8 cannot leave their
 * place; good UTF-8 passes. */
static void test_escaping(void **state)
{
	(void)state;
	static const struct {
		const char *raw, *escaped, *clean;
	} cases[] = {
		{"<script>\"a\" & 'b'", "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;", "<script>\"a\" & 'b'"},
		{"gr\xC3\xB6\xC3\x9F"
		 "e",
		 "gr\xC3\xB6\xC3\x9F"
		 "e",
		 "gr\xC3\xB6\xC3\x9F"
		 "e"},
		{"a\x1B[31mb\n", "a\xEF\xBF\xBD[31mb\n", "a\xEF\xBF\xBD[31mb\n"},
		{"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD", "\xEF\xBF\xBD\xEF\xBF\xBD"},
		{"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
		{"cut \xF0\x9F\x98", "cut \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", "cut \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
		{"\xC2\x85", "\xEF\xBF\xBD", "\xEF\xBF\xBD"},
		{NULL, "", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *escaped = as_html(cases[i].raw);
		char *clean = sw_text_clean(cases[i].raw);
		assert_string_equal(escaped, cases[i].escaped);
		assert_string_equal(clean, cases[i].clean);
		free(escaped);
		free(clean);
	}
}

/* Columns are characters, not bytes. */
static void test_columns(void **state)
{
	(void)state;
	assert_int_equal(sw_text_columns(""), 0);
	assert_int_equal(sw_text_columns("gr\xC3\xB6\xC3\x9F"
					 "e"),
			 5);
}

/* Aim: a list with commas gives its words in order, empty ones too, and none behind its end. */
static void test_lists(void **state)
{
	(void)state;
	static const struct {
		const char *list;
		const char *words[4];
	} cases[] = {{"", {NULL}}, {"a", {"a"}}, {"a,bc", {"a", "bc"}}, {"a,,b", {"a", "", "b"}}, {"a,", {"a"}}, {",a", {"", "a"}}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *at = cases[i].list, *word = NULL;
		size_t size = 0, count = 0;
		for (; sw_text_next(&at, &word, &size); count++) {
			assert_non_null(cases[i].words[count]);
			assert_int_equal(size, strlen(cases[i].words[count]));
			assert_memory_equal(word, cases[i].words[count], size);
		}
		assert_null(cases[i].words[count]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decimals), cmocka_unit_test(test_counts),	 cmocka_unit_test(test_durations),
		cmocka_unit_test(test_percent),	 cmocka_unit_test(test_factors), cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_escaping), cmocka_unit_test(test_columns), cmocka_unit_test(test_lists),
	};
	return cmocka_run_group_tests_name("sim/report/text", tests, NULL, NULL);
}
