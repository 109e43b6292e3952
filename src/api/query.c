#include "api/query.h"

#include <stdbool.h>
#include <string.h>

#include "api/json.h"
#include "base/utf8.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes in place up to the end of the text; false for a bad escape or a NUL. */
static bool unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from != '\0'; from++) {
		if (*from != '%') {
			*to++ = *from == '+' ? ' ' : *from;
			continue;
		}
		int high = digit(from[1]), low = high >= 0 ? digit(from[2]) : -1;
		if (low < 0 || (high == 0 && low == 0))
			return false;
		*to++ = (char)(high * 16 + low);
		from += 2;
	}
	*to = '\0';
	return sw_utf8_is_valid(text, strlen(text));
}

int sw_query_parse(const char *text, struct sw_query *query, struct sw_err *err)
{
	query->count = 0;
	if (strlen(text) >= sizeof query->text)
		return sw_err_set(err, SW_ELIMIT, "the query is too long");
	memcpy(query->text, text, strlen(text) + 1);
	for (char *item = query->text, *next; item != NULL; item = next) {
		next = strchr(item, '&');
		if (next != NULL)
			*next++ = '\0';
		if (*item == '\0')
			continue;
		if (query->count == SW_QUERY_MAX)
			return sw_err_set(err, SW_ELIMIT, "the query has more than %u parameters", SW_QUERY_MAX);
		char *value = strchr(item, '=');
		if (value != NULL)
			*value++ = '\0';
		else
			value = item + strlen(item);
		if (!unescape(item) || (*value != '\0' && !unescape(value))) {
			sw_err_set(err, SW_EINPUT, "the query cannot be read");
			sw_err_detail(err, "it has a percent escape that is none, or that is not UTF-8");
			return SW_EINPUT;
		}
		query->items[query->count++] = (struct sw_query_item){item, value};
	}
	return 0;
}
