/* The tables of fields themselves: each struct is covered, each field keeps its value at its bounds
 * and is refused beyond them, and each stands in the description. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "api/job.h"
#include "api/routes.h"
#include "api/sync.h"
#include "api/sync_tables.h"

/* ---- coverage */

/* Bytes that the field stands for, from its offset on. */
static size_t size_of(const struct sw_field *field)
{
	switch (field->kind) {
	case SW_FIELD_OWN:
		return field->size;
	case SW_FIELD_BOOL:
		return sizeof(bool);
	case SW_FIELD_U32:
	case SW_FIELD_I32:
	case SW_FIELD_WORD:
	case SW_FIELD_MILLI:
		return sizeof(uint32_t);
	case SW_FIELD_TEXTS:
		return sizeof(struct sw_texts);
	case SW_FIELD_JOBS:
		return sizeof(struct sw_sync_jobs);
	case SW_FIELD_TEXT:
	case SW_FIELD_COMMAS:
	case SW_FIELD_LIST:
		return sizeof(char *);
	default:
		return sizeof(uint64_t);
	}
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define KNOWS_PADDING 1
#endif
#endif

/* Every byte of a request belongs to a field of its table: a member that the table does not know
 * fails here. (`depends` is last: gcc 12 finds no padding behind an array of structs.) */
static void test_request_is_covered(void **state)
{
	(void)state;
#ifdef KNOWS_PADDING
	static struct sw_job_request request;
	unsigned char *bytes = (unsigned char *)&request;
	memset(&request, 0xff, sizeof request);
	__builtin_clear_padding(&request);
	for (size_t i = 0; i < sw_job_table.count; i++) {
		const struct sw_field *field = &sw_job_table.fields[i];
		memset(bytes + field->offset, 0, size_of(field));
		if (field->kind == SW_FIELD_LIST)
			memset(bytes + field->count_offset, 0, sizeof(size_t));
		if (field->said != 0)
			memset(bytes + field->said, 0, sizeof(bool));
	}
	for (size_t at = 0; at < sizeof request; at++)
		if (bytes[at] != 0)
			fail_msg("byte %zu of struct sw_job_request belongs to no field of its table", at);
#else
	skip(); /* this compiler does not say where padding is */
#endif
}

/* ---- tables */

static void each_table(void (*look)(const struct sw_table *table))
{
	look(&sw_job_table);
	for (size_t t = 0; sw_sync_tables[t] != NULL; t++)
		look(sw_sync_tables[t]);
}

static void look_at_table(const struct sw_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct sw_field *field = &table->fields[i];
		assert_true(field->offset + size_of(field) <= table->size);
		assert_true(field->min <= field->max || field->words != NULL || field->kind == SW_FIELD_OWN ||
			    field->kind == SW_FIELD_BOOL);
		assert_true(field->kind != SW_FIELD_WORD || field->words != NULL);
		assert_true(field->kind != SW_FIELD_LIST || field->most > 0);
		assert_true((field->kind != SW_FIELD_OWN && field->kind != SW_FIELD_LIST) || (field->read != NULL && field->write != NULL));
		for (size_t other = 0; other < i; other++)
			assert_string_not_equal(field->name, table->fields[other].name);
	}
}

/* Names differ, bounds are in order, and no field lies outside its struct. */
static void test_tables(void **state)
{
	(void)state;
	each_table(look_at_table);
	for (size_t i = 1; i < sw_job_table.count; i++)
		assert_true(strcmp(sw_job_table.fields[i - 1].name, sw_job_table.fields[i].name) < 0);
}

/* Every field of every table of the API stands in the OpenAPI document, with its bounds. */
static void test_described(void **state)
{
	(void)state;
	char *text = sw_openapi_encode();
	json_t *root = json_loads(text, 0, NULL), *schemas = json_object_get(json_object_get(root, "components"), "schemas");
	for (const struct sw_schema *schema = sw_schemas; schema->name != NULL; schema++)
		for (size_t t = 0; t < 3 && schema->tables[t] != NULL; t++)
			for (size_t i = 0; i < schema->tables[t]->count; i++) {
				const struct sw_field *field = &schema->tables[t]->fields[i];
				json_t *properties = json_object_get(json_object_get(schemas, schema->name), "properties");
				json_t *property = json_object_get(properties, field->name);
				if (property == NULL)
					fail_msg("%s.%s is not described", schema->name, field->name);
				if (field->kind == SW_FIELD_U32)
					assert_int_equal(json_integer_value(json_object_get(property, "maximum")), field->max);
				if (field->kind == SW_FIELD_TEXT)
					assert_int_equal(json_integer_value(json_object_get(property, "maxLength")), field->max);
			}
	for (size_t i = 0; i < sw_job_table.count; i++)
		assert_true(sw_job_table.fields[i].about != NULL && sw_job_table.fields[i].about[0] != '\0');
	json_decref(root);
	free(text);
}

/* ---- round trips */

