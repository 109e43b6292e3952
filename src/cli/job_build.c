/* What the words of `submit` and `run` stand for: a command, a job file, or a script. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/job.h"
#include "api/run_spec.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/job_options.h"
#include "cli/message.h"
#include "cli/parse.h"

#define SCRIPT_MAX ((size_t)4 << 20)
#define SHELL_WORDS_MAX 8

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), part = strlen(end);
	return size > part && strcmp(text + size - part, end) == 0;
}

/* Behind "--" stands a command, whatever it looks like. */
static bool behind_dashes(const struct sw_cli_call *call, const char *word)
{
	for (int i = 1; i < call->argc; i++)
		if (call->argv[i] == word)
			return strcmp(call->argv[i - 1], "--") == 0;
	return false;
}

static bool is_job_file(const char *word)
{
	return ends_with(word, ".yaml") || ends_with(word, ".yml");
}

static bool is_named_script(const char *word)
{
	return ends_with(word, ".sh") || ends_with(word, ".sbatch") || ends_with(word, ".slurm");
}

static bool is_script(const char *word)
{
	struct stat status;
	char head[2] = "";
	if (stat(word, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	if (is_named_script(word))
		return true;
	SW_CLEANUP(sw_fclosep) FILE *file = fopen(word, "re");
	return file != NULL && fread(head, 1, 2, file) == 2 && memcmp(head, "#!", 2) == 0;
}

static bool is_in_path(const char *word)
{
	const char *path = getenv("PATH");
	char full[PATH_MAX];
	for (size_t size; path != NULL && *path != '\0'; path += size + (path[size] == ':')) {
		size = strcspn(path, ":");
		snprintf(full, sizeof full, "%.*s/%s", (int)size, path, word);
		if (access(full, X_OK) == 0)
			return true;
	}
	return false;
}

/* The name of a script that is nowhere: as a command it would fail only when its turn comes. In
 * another folder it may be there. */
static bool is_lost_script(const char *word, const char *workdir)
{
	return is_named_script(word) && workdir == NULL && access(word, F_OK) != 0 && (strchr(word, '/') != NULL || !is_in_path(word));
}

static int refuse_lost_script(const char *word, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot read the script '%.200s'", word);
	sw_err_detail(err, "%s", strerror(ENOENT));
	sw_err_hint(err, "A command that only the job's node has goes behind '--'.");
	return SW_EINPUT;
}

/* ---- a script */

static const char *script_name;

static void warn(unsigned line, const char *what)
{
	sw_cli_print_note("%s: line %u: %s", script_name, line, what);
}

static bool is_shell(const char *program)
{
	static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh"};
	const char *slash = strrchr(program, '/');
	for (size_t i = 0; i < SW_CLI_COUNT_OF(shells); i++)
		if (strcmp(slash != NULL ? slash + 1 : program, shells[i]) == 0)
			return true;
	return false;
}

/* Shells take the text as it is now, so that editing the file does not change a job that
 * waits; others run the file. */
static json_t *script_command(const struct sw_cli_script *script, const char *path)
{
	char line[256], *words[SHELL_WORDS_MAX], *rest = NULL;
	size_t count = 0;
	snprintf(line, sizeof line, "%s", script->interpreter != NULL ? script->interpreter : "/bin/sh");
	for (char *word = strtok_r(line, " \t", &rest); word != NULL && count < SHELL_WORDS_MAX; word = strtok_r(NULL, " \t", &rest))
		words[count++] = word;
	size_t program = count > 1 && ends_with(words[0], "/env") ? 1 : 0;
	json_t *command = json_array();
	bool by_text = count > program && is_shell(words[program]) && strlen(script->text) < SW_JOB_STRING_MAX;
	if (by_text) {
		for (size_t i = program; i < count; i++)
			json_array_append_new(command, json_string(words[i]));
		json_array_append_new(command, json_string("-c"));
		/* Not UTF-8: then the file itself must do. */
		by_text = json_array_append_new(command, json_string(script->text)) == 0;
	}
	if (!by_text)
		json_array_clear(command);
	char *full = realpath(path, NULL);
	json_array_append_new(command, json_string(full != NULL ? full : path));
	free(full);
	return command;
}

static void append_words(json_t *command, const struct sw_cli_texts *words, size_t from)
{
	for (size_t i = from; i < words->count; i++)
		json_array_append_new(command, json_string(words->items[i]));
}

/* The command line once more, with the directives in front: what comes later wins. */
static int parse_again(const struct sw_cli_command *command, const struct sw_cli_call *call, const struct sw_cli_script *script,
		       void *values, struct sw_err *err)
{
	size_t count = script->word_count + (size_t)call->argc;
	SW_CLEANUP(sw_freep) char **argv = calloc(count + 1, sizeof *argv);
	bool help = false;
	if (argv == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	size_t used = 0;
	argv[used++] = call->argv[1];
	for (size_t i = 0; i < script->word_count; i++)
		argv[used++] = script->words[i];
	for (int i = 2; i < call->argc; i++)
		argv[used++] = call->argv[i];
	return sw_cli_parse(command, (int)used, argv, values, &help, err);
}

static int build_script(const struct sw_cli_command *command, const struct sw_cli_call *call, const char *path, json_t *fields,
			struct sw_err *err)
{
	struct sw_cli_script script = {.warn = warn};
	SW_CLEANUP(sw_freep) char *text = NULL;
	SW_CLEANUP(sw_freep) void *values = calloc(1, command->values_size);
	size_t size;
	if (values == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	script_name = path;
	int r = sw_file_read(path, SCRIPT_MAX, &text, &size, err);
	r = r < 0 ? r : sw_cli_script_parse(path, text, size, command, &script, err);
	if (r < 0)
		return r;
	r = parse_again(command, call, &script, values, err);
	if (r == 0) {
		const struct sw_cli_job_options *options = values;
		json_t *line = script_command(&script, path);
		const char *slash = strrchr(path, '/');
		append_words(line, &options->words, 1);
		json_object_set_new(fields, "command", line);
		json_object_set_new(fields, "name", json_string(slash != NULL ? slash + 1 : path));
		r = sw_cli_job_apply(options, fields, err);
		if (r == 0)
			sw_cli_job_notes(options);
		sw_cli_release(command, values);
	}
	sw_cli_script_release(&script);
	return r;
}

/* ---- the choice */

/* What is wrong is said here, before anything is sent. */
static int try_decode(const char *what, json_t *fields, struct sw_err *err)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	int r = sw_job_request_from_json(what, fields, &request, err);
	return r < 0 ? r : sw_run_spec_check(what, request, err);
}

/* The environment, which people do not see themselves send, is named where it is what is too
 * much. */
static int check(const char *what, json_t *fields, struct sw_err *err)
{
	int r = try_decode(what, fields, err);
	if (r != SW_ELIMIT)
		return r;
	json_t *bare = json_copy(fields);
	json_object_del(bare, "env");
	if (try_decode(what, bare, NULL) == 0)
		sw_err_hint(err, "'--export NONE' leaves your environment out.");
	json_decref(bare);
	return r;
}

static int build_file(const struct sw_cli_job_options *options, json_t **ret_jobs, struct sw_err *err)
{
	json_t *jobs = NULL;
	if (options->words.count > 1) {
		sw_err_set(err, SW_EINPUT, "unexpected argument '%.60s'", options->words.items[1]);
		sw_err_hint(err, "A job file is submitted alone, with options before it.");
		return SW_EINPUT;
	}
	int r = sw_cli_jobfile(options->words.items[0], &jobs, err);
	if (r < 0)
		return r;
	size_t count = json_is_array(jobs) ? json_array_size(jobs) : 1;
	for (size_t i = 0; r == 0 && i < count; i++) {
		json_t *job = json_is_array(jobs) ? json_array_get(jobs, i) : jobs;
		r = sw_cli_job_apply(options, job, err);
		r = r < 0 ? r : check(options->words.items[0], job, err);
	}
	if (r == 0 && count == 0)
		r = sw_err_set(err, SW_EINPUT, "job file '%.200s' has no jobs", options->words.items[0]);
	if (r == 0)
		sw_cli_job_notes(options);
	if (r < 0)
		json_decref(jobs);
	else
		*ret_jobs = jobs;
	return r;
}

int sw_cli_job_build(const struct sw_cli_command *command, const struct sw_cli_call *call, json_t **ret_jobs, struct sw_err *err)
{
	const struct sw_cli_job_options *options = call->values;
	const char *first = options->words.count > 0 ? options->words.items[0] : NULL;
	if ((first == NULL) == (sw_cli_job_text(options, "command") == NULL)) {
		if (first == NULL)
			sw_err_set(err, SW_EINPUT, "'sharewell %s' needs a command", command->name);
		else
			sw_err_set(err, SW_EINPUT, "'sharewell %s' takes a command or --wrap, not both", command->name);
		sw_err_hint(err, "For example: %s", command->examples[0].line);
		return SW_EINPUT;
	}
	bool plain = first == NULL || behind_dashes(call, first);
	bool has_directives = !plain && !is_job_file(first) && is_script(first);
	if (!plain && is_job_file(first))
		return build_file(options, ret_jobs, err);
	if (!plain && !has_directives && is_lost_script(first, sw_cli_job_text(options, "workdir")))
		return refuse_lost_script(first, err);
	json_t *fields = json_object();
	int r;
	if (has_directives) {
		r = build_script(command, call, first, fields, err);
	} else {
		if (first != NULL) {
			json_t *line = json_array();
			append_words(line, &options->words, 0);
			json_object_set_new(fields, "command", line);
		}
		r = sw_cli_job_apply(options, fields, err);
		if (r == 0)
			sw_cli_job_notes(options);
	}
	r = r < 0 ? r : check(has_directives ? first : "the command line", fields, err);
	if (r < 0)
		json_decref(fields);
	else
		*ret_jobs = fields;
	return r;
}
