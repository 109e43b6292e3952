#include "base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* A number as it stands in the text. `digits` may hold one point, which the walk over it skips. */
struct literal {
	bool negative;
	const char *digits;
	size_t size;	  /* of `digits`, the point included */
	int64_t whole;	  /* digits before the point */
	int64_t exponent; /* of ten; saturated far beyond what any bounded text can undo */
};

#define EXPONENT_LIMIT (INT64_MAX / 4)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads "e-3" at `text`; returns how many bytes it took, 0 when there is no exponent there. */
static size_t scan_exponent(const char *text, size_t size, int64_t *ret_exponent)
{
	if (size < 2 || (text[0] != 'e' && text[0] != 'E'))
		return 0;
	size_t at = 1;
	bool negative = text[at] == '-';
	if (text[at] == '-' || text[at] == '+')
		at++;
	size_t first = at;
	int64_t value = 0;
	for (; at < size && is_digit(text[at]); at++)
		value = value > EXPONENT_LIMIT / 10 - 1 ? EXPONENT_LIMIT : value * 10 + (text[at] - '0');
	if (at == first)
		return 0;
	*ret_exponent = negative ? -value : value;
	return at;
}

/* Reads a number at the start of `text`; returns how many bytes it took, 0 when there is none. */
static size_t scan(const char *text, size_t size, struct literal *ret_literal)
{
	struct literal literal = {0};
	size_t at = 0;
	if (size > 0 && (text[0] == '-' || text[0] == '+')) {
		literal.negative = text[0] == '-';
		at = 1;
	}
	literal.digits = text + at;
	size_t first = at;
	while (at < size && is_digit(text[at]))
		at++;
	literal.whole = (int64_t)(at - first);
	size_t fraction = 0;
	if (at < size && text[at] == '.') {
		at++;
		for (; at < size && is_digit(text[at]); at++)
			fraction++;
	}
	if (literal.whole == 0 && fraction == 0)
		return 0;
	literal.size = at - first;
	at += scan_exponent(text + at, size - at, &literal.exponent);
	*ret_literal = literal;
	return at;
}

/* The literal's magnitude times factor times 10^power, rounded half up; false when it exceeds
 * `limit`. What lies beyond the 18th digit behind the unit (10^power, times the factor) is cut off,
 * which cannot change a rounding for factor 1. */
static bool scale(const struct literal *literal, uint64_t factor, int power, uint64_t limit, uint64_t *ret_value)
{
	uint64_t units = 0, fraction = 0;
	uint64_t weight = UINT64_C(1000000000000000000); /* of the next digit of `fraction`, times ten */
	int64_t unit_digits = literal->whole + literal->exponent + power;
	int64_t place = 0; /* of the digit at hand, from the left */
	size_t at = 0;
	bool zero = true;
	if (unit_digits < 0) {
		/* "0.0..." follows the unit: these places hold zeros that the text does not. */
		for (int64_t i = unit_digits; i < 0 && weight > 0; i++)
			weight /= 10;
		unit_digits = 0;
	}
	for (; at < literal->size || (place < unit_digits && !zero); at++) {
		if (at < literal->size && literal->digits[at] == '.')
			continue;
		unsigned digit = at < literal->size ? (unsigned)(literal->digits[at] - '0') : 0;
		zero = zero && digit == 0;
		if (place++ < unit_digits) {
			if (__builtin_mul_overflow(units, 10, &units) || __builtin_add_overflow(units, digit, &units))
				return false;
		} else {
			weight /= 10;
			fraction += digit * weight;
		}
	}
	const uint64_t one = UINT64_C(1000000000000000000);
	unsigned __int128 rest = ((unsigned __int128)fraction * factor + one / 2) / one;
	unsigned __int128 total = (unsigned __int128)units * factor + rest;
	if (total > limit)
		return false;
	*ret_value = (uint64_t)total;
	return true;
}

static int give_signed(const struct literal *literal, uint64_t magnitude, int64_t *ret_value)
{
	if (literal->negative)
		*ret_value = magnitude == 0 ? 0 : -(int64_t)(magnitude - 1) - 1;
	else
		*ret_value = (int64_t)magnitude;
	return 0;
}

static uint64_t signed_limit(const struct literal *literal)
{
	return (uint64_t)INT64_MAX + literal->negative;
}

