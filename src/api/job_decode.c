/* A request from JSON: strict, bounded, and in words that name the field. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/job_private.h"
#include "api/when.h"
#include "base/number.h"
#include "base/suggest.h"

/* Beyond this a double no longer holds every integer; also far above every bound here. */
#define REAL_MAX 9e15

struct reader {
	const char *what;
	struct sw_job_request *request;
	struct sw_err *err;
};

/* What the value is, as one would say it. */
static void describe(const json_t *value, char *text, size_t size)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		snprintf(text, size, "an object");
		break;
	case JSON_ARRAY:
		snprintf(text, size, "a list");
		break;
	case JSON_STRING:
		snprintf(text, size, "'%.60s'", json_string_value(value));
		break;
	case JSON_INTEGER:
		snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		break;
	case JSON_REAL:
		snprintf(text, size, "%g", json_real_value(value));
		break;
	default:
		snprintf(text, size, "%s", json_is_null(value) ? "null" : json_is_true(value) ? "true" : "false");
		break;
	}
}

static int refuse(const struct reader *reader, const char *field, const json_t *value, const char *expected)
{
	char is[160];
	describe(value, is, sizeof is);
	sw_err_set(reader->err, SW_EINPUT, "cannot take the job of %s", reader->what);
	sw_err_detail(reader->err, "field '%s' is %s, expected %s", field, is, expected);
	return SW_EINPUT;
}

static int no_memory(const struct reader *reader)
{
	return sw_err_set(reader->err, SW_ENOMEM, "out of memory");
}

/* ------------------------------------------------------------------------------------------------ kinds of values */

static int read_text(const struct reader *reader, const char *field, const json_t *value, char **ret_text)
{
	if (!json_is_string(value))
		return refuse(reader, field, value, "text");
	char *text = strdup(json_string_value(value));
	if (text == NULL)
		return no_memory(reader);
	*ret_text = text;
	return 0;
}

static int read_count(const struct reader *reader, const char *field, const json_t *value, uint32_t least, uint32_t most,
		      uint32_t *ret_count)
{
	int64_t number = -1;
	if (json_is_integer(value))
		number = json_integer_value(value);
	else if (json_is_string(value) && sw_parse_i64(json_string_value(value), json_string_length(value), &number) < 0)
		number = -1;
	if (number >= least && number <= most) {
		*ret_count = (uint32_t)number;
		return 0;
	}
	char expected[64];
	snprintf(expected, sizeof expected, "a number from %u to %u", least, most);
	return refuse(reader, field, value, expected);
}

static int read_bytes(const struct reader *reader, const char *field, const json_t *value, uint64_t *ret_bytes)
{
	uint64_t bytes = UINT64_MAX;
	if (json_is_integer(value) && json_integer_value(value) >= 0)
		bytes = (uint64_t)json_integer_value(value);
	else if (json_is_string(value) && sw_parse_bytes(json_string_value(value), json_string_length(value), &bytes) < 0)
		bytes = UINT64_MAX;
	if (bytes > SW_JOB_BYTES_MAX)
		return refuse(reader, field, value, "a size such as \"20G\", or bytes");
	*ret_bytes = bytes;
	return 0;
}

/* A number with a fraction, times `scale`; -1 when it is none, or out of range. */
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

static int read_duration(const struct reader *reader, const char *field, const json_t *value, int64_t *ret_ns)
{
	int64_t ns = scaled(value, SW_NS_PER_S, SW_JOB_DURATION_MAX_NS);
	if (json_is_string(value) && sw_parse_duration(json_string_value(value), json_string_length(value), &ns) < 0)
		ns = -1;
	if (ns < 0 || ns > SW_JOB_DURATION_MAX_NS)
		return refuse(reader, field, value, "a duration such as \"2h\" or \"1-12:00:00\", or seconds");
	*ret_ns = ns;
	return 0;
}

static int read_bool(const struct reader *reader, const char *field, const json_t *value, bool *ret_bool)
{
	if (!json_is_boolean(value))
		return refuse(reader, field, value, "true or false");
	*ret_bool = json_is_true(value);
	return 0;
}

