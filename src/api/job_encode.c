/* The canonical text of a request: compact JSON, keys in ascending order. What means "nothing" (no limit, no comment, off) is left out; what is a decision
 * is written even where it is the default, since a journal outlives defaults. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/job_private.h"
#include "api/json.h"
#include "api/when.h"
#include "base/number.h"

static void write_duration(struct sw_json *json, const char *key, int64_t ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {{"ms", SW_NS_PER_MS}, {"us", SW_NS_PER_US}, {"ns", 1}};
	if (ns == 0)
		return;
	sw_json_key(json, key);
	if (ns % SW_NS_PER_S == 0) {
		sw_json_i64(json, ns / SW_NS_PER_S);
		return;
	}
	size_t unit = 0;
	while (ns % units[unit].ns != 0)
		unit++;
	char text[48];
	snprintf(text, sizeof text, "%" PRId64 "%s", ns / units[unit].ns, units[unit].name);
	sw_json_string(json, text);
}

static void write_text(struct sw_json *json, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		sw_json_key_string(json, key, text);
}

static void write_number(struct sw_json *json, const char *key, uint64_t number)
{
	if (number != 0)
		sw_json_key_u64(json, key, number);
}

static void write_array(struct sw_json *json, const struct sw_job_request *request)
{
	if (!request->is_array)
		return;
	char text[64];
	int size = snprintf(text, sizeof text, "%u-%u", request->array_first, request->array_last);
	if (request->array_step > 1)
		size += snprintf(text + size, sizeof text - (size_t)size, ":%u", request->array_step);
	if (request->array_limit > 0)
		snprintf(text + size, sizeof text - (size_t)size, "%%%u", request->array_limit);
	sw_json_key_string(json, "array", text);
	if (request->is_member)
		sw_json_key_u64(json, "array_index", request->array_index);
}

static void write_command(struct sw_json *json, const struct sw_job_request *request)
{
	sw_json_key(json, "command");
	sw_json_array(json);
	for (size_t i = 0; i < request->argc; i++)
		sw_json_string(json, request->argv[i]);
	sw_json_end_array(json);
}

static void write_depends(struct sw_json *json, const struct sw_job_request *request)
{
	if (request->depend_count == 0)
		return;
	char text[SW_JOB_DEPENDS_MAX * 36];
	int size = 0;
	for (size_t i = 0; i < request->depend_count; i++)
		size += snprintf(text + size, sizeof text - (size_t)size, "%s%s:%" PRIu64, i > 0 ? "," : "",
				 sw_job_depend_names[request->depends[i].kind], request->depends[i].job);
	sw_json_key_string(json, "depends", text);
}

static size_t name_size(const char *variable)
{
	return strcspn(variable, "=");
}

static int compare_names(const char *a, const char *b)
{
	size_t a_size = name_size(a), b_size = name_size(b);
	int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
	return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

/* By name; among variables of one name the later one of the request stays later. */
static int compare_variables(const void *a, const void *b)
{
	char *const *x = *(char *const *const *)a, *const *y = *(char *const *const *)b;
	int order = compare_names(*x, *y);
	return order != 0 ? order : (x > y) - (x < y);
}

static bool write_env(struct sw_json *json, const struct sw_job_request *request)
{
	if (request->env_count == 0)
		return true;
	SW_CLEANUP(sw_freep) char ***sorted = malloc(request->env_count * sizeof *sorted);
	if (sorted == NULL)
		return false;
	for (size_t i = 0; i < request->env_count; i++)
		sorted[i] = &request->env[i];
	qsort(sorted, request->env_count, sizeof *sorted, compare_variables);
	sw_json_key(json, "env");
	sw_json_object(json);
	for (size_t i = 0; i < request->env_count; i++) {
		const char *variable = *sorted[i];
		/* Of two assignments the last one counts, as in a shell. */
		if (i + 1 < request->env_count && compare_names(variable, *sorted[i + 1]) == 0)
			continue;
		size_t size = name_size(variable);
		sw_json_string_n(json, variable, size);
		sw_json_bytes(json, ":", 1);
		json->wants_comma = false;
		sw_json_string(json, variable + size + (variable[size] == '='));
	}
	sw_json_end_object(json);
	return true;
}

