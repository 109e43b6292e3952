/* A request for a job: defaults, what its fields have to do with each other, text and back. What is
 * known of each field alone is the table of job_fields.c.
 *
 * The canonical text is compact JSON, keys in ascending order. What means "nothing" (no limit, no
 * comment, off) is left out. What is a decision is written even where it is the default, since a
 * journal outlives defaults. */
#include "api/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/job_private.h"
#include "api/json.h"
#include "base/utf8.h"

/* Room in the canonical text for everything but long strings: names of fields, numbers, and up to
 * 64 dependencies. Also the model, which a controller may add. */
#define TEXT_OTHER 4096u

void sw_job_request_free(struct sw_job_request *request)
{
	if (request != NULL)
		sw_fields_free(sw_job_fields, sw_job_field_count, request);
	free(request);
}

struct sw_job_request *sw_job_request_copy(const struct sw_job_request *request)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *copy = malloc(sizeof *copy);
	if (copy == NULL)
		return NULL;
	*copy = *request;
	return sw_fields_copy(sw_job_fields, sw_job_field_count, copy) ? SW_TAKE(copy) : NULL;
}

uint32_t sw_job_request_count(const struct sw_job_request *request)
{
	if (!request->is_array || request->is_member)
		return 1;
	uint32_t step = request->array_step > 0 ? request->array_step : 1;
	return (request->array_last - request->array_first) / step + 1;
}

/* The last part of the path that the command's first word is; of a line for the shell, its first
 * word. */
static char *name_of(const struct sw_job_request *request)
{
	const char *word = request->argc > 0 ? request->argv[0] : "";
	if (request->argc == 3 && strcmp(word, "/bin/sh") == 0 && strcmp(request->argv[1], "-c") == 0)
		word = request->argv[2] + strspn(request->argv[2], " \t\n");
	size_t size = strcspn(word, " \t\n;|&");
	for (size_t i = 0; i < size; i++) {
		if (word[i] == '/' && i + 1 < size) {
			word += i + 1;
			size -= i + 1;
			i = (size_t)-1;
		}
	}
	if (size > SW_JOB_NAME_MAX)
		size = SW_JOB_NAME_MAX;
	/* Not in the middle of a character. */
	while (size > 0 && !sw_utf8_is_valid(word, size))
		size--;
	if (sw_has_control(word, size))
		size = 0;
	return size == 0 ? strdup("job") : strndup(word, size);
}

bool sw_job_request_defaults(struct sw_job_request *request)
{
	if (request->name == NULL || request->name[0] == '\0') {
		free(request->name);
		request->name = name_of(request);
	}
	if (request->tenant == NULL)
		request->tenant = strdup("");
	if (request->comment == NULL)
		request->comment = strdup("");
	if (request->model != NULL && request->model[0] == '\0') {
		free(request->model);
		request->model = NULL;
	}
	if (request->gpus == 0)
		request->gpus = request->min_gpus > 0 ? request->min_gpus : 1;
	if (request->min_gpus == 0)
		request->min_gpus = request->gpus;
	if (request->max_gpus == 0)
		request->max_gpus = request->gpus;
	if (request->weight_milli == 0)
		request->weight_milli = 1000;
	if (request->grace_ns == 0)
		request->grace_ns = SW_JOB_GRACE_NS;
	if (request->on_lost == SW_ON_LOST_RESTART && request->lease_ns == 0)
		request->lease_ns = SW_JOB_LEASE_NS;
	if (request->is_array && request->array_step == 0)
		request->array_step = 1;
	return request->name != NULL && request->tenant != NULL && request->comment != NULL;
}

/* ---- -- checks */

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

static int check_paths(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	if (request->workdir != NULL && request->workdir[0] != '/')
		return refuse(err, SW_EINPUT, what, "field 'workdir' is '%.200s', expected an absolute path", request->workdir);
	if ((request->stdout_path != NULL && request->stdout_path[0] == '\0') ||
	    (request->stderr_path != NULL && request->stderr_path[0] == '\0'))
		return refuse(err, SW_EINPUT, what, "field 'stdout' or 'stderr' is empty, expected a path");
	return 0;
}

static int check_env(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	for (size_t i = 0; i < request->env_count; i++) {
		const char *variable = request->env[i], *equals = strchr(variable, '=');
		if (equals == NULL || equals == variable)
			return refuse(err, SW_EINPUT, what, "field 'env' has the variable '%.100s', expected NAME=value", variable);
	}
	return 0;
}