/* The position of the word in `words`. */
static int read_word(const struct reader *reader, const char *field, const json_t *value, const char *const *words, unsigned *ret_index)
{
	char expected[128] = "";
	for (unsigned i = 0; words[i] != NULL; i++) {
		if (json_is_string(value) && strcmp(json_string_value(value), words[i]) == 0) {
			*ret_index = i;
			return 0;
		}
		size_t used = strlen(expected);
		snprintf(expected + used, sizeof expected - used, "%s%s", i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ", words[i]);
	}
	return refuse(reader, field, value, expected);
}

/* ------------------------------------------------------------------------------------------------ fields */

static int read_command_line(const struct reader *reader, const char *line)
{
	struct sw_job_request *request = reader->request;
	const char *const words[] = {"/bin/sh", "-c", line};
	if (line[strspn(line, " \t\r\n")] == '\0')
		return 0; /* the check says that there is no command */
	request->argv = calloc(4, sizeof *request->argv);
	if (request->argv == NULL)
		return no_memory(reader);
	for (; request->argc < 3; request->argc++) {
		request->argv[request->argc] = strdup(words[request->argc]);
		if (request->argv[request->argc] == NULL)
			return no_memory(reader);
	}
	return 0;
}

static int read_command(const struct reader *reader, const char *field, const json_t *value)
{
	struct sw_job_request *request = reader->request;
	if (json_is_string(value))
		return read_command_line(reader, json_string_value(value));
	if (!json_is_array(value))
		return refuse(reader, field, value, "a list of words, or a line for /bin/sh");
	if (json_array_size(value) > SW_JOB_ARGS_MAX) {
		sw_err_set(reader->err, SW_ELIMIT, "cannot take the job of %s", reader->what);
		sw_err_detail(reader->err, "the command has %zu words, at most %u are allowed", json_array_size(value), SW_JOB_ARGS_MAX);
		return SW_ELIMIT;
	}
	request->argv = calloc(json_array_size(value) + 1, sizeof *request->argv);
	if (request->argv == NULL)
		return no_memory(reader);
	for (size_t i = 0; i < json_array_size(value); i++) {
		int r = read_text(reader, field, json_array_get(value, i), &request->argv[i]);
		if (r < 0)
			return r;
		request->argc++;
	}
	return 0;
}

static int compare_variables(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t x_size = strcspn(x, "="), y_size = strcspn(y, "=");
	int order = memcmp(x, y, x_size < y_size ? x_size : y_size);
	return order != 0 ? order : (x_size > y_size) - (x_size < y_size);
}

static int read_env(const struct reader *reader, const char *field, const json_t *value)
{
	struct sw_job_request *request = reader->request;
	if (!json_is_object(value))
		return refuse(reader, field, value, "an object of names and values");
	if (json_object_size(value) == 0)
		return 0;
	if (json_object_size(value) > SW_JOB_ENV_MAX) {
		sw_err_set(reader->err, SW_ELIMIT, "cannot take the job of %s", reader->what);
		sw_err_detail(reader->err, "the environment has %zu variables, at most %u are allowed", json_object_size(value),
			      SW_JOB_ENV_MAX);
		return SW_ELIMIT;
	}
	request->env = calloc(json_object_size(value) + 1, sizeof *request->env);
	if (request->env == NULL)
		return no_memory(reader);
	const char *name;
	json_t *member;
	/* jansson iterates over what it may change; nothing is changed here. */
	json_object_foreach((json_t *)(uintptr_t)value, name, member)
	{
		if (!json_is_string(member) && !json_is_integer(member))
			return refuse(reader, field, member, "text as the value of each variable");
		if (name[0] == '\0' || strchr(name, '=') != NULL) {
			sw_err_set(reader->err, SW_EINPUT, "cannot take the job of %s", reader->what);
			sw_err_detail(reader->err, "field 'env' has the variable '%.100s': a name is not empty and holds no '='", name);
			return SW_EINPUT;
		}
		char number[32];
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(member));
		const char *text = json_is_string(member) ? json_string_value(member) : number;
		if (asprintf(&request->env[request->env_count], "%s=%s", name, text) < 0) {
			request->env[request->env_count] = NULL;
			return no_memory(reader);
		}
		request->env_count++;
	}
	qsort(request->env, request->env_count, sizeof *request->env, compare_variables);
	return 0;
}

