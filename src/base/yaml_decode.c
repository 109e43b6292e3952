/* The decoder of base/yaml.h: text becomes numbers, within bounds, or a complaint that
 * says what was expected. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/suggest.h"
#include "base/yaml.h"

#define TEN_YEARS_NS (INT64_C(3650) * 86400 * SW_NS_PER_S)
#define LONGEST_STRING 400
#define LONGEST_NUMBER 64 /* bytes; no honest number is longer */

/* "'gpus'" for the value of a key, "this value" in a list. */
static const char *name_of(const struct sw_yaml_node *node, char buffer[112])
{
	if (node->key == NULL)
		return "this value";
	snprintf(buffer, 112, "'%.100s'", node->key);
	return buffer;
}

static const char *expected(enum sw_yaml_type type)
{
	switch (type) {
	case SW_YAML_DURATION:
		return "a duration such as 250ms, 90s, 15m, 2h or 1d";
	case SW_YAML_BYTES:
		return "a size such as 512M or 80G";
	case SW_YAML_RATE:
		return "a rate such as 55 GB/s";
	case SW_YAML_WATTS:
		return "a power such as 300 W";
	case SW_YAML_INTEGER:
		return "a whole number";
	case SW_YAML_MILLI:
	case SW_YAML_PPM:
		return "a decimal number such as 1.25";
	case SW_YAML_BOOL:
		return "true or false";
	case SW_YAML_LIST:
		return "a list";
	case SW_YAML_MAP:
		return "a map of keys and values";
	case SW_YAML_STRING:
	case SW_YAML_CHOICE:
		break;
	}
	return "a word";
}

static int refuse_value(const struct sw_yaml_node *node, enum sw_yaml_type type, struct sw_err *err)
{
	char name[112];
	if (node->kind != SW_YAML_IS_SCALAR)
		return sw_yaml_fail(node, err, "%s is a %s, expected %s", name_of(node, name),
				    node->kind == SW_YAML_IS_MAP ? "map" : "list", expected(type));
	return sw_yaml_fail(node, err, "%s is '%.60s', expected %s", name_of(node, name), node->text, expected(type));
}

static const char *format_bound(enum sw_yaml_type type, int64_t value, char buffer[32])
{
	switch (type) {
	case SW_YAML_DURATION:
		return sw_format_duration(value, buffer);
	case SW_YAML_BYTES:
		return sw_format_bytes((uint64_t)value, buffer);
	case SW_YAML_MILLI:
		snprintf(buffer, 32, "%" PRId64 ".%03" PRId64, value / 1000, value % 1000);
		return buffer;
	case SW_YAML_PPM:
		snprintf(buffer, 32, "%" PRId64 ".%06" PRId64, value / 1000000, value % 1000000);
		return buffer;
	default:
		snprintf(buffer, 32, "%" PRId64, value);
		return buffer;
	}
}

static int check_bounds(const struct sw_yaml_node *node, const struct sw_yaml_field *field, int64_t value, struct sw_err *err)
{
	int64_t max = field->max > 0 ? field->max : INT64_MAX;
	if (field->type == SW_YAML_DURATION && max > TEN_YEARS_NS)
		max = TEN_YEARS_NS;
	if (value >= field->min && value <= max)
		return 0;
	char name[112], low[32], high[32];
	if (max == INT64_MAX)
		return sw_yaml_fail(node, err, "%s is %.60s, expected at least %s", name_of(node, name), node->text,
				    format_bound(field->type, field->min, low));
	return sw_yaml_fail(node, err, "%s is %.60s, expected %s to %s", name_of(node, name), node->text,
			    format_bound(field->type, field->min, low), format_bound(field->type, max, high));
}

struct unit {
	const char *name;
	int64_t factor;
};

