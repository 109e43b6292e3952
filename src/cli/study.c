/* From names to things: policies with their parameters, placement rule, world, cluster. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/catalogue.h"
#include "cli/own_profiles.h"
#include "cli/settings.h"
#include "cli/sim.h"
#include "placement/registry.h"
#include "policy/registry.h"

#define CONTENDERS_MAX 64u

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

/* ---- policies */

static int add_policy(struct sw_cli_study *study, const struct sw_policy *policy, struct sw_err *err)
{
	for (size_t i = 0; i < study->contenders.count; i++) {
		const struct sw_policy *other = study->contenders.items[i].policy;
		if (other == policy)
			return 0; /* named twice, or by name and by "all" */
		if (strcmp(other->name, policy->name) != 0)
			continue;
		sw_err_set(err, SW_EINPUT, "two different policies are called '%s'", policy->name);
		sw_err_hint(err, "Give the one that you wrote another name.");
		return SW_EINPUT;
	}
	if (study->contenders.count == CONTENDERS_MAX)
		return sw_err_set(err, SW_ELIMIT, "more than %u policies", CONTENDERS_MAX);
	struct sw_cli_contender *contender = sw_vec_push(&study->contenders);
	if (contender == NULL)
		return no_memory(err);
	contender->policy = policy;
	contender->settings = strdup("");
	if (contender->settings == NULL)
		return no_memory(err);
	return sw_params_new(policy, &contender->params, err);
}

static int add_named(struct sw_cli_study *study, const char *name, struct sw_err *err)
{
	if (strcmp(name, "all") != 0) {
		const struct sw_policy *policy = NULL;
		int r = sw_cli_find_policy(name, &policy, err);
		return r < 0 ? r : add_policy(study, policy, err);
	}
	int r = 0;
	for (size_t i = 0; sw_policies[i] != NULL && r == 0; i++)
		if (sw_cli_policy_in_all(sw_policies[i]))
			r = add_policy(study, sw_policies[i], err);
	return r;
}

static int add_policies(struct sw_cli_study *study, const struct sw_cli_texts *lists, struct sw_err *err)
{
	for (size_t i = 0; i < lists->count; i++) {
		for (const char *name = lists->items[i];; name++) {
			size_t size = strcspn(name, ",");
			SW_CLEANUP(sw_freep) char *copy = strndup(name, size);
			if (copy == NULL)
				return no_memory(err);
			if (size == 0) {
				sw_err_set(err, SW_EINPUT, "--policy '%.100s' has an empty name in it", lists->items[i]);
				sw_err_hint(err, "'sharewell policies' lists the names.");
				return SW_EINPUT;
			}
			int r = add_named(study, copy, err);
			if (r < 0)
				return r;
			name += size;
			if (*name == '\0')
				break;
		}
	}
	return 0;
}

/* ---- settings */

static int nobody_to_set(const struct sw_cli_study *study, const struct sw_cli_setting *setting, struct sw_err *err)
{
	char names[256] = "";
	size_t used = 0;
	for (size_t i = 0; i < study->contenders.count && used < sizeof names; i++)
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
					 study->contenders.items[i].policy->name);
	sw_err_set(err, SW_EINPUT, "cannot set '%s.%s'", setting->owner, setting->key);
	sw_err_detail(err, "no policy '%s' is run", setting->owner);
	sw_err_hint(err, "These are: %s. World values are set as world.quantum=1s.", names);
	return SW_EINPUT;
}

static int note_setting(struct sw_cli_contender *contender, const struct sw_cli_setting *setting, struct sw_err *err)
{
	char *text = NULL;
	if (asprintf(&text, "%s  setting: %s.%s=%s\n", contender->settings, setting->owner, setting->key, setting->value) < 0)
		return no_memory(err);
	free(contender->settings);
	contender->settings = text;
	return 0;
}