static int check_gpus(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	if (request->min_gpus < 1 || request->min_gpus > request->gpus || request->gpus > request->max_gpus)
		return refuse(err, SW_EINPUT, what, "asks for %u GPUs, at least %u and at most %u: these contradict each other",
			      request->gpus, request->min_gpus, request->max_gpus);
	if (request->max_gpus > SW_JOB_GPUS_MAX)
		return refuse(err, SW_EINPUT, what, "asks for %u GPUs, at most %u are possible", request->max_gpus, SW_JOB_GPUS_MAX);
	if (request->prerun_ns > 0 && request->gpus < 2)
		return refuse(err, SW_EINPUT, what, "asks for a pre-run, which is for jobs with more than one GPU");
	return 0;
}

static int check_preempt(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	bool yields = request->kind == SW_CLASS_OPPORTUNISTIC;
	if (yields && (request->preempt_by == SW_PREEMPT_NEVER || (request->preempt_by == SW_PREEMPT_UNSAID && request->bare_gpu))) {
		refuse(err, SW_EINPUT, what,
		       request->preempt_by == SW_PREEMPT_NEVER
			       ? "an opportunistic job works in what others leave: it cannot be one that is never stopped"
			       : "an opportunistic job has to make way, and without the GPU runtime it would lose its run");
		sw_err_hint(
			err,
			"'preempt: requeue' (--preempt requeue) allows that it is stopped and starts anew; or choose class guaranteed.");
		return SW_EINPUT;
	}
	if (request->no_requeue && (request->preempt_by == SW_PREEMPT_BY_REQUEUE || (request->retries_said && request->retries > 0)))
		return refuse(err, SW_EINPUT, what, "'requeue: false' forbids a second start, '%s' asks for one",
			      request->preempt_by == SW_PREEMPT_BY_REQUEUE ? "preempt: requeue" : "retries");
	return 0;
}

static int check_floor(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	if (request->lease_ns > 0 && request->on_lost != SW_ON_LOST_RESTART)
		return refuse(err, SW_EINPUT, what,
			      "field 'lease' is for jobs with 'on_lost' restart: others run on for as long as it takes");
	if (request->on_lost == SW_ON_LOST_RESTART && request->lease_ns < SW_JOB_LEASE_MIN_NS)
		return refuse(err, SW_EINPUT, what, "field 'lease' is out of range");
	if (request->gpu_floor_bytes > request->gpu_memory_bytes)
		return refuse(err, SW_EINPUT, what,
			      request->gpu_memory_bytes == 0 ? "field 'gpu_floor' needs 'gpu_memory', of which it is a part"
							     : "field 'gpu_floor' is more than 'gpu_memory', of which it is a part");
	return 0;
}

static int check_array(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	if (request->depend_count > SW_JOB_DEPENDS_MAX)
		return refuse(err, SW_ELIMIT, what, "depends on %zu jobs, at most %u are allowed", request->depend_count,
			      SW_JOB_DEPENDS_MAX);
	for (size_t i = 0; i < request->depend_count; i++)
		if (request->depends[i].job < 1 || request->depends[i].job > SW_JOB_ID_MAX || request->depends[i].kind > SW_AFTER_NOT_OK)
			return refuse(err, SW_EINPUT, what, "field 'depends' names a job that cannot exist");
	if (!request->is_array)
		return request->is_member ? refuse(err, SW_EINPUT, what, "has an 'array_index' without an 'array'") : 0;
	if (request->array_first > request->array_last || request->array_last > SW_JOB_ARRAY_INDEX_MAX)
		return refuse(err, SW_EINPUT, what, "the array %u-%u is empty or goes beyond %u", request->array_first, request->array_last,
			      SW_JOB_ARRAY_INDEX_MAX);
	uint32_t step = request->array_step > 0 ? request->array_step : 1;
	uint32_t members = (request->array_last - request->array_first) / step + 1;
	if (members > SW_JOB_ARRAY_MAX)
		return refuse(err, SW_ELIMIT, what, "the array has %u members, at most %u are allowed", members, SW_JOB_ARRAY_MAX);
	uint32_t index = request->array_index;
	if (request->is_member &&
	    (index < request->array_first || index > request->array_last || (index - request->array_first) % step != 0))
		return refuse(err, SW_EINPUT, what, "'array_index' %u is not in the array", index);
	return 0;
}

