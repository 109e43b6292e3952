#include "api/run_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/bounds.h"

#define NS_PER_MS INT64_C(1000000)
#define VARIABLE_SIZE 48

_Static_assert(SW_CONFIG_CPUS_MOST <= SW_JOB_CPUS_MAX, "an order can carry what a policy sets");

/* ---- paths */

/* The longest that the patterns can become. */
#define NUMBER_MOST 10u /* digits of a job, a user, an index */
#define PRERUN_SUFFIX_SIZE (sizeof ".prerun" - 1)

/* What stands for one pattern; NULL: it is none. `number` has room for the digits. */
static const char *filling(char pattern, const struct sw_run_facts *facts, char number[24])
{
	switch (pattern) {
	case 'j':
		snprintf(number, 24, "%" PRIu64, facts->job);
		return number;
	case 'A':
		snprintf(number, 24, "%" PRIu64, facts->array_first);
		return number;
	case 'a':
		snprintf(number, 24, "%" PRIu32, facts->array_index);
		return number;
	case 'u':
		snprintf(number, 24, "%" PRIu32, facts->uid);
		return number;
	case 'x':
		return facts->name;
	case 'N':
		return facts->node;
	case '%':
		return "%";
	default:
		return NULL;
	}
}

/* A path with its patterns filled in, as Slurm has them: %j job, %A the first job of its array, %a
 * index in its array. Also %x name, %N node, %u user, %% itself. */
