/* sharewell world */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/connect.h"
#include "cli/live.h"
#include "world/world.h"

struct values {
	const char *name, *controller;
	bool json, text;
};

/* From the table of terms, so that each is there with what it means. */
static void print_terms(const json_t *terms)
{
	for (size_t r = 0; r < sw_term_count; r++) {
		const struct sw_term_row *row = &sw_term_rows[r];
		char key[64], value[64] = "?", line[128];
		snprintf(key, sizeof key, "%s%s", row->name,
			 row->kind == SW_TERM_TIME    ? "_ns"
			 : row->kind == SW_TERM_MILLI ? "_milli"
						      : "");
		const json_t *found = json_object_get(terms, key);
		if (row->kind == SW_TERM_TIME)
			sw_format_duration(json_integer_value(found), value);
		else if (row->kind == SW_TERM_MILLI)
			snprintf(value, sizeof value, "%.3f", (double)json_integer_value(found) / 1000);
		else
			snprintf(value, sizeof value, "%s",
				 json_is_boolean(found) ? (json_is_true(found) ? "true" : "false") : json_string_value(found));
		snprintf(line, sizeof line, "%s: %s", row->name, value);
		printf("  %-38s %s\n", line, row->about);
	}
}

/* They are in the file alone, which the controller could read. */
static void print_gpu_types(const char *text)
{
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	if (sw_world_parse("in force", text, strlen(text), &world, NULL) == 0)
		sw_gpu_rules_say(stdout, &world->gpu_types);
}

static int change(struct sw_client *client, const char *name, json_t **ret_answer, struct sw_err *err)
{
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	int r = sw_world_load(name, &world, err);
	if (r < 0)
		return r;
	SW_JSON *body = json_pack("{s:s, s:s}", "name", world->name, "text", world->text);
	if (body == NULL)
		return sw_err_set(err, SW_EINPUT, "world '%.100s' is not UTF-8", name);
	return sw_client_post(client, "/v1/world", body, ret_answer, err);
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_JSON *answer = NULL;
	int r = sw_cli_connect(values->controller, &client, err);
	if (r == 0)
		r = values->name != NULL ? change(client, values->name, &answer, err) : sw_client_get(client, "/v1/world", &answer, err);
	if (r < 0)
		return r;
	if (values->json)
		return sw_cli_print_json(answer, err);
	const char *name = sw_cli_text(answer, "world", "");
	if (values->text) {
		fputs(sw_cli_text(answer, "text", ""), stdout);
		return 0;
	}
	printf("World: %s%s\n", name[0] != '\0' ? name : "none was given",
	       json_is_true(json_object_get(answer, "chosen")) ? " (set by an operator)" : "");
	print_terms(json_object_get(answer, "terms"));
	print_gpu_types(sw_cli_text(answer, "text", ""));
	return 0;
}

static const struct sw_cli_option options[] = {
	{"text", .about = "print the world file as it was given", .offset = offsetof(struct values, text)},
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"WORLD", .kind = SW_CLI_TEXT, .is_path = true,
	 .about = "a name, or a YAML file of your own; without it, the terms in force are shown", .offset = offsetof(struct values, name)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell world", "see the terms: how long a job runs before it may be preempted, how it may be stopped"},
	{"sharewell world --text > mine.yaml", "begin a world of your own"},
	{"sharewell world mine.yaml", "put it in force while the cluster runs"},
};

const struct sw_cli_command sw_cli_world = {
	.name = "world",
	.about = "show or change the terms of the live cluster",
	.text = "A world file says how long a job runs before it may be preempted, and what is possible. It also says how jobs may be "
		"stopped whose owners said nothing. 'sharewell sim --world' takes the same file. Jobs that run stay. Only operators change "
		"it.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
