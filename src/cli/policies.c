/* sharewell policies */
#include "cli/policies.h"

#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/catalogue.h"
#include "cli/settings.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "world/world.h"

static const char *kind_name(enum sw_param_kind kind)
{
	static const char *const names[] = {
		[SW_PARAM_INTEGER] = "integer", [SW_PARAM_MILLI] = "number", [SW_PARAM_DURATION] = "duration",
		[SW_PARAM_NUMBERS] = "numbers", [SW_PARAM_FLAG] = "flag",    [SW_PARAM_FILE_OF_NUMBERS] = "file",
		[SW_PARAM_CHOICE] = "choice",
	};
	return names[kind];
}

/* ---- as text */

static void print_policies(FILE *out)
{
	fputs("Policies (--policy), and what can be set (--set POLICY.PARAMETER=VALUE)\n", out);
	for (size_t i = 0; sw_policies[i] != NULL; i++) {
		const struct sw_policy *policy = sw_policies[i];
		fprintf(out, "  %-12s%s\n", policy->name, policy->about);
		for (size_t p = 0; p < policy->param_count; p++) {
			const struct sw_param *param = &policy->params[p];
			fprintf(out, "      %s.%s=%s  (%s) %s\n", policy->name, param->name, param->preset, kind_name(param->kind),
				param->about);
		}
	}
}

/* Those that are made of others have the parameters of both. */
static void print_packed(FILE *out)
{
	fputs("  ORDER+pack  a job that ORDER leaves waiting runs beside a running job with which it does well; ORDER is one of", out);
	for (size_t i = 0; sw_policies_packed(i) != NULL; i++)
		fprintf(out, "%s %.*s", i > 0 ? "," : "", (int)strcspn(sw_policies_packed(i)->name, "+"), sw_policies_packed(i)->name);
	fputc('\n', out);
	const struct sw_policy *policy = sw_policies_packed(0);
	for (size_t p = 0; p < policy->param_count; p++)
		if (strncmp(policy->params[p].name, "pack.", 5) == 0)
			fprintf(out, "      %s=%s  (%s) %s\n", policy->params[p].name, policy->params[p].preset,
				kind_name(policy->params[p].kind), policy->params[p].about);
}

static int print_worlds(FILE *out, struct sw_err *err)
{
	const char *name;
	fputs("\nWorlds (--world), or a file of your own\n", out);
	for (size_t i = 0; (name = sw_cli_world_words.at(i)) != NULL; i++) {
		SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
		int r = sw_world_load(name, &world, err);
		if (r < 0)
			return r;
		fprintf(out, "  %-12s%s%s\n", name, world->about, strcmp(name, SW_WORLD_DEFAULT) == 0 ? " (default)" : "");
	}
	fputs("\nValues of the world that can be set (--set world.VALUE=...)\n", out);
	for (size_t i = 0; sw_cli_world_value(i)->name != NULL; i++)
		fprintf(out, "  %-20s%s\n", sw_cli_world_value(i)->name, sw_cli_world_value(i)->about);
	return 0;
}

static int print_text(FILE *out, struct sw_err *err)
{
	print_policies(out);
	print_packed(out);
	fputs("\nPlacement rules (--placement)\n", out);
	for (size_t i = 0; sw_placements[i] != NULL; i++)
		fprintf(out, "  %-12s%s\n", sw_placements[i]->name, sw_placements[i]->about);
	return print_worlds(out, err);
}

/* ---- as JSON. A NULL that was put anywhere makes the whole fail. */

static json_t *policies_json(void)
{
	json_t *list = json_array();
	for (size_t i = 0; sw_policies[i] != NULL; i++) {
		const struct sw_policy *policy = sw_policies[i];
		json_t *params = json_array();
		for (size_t p = 0; p < policy->param_count; p++) {
			const struct sw_param *param = &policy->params[p];
			json_array_append_new(params, json_pack("{s:s, s:s, s:s, s:s}", "name", param->name, "kind", kind_name(param->kind),
								"preset", param->preset, "about", param->about));
		}
		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:o}", "name", policy->name, "about", policy->about, "in_all",
						      sw_cli_policy_in_all(policy), "parameters", params));
	}
	return list;
}

static json_t *packed_json(void)
{
	json_t *list = json_array();
	for (size_t i = 0; sw_policies_packed(i) != NULL; i++)
		json_array_append_new(list, json_string(sw_policies_packed(i)->name));
	return list;
}

static json_t *placements_json(void)
{
	json_t *list = json_array();
	for (size_t i = 0; sw_placements[i] != NULL; i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "name", sw_placements[i]->name, "about", sw_placements[i]->about));
	return list;
}

static int worlds_json(json_t *list, struct sw_err *err)
{
	const char *name;
	for (size_t i = 0; (name = sw_cli_world_words.at(i)) != NULL; i++) {
		SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
		int r = sw_world_load(name, &world, err);
		if (r < 0)
			return r;
		json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "name", name, "about", world->about, "default",
						      strcmp(name, SW_WORLD_DEFAULT) == 0));
	}
	return 0;
}

static int print_json(FILE *out, struct sw_err *err)
{
	SW_CLEANUP(json_decrefp) json_t *worlds = json_array();
	int r = worlds_json(worlds, err);
	if (r < 0)
		return r;
	SW_CLEANUP(json_decrefp)
	json_t *all = json_pack("{s:o, s:o, s:o, s:O}", "policies", policies_json(), "packed", packed_json(), "placements",
				placements_json(), "worlds", worlds);
	if (all == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot list the policies: out of memory");
	json_dumpf(all, out, 0);
	fputc('\n', out);
	return 0;
}

int sw_cli_list_policies(FILE *out, bool json, struct sw_err *err)
{
	return json ? print_json(out, err) : print_text(out, err);
}

/* ---- the command */

struct values {
	bool json;
};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	return sw_cli_list_policies(stdout, values->json, err);
}

static const struct sw_cli_option options[] = {
	{"json", .about = "print one JSON object instead", .offset = offsetof(struct values, json)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell policies", "see what can be compared, and what can be set"},
};

const struct sw_cli_command sw_cli_policies = {
	.name = "policies",
	.about = "list policies with their parameters, placement rules and worlds",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