/* pack.worth is a parameter of each policy that packs. */
static int apply_to_packed(struct sw_cli_study *study, const struct sw_cli_setting *setting, struct sw_err *err)
{
	struct sw_cli_setting full = *setting;
	bool found = false;
	if ((size_t)snprintf(full.key, sizeof full.key, "pack.%s", setting->key) >= sizeof full.key)
		return nobody_to_set(study, setting, err);
	for (size_t i = 0; i < study->contenders.count; i++) {
		struct sw_cli_contender *contender = &study->contenders.items[i];
		if (strstr(contender->policy->name, "+pack") == NULL)
			continue;
		found = true;
		int r = sw_cli_setting_policy(&full, contender->params, true, err);
		r = r < 0 ? r : note_setting(contender, setting, err);
		if (r < 0)
			return r;
	}
	return found ? 0 : nobody_to_set(study, setting, err);
}

static int apply(struct sw_cli_study *study, const struct sw_cli_setting *setting, struct sw_err *err)
{
	if (sw_cli_setting_is_world(setting))
		return sw_cli_setting_world(setting, study->world, err);
	if (strcmp(setting->owner, "pack") == 0)
		return apply_to_packed(study, setting, err);
	for (size_t i = 0; i < study->contenders.count; i++) {
		struct sw_cli_contender *contender = &study->contenders.items[i];
		if (strcmp(contender->policy->name, setting->owner) != 0)
			continue;
		int r = sw_cli_setting_policy(setting, contender->params, true, err);
		return r < 0 ? r : note_setting(contender, setting, err);
	}
	return nobody_to_set(study, setting, err);
}

/* Whether `text` sets the same as an earlier one. Both have been parsed before. */
static bool same_target(const char *text, const struct sw_cli_setting *setting)
{
	struct sw_cli_setting other;
	bool both_world =
		sw_cli_setting_parse(text, &other, NULL) == 0 && sw_cli_setting_is_world(&other) && sw_cli_setting_is_world(setting);
	return strcmp(other.key, setting->key) == 0 && (both_world || strcmp(other.owner, setting->owner) == 0);
}

