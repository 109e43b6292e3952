#include "api/when.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/civil.h"
#include "base/error.h"
#include "base/number.h"

#define SECONDS_SIZE 19u /* "2017-10-09T07:01:55" */

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
	uint64_t hours, minutes;
	if (sw_parse_u64(text + 1, 2, &hours) < 0 || sw_parse_u64(text + 4, 2, &minutes) < 0 || hours > 23 || minutes > 59)
		return SW_EINPUT;
	*ret_s = (text[0] == '-' ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
	return 0;
}

int sw_when_parse(const char *text, size_t size, int64_t *ret_ns)
{
	char date[SECONDS_SIZE + 1] = "";
	int64_t seconds;
	if (size <= SECONDS_SIZE || strchr("Tt ", text[10]) == NULL || text[10] == '\0')
		return SW_EINPUT;
	memcpy(date, text, SECONDS_SIZE);
	date[10] = 'T';
	if (sw_civil_parse(date, SECONDS_SIZE, &seconds) < 0)
		return SW_EINPUT;
	size_t at = SECONDS_SIZE;
	int64_t fraction_ns = 0, offset_s;
	if (text[at] == '.') {
		size_t taken = parse_fraction(text + at, size - at, &fraction_ns);
		if (taken == 0)
			return SW_EINPUT;
		at += taken;
	}
	if (parse_offset(text + at, size - at, &offset_s) < 0)
		return SW_EINPUT;
	seconds -= offset_s;
	if (seconds < 0 || seconds > SW_WHEN_MAX_NS / SW_NS_PER_S)
		return SW_EINPUT;
	*ret_ns = seconds * SW_NS_PER_S + fraction_ns;
	return 0;
}

char *sw_when_format(int64_t ns, char buffer[SW_WHEN_SIZE])
{
	assert(ns >= 0 && ns <= SW_WHEN_MAX_NS);
	char date[SECONDS_SIZE + 1];
	sw_civil_format(ns / SW_NS_PER_S, date);
	date[10] = 'T';
	int size = snprintf(buffer, SW_WHEN_SIZE, "%s", date);
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

char *sw_when_format_seconds(int64_t seconds, char buffer[SW_WHEN_SIZE])
{
	const int64_t most = SW_WHEN_MAX_NS / SW_NS_PER_S;
	return sw_when_format((seconds < 0 ? 0 : seconds > most ? most : seconds) * SW_NS_PER_S, buffer);
}
