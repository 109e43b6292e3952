#include "cli/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "base/suggest.h"

#define NUMBERS_FILE_MAX ((size_t)64 << 20)
#define TEN_YEARS_NS (INT64_C(3650) * 86400 * SW_NS_PER_S)
#define MTBF_MIN_NS (60 * SW_NS_PER_S)

static int malformed(const char *text, const char *what, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot set '%.100s'", text);
	sw_err_detail(err, "%s", what);
	sw_err_hint(err,
		    "Write it as --set las.thresholds=3250,7200 or --set world.quantum=1s; 'sharewell policies' lists what can be set.");
	return SW_EINPUT;
}

int sw_cli_setting_parse(const char *text, struct sw_cli_setting *ret_setting, struct sw_err *err)
{
	size_t name = strcspn(text, "=");
	if (text[name] != '=')
		return malformed(text, "it gives no value", err);
	size_t owner = strcspn(text, ".=");
	if (owner == name)
		return malformed(text, "there is no dot between the policy and its parameter", err);
	size_t key = name - owner - 1;
	if (owner == 0 || key == 0)
		return malformed(text, "a name is missing before '='", err);
	if (owner >= sizeof ret_setting->owner || key >= sizeof ret_setting->key)
		return malformed(text, "its name is longer than any that exists", err);
	memcpy(ret_setting->owner, text, owner);
	ret_setting->owner[owner] = '\0';
	memcpy(ret_setting->key, text + owner + 1, key);
	ret_setting->key[key] = '\0';
	ret_setting->value = text + name + 1;
	return 0;
}

/* ---- the world */

enum kind { DURATION, FLAG, CHANCE, COUNT };

static const struct world_value {
	struct sw_cli_world_value seen;
	enum kind kind;
	size_t offset;
} world_values[] = {
#define AT(member) offsetof(struct sw_world, member)
	{{"quantum", "a running job is not preempted before it ran this long"}, DURATION, AT(quantum_ns)},
	{{"start", "time before a job's first progress"}, DURATION, AT(start_ns)},
	{{"restart", "the same when it goes on from a checkpoint"}, DURATION, AT(restart_ns)},
	{{"switch", "the same when it goes on where it was paused"}, DURATION, AT(switch_ns)},
	{{"replace_is_free", "every decision may move all running jobs, unnoticed"}, FLAG, AT(replace_is_free)},
	{{"placement_slowdown", "jobs slow down with the distance between their GPUs"}, FLAG, AT(placement_slowdown)},
	{{"sharing_slowdown", "jobs on one GPU slow each other down"}, FLAG, AT(sharing_slowdown)},
	{{"node_mtbf", "mean time between failures of one node; 0: nodes do not fail"}, DURATION, AT(node_mtbf_ns)},
	{{"node_repair", "time until a failed node is back"}, DURATION, AT(node_repair_ns)},
	{{"checkpoint", "a run that is lost goes on from the last multiple of this; 0: from its beginning"}, DURATION, AT(checkpoint_ns)},
	{{"job_failure", "chance of a run to fail, 0 to 1"}, CHANCE, AT(job_failure_ppm)},
	{{"retries", "of a failed job"}, COUNT, AT(retries)},
#undef AT
};

enum { WORLD_VALUES = sizeof world_values / sizeof world_values[0] };

const struct sw_cli_world_value *sw_cli_world_value(size_t index)
{
	static const struct sw_cli_world_value end = {NULL, NULL};
	return index < WORLD_VALUES ? &world_values[index].seen : &end;
}

bool sw_cli_setting_is_world(const struct sw_cli_setting *setting)
{
	return strcmp(setting->owner, "world") == 0 || strcmp(setting->owner, "core") == 0;
}

