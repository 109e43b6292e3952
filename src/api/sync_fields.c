#include "api/sync_fields.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/sync.h"

struct sw_block {
	struct sw_block *next;
	alignas(max_align_t) char bytes[];
};

void *sw_decoded_alloc(struct sw_decoded *decoded, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	struct sw_block *block = calloc(1, sizeof *block + bytes);
	if (block == NULL)
		return NULL;
	block->next = decoded->blocks;
	decoded->blocks = block;
	return block->bytes;
}

void sw_decoded_free(struct sw_decoded *decoded)
{
	json_decref(decoded->root);
	for (struct sw_block *block = decoded->blocks, *next; block != NULL; block = next) {
		next = block->next;
		free(block);
	}
	free(decoded);
}

/* ------------------------------------------------------------------------------------------------ decoding */

int sw_decoder_out_of_memory(struct sw_decoder *decoder)
{
	sw_err_set(decoder->err, SW_ENOMEM, "%s", decoder->what);
	sw_err_detail(decoder->err, "out of memory");
	return SW_ENOMEM;
}

int sw_decoder_open(struct sw_decoder *decoder, const char *text, size_t size, size_t limit)
{
	if (size > limit) {
		sw_err_set(decoder->err, SW_ELIMIT, "%s", decoder->what);
		sw_err_detail(decoder->err, "it has %zu bytes, expected at most %zu", size, limit);
		return SW_ELIMIT;
	}
	json_error_t error;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL) {
		if (json_error_code(&error) == json_error_out_of_memory)
			return sw_decoder_out_of_memory(decoder);
		sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
		sw_err_detail(decoder->err, "it is not JSON: line %d, column %d: %s", error.line, error.column, error.text);
		return SW_EINPUT;
	}
	decoder->decoded->root = root;
	if (!json_is_object(root))
		return sw_decoder_refuse(decoder, NULL, root, "an object");
	return 0;
}

size_t sw_decoder_enter(struct sw_decoder *decoder, const char *name, long index)
{
	size_t mark = strlen(decoder->place);
	snprintf(decoder->place + mark, sizeof decoder->place - mark, "%s%s", mark > 0 ? "." : "", name);
	if (index >= 0) {
		size_t used = strlen(decoder->place);
		snprintf(decoder->place + used, sizeof decoder->place - used, "[%ld]", index);
	}
	return mark;
}

void sw_decoder_leave(struct sw_decoder *decoder, size_t mark)
{
	decoder->place[mark] = '\0';
}

/* What a value is, in words, with the value itself where it is short. */
static void describe(const json_t *value, char *text, size_t size)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		snprintf(text, size, "an object");
		break;
	case JSON_ARRAY:
		snprintf(text, size, "a list of %zu", json_array_size(value));
		break;
	case JSON_STRING:
		if (json_string_length(value) <= 60)
			snprintf(text, size, "the text \"%s\"", json_string_value(value));
		else
			snprintf(text, size, "a text of %zu bytes", json_string_length(value));
		break;
	case JSON_INTEGER:
		snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		break;
	case JSON_REAL:
		snprintf(text, size, "a number that is not whole");
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		snprintf(text, size, json_is_true(value) ? "true" : "false");
		break;
	case JSON_NULL:
		snprintf(text, size, "null");
		break;
	}
}

int sw_decoder_refuse(struct sw_decoder *decoder, const char *name, const json_t *value, const char *expected)
{
	sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
	const char *dot = decoder->place[0] != '\0' && name != NULL ? "." : "";
	char place[280] = "it";
	if (decoder->place[0] != '\0' || name != NULL)
		snprintf(place, sizeof place, "'%s%s%s'", decoder->place, dot, name != NULL ? name : "");
	if (value == NULL) {
		sw_err_detail(decoder->err, "%s is missing, expected %s", place, expected);
		return SW_EINPUT;
	}
	char found[100];
	describe(value, found, sizeof found);
	sw_err_detail(decoder->err, "%s is %s, expected %s", place, found, expected);
	return SW_EINPUT;
}

