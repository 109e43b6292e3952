#include "api/when.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"

#define S_PER_DAY INT64_C(86400)

/* A year that starts in March has its leap day last, and the days before month m of it are (153
 * m + 2) / 5. 719468 days lie between the first of March of year 0 and 1970. */
static int64_t days_of(int year, int month, int day)
{
	int64_t y = month < 3 ? year - 1 : year, m = month < 3 ? month + 9 : month - 3;
	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static bool is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int month_days(int year, int month)
{
	return month == 2 ? 28 + is_leap(year) : 30 + (month + (month > 7)) % 2;
}

/* Two or four digits; -1 when they are not. */
static int digits(const char *text, int count)
{
	int value = 0;
	for (int i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = 10 * value + text[i] - '0';
	}
	return value;
}

/* ".25" at the start of the text: returns how many bytes it took, 0 when it is not a fraction
 * of one to nine digits. */
static size_t parse_fraction(const char *text, size_t size, int64_t *ret_ns)
{
	int64_t ns = 0, weight = SW_NS_PER_S / 10;
	size_t at = 1;
	for (; at < size && text[at] >= '0' && text[at] <= '9'; at++, weight /= 10)
		ns += weight * (text[at] - '0');
	if (at == 1 || at > 10)
		return 0;
	*ret_ns = ns;
	return at;
}

/* "Z" or "+02:00", and nothing behind it. */
static int parse_offset(const char *text, size_t size, int64_t *ret_s)
{
	if (size == 1 && (text[0] == 'Z' || text[0] == 'z')) {
		*ret_s = 0;
		return 0;
	}
	if (size != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':')
		return SW_EINPUT;
	int hours = digits(text + 1, 2), minutes = digits(text + 4, 2);
	if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
		return SW_EINPUT;
	*ret_s = (text[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
	return 0;
}

int sw_when_parse(const char *text, size_t size, int64_t *ret_ns)
{
	if (size < 20 || text[4] != '-' || text[7] != '-' || strchr("Tt ", text[10]) == NULL || text[10] == '\0' || text[13] != ':' ||
	    text[16] != ':')
		return SW_EINPUT;
	int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
	int hour = digits(text + 11, 2), minute = digits(text + 14, 2), second = digits(text + 17, 2);
	if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1 || day > month_days(year, month))
		return SW_EINPUT;
	if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
		return SW_EINPUT;
	size_t at = 19;
	int64_t fraction_ns = 0, offset_s;
	if (text[at] == '.') {
		size_t taken = parse_fraction(text + at, size - at, &fraction_ns);
		if (taken == 0)
			return SW_EINPUT;
		at += taken;
	}
	if (parse_offset(text + at, size - at, &offset_s) < 0)
		return SW_EINPUT;
	int64_t seconds = days_of(year, month, day) * S_PER_DAY + hour * 3600 + minute * 60 + second - offset_s;
	if (seconds < 0 || seconds > SW_WHEN_MAX_NS / SW_NS_PER_S)
		return SW_EINPUT;
	*ret_ns = seconds * SW_NS_PER_S + fraction_ns;
	return 0;
}

char *sw_when_format(int64_t ns, char buffer[SW_WHEN_SIZE])
{
	assert(ns >= 0 && ns <= SW_WHEN_MAX_NS);
	int64_t seconds = ns / SW_NS_PER_S, days = seconds / S_PER_DAY, rest = seconds % S_PER_DAY;
	/* A guess that is at most one year too high or low is put right by looking. */
	int year = (int)(1970 + days / 366), month = 1;
	while (days_of(year + 1, 1, 1) <= days)
		year++;
	while (month < 12 && days_of(year, month + 1, 1) <= days)
		month++;
	int day = (int)(days - days_of(year, month, 1)) + 1;
	int size = snprintf(buffer, SW_WHEN_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, (int)(rest / 3600),
			    (int)(rest / 60 % 60), (int)(rest % 60));
	int64_t fraction = ns % SW_NS_PER_S;
	if (fraction > 0)
		buffer[size++] = '.';
	for (int64_t digit = SW_NS_PER_S / 10; fraction > 0; digit /= 10) {
		buffer[size++] = (char)('0' + fraction / digit);
		fraction %= digit;
	}
	buffer[size++] = 'Z';
	buffer[size] = '\0';
	return buffer;
}