/* A number, or "2-8": from two GPUs, and up to eight where there is room. */
static int read_gpus(const struct reader *reader, const char *field, const json_t *value)
{
	struct sw_job_request *request = reader->request;
	const char *text = json_is_string(value) ? json_string_value(value) : "";
	const char *dash = strchr(text, '-');
	if (dash == NULL || dash == text)
		return read_count(reader, field, value, 1, SW_JOB_GPUS_MAX, &request->gpus);
	uint64_t least, most;
	if (sw_parse_u64(text, (size_t)(dash - text), &least) < 0 || sw_parse_u64(dash + 1, strlen(dash + 1), &most) < 0 || least < 1 ||
	    least > most || most > SW_JOB_GPUS_MAX)
		return refuse(reader, field, value, "a number, or a range such as \"2-8\"");
	request->gpus = (uint32_t)least;
	request->min_gpus = (uint32_t)least;
	request->max_gpus = (uint32_t)most;
	return 0;
}

static int read_min_gpus(const struct reader *reader, const char *field, const json_t *value)
{
	return read_count(reader, field, value, 1, SW_JOB_GPUS_MAX, &reader->request->min_gpus);
}

static int read_max_gpus(const struct reader *reader, const char *field, const json_t *value)
{
	return read_count(reader, field, value, 1, SW_JOB_GPUS_MAX, &reader->request->max_gpus);
}

static int read_signal(const struct reader *reader, const char *field, const json_t *value)
{
	uint32_t number = 0;
	if (json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= 64)
		number = (uint32_t)json_integer_value(value);
	else if (json_is_string(value))
		number = sw_job_signal(json_string_value(value));
	if (number == 0)
		return refuse(reader, field, value, "a signal such as \"USR1\", or its number");
	reader->request->signal = number;
	return 0;
}

/* Octal text, as the shell says it: a number would be read as a decimal one by half of the programs. */
static int read_umask(const struct reader *reader, const char *field, const json_t *value)
{
	const char *text = json_string_value(value);
	size_t size = text != NULL ? strlen(text) : 0;
	if (size < 1 || size > 4 || strspn(text, "01234567") != size || strtoul(text, NULL, 8) > SW_JOB_UMASK_MAX)
		return refuse(reader, field, value, "octal digits such as \"0027\"");
	reader->request->umask = (uint32_t)strtoul(text, NULL, 8);
	reader->request->umask_said = true;
	return 0;
}

static int read_grace(const struct reader *reader, const char *field, const json_t *value)
{
	int64_t ns = 0;
	int r = read_duration(reader, field, value, &ns);
	if (r < 0)
		return r;
	if (ns == 0) {
		refuse(reader, field, value, "more than nothing");
		sw_err_hint(reader->err, "\"signal\": \"KILL\" ends a job at once.");
		return SW_EINPUT;
	}
	reader->request->grace_ns = ns;
	return 0;
}

static int read_lease(const struct reader *reader, const char *field, const json_t *value)
{
	int64_t ns = 0;
	int r = read_duration(reader, field, value, &ns);
	if (r == 0 && (ns < SW_JOB_LEASE_MIN_NS || ns > SW_JOB_LEASE_MAX_NS))
		r = refuse(reader, field, value, "a time from 1 s to a year");
	if (r == 0)
		reader->request->lease_ns = ns;
	return r;
}

static int read_deadline(const struct reader *reader, const char *field, const json_t *value)
{
	int64_t ns = -1;
	if (!json_is_string(value) || sw_when_parse(json_string_value(value), json_string_length(value), &ns) < 0 || ns == 0)
		return refuse(reader, field, value, "a moment such as \"2030-01-31T18:00:00Z\"");
	reader->request->deadline_at_ns = ns;
	return 0;
}

static int read_weight(const struct reader *reader, const char *field, const json_t *value)
{
	int64_t milli = scaled(value, 1000, SW_JOB_WEIGHT_MILLI_MAX);
	if (json_is_string(value) && sw_parse_decimal(json_string_value(value), json_string_length(value), 1000, &milli) < 0)
		milli = -1;
	if (milli < 1 || milli > SW_JOB_WEIGHT_MILLI_MAX)
		return refuse(reader, field, value, "a number from 0.001 to 1000000");
	reader->request->weight_milli = (uint32_t)milli;
	return 0;
}

static int read_gpu_use(const struct reader *reader, const char *field, const json_t *value)
{
	int64_t milli = scaled(value, 1000, 1000);
	if (json_is_string(value) && sw_parse_decimal(json_string_value(value), json_string_length(value), 1000, &milli) < 0)
		milli = -1;
	if (milli < 0 || milli > 1000)
		return refuse(reader, field, value, "a number from 0 to 1");
	reader->request->gpu_use_milli = (uint32_t)milli;
	return 0;
}

