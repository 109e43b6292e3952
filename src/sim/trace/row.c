#include "sim/trace/row.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void sw_row_release(struct sw_row *row)
{
	free(row->unquoted);
	row->unquoted = NULL;
	row->unquoted_size = 0;
}

int sw_row_wrong(struct sw_row *row, const struct sw_column *column, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(row->wrong, sizeof row->wrong, fmt, args);
	va_end(args);
	row->wrong_column = column;
	return SW_EINPUT;
}

char *sw_field_show(const struct sw_row_field *field, char buffer[48])
{
	size_t size = field->size < 40 ? field->size : 40;
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)field->text[i];
		buffer[i] = (char)(c >= 0x20 && c < 0x7f ? c : '?');
	}
	memcpy(buffer + size, field->size > 40 ? "..." : "", field->size > 40 ? 4 : 1);
	return buffer;
}

int sw_row_wrong_value(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, const char *fmt, ...)
{
	char shown[48], what[160];
	va_list args;
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return sw_row_wrong(row, column, "'%s' is not %s", sw_field_show(field, shown), what);
}

bool sw_field_is(const struct sw_row_field *field, const char *word)
{
	return strlen(word) == field->size && memcmp(word, field->text, field->size) == 0;
}

bool sw_field_is_any(const struct sw_row_field *field, const char *words)
{
	for (;;) {
		size_t size = strcspn(words, "|");
		if (size == field->size && strncasecmp(words, field->text, size) == 0)
			return true;
		if (words[size] == '\0')
			return false;
		words += size + 1;
	}
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static struct sw_row_field trimmed(const char *from, const char *to)
{
	while (from < to && is_space(*from))
		from++;
	while (to > from && is_space(to[-1]))
		to--;
	return (struct sw_row_field){from, (size_t)(to - from)};
}

/* Reads a quoted field that begins at `at` (its quote); *ret_next is behind the closing
 * quote. Doubled quotes are made single in the row's own memory, which is as long as the line
 * and so never too small. */
static int split_quoted(struct sw_row *row, const char *at, const char *end, char *room, struct sw_row_field *ret_field,
			const char **ret_next)
{
	char *out = room;
	for (at++; at < end; at++) {
		if (*at == '"' && at + 1 < end && at[1] == '"')
			at++;
		else if (*at == '"') {
			*ret_field = (struct sw_row_field){room, (size_t)(out - room)};
			*ret_next = at + 1;
			return 0;
		}
		*out++ = *at;
	}
	return sw_row_wrong(row, NULL, "a quoted field is not closed on the same line");
}

static int reserve_unquoted(struct sw_row *row, size_t size)
{
	if (row->unquoted_size >= size)
		return 0;
	char *room = realloc(row->unquoted, size);
	if (room == NULL)
		return SW_ENOMEM;
	row->unquoted = room;
	row->unquoted_size = size;
	return 0;
}

/* The field at `at`, up to a separator or the end. *ret_next is the separator, or `end`. */
static int split_field(struct sw_row *row, char separator, const char *line, const char *at, const char *end,
		       struct sw_row_field *ret_field, const char **ret_next)
{
	const char *from = at;
	while (separator == ',' && from < end && is_space(*from))
		from++;
	if (separator == ',' && from < end && *from == '"') {
		int r = reserve_unquoted(row, (size_t)(end - line));
		if (r == 0)
			r = split_quoted(row, from, end, row->unquoted + (from - line), ret_field, ret_next);
		if (r < 0)
			return r;
		while (*ret_next < end && is_space(**ret_next))
			(*ret_next)++;
		if (*ret_next < end && **ret_next != separator)
			return sw_row_wrong(row, NULL, "something follows the closing quote of column %zu", row->count + 1);
		return 0;
	}
	const char *next = memchr(at, separator, (size_t)(end - at));
	if (next == NULL)
		next = end;
	*ret_field = trimmed(at, next);
	*ret_next = next;
	return 0;
}

int sw_row_split(struct sw_row *row, char separator, const char *line, size_t size)
{
	const char *at = line, *end = line + size;
	for (row->count = 0;; at++) {
		if (row->count == SW_ROW_FIELDS_MAX)
			return sw_row_wrong(row, NULL, "it has more than %d columns", SW_ROW_FIELDS_MAX);
		int r = split_field(row, separator, line, at, end, &row->fields[row->count], &at);
		if (r < 0)
			return r;
		row->count++;
		if (at == end)
			return 0;
	}
}

/* The common numbers, without the general parser: up to nine digits, and perhaps ".0". */
static bool plain_number(const struct sw_row_field *field, int64_t *ret_value)
{
	size_t size = field->size;
	if (size > 2 && field->text[size - 1] == '0' && field->text[size - 2] == '.')
		size -= 2;
	if (size == 0 || size > 9)
		return false;
	int64_t value = 0;
	for (size_t i = 0; i < size; i++) {
		unsigned digit = (unsigned)(unsigned char)field->text[i] - '0';
		if (digit > 9)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return true;
}

static int decode_count(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, int64_t *ret_value)
{
	int64_t value;
	bool is_number = plain_number(field, &value) || sw_parse_i64(field->text, field->size, &value) == 0;
	if (!is_number || value < column->least || value > column->most)
		return sw_row_wrong_value(row, column, field, "a whole number from %lld to %lld", (long long)column->least,
					  (long long)column->most);
	*ret_value = value;
	return 0;
}

static int decode_decimal32(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, uint32_t *ret_value)
{
	int64_t value;
	if (sw_parse_decimal(field->text, field->size, column->unit, &value) < 0 || value < column->least || value > column->most)
		return sw_row_wrong_value(row, column, field, "a number from %g to %g", (double)column->least / (double)column->unit,
					  (double)column->most / (double)column->unit);
	*ret_value = (uint32_t)value;
	return 0;
}

static const char *unit_name(int64_t unit)
{
	return unit == SW_NS_PER_MS ? "milliseconds" : unit == 60 * SW_NS_PER_S ? "minutes" : "seconds";
}

int sw_row_time(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, int64_t unit, int64_t *ret_ns)
{
	/* The parser scales by powers of ten; what remains of a unit (60 for minutes) is a
	 * factor. */
	int64_t scale = unit < SW_NS_PER_S ? unit : SW_NS_PER_S;
	int64_t factor = unit / scale, value;
	bool is_number;
	if (plain_number(field, &value))
		is_number = !__builtin_mul_overflow(value, scale, &value);
	else
		is_number = sw_parse_decimal(field->text, field->size, scale, &value) == 0;
	if (!is_number || value < 0 || value > SW_TRACE_MAX_NS / factor)
		return sw_row_wrong_value(row, column, field, "a number of %s from 0 to 100 years", unit_name(unit));
	*ret_ns = value * factor;
	return 0;
}

int sw_row_text(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, uint32_t *ret_index)
{
	if (field->size > SW_TRACE_MAX_NAME)
		return sw_row_wrong_value(row, column, field, "a name of at most %zu bytes", SW_TRACE_MAX_NAME);
	if (!sw_utf8_is_valid(field->text, field->size))
		return sw_row_wrong_value(row, column, field, "valid UTF-8");
	return sw_trace_intern(row->trace, field->text, field->size, ret_index);
}

/* Ids are numbers, or names of all kinds. The first row decides for the file, so that a row's
 * number never meets a number that the file gave. */
static int decode_id(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	int64_t id;
	bool is_number = plain_number(field, &id) || sw_parse_i64(field->text, field->size, &id) == 0;
	if (row->number == 0)
		row->trace->named = !is_number;
	if (row->trace->named)
		return sw_row_text(row, column, field, &job->name);
	if (!is_number || id < 0)
		return sw_row_wrong_value(row, column, field, "a job number%s", row->number > 0 ? ", as the first job's is" : "");
	job->id = id;
	return 0;
}

static int decode_field(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	void *into = (char *)job + column->offset;
	int64_t value = 0;
	int r = 0;
	switch (column->kind) {
	case SW_COLUMN_IGNORED:
		break;
	case SW_COLUMN_ID:
		return decode_id(row, column, field, job);
	case SW_COLUMN_TEXT:
		return sw_row_text(row, column, field, into);
	case SW_COLUMN_COUNT:
		return decode_count(row, column, field, into);
	case SW_COLUMN_COUNT32:
		r = decode_count(row, column, field, &value);
		if (r == 0)
			*(uint32_t *)into = (uint32_t)value;
		return r;
	case SW_COLUMN_DECIMAL32:
		return decode_decimal32(row, column, field, into);
	case SW_COLUMN_TIME:
		return sw_row_time(row, column, field, column->unit, into);
	case SW_COLUMN_CUSTOM:
		return column->decode(row, column, field, job);
	}
	return r;
}

int sw_row_decode(struct sw_row *row, const struct sw_layout *layout, const struct sw_columns_at *at, size_t width,
		  struct sw_trace_job *job)
{
	if (row->count != width)
		return sw_row_wrong(row, NULL, "it has %zu column%s, expected %zu", row->count, row->count == 1 ? "" : "s", width);
	for (size_t i = 0; i < layout->count; i++) {
		const struct sw_column *column = &layout->columns[i];
		if (at->field[i] < 0)
			continue;
		const struct sw_row_field *field = &row->fields[at->field[i]];
		if (field->size == 0 && column->mandatory)
			return sw_row_wrong(row, column, "it is empty");
		if (field->size == 0)
			continue;
		int r = decode_field(row, column, field, job);
		if (r < 0)
			return r;
	}
	return 0;
}