/* An integer: no exponent, and only zeros behind a point that has digits on both sides. */
static bool scan_integer(const char *text, size_t size, struct literal *ret_literal)
{
	struct literal literal;
	if (size == 0 || scan(text, size, &literal) != size || literal.whole == 0)
		return false;
	if (literal.digits + literal.size != text + size)
		return false;
	if (literal.size == (size_t)literal.whole + 1)
		return false;
	for (size_t i = (size_t)literal.whole + 1; i < literal.size; i++)
		if (literal.digits[i] != '0')
			return false;
	*ret_literal = literal;
	return true;
}

int sw_parse_i64(const char *text, size_t size, int64_t *ret_value)
{
	struct literal literal;
	uint64_t magnitude;
	if (!scan_integer(text, size, &literal) || !scale(&literal, 1, 0, signed_limit(&literal), &magnitude))
		return SW_EINPUT;
	return give_signed(&literal, magnitude, ret_value);
}

int sw_parse_u64(const char *text, size_t size, uint64_t *ret_value)
{
	struct literal literal;
	uint64_t value;
	if (!scan_integer(text, size, &literal) || !scale(&literal, 1, 0, UINT64_MAX, &value))
		return SW_EINPUT;
	if (literal.negative && value != 0)
		return SW_EINPUT;
	*ret_value = value;
	return 0;
}

int sw_parse_decimal(const char *text, size_t size, int64_t scale_by, int64_t *ret_value)
{
	int power = 0;
	for (int64_t left = scale_by; left > 1; left /= 10, power++)
		assert(left % 10 == 0);
	assert(scale_by >= 1 && power <= 9);

	struct literal literal;
	uint64_t magnitude;
	if (size == 0 || scan(text, size, &literal) != size)
		return SW_EINPUT;
	if (!scale(&literal, 1, power, signed_limit(&literal), &magnitude))
		return SW_EINPUT;
	return give_signed(&literal, magnitude, ret_value);
}

/* Splits a number from 0 up from the unit behind it, which one space may set off. */
static bool scan_quantity(const char *text, size_t size, struct literal *ret_literal, const char **ret_unit, size_t *ret_unit_size)
{
	size_t at = size == 0 ? 0 : scan(text, size, ret_literal);
	if (at == 0 || text[0] == '-')
		return false;
	if (size - at > 1 && text[at] == ' ')
		at++;
	*ret_unit = text + at;
	*ret_unit_size = size - at;
	return true;
}

/* Reads digits up to `stop` (or the end when it is NUL); false when there are none, too many, or
 * the value exceeds `most`. */
static bool clock_field(const char **at, const char *end, char stop, uint64_t most, uint64_t *ret_value)
{
	const char *from = *at;
	uint64_t value = 0;
	while (*at < end && is_digit(**at) && *at - from < 12)
		value = value * 10 + (uint64_t)(*(*at)++ - '0');
	if (*at == from || value > most)
		return false;
	if (stop == '\0' ? *at != end : *at == end || **at != stop)
		return false;
	*at += stop != '\0';
	*ret_value = value;
	return true;
}

/* D-HH:MM:SS or HH:MM:SS. Without days the hours may go beyond 23. */
static int parse_clock(const char *text, size_t size, int64_t *ret_ns)
{
	const char *at = text, *end = text + size;
	uint64_t days = 0, hours, minutes, seconds;
	bool with_days = memchr(text, '-', size) != NULL;
	if (with_days && !clock_field(&at, end, '-', 106751, &days))
		return SW_EINPUT;
	if (!clock_field(&at, end, ':', with_days ? 23 : 2562047, &hours))
		return SW_EINPUT;
	if (end - at != 5 || !clock_field(&at, end, ':', 59, &minutes) || !clock_field(&at, end, '\0', 59, &seconds))
		return SW_EINPUT;
	uint64_t total_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
	if (total_s > (uint64_t)(INT64_MAX / SW_NS_PER_S))
		return SW_EINPUT;
	*ret_ns = (int64_t)total_s * SW_NS_PER_S;
	return 0;
}

