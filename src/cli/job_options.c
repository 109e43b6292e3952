/* From options to the fields of a job. */
#include "cli/job_options.h"

#include <ctype.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/job.h"
#include "api/json.h"
#include "api/when.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/text.h"
#include "base/utf8.h"

/* ---- the options */

#define SLURM_MAX 20u

static enum sw_cli_kind kind_of(const struct sw_field *field)
{
	if (field->option->many)
		return SW_CLI_TEXTS;
	return field->option->argument == NULL ? SW_CLI_FLAG : field->words != NULL ? SW_CLI_WORD : SW_CLI_TEXT;
}

static void make_option(size_t index, struct sw_cli_words *words, struct sw_cli_option *ret_option)
{
	const struct sw_field *field = &sw_job_fields[index];
	enum sw_cli_kind kind = kind_of(field);
	size_t within = kind == SW_CLI_FLAG    ? offsetof(struct sw_cli_given, flag)
			: kind == SW_CLI_TEXTS ? offsetof(struct sw_cli_given, texts)
					       : offsetof(struct sw_cli_given, text);
	*words = (struct sw_cli_words){.all = field->words};
	*ret_option = (struct sw_cli_option){
		.name = field->option->name,
		.letter = field->option->letter,
		.kind = kind,
		.argument = field->option->argument,
		.about = field->option->about != NULL ? field->option->about : field->about,
		.words = field->words != NULL ? words : NULL,
		.offset = offsetof(struct sw_cli_job_options, fields) + index * sizeof(struct sw_cli_given) + within,
	};
}

const struct sw_cli_option *sw_cli_job_options(size_t *ret_count)
{
	static struct sw_cli_option options[SW_JOB_FIELDS_MAX + SLURM_MAX];
	static struct sw_cli_words words[SW_JOB_FIELDS_MAX];
	static size_t count;
	if (count == 0) {
		for (size_t i = 0; i < sw_job_field_count; i++)
			if (sw_job_fields[i].option != &sw_no_option)
				make_option(i, &words[i], &options[count++]);
		for (size_t i = 0; i < sw_cli_slurm_option_count; i++)
			options[count++] = sw_cli_slurm_options[i];
	}
	*ret_count = count;
	return options;
}

const char *sw_cli_job_text(const struct sw_cli_job_options *options, const char *field)
{
	const struct sw_field *found = sw_field_find(sw_job_fields, sw_job_field_count, field);
	return options->fields[found - sw_job_fields].text;
}

static int wrong(struct sw_err *err, const char *option, const char *text, const char *expected)
{
	sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", option, text);
	sw_err_detail(err, "it takes %s", expected);
	return SW_EINPUT;
}

/* ---- times */

/* Up to `most` numbers with colons between them. */
static int split_clock(const char *text, int64_t *numbers, int most, int *ret_count)
{
	int count = 0;
	for (;;) {
		size_t size = strspn(text, "0123456789");
		uint64_t number;
		if (size == 0 || count == most || sw_parse_u64(text, size, &number) < 0 || number > 100000000)
			return SW_EINPUT;
		numbers[count++] = (int64_t)number;
		text += size;
		if (*text == '\0') {
			*ret_count = count;
			return 0;
		}
		if (*text++ != ':')
			return SW_EINPUT;
	}
}

int sw_cli_time_limit(const char *text, int64_t *ret_ns)
{
	int64_t parts[3] = {0}, days = 0;
	int count = 0;
	const char *dash = strchr(text, '-');
	if (dash != NULL) {
		if (sw_parse_i64(text, (size_t)(dash - text), &days) < 0 || days < 0 || days > 36500)
			return SW_EINPUT;
		/* Behind days come hours, then minutes, then seconds. */
		if (split_clock(dash + 1, parts, 3, &count) < 0)
			return SW_EINPUT;
		*ret_ns = (days * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2]) * SW_NS_PER_S;
		return 0;
	}
	if (split_clock(text, parts, 3, &count) < 0)
		return sw_parse_duration(text, strlen(text), ret_ns);
	int64_t seconds = count == 1 ? parts[0] * 60 : count == 2 ? parts[0] * 60 + parts[1] : parts[0] * 3600 + parts[1] * 60 + parts[2];
	*ret_ns = seconds * SW_NS_PER_S;
	return 0;
}