/* A decimal number and one of these units, or none; parts below one are cut off. */
static int parse_with_unit(const char *text, size_t size, const struct unit *units, size_t count, int64_t *ret_value)
{
	int64_t factor = 1;
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(units[i].name);
		if (size > length && memcmp(text + size - length, units[i].name, length) == 0) {
			factor = units[i].factor;
			size -= length;
			break;
		}
	}
	while (size > 0 && text[size - 1] == ' ')
		size--;
	int64_t milli = 0;
	if (sw_parse_decimal(text, size, 1000, &milli) < 0 || __builtin_mul_overflow(milli, factor, &milli))
		return SW_EINPUT;
	*ret_value = milli / 1000;
	return 0;
}

/* "55 GB/s", "800MB/s", "1000": powers of 1000. */
static int parse_rate(const char *text, size_t size, int64_t *ret_rate)
{
	static const struct unit units[] = {
		{"kB/s", 1000}, {"MB/s", 1000000}, {"GB/s", 1000000000}, {"TB/s", INT64_C(1000000000000)}, {"B/s", 1}};
	return parse_with_unit(text, size, units, SW_YAML_COUNT(units), ret_rate);
}

static int parse_watts(const char *text, size_t size, int64_t *ret_watts)
{
	static const struct unit units[] = {{"kW", 1000}, {"W", 1}};
	return parse_with_unit(text, size, units, SW_YAML_COUNT(units), ret_watts);
}

static int decode_number(const struct sw_yaml_node *node, const struct sw_yaml_field *field, void *target, struct sw_err *err)
{
	int64_t value = 0;
	uint64_t bytes = 0;
	int r = SW_EINPUT;
	if (node->size <= LONGEST_NUMBER) {
		switch (field->type) {
		case SW_YAML_DURATION:
			r = sw_parse_duration(node->text, node->size, &value);
			break;
		case SW_YAML_BYTES:
			r = sw_parse_bytes(node->text, node->size, &bytes);
			if (r == 0 && bytes > INT64_MAX)
				r = SW_EINPUT;
			value = (int64_t)(bytes & INT64_MAX);
			break;
		case SW_YAML_RATE:
			r = parse_rate(node->text, node->size, &value);
			break;
		case SW_YAML_WATTS:
			r = parse_watts(node->text, node->size, &value);
			break;
		case SW_YAML_INTEGER:
			r = sw_parse_i64(node->text, node->size, &value);
			break;
		case SW_YAML_MILLI:
			r = sw_parse_decimal(node->text, node->size, 1000, &value);
			break;
		default:
			r = sw_parse_decimal(node->text, node->size, 1000000, &value);
			break;
		}
	}
	if (r < 0)
		return refuse_value(node, field->type, err);
	r = check_bounds(node, field, value, err);
	if (r < 0)
		return r;
	if (field->type == SW_YAML_BYTES || field->type == SW_YAML_RATE)
		*(uint64_t *)target = (uint64_t)value;
	else
		*(int64_t *)target = value;
	return 0;
}

static int decode_choice(const struct sw_yaml_node *node, const char *const *choices, int *target, struct sw_err *err)
{
	char all[200] = "";
	int count = 0;
	for (; choices[count] != NULL; count++) {
		if (strcmp(choices[count], node->text) == 0) {
			*target = count;
			return 0;
		}
		size_t used = strlen(all);
		snprintf(all + used, sizeof all - used, "%s%s", count > 0 ? ", " : "", choices[count]);
	}
	char name[112];
	const char *near = sw_suggest(node->text, choices, (size_t)count, sizeof *choices);
	int r = sw_yaml_fail(node, err, "%s is '%.60s', expected one of %s", name_of(node, name), node->text, all);
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s'?", near);
	return r;
}

