/* Bodies of requests, by route. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/job_private.h"
#include "api/request.h"
#include "api/run_spec.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/suggest.h"

/* A change of many jobs has one for each, any other request less. */
#define PARTS_MOST (SW_REQUEST_CHANGES_MAX + 1000u)

static int refuse(struct sw_err *err, int code, const char *detail)
{
	sw_err_set(err, code, "the body of the request cannot be used");
	sw_err_detail(err, "%s", detail);
	return code;
}

/* Whether it has more parts, lists within lists and all, than `most`. A look at megabytes of them
 * costs nothing; parsing them would hold up every client. */
static bool has_many_parts(const char *body, size_t size, size_t most)
{
	size_t parts = 0;
	bool in_text = false;
	for (size_t at = 0; at < size; at++) {
		char byte = body[at];
		if (in_text && byte == '\\')
			at++;
		else if (byte == '"')
			in_text = !in_text;
		else if (!in_text)
			parts += byte == ',' || byte == '[' || byte == '{';
	}
	return parts > most;
}

static int parse(const char *body, size_t size, json_t **ret_root, struct sw_err *err)
{
	json_error_t error;
	if (has_many_parts(body, size, PARTS_MOST))
		return refuse(err, SW_ELIMIT, "it has more parts than any request");
	json_t *root = json_loadb(body, size, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL) {
		if (json_error_code(&error) == json_error_out_of_memory)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		char detail[320];
		snprintf(detail, sizeof detail, "it is not JSON: line %d, column %d: %s", error.line, error.column, error.text);
		return refuse(err, SW_EINPUT, detail);
	}
	*ret_root = root;
	return 0;
}

/* ---- submit */

static int add_job(struct sw_request *request, const char *what, json_t *value, struct sw_err *err)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *job = NULL;
	int r = sw_job_request_from_json(what, value, &job, err);
	if (r == 0)
		r = sw_run_spec_check(what, job, err);
	if (r < 0)
		return r;
	request->job_total += sw_job_request_count(job);
	if (request->job_total > SW_REQUEST_JOBS_MAX) {
		sw_err_set(err, SW_ELIMIT, "one request makes at most %u jobs", SW_REQUEST_JOBS_MAX);
		sw_err_hint(err, "Send them in several requests.");
		return SW_ELIMIT;
	}
	struct sw_request_job *slot = sw_vec_push(&request->jobs);
	if (slot == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	slot->job = SW_TAKE(job);
	return 0;
}

/* Behind what does not count. */
static size_t skip_space(const char *body, size_t size, size_t at)
{
	while (at < size && (body[at] == ' ' || body[at] == '\t' || body[at] == '\r' || body[at] == '\n'))
		at++;
	return at;
}

/* The next job of a list, of which request->read_at is at the bracket, or behind a job;
 * *ret_more: it was not the last. */