/* What the strings take in the canonical text; but for the model, which a controller may add. */
static size_t text_size(const struct sw_job_request *request)
{
	size_t size = 0;
	for (size_t i = 0; i < sw_job_field_count; i++) {
		const char *at = (const char *)request + sw_job_fields[i].offset;
		const char *text = sw_job_fields[i].kind == SW_FIELD_TEXT ? *(const char *const *)at : NULL;
		if (text != NULL && text != request->model)
			size += sw_json_string_size(text);
	}
	for (size_t i = 0; i < request->argc; i++)
		size += sw_json_string_size(request->argv[i]) + 1;
	/* The name and the value of a variable are two strings. */
	for (size_t i = 0; i < request->env_count; i++)
		size += sw_json_string_size(request->env[i]) + 4;
	return size;
}

static int check(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	if (request->argc < 1 || request->argv[0][0] == '\0')
		return refuse(err, SW_EINPUT, what, "it has no command");
	int r = sw_fields_check(what, sw_job_fields, sw_job_field_count, request, err);
	r = r < 0 ? r : check_paths(what, request, err);
	r = r < 0 ? r : check_env(what, request, err);
	r = r < 0 ? r : check_gpus(what, request, err);
	r = r < 0 ? r : check_preempt(what, request, err);
	r = r < 0 ? r : check_floor(what, request, err);
	r = r < 0 ? r : check_array(what, request, err);
	if (r < 0)
		return r;
	size_t size = text_size(request);
	if (size > SW_JOB_TEXT_MAX - TEXT_OTHER)
		return refuse(err, SW_ELIMIT, what, "command and environment take %zu bytes, at most %u are allowed", size,
			      SW_JOB_TEXT_MAX - TEXT_OTHER);
	return 0;
}

#define FACT_SIZE 200
static const char *fact_of(const char *what, char fact[FACT_SIZE])
{
	snprintf(fact, FACT_SIZE, "cannot take the job of %s", what);
	return fact;
}

int sw_job_request_check(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	char fact[FACT_SIZE];
	return check(fact_of(what, fact), request, err);
}

/* ---- -- text */

const char sw_job_stored[] = "journal";

int sw_job_request_from_json(const char *what, json_t *root, struct sw_job_request **ret_request, struct sw_err *err)
{
	char fact[FACT_SIZE];
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = calloc(1, sizeof *request);
	struct sw_decoder decoder = {.what = fact_of(what, fact), .err = err, .by_people = true};
	if (request == NULL)
		return sw_decoder_out_of_memory(&decoder);
	if (!json_is_object(root)) {
		sw_err_set(err, SW_EINPUT, "%s", fact);
		sw_err_detail(err, "it is not an object");
		return SW_EINPUT;
	}
	int r = sw_decode_strictly(&decoder, root, sw_job_fields, sw_job_field_count, request);
	if (r == 0 && !sw_job_request_defaults(request))
		r = sw_decoder_out_of_memory(&decoder);
	if (r == 0 && what == sw_job_stored)
		sw_fields_mend_lines(sw_job_fields, sw_job_field_count, request);
	r = r < 0 ? r : check(fact, request, err);
	if (r == 0)
		*ret_request = SW_TAKE(request);
	return r;
}

int sw_job_request_decode(const char *what, const char *json, size_t size, struct sw_job_request **ret_request, struct sw_err *err)
{
	char fact[FACT_SIZE];
	if (size > SW_JOB_TEXT_MAX) {
		sw_err_set(err, SW_ELIMIT, "%s", fact_of(what, fact));
		sw_err_detail(err, "it has %zu bytes, at most %u are allowed", size, SW_JOB_TEXT_MAX);
		return SW_ELIMIT;
	}
	json_error_t error;
	json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL) {
		int code = json_error_code(&error) == json_error_out_of_memory ? SW_ENOMEM : SW_EINPUT;
		sw_err_set(err, code, "%s", fact_of(what, fact));
		sw_err_detail(err, "it is not JSON: line %d, column %d: %s", error.line, error.column, error.text);
		return code;
	}
	int r = sw_job_request_from_json(what, root, ret_request, err);
	json_decref(root);
	return r;
}

char *sw_job_request_encode(const struct sw_job_request *request)
{
	SW_CLEANUP(sw_json_releasep) struct sw_json json = {0};
	sw_json_object(&json);
	sw_encode_fields(&json, sw_job_fields, sw_job_field_count, request);
	sw_json_end_object(&json);
	return sw_json_take(&json, NULL);
}
