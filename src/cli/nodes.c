/* sharewell nodes */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "cli/connect.h"
#include "cli/live.h"
#include "cli/message.h"

struct values {
	const char *action, *node, *reason, *controller;
	bool json, noheader, gpus;
};

static const struct sw_cli_column node_columns[] = {
	{.name = "NODE"},
	{.name = "STATE"},
	{.name = "GPUS", .right = true},
	{.name = "FREE", .right = true},
	{.name = "CPUS", .right = true},
	{.name = "MEMORY", .right = true},
	{.name = "REASON", .most = 100},
};
static const struct sw_cli_column gpu_columns[] = {
	{.name = "NODE"},
	{.name = "GPU", .right = true},
	{.name = "NAME", .most = 32},
	{.name = "UTIL", .right = true},
	{.name = "USED", .right = true},
	{.name = "MEMORY", .right = true},
	{.name = "POWER", .right = true},
	{.name = "TEMP", .right = true},
	{.name = "SHUT", .most = 60},
	{.name = "UUID"},
};

/* As sinfo has them: idle, mix, alloc; drain and drng (with jobs) for a closed one; down*. Others
 * are unreachable for one that does not answer, and shut for one none of whose GPUs takes jobs. */
static const char *state_of(const json_t *node)
{
	int64_t gpus = sw_cli_number(node, "gpus", 0), spare = sw_cli_number(node, "gpus_free", 0);
	if (!json_is_true(json_object_get(node, "up")))
		return "down*";
	if (json_is_true(json_object_get(node, "unreachable")))
		return "unreachable";
	if (json_is_true(json_object_get(node, "closed")))
		return json_is_true(json_object_get(node, "in_use")) ? "drng" : "drain";
	if (gpus > 0 && sw_cli_number(node, "gpus_shut", 0) == gpus)
		return "shut";
	return spare == gpus ? "idle" : spare > 0 ? "mix" : "alloc";
}

/* Why the node, or which of its GPUs, takes no jobs. */
static void find_reason(const json_t *node, char *text, size_t size)
{
	size_t i, used = 0;
	const json_t *gpu;
	char words[300];
	snprintf(text, size, "%s", sw_cli_text(node, "reason", ""));
	if (text[0] != '\0')
		return;
	snprintf(text, size, "-");
	json_array_foreach(json_object_get(node, "devices"), i, gpu)
	{
		if (sw_cli_device_shut(gpu, words, sizeof words)[0] == '\0' || used >= size)
			continue;
		used += (size_t)snprintf(text + used, size - used, "%sgpu%zu %s", used > 0 ? "; " : "", i, words);
	}
}

static int add_node(struct sw_cli_rows *rows, const json_t *node)
{
	char memory[32], reason[600];
	int r = sw_cli_rows_add(rows, sw_cli_text(node, "name", "?"));
	r = r < 0 ? r : sw_cli_rows_add(rows, state_of(node));
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(node, "gpus", 0));
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(node, "gpus_free", 0));
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(node, "cpus", 0));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_format_bytes((uint64_t)sw_cli_number(node, "memory_bytes", 0), memory));
	if (json_is_true(json_object_get(node, "unreachable")))
		return r < 0 ? r
			     : sw_cli_rows_addf(rows, "not heard since %s", sw_cli_local_time(sw_cli_text(node, "heard_at", NULL), memory));
	find_reason(node, reason, sizeof reason);
	return r < 0 ? r : sw_cli_rows_add(rows, reason);
}

static int add_gpu(struct sw_cli_rows *rows, const json_t *node, const json_t *gpu)
{
	char used[32], memory[32], text[32], shut[300];
	bool sampled = json_is_string(json_object_get(gpu, "sampled_at"));
	int r = sw_cli_rows_add(rows, sw_cli_text(node, "name", "?"));
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(gpu, "index", 0));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(gpu, "name", "-"));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_device_busy(gpu, text, sizeof text));
	r = r < 0 ? r : sw_cli_rows_add(rows, sampled ? sw_format_bytes((uint64_t)sw_cli_number(gpu, "memory_used_bytes", 0), used) : "-");
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_format_bytes((uint64_t)sw_cli_number(gpu, "memory_bytes", 0), memory));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_device_power(gpu, text, sizeof text));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_device_heat(gpu, text, sizeof text));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_device_shut(gpu, shut, sizeof shut)[0] != '\0' ? shut : "-");
	return r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(gpu, "uuid", "-"));
}

static int print(const json_t *answer, const struct values *values, struct sw_err *err)
{
	struct sw_cli_rows rows = {values->gpus ? gpu_columns : node_columns,
				   values->gpus ? SW_CLI_COUNT_OF(gpu_columns) : SW_CLI_COUNT_OF(node_columns),
				   {0}};
	size_t i, g;
	json_t *node, *gpu;
	int r = 0;
	json_array_foreach(json_object_get(answer, "nodes"), i, node)
	{
		if (!values->gpus)
			r = r < 0 ? r : add_node(&rows, node);
		json_array_foreach(json_object_get(node, "devices"), g, gpu) if (values->gpus) r = r < 0 ? r : add_gpu(&rows, node, gpu);
	}
	if (r == 0)
		sw_cli_rows_print(&rows, stdout, !values->noheader);
	sw_cli_rows_release(&rows);
	return r < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
}