/* Of several settings of one thing the last counts, and only that is done. */
static int apply_settings(struct sw_cli_study *study, const struct sw_cli_texts *settings, struct sw_err *err)
{
	struct sw_cli_setting setting;
	for (size_t i = 0; i < settings->count; i++) {
		int r = sw_cli_setting_parse(settings->items[i], &setting, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < settings->count; i++) {
		bool overruled = false;
		(void)sw_cli_setting_parse(settings->items[i], &setting, NULL);
		for (size_t later = i + 1; later < settings->count && !overruled; later++)
			overruled = same_target(settings->items[later], &setting);
		int r = overruled ? 0 : apply(study, &setting, err);
		if (r < 0)
			return r;
	}
	return sw_cli_check_world(study->world, err);
}

/* ---- all of it */

static int choose_placement(struct sw_cli_study *study, const char *name, struct sw_err *err)
{
	if (name != NULL)
		return sw_cli_find_placement(name, &study->placement, err);
	if (study->world->placement_slowdown && !study->world->recorded) {
		study->placement = &sw_placement_pack;
		study->placement_reason = "this world slows down jobs whose GPUs are far apart";
	} else {
		study->placement = &sw_placement_count;
		study->placement_reason = "in this world it does not matter where a job's GPUs are";
	}
	return 0;
}

static int prepare(const struct sw_cli_sim_values *values, struct sw_cli_study *study, struct sw_err *err)
{
	int r = add_policies(study, &values->policies, err);
	if (r == 0 && study->world == NULL)
		r = sw_world_load(values->world != NULL ? values->world : SW_WORLD_DEFAULT, &study->world, err);
	if (r == 0)
		r = apply_settings(study, &values->settings, err);
	if (r == 0)
		r = choose_placement(study, values->placement, err);
	if (r == 0 && study->cluster == NULL)
		r = sw_cluster_load(values->cluster, &study->cluster, err);
	if (r == 0)
		r = sw_cluster_topology(study->cluster, &study->topology, err);
	if (r == 0)
		r = sw_cli_own_profiles_load(values->profiles, values->profiles != NULL, &study->profiles, err);
	if (r == 0)
		sw_cluster_describe(study->cluster, study->cluster_text);
	return r;
}

int sw_cli_study_prepare(const struct sw_cli_sim_values *values, struct sw_cli_study *study, struct sw_err *err)
{
	int r = prepare(values, study, err);
	if (r < 0)
		sw_cli_study_release(study);
	return r;
}

int sw_cli_study_load_trace(const struct sw_cli_sim_values *values, struct sw_cli_study *study, struct sw_err *err)
{
	return sw_trace_load(values->trace, values->format, &study->trace, err);
}

/* The number of the tenant that so many bytes name; 0: no job has it. */
static uint32_t find_tenant(const struct sw_trace *trace, const char *name, size_t size)
{
	for (size_t j = 0; j < trace->jobs.count; j++) {
		const char *tenant = sw_trace_string(trace, trace->jobs.items[j].tenant);
		if (size > 0 && strlen(tenant) == size && memcmp(tenant, name, size) == 0)
			return trace->jobs.items[j].tenant;
	}
	return 0;
}

static int add_quota(const char *text, struct sw_cli_study *study, struct sw_err *err)
{
	const char *equals = strrchr(text, '=');
	uint64_t gpus = 0;
	if (equals == NULL || sw_parse_u64(equals + 1, strlen(equals + 1), &gpus) < 0 || gpus > SW_CLUSTER_GPUS_MAX) {
		sw_err_set(err, SW_EINPUT, "a quota cannot be '%.60s'", text);
		sw_err_hint(err, "Write a tenant of the trace and a number of GPUs: vc1=16.");
		return SW_EINPUT;
	}
	struct sw_sim_quota quota = {find_tenant(study->trace, text, (size_t)(equals - text)), (uint32_t)gpus};
	if (quota.tenant == 0) {
		sw_err_set(err, SW_ENOTFOUND, "no job of the trace is of tenant '%.*s'", (int)(equals - text < 60 ? equals - text : 60),
			   text);
		sw_err_hint(err, "'sharewell trace stats' lists the tenants.");
		return SW_ENOTFOUND;
	}
	struct sw_sim_quota *slot = NULL;
	for (size_t q = 0; q < study->quotas.count && slot == NULL; q++)
		slot = study->quotas.items[q].tenant == quota.tenant ? &study->quotas.items[q] : NULL;
	if (slot == NULL && (slot = sw_vec_push(&study->quotas)) == NULL)
		return no_memory(err);
	*slot = quota;
	return 0;
}

int sw_cli_study_quotas(const struct sw_cli_texts *quotas, struct sw_cli_study *study, struct sw_err *err)
{
	int r = 0;
	for (size_t i = 0; i < quotas->count && r == 0; i++)
		r = add_quota(quotas->items[i], study, err);
	return r;
}

void sw_cli_study_release(struct sw_cli_study *study)
{
	for (size_t i = 0; i < study->contenders.count; i++) {
		if (study->contenders.items[i].params != NULL)
			sw_params_free(study->contenders.items[i].params);
		free(study->contenders.items[i].settings);
	}
	sw_vec_free(&study->contenders);
	if (study->world != NULL)
		sw_world_free(study->world);
	if (study->cluster != NULL)
		sw_cluster_free(study->cluster);
	if (study->topology != NULL)
		sw_topology_free(study->topology);
	if (study->profiles != NULL)
		sw_profiles_free(study->profiles);
	sw_vec_free(&study->quotas);
	if (study->trace != NULL)
		sw_trace_free(study->trace);
	if (study->record != NULL)
		sw_result_free(study->record);
	free(study->basis);
}
