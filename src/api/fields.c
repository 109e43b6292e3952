/* Structs from JSON by their tables. Writing them is fields_write.c, checking those made by hand
 * fields_check.c. */
#include "api/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/sync.h"
#include "api/when.h"
#include "base/number.h"
#include "base/suggest.h"

/* Beyond this a double no longer holds every integer; also far above every bound of a number
 * with a fraction. */
#define REAL_MAX 9e15

const struct sw_field_option sw_no_option;

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

/* ---- -- decoding */

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
			snprintf(text, size, "'%s'", json_string_value(value));
		else
			snprintf(text, size, "a text of %zu bytes", json_string_length(value));
		break;
	case JSON_INTEGER:
		snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		break;
	case JSON_REAL:
		snprintf(text, size, "%g", json_real_value(value));
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

static void list_words(const char *const *words, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; words[i] != NULL; i++) {
		size_t used = strlen(text);
		snprintf(text + used, size - used, "%s%s", i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ", words[i]);
	}
}

const char *sw_field_expected(const struct sw_field *field, char *text, size_t size)
{
	if (field->expected != NULL)
		return field->expected;
	switch (field->kind) {
	case SW_FIELD_COMMAS:
		snprintf(text, size, "a list of texts of %" PRId64 " bytes together", field->max);
		break;
	case SW_FIELD_TEXT:
		snprintf(text, size, "a text of %" PRId64 " to %" PRId64 " bytes", field->min, field->max);
		break;
	case SW_FIELD_TEXTS:
	case SW_FIELD_LIST:
		snprintf(text, size, "a list of %" PRId64 " to %zu texts", field->min, field->most);
		break;
	case SW_FIELD_JOBS:
		snprintf(text, size, "a list of at most %u numbers of jobs", SW_SYNC_JOBS_LISTED);
		break;
	case SW_FIELD_BOOL:
	case SW_FIELD_WORD:
		if (field->words != NULL)
			list_words(field->words, text, size);
		else
			snprintf(text, size, "true or false");
		break;
	case SW_FIELD_BYTES:
		return "a size such as \"20G\", or bytes";
	case SW_FIELD_SPAN:
		return "a duration such as \"2h\" or \"1-12:00:00\", or seconds";
	case SW_FIELD_MILLI:
		snprintf(text, size, "a number from %g to %g", (double)field->min / 1000, (double)field->max / 1000);
		break;
	case SW_FIELD_MOMENT:
		return "a moment such as \"2030-01-31T18:00:00Z\"";
	default:
		snprintf(text, size, "a whole number from %" PRId64 " to %" PRId64, field->min, field->max);
		break;
	}
	return text;
}

int sw_decoder_refuse_field(struct sw_decoder *decoder, const struct sw_field *field, const json_t *value)
{
	char expected[200];
	int r = sw_decoder_refuse(decoder, field->name, value, sw_field_expected(field, expected, sizeof expected));
	if (field->hint != NULL)
		sw_err_hint(decoder->err, "%s", field->hint);
	return r;
}

/* ---- kinds of values */

static int decode_jobs(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, struct sw_sync_jobs *target)
{
	struct sw_sync_jobs jobs = {.count = (uint32_t)json_array_size(value)};
	if (!json_is_array(value) || json_array_size(value) > SW_SYNC_JOBS_LISTED)
		return sw_decoder_refuse_field(decoder, field, value);
	for (uint32_t i = 0; i < jobs.count; i++) {
		const json_t *job = json_array_get(value, i);
		json_int_t number = json_integer_value(job);
		if (!json_is_integer(job) || number < 0 || number > (json_int_t)SW_SYNC_JOB_MAX)
			return sw_decoder_refuse_field(decoder, field, value);
		jobs.items[i] = (uint64_t)number;
	}
	*target = jobs;
	return 0;
}

