/* Which measured profile is a job's (contention/store.h): found when it is submitted, and written into its request, so that it is a record like all else. What becomes of the file later
 * changes nothing for jobs that are there.
 *
 *  1. A file that cannot be read changes nothing, and the operator is told once.
 *  2. What a request says itself stays.
 *  3. Only a job that names its profile has its GPU memory from it: memory that a job asks for is also its limit.
 */
#include <string.h>
#include <sys/stat.h>

#include "contention/store.h"
#include "controller/server_state.h"

void sw_models_release(struct sw_models *models)
{
	sw_profiles_free(models->profiles);
	sw_store_free(models->store);
	models->profiles = NULL;
	models->store = NULL;
}

static int read_models(const char *path, struct sw_models *models, struct sw_err *err)
{
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	int r = sw_profiles_load_default(&profiles, err);
	r = r < 0 ? r : sw_store_load(path, &store, err);
	r = r < 0 ? r : sw_store_apply(store, profiles, err);
	if (r < 0)
		return r;
	sw_models_release(models);
	models->profiles = SW_TAKE(profiles);
	models->store = SW_TAKE(store);
	return 0;
}

void sw_models_look(struct sw_server *server)
{
	struct sw_models *models = &server->models;
	const char *path = server->options->profiles;
	struct sw_err err = {0};
	struct stat info;
	if (path == NULL)
		return;
	if (stat(path, &info) < 0)
		memset(&info, 0, sizeof info);
	bool same = models->profiles != NULL && info.st_ino == models->number && (uint64_t)info.st_size == models->size &&
		    info.st_mtim.tv_sec == models->changed_at.tv_sec && info.st_mtim.tv_nsec == models->changed_at.tv_nsec;
	models->number = info.st_ino;
	models->size = (uint64_t)info.st_size;
	models->changed_at = info.st_mtim;
	if (!same && read_models(path, models, &err) < 0)
		sw_server_note(server, "%s: %s; the profiles read before stay", err.fact, err.detail);
}

/* As the profile of the same program has it: what runs in a shell is the line. */
static const char *command_of(const struct sw_job_request *job, char text[SW_STORE_COMMAND + 1])
{
	bool is_line = job->argc == 3 && strcmp(job->argv[0], "/bin/sh") == 0 && strcmp(job->argv[1], "-c") == 0;
	return sw_store_command((const char *const *)job->argv + (is_line ? 2 : 0), is_line ? 1 : job->argc, text);
}

void sw_models_fill(struct sw_server *server, struct sw_job_request *job)
{
	const struct sw_models *models = &server->models;
	char command[SW_STORE_COMMAND + 1];
	if (models->profiles == NULL)
		return;
	bool is_named = job->model != NULL;
	const struct sw_store_entry *entry = is_named ? sw_store_find(models->store, job->model, job->model)
						      : sw_store_find(models->store, job->name, command_of(job, command));
	if (!is_named && entry != NULL)
		job->model = strdup(entry->name);
	if (job->model == NULL)
		return;
	const struct sw_profile *profile = sw_profiles_find(models->profiles, job->model);
	if (job->gpu_use_milli == 0 && !profile->is_default)
		job->gpu_use_milli = sw_profile_gpu_use_milli(profile);
	if (is_named && entry != NULL && job->gpu_memory_bytes == 0) {
		/* An eighth more than was seen: no two runs are alike. */
		uint64_t peak = sw_store_median(entry).peak_bytes;
		job->gpu_memory_bytes = peak + peak / 8;
	}
}