static int read_next(struct sw_request *request, const char *body, size_t size, bool *ret_more, struct sw_err *err)
{
	char what[64], detail[400];
	json_error_t error;
	size_t number = request->jobs.count + 1, at = skip_space(body, size, request->read_at + 1);
	if (number == 1 && at < size && body[at] == ']')
		return refuse(err, SW_EINPUT, "its list of jobs is empty");
	snprintf(what, sizeof what, "the request, number %zu of its list", number);
	/* No more is read at one go than one job may have: what is longer would hold up
	 * every client, only to be refused. */
	size_t most = SW_JOB_TEXT_MAX + 1;
	bool is_cut = size - at > most;
	json_t *value = json_loadb(body + at, is_cut ? most : size - at, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
	if (value == NULL) {
		enum json_error_code code = json_error_code(&error);
		if (code == json_error_out_of_memory)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		if (is_cut && (code == json_error_premature_end_of_input || (size_t)error.position + 8 > most)) {
			snprintf(detail, sizeof detail, "number %zu of its list is larger than a job may be", number);
			return refuse(err, SW_ELIMIT, detail);
		}
		snprintf(detail, sizeof detail, "number %zu of its list is no job in JSON: line %d of that, column %d: %s", number,
			 error.line, error.column, error.text);
		return refuse(err, SW_EINPUT, detail);
	}
	int r = add_job(request, what, value, err);
	json_decref(value);
	if (r < 0)
		return r;
	request->read_at = skip_space(body, size, at + (size_t)error.position);
	char end = request->read_at < size ? body[request->read_at] : '\0';
	*ret_more = end == ',';
	if (end == ',' || (end == ']' && skip_space(body, size, request->read_at + 1) == size))
		return 0;
	snprintf(detail, sizeof detail, "it is not JSON: behind number %zu of its list a comma or the end is missing", number);
	return refuse(err, SW_EINPUT, detail);
}

static int read_one(struct sw_request *request, const char *body, size_t size, struct sw_err *err)
{
	json_t *root = NULL;
	/* One job has its own, smaller bound. */
	if (size > SW_JOB_TEXT_MAX)
		return refuse(err, SW_ELIMIT, "it is larger than a job may be");
	int r = parse(body, size, &root, err);
	if (r < 0)
		return r;
	r = add_job(request, "the request", root, err);
	json_decref(root);
	return r;
}

static int read_submit(struct sw_request *request, const char *body, size_t size, bool *ret_more, struct sw_err *err)
{
	if (!request->jobs_are_listed) {
		request->digest = sw_hash_bytes(SW_HASH_START, body, size);
		request->read_at = skip_space(body, size, 0);
		request->jobs_are_listed = request->read_at < size && body[request->read_at] == '[';
		if (!request->jobs_are_listed)
			return read_one(request, body, size, err);
	}
	int r;
	size_t from = request->read_at;
	do
		r = read_next(request, body, size, ret_more, err);
	while (r == 0 && *ret_more && request->read_at - from < SW_REQUEST_STEP_BYTES);
	return r;
}

/* ---- policy and quota */

/* "name=value", with numbers and booleans as one would write them. */
static int add_setting(struct sw_request *request, const char *name, const json_t *value, struct sw_err *err)
{
	char number[40];
	const char *text = number;
	if (json_is_string(value))
		text = json_string_value(value);
	else if (json_is_integer(value))
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(number, sizeof number, "%.15g", json_real_value(value));
	else if (json_is_boolean(value))
		text = json_is_true(value) ? "true" : "false";
	else
		return refuse(err, SW_EINPUT, "a setting in 'set' is neither text nor a number nor true or false");
	if (request->setting_count == SW_SETTINGS_MAX || strlen(text) > 16384)
		return refuse(err, SW_ELIMIT, "'set' has too many settings, or one that is too long");
	if (asprintf(&request->settings[request->setting_count], "%s=%s", name, text) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	request->setting_count++;
	return 0;
}

static int copy_long_text(const json_t *value, size_t most, const char *complaint, char **ret_text, struct sw_err *err)
{
	if (!json_is_string(value) || json_string_length(value) == 0 || json_string_length(value) > most)
		return refuse(err, SW_EINPUT, complaint);
	*ret_text = strdup(json_string_value(value));
	return *ret_text != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int copy_text(const json_t *value, const char *complaint, char **ret_text, struct sw_err *err)
{
	return copy_long_text(value, 255, complaint, ret_text, err);
}

static int unknown_field(const char *name, struct sw_err *err)
{
	char detail[160];
	snprintf(detail, sizeof detail, "there is no field '%.100s' here", name);
	return refuse(err, SW_EINPUT, detail);
}

static int read_policy(struct sw_request *request, json_t *root, struct sw_err *err)
{
	const char *name, *parameter;
	json_t *value, *setting;
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "policy") != 0 && strcmp(name, "set") != 0)
			return unknown_field(name, err);
	}
	int r = copy_text(json_object_get(root, "policy"), "'policy' must be the name of a policy", &request->policy, err);
	json_t *set = json_object_get(root, "set");
	if (r < 0 || set == NULL || json_is_null(set))
		return r;
	if (!json_is_object(set))
		return refuse(err, SW_EINPUT, "'set' must be an object of names and values");
	json_object_foreach(set, parameter, setting)
	{
		r = add_setting(request, parameter, setting, err);
		if (r < 0)
			return r;
	}
	return 0;
}