static int decode_text(const struct sw_yaml_node *node, const struct sw_yaml_field *field, void *target, struct sw_err *err)
{
	char name[112];
	if (field->type == SW_YAML_BOOL) {
		bool truth = strcmp(node->text, "true") == 0;
		if (!truth && strcmp(node->text, "false") != 0)
			return refuse_value(node, field->type, err);
		*(bool *)target = truth;
		return 0;
	}
	if (field->type == SW_YAML_CHOICE)
		return decode_choice(node, field->choices, target, err);
	size_t min = field->min > 0 ? (size_t)field->min : 1;
	size_t max = field->max > 0 ? (size_t)field->max : LONGEST_STRING;
	if (node->size < min || node->size > max)
		return sw_yaml_fail(node, err, "%s has %zu bytes, expected %zu to %zu", name_of(node, name), node->size, min, max);
	for (size_t i = 0; i < node->size; i++)
		if ((unsigned char)node->text[i] < ' ')
			return sw_yaml_fail(node, err, "%s must be one line without control characters", name_of(node, name));
	*(const char **)target = node->text;
	return 0;
}

static int decode_container(const struct sw_yaml_node *node, const struct sw_yaml_field *field, void *target, struct sw_err *err)
{
	char name[112];
	if (node->kind != (field->type == SW_YAML_LIST ? SW_YAML_IS_LIST : SW_YAML_IS_MAP))
		return refuse_value(node, field->type, err);
	if (node->count < (field->min > 0 ? field->min : 1))
		return sw_yaml_fail(node, err, "%s is empty", name_of(node, name));
	if (field->max > 0 && node->count > field->max)
		return sw_yaml_fail(node, err, "%s has %u members, expected at most %" PRId64, name_of(node, name), node->count,
				    field->max);
	*(const struct sw_yaml_node **)target = node;
	return 0;
}

int sw_yaml_value(const struct sw_yaml_node *node, const struct sw_yaml_field *field, void *target, struct sw_err *err)
{
	char name[112];
	if (node->kind == SW_YAML_IS_SCALAR && !node->quoted &&
	    (node->size == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0))
		return sw_yaml_fail(node, err, "%s has no value, expected %s", name_of(node, name), expected(field->type));
	if (field->type == SW_YAML_LIST || field->type == SW_YAML_MAP)
		return decode_container(node, field, target, err);
	if (node->kind != SW_YAML_IS_SCALAR)
		return refuse_value(node, field->type, err);
	if (field->type == SW_YAML_BOOL || field->type == SW_YAML_STRING || field->type == SW_YAML_CHOICE)
		return decode_text(node, field, target, err);
	return decode_number(node, field, target, err);
}

static int refuse_key(const struct sw_yaml_node *node, const char *thing, const struct sw_yaml_field *fields, size_t count,
		      struct sw_err *err)
{
	const char *near = sw_suggest(node->key, fields, count, sizeof *fields);
	int r = sw_yaml_fail(node, err, "'%s' is not a key of %s%s%s%s", node->key, thing, near != NULL ? "; did you mean '" : "",
			     near != NULL ? near : "", near != NULL ? "'?" : "");
	char all[300] = "";
	size_t used = 0;
	for (size_t i = 0; i < count && used < sizeof all - 1; i++) {
		snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", fields[i].key);
		used = strlen(all);
	}
	sw_err_hint(err, "Known keys: %s", all);
	return r;
}

int sw_yaml_decode(const struct sw_yaml_node *node, const char *thing, const struct sw_yaml_field *fields, size_t count, void *target,
		   struct sw_err *err)
{
	if (node->kind != SW_YAML_IS_MAP)
		return sw_yaml_fail(node, err, "expected %s, that is, a map of keys and values", thing);
	for (const struct sw_yaml_node *member = node->first; member != NULL; member = member->next) {
		const struct sw_yaml_field *field = NULL;
		for (size_t i = 0; i < count && field == NULL; i++)
			if (strcmp(fields[i].key, member->key) == 0)
				field = &fields[i];
		if (field == NULL)
			return refuse_key(member, thing, fields, count, err);
		int r = sw_yaml_value(member, field, (char *)target + field->offset, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < count; i++) {
		if (!fields[i].required)
			continue;
		const struct sw_yaml_node *member = node->first;
		while (member != NULL && strcmp(member->key, fields[i].key) != 0)
			member = member->next;
		if (member == NULL)
			return sw_yaml_fail(node, err, "%s needs '%s'", thing, fields[i].key);
	}
	return 0;
}
