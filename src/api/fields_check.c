/* Structs that were made by hand, or read from people, against the bounds of their tables; and
 * what they own. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "base/utf8.h"

__attribute__((format(printf, 4, 5))) static int refuse(struct sw_err *err, int code, const char *what, const char *fmt, ...)
{
	char detail[sizeof err->detail];
	va_list args;
	va_start(args, fmt);
	vsnprintf(detail, sizeof detail, fmt, args);
	va_end(args);
	sw_err_set(err, code, "%s", what);
	sw_err_detail(err, "%s", detail);
	return code;
}

/* What a terminal would obey: the 32 of ASCII and DEL, and the 32 that are two bytes long
 * (U+0080 to U+009F). */
bool sw_has_control(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];
		if (byte < 0x20 || byte == 0x7F || (byte == 0xC2 && i + 1 < size && (unsigned char)text[i + 1] < 0xA0))
			return true;
	}
	return false;
}

static int check_text(const char *what, const struct sw_field *field, const char *text, struct sw_err *err)
{
	if (text == NULL)
		return 0;
	size_t size = strlen(text);
	if (size > (size_t)field->max)
		return refuse(err, SW_ELIMIT, what, "field '%s' has %zu bytes, at most %zu are allowed", field->name, size,
			      (size_t)field->max);
	if (!sw_utf8_is_valid(text, size))
		return refuse(err, SW_EINPUT, what, "field '%s' is not UTF-8", field->name);
	if (field->line && sw_has_control(text, size))
		return refuse(err, SW_EINPUT, what, "field '%s' holds a control character", field->name);
	return 0;
}

static char **list_of(const struct sw_field *field, const void *source, size_t *ret_count)
{
	*ret_count = *(const size_t *)((const char *)source + field->count_offset);
	return *(char **const *)((const char *)source + field->offset);
}

static int check_list(const char *what, const struct sw_field *field, const void *source, struct sw_err *err)
{
	size_t count;
	char **texts = list_of(field, source, &count);
	int r = 0;
	if (count > field->most)
		return refuse(err, SW_ELIMIT, what, "field '%s' has %zu members, at most %zu are allowed", field->name, count, field->most);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = check_text(what, field, texts[i], err);
	return r;
}

static int64_t most_of(const struct sw_field *field)
{
	int64_t most = field->min - 1;
	if (field->kind != SW_FIELD_WORD)
		return field->max;
	for (size_t i = 0; field->words[i] != NULL; i++)
		most++;
	return most;
}

static int check_number(const char *what, const struct sw_field *field, int64_t number, struct sw_err *err)
{
	/* Of 64 bits without a sign, what is beyond the largest of those with one is negative
	 * here. */
	if ((field->brief && number == 0) || (number >= field->min && number <= most_of(field)))
		return 0;
	return refuse(err, SW_EINPUT, what, "field '%s' is out of range", field->name);
}

static int check_field(const char *what, const struct sw_field *field, const void *source, struct sw_err *err)
{
	const char *at = (const char *)source + field->offset;
	switch (field->kind) {
	case SW_FIELD_TEXT:
		return check_text(what, field, *(const char *const *)at, err);
	case SW_FIELD_LIST:
		return check_list(what, field, source, err);
	case SW_FIELD_U32:
	case SW_FIELD_WORD:
	case SW_FIELD_MILLI:
		return check_number(what, field, *(const uint32_t *)at, err);
	case SW_FIELD_I32:
		return check_number(what, field, *(const int32_t *)at, err);
	case SW_FIELD_U64:
	case SW_FIELD_I64:
	case SW_FIELD_BYTES:
	case SW_FIELD_SPAN:
	case SW_FIELD_MOMENT:
		return check_number(what, field, *(const int64_t *)at, err);
	default:
		return 0;
	}
}

int sw_fields_check(const char *what, const struct sw_field *fields, size_t count, const void *source, struct sw_err *err)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = check_field(what, &fields[i], source, err);
	return r;
}

/* Cut to `most` bytes, without a part of a character at its end; and without what would disturb
 * a table. */
static void mend_line(char *text, size_t most)
{
	size_t size = sw_utf8_start(text, most);
	text[size] = '\0';
	for (size_t i = 0, width; i < size; i += width) {
		width = (unsigned char)text[i] == 0xC2 && i + 1 < size ? 2 : 1;
		if (sw_has_control(text + i, width))
			memset(text + i, '?', width);
	}
}

void sw_fields_mend_lines(const struct sw_field *fields, size_t count, void *target)
{
	for (size_t i = 0; i < count; i++) {
		char *text = fields[i].line ? *(char **)((char *)target + fields[i].offset) : NULL;
		if (text != NULL)
			mend_line(text, (size_t)fields[i].max);
	}
}

static char *copy_text(const char *text, bool *good)
{
	char *copy = text != NULL && *good ? strdup(text) : NULL;
	*good = *good && (text == NULL || copy != NULL);
	return copy;
}

static char **copy_list(char *const *texts, size_t count, bool *good)
{
	char **copy = texts != NULL && *good ? calloc(count + 1, sizeof *copy) : NULL;
	*good = *good && (texts == NULL || copy != NULL);
	for (size_t i = 0; copy != NULL && i < count; i++)
		copy[i] = copy_text(texts[i], good);
	return copy;
}

bool sw_fields_copy(const struct sw_field *fields, size_t count, void *target)
{
	bool good = true;
	for (size_t i = 0; i < count; i++) {
		void *at = (char *)target + fields[i].offset;
		size_t members = 0;
		if (fields[i].kind == SW_FIELD_TEXT)
			*(char **)at = copy_text(*(char **)at, &good);
		if (fields[i].kind == SW_FIELD_LIST) {
			char **texts = list_of(&fields[i], target, &members);
			*(char ***)at = copy_list(texts, members, &good);
		}
	}
	return good;
}

void sw_fields_free(const struct sw_field *fields, size_t count, void *target)
{
	for (size_t i = 0; i < count; i++) {
		size_t members = 0;
		if (fields[i].kind == SW_FIELD_TEXT)
			free(*(char **)((char *)target + fields[i].offset));
		if (fields[i].kind != SW_FIELD_LIST)
			continue;
		char **texts = list_of(&fields[i], target, &members);
		for (size_t m = 0; texts != NULL && m < members; m++)
			free(texts[m]);
		free(texts);
	}
}