#define WORLD_TEXT_MAX (64u << 10)

static int read_world(struct sw_request *request, json_t *root, struct sw_err *err)
{
	const char *name;
	json_t *value;
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "name") != 0 && strcmp(name, "text") != 0)
			return unknown_field(name, err);
	}
	int r = copy_text(json_object_get(root, "name"), "'name' must be what the world is called in messages", &request->world, err);
	return r < 0 ? r
		     : copy_long_text(json_object_get(root, "text"), WORLD_TEXT_MAX, "'text' must be a world file, of at most 64 KiB",
				      &request->world_text, err);
}

static int read_quota(struct sw_request *request, json_t *root, struct sw_err *err)
{
	const char *name;
	json_t *value;
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "tenant") != 0 && strcmp(name, "gpus") != 0)
			return unknown_field(name, err);
	}
	int r = copy_text(json_object_get(root, "tenant"), "'tenant' must be the name of a tenant", &request->tenant, err);
	if (r < 0)
		return r;
	json_t *gpus = json_object_get(root, "gpus");
	bool lifted = gpus != NULL && json_is_null(gpus);
	if (!lifted && (!json_is_integer(gpus) || json_integer_value(gpus) < 0 || json_integer_value(gpus) > INT32_MAX))
		return refuse(err, SW_EINPUT, "'gpus' must be a number of GPUs, or null to lift the quota");
	request->quota_gpus = lifted ? UINT32_MAX : (uint32_t)json_integer_value(gpus);
	return 0;
}

static int read_door(struct sw_request *request, json_t *root, struct sw_err *err)
{
	const char *name;
	json_t *value;
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "name") != 0 && strcmp(name, "closed") != 0 && strcmp(name, "removed") != 0 && strcmp(name, "reason") != 0)
			return unknown_field(name, err);
	}
	json_t *closed = json_object_get(root, "closed"), *reason = json_object_get(root, "reason"),
	       *removed = json_object_get(root, "removed");
	if (removed != NULL && !json_is_boolean(removed))
		return refuse(err, SW_EINPUT, "'removed' must be true or false");
	request->removed = json_is_true(removed);
	if (request->removed ? closed != NULL : !json_is_boolean(closed))
		return refuse(err, SW_EINPUT,
			      request->removed ? "'closed' and 'removed' do not go together" : "'closed' must be true or false");
	request->closed = json_is_true(closed);
	int r = copy_text(json_object_get(root, "name"), "'name' must be the name of a node", &request->node, err);
	if (r < 0 || reason == NULL || json_is_null(reason))
		return r;
	return copy_text(reason, "'reason' must be text of at most 255 bytes", &request->reason, err);
}

/* ---- limits */

static int read_limit_memory(const json_t *value, struct sw_job_limit *limit, struct sw_err *err)
{
	uint64_t bytes = UINT64_MAX;
	if (json_is_integer(value) && json_integer_value(value) >= 0)
		bytes = (uint64_t)json_integer_value(value);
	else if (json_is_string(value) && sw_parse_bytes(json_string_value(value), json_string_length(value), &bytes) < 0)
		bytes = UINT64_MAX;
	if (!json_is_null(value) && bytes > SW_JOB_BYTES_MAX)
		return refuse(err, SW_EINPUT, "'gpu_memory' must be a size such as \"20G\", bytes, or null to lift the limit");
	if (!json_is_null(value) && bytes < SW_LIMIT_LEAST_BYTES) {
		char least[32], detail[128];
		snprintf(detail, sizeof detail, "'gpu_memory' must be at least %s: the driver alone needs that; null lifts the limit",
			 sw_format_bytes(SW_LIMIT_LEAST_BYTES, least));
		return refuse(err, SW_EINPUT, detail);
	}
	limit->sets_memory = true;
	limit->memory_bytes = json_is_null(value) ? 0 : bytes;
	return 0;
}

static int read_limit_share(const json_t *value, struct sw_job_limit *limit, struct sw_err *err)
{
	json_int_t percent = json_is_null(value) ? 100 : json_is_integer(value) ? json_integer_value(value) : 0;
	if (percent < 1 || percent > 100)
		return refuse(err, SW_EINPUT, "'compute' must be a percentage from 1 to 100, or null to lift the limit");
	limit->sets_share = true;
	limit->share_milli = percent == 100 ? 0 : (uint32_t)percent * 10;
	return 0;
}