/* Closes a node, opens it, or gives it up. */
static int change(struct sw_client *client, const struct values *values, struct sw_err *err)
{
	bool drain = strcmp(values->action, "drain") == 0, removes = strcmp(values->action, "remove") == 0;
	SW_JSON *answer = NULL;
	SW_JSON *body = removes ? json_pack("{s:s, s:b}", "name", values->node, "removed", 1)
				: json_pack("{s:s, s:b}", "name", values->node, "closed", (int)drain);
	if (body == NULL || (values->reason != NULL && json_object_set_new(body, "reason", json_string(values->reason)) != 0))
		return sw_err_set(err, SW_EINPUT, "the node's name or the reason is not UTF-8");
	int r = sw_client_post(client, "/v1/nodes", body, &answer, err);
	if (r < 0)
		return r;
	if (values->json)
		return sw_cli_print_json(answer, err);
	if (removes) {
		printf("%s is removed: its jobs have ended as lost (NODE_FAIL); those with --on-lost restart start anew when their lease "
		       "is over\n",
		       sw_cli_text(answer, "name", "?"));
		sw_cli_print_note("what ran there may still be running: nothing can stop it until the node's agent is back");
		return 0;
	}
	printf("%s %s\n", sw_cli_text(answer, "name", "?"), drain ? "takes no more jobs; those that run there go on" : "takes jobs");
	return 0;
}

static int check(const struct values *values, struct sw_err *err)
{
	bool known = values->action == NULL || strcmp(values->action, "drain") == 0 || strcmp(values->action, "resume") == 0 ||
		     strcmp(values->action, "remove") == 0;
	if (known && (values->action == NULL) == (values->node == NULL) &&
	    (values->reason == NULL || (values->action != NULL && strcmp(values->action, "resume") != 0)))
		return 0;
	sw_err_set(err, SW_EINPUT, "'sharewell nodes %.60s' cannot be done", values->action != NULL ? values->action : "--reason");
	sw_err_detail(err, !known		  ? "it takes drain, resume or remove"
			   : values->node == NULL ? "it takes the name of a node"
						  : "--reason goes with drain and remove");
	sw_err_hint(err, "For example: sharewell nodes drain gpu-07 --reason 'new fans'");
	return SW_EINPUT;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_JSON *answer = NULL;
	int r = check(values, err);
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	if (r == 0 && values->action != NULL)
		return change(client, values, err);
	r = r < 0 ? r : sw_client_get(client, "/v1/nodes", &answer, err);
	if (r < 0)
		return r;
	return values->json ? sw_cli_print_json(answer, err) : print(answer, values, err);
}

static const struct sw_cli_option options[] = {
	{"gpus", 'g', .about = "one line for each GPU, with its last figures", .offset = offsetof(struct values, gpus)},
	{"reason", .kind = SW_CLI_TEXT, .argument = "TEXT", .about = "why a node is drained or removed, shown in lists",
	 .offset = offsetof(struct values, reason)},
	SW_CLI_OPTION_NOHEADER(struct values),
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"ACTION", .kind = SW_CLI_TEXT,
	 .about =
		 "drain: the node takes no more jobs; resume: it does again; remove: a node that does not answer is given up. Without one, "
		 "all are listed",
	 .offset = offsetof(struct values, action)},
	{"NODE", .kind = SW_CLI_TEXT, .about = "which one", .offset = offsetof(struct values, node)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell nodes", "see the nodes and how many of their GPUs are free"},
	{"sharewell nodes --gpus", "see what every GPU does"},
	{"sharewell nodes drain gpu-07 --reason fans", "let the jobs of a node finish and send it no others"},
	{"sharewell nodes remove gpu-07 --reason fire", "give up a node that will not come back, with its jobs"},
};

const struct sw_cli_command sw_cli_nodes = {
	.name = "nodes",
	.about = "list nodes and their GPUs; close one to new jobs",
	.text = "States: idle (all GPUs are free), mix (some), alloc (none), drain, drng, shut (none of its GPUs takes jobs), unreachable, "
		"down*. Nodes in drain and drng are closed to new jobs; in drng some jobs still run. The agent of a node that is "
		"unreachable is not heard; its jobs go on, as far as is known, and keep their GPUs. GPUs that processes outside the queue "
		"use take no jobs while those stay. Nor do GPUs that do not answer their driver, and those that the operator keeps back. "
		"'remove' gives up a node that is unreachable: its jobs end as lost, with the state NODE_FAIL. Those with --on-lost "
		"restart "
		"start anew elsewhere when their lease is over. What ran there may still be running; if the node comes back, it is "
		"stopped. "
		"A node on which jobs keep failing for reasons of its own is closed, while others stay open. 'resume' opens it. Only "
		"operators drain, resume and remove.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