/* A struct of a table, with one of its fields set. */
struct sample {
	const struct sw_table *table;
	const struct sw_field *field;
	bool by_people;
	char *bytes;		 /* the struct */
	char *text;		 /* of a text, or of each member of a list */
	const char **items;	 /* of a list */
	struct sw_decoded *back; /* what the struct that was read points to */
};

static char *repeat(size_t size)
{
	char *text = malloc(size + 1);
	assert_non_null(text);
	memset(text, 'a', size);
	text[size] = '\0';
	return text;
}

/* "aaa,aaa,..." of so many bytes. */
static char *repeat_members(size_t size)
{
	char *text = repeat(size);
	for (size_t at = 40; at + 1 < size; at += 41)
		text[at] = ',';
	return text;
}

static void set_list(struct sample *sample, size_t count)
{
	struct sw_texts *texts = (struct sw_texts *)(void *)(sample->bytes + sample->field->offset);
	sample->items = calloc(count + 1, sizeof *sample->items);
	sample->text = repeat(1);
	for (size_t i = 0; i < count; i++)
		sample->items[i] = sample->text;
	*texts = (struct sw_texts){sample->items, count};
}

/* Sets the field to a number, a length or a count. */
static void set(struct sample *sample, int64_t value)
{
	void *at = sample->bytes + sample->field->offset;
	switch (sample->field->kind) {
	case SW_FIELD_U32:
	case SW_FIELD_I32:
	case SW_FIELD_MILLI:
	case SW_FIELD_WORD:
		*(uint32_t *)at = (uint32_t)value;
		break;
	case SW_FIELD_BOOL:
		*(bool *)at = value != 0;
		break;
	case SW_FIELD_TEXT:
		*(const char **)at = sample->text = repeat((size_t)value);
		break;
	case SW_FIELD_COMMAS:
		*(const char **)at = sample->text = repeat_members((size_t)value);
		break;
	case SW_FIELD_TEXTS:
		set_list(sample, (size_t)value);
		break;
	case SW_FIELD_JOBS:
		((struct sw_sync_jobs *)at)->count = (uint32_t)value;
		break;
	default:
		*(int64_t *)at = value;
		break;
	}
	if (sample->field->said != 0)
		*(bool *)(sample->bytes + sample->field->said) = true;
}

/* The JSON of the field alone; NULL: it is left out. */
static json_t *write_field(const struct sample *sample)
{
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_encode_fields(&json, sample->field, 1, sample->bytes);
	sw_json_end_object(&json);
	json_t *object = json_loads(json.text, JSON_REJECT_DUPLICATES, NULL);
	sw_json_release(&json);
	assert_non_null(object);
	if (json_object_size(object) > 0)
		return object;
	json_decref(object);
	return NULL;
}

/* Reads it into a new struct: 0, or SW_EINPUT with the field's name in the complaint. */
static int read_field(struct sample *sample, json_t *object, char **ret_bytes)
{
	struct sw_err err = {0};
	char *bytes = calloc(1, sample->table->size);
	sample->back = calloc(1, sizeof *sample->back);
	assert_true(bytes != NULL && sample->back != NULL);
	struct sw_decoder decoder = {.what = "test", .err = &err, .decoded = sample->back, .by_people = sample->by_people};
	int r = sw_decode_fields(&decoder, object, sample->field, 1, bytes);
	if (r == 0 && sample->by_people)
		r = sw_fields_check("test", sample->field, 1, bytes, &err);
	if (r < 0 && strstr(err.detail, sample->field->name) == NULL)
		fail_msg("'%s' does not name '%s'", err.detail, sample->field->name);
	*ret_bytes = bytes;
	return r;
}

static void end_sample(struct sample *sample, char *back)
{
	if (sample->by_people && back != NULL)
		sw_fields_free(sample->field, 1, back);
	free(back);
	free(sample->items);
	free(sample->text);
	free(sample->bytes);
	if (sample->back != NULL)
		sw_decoded_free(sample->back);
}

static struct sample begin_sample(const struct sw_table *table, const struct sw_field *field)
{
	struct sample sample = {table, field, table == &sw_job_table, calloc(1, table->size), NULL, NULL, NULL};
	assert_non_null(sample.bytes);
	if (sample.by_people) { /* where the index of a member is written */
		((struct sw_job_request *)(void *)sample.bytes)->is_array = true;
		((struct sw_job_request *)(void *)sample.bytes)->is_member = true;
	}
	return sample;
}

/* Comes back as it was. A brief field that means nothing is not written, and
 * that is nothing again. */