static int read_limit(struct sw_request *request, json_t *root, struct sw_err *err)
{
	const char *name;
	json_t *value;
	int r = 0;
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "gpu_memory") == 0)
			r = read_limit_memory(value, &request->limit, err);
		else if (strcmp(name, "compute") == 0)
			r = read_limit_share(value, &request->limit, err);
		else
			r = unknown_field(name, err);
		if (r < 0)
			return r;
	}
	if (!request->limit.sets_memory && !request->limit.sets_share)
		return refuse(err, SW_EINPUT, "it has neither 'gpu_memory' nor 'compute'");
	return 0;
}

/* ---- moves */

static int read_move(struct sw_request *request, json_t *root, struct sw_err *err)
{
	const char *name;
	json_t *value, *gpu;
	size_t index;
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "gpus") != 0)
			return unknown_field(name, err);
		if (json_is_null(value))
			continue;
		if (json_array_size(value) == 0)
			return refuse(err, SW_EINPUT, "'gpus' must be a list of GPUs by their numbers");
		json_array_foreach(value, index, gpu)
		{
			json_int_t number = json_is_integer(gpu) ? json_integer_value(gpu) : -1;
			if (number < 0 || number > 63 || (request->gpu_mask >> number & 1) != 0)
				return refuse(err, SW_EINPUT, "'gpus' must hold numbers of GPUs, from 0 to 63, each once");
			request->gpu_mask |= UINT64_C(1) << number;
		}
	}
	return 0;
}

/* ---- changes of many jobs */

static int read_verb(struct sw_request *request, const json_t *value, struct sw_err *err)
{
	static const struct {
		const char *name;
		enum sw_route_id id;
	} verbs[] = {{"cancel", SW_ROUTE_CANCEL},   {"hold", SW_ROUTE_HOLD},	   {"release", SW_ROUTE_RELEASE},
		     {"requeue", SW_ROUTE_REQUEUE}, {"suspend", SW_ROUTE_SUSPEND}, {"resume", SW_ROUTE_RESUME}};
	const size_t count = sizeof verbs / sizeof verbs[0];
	const char *word = json_is_string(value) ? json_string_value(value) : "";
	for (size_t v = 0; v < count; v++) {
		if (strcmp(word, verbs[v].name) == 0) {
			request->change.verb = verbs[v].id;
			return 0;
		}
	}
	const char *near = sw_suggest(word, verbs, count, sizeof verbs[0]);
	refuse(err, SW_EINPUT, "'verb' must be cancel, hold, release, requeue, suspend or resume");
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s'?", near);
	return SW_EINPUT;
}