static int decode_texts(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, struct sw_texts *target)
{
	size_t count = json_array_size(value);
	if (!json_is_array(value) || count > field->most || count < (size_t)field->min)
		return sw_decoder_refuse_field(decoder, field, value);
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

/* A number with a fraction, times `scale`; -1: it is none, or beyond `most`. */
static int64_t scaled(const json_t *value, int64_t scale, int64_t most)
{
	int64_t number = -1;
	if (json_is_integer(value)) {
		if (json_integer_value(value) >= 0 && json_integer_value(value) <= most / scale)
			number = json_integer_value(value) * scale;
	} else if (json_is_real(value)) {
		double real = json_real_value(value);
		if (real >= 0 && real <= REAL_MAX && real <= (double)most / (double)scale)
			number = llround(real * (double)scale);
	}
	return number > most ? -1 : number;
}

/* The number that the value stands for in a field of this kind. */
static bool take_number(const struct sw_decoder *decoder, const json_t *value, const struct sw_field *field, int64_t *ret_number)
{
	const char *text = json_string_value(value);
	size_t size = json_string_length(value);
	uint64_t bytes = 0;
	switch (field->kind) {
	case SW_FIELD_SPAN:
		*ret_number = scaled(value, SW_NS_PER_S, field->max);
		return text != NULL ? sw_parse_duration(text, size, ret_number) == 0 : *ret_number >= 0;
	case SW_FIELD_MILLI:
		*ret_number = scaled(value, 1000, field->max);
		return text != NULL ? sw_parse_decimal(text, size, 1000, ret_number) == 0 : *ret_number >= 0;
	case SW_FIELD_MOMENT:
		return text != NULL && sw_when_parse(text, size, ret_number) == 0;
	case SW_FIELD_BYTES:
		if (text != NULL && (sw_parse_bytes(text, size, &bytes) < 0 || bytes > INT64_MAX))
			return false;
		*ret_number = text != NULL ? (int64_t)bytes : json_integer_value(value);
		return text != NULL || json_is_integer(value);
	default:
		*ret_number = json_integer_value(value);
		return json_is_integer(value) || (decoder->by_people && text != NULL && sw_parse_i64(text, size, ret_number) == 0);
	}
}

static int decode_number(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, void *target)
{
	int64_t number = 0;
	if (!take_number(decoder, value, field, &number) || number < field->min || number > field->max)
		return sw_decoder_refuse_field(decoder, field, value);
	switch (field->kind) {
	case SW_FIELD_U32:
	case SW_FIELD_I32:
	case SW_FIELD_MILLI:
		*(uint32_t *)target = (uint32_t)number;
		break;
	default:
		*(int64_t *)target = number;
		break;
	}
	return 0;
}

static int decode_bool(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, bool *target)
{
	const char *text = json_string_value(value);
	if (field->words == NULL ? !json_is_boolean(value)
				 : text == NULL || (strcmp(text, field->words[0]) != 0 && strcmp(text, field->words[1]) != 0))
		return sw_decoder_refuse_field(decoder, field, value);
	*target = field->words == NULL ? json_is_true(value) : strcmp(text, field->words[1]) == 0;
	return 0;
}

static int decode_word(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, unsigned *target)
{
	if (json_is_string(value))
		for (unsigned i = 0; field->words[i] != NULL; i++)
			if (strcmp(field->words[i], json_string_value(value)) == 0) {
				*target = (unsigned)field->min + i;
				return 0;
			}
	return sw_decoder_refuse_field(decoder, field, value);
}

static int take_text(struct sw_decoder *decoder, const json_t *value, const char **target)
{
	const char *text = json_string_value(value);
	char *copy = NULL;
	if (decoder->by_people)
		copy = strdup(text);
	else if (decoder->copies)
		copy = sw_decoded_alloc(decoder->decoded, json_string_length(value) + 1, 1);
	if (copy == NULL && (decoder->by_people || decoder->copies))
		return sw_decoder_out_of_memory(decoder);
	if (!decoder->by_people && copy != NULL)
		memcpy(copy, text, json_string_length(value));
	*target = copy != NULL ? copy : text;
	return 0;
}

static int decode_text(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, const char **target)
{
	size_t size = json_string_length(value);
	if (!json_is_string(value) || (!decoder->by_people && (size < (size_t)field->min || size > (size_t)field->max)))
		return sw_decoder_refuse_field(decoder, field, value);
	return take_text(decoder, value, target);
}

/* The members of a list as one text. None has a comma itself: it would be two. */
static int decode_commas(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, const char **target)
{
	if (json_is_string(value))
		return decode_text(decoder, value, field, target);
	if (!json_is_array(value) || json_array_size(value) == 0)
		return sw_decoder_refuse_field(decoder, field, value);
	char *text = sw_decoded_alloc(decoder->decoded, (size_t)field->max + 1, 1);
	size_t used = 0;
	if (text == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_t *member = json_array_get(value, i);
		const char *word = json_string_value(member);
		size_t size = json_string_length(member), room = (size_t)field->max - used;
		if (word == NULL || size == 0 || strchr(word, ',') != NULL || size + (i > 0) > room)
			return sw_decoder_refuse_field(decoder, field, value);
		if (i > 0)
			text[used++] = ',';
		memcpy(text + used, word, size);
		used += size;
	}
	*target = text;
	return 0;
}

static int decode_kind(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, void *target)
{
	switch (field->kind) {
	case SW_FIELD_BOOL:
		return decode_bool(decoder, value, field, target);
	case SW_FIELD_TEXT:
		return decode_text(decoder, value, field, target);
	case SW_FIELD_COMMAS:
		return decode_commas(decoder, value, field, target);
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

int sw_decode_field(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, void *target)
{
	int r = field->read != NULL ? field->read(decoder, field, value, target)
				    : decode_kind(decoder, value, field, (char *)target + field->offset);
	if (r == 0 && field->said != 0)
		*(bool *)((char *)target + field->said) = true;
	return r;
}

int sw_decode_fields(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target)
{
	if (!json_is_object(object))
		return sw_decoder_refuse(decoder, NULL, object, "an object");
	for (size_t i = 0; i < count; i++) {
		json_t *value = json_object_get(object, fields[i].name);
		if (value == NULL || json_is_null(value)) {
			if (fields[i].required)
				return sw_decoder_refuse_field(decoder, &fields[i], value);
			continue;
		}
		int r = sw_decode_field(decoder, value, &fields[i], target);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct sw_field *sw_field_find(const struct sw_field *fields, size_t count, const char *name)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, fields[middle].name);
		if (order == 0)
			return &fields[middle];
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int unknown_field(struct sw_decoder *decoder, const struct sw_field *fields, size_t count, const char *name)
{
	sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
	sw_err_detail(decoder->err, "there is no field '%.100s'", name);
	const char *near = sw_suggest(name, fields, count, sizeof fields[0]);
	if (near != NULL)
		sw_err_hint(decoder->err, "Did you mean '%s'?", near);
	return SW_EINPUT;
}

int sw_decode_strictly(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target)
{
	const char *name;
	json_t *value;
	json_object_foreach(object, name, value)
	{
		const struct sw_field *field = sw_field_find(fields, count, name);
		/* null is as good as nothing: tools that fill in forms write it. */
		int r = field == NULL	      ? unknown_field(decoder, fields, count, name)
			: json_is_null(value) ? 0
					      : sw_decode_field(decoder, value, field, target);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A complaint that outlives its err: "'jobs[3].epoch' is -1, expected ...". NULL: out of memory. */
static const char *keep_complaint(struct sw_decoder *decoder, const struct sw_err *err)
{
	size_t size = strlen(err->detail) + 1;
	char *copy = sw_decoded_alloc(decoder->decoded, size, 1);
	return copy != NULL ? memcpy(copy, err->detail, size) : NULL;
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

int sw_decode_member_at(struct sw_decoder *decoder, json_t *value, const struct sw_members *members, long index, void *target,
			bool *ret_good)
{
	struct sw_err *outer = decoder->err, err = {0};
	size_t mark = sw_decoder_enter(decoder, members->name, index);
	memset(target, 0, members->size);
	decoder->err = &err;
	int r = members->member(decoder, value, target);
	decoder->err = outer;
	sw_decoder_leave(decoder, mark);
	if (r == SW_ENOMEM)
		return sw_decoder_out_of_memory(decoder);
	*ret_good = r == 0;
	if (r == 0 || members->spoiled == NULL)
		return 0;
	const char *why = keep_complaint(decoder, &err);
	return why != NULL ? members->spoiled(decoder, value, why, members->context) : sw_decoder_out_of_memory(decoder);
}

int sw_decode_each(struct sw_decoder *decoder, json_t *object, const struct sw_members *members, void **ret_items, size_t *ret_count)
{
	size_t most = members->most;
	json_t *list = json_object_get(object, members->name);
	bool absent = list == NULL || json_is_null(list);
	if (!absent && !json_is_array(list))
		return sw_decoder_refuse(decoder, members->name, list, "a list");
	size_t count = absent ? 0 : json_array_size(list), good = 0;
	char *items = sw_decoded_alloc(decoder->decoded, count < most ? count : most, members->size);
	if (items == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < count && i < most; i++) {
		bool is_good = false;
		int r = sw_decode_member_at(decoder, json_array_get(list, i), members, (long)i, items + good * members->size, &is_good);
		if (r < 0)
			return r;
		good += is_good;
	}
	*ret_items = items;
	*ret_count = good;
	if (count <= most || members->spoiled == NULL)
		return 0;
	struct sw_err err = {0};
	snprintf(err.detail, sizeof err.detail, "'%s' is a list of %zu, expected at most %zu", members->name, count, most);
	const char *why = keep_complaint(decoder, &err);
	return why != NULL ? members->spoiled(decoder, NULL, why, members->context) : sw_decoder_out_of_memory(decoder);
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

/* ---- -- describing */

const char *sw_field_type(const struct sw_field *field)
{
	if (field->type != NULL)
		return field->type;
	switch (field->kind) {
	case SW_FIELD_BOOL:
		return field->words != NULL ? "string" : "boolean";
	case SW_FIELD_TEXT:
	case SW_FIELD_WORD:
	case SW_FIELD_MOMENT:
		return "string";
	case SW_FIELD_COMMAS:
	case SW_FIELD_TEXTS:
	case SW_FIELD_LIST:
		return "string[]";
	case SW_FIELD_JOBS:
		return "integer[]";
	case SW_FIELD_BYTES:
		return "integer|string";
	case SW_FIELD_SPAN:
	case SW_FIELD_MILLI:
		return "number|string";
	case SW_FIELD_OWN:
		return "object";
	default:
		return "integer";
	}
}
