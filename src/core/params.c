#include "core/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/suggest.h"
#include "base/vec.h"

typedef SW_VEC(int64_t) numbers;

/* A bound or value as people write it. */
static const char *as_text(enum sw_param_kind kind, int64_t number, char buffer[32])
{
	if (kind == SW_PARAM_DURATION)
		return sw_format_duration(number, buffer);
	if (kind == SW_PARAM_MILLI)
		snprintf(buffer, 32, number % 1000 == 0 ? "%lld" : "%lld.%03lld", (long long)(number / 1000), llabs(number % 1000));
	else
		snprintf(buffer, 32, "%lld", (long long)number);
	return buffer;
}

static int out_of_range(const struct sw_params *params, const struct sw_param *param, int64_t number, const char *text, size_t size,
			struct sw_err *err)
{
	char low[32], high[32];
	bool any = param->min == 0 && param->max == 0;
	if (any ? number >= 0 : number >= param->min && number <= param->max)
		return 0;
	int r = sw_err_set(err, SW_EINPUT, "%s.%s cannot be '%.*s'", params->policy->name, param->name, (int)(size < 60 ? size : 60), text);
	if (any)
		sw_err_detail(err, "it must not be negative");
	else
		sw_err_detail(err, "it goes from %s to %s", as_text(param->kind, param->min, low), as_text(param->kind, param->max, high));
	sw_err_hint(err, "Its preset is %s.", param->preset[0] ? param->preset : "empty");
	return r;
}

static int bad_text(const struct sw_params *params, const struct sw_param *param, const char *text, size_t size, const char *wanted,
		    struct sw_err *err)
{
	int r = sw_err_set(err, SW_EINPUT, "%s.%s cannot be '%.*s'", params->policy->name, param->name, (int)(size < 60 ? size : 60), text);
	sw_err_detail(err, "it takes %s%s%s", wanted, param->kind == SW_PARAM_CHOICE ? ": " : "",
		      param->kind == SW_PARAM_CHOICE ? param->preset : "");
	if (param->kind != SW_PARAM_CHOICE)
		sw_err_hint(err, "Its preset is %s.", param->preset[0] ? param->preset : "empty");
	return r;
}

