/* Requests: life, and their parameters. Bodies are in request_body.c. */
#include "api/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/query.h"
#include "api/when.h"
#include "base/number.h"
#include "base/suggest.h"

const struct sw_state_name sw_state_names[SW_STATES] = {
	{"PD", "PENDING", false},    {"CF", "CONFIGURING", false}, {"R", "RUNNING", false},	   {"S", "SUSPENDED", false},
	{"CG", "COMPLETING", false}, {"CD", "COMPLETED", true},	   {"F", "FAILED", true},	   {"CA", "CANCELLED", true},
	{"TO", "TIMEOUT", true},     {"NF", "NODE_FAIL", true},	   {"OOM", "OUT_OF_MEMORY", true}, {"UN", "UNREACHABLE", false},
};

unsigned sw_state_find(const char *brief)
{
	unsigned i = 0;
	while (i < SW_STATES && strcmp(sw_state_names[i].brief, brief) != 0)
		i++;
	return i;
}

int sw_status_of(int code)
{
	switch (code) {
	case SW_EINPUT:
		return 400;
	case SW_EDENIED:
		return 403;
	case SW_ENOTFOUND:
		return 404;
	case SW_ELIMIT:
		return 413;
	case SW_EIO:
		return 507;
	case SW_ENOMEM:
	case SW_ESTOPPED:
		return 503;
	default:
		return 500;
	}
}

void sw_request_free(struct sw_request *request)
{
	if (request == NULL)
		return;
	free(request->list.user);
	free(request->list.name);
	for (size_t i = 0; i < request->jobs.count; i++)
		sw_job_request_free(request->jobs.items[i].job);
	sw_vec_free(&request->jobs);
	sw_vec_free(&request->change.jobs);
	free(request->key);
	free(request->policy);
	free(request->world);
	free(request->world_text);
	for (size_t i = 0; i < request->setting_count; i++)
		free(request->settings[i]);
	free(request->tenant);
	free(request->node);
	free(request->reason);
	sw_sync_reader_free(request->reader);
	sw_sync_free(request->sync);
	free(request);
}

/* ---- parameters */

static int refuse(struct sw_err *err, const char *name, const char *value, const char *expected)
{
	sw_err_set(err, SW_EINPUT, "the parameter '%s' cannot be used", name);
	sw_err_detail(err, "it is '%.60s', expected %s", value, expected);
	return SW_EINPUT;
}

