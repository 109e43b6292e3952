/* sharewell policy */
#include <stdio.h>
#include <string.h>

#include "cli/connect.h"
#include "cli/live.h"

struct values {
	const char *name, *controller;
	struct sw_cli_texts settings;
	bool json;
};

/* With the values that its parameters have. */
static void print_in_charge(const json_t *answer, const json_t *policy)
{
	size_t p;
	json_t *parameter;
	const json_t *settings = json_object_get(answer, "settings");
	json_array_foreach(json_object_get(policy, "parameters"), p, parameter)
	{
		char text[128];
		const char *name = sw_cli_text(parameter, "name", "?");
		snprintf(text, sizeof text, "%s=%s", name, sw_cli_text(settings, name, "?"));
		printf("  %-22s %s\n", text, sw_cli_text(parameter, "about", ""));
	}
}

static void print(const json_t *answer)
{
	size_t i;
	json_t *policy;
	const char *present = sw_cli_text(answer, "policy", "?");
	printf("In charge: %s, with placement %s\n", present, sw_cli_text(answer, "placement", "?"));
	json_array_foreach(json_object_get(answer, "available"), i, policy)
	{
		if (strcmp(sw_cli_text(policy, "name", ""), present) == 0)
			print_in_charge(answer, policy);
	}
	puts("\nThere are ('sharewell policies' tells what can be set of each):");
	json_array_foreach(json_object_get(answer, "available"), i, policy)
	{
		const char *name = sw_cli_text(policy, "name", "?");
		printf("%s %-12s %s\n", strcmp(name, present) == 0 ? "*" : " ", name, sw_cli_text(policy, "about", ""));
	}
}

static int change(struct sw_client *client, const struct values *values, json_t **ret_answer, struct sw_err *err)
{
	json_t *set = json_object();
	SW_JSON *body = json_pack("{s:s, s:o}", "policy", values->name, "set", set);
	for (size_t i = 0; body != NULL && i < values->settings.count; i++) {
		const char *text = values->settings.items[i], *equals = strchr(text, '=');
		if (equals == NULL || equals == text) {
			sw_err_set(err, SW_EINPUT, "--set cannot be '%.60s'", text);
			sw_err_detail(err, "it takes NAME=VALUE");
			return SW_EINPUT;
		}
		SW_CLEANUP(sw_freep) char *name = strndup(text, (size_t)(equals - text));
		json_object_set_new(set, name != NULL ? name : "", json_string(equals + 1));
	}
	if (body == NULL)
		return sw_err_set(err, SW_EINPUT, "the name of the policy is not UTF-8");
	return sw_client_post(client, "/v1/policy", body, ret_answer, err);
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_JSON *answer = NULL;
	if (values->name == NULL && values->settings.count > 0) {
		sw_err_set(err, SW_EINPUT, "--set needs the name of a policy");
		sw_err_hint(err, "For example: sharewell policy las --set tick=1s");
		return SW_EINPUT;
	}
	int r = sw_cli_connect(values->controller, &client, err);
	if (r == 0)
		r = values->name != NULL ? change(client, values, &answer, err) : sw_client_get(client, "/v1/policy", &answer, err);
	if (r < 0)
		return r;
	if (values->json)
		return sw_cli_print_json(answer, err);
	if (values->name == NULL)
		print(answer);
	else
		printf("In charge: %s\n", sw_cli_text(answer, "policy", "?"));
	return 0;
}

static const struct sw_cli_option options[] = {
	{"set", 's', .kind = SW_CLI_TEXTS, .argument = "NAME=VALUE", .about = "a parameter of the policy; what is left out has its preset",
	 .offset = offsetof(struct values, settings)},
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"NAME", .kind = SW_CLI_TEXT, .about = "the policy to put in charge; without one, all are shown",
	 .offset = offsetof(struct values, name)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell policy", "see which policy is in charge, what is set, and which others there are"},
	{"sharewell policy las --set promote=2", "change it while the cluster runs"},
};

const struct sw_cli_command sw_cli_policy = {
	.name = "policy",
	.about = "show or change the policy of the live cluster",
	.text = "Jobs that run stay; the new policy decides from then on. Only operators change it.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
