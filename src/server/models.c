/* The file of measured profiles (contention/store.h), and which of them is a job's. It is found
 * when the job is submitted, and recorded then. Its name is in the request, and what was measured
 * in a record of its own. Whatever decides or is told later comes from there (known.c); what
 * becomes of the file changes nothing for jobs that are there.
 *
 *  1. A file that cannot be read changes nothing, and the operator is told once.
 *  2. What a request says itself stays; only a profile that it names by its command gets its name.
 *  3. Only a job that names its profile has its GPU memory from it: memory that a job asks for is
 *     also its limit. It does not ask for more than there is because of room to spare.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "contention/store.h"
#include "server/models.h"
#include "server/state.h"

void sw_models_release(struct sw_models *models)
{
	sw_profiles_free(models->profiles);
	sw_store_free(models->store);
	models->profiles = NULL;
	models->store = NULL;
}

/* `path` may be NULL: then there are the built-in ones. */
static int read_models(struct sw_server *server, const char *path, struct sw_err *err)
{
	struct sw_models *models = &server->models;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	int r = sw_profiles_copy(server->profiles, &profiles, err);
	if (path != NULL) {
		r = r < 0 ? r : sw_store_load(path, &store, err);
		r = r < 0 ? r : sw_store_apply(store, profiles, err);
	}
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
	bool same = models->looked && info.st_ino == models->number && (uint64_t)info.st_size == models->size &&
		    info.st_mtim.tv_sec == models->changed_at.tv_sec && info.st_mtim.tv_nsec == models->changed_at.tv_nsec;
	models->looked = true;
	models->number = info.st_ino;
	models->size = (uint64_t)info.st_size;
	models->changed_at = info.st_mtim;
	if (!same && read_models(server, path, &err) < 0)
		sw_server_note(server, "%s%s%s; the profiles read before stay", err.fact, err.detail[0] != '\0' ? ": " : "", err.detail);
}

int sw_models_start(struct sw_server *server, struct sw_err *err)
{
	int r = read_models(server, NULL, err);
	if (r == 0)
		sw_models_look(server);
	return r;
}

/* As the profile of the same program has it: what runs in a shell is the line. */
static const char *command_of(const struct sw_job_request *job, char text[SW_STORE_COMMAND + 1])
{
	bool is_line = job->argc == 3 && strcmp(job->argv[0], "/bin/sh") == 0 && strcmp(job->argv[1], "-c") == 0;
	return sw_store_command((const char *const *)job->argv + (is_line ? 2 : 0), is_line ? 1 : job->argc, text);
}

/* An eighth more than was seen, since no two runs are alike. But not more than the largest GPU has,
 * where what was seen fits there. */
static uint64_t memory_for(const struct sw_brain *brain, uint64_t peak)
{
	struct sw_node_view node;
	uint64_t largest = 0, bytes = peak + peak / 8;
	for (uint32_t n = 0; sw_brain_node(brain, n, &node); n++)
		largest = node.gpu_memory_bytes > largest ? node.gpu_memory_bytes : largest;
	return bytes > largest && peak <= largest ? largest : bytes;
}

void sw_models_fill(struct sw_server *server, struct sw_job_request *job)
{
	const struct sw_models *models = &server->models;
	char command[SW_STORE_COMMAND + 1];
	if (models->store == NULL)
		return;
	bool is_named = job->model != NULL;
	const struct sw_store_entry *entry = is_named ? sw_store_find(models->store, job->model, job->model)
						      : sw_store_find(models->store, job->name, command_of(job, command));
	if (entry != NULL && (!is_named || sw_store_find(models->store, job->model, NULL) == NULL)) {
		free(job->model);
		job->model = strdup(entry->name);
	}
	if (job->model == NULL)
		return;
	const struct sw_profile *profile = sw_profiles_find(models->profiles, job->model);
	if (job->gpu_use_milli == 0 && !profile->is_default)
		job->gpu_use_milli = sw_profile_gpu_use_milli(profile);
	if (is_named && entry != NULL && job->gpu_memory_bytes == 0)
		job->gpu_memory_bytes = memory_for(server->brain, sw_store_median(entry).peak_bytes);
}

int sw_models_propose(struct sw_server *server, const struct sw_job_request *job, sw_records *records, struct sw_err *err)
{
	const struct sw_models *models = &server->models;
	const char *name = job->model != NULL ? job->model : job->name;
	if (models->store == NULL || name == NULL)
		return 0;
	const struct sw_store_entry *entry = sw_store_find(models->store, name, NULL);
	return sw_brain_propose_profile(server->brain, name, entry != NULL ? sw_profiles_find(models->profiles, entry->name) : NULL,
					records, err);
}