static int read_depends(const struct reader *reader, const char *field, const json_t *value)
{
	int r = json_is_string(value) ? sw_job_depends_parse(json_string_value(value), reader->request) : SW_EINPUT;
	if (r == SW_ELIMIT) {
		sw_err_set(reader->err, SW_ELIMIT, "cannot take the job of %s", reader->what);
		sw_err_detail(reader->err, "it depends on more than %u jobs", SW_JOB_DEPENDS_MAX);
	} else if (r < 0) {
		refuse(reader, field, value, "such as \"afterok:12,afterany:13\"");
		sw_err_hint(reader->err, "The kinds are afterok, afterany and afternotok.");
	}
	return r;
}

static int read_array(const struct reader *reader, const char *field, const json_t *value)
{
	if (json_is_string(value) && sw_job_array_parse(json_string_value(value), reader->request) == 0)
		return 0;
	refuse(reader, field, value, "such as \"0-9\", \"0-90:10\" or \"0-99%4\"");
	sw_err_hint(reader->err,
		    "The numbers are the first and last index, up to %u; %%4 lets four run at a time. At most %u jobs are in an array.",
		    SW_JOB_ARRAY_INDEX_MAX, SW_JOB_ARRAY_MAX);
	return SW_EINPUT;
}

static int read_array_index(const struct reader *reader, const char *field, const json_t *value)
{
	reader->request->is_member = true;
	return read_count(reader, field, value, 0, SW_JOB_ARRAY_INDEX_MAX, &reader->request->array_index);
}

static int read_class(const struct reader *reader, const char *field, const json_t *value)
{
	unsigned kind;
	int r = read_word(reader, field, value, sw_job_kind_names, &kind);
	if (r == 0)
		reader->request->kind = (enum sw_job_kind)kind;
	return r;
}

static int read_on_lost(const struct reader *reader, const char *field, const json_t *value)
{
	unsigned word;
	int r = read_word(reader, field, value, sw_job_on_lost_names, &word);
	if (r == 0)
		reader->request->on_lost = (enum sw_on_lost)(SW_ON_LOST_WAIT + word);
	return r;
}

static int read_preempt(const struct reader *reader, const char *field, const json_t *value)
{
	unsigned by;
	int r = read_word(reader, field, value, sw_job_preempt_names, &by);
	if (r == 0)
		reader->request->preempt_by = (enum sw_preempt_by)by;
	return r;
}

/* Slurm's word: true says too that others may stop it, where nothing else is said about that. */
static int read_requeue(const struct reader *reader, const char *field, const json_t *value)
{
	bool may = true;
	int r = read_bool(reader, field, value, &may);
	if (r < 0)
		return r;
	reader->request->no_requeue = !may;
	if (may && reader->request->preempt_by == SW_PREEMPT_UNSAID)
		reader->request->preempt_by = SW_PREEMPT_BY_REQUEUE;
	return 0;
}

static int read_gpu_runtime(const struct reader *reader, const char *field, const json_t *value)
{
	unsigned word;
	int r = read_word(reader, field, value, sw_job_gpu_runtime_names, &word);
	if (r == 0)
		reader->request->bare_gpu = word != 0;
	return r;
}

/* The field is one member of the struct, of a kind that is read the same everywhere. */
#define SIMPLE(function, kind, member)                                                           \
	static int function(const struct reader *reader, const char *field, const json_t *value) \
	{                                                                                        \
		return kind(reader, field, value, &reader->request->member);                     \
	}
SIMPLE(read_name, read_text, name)
SIMPLE(read_workdir, read_text, workdir)
SIMPLE(read_stdout, read_text, stdout_path)
SIMPLE(read_stderr, read_text, stderr_path)
SIMPLE(read_tenant, read_text, tenant)
SIMPLE(read_comment, read_text, comment)
SIMPLE(read_gpu_floor, read_bytes, gpu_floor_bytes)
SIMPLE(read_gpu_memory, read_bytes, gpu_memory_bytes)
SIMPLE(read_memory, read_bytes, memory_bytes)
SIMPLE(read_model, read_text, model)
SIMPLE(read_time_limit, read_duration, time_limit_ns)
SIMPLE(read_expected, read_duration, expected_ns)
SIMPLE(read_prerun, read_duration, prerun_ns)
SIMPLE(read_hold, read_bool, held)
SIMPLE(read_slurm_env, read_bool, slurm_env)
#undef SIMPLE

static int read_cpus(const struct reader *reader, const char *field, const json_t *value)
{
	return read_count(reader, field, value, 0, SW_JOB_CPUS_MAX, &reader->request->cpus);
}

