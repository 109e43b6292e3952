/* sharewell sim --journal: a study of what the cluster did itself. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/catalogue.h"
#include "cli/connect.h"
#include "cli/live.h"
#include "cli/past.h"
#include "cli/past_events.h"
#include "cli/sim.h"
#include "core/params.h"
#include "policy/registry.h"
#include "sim/recorded.h"

#define SETTINGS_MAX 64u

/* What the running cluster adds to what was said. */
struct said {
	struct sw_cli_sim_values values;
	json_t *policy, *world, *profiles;			   /* of the controller; NULL: from a file */
	uint64_t never_ran, rows, unheard, holds, requeues, first; /* as in struct sw_cli_past */
	uint64_t policies, worlds;				   /* as in struct sw_cli_events */
	const char *settings[SETTINGS_MAX];
	char *own_settings[SETTINGS_MAX]; /* those of them that are ours to free */
};

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

/* ---- a file */

static int refuse_folder(const char *path, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot read a history from the folder '%.150s'", path);
	sw_err_detail(err, "a journal belongs to its controller, and no other program reads it");
	sw_err_hint(err,
		    "Start it with 'sharewell up --state %.150s' and leave out the folder, or give a file of 'sharewell history --export'.",
		    path);
	return SW_EINPUT;
}

static int load_file(const struct sw_cli_sim_values *values, struct sw_cli_study *study, struct sw_err *err)
{
	struct stat info;
	if (stat(values->history, &info) == 0 && S_ISDIR(info.st_mode))
		return refuse_folder(values->history, err);
	if (values->cluster == NULL) {
		sw_err_set(err, SW_EINPUT, "a history from a file needs --cluster");
		sw_err_detail(err, "the file does not say on how many nodes and GPUs it happened");
		sw_err_hint(err, "For example: sharewell sim --journal %.100s --cluster 1x4", values->history);
		return SW_EINPUT;
	}
	return sw_trace_load(values->history, values->format, &study->trace, err);
}

/* ---- the running cluster */

static bool is_named(const struct sw_cli_texts *lists, const char *policy)
{
	size_t length = strlen(policy), size;
	for (size_t i = 0; i < lists->count; i++) {
		const char *rest = lists->items[i], *word;
		while (sw_text_next(&rest, &word, &size))
			if ((size == length && memcmp(word, policy, size) == 0) || (size == 3 && memcmp(word, "all", size) == 0))
				return true;
	}
	return false;
}

/* By value: 600s is 10m. Of policies that are not ours nothing can be handed on. */
static bool differs_from_preset(const char *policy, const char *name, const char *text)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	const struct sw_policy *known = sw_policy_find(policy);
	const struct sw_param *param = known != NULL ? sw_params_find(known, name, NULL) : NULL;
	/* Numbers of a file would be taken for its path. */
	if (param == NULL || text == NULL || param->kind == SW_PARAM_FILE_OF_NUMBERS || sw_params_new(known, &params, NULL) < 0)
		return false;
	size_t index = (size_t)(param - known->params);
	SW_CLEANUP(sw_freep) char *preset = sw_params_text(params, index);
	bool is_value = sw_params_set(params, param, text, strlen(text), NULL) == 0;
	SW_CLEANUP(sw_freep) char *present = sw_params_text(params, index);
	return is_value && preset != NULL && present != NULL && strcmp(preset, present) != 0;
}

/* The policy in charge is simulated with the parameters that it has; what the user sets
 * comes later, and counts. */
static int add_settings(struct said *said, struct sw_err *err)
{
	const char *policy = sw_cli_text(said->policy, "policy", ""), *name;
	size_t count = 0;
	json_t *value;
	json_object_foreach(json_object_get(said->policy, "settings"), name, value)
	{
		const char *text = json_string_value(value);
		if (!differs_from_preset(policy, name, text) || !is_named(&said->values.policies, policy) ||
		    count + said->values.settings.count >= SETTINGS_MAX)
			continue;
		if (asprintf(&said->own_settings[count], "%s.%s=%s", policy, name, text) < 0) {
			said->own_settings[count] = NULL;
			return no_memory(err);
		}
		said->settings[count] = said->own_settings[count];
		count++;
	}
	for (size_t i = 0; i < said->values.settings.count && count < SETTINGS_MAX; i++)
		said->settings[count++] = said->values.settings.items[i];
	said->values.settings = (struct sw_cli_texts){said->settings, count};
	return 0;
}

/* The rows of its jobs, and the journal's events. */
static int fetch_past(struct sw_client *client, struct said *said, struct sw_cli_study *study, struct sw_cli_past *ret_past,
		      struct sw_err *err)
{
	SW_CLEANUP(sw_cli_events_release) struct sw_cli_events events = {0};
	int r = sw_cli_events_fetch(client, &events, err);
	if (r == 0 && said->values.cluster == NULL)
		r = sw_cli_events_cluster(client, &events, &study->cluster, err);
	if (r == 0 && said->values.quotas.count == 0)
		r = sw_cli_events_quotas(client, &events, err);
	r = r < 0 ? r : sw_cli_past_fetch(client, "", &events, ret_past, err);
	said->profiles = json_incref(events.profiles);
	said->policies = events.policies;
	said->worlds = events.worlds;
	return r;
}