int sw_parse_duration(const char *text, size_t size, int64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t factor;
		int power;
	} units[] = {
		{"", 1, 9}, {"s", 1, 9}, {"ms", 1, 6}, {"us", 1, 3}, {"ns", 1, 0}, {"m", 6, 10}, {"h", 36, 11}, {"d", 864, 11},
	};
	if (size > 0 && memchr(text, ':', size) != NULL)
		return parse_clock(text, size, ret_ns);
	struct literal literal;
	const char *unit;
	size_t unit_size;
	if (!scan_quantity(text, size, &literal, &unit, &unit_size))
		return SW_EINPUT;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		uint64_t ns;
		if (strlen(units[i].name) != unit_size || memcmp(units[i].name, unit, unit_size) != 0)
			continue;
		if (!scale(&literal, units[i].factor, units[i].power, INT64_MAX, &ns))
			return SW_EINPUT;
		*ret_ns = (int64_t)ns;
		return 0;
	}
	return SW_EINPUT;
}

int sw_parse_bytes(const char *text, size_t size, uint64_t *ret_bytes)
{
	static const char letters[] = "KMGTP";
	struct literal literal;
	const char *unit;
	size_t unit_size;
	if (!scan_quantity(text, size, &literal, &unit, &unit_size))
		return SW_EINPUT;
	unsigned bits = 0;
	const char *letter = unit_size == 0 ? NULL : memchr(letters, *unit == 'k' ? 'K' : *unit, sizeof letters - 1);
	if (letter != NULL) {
		bits = 10 * (unsigned)(letter - letters + 1);
		unit++;
		unit_size--;
		if (unit_size == 2 && *unit == 'i') {
			unit++;
			unit_size--;
		}
	}
	if (unit_size > 1 || (unit_size == 1 && *unit != 'B') || !scale(&literal, UINT64_C(1) << bits, 0, UINT64_MAX, ret_bytes))
		return SW_EINPUT;
	return 0;
}

/* `value` in units of `unit`, rounded to the nearest. */
static uint64_t rounded(uint64_t value, uint64_t unit)
{
	return value / unit + (value % unit >= unit - unit / 2);
}

char *sw_format_duration(int64_t ns, char buffer[32])
{
	const char *sign = ns < 0 ? "-" : "";
	uint64_t left = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	if (ns == SW_NEVER)
		snprintf(buffer, 32, "never");
	else if (left == 0)
		snprintf(buffer, 32, "0 s");
	else if (left < SW_NS_PER_US)
		snprintf(buffer, 32, "%s%" PRIu64 " ns", sign, left);
	else if (rounded(left, SW_NS_PER_US) < 1000)
		snprintf(buffer, 32, "%s%" PRIu64 " us", sign, rounded(left, SW_NS_PER_US));
	else if (rounded(left, SW_NS_PER_MS) < 1000)
		snprintf(buffer, 32, "%s%" PRIu64 " ms", sign, rounded(left, SW_NS_PER_MS));
	else if (rounded(left, SW_NS_PER_S / 10) < 600)
		snprintf(buffer, 32, "%s%" PRIu64 ".%u s", sign, rounded(left, SW_NS_PER_S / 10) / 10,
			 (unsigned)(rounded(left, SW_NS_PER_S / 10) % 10));
	else {
		uint64_t s = rounded(left, SW_NS_PER_S);
		unsigned minutes = (unsigned)(s / 60 % 60), seconds = (unsigned)(s % 60);
		if (s < 86400)
			snprintf(buffer, 32, "%s%u:%02u:%02u", sign, (unsigned)(s / 3600), minutes, seconds);
		else
			snprintf(buffer, 32, "%s%ud %02u:%02u:%02u", sign, (unsigned)(s / 86400), (unsigned)(s / 3600 % 24), minutes,
				 seconds);
	}
	return buffer;
}

char *sw_format_bytes(uint64_t bytes, char buffer[32])
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	if (bytes < 1024) {
		snprintf(buffer, 32, "%" PRIu64 " B", bytes);
		return buffer;
	}
	/* Tenths of the unit; 1024 of a unit are shown as one of the next, also when only the
	 * rounding made them so many. */
	unsigned unit = 0;
	uint64_t tenths;
	for (;; unit++) {
		unsigned __int128 scaled = (unsigned __int128)bytes * 10 + (UINT64_C(1) << (10 * unit + 9));
		tenths = (uint64_t)(scaled >> (10 * unit + 10));
		if (tenths < 10240 || unit == 5)
			break;
	}
	snprintf(buffer, 32, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10), names[unit]);
	return buffer;
}