static const char *expected_of(const struct sw_field *field, char *text, size_t size)
{
	switch (field->kind) {
	case SW_FIELD_U64:
	case SW_FIELD_I64:
	case SW_FIELD_U32:
	case SW_FIELD_I32:
		snprintf(text, size, "a whole number from %" PRId64 " to %" PRId64, field->min, field->max);
		break;
	case SW_FIELD_BOOL:
		snprintf(text, size, "true or false");
		break;
	case SW_FIELD_TEXT:
		snprintf(text, size, "a text of %" PRId64 " to %" PRId64 " bytes", field->min, field->max);
		break;
	case SW_FIELD_TEXTS:
		snprintf(text, size, "a list of %" PRId64 " to %zu texts", field->min, field->most);
		break;
	case SW_FIELD_JOBS:
		snprintf(text, size, "a list of at most %u numbers of jobs", SW_SYNC_JOBS_LISTED);
		break;
	case SW_FIELD_WORD:
		snprintf(text, size, "one of");
		for (size_t i = 0; field->words[i] != NULL; i++) {
			size_t used = strlen(text);
			snprintf(text + used, size - used, "%s %s", i > 0 ? "," : "", field->words[i]);
		}
		break;
	}
	return text;
}

static int refuse_field(struct sw_decoder *decoder, const struct sw_field *field, const json_t *value)
{
	char expected[200];
	return sw_decoder_refuse(decoder, field->name, value, expected_of(field, expected, sizeof expected));
}

static int decode_jobs(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, struct sw_sync_jobs *target)
{
	struct sw_sync_jobs jobs = {.count = (uint32_t)json_array_size(value)};
	if (!json_is_array(value) || json_array_size(value) > SW_SYNC_JOBS_LISTED)
		return refuse_field(decoder, field, value);
	for (uint32_t i = 0; i < jobs.count; i++) {
		const json_t *job = json_array_get(value, i);
		json_int_t number = json_integer_value(job);
		if (!json_is_integer(job) || number < 0 || number > (json_int_t)SW_SYNC_JOB_MAX)
			return refuse_field(decoder, field, value);
		jobs.items[i] = (uint64_t)number;
	}
	*target = jobs;
	return 0;
}

static int decode_texts(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, struct sw_texts *target)
{
	size_t count = json_array_size(value);
	if (!json_is_array(value) || count > field->most || count < (size_t)field->min)
		return refuse_field(decoder, field, value);
	const char **items = sw_decoded_alloc(decoder->decoded, count + 1, sizeof *items);
	if (items == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < count; i++) {
		json_t *member = json_array_get(value, i);
		if (!json_is_string(member) || json_string_length(member) > (size_t)field->max) {
			size_t mark = sw_decoder_enter(decoder, field->name, (long)i);
			int r = sw_decoder_refuse(decoder, NULL, member, "a shorter text");
			sw_decoder_leave(decoder, mark);
			return r;
		}
		items[i] = json_string_value(member);
	}
	target->items = items;
	target->count = count;
	return 0;
}

static int decode_number(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, void *target)
{
	if (!json_is_integer(value))
		return refuse_field(decoder, field, value);
	int64_t number = json_integer_value(value);
	if (number < field->min || number > field->max)
		return refuse_field(decoder, field, value);
	switch (field->kind) {
	case SW_FIELD_U64:
		*(uint64_t *)target = (uint64_t)number;
		break;
	case SW_FIELD_I64:
		*(int64_t *)target = number;
		break;
	case SW_FIELD_U32:
		*(uint32_t *)target = (uint32_t)number;
		break;
	default:
		*(int32_t *)target = (int32_t)number;
		break;
	}
	return 0;
}

static int decode_word(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, unsigned *target)
{
	if (json_is_string(value))
		for (unsigned i = 0; field->words[i] != NULL; i++)
			if (strcmp(field->words[i], json_string_value(value)) == 0) {
				*target = i;
				return 0;
			}
	return refuse_field(decoder, field, value);
}

static int take_text(struct sw_decoder *decoder, const json_t *value, const char **target)
{
	const char *text = json_string_value(value);
	if (decoder->copies) {
		char *copy = sw_decoded_alloc(decoder->decoded, json_string_length(value) + 1, 1);
		if (copy == NULL)
			return sw_decoder_out_of_memory(decoder);
		memcpy(copy, text, json_string_length(value));
		text = copy;
	}
	*target = text;
	return 0;
}