int sw_cli_moment(const char *text, int64_t now_ns, bool ago, int64_t *ret_ns)
{
	static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"};
	int64_t span;
	if (sw_when_parse(text, strlen(text), ret_ns) == 0)
		return 0;
	if (strcmp(text, "now") == 0) {
		*ret_ns = now_ns;
		return 0;
	}
	time_t now = (time_t)(now_ns / SW_NS_PER_S);
	struct tm parts, today;
	localtime_r(&now, &today);
	for (size_t i = 0; i < SW_CLI_COUNT_OF(forms); i++) {
		memset(&parts, 0, sizeof parts);
		const char *end = strptime(text, forms[i], &parts);
		if (end != NULL && *end == '\0') {
			parts.tm_isdst = -1;
			*ret_ns = (int64_t)mktime(&parts) * SW_NS_PER_S;
			return 0;
		}
	}
	parts = today;
	parts.tm_sec = 0;
	parts.tm_isdst = -1;
	const char *end = strptime(text, "%H:%M", &parts);
	if (end != NULL && *end == '\0') {
		int64_t ns = (int64_t)mktime(&parts) * SW_NS_PER_S;
		*ret_ns = !ago && ns < now_ns ? ns + INT64_C(86400) * SW_NS_PER_S : ns;
		return 0;
	}
	if (sw_parse_duration(text + (text[0] == '+'), strlen(text) - (text[0] == '+'), &span) < 0 || span > SW_JOB_DURATION_MAX_NS)
		return SW_EINPUT;
	*ret_ns = ago ? now_ns - span : now_ns + span;
	return 0;
}

/* ---- single fields */

/* Whole seconds where it can be, so that the fields read well. */
static int set_duration(json_t *fields, const char *key, const char *option, const char *text, struct sw_err *err)
{
	int64_t ns;
	if (sw_cli_time_limit(text, &ns) < 0)
		return wrong(err, option, text, "a time such as 90s, 2h, 30 (minutes) or 1-12:00:00");
	char value[48];
	if (ns % SW_NS_PER_S == 0)
		return json_object_set_new(fields, key, json_integer(ns / SW_NS_PER_S));
	snprintf(value, sizeof value, "%lldms", (long long)(ns / SW_NS_PER_MS));
	return json_object_set_new(fields, key, json_string(value));
}

static int set_moment(json_t *fields, const struct sw_field *field, const char *text, struct sw_err *err)
{
	int64_t ns;
	char buffer[SW_WHEN_SIZE];
	int64_t now_ns = (int64_t)time(NULL) * SW_NS_PER_S;
	int r = sw_cli_moment(text, now_ns, false, &ns);
	if (r == 0 && ns <= now_ns)
		return wrong(err, field->option->name, text, "a moment that is still to come");
	if (r < 0)
		return wrong(err, field->option->name, text, "a moment such as 2030-01-31T18:00, 18:00, or 8h (from now)");
	return json_object_set_new(fields, field->name, json_string(sw_when_format(ns, buffer)));
}

/* "USR1", "B:USR1@120" */
static int set_signal(json_t *fields, const char *text, struct sw_err *err)
{
	if (text == NULL)
		return 0;
	const char *name = strncmp(text, "B:", 2) == 0 || strncmp(text, "R:", 2) == 0 ? text + 2 : text;
	const char *at = strchr(name, '@');
	char word[16] = "";
	size_t size = at != NULL ? (size_t)(at - name) : strlen(name);
	if (size < sizeof word)
		memcpy(word, name, size);
	uint64_t seconds = 0;
	if (sw_job_signal(word) == 0 || (at != NULL && (sw_parse_u64(at + 1, strlen(at + 1), &seconds) < 0 || seconds > 86400)))
		return wrong(err, "signal", text, "a signal such as USR1, and how many seconds before the end: USR1@120");
	if (seconds > 0)
		json_object_set_new(fields, "grace", json_integer((json_int_t)seconds));
	return json_object_set_new(fields, "signal", json_string(word));
}

/* The least number of GPUs that the fields ask for: what is given for the whole job
 * is divided among them. */
static uint64_t gpus_of(const json_t *fields)
{
	const json_t *gpus = json_object_get(fields, "gpus");
	uint64_t count = json_is_integer(gpus) && json_integer_value(gpus) > 0 ? (uint64_t)json_integer_value(gpus) : 1;
	if (json_is_string(gpus)) {
		const char *text = json_string_value(gpus);
		if (sw_parse_u64(text, strcspn(text, "-"), &count) < 0 || count == 0)
			count = 1;
	}
	return count;
}

static int set_share(json_t *fields, const char *key, uint64_t whole)
{
	uint64_t gpus = gpus_of(fields);
	return json_object_set_new(fields, key, json_integer((json_int_t)((whole + gpus - 1) / gpus)));
}

static int set_memory(json_t *fields, const struct sw_cli_job_options *options, struct sw_err *err)
{
	const char *whole = sw_cli_job_text(options, "memory"), *text = whole != NULL ? whole : options->mem_per_gpu;
	const char *option = whole != NULL ? "mem" : "mem-per-gpu";
	uint64_t bytes;
	if (text == NULL)
		return 0;
	bool bare = text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
	if (sw_parse_bytes(text, strlen(text), &bytes) < 0 || bytes > (bare ? SW_JOB_BYTES_MAX >> 20 : SW_JOB_BYTES_MAX))
		return wrong(err, option, text, "a size such as 64G");
	bytes = bare ? bytes << 20 : bytes;
	return whole != NULL ? set_share(fields, "memory", bytes) : json_object_set_new(fields, "memory", json_integer((json_int_t)bytes));
}