static void keeps(const struct sw_table *table, const struct sw_field *field, int64_t value)
{
	struct sample sample = begin_sample(table, field);
	char *back = NULL;
	set(&sample, value);
	json_t *object = write_field(&sample), *again = NULL;
	if (object != NULL) {
		struct sample second = sample;
		if (read_field(&sample, object, &back) < 0)
			fail_msg("%s.%s refuses %lld, which is within its bounds", table->name, field->name, (long long)value);
		if (sample.by_people) {
			((struct sw_job_request *)(void *)back)->is_array = true;
			((struct sw_job_request *)(void *)back)->is_member = true;
		}
		second.bytes = back;
		again = write_field(&second);
		if (!json_equal(object, again))
			fail_msg("%s.%s at %lld is not the same when it comes back", table->name, field->name, (long long)value);
	} else if (!field->brief && field->write == NULL) {
		fail_msg("%s.%s is not written", table->name, field->name);
	}
	json_decref(object);
	json_decref(again);
	end_sample(&sample, back);
}

static void refuses(const struct sw_table *table, const struct sw_field *field, int64_t value)
{
	struct sample sample = begin_sample(table, field);
	char *back = NULL;
	set(&sample, value);
	json_t *object = write_field(&sample);
	if (object != NULL && read_field(&sample, object, &back) == 0)
		fail_msg("%s.%s takes %lld, which is beyond its bounds", table->name, field->name, (long long)value);
	json_decref(object);
	end_sample(&sample, back);
}

static void look_at_field(const struct sw_table *table, const struct sw_field *field)
{
	int64_t least = field->min, most = field->max;
	bool is_text = field->kind == SW_FIELD_TEXT || field->kind == SW_FIELD_COMMAS;
	if (field->kind == SW_FIELD_OWN || field->kind == SW_FIELD_LIST)
		return; /* test_job and test_run_spec have them */
	if (field->kind == SW_FIELD_BOOL)
		most = 1;
	if (field->kind == SW_FIELD_TEXTS)
		most = (int64_t)field->most;
	if (field->kind == SW_FIELD_JOBS)
		most = SW_SYNC_JOBS_LISTED;
	for (size_t i = 0; field->kind == SW_FIELD_WORD && field->words[i] != NULL; i++)
		most = least + (int64_t)i;
	keeps(table, field, least);
	keeps(table, field, most);
	if (most - least > 1)
		keeps(table, field, least + (most - least) / 2);
	/* What is beyond an enum, the truth or the eight jobs has no form. */
	if (field->kind == SW_FIELD_WORD || field->kind == SW_FIELD_BOOL || field->kind == SW_FIELD_JOBS)
		return;
	if (most < INT64_MAX && (size_of(field) > 4 || most < UINT32_MAX) && field->kind != SW_FIELD_MOMENT)
		refuses(table, field, most + 1);
	if (least > 0 && !is_text && field->kind != SW_FIELD_TEXTS)
		refuses(table, field, least - 1);
}

static void look_at_bounds(const struct sw_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		look_at_field(table, &table->fields[i]);
}

/* Every field of every table comes back as it was from each of its bounds and from between them,
 * and is refused one beyond, by its name. */
static void test_bounds(void **state)
{
	(void)state;
	each_table(look_at_bounds);
}

/* Lists of GPUs are arrays; the text with commas that agents of version 0.1 send is the same. */
static void test_lists_of_gpus(void **state)
{
	(void)state;
	static const char head[] =
		"{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"jobs\":[{\"job\":1,\"epoch\":1,\"state\":\"running\",";
	static const char *const forms[] = {"\"gpus\":[\"GPU-0\",\"GPU-1\"],\"moving\":[\"GPU-2\",\"GPU-1\"]}]}",
					    "\"gpus\":\"GPU-0,GPU-1\",\"moving\":\"GPU-2,GPU-1\"}]}"};
	for (size_t i = 0; i < 2; i++) {
		char text[300];
		char *written = NULL;
		struct sw_sync *sync = NULL;
		size_t size = 0;
		snprintf(text, sizeof text, "%s%s", head, forms[i]);
		assert_int_equal(sw_sync_decode(text, strlen(text), &sync, NULL), 0);
		assert_int_equal(sync->run_count, 1);
		assert_string_equal(sync->runs[0].gpus, "GPU-0,GPU-1");
		assert_string_equal(sync->runs[0].moving, "GPU-2,GPU-1");
		assert_int_equal(sw_sync_encode(sync, &written, &size, NULL), 0);
		assert_non_null(strstr(written, "\"gpus\":[\"GPU-0\",\"GPU-1\"],\"moving\":[\"GPU-2\",\"GPU-1\"]"));
		free(written);
		sw_sync_free(sync);
	}
	static const char *const wrong[] = {"[]", "[\"\"]", "[\"a,b\"]", "[1]", "5"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[300];
		struct sw_sync *sync = NULL;
		snprintf(text, sizeof text, "%s\"gpus\":%s}]}", head, wrong[i]);
		assert_int_equal(sw_sync_decode(text, strlen(text), &sync, NULL), 0);
		assert_true(sync->runs[0].gpus == NULL && strstr(sync->runs[0].unread, "gpus") != NULL);
		sw_sync_free(sync);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_is_covered), cmocka_unit_test(test_tables),
		cmocka_unit_test(test_described),	   cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_lists_of_gpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