static const struct world_value *find_value(const struct sw_cli_setting *setting, struct sw_err *err)
{
	/* The quantum is the core's as much as the world's: both names are in use. */
	size_t known = strcmp(setting->owner, "core") == 0 ? 1 : WORLD_VALUES;
	for (size_t i = 0; i < known; i++)
		if (strcmp(world_values[i].seen.name, setting->key) == 0)
			return &world_values[i];
	sw_err_set(err, SW_EINPUT, "'%s' has no value '%s' that can be set", setting->owner, setting->key);
	const char *near = sw_suggest(setting->key, world_values, known, sizeof world_values[0]);
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s.%s'?", setting->owner, near);
	else
		sw_err_hint(err, "'sharewell policies' lists what can be set; a world file of your own can change everything.");
	return NULL;
}

static bool parse_flag(const char *text, bool *ret_flag)
{
	static const char *const yes[] = {"on", "true", "yes", "1"}, *const no[] = {"off", "false", "no", "0"};
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*ret_flag = strcmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}

static int refuse_value(const struct sw_cli_setting *setting, const char *wanted, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "%s.%s cannot be '%.60s'", setting->owner, setting->key, setting->value);
	sw_err_detail(err, "it takes %s", wanted);
	return SW_EINPUT;
}

static int decode(const struct sw_cli_setting *setting, const struct world_value *value, void *slot, struct sw_err *err)
{
	const char *text = setting->value;
	size_t size = strlen(text);
	int64_t number = 0;
	switch (value->kind) {
	case DURATION:
		if (sw_parse_duration(text, size, &number) < 0 || number > TEN_YEARS_NS)
			return refuse_value(setting, "a duration up to ten years, such as 90s, 15m or 2h", err);
		break;
	case CHANCE:
		if (sw_parse_decimal(text, size, 1000000, &number) < 0 || number < 0 || number > 1000000)
			return refuse_value(setting, "a chance from 0 to 1", err);
		break;
	case COUNT:
		if (sw_parse_i64(text, size, &number) < 0 || number < 0 || number > 1000)
			return refuse_value(setting, "a whole number from 0 to 1000", err);
		break;
	case FLAG:
	default:
		return parse_flag(text, slot) ? 0 : refuse_value(setting, "on or off", err);
	}
	*(int64_t *)slot = number;
	return 0;
}

int sw_cli_setting_world(const struct sw_cli_setting *setting, struct sw_world *world, struct sw_err *err)
{
	const struct world_value *value = find_value(setting, err);
	if (value == NULL)
		return SW_EINPUT;
	int r = decode(setting, value, (char *)world + value->offset, err);
	if (r < 0)
		return r;
	char *name = NULL;
	if (asprintf(&name, "%s, %s=%s", world->name, value->seen.name, setting->value) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	free(world->name);
	world->name = name;
	return 0;
}

int sw_cli_check_world(const struct sw_world *world, struct sw_err *err)
{
	if (world->node_mtbf_ns > 0 && world->node_mtbf_ns < MTBF_MIN_NS)
		return sw_err_set(err, SW_EINPUT, "world.node_mtbf is below a minute; 0 turns failures of nodes off");
	if (world->node_mtbf_ns > 0 && world->node_repair_ns == 0)
		return sw_err_set(err, SW_EINPUT, "world.node_repair must be above 0 where nodes fail");
	return 0;
}

/* ---- policies */

int sw_cli_setting_policy(const struct sw_cli_setting *setting, struct sw_params *params, bool files, struct sw_err *err)
{
	const struct sw_param *param = sw_params_find(params->policy, setting->key, err);
	if (param == NULL)
		return SW_EINPUT;
	if (param->kind != SW_PARAM_FILE_OF_NUMBERS || !files)
		return sw_params_set(params, param, setting->value, strlen(setting->value), err);
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	int r = sw_file_read(setting->value, NUMBERS_FILE_MAX, &text, &size, err);
	if (r < 0)
		return r;
	r = sw_params_set(params, param, text, size, err);
	/* The core knows the content but not the name of the file. */
	if (r < 0)
		sw_err_detail(err, "in '%.200s'", setting->value);
	return r;
}