/* Of each of several tasks where there are any: then one core each by default. */
static int set_cpus(json_t *fields, const struct sw_cli_job_options *options, uint64_t tasks, struct sw_err *err)
{
	const char *whole = sw_cli_job_text(options, "cpus");
	bool per_gpu = whole == NULL && options->cpus_per_gpu != NULL;
	const char *text = per_gpu ? options->cpus_per_gpu : whole != NULL ? whole : tasks > 1 ? "1" : NULL;
	uint64_t cpus;
	if (text == NULL)
		return 0;
	if (sw_parse_u64(text, strlen(text), &cpus) < 0 || cpus > SW_JOB_CPUS_MAX)
		return wrong(err, per_gpu ? "cpus-per-gpu" : "cpus", text, "a number of cores");
	return !per_gpu ? set_share(fields, "cpus", cpus * tasks) : json_object_set_new(fields, "cpus", json_integer((json_int_t)cpus));
}

/* That of this program, unless a job file says another. */
static int set_umask(json_t *fields)
{
	if (json_object_get(fields, "umask") != NULL)
		return 0;
	mode_t own = umask(077);
	umask(own);
	return json_object_set_new(fields, "umask", json_sprintf("%04o", (unsigned)own & 0777));
}

/* A path as seen from the current folder. */
static int set_workdir(json_t *fields, const char *path, struct sw_err *err)
{
	char here[PATH_MAX];
	path = path != NULL ? path : json_string_value(json_object_get(fields, "workdir"));
	if (path != NULL && path[0] == '/')
		return json_object_set_new(fields, "workdir", json_string(path));
	if (getcwd(here, sizeof here) == NULL) {
		sw_err_set(err, SW_EIO, "cannot find the current folder");
		sw_err_hint(err, "Name one with --chdir.");
		return SW_EIO;
	}
	if (path == NULL || path[0] == '\0')
		return json_object_set_new(fields, "workdir", json_string(here));
	return json_object_set_new(fields, "workdir", json_sprintf("%s/%s", here, path));
}

/* ---- environment */

/* What a shell keeps for itself, and what says where one was when submitting: of no
 * use to a job elsewhere. */
static bool is_of_the_shell(const char *name, size_t size)
{
	static const char *const names[] = {"_", "OLDPWD", "PWD", "SHLVL", "LS_COLORS", "WINDOWID", "COLUMNS", "LINES"};
	for (size_t i = 0; i < SW_CLI_COUNT_OF(names); i++)
		if (strlen(names[i]) == size && strncmp(names[i], name, size) == 0)
			return true;
	/* Those of the emulated driver go where LD_LIBRARY_PATH goes: with others a job would find
	 * other GPUs than its node has. */
	return strncmp(name, "SHAREWELL_", 10) == 0 && strncmp(name, "SHAREWELL_EMU", 13) != 0;
}

static bool is_in_list(const char *list, const char *name, size_t size)
{
	const char *word;
	size_t length;
	while (sw_text_next(&list, &word, &length))
		if (length == size && memcmp(word, name, size) == 0)
			return true;
	return false;
}

static void export_variables(json_t *env, const char *what)
{
	bool all = what == NULL || strcmp(what, "ALL") == 0 || strncmp(what, "ALL,", 4) == 0;
	for (char **variable = environ; *variable != NULL; variable++) {
		const char *equals = strchr(*variable, '=');
		size_t size = equals != NULL ? (size_t)(equals - *variable) : 0;
		bool wanted = size > 0 && ((all && !is_of_the_shell(*variable, size)) || (!all && is_in_list(what, *variable, size)));
		/* JSON has no place for other bytes. */
		if (!wanted || !sw_utf8_is_valid(*variable, strlen(*variable)))
			continue;
		SW_CLEANUP(sw_freep) char *name = strndup(*variable, size);
		if (name != NULL)
			json_object_set_new(env, name, json_string(equals + 1));
	}
}

