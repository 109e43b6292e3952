/* Dates and seconds: against a calendar that counts day by day. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/civil.h"
#include "base/error.h"

static int days_in(int year, int month)
{
	if (month == 2)
		return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
	return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static void test_every_day(void **state)
{
	(void)state;
	int64_t day_number = 0;
	for (int year = 1970; year < 2200; year++)
		for (int month = 1; month <= 12; month++)
			for (int day = 1; day <= days_in(year, month); day++, day_number++) {
				char text[64], back[20];
				int64_t expected = day_number * 86400 + day_number % 86400, seconds = -1;
				int64_t clock = day_number % 86400;
				snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d:%02d", year, month, day, (int)(clock / 3600),
					 (int)(clock / 60 % 60), (int)(clock % 60));
				assert_int_equal(sw_civil_parse(text, 19, &seconds), 0);
				assert_int_equal(seconds, expected);
				assert_string_equal(sw_civil_format(seconds, back), text);
			}
}

static void test_known_moments(void **state)
{
	(void)state;
	int64_t seconds;
	char text[20];
	assert_int_equal(sw_civil_parse("2001-09-09T01:46:40", 19, &seconds), 0);
	assert_int_equal(seconds, 1000000000);
	assert_int_equal(sw_civil_parse("2017-10-09 07:01:55.987654", 26, &seconds), 0);
	assert_int_equal(seconds, 1507532515);
	assert_string_equal(sw_civil_format(0, text), "1970-01-01 00:00:00");
	assert_string_equal(sw_civil_format(INT64_C(253402300799), text), "9999-12-31 23:59:59");
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"2017-10-09",
		"2017-10-09 07:01:5",
		"2017/10/09 07:01:55",
		"2017-10-09_07:01:55",
		"2017-10-09 07.01.55",
		"2017-00-09 07:01:55",
		"2017-13-09 07:01:55",
		"2017-10-00 07:01:55",
		"2017-10-32 07:01:55",
		"2017-02-29 07:01:55",
		"2100-02-29 07:01:55",
		"2017-10-09 24:01:55",
		"2017-10-09 07:60:55",
		"2017-10-09 07:01:60",
		"1969-10-09 07:01:55",
		"2200-10-09 07:01:55",
		"201x-10-09 07:01:55",
		"2017-10-09 07:01:-5",
		"2017-10-09 07:01:55Z",
		"2017-10-09 07:01:55.",
		"2017-10-09 07:01:55.5Z",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int64_t seconds = -77;
		if (sw_civil_parse(texts[i], strlen(texts[i]), &seconds) != SW_EINPUT || seconds != -77)
			fail_msg("accepted '%s'", texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_day),
		cmocka_unit_test(test_known_moments),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