static int read_ids(struct sw_request *request, const json_t *list, struct sw_err *err)
{
	size_t index;
	const json_t *value;
	if (json_array_size(list) == 0)
		return refuse(err, SW_EINPUT, "'jobs' must be a list of jobs by their numbers");
	if (json_array_size(list) > SW_REQUEST_CHANGES_MAX) {
		sw_err_set(err, SW_ELIMIT, "one request changes at most %u jobs", SW_REQUEST_CHANGES_MAX);
		sw_err_detail(err, "this one names %zu", json_array_size(list));
		sw_err_hint(err, "Send them in several requests.");
		return SW_ELIMIT;
	}
	if (sw_vec_reserve(&request->change.jobs, json_array_size(list)) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	json_array_foreach(list, index, value)
	{
		json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
		if (number < 1 || (uint64_t)number > SW_JOB_ID_MAX) {
			char detail[80];
			snprintf(detail, sizeof detail, "what 'jobs' has as its number %zu is not the number of a job", index + 1);
			return refuse(err, SW_EINPUT, detail);
		}
		*sw_vec_push(&request->change.jobs) = (uint64_t)number;
	}
	return 0;
}

static int read_flag(const json_t *root, const char *name, bool *ret_flag, struct sw_err *err)
{
	const json_t *value = json_object_get(root, name);
	if (value != NULL && !json_is_boolean(value)) {
		char detail[80];
		snprintf(detail, sizeof detail, "'%s' must be true or false", name);
		return refuse(err, SW_EINPUT, detail);
	}
	*ret_flag = json_is_true(value);
	return 0;
}

static int read_change(struct sw_request *request, json_t *root, struct sw_err *err)
{
	const char *name;
	json_t *value;
	json_object_foreach(root, name, value)
	{
		if (strcmp(name, "verb") != 0 && strcmp(name, "jobs") != 0 && strcmp(name, "deep") != 0 && strcmp(name, "force") != 0 &&
		    strcmp(name, "skip_ended") != 0)
			return unknown_field(name, err);
	}
	int r = read_verb(request, json_object_get(root, "verb"), err);
	r = r < 0 ? r : read_flag(root, "deep", &request->deep, err);
	r = r < 0 ? r : read_flag(root, "force", &request->force, err);
	r = r < 0 ? r : read_flag(root, "skip_ended", &request->change.skips_ended, err);
	if (r == 0 && (request->deep || request->force) && request->change.verb != SW_ROUTE_SUSPEND)
		r = refuse(err, SW_EINPUT, request->deep ? "'deep' goes with 'suspend' alone" : "'force' goes with 'suspend' alone");
	return r < 0 ? r : read_ids(request, json_object_get(root, "jobs"), err);
}

static int read_object(struct sw_request *request, const char *body, size_t size, struct sw_err *err)
{
	json_t *root = NULL;
	int r = parse(body, size, &root, err);
	if (r < 0)
		return r;
	if (!json_is_object(root))
		r = refuse(err, SW_EINPUT, "it is not an object");
	else
		r = request->route->id == SW_ROUTE_SET_POLICY  ? read_policy(request, root, err)
		    : request->route->id == SW_ROUTE_SET_WORLD ? read_world(request, root, err)
		    : request->route->id == SW_ROUTE_NODE_DOOR ? read_door(request, root, err)
		    : request->route->id == SW_ROUTE_LIMIT     ? read_limit(request, root, err)
		    : request->route->id == SW_ROUTE_MOVE      ? read_move(request, root, err)
		    : request->route->id == SW_ROUTE_CHANGE    ? read_change(request, root, err)
							       : read_quota(request, root, err);
	json_decref(root);
	return r;
}

/* ---- syncs */

static int read_sync(struct sw_request *request, const char *body, size_t size, bool *ret_more, struct sw_err *err)
{
	int r = request->reader == NULL ? sw_sync_reader_new(body, size, &request->reader, err) : 0;
	if (r < 0)
		return r;
	size_t from = sw_sync_reader_at(request->reader);
	while (r == 0 && request->sync == NULL && sw_sync_reader_at(request->reader) - from < SW_REQUEST_STEP_BYTES / 4)
		r = sw_sync_reader_step(request->reader, &request->sync, err);
	*ret_more = r == 0 && request->sync == NULL;
	if (!*ret_more) {
		sw_sync_reader_free(request->reader);
		request->reader = NULL;
	}
	return r;
}

int sw_request_read_some(struct sw_request *request, const char *body, size_t size, bool *ret_more, int *ret_status, struct sw_err *err)
{
	int r = 0;
	*ret_more = false;
	if (size > request->route->body_max) {
		r = refuse(err, SW_ELIMIT, "it is too large");
	} else if (request->route->request != NULL) {
		switch (request->route->id) {
		case SW_ROUTE_SUBMIT:
		case SW_ROUTE_TRY:
			r = read_submit(request, body, size, ret_more, err);
			break;
		case SW_ROUTE_SYNC:
			r = read_sync(request, body, size, ret_more, err);
			break;
		default:
			r = read_object(request, body, size, err);
			break;
		}
	}
	if (r < 0)
		*ret_status = sw_status_of(r);
	return r;
}

int sw_request_read(struct sw_request *request, const char *body, size_t size, int *ret_status, struct sw_err *err)
{
	bool more = true;
	int r = 0;
	while (r == 0 && more)
		r = sw_request_read_some(request, body, size, &more, ret_status, err);
	return r;
}