/* Exported ones first, then the file's, then those of --env. */
static int set_env(json_t *fields, const struct sw_cli_job_options *options, struct sw_err *err)
{
	const struct sw_field *field = sw_field_find(sw_job_fields, sw_job_field_count, "env");
	const struct sw_cli_texts *variables = &options->fields[field - sw_job_fields].texts;
	json_t *env = json_object(), *named = json_object_get(fields, "env");
	if (options->export == NULL || strcmp(options->export, "NONE") != 0)
		export_variables(env, options->export);
	if (json_is_object(named))
		json_object_update(env, named);
	for (size_t i = 0; i < variables->count; i++) {
		const char *text = variables->items[i], *equals = strchr(text, '=');
		if (equals == NULL || equals == text) {
			json_decref(env);
			return wrong(err, "env", text, "NAME=VALUE");
		}
		SW_CLEANUP(sw_freep) char *name = strndup(text, (size_t)(equals - text));
		json_t *value = json_string(equals + 1);
		if (name == NULL || value == NULL) {
			json_decref(env);
			json_decref(value);
			return wrong(err, "env", text, "text in UTF-8");
		}
		json_object_set_new(env, name, value);
	}
	/* A wrong field of the file is left for the check to name. */
	if (named != NULL && !json_is_object(named) && !json_is_null(named)) {
		json_decref(env);
		return 0;
	}
	return json_object_set_new(fields, "env", env);
}

/* ---- all of them */

static int set_text(json_t *fields, const struct sw_field *field, const char *text, struct sw_err *err)
{
	json_t *value = json_string(text);
	return value != NULL ? json_object_set_new(fields, field->name, value) : wrong(err, field->option->name, text, "text in UTF-8");
}

/* Whether the field has a way of its own from its option to its value, below. */
static bool has_own_way(const char *name)
{
	static const char *const names[] = {"cpus", "env", "gpus", "memory", "signal", "stderr", "stdout", "workdir"};
	for (size_t i = 0; i < SW_CLI_COUNT_OF(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int set_field(json_t *fields, const struct sw_field *field, const struct sw_cli_given *given, struct sw_err *err)
{
	if (given->flag)
		return json_object_set_new(fields, field->name, json_true());
	if (given->text == NULL || has_own_way(field->name))
		return 0;
	if (field->kind == SW_FIELD_SPAN)
		return set_duration(fields, field->name, field->option->name, given->text, err);
	if (field->kind == SW_FIELD_MOMENT)
		return set_moment(fields, field, given->text, err);
	return set_text(fields, field, given->text, err);
}

/* The name of user %u is known on this side alone; all other patterns are the controller's. */
static int set_output(json_t *fields, const char *key, const char *option, const char *text, struct sw_err *err)
{
	char filled[SW_JOB_PATH_MAX + 1];
	const struct passwd *user = getpwuid(geteuid());
	size_t used = 0;
	if (text == NULL)
		return 0;
	for (const char *at = text; *at != '\0'; at++) {
		bool is_user = at[0] == '%' && at[1] == 'u' && user != NULL;
		size_t size = is_user ? strlen(user->pw_name) : at[0] == '%' && at[1] != '\0' ? 2 : 1;
		if (used + size >= sizeof filled)
			return wrong(err, option, text, "a shorter path");
		memcpy(filled + used, is_user ? user->pw_name : at, size);
		used += size;
		at += is_user || size == 2;
	}
	filled[used] = '\0';
	json_t *value = json_string(filled);
	return value != NULL ? json_object_set_new(fields, key, value) : wrong(err, option, text, "text in UTF-8");
}

int sw_cli_job_apply(const struct sw_cli_job_options *options, json_t *fields, struct sw_err *err)
{
	uint64_t tasks = 1;
	/* Before the grace time, which its form may have, too. */
	int r = set_signal(fields, sw_cli_job_text(options, "signal"), err);
	for (size_t i = 0; r == 0 && i < sw_job_field_count; i++)
		r = set_field(fields, &sw_job_fields[i], &options->fields[i], err);
	if (r == 0 && options->no_requeue && json_is_true(json_object_get(fields, "requeue")))
		return sw_err_set(err, SW_EINPUT, "--requeue and --no-requeue contradict each other");
	if (r == 0 && options->no_requeue)
		json_object_set_new(fields, "requeue", json_false());
	r = r < 0 ? r : set_output(fields, "stdout", "output", sw_cli_job_text(options, "stdout"), err);
	r = r < 0 ? r : set_output(fields, "stderr", "error", sw_cli_job_text(options, "stderr"), err);
	r = r < 0 ? r : sw_cli_job_resources(options, fields, &tasks, err);
	r = r < 0 ? r : set_memory(fields, options, err);
	r = r < 0 ? r : set_cpus(fields, options, tasks, err);
	r = r < 0 ? r : set_workdir(fields, sw_cli_job_text(options, "workdir"), err);
	r = r < 0 ? r : set_umask(fields);
	r = r < 0 ? r : set_env(fields, options, err);
	/* jansson's own failures are -1: out of memory, or text that is not UTF-8. */
	if (r < 0)
		sw_err_set(err, r, "a value of the command line is not UTF-8");
	return r;
}