static int parse_list(const struct sw_params *params, const struct sw_param *param, const char *text, size_t size, numbers *list,
		      struct sw_err *err)
{
	for (size_t at = 0; at < size;) {
		size_t end = at;
		while (end < size && text[end] != ',')
			end++;
		int64_t number;
		if (sw_parse_i64(text + at, end - at, &number) < 0)
			return bad_text(params, param, text, size, "whole numbers with commas between them", err);
		int r = out_of_range(params, param, number, text, size, err);
		if (r < 0)
			return r;
		if (list->count >= SW_PARAM_LIST_MAX)
			return sw_err_set(err, SW_ELIMIT, "%s.%s has too many numbers", params->policy->name, param->name);
		int64_t *slot = sw_vec_push(list);
		if (slot == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		*slot = number;
		at = end + 1;
		if (at == size) /* a comma with nothing behind it */
			return bad_text(params, param, text, size, "whole numbers with commas between them", err);
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* One number per line; a first line that is no number is a header; only the first of
 * several columns counts. */
static int parse_lines(const struct sw_params *params, const struct sw_param *param, const char *text, size_t size, numbers *list,
		       struct sw_err *err)
{
	size_t line = 0;
	for (size_t at = 0; at < size;) {
		size_t end = at, stop;
		while (end < size && text[end] != '\n')
			end++;
		line++;
		for (stop = at; stop < end && text[stop] != ',' && text[stop] != '\r';)
			stop++;
		int64_t number;
		if (stop > at && sw_parse_decimal(text + at, stop - at, 1, &number) == 0) {
			int64_t *slot = number >= 0 && list->count < SW_PARAM_LIST_MAX ? sw_vec_push(list) : NULL;
			if (slot == NULL)
				return sw_err_set(err, SW_EINPUT, "%s.%s: line %zu holds a negative number, or there are too many lines",
						  params->policy->name, param->name, line);
			*slot = number;
		} else if (stop > at && line > 1) {
			int r = sw_err_set(err, SW_EINPUT, "%s.%s: line %zu of the file is not a number", params->policy->name, param->name,
					   line);
			sw_err_hint(err, "Put one number on each line; the first line may be a header.");
			return r;
		}
		at = end + 1;
	}
	if (list->count > 0)
		qsort(list->items, list->count, sizeof *list->items, ascending);
	return 0;
}

/* A choice is written as all of its words, with slashes between them. */
static int parse_choice(const struct sw_params *params, const struct sw_param *param, const char *text, size_t size, int64_t *ret_number,
			struct sw_err *err)
{
	const char *word = param->preset;
	for (int64_t number = 0;; number++) {
		size_t length = strcspn(word, "/");
		if (length == size && memcmp(word, text, size) == 0) {
			*ret_number = number;
			return 0;
		}
		if (word[length] == '\0')
			return bad_text(params, param, text, size, "one of these words", err);
		word += length + 1;
	}
}

static char *choice_text(const struct sw_param *param, int64_t number)
{
	const char *word = param->preset;
	for (; number > 0; number--)
		word += strcspn(word, "/") + 1;
	return strndup(word, strcspn(word, "/"));
}

static int parse_number(const struct sw_params *params, const struct sw_param *param, const char *text, size_t size, int64_t *ret_number,
			struct sw_err *err)
{
	int64_t number = 0;
	switch (param->kind) {
	case SW_PARAM_INTEGER:
		if (sw_parse_i64(text, size, &number) < 0)
			return bad_text(params, param, text, size, "a whole number", err);
		break;
	case SW_PARAM_MILLI:
		if (sw_parse_decimal(text, size, 1000, &number) < 0)
			return bad_text(params, param, text, size, "a number", err);
		break;
	case SW_PARAM_DURATION:
		if (sw_parse_duration(text, size, &number) < 0)
			return bad_text(params, param, text, size, "a duration such as 90s, 15m or 2h", err);
		break;
	case SW_PARAM_CHOICE:
		return parse_choice(params, param, text, size, ret_number, err);
	case SW_PARAM_FLAG:
	default:
		if ((size == 2 && memcmp(text, "on", 2) == 0) || (size == 1 && text[0] == '1') ||
		    (size == 4 && memcmp(text, "true", 4) == 0))
			number = 1;
		else if (!((size == 3 && memcmp(text, "off", 3) == 0) || (size == 1 && text[0] == '0') ||
			   (size == 5 && memcmp(text, "false", 5) == 0)))
			return bad_text(params, param, text, size, "on or off", err);
		break;
	}
	int r = out_of_range(params, param, number, text, size, err);
	if (r < 0)
		return r;
	*ret_number = number;
	return 0;
}

int sw_params_set(struct sw_params *params, const struct sw_param *param, const char *text, size_t size, struct sw_err *err)
{
	struct sw_value *value = &params->values[param - params->policy->params];
	if (param->kind != SW_PARAM_NUMBERS && param->kind != SW_PARAM_FILE_OF_NUMBERS)
		return parse_number(params, param, text, size, &value->number, err);
	numbers list = {0};
	int r = param->kind == SW_PARAM_NUMBERS ? parse_list(params, param, text, size, &list, err)
						: parse_lines(params, param, text, size, &list, err);
	if (r < 0) {
		sw_vec_free(&list);
		return r;
	}
	free((void *)(uintptr_t)value->list);
	value->list = list.items;
	value->count = list.count;
	return 0;
}

char *sw_params_text(const struct sw_params *params, size_t index)
{
	enum sw_param_kind kind = params->policy->params[index].kind;
	const struct sw_value *value = &params->values[index];
	char number[32];
	if (kind == SW_PARAM_DURATION && value->number % SW_NS_PER_S == 0)
		snprintf(number, sizeof number, "%llds", (long long)(value->number / SW_NS_PER_S));
	else if (kind == SW_PARAM_DURATION)
		snprintf(number, sizeof number, "%lldns", (long long)value->number);
	else if (kind == SW_PARAM_FLAG)
		snprintf(number, sizeof number, "%s", value->number ? "on" : "off");
	else if (kind == SW_PARAM_CHOICE)
		return choice_text(&params->policy->params[index], value->number);
	else
		as_text(kind, value->number, number);
	if (kind != SW_PARAM_NUMBERS && kind != SW_PARAM_FILE_OF_NUMBERS)
		return strdup(number);
	const char between = kind == SW_PARAM_NUMBERS ? ',' : '\n';
	char *text = malloc(value->count * 21 + 1), *at = text;
	for (size_t i = 0; text != NULL && i < value->count; i++) {
		if (i > 0)
			*at++ = between;
		at += snprintf(at, 21, "%lld", (long long)value->list[i]);
	}
	if (text != NULL)
		*at = '\0';
	return text;
}

const struct sw_param *sw_params_find(const struct sw_policy *policy, const char *name, struct sw_err *err)
{
	for (size_t i = 0; i < policy->param_count; i++)
		if (strcmp(policy->params[i].name, name) == 0)
			return &policy->params[i];
	sw_err_set(err, SW_EINPUT, "policy '%s' has no parameter '%s'", policy->name, name);
	const char *near = policy->param_count > 0 ? sw_suggest(name, policy->params, policy->param_count, sizeof *policy->params) : NULL;
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s.%s'?", policy->name, near);
	else if (policy->param_count == 0)
		sw_err_hint(err, "It takes no parameters.");
	else
		sw_err_hint(err, "See 'sharewell policies'.");
	return NULL;
}

int sw_params_new(const struct sw_policy *policy, struct sw_params **ret_params, struct sw_err *err)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = calloc(1, sizeof *params);
	if (params == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	params->policy = policy;
	params->values = calloc(policy->param_count + 1, sizeof *params->values);
	if (params->values == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (size_t i = 0; i < policy->param_count; i++) {
		const struct sw_param *param = &policy->params[i];
		if (param->kind == SW_PARAM_FILE_OF_NUMBERS)
			continue;
		size_t length = param->kind == SW_PARAM_CHOICE ? strcspn(param->preset, "/") : strlen(param->preset);
		int r = sw_params_set(params, param, param->preset, length, err);
		if (r < 0)
			return r;
	}
	*ret_params = SW_TAKE(params);
	return 0;
}

void sw_params_free(struct sw_params *params)
{
	for (size_t i = 0; params->values != NULL && i < params->policy->param_count; i++)
		free((void *)(uintptr_t)params->values[i].list);
	free(params->values);
	free(params);
}