static int read_retries(const struct reader *reader, const char *field, const json_t *value)
{
	reader->request->retries_said = true;
	return read_count(reader, field, value, 0, SW_JOB_RETRIES_MAX, &reader->request->retries);
}

static const struct field {
	const char *name;
	int (*read)(const struct reader *reader, const char *field, const json_t *value);
} fields[] = {
	{"array", read_array},
	{"array_index", read_array_index},
	{"class", read_class},
	{"command", read_command},
	{"comment", read_comment},
	{"cpus", read_cpus},
	{"deadline", read_deadline},
	{"depends", read_depends},
	{"env", read_env},
	{"expected", read_expected},
	{"gpu_floor", read_gpu_floor},
	{"gpu_memory", read_gpu_memory},
	{"gpu_runtime", read_gpu_runtime},
	{"gpu_use", read_gpu_use},
	{"gpus", read_gpus},
	{"grace", read_grace},
	{"hold", read_hold},
	{"lease", read_lease},
	{"max_gpus", read_max_gpus},
	{"memory", read_memory},
	{"min_gpus", read_min_gpus},
	{"model", read_model},
	{"name", read_name},
	{"on_lost", read_on_lost},
	{"preempt", read_preempt},
	{"prerun", read_prerun},
	{"requeue", read_requeue},
	{"retries", read_retries},
	{"signal", read_signal},
	{"slurm_env", read_slurm_env},
	{"stderr", read_stderr},
	{"stdout", read_stdout},
	{"tenant", read_tenant},
	{"time_limit", read_time_limit},
	{"umask", read_umask},
	{"weight", read_weight},
	{"workdir", read_workdir},
};
#define FIELDS (sizeof fields / sizeof fields[0])

const char *sw_job_field_name(size_t index)
{
	return index < FIELDS ? fields[index].name : NULL;
}

static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static int unknown_field(const struct reader *reader, const char *name)
{
	sw_err_set(reader->err, SW_EINPUT, "cannot take the job of %s", reader->what);
	sw_err_detail(reader->err, "there is no field '%.100s'", name);
	const char *near = sw_suggest(name, fields, FIELDS, sizeof fields[0]);
	if (near != NULL)
		sw_err_hint(reader->err, "Did you mean '%s'?", near);
	return SW_EINPUT;
}

int sw_job_request_from_json(const char *what, const json_t *root, struct sw_job_request **ret_request, struct sw_err *err)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = calloc(1, sizeof *request);
	struct reader reader = {what, request, err};
	if (request == NULL)
		return no_memory(&reader);
	request->preempt_by = SW_PREEMPT_UNSAID;
	if (!json_is_object(root)) {
		sw_err_set(err, SW_EINPUT, "cannot take the job of %s", what);
		sw_err_detail(err, "it is not an object");
		return SW_EINPUT;
	}
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)root, name, value)
	{
		const struct field *field = find_field(name);
		/* null is as good as nothing: tools that fill in forms write it. */
		int r = field == NULL ? unknown_field(&reader, name) : json_is_null(value) ? 0 : field->read(&reader, name, value);
		if (r < 0)
			return r;
	}
	if (!sw_job_request_defaults(request))
		return no_memory(&reader);
	if (what == sw_job_stored)
		sw_job_mend_lines(request);
	int r = sw_job_request_check(what, request, err);
	if (r < 0)
		return r;
	*ret_request = SW_TAKE(request);
	return 0;
}

int sw_job_request_decode(const char *what, const char *json, size_t size, struct sw_job_request **ret_request, struct sw_err *err)
{
	if (size > SW_JOB_TEXT_MAX) {
		sw_err_set(err, SW_ELIMIT, "cannot take the job of %s", what);
		sw_err_detail(err, "it has %zu bytes, at most %u are allowed", size, SW_JOB_TEXT_MAX);
		return SW_ELIMIT;
	}
	json_error_t error;
	json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL) {
		sw_err_set(err, json_error_code(&error) == json_error_out_of_memory ? SW_ENOMEM : SW_EINPUT, "cannot take the job of %s",
			   what);
		sw_err_detail(err, "it is not JSON: line %d, column %d: %s", error.line, error.column, error.text);
		return json_error_code(&error) == json_error_out_of_memory ? SW_ENOMEM : SW_EINPUT;
	}
	int r = sw_job_request_from_json(what, root, ret_request, err);
	json_decref(root);
	return r;
}