static int fill_in(const char *field, const char *path, const struct sw_run_facts *facts, char **ret_text, struct sw_err *err)
{
	char *text = malloc(SW_SYNC_PATH_MAX + 1), number[24];
	size_t used = 0;
	if (text == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (const char *at = path; *at != '\0' && used <= SW_SYNC_PATH_MAX; at++) {
		const char *filled = *at == '%' ? filling(at[1], facts, number) : NULL;
		size_t size = filled != NULL ? strlen(filled) : 1;
		if (used + size <= SW_SYNC_PATH_MAX)
			memcpy(text + used, filled != NULL ? filled : at, size);
		used += size;
		at += filled != NULL;
	}
	if (used > SW_SYNC_PATH_MAX) {
		free(text);
		sw_err_set(err, SW_EINPUT, "there is no order for job %" PRIu64, facts->job);
		sw_err_detail(err, "'%s' has more than %u bytes once its patterns are filled in", field, SW_SYNC_PATH_MAX);
		return SW_EINPUT;
	}
	text[used] = '\0';
	*ret_text = text;
	return 0;
}

static size_t longest_of(char pattern, const struct sw_job_request *request)
{
	size_t name = request->name != NULL ? strlen(request->name) : 0;
	switch (pattern) {
	case 'j':
	case 'A':
	case 'a':
	case 'u':
		return NUMBER_MOST;
	case 'x':
		name += request->prerun_ns > 0 ? PRERUN_SUFFIX_SIZE : 0;
		return name < SW_JOB_NAME_MAX ? name : SW_JOB_NAME_MAX;
	case 'N':
		return SW_SYNC_NAME_MAX;
	default:
		return pattern == '%' ? 1 : 0;
	}
}

/* Which node it will be, and which number, is not known yet. */
static int check_path(const char *what, const char *field, const char *path, const struct sw_job_request *request, struct sw_err *err)
{
	size_t most = 0;
	for (const char *at = path; at != NULL && *at != '\0'; at++) {
		bool is_pattern = *at == '%' && at[1] != '\0' && strchr("jAxaNu%", at[1]) != NULL;
		most += is_pattern ? longest_of(at[1], request) : 1;
		at += is_pattern;
	}
	if (most <= SW_SYNC_PATH_MAX)
		return 0;
	sw_err_set(err, SW_EINPUT, "cannot take the job of %s", what);
	sw_err_detail(err, "field '%s' may have %zu bytes once its patterns are filled in, at most %u are allowed", field, most,
		      SW_SYNC_PATH_MAX);
	sw_err_hint(err, "%%x stands for the job's name, and %%N for the name of a node, which may have %u bytes.", SW_SYNC_NAME_MAX);
	return SW_EINPUT;
}

int sw_run_spec_check(const char *what, const struct sw_job_request *request, struct sw_err *err)
{
	int r = check_path(what, "stdout", request->stdout_path, request, err);
	return r < 0 ? r : check_path(what, "stderr", request->stderr_path, request, err);
}

/* ---- environment */

static bool is_same_variable(const char *a, const char *b)
{
	size_t size = strcspn(a, "=");
	return size == strcspn(b, "=") && memcmp(a, b, size) == 0;
}

/* What the policy that set the run up says to the program. */
static size_t add_config(const struct sw_config *config, char **texts, size_t added)
{
	const struct {
		const char *name;
		uint32_t value;
	} said[] = {{"SHAREWELL_BATCH", config->batch},
		    {"SHAREWELL_ACCUMULATION", config->accumulation},
		    {"SHAREWELL_WORKERS", config->workers},
		    {"SHAREWELL_SERVERS", config->servers}};
	for (size_t s = 0; s < sizeof said / sizeof said[0]; s++)
		if (said[s].value != 0)
			snprintf(texts[added++], VARIABLE_SIZE, "%s=%" PRIu32, said[s].name, said[s].value);
	return added;
}

/* Variables that the controller adds; those of the job of the same names are left out. */
static int make_env(const struct sw_job_request *request, const struct sw_run_facts *facts, struct sw_made_spec *made, struct sw_err *err)
{
	size_t added = 0, count = 0;
	char **texts = made->texts + 2;
	bool whole = true;
	for (size_t i = 0; i < SW_SPEC_ENV_ADDED; i++)
		whole &= (texts[i] = malloc(VARIABLE_SIZE)) != NULL;
	made->env = calloc(request->env_count + SW_SPEC_ENV_ADDED + 1, sizeof *made->env);
	if (!whole || made->env == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (facts->is_member)
		snprintf(texts[added++], VARIABLE_SIZE, "SHAREWELL_ARRAY_INDEX=%" PRIu32, facts->array_index);
	if (facts->is_member && request->slurm_env)
		snprintf(texts[added++], VARIABLE_SIZE, "SLURM_ARRAY_TASK_ID=%" PRIu32, facts->array_index);
	if (facts->is_prerun)
		snprintf(texts[added++], VARIABLE_SIZE, "SHAREWELL_PRERUN=1");
	added = add_config(&facts->config, texts, added);
	for (size_t i = 0; i < request->env_count; i++) {
		bool replaced = false;
		for (size_t a = 0; a < added; a++)
			replaced = replaced || is_same_variable(request->env[i], texts[a]);
		if (!replaced)
			made->env[count++] = request->env[i];
	}
	for (size_t a = 0; a < added; a++)
		made->env[count++] = texts[a];
	made->spec.env = (struct sw_texts){made->env, count};
	return 0;
}

/* ---- the order */

static int64_t to_ms(int64_t ns)
{
	return ns / NS_PER_MS + (ns % NS_PER_MS != 0);
}

/* What is asked for is for each GPU, and the run may have been given another
 * number than it asked for. */
static void give_resources(const struct sw_job_request *request, const struct sw_run_facts *facts, struct sw_run_spec *spec)
{
	uint32_t gpus = facts->gpus > 0 ? facts->gpus : 1;
	uint32_t cpus = facts->config.cpus != 0 ? facts->config.cpus : request->cpus;
	uint64_t memory = facts->config.host_memory_bytes != 0 ? facts->config.host_memory_bytes : request->memory_bytes;
	spec->cpus = cpus * gpus;
	spec->memory_bytes = memory > SW_JOB_BYTES_MAX / gpus ? SW_JOB_BYTES_MAX : memory * gpus;
	spec->gpu_memory_bytes = facts->gpu_memory_bytes;
	spec->opportunistic = facts->is_opportunistic;
	spec->bare_gpu = request->bare_gpu;
}

static int make_spec(const struct sw_job_request *request, const struct sw_run_facts *facts, struct sw_made_spec *made, struct sw_err *err)
{
	struct sw_run_spec *spec = &made->spec;
	sw_run_spec_defaults(spec);
	spec->name = facts->name;
	/* Adding const two levels down is safe, but C does not know. */
	spec->argv = (struct sw_texts){(const char **)(void *)request->argv, request->argc};
	spec->workdir = request->workdir != NULL ? request->workdir : "/";
	spec->uid = facts->uid;
	spec->gid = facts->gid;
	spec->append = facts->is_again;
	spec->time_limit_ms = to_ms(request->time_limit_ns);
	spec->grace_ms = to_ms(request->grace_ns);
	spec->lease_ms = to_ms(request->lease_ns);
	if (request->signal != 0)
		spec->stop_signal = request->signal;
	if (request->umask_said || request->umask != 0)
		spec->umask = request->umask;
	spec->slurm_env = request->slurm_env;
	give_resources(request, facts, spec);
	int r = make_env(request, facts, made, err);
	if (r == 0 && request->stdout_path != NULL)
		r = fill_in("stdout", request->stdout_path, facts, &made->texts[0], err);
	if (r == 0 && request->stderr_path != NULL)
		r = fill_in("stderr", request->stderr_path, facts, &made->texts[1], err);
	spec->stdout_path = made->texts[0];
	spec->stderr_path = made->texts[1];
	return r;
}

int sw_run_spec_make(const struct sw_job_request *request, const struct sw_run_facts *facts, struct sw_made_spec **ret_made,
		     struct sw_err *err)
{
	SW_CLEANUP(sw_made_spec_freep) struct sw_made_spec *made = calloc(1, sizeof *made);
	if (made == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = make_spec(request, facts, made, err);
	if (r < 0)
		return r;
	*ret_made = SW_TAKE(made);
	return 0;
}

void sw_made_spec_free(struct sw_made_spec *made)
{
	if (made == NULL)
		return;
	free(made->env);
	for (size_t i = 0; i < sizeof made->texts / sizeof made->texts[0]; i++)
		free(made->texts[i]);
	free(made);
}