static int decode_field(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, void *target)
{
	switch (field->kind) {
	case SW_FIELD_BOOL:
		if (!json_is_boolean(value))
			return refuse_field(decoder, field, value);
		*(bool *)target = json_is_true(value);
		return 0;
	case SW_FIELD_TEXT:
		if (!json_is_string(value) || json_string_length(value) < (size_t)field->min ||
		    json_string_length(value) > (size_t)field->max)
			return refuse_field(decoder, field, value);
		return take_text(decoder, value, target);
	case SW_FIELD_TEXTS:
		return decode_texts(decoder, value, field, target);
	case SW_FIELD_JOBS:
		return decode_jobs(decoder, value, field, target);
	case SW_FIELD_WORD:
		return decode_word(decoder, value, field, target);
	default:
		return decode_number(decoder, value, field, target);
	}
}

int sw_decode_fields(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target)
{
	if (!json_is_object(object))
		return sw_decoder_refuse(decoder, NULL, object, "an object");
	for (size_t i = 0; i < count; i++) {
		json_t *value = json_object_get(object, fields[i].name);
		if (value == NULL || json_is_null(value)) {
			if (fields[i].required)
				return refuse_field(decoder, &fields[i], value);
			continue;
		}
		int r = decode_field(decoder, value, &fields[i], (char *)target + fields[i].offset);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A complaint that outlives its err: "'jobs[3].epoch' is -1, expected ...". NULL: out of memory. */
static const char *keep_complaint(struct sw_decoder *decoder, const struct sw_err *err)
{
	char *copy = sw_decoded_alloc(decoder->decoded, strlen(err->detail) + 1, 1);
	return copy != NULL ? strcpy(copy, err->detail) : NULL;
}

int sw_decode_readable(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target,
		       const char **ret_why, bool *ret_vital)
{
	struct sw_err *outer = decoder->err;
	const char *why = NULL;
	bool vital = false;
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct sw_err err = {0};
		decoder->err = fields[i].required ? outer : &err;
		r = sw_decode_fields(decoder, object, &fields[i], 1, target);
		if (r != SW_EINPUT || fields[i].required)
			continue;
		vital = vital || fields[i].vital;
		if (why == NULL)
			why = keep_complaint(decoder, &err);
		r = why != NULL ? 0 : SW_ENOMEM;
	}
	decoder->err = outer;
	if (r == SW_ENOMEM)
		return sw_decoder_out_of_memory(decoder);
	if (r == 0) {
		*ret_why = why;
		*ret_vital = vital;
	}
	return r;
}

int sw_decode_member_at(struct sw_decoder *decoder, json_t *value, const char *name, long index, void *target, size_t size,
			sw_decode_member *member, sw_decode_spoiled *spoiled, void *context, bool *ret_good)
{
	struct sw_err *outer = decoder->err, err = {0};
	size_t mark = sw_decoder_enter(decoder, name, index);
	memset(target, 0, size);
	decoder->err = &err;
	int r = member(decoder, value, target);
	decoder->err = outer;
	sw_decoder_leave(decoder, mark);
	if (r == SW_ENOMEM)
		return sw_decoder_out_of_memory(decoder);
	*ret_good = r == 0;
	if (r == 0 || spoiled == NULL)
		return 0;
	const char *why = keep_complaint(decoder, &err);
	return why != NULL ? spoiled(decoder, value, why, context) : sw_decoder_out_of_memory(decoder);
}

int sw_decode_each(struct sw_decoder *decoder, json_t *object, const char *name, size_t most, size_t size, sw_decode_member *member,
		   sw_decode_spoiled *spoiled, void *context, void **ret_items, size_t *ret_count)
{
	json_t *list = json_object_get(object, name);
	bool absent = list == NULL || json_is_null(list);
	if (!absent && !json_is_array(list))
		return sw_decoder_refuse(decoder, name, list, "a list");
	size_t count = absent ? 0 : json_array_size(list), good = 0;
	char *items = sw_decoded_alloc(decoder->decoded, count < most ? count : most, size);
	if (items == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < count && i < most; i++) {
		bool is_good = false;
		int r = sw_decode_member_at(decoder, json_array_get(list, i), name, (long)i, items + good * size, size, member, spoiled,
					    context, &is_good);
		if (r < 0)
			return r;
		good += is_good;
	}
	*ret_items = items;
	*ret_count = good;
	if (count <= most || spoiled == NULL)
		return 0;
	struct sw_err err = {0};
	snprintf(err.detail, sizeof err.detail, "'%s' is a list of %zu, expected at most %zu", name, count, most);
	const char *why = keep_complaint(decoder, &err);
	return why != NULL ? spoiled(decoder, NULL, why, context) : sw_decoder_out_of_memory(decoder);
}

int sw_decode_list(struct sw_decoder *decoder, json_t *object, const char *name, size_t most, size_t size, sw_decode_member *member,
		   void **ret_items, size_t *ret_count)
{
	json_t *list = json_object_get(object, name);
	size_t count = 0;
	if (list != NULL && !json_is_null(list)) {
		count = json_array_size(list);
		char expected[80];
		snprintf(expected, sizeof expected, "a list of at most %zu", most);
		if (!json_is_array(list) || count > most)
			return sw_decoder_refuse(decoder, name, list, expected);
	}
	char *items = sw_decoded_alloc(decoder->decoded, count, size);
	if (items == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < count; i++) {
		size_t mark = sw_decoder_enter(decoder, name, (long)i);
		int r = member(decoder, json_array_get(list, i), items + i * size);
		if (r < 0)
			return r;
		sw_decoder_leave(decoder, mark);
	}
	*ret_items = items;
	*ret_count = count;
	return 0;
}

/* ------------------------------------------------------------------------------------------------ encoding */

static bool is_empty(const struct sw_field *field, const void *source)
{
	switch (field->kind) {
	case SW_FIELD_U64:
	case SW_FIELD_I64:
		return *(const uint64_t *)source == 0;
	case SW_FIELD_U32:
	case SW_FIELD_I32:
	case SW_FIELD_WORD:
		return *(const uint32_t *)source == 0;
	case SW_FIELD_BOOL:
		return !*(const bool *)source;
	case SW_FIELD_TEXT:
		return *(const char *const *)source == NULL;
	case SW_FIELD_TEXTS:
		return ((const struct sw_texts *)source)->count == 0;
	case SW_FIELD_JOBS:
		return ((const struct sw_sync_jobs *)source)->count == 0;
	}
	return false;
}

static void encode_texts(struct sw_json *json, const struct sw_texts *texts)
{
	sw_json_array(json);
	for (size_t i = 0; i < texts->count; i++)
		sw_json_string(json, texts->items[i]);
	sw_json_end_array(json);
}

static void encode_jobs(struct sw_json *json, const struct sw_sync_jobs *jobs)
{
	sw_json_array(json);
	for (uint32_t i = 0; i < jobs->count; i++)
		sw_json_u64(json, jobs->items[i]);
	sw_json_end_array(json);
}

static void encode_field(struct sw_json *json, const struct sw_field *field, const void *source)
{
	switch (field->kind) {
	case SW_FIELD_U64:
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
		sw_json_bool(json, *(const bool *)source);
		break;
	case SW_FIELD_TEXT:
		if (is_empty(field, source))
			sw_json_null(json);
		else
			sw_json_string(json, *(const char *const *)source);
		break;
	case SW_FIELD_TEXTS:
		encode_texts(json, source);
		break;
	case SW_FIELD_JOBS:
		encode_jobs(json, source);
		break;
	case SW_FIELD_WORD:
		sw_json_string(json, field->words[*(const unsigned *)source]);
		break;
	}
}

void sw_encode_fields(struct sw_json *json, const struct sw_field *fields, size_t count, const void *source)
{
	for (size_t i = 0; i < count; i++) {
		const void *value = (const char *)source + fields[i].offset;
		if (fields[i].brief && is_empty(&fields[i], value))
			continue;
		sw_json_key(json, fields[i].name);
		encode_field(json, &fields[i], value);
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