static int keep(const char *value, char **field, struct sw_err *err)
{
	free(*field);
	*field = strdup(value);
	return *field != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int read_number(const char *name, const char *value, uint64_t least, uint64_t most, uint64_t *ret_number, struct sw_err *err)
{
	uint64_t number;
	if (sw_parse_u64(value, strlen(value), &number) == 0 && number >= least && number <= most) {
		*ret_number = number;
		return 0;
	}
	char expected[80];
	snprintf(expected, sizeof expected, "a number from %llu to %llu", (unsigned long long)least, (unsigned long long)most);
	return refuse(err, name, value, expected);
}

static int read_bool(const char *name, const char *value, bool *ret_bool, struct sw_err *err)
{
	bool yes = strcmp(value, "true") == 0 || strcmp(value, "1") == 0 || value[0] == '\0';
	if (!yes && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
		return refuse(err, name, value, "true or false");
	*ret_bool = yes;
	return 0;
}

/* One of two words; *ret_second tells which. */
static int read_choice(const char *name, const char *value, const char *first, const char *second, bool *ret_second, struct sw_err *err)
{
	if (strcmp(value, first) != 0 && strcmp(value, second) != 0) {
		char expected[64];
		snprintf(expected, sizeof expected, "%s or %s", first, second);
		return refuse(err, name, value, expected);
	}
	*ret_second = strcmp(value, second) == 0;
	return 0;
}

static int read_moment(const char *name, const char *value, int64_t *ret_ns, struct sw_err *err)
{
	int64_t ns;
	if (sw_when_parse(value, strlen(value), &ns) < 0)
		return refuse(err, name, value, "a moment such as 2030-01-31T18:00:00Z");
	*ret_ns = ns;
	return 0;
}

/* The bits that a word stands for; 0: none. */
static uint32_t states_of(const char *word, size_t size)
{
	uint32_t states = 0;
	bool active = size == 6 && strncasecmp(word, "active", size) == 0, ended = size == 5 && strncasecmp(word, "ended", size) == 0;
	bool all = size == 3 && strncasecmp(word, "all", size) == 0;
	for (unsigned i = 0; i < SW_STATES; i++) {
		const struct sw_state_name *state = &sw_state_names[i];
		bool named = (strlen(state->brief) == size && strncasecmp(word, state->brief, size) == 0) ||
			     (strlen(state->full) == size && strncasecmp(word, state->full, size) == 0);
		if (named || all || (active && !state->ended) || (ended && state->ended))
			states |= UINT32_C(1) << i;
	}
	return states;
}

static int read_states(const char *name, const char *value, uint32_t *ret_states, struct sw_err *err)
{
	uint32_t states = 0;
	for (const char *word = value;;) {
		size_t size = strcspn(word, ",");
		uint32_t some = states_of(word, size);
		if (some == 0)
			return refuse(err, name, value, "states such as PD,R or RUNNING, or active, ended, all");
		states |= some;
		if (word[size] == '\0')
			break;
		word += size + 1;
	}
	*ret_states = states;
	return 0;
}

static int read_limit(struct sw_request *request, const char *name, const char *value, struct sw_err *err)
{
	uint64_t number = 0;
	int r = read_number(name, value, 1, SW_LIST_MAX, &number, err);
	if (r == 0)
		request->list.limit = (uint32_t)number;
	return r;
}

static int take_list_parameter(struct sw_request *request, const char *name, const char *value, struct sw_err *err)
{
	if (strcmp(name, "state") == 0)
		return read_states(name, value, &request->list.states, err);
	if (strcmp(name, "user") == 0)
		return keep(value, &request->list.user, err);
	if (strcmp(name, "order") == 0)
		return read_choice(name, value, "asc", "desc", &request->list.descending, err);
	if (strcmp(name, "limit") == 0)
		return read_limit(request, name, value, err);
	if (strcmp(name, "cursor") == 0)
		return read_number(name, value, 0, SW_JOB_ID_MAX, &request->list.cursor, err);
	if (strcmp(name, "asked") == 0)
		return read_bool(name, value, &request->list.asked, err);
	if (strcmp(name, "since") == 0)
		return read_moment(name, value, &request->list.since_ns, err);
	if (strcmp(name, "until") == 0)
		return read_moment(name, value, &request->list.until_ns, err);
	int r = keep(value, &request->list.name, err);
	size_t size = strlen(value);
	request->list.name_is_prefix = r == 0 && size > 0 && value[size - 1] == '*';
	if (request->list.name_is_prefix)
		request->list.name[size - 1] = '\0';
	return r;
}

static int take_log_parameter(struct sw_request *request, const char *name, const char *value, struct sw_err *err)
{
	uint64_t number = 0;
	if (strcmp(name, "offset") == 0) {
		if (sw_parse_i64(value, strlen(value), &request->logs.offset) < 0)
			return refuse(err, name, value, "a number of bytes");
		return 0;
	}
	if (strcmp(name, "limit") == 0)
		return read_number(name, value, 0, INT64_MAX, &request->logs.limit, err);
	if (strcmp(name, "follow") == 0)
		return read_bool(name, value, &request->logs.follow, err);
	int r = read_number(name, value, 1, UINT32_MAX, &number, err);
	if (r == 0)
		request->logs.run = (uint32_t)number;
	return r;
}

static int take_event_parameter(struct sw_request *request, const char *name, const char *value, struct sw_err *err)
{
	if (strcmp(name, "limit") == 0)
		return read_limit(request, name, value, err);
	if (strcmp(name, "job") == 0)
		return read_number(name, value, 1, SW_JOB_ID_MAX, &request->job, err);
	if (strcmp(name, "all") == 0)
		return read_bool(name, value, &request->all_events, err);
	int r = read_number(name, value, 0, INT64_MAX, &request->after, err);
	request->has_after = r == 0;
	return r;
}

static int take_forecast_parameter(struct sw_request *request, const char *name, const char *value, struct sw_err *err)
{
	if (strcmp(name, "limit") == 0)
		return read_limit(request, name, value, err);
	return read_number(name, value, strcmp(name, "job") == 0, SW_JOB_ID_MAX,
			   strcmp(name, "job") == 0 ? &request->job : &request->list.cursor, err);
}

static int take_parameter(struct sw_request *request, const char *name, const char *value, struct sw_err *err)
{
	size_t count = 0;
	bool known = false;
	for (const struct sw_api_field *field = request->route->parameters; field != NULL && field->name != NULL; field++, count++)
		known = known || strcmp(field->name, name) == 0;
	if (!known) {
		const char *near = count > 0 ? sw_suggest(name, request->route->parameters, count, sizeof(struct sw_api_field)) : NULL;
		sw_err_set(err, SW_EINPUT, "there is no parameter '%.60s' here", name);
		if (near != NULL)
			sw_err_hint(err, "Did you mean '%s'?", near);
		return SW_EINPUT;
	}
	switch (request->route->id) {
	case SW_ROUTE_LIST:
		return take_list_parameter(request, name, value, err);
	case SW_ROUTE_FORECAST:
		return take_forecast_parameter(request, name, value, err);
	case SW_ROUTE_LOGS:
		return take_log_parameter(request, name, value, err);
	case SW_ROUTE_SUSPEND:
		return read_bool(name, value, strcmp(name, "force") == 0 ? &request->force : &request->deep, err);
	default:
		return take_event_parameter(request, name, value, err);
	}
}

int sw_request_open(enum sw_method method, const char *target, struct sw_request **ret_request, int *ret_status, struct sw_err *err)
{
	SW_CLEANUP(sw_request_freep) struct sw_request *request = calloc(1, sizeof *request);
	if (request == NULL) {
		*ret_status = 503;
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	size_t path = strcspn(target, "?");
	int r = sw_route_find(method, target, path, &request->route, &request->job, ret_status, err);
	if (r < 0)
		return r;
	request->list.states = (UINT32_C(1) << SW_STATES) - 1;
	request->list.limit = SW_LIST_USUAL;
	request->list.since_ns = INT64_MIN;
	request->list.until_ns = INT64_MAX;
	request->logs.limit = UINT64_MAX;
	struct sw_query query;
	r = sw_query_parse(target[path] == '?' ? target + path + 1 : "", &query, err);
	for (size_t i = 0; r == 0 && i < query.count; i++)
		r = take_parameter(request, query.items[i].name, query.items[i].value, err);
	if (r < 0) {
		*ret_status = r == SW_ELIMIT ? 414 : sw_status_of(r);
		return r;
	}
	*ret_request = SW_TAKE(request);
	return 0;
}
