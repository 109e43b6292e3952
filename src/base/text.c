#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD"
#define DASH "\xE2\x80\x93"

static char *put(char *buffer, const char *text)
{
	snprintf(buffer, SW_TEXT_SIZE, "%s", text);
	return buffer;
}

char *sw_text_decimal(double value, unsigned decimals, char buffer[SW_TEXT_SIZE])
{
	static const int64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
	if (!isfinite(value))
		return put(buffer, DASH);
	if (decimals > 6)
		decimals = 6;
	int64_t scale = powers[decimals];
	if (fabs(value) > 9e18 / (double)scale)
		return put(buffer, value < 0 ? "-9e18" : "9e18");
	int64_t scaled = llround(value * (double)scale);
	uint64_t magnitude = scaled < 0 ? -(uint64_t)scaled : (uint64_t)scaled;
	const char *sign = scaled < 0 ? "-" : "";
	if (decimals == 0)
		snprintf(buffer, SW_TEXT_SIZE, "%s%" PRIu64, sign, magnitude);
	else
		snprintf(buffer, SW_TEXT_SIZE, "%s%" PRIu64 ".%0*" PRIu64, sign, magnitude / (uint64_t)scale, (int)decimals,
			 magnitude % (uint64_t)scale);
	return buffer;
}

static void drop_zeros(char *number)
{
	if (strchr(number, '.') == NULL)
		return;
	char *end = number + strlen(number);
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		end[-1] = '\0';
}

char *sw_text_short(double value, unsigned decimals, char buffer[SW_TEXT_SIZE])
{
	sw_text_decimal(value, decimals, buffer);
	drop_zeros(buffer);
	return buffer;
}

char *sw_text_count(uint64_t value, char buffer[SW_TEXT_SIZE])
{
	char digits[24];
	int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
	char *to = buffer;
	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buffer;
}

char *sw_text_plural(uint64_t value, const char *one, const char *many, char buffer[SW_TEXT_SIZE])
{
	char number[SW_TEXT_SIZE];
	snprintf(buffer, SW_TEXT_SIZE, "%s %.18s", sw_text_count(value, number), value == 1 ? one : many);
	return buffer;
}

/* "<whole> <big> <rest> <small>", leaving out a rest of zero. */
static char *two_units(double total, unsigned per_big, const char *big, const char *small, char *buffer)
{
	uint64_t units = (uint64_t)llround(total);
	uint64_t rest = units % per_big;
	if (rest == 0)
		snprintf(buffer, SW_TEXT_SIZE, "%" PRIu64 " %s", units / per_big, big);
	else
		snprintf(buffer, SW_TEXT_SIZE, "%" PRIu64 " %s %" PRIu64 " %s", units / per_big, big, rest, small);
	return buffer;
}

static char *one_unit(double value, unsigned decimals, const char *unit, char *buffer)
{
	char number[SW_TEXT_SIZE];
	snprintf(buffer, SW_TEXT_SIZE, "%.32s %s", sw_text_short(value, decimals, number), unit);
	return buffer;
}

char *sw_text_duration(double seconds, char buffer[SW_TEXT_SIZE])
{
	if (!isfinite(seconds) || seconds > 1e18)
		return put(buffer, DASH);
	if (seconds < 5e-7)
		return put(buffer, "0 s");
	if (seconds < 9.995e-4)
		return one_unit(seconds * 1e6, 0, "\xC2\xB5s", buffer);
	if (seconds < 0.9995)
		return one_unit(seconds * 1e3, 0, "ms", buffer);
	if (seconds < 9.995)
		return one_unit(seconds, 2, "s", buffer);
	if (seconds < 59.95)
		return one_unit(seconds, 1, "s", buffer);
	if (seconds < 3599.5)
		return two_units(seconds, 60, "min", "s", buffer);
	if (seconds < 86370)
		return two_units(seconds / 60, 60, "h", "min", buffer);
	if (seconds < 99.5 * 86400)
		return two_units(seconds / 3600, 24, "d", "h", buffer);
	return sw_text_plural((uint64_t)llround(seconds / 86400), "d", "d", buffer);
}

char *sw_text_percent(double share, char buffer[SW_TEXT_SIZE])
{
	char number[SW_TEXT_SIZE];
	double percent = share * 100;
	if (percent > 99.9 && percent < 100)
		percent = 99.9;
	if (percent > 0 && percent < 0.1)
		return put(buffer, "under 0.1 %");
	unsigned decimals = percent < 9.95 || (percent > 99 && percent < 100) ? 1 : 0;
	snprintf(buffer, SW_TEXT_SIZE, "%.32s %%", sw_text_short(percent, decimals, number));
	return buffer;
}

char *sw_text_factor(double factor, char buffer[SW_TEXT_SIZE])
{
	if (factor < 1.095)
		return sw_text_short(factor, 2, buffer);
	if (factor < 9.95)
		return sw_text_short(factor, 1, buffer);
	if (factor < 1e18)
		return sw_text_count((uint64_t)llround(factor), buffer);
	return put(buffer, DASH);
}

char *sw_text_seconds(int64_t ns, char buffer[SW_TEXT_SIZE])
{
	uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	snprintf(buffer, SW_TEXT_SIZE, "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "", magnitude / SW_NS_PER_S, magnitude % SW_NS_PER_S);
	drop_zeros(buffer);
	return buffer;
}

static bool is_control(const unsigned char *at)
{
	if (at[0] == '\n' || at[0] == '\t')
		return false;
	return at[0] < 0x20 || at[0] == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0);
}

/* The next clean character of *text, which moves on; its bytes are written to
 * `character`. False at the end. */
static bool next_character(const unsigned char **text, const unsigned char *end, char character[5])
{
	if (*text == end || **text == '\0')
		return false;
	size_t length = sw_utf8_length((const char *)*text, (size_t)(end - *text));
	if (length == 0 || is_control(*text)) {
		memcpy(character, REPLACEMENT, sizeof REPLACEMENT);
	} else {
		memcpy(character, *text, length);
		character[length] = '\0';
	}
	*text += length > 0 ? length : 1;
	return true;
}

void sw_text_html(FILE *out, const char *text)
{
	if (text != NULL)
		sw_text_html_n(out, text, strlen(text));
}

void sw_text_html_n(FILE *out, const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + size;
	char character[5];
	while (next_character(&at, end, character)) {
		switch (character[0]) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			fputs(character, out);
		}
	}
}

char *sw_text_clean(const char *text)
{
	const unsigned char *at = (const unsigned char *)(text != NULL ? text : "");
	size_t size = strlen((const char *)at);
	const unsigned char *end = at + size;
	char *clean = malloc(size * (sizeof REPLACEMENT - 1) + 1);
	if (clean == NULL)
		return NULL;
	char *to = clean;
	char character[5];
	while (next_character(&at, end, character))
		to = stpcpy(to, character);
	*to = '\0';
	return clean;
}

size_t sw_text_columns(const char *text)
{
	size_t columns = 0;
	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xC0) != 0x80;
	return columns;
}

bool sw_text_next(const char **list, const char **ret_word, size_t *ret_size)
{
	const char *word = *list;
	if (*word == '\0')
		return false;
	size_t size = strcspn(word, ",");
	*list = word + size + (word[size] == ',');
	*ret_word = word;
	*ret_size = size;
	return true;
}
