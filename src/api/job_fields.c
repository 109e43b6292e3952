/* The fields of a job's request, in the order of their names: the one place that knows them all.
 * What only one field does - a little language of its own - stands above the table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/job_private.h"
#include "api/when.h"
#include "base/number.h"

/* ---- -- the command */

static int read_line(struct sw_decoder *decoder, const char *line, struct sw_job_request *request)
{
	const char *const words[] = {"/bin/sh", "-c", line};
	if (line[strspn(line, " \t\r\n")] == '\0')
		return 0; /* the check says that there is no command */
	request->argv = calloc(4, sizeof *request->argv);
	if (request->argv == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (; request->argc < 3; request->argc++) {
		request->argv[request->argc] = strdup(words[request->argc]);
		if (request->argv[request->argc] == NULL)
			return sw_decoder_out_of_memory(decoder);
	}
	return 0;
}

static int refuse_many(struct sw_decoder *decoder, const char *what, size_t count, size_t most, const char *members)
{
	sw_err_set(decoder->err, SW_ELIMIT, "%s", decoder->what);
	sw_err_detail(decoder->err, "the %s has %zu %s, at most %zu are allowed", what, count, members, most);
	return SW_ELIMIT;
}

static int read_command(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	struct sw_job_request *request = target;
	size_t count = json_array_size(value);
	if (json_is_string(value))
		return read_line(decoder, json_string_value(value), request);
	if (!json_is_array(value))
		return sw_decoder_refuse_field(decoder, field, value);
	if (count > field->most)
		return refuse_many(decoder, "command", count, field->most, "words");
	request->argv = calloc(count + 1, sizeof *request->argv);
	if (request->argv == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < count; i++) {
		const char *word = json_string_value(json_array_get(value, i));
		if (word == NULL)
			return sw_decoder_refuse(decoder, field->name, json_array_get(value, i), "text");
		request->argv[i] = strdup(word);
		if (request->argv[i] == NULL)
			return sw_decoder_out_of_memory(decoder);
		request->argc++;
	}
	return 0;
}

static void write_command(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const struct sw_job_request *request = source;
	sw_json_key(json, field->name);
	sw_json_array(json);
	for (size_t i = 0; i < request->argc; i++)
		sw_json_string(json, request->argv[i]);
	sw_json_end_array(json);
}

/* ---- -- the environment */

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

static int compare_variables(const void *a, const void *b)
{
	return compare_names(*(char *const *)a, *(char *const *)b);
}

/* By name; among variables of one name the later one of the request stays later. */
static int compare_places(const void *a, const void *b)
{
	char *const *x = *(char *const *const *)a, *const *y = *(char *const *const *)b;
	int order = compare_names(*x, *y);
	return order != 0 ? order : (x > y) - (x < y);
}

static int read_variable(struct sw_decoder *decoder, const struct sw_field *field, const char *name, const json_t *value, char **ret_text)
{
	char number[32];
	if (!json_is_string(value) && !json_is_integer(value))
		return sw_decoder_refuse(decoder, field->name, value, "text as the value of each variable");
	if (name[0] == '\0' || strchr(name, '=') != NULL) {
		sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
		sw_err_detail(decoder->err, "field 'env' has the variable '%.100s': a name is not empty and holds no '='", name);
		return SW_EINPUT;
	}
	snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	if (asprintf(ret_text, "%s=%s", name, json_is_string(value) ? json_string_value(value) : number) >= 0)
		return 0;
	*ret_text = NULL;
	return sw_decoder_out_of_memory(decoder);
}

static int read_env(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	struct sw_job_request *request = target;
	size_t count = json_object_size(value);
	const char *name;
	json_t *member;
	if (!json_is_object(value))
		return sw_decoder_refuse_field(decoder, field, value);
	if (count > field->most)
		return refuse_many(decoder, "environment", count, field->most, "variables");
	if (count == 0)
		return 0;
	request->env = calloc(count + 1, sizeof *request->env);
	if (request->env == NULL)
		return sw_decoder_out_of_memory(decoder);
	json_object_foreach(value, name, member)
	{
		int r = read_variable(decoder, field, name, member, &request->env[request->env_count]);
		if (r < 0)
			return r;
		request->env_count++;
	}
	qsort(request->env, request->env_count, sizeof *request->env, compare_variables);
	return 0;
}

static void write_env(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const struct sw_job_request *request = source;
	SW_CLEANUP(sw_freep) char ***sorted = malloc((request->env_count + 1) * sizeof *sorted);
	if (sorted == NULL)
		json->failed = true;
	if (request->env_count == 0 || sorted == NULL)
		return;
	for (size_t i = 0; i < request->env_count; i++)
		sorted[i] = &request->env[i];
	qsort(sorted, request->env_count, sizeof *sorted, compare_places);
	sw_json_key(json, field->name);
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
}

/* ---- -- GPUs */

/* A number, or "2-8": from two GPUs, and up to eight where there is room. */
static int read_gpus(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	struct sw_job_request *request = target;
	const char *text = json_is_string(value) ? json_string_value(value) : "";
	const char *dash = strchr(text, '-');
	if (dash == NULL || dash == text) {
		struct sw_field plain = *field;
		plain.read = NULL;
		return sw_decode_field(decoder, value, &plain, target);
	}
	uint64_t least, most;
	if (sw_parse_u64(text, (size_t)(dash - text), &least) < 0 || sw_parse_u64(dash + 1, strlen(dash + 1), &most) < 0 || least < 1 ||
	    least > most || most > SW_JOB_GPUS_MAX)
		return sw_decoder_refuse(decoder, field->name, value, "a number, or a range such as \"2-8\"");
	request->gpus = (uint32_t)least;
	request->min_gpus = (uint32_t)least;
	request->max_gpus = (uint32_t)most;
	return 0;
}

/* The least or the most, where it is another than the usual number. */
static void write_range(struct sw_json *json, const struct sw_field *field, const void *source)
{
	uint32_t number = *(const uint32_t *)((const char *)source + field->offset);
	if (number != ((const struct sw_job_request *)source)->gpus)
		sw_json_key_u64(json, field->name, number);
}

/* ---- -- arrays and dependencies */

static int read_array(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	if (json_is_string(value) && sw_job_array_parse(json_string_value(value), target) == 0)
		return 0;
	sw_decoder_refuse_field(decoder, field, value);
	sw_err_hint(decoder->err,
		    "The numbers are the first and last index, up to %u; %%4 lets four run at a time. At most %u jobs are in an array.",
		    SW_JOB_ARRAY_INDEX_MAX, SW_JOB_ARRAY_MAX);
	return SW_EINPUT;
}

static void write_array(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const struct sw_job_request *request = source;
	char text[64];
	if (!request->is_array)
		return;
	int size = snprintf(text, sizeof text, "%u-%u", request->array_first, request->array_last);
	if (request->array_step > 1)
		size += snprintf(text + size, sizeof text - (size_t)size, ":%u", request->array_step);
	if (request->array_limit > 0)
		snprintf(text + size, sizeof text - (size_t)size, "%%%u", request->array_limit);
	sw_json_key_string(json, field->name, text);
}

static void write_array_index(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const struct sw_job_request *request = source;
	if (request->is_array && request->is_member)
		sw_json_key_u64(json, field->name, request->array_index);
}

static int read_depends(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	int r = json_is_string(value) ? sw_job_depends_parse(json_string_value(value), target) : SW_EINPUT;
	if (r == SW_ELIMIT) {
		sw_err_set(decoder->err, SW_ELIMIT, "%s", decoder->what);
		sw_err_detail(decoder->err, "it depends on more than %u jobs", SW_JOB_DEPENDS_MAX);
	} else if (r < 0) {
		sw_decoder_refuse_field(decoder, field, value);
	}
	return r;
}

static void write_depends(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const struct sw_job_request *request = source;
	char text[SW_JOB_DEPENDS_MAX * 36];
	int size = 0;
	if (request->depend_count == 0)
		return;
	for (size_t i = 0; i < request->depend_count; i++)
		size += snprintf(text + size, sizeof text - (size_t)size, "%s%s:%" PRIu64, i > 0 ? "," : "",
				 sw_job_depend_names[request->depends[i].kind], request->depends[i].job);
	sw_json_key_string(json, field->name, text);
}

/* ---- -- others */

static int read_signal(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	uint32_t number = 0;
	if (json_is_integer(value) && json_integer_value(value) >= field->min && json_integer_value(value) <= field->max)
		number = (uint32_t)json_integer_value(value);
	else if (json_is_string(value))
		number = sw_job_signal(json_string_value(value));
	if (number == 0)
		return sw_decoder_refuse_field(decoder, field, value);
	((struct sw_job_request *)target)->signal = number;
	return 0;
}

static void write_signal(struct sw_json *json, const struct sw_field *field, const void *source)
{
	uint32_t number = ((const struct sw_job_request *)source)->signal;
	const char *name = sw_job_signal_name(number);
	if (name != NULL)
		sw_json_key_string(json, field->name, name);
	else if (number != 0)
		sw_json_key_u64(json, field->name, number);
}

/* Octal text, as the shell says it: a number would be read as a decimal one by half of the
 * programs. */
static int read_umask(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	const char *text = json_string_value(value);
	size_t size = text != NULL ? strlen(text) : 0;
	if (size < 1 || size > 4 || strspn(text, "01234567") != size || strtol(text, NULL, 8) > field->max)
		return sw_decoder_refuse_field(decoder, field, value);
	((struct sw_job_request *)target)->umask = (uint32_t)strtoul(text, NULL, 8);
	return 0;
}

static void write_umask(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const struct sw_job_request *request = source;
	char text[16];
	snprintf(text, sizeof text, "%04o", request->umask);
	if (request->umask_said || request->umask != 0)
		sw_json_key_string(json, field->name, text);
}

/* Slurm's word: true says too that others may stop it, where nothing else is said about that. */
static int read_requeue(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	struct sw_job_request *request = target;
	if (!json_is_boolean(value))
		return sw_decoder_refuse_field(decoder, field, value);
	request->no_requeue = json_is_false(value);
	if (!request->no_requeue && request->preempt_by == SW_PREEMPT_UNSAID)
		request->preempt_by = SW_PREEMPT_BY_REQUEUE;
	return 0;
}

static void write_requeue(struct sw_json *json, const struct sw_field *field, const void *source)
{
	if (((const struct sw_job_request *)source)->no_requeue)
		sw_json_key_bool(json, field->name, false);
}

/* ---- -- the table */

static const char *const gpu_runtime_names[] = {"on", "off", NULL};

#define AT(member) .offset = offsetof(struct sw_job_request, member)
#define SAID(member) .said = offsetof(struct sw_job_request, member)
#define LIST(items, number) .kind = SW_FIELD_LIST, AT(items), .count_offset = offsetof(struct sw_job_request, number)
#define SPAN(member) .kind = SW_FIELD_SPAN, AT(member), .brief = true
#define OPTION(option_name, key, value, text)                                        \
	.option = &(const struct sw_field_option)                                    \
	{                                                                            \
		.name = option_name, .letter = key, .argument = value, .about = text \
	}

const struct sw_field sw_job_fields[] = {
	{"array", SW_FIELD_OWN, AT(is_array),
	 .size = offsetof(struct sw_job_request, array_index) - offsetof(struct sw_job_request, is_array), .read = read_array,
	 .write = write_array, .type = "string", .expected = "such as \"0-9\", \"0-90:10\" or \"0-99%4\"",
	 .about =
		 "makes many jobs of one, 10000 at most: `0-9`, `0-90:10` (a step), `0-99%4` (four at a time, with those that are on hold)",
	 OPTION("array", 'a', "LIST",
		"makes many jobs of one, 10000 at most: 0-9, 0-90:10, 0-99%4 (four at a time, with those that are on hold)")},
	{"array_index", SW_FIELD_U32, AT(array_index), SAID(is_member), .max = SW_JOB_ARRAY_INDEX_MAX, .brief = true,
	 .write = write_array_index, .about = "only this member of the array", .option = &sw_no_option},
	{"class", SW_FIELD_WORD, AT(kind), .words = sw_job_class_names, .about = "`guaranteed` (by default), `opportunistic`, or `auto`",
	 OPTION("class", '\0', "CLASS", "whether it may be stopped for others")},
	{"command", LIST(argv, argc), .max = SW_JOB_STRING_MAX, .most = SW_JOB_ARGS_MAX, .read = read_command, .write = write_command,
	 .type = "string[]|string", .expected = "a list of words, or a line for /bin/sh",
	 .about = "the program and its arguments; or one line of text, which /bin/sh runs. The only field that must be there",
	 OPTION("wrap", '\0', "LINE", "a line for /bin/sh instead of a command")},
	{"comment", SW_FIELD_TEXT, AT(comment), .min = 1, .max = SW_JOB_COMMENT_MAX, .line = true, .brief = true,
	 .about = "a note for people", OPTION("comment", '\0', "TEXT", NULL)},
	{"cpus", SW_FIELD_U32, AT(cpus), .max = SW_JOB_CPUS_MAX, .brief = true, .about = "cores for each GPU",
	 OPTION("cpus", 'c', "N", "cores for the job; with --ntasks, for each task")},
	{"deadline", SW_FIELD_MOMENT, AT(deadline_at_ns), .min = 1, .max = SW_WHEN_MAX_NS, .brief = true,
	 .about = "when it should be done: RFC 3339",
	 OPTION("deadline", '\0', "WHEN", "when it should be done: 2030-01-31T18:00, or 8h from now")},
	{"depends", SW_FIELD_OWN, AT(depend_count), .size = sizeof(struct sw_job_request) - offsetof(struct sw_job_request, depend_count),
	 .read = read_depends, .write = write_depends, .type = "string", .expected = "such as \"afterok:12,afterany:13\"",
	 .hint = "The kinds are afterok, afterany and afternotok.",
	 .about = "`afterok:12,afterany:13`: it waits until these jobs have ended well, or at all; `afternotok`: badly",
	 OPTION("dependency", 'd', "KIND:JOB", "waits for jobs: afterok:12:13,afterany:14,afternotok:15")},
	{"env", LIST(env, env_count), .max = SW_JOB_STRING_MAX, .most = SW_JOB_ENV_MAX, .read = read_env, .write = write_env,
	 .type = "object", .expected = "an object of names and values", .about = "variables of its environment",
	 .option = &(const struct sw_field_option){.name = "env", .argument = "NAME=VALUE", .many = true}},
	{"expected", SPAN(expected_ns), .max = SW_JOB_DURATION_MAX_NS, .about = "how long it will probably run: seconds, or `2h`",
	 OPTION("expected", '\0', "TIME", "how long you think it runs; only a hint for the policy")},
	{"gpu_floor", SW_FIELD_BYTES, AT(gpu_floor_bytes), .max = SW_JOB_BYTES_MAX, .brief = true,
	 .about = "of its `gpu_memory`, what it keeps between iterations; all of it by default",
	 OPTION("gpu-floor", '\0', "SIZE", "of --gpu-memory, what it keeps between iterations: 2G; all of it by default")},
	{"gpu_memory", SW_FIELD_BYTES, AT(gpu_memory_bytes), .max = SW_JOB_BYTES_MAX, .brief = true,
	 .about = "memory it needs on each GPU: bytes, or `20G`", OPTION("gpu-memory", '\0', "SIZE", "memory it needs on each GPU: 20G")},
	{"gpu_runtime", SW_FIELD_BOOL, AT(bare_gpu), .words = gpu_runtime_names, .brief = true,
	 .about = "`on` (its GPU memory can be limited, and moved away while it is suspended) or `off`; `on` by default",
	 OPTION("gpu-runtime", '\0', "WORD", "whether its GPU memory can be limited and moved away while it is suspended; on by default")},
	{"gpu_use", SW_FIELD_MILLI, AT(gpu_use_milli), .max = 1000, .brief = true,
	 .about = "part of each GPU's compute that it uses alone, up to 1; from its profile by default", .option = &sw_no_option},
	{"gpus", SW_FIELD_U32, AT(gpus), .min = 1, .max = SW_JOB_GPUS_MAX, .read = read_gpus, .type = "integer|string",
	 .about = "how many GPUs; or `2-8`: two, and up to eight where there is room. 1 by default",
	 OPTION("gpus", 'G', "N", "how many GPUs in all, or MIN-MAX for a job that can run on any number between")},
	{"grace", SPAN(grace_ns), .min = 1, .max = SW_JOB_DURATION_MAX_NS, .hint = "\"signal\": \"KILL\" ends a job at once.",
	 .expected = "a duration of more than nothing, such as \"2h\", or seconds",
	 .about = "time between the signal that stops it and SIGKILL; 30 s by default",
	 OPTION("grace", '\0', "TIME", "time between --signal and SIGKILL; 30s by default")},
	{"hold", SW_FIELD_BOOL, AT(held), .brief = true, .about = "does not run until it is released",
	 OPTION("hold", 'H', NULL, "does not run before 'sharewell resume'")},
	{"lease", SPAN(lease_ns), .min = SW_JOB_LEASE_MIN_NS, .max = SW_JOB_LEASE_MAX_NS, .expected = "a time from 1 s to a year",
	 .about = "with `on_lost` restart: how long it may go on without a word from the controller before it is stopped; 10 min by "
		  "default",
	 OPTION("lease", '\0', "TIME", "with --on-lost restart: how long it may go on without a word from the controller; 10m by default")},
	{"max_gpus", SW_FIELD_U32, AT(max_gpus), .min = 1, .max = SW_JOB_GPUS_MAX, .write = write_range,
	 .about = "may grow to this many GPUs", .option = &sw_no_option},
	{"memory", SW_FIELD_BYTES, AT(memory_bytes), .max = SW_JOB_BYTES_MAX, .brief = true, .about = "memory of the host for each GPU",
	 OPTION("mem", '\0', "SIZE", "memory of the machine for the job; a bare number is MiB, as in Slurm")},
	{"min_gpus", SW_FIELD_U32, AT(min_gpus), .min = 1, .max = SW_JOB_GPUS_MAX, .write = write_range,
	 .about = "may shrink to this many GPUs", .option = &sw_no_option},
	{"model", SW_FIELD_TEXT, AT(model), .min = 1, .max = SW_JOB_MODEL_MAX, .line = true, .brief = true,
	 .about = "the name of its profile. `gpu_memory` comes from it where it was measured and is not said. By default the measured "
		  "profile (`sharewell profile`) of the job's name, else of its command",
	 OPTION("model", '\0', "NAME", "its profile ('sharewell profile'); found by the job's name and command by default")},
	{"name", SW_FIELD_TEXT, AT(name), .min = 1, .max = SW_JOB_NAME_MAX, .line = true, .brief = true,
	 .about = "the command's name by default", OPTION("job-name", 'J', "NAME", "what it is called; the command's name by default")},
	{"on_lost", SW_FIELD_WORD, AT(on_lost), .min = SW_ON_LOST_WAIT, .words = sw_job_on_lost_names, .brief = true,
	 .about = "where its node, or the controller, does not answer: `wait` (by default) or `restart`. With `wait` it runs on, and is "
		  "found again. With `restart` it is stopped when its `lease` is over, and starts anew elsewhere",
	 OPTION("on-lost", '\0', "WORD",
		"when its node does not answer: it waits for the node and runs on there (by default), or starts anew elsewhere")},
	{"preempt", SW_FIELD_WORD, AT(preempt_by), .min = SW_PREEMPT_BY_REQUEUE, .words = sw_job_preempt_names, .brief = true,
	 .about = "how it may be made to give its GPUs to others: `suspend`, `requeue` or `never`. With `suspend` it stands still and goes "
		  "on where it was; with `requeue` it is stopped and starts anew. By default as the cluster's world says. Mostly that is "
		  "`suspend`, of guaranteed jobs where the GPU runtime can move its GPU memory to the host, else `never`",
	 OPTION("preempt", '\0', "HOW",
		"how it may be made to give its GPUs to others: suspend (it goes on where it was), requeue (it starts anew), never. By "
		"default as the cluster's world says")},
	{"prerun", SPAN(prerun_ns), .max = SW_JOB_DURATION_MAX_NS,
	 .about = "it first runs on one GPU for at most this long, with SHAREWELL_PRERUN=1; what is wrong with it then costs one GPU "
		  "instead "
		  "of all",
	 OPTION("prerun", '\0', "TIME",
		"first runs it on one GPU, for so long at most, and ends it there if it is wrong; running it twice must do no harm")},
	{"requeue", SW_FIELD_BOOL, AT(no_requeue), .brief = true, .read = read_requeue, .write = write_requeue,
	 .about = "false: it is never started a second time, whatever ended its run. true: `preempt` is `requeue` by default",
	 OPTION("requeue", '\0', NULL, "may start a second time; others may stop it, unless --preempt says more")},
	{"retries", SW_FIELD_U32, AT(retries), SAID(retries_said), .max = SW_JOB_RETRIES_MAX, .brief = true,
	 .about = "how often it is tried again after it failed, where that can help; by default 3 times, and never for failures that are "
		  "not "
		  "understood",
	 OPTION("retries", '\0', "N", "how often it is tried again where that can help; 3 by default")},
	{"signal", SW_FIELD_U32, AT(signal), .min = 1, .max = SW_JOB_SIGNAL_MAX, .brief = true, .read = read_signal, .write = write_signal,
	 .type = "integer|string", .expected = "a signal such as \"USR1\", or its number",
	 .about = "asks it to stop: `USR1`, or a number; TERM by default",
	 OPTION("signal", '\0', "SIG[@SECONDS]", "what asks it to stop, and how long before it is killed: USR1@120")},
	{"slurm_env", SW_FIELD_BOOL, AT(slurm_env), .brief = true, .about = "SLURM_* variables beside SHAREWELL_*",
	 OPTION("slurm-env", '\0', NULL, "gives it SLURM_* variables too, for programs that look for them")},
	{"stderr", SW_FIELD_TEXT, AT(stderr_path), .min = 1, .max = SW_JOB_PATH_MAX, .brief = true,
	 .about = "file for standard error, with the patterns of stdout; with the run by default",
	 OPTION("error", 'e', "FILE", "where standard error goes, with the patterns of --output; with standard output by default")},
	{"stdout", SW_FIELD_TEXT, AT(stdout_path), .min = 1, .max = SW_JOB_PATH_MAX, .brief = true,
	 .about = "file for standard output; with the run by default. In it %j is the job, %A the first job of its array, %a its index "
		  "there, %x its name. %u is its user (a number), %N its node, %% a percent sign",
	 OPTION("output", 'o', "FILE",
		"where standard output goes; kept for 'sharewell logs' by default. %j is the job's number, %x its name, %u its user, %N "
		"its node. %A and %a are the first job of its array and its index there")},
	{"tenant", SW_FIELD_TEXT, AT(tenant), .min = 1, .max = SW_JOB_TENANT_MAX, .line = true, .brief = true,
	 .about = "on whose quota; the user's own by default", OPTION("tenant", 'A', "NAME", NULL)},
	{"time_limit", SPAN(time_limit_ns), .max = SW_JOB_DURATION_MAX_NS,
	 .about = "it is ended after running so long: seconds, `2h`, `1-12:00:00`",
	 OPTION("time", 't', "TIME", "ends it after so long: 90s, 2h, 1-12:00:00; a bare number is minutes, as in Slurm")},
	{"umask", SW_FIELD_U32, AT(umask), SAID(umask_said), .max = SW_JOB_UMASK_MAX, .brief = true, .read = read_umask,
	 .write = write_umask, .type = "string", .expected = "octal digits such as \"0027\"",
	 .about = "of its processes, in octal: `0027`; `0022` by default. The command line sends its own", .option = &sw_no_option},
	{"weight", SW_FIELD_MILLI, AT(weight_milli), .min = 1, .max = SW_JOB_WEIGHT_MILLI_MAX, .about = "1 is the ordinary job",
	 OPTION("weight", '\0', "X", "how much it counts; 1 is the ordinary job")},
	{"workdir", SW_FIELD_TEXT, AT(workdir), .min = 1, .max = SW_JOB_PATH_MAX, .brief = true,
	 .about = "absolute path; the run's own folder by default", OPTION("chdir", 'D', "DIR", "where it runs; here by default")},
};
const size_t sw_job_field_count = SW_FIELD_COUNT(sw_job_fields);
const struct sw_table sw_job_table = {"job", sw_job_fields, SW_FIELD_COUNT(sw_job_fields), sizeof(struct sw_job_request)};
_Static_assert(SW_FIELD_COUNT(sw_job_fields) <= SW_JOB_FIELDS_MAX, "arrays with a place for each field have room");