static void write_signal(struct sw_json *json, uint32_t number)
{
	if (number == 0)
		return;
	const char *name = sw_job_signal_name(number);
	if (name != NULL)
		sw_json_key_string(json, "signal", name);
	else
		sw_json_key_u64(json, "signal", number);
}

static void write_umask(struct sw_json *json, const struct sw_job_request *request)
{
	char text[16];
	snprintf(text, sizeof text, "%04o", request->umask);
	if (request->umask_said || request->umask != 0)
		sw_json_key_string(json, "umask", text);
}

static void write_deadline(struct sw_json *json, int64_t at_ns)
{
	char text[SW_WHEN_SIZE];
	if (at_ns > 0)
		sw_json_key_string(json, "deadline", sw_when_format(at_ns, text));
}

/* A fraction is text: a reader that makes it binary would write it back with other digits. */
static void write_milli(struct sw_json *json, const char *key, uint32_t milli)
{
	char text[32];
	if (milli == 0)
		return;
	if (milli % 1000 == 0) {
		sw_json_key_u64(json, key, milli / 1000);
		return;
	}
	int size = snprintf(text, sizeof text, "%u.%03u", milli / 1000, milli % 1000);
	while (text[size - 1] == '0')
		text[--size] = '\0';
	sw_json_key_string(json, key, text);
}

/* From "expected" on; split from the rest for length only. */
static void write_later_fields(struct sw_json *json, const struct sw_job_request *request)
{
	write_duration(json, "expected", request->expected_ns);
	write_number(json, "gpu_floor", request->gpu_floor_bytes);
	write_number(json, "gpu_memory", request->gpu_memory_bytes);
	if (request->bare_gpu)
		sw_json_key_string(json, "gpu_runtime", sw_job_gpu_runtime_names[1]);
	write_milli(json, "gpu_use", request->gpu_use_milli);
	sw_json_key_u64(json, "gpus", request->gpus);
	write_duration(json, "grace", request->grace_ns);
	if (request->held)
		sw_json_key_bool(json, "hold", true);
	write_duration(json, "lease", request->lease_ns);
	if (request->max_gpus != request->gpus)
		sw_json_key_u64(json, "max_gpus", request->max_gpus);
	write_number(json, "memory", request->memory_bytes);
	if (request->min_gpus != request->gpus)
		sw_json_key_u64(json, "min_gpus", request->min_gpus);
	write_text(json, "model", request->model);
	write_text(json, "name", request->name);
	if (request->on_lost != SW_ON_LOST_UNSAID)
		sw_json_key_string(json, "on_lost", sw_job_on_lost_names[request->on_lost - SW_ON_LOST_WAIT]);
	if (request->preempt_by != SW_PREEMPT_UNSAID)
		sw_json_key_string(json, "preempt", sw_job_preempt_names[request->preempt_by]);
	write_duration(json, "prerun", request->prerun_ns);
	if (request->no_requeue)
		sw_json_key_bool(json, "requeue", false);
	if (request->retries_said || request->retries > 0)
		sw_json_key_u64(json, "retries", request->retries);
	write_signal(json, request->signal);
	if (request->slurm_env)
		sw_json_key_bool(json, "slurm_env", true);
	write_text(json, "stderr", request->stderr_path);
	write_text(json, "stdout", request->stdout_path);
	write_text(json, "tenant", request->tenant);
	write_duration(json, "time_limit", request->time_limit_ns);
	write_umask(json, request);
	write_milli(json, "weight", request->weight_milli);
	write_text(json, "workdir", request->workdir);
}

char *sw_job_request_encode(const struct sw_job_request *request)
{
	SW_CLEANUP(sw_json_releasep) struct sw_json json = {0};
	sw_json_object(&json);
	write_array(&json, request);
	sw_json_key_string(&json, "class", sw_job_kind_names[request->kind]);
	write_command(&json, request);
	write_text(&json, "comment", request->comment);
	write_number(&json, "cpus", request->cpus);
	write_deadline(&json, request->deadline_at_ns);
	write_depends(&json, request);
	if (!write_env(&json, request))
		return NULL;
	write_later_fields(&json, request);
	sw_json_end_object(&json);
	return sw_json_take(&json, NULL);
}
