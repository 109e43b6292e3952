#include "base/civil.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* Years are counted from March, so that the leap day is a year's last. Months from March have
 * lengths 31,30,31,30,31,31,30,31,30,31,31,28: (153 m + 2) / 5 days before month m. Eras of 400
 * years are all alike: 146097 days. Day 0 is 1970-01-01. */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t m = month <= 2 ? month + 9 : month - 3;
	int64_t era = y / 400, of_era = y % 400;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap);
}

/* `count` digits, or -1. */
static int digits(const char *text, size_t count)
{
	int value = 0;
	for (size_t i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

int sw_civil_parse(const char *text, size_t size, int64_t *ret_seconds)
{
	if (size < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':')
		return SW_EINPUT;
	int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
	int hour = digits(text + 11, 2), minute = digits(text + 14, 2), second = digits(text + 17, 2);
	if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
		return SW_EINPUT;
	if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
		return SW_EINPUT;
	if (size > 19 && (text[19] != '.' || size == 20))
		return SW_EINPUT;
	for (size_t i = 20; i < size; i++)
		if (digits(text + i, 1) < 0)
			return SW_EINPUT;
	*ret_seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
	return 0;
}

char *sw_civil_format(int64_t seconds, char buffer[20])
{
	assert(seconds >= 0 && seconds < INT64_C(253402300800));
	int64_t days = seconds / 86400 + 719468, rest = seconds % 86400;
	int64_t era = days / 146097, of_era = days % 146097;
	/* Leap days so far are taken out before dividing by the length of a common year. */
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
	int64_t m = (5 * of_year + 2) / 153;
	unsigned day = (unsigned)(of_year - (153 * m + 2) / 5 + 1) % 32;
	unsigned month = (unsigned)(m < 10 ? m + 3 : m - 9) % 13;
	unsigned year = (unsigned)(era * 400 + year_of_era + (month <= 2)) % 10000;
	snprintf(buffer, 20, "%04u-%02u-%02u %02u:%02u:%02u", year, month, day, (unsigned)(rest / 3600) % 24, (unsigned)(rest / 60 % 60),
		 (unsigned)(rest % 60));
	return buffer;
}
