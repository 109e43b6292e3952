/* Structs as JSON, by their tables. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "api/sync.h"
#include "api/when.h"
#include "base/number.h"
#include "base/text.h"

static bool is_empty(const struct sw_field *field, const void *source)
{
	switch (field->kind) {
	case SW_FIELD_U32:
	case SW_FIELD_I32:
	case SW_FIELD_WORD:
	case SW_FIELD_MILLI:
		return *(const uint32_t *)source == 0;
	case SW_FIELD_BOOL:
		return !*(const bool *)source;
	case SW_FIELD_COMMAS:
	case SW_FIELD_TEXT:
		return *(const char *const *)source == NULL || (field->min > 0 && **(const char *const *)source == '\0');
	case SW_FIELD_TEXTS:
		return ((const struct sw_texts *)source)->count == 0;
	case SW_FIELD_JOBS:
		return ((const struct sw_sync_jobs *)source)->count == 0;
	default:
		return *(const uint64_t *)source == 0;
	}
}

static void encode_texts(struct sw_json *json, const struct sw_texts *texts)
{
	sw_json_array(json);
	for (size_t i = 0; i < texts->count; i++)
		sw_json_string(json, texts->items[i]);
	sw_json_end_array(json);
}

static void encode_commas(struct sw_json *json, const char *text)
{
	sw_json_array(json);
	const char *word;
	size_t size;
	while (text != NULL && sw_text_next(&text, &word, &size))
		sw_json_string_n(json, word, size);
	sw_json_end_array(json);
}

static void encode_jobs(struct sw_json *json, const struct sw_sync_jobs *jobs)
{
	sw_json_array(json);
	for (uint32_t i = 0; i < jobs->count; i++)
		sw_json_u64(json, jobs->items[i]);
	sw_json_end_array(json);
}

static void encode_span(struct sw_json *json, int64_t ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {{"ms", SW_NS_PER_MS}, {"us", SW_NS_PER_US}, {"ns", 1}};
	char text[48];
	if (ns % SW_NS_PER_S == 0) {
		sw_json_i64(json, ns / SW_NS_PER_S);
		return;
	}
	size_t unit = 0;
	while (ns % units[unit].ns != 0)
		unit++;
	snprintf(text, sizeof text, "%" PRId64 "%s", ns / units[unit].ns, units[unit].name);
	sw_json_string(json, text);
}

/* A fraction is text: a reader that makes it binary would write it back with other digits. */
static void encode_milli(struct sw_json *json, uint32_t milli)
{
	char text[32];
	if (milli % 1000 == 0) {
		sw_json_u64(json, milli / 1000);
		return;
	}
	int size = snprintf(text, sizeof text, "%u.%03u", milli / 1000, milli % 1000);
	while (text[size - 1] == '0')
		text[--size] = '\0';
	sw_json_string(json, text);
}

static void encode_kind(struct sw_json *json, const struct sw_field *field, const void *source)
{
	char text[SW_WHEN_SIZE];
	switch (field->kind) {
	case SW_FIELD_U64:
	case SW_FIELD_BYTES:
		sw_json_u64(json, *(const uint64_t *)source & INT64_MAX);
		break;
	case SW_FIELD_I64:
		sw_json_i64(json, *(const int64_t *)source);
		break;
	case SW_FIELD_U32:
		sw_json_u64(json, *(const uint32_t *)source);
		break;
	case SW_FIELD_I32:
		sw_json_i64(json, *(const int32_t *)source);
		break;
	case SW_FIELD_BOOL:
		if (field->words != NULL)
			sw_json_string(json, field->words[*(const bool *)source]);
		else
			sw_json_bool(json, *(const bool *)source);
		break;
	case SW_FIELD_TEXT:
		if (*(const char *const *)source == NULL)
			sw_json_null(json);
		else
			sw_json_string(json, *(const char *const *)source);
		break;
	case SW_FIELD_COMMAS:
		encode_commas(json, *(const char *const *)source);
		break;
	case SW_FIELD_TEXTS:
		encode_texts(json, source);
		break;
	case SW_FIELD_JOBS:
		encode_jobs(json, source);
		break;
	case SW_FIELD_WORD:
		sw_json_string(json, field->words[*(const unsigned *)source - (unsigned)field->min]);
		break;
	case SW_FIELD_SPAN:
		encode_span(json, *(const int64_t *)source);
		break;
	case SW_FIELD_MILLI:
		encode_milli(json, *(const uint32_t *)source);
		break;
	case SW_FIELD_MOMENT:
		sw_json_string(json, sw_when_format(*(const int64_t *)source, text));
		break;
	case SW_FIELD_LIST:
	case SW_FIELD_OWN:
		assert(false); /* they have a writer */
	}
}

void sw_encode_fields(struct sw_json *json, const struct sw_field *fields, size_t count, const void *source)
{
	for (size_t i = 0; i < count; i++) {
		const struct sw_field *field = &fields[i];
		const void *value = (const char *)source + field->offset;
		bool said = field->said != 0 && *(const bool *)((const char *)source + field->said);
		bool is_null = field->null && (field->said != 0 ? !said : is_empty(field, value));
		if (field->write != NULL) {
			field->write(json, field, source);
		} else if (is_null) {
			sw_json_key(json, field->name);
			sw_json_null(json);
		} else if (!field->brief || said || !is_empty(field, value)) {
			sw_json_key(json, field->name);
			encode_kind(json, field, value);
		}
	}
}

int sw_encode_finish(struct sw_json *json, const char *what, size_t limit, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	size_t size = 0;
	char *text = sw_json_take(json, &size);
	if (text == NULL) {
		sw_err_set(err, SW_ENOMEM, "%s", what);
		sw_err_detail(err, "out of memory");
		return SW_ENOMEM;
	}
	if (size > limit) {
		free(text);
		sw_err_set(err, SW_ELIMIT, "%s", what);
		sw_err_detail(err, "it has %zu bytes, expected at most %zu", size, limit);
		return SW_ELIMIT;
	}
	*ret_text = text;
	if (ret_size != NULL)
		*ret_size = size;
	return 0;
}