static int fetch(struct said *said, struct sw_cli_study *study, struct sw_err *err)
{
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	struct sw_cli_past past = {0};
	int r = sw_cli_connect(said->values.controller, &client, err);
	r = r < 0 ? r : sw_client_get(client, "/v1/policy", &said->policy, err);
	r = r < 0 ? r : sw_client_get(client, "/v1/world", &said->world, err);
	r = r < 0 ? r : add_settings(said, err);
	r = r < 0 ? r : fetch_past(client, said, study, &past, err);
	if (r < 0)
		return r;
	study->trace = past.trace;
	if (past.trace->jobs.count == 0) {
		sw_err_set(err, SW_ENOTFOUND, "this cluster has no history yet");
		sw_err_detail(err, "no job has run");
		return SW_ENOTFOUND;
	}
	said->never_ran = past.never_ran;
	said->rows = past.rows;
	said->unheard = past.unheard;
	said->holds = past.holds;
	said->requeues = past.requeues;
	said->first = past.first;
	if (said->values.placement == NULL && said->policy != NULL)
		said->values.placement = sw_cli_text(said->policy, "placement", NULL);
	return 0;
}

/* The terms under which it happened, unless another world is asked for. In each the run times
 * are those that were recorded, and the journal's events happen. */
static int choose_world(const struct said *said, struct sw_cli_study *study, struct sw_err *err)
{
	const char *text = sw_cli_text(said->world, "text", ""), *asked = said->values.world;
	int r = asked == NULL && text[0] != '\0'
			? sw_world_parse(sw_cli_text(said->world, "world", "live"), text, strlen(text), &study->world, err)
			: sw_world_load(asked != NULL ? asked : SW_WORLD_LIVE, &study->world, err);
	return r < 0 ? r : sw_world_record(study->world, err);
}

/* ---- what is said about it */

/* As in:
 *	History: jobs run as long as they really did, however they ended (2 did not end well, 1 is
 *	not over yet); 3 that never ran are left out.
 */
static void describe_ends(FILE *out, const struct sw_trace *trace)
{
	uint64_t ends[SW_TRACE_ENDS];
	sw_recorded_count(trace, ends);
	uint64_t bad = ends[SW_TRACE_FAILED] + ends[SW_TRACE_CANCELLED] + ends[SW_TRACE_TIMED_OUT], open = ends[SW_TRACE_UNFINISHED];
	if (bad + open == 0)
		return;
	fputs(", however they ended (", out);
	if (bad > 0)
		fprintf(out, "%" PRIu64 " did not end well", bad);
	if (open > 0)
		fprintf(out, "%s%" PRIu64 " %s not over yet", bad > 0 ? ", " : "", open, open == 1 ? "is" : "are");
	fputc(')', out);
}

/* "; 3 times on hold are replayed": how often, and what of it. */
static void describe_count(FILE *out, uint64_t count, const char *one, const char *many)
{
	if (count > 0)
		fprintf(out, "; %" PRIu64 " %s", count, count == 1 ? one : many);
}

static int describe(struct sw_cli_study *study, const struct said *said, struct sw_err *err)
{
	size_t size = 0;
	FILE *out = open_memstream(&study->basis, &size);
	if (out == NULL)
		return no_memory(err);
	fputs("History: jobs run as long as they really did", out);
	describe_ends(out, study->trace);
	describe_count(out, said->never_ran, "that never ran is left out", "that never ran are left out");
	describe_count(out, said->holds, "time on hold is replayed by the journal's events",
		       "times on hold are replayed by the journal's events");
	describe_count(out, said->requeues, "requeue is replayed", "requeues are replayed");
	describe_count(out, said->rows, "job came before the first event that is kept, and is known by its row on disk alone",
		       "jobs came before the first event that is kept, and are known by their rows on disk alone");
	describe_count(out, said->unheard, "job ended without an event, and its row tells how long it ran",
		       "jobs ended without an event, and their rows tell how long they ran");
	describe_count(out, said->policies, "change of the policy is not replayed", "changes of the policy are not replayed");
	describe_count(out, said->worlds, "change of the world is not replayed", "changes of the world are not replayed");
	if (said->first > 1)
		fprintf(out, "; those before job %" PRIu64 " are no longer kept", said->first);
	fputc('.', out);
	return fclose(out) != 0 ? no_memory(err) : 0;
}

static int record(const struct said *said, struct sw_cli_study *study, struct sw_err *err)
{
	char label[64] = "really";
	if (said->policy != NULL)
		snprintf(label, sizeof label, "really (%.40s)", sw_cli_text(said->policy, "policy", "?"));
	return sw_recorded_result(study->trace, label, study->cluster_text, study->topology->gpu_count, &study->record, err);
}

int sw_cli_journal_prepare(const struct sw_cli_sim_values *values, struct sw_cli_study *ret_study, struct sw_err *err)
{
	static const char *const all[] = {"all"};
	struct sw_cli_study study = {0};
	struct said said = {.values = *values};
	if (said.values.policies.count == 0)
		said.values.policies = (struct sw_cli_texts){(const char **)(uintptr_t)all, 1};
	int r = values->history != NULL ? load_file(values, &study, err) : fetch(&said, &study, err);
	r = r < 0 ? r : choose_world(&said, &study, err);
	if (r < 0)
		sw_cli_study_release(&study);
	else
		r = sw_cli_study_prepare(&said.values, &study, err);
	if (r == 0) {
		r = sw_cli_events_profiles(said.profiles, study.profiles, err);
		r = r < 0 ? r : record(&said, &study, err);
		r = r < 0 ? r : describe(&study, &said, err);
		if (r < 0)
			sw_cli_study_release(&study);
	}
	for (size_t i = 0; i < SETTINGS_MAX; i++)
		free(said.own_settings[i]);
	json_decref(said.policy);
	json_decref(said.world);
	json_decref(said.profiles);
	if (r == 0)
		*ret_study = study;
	return r;
}
