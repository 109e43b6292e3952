/* sharewell agent */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/supervisor/supervisor.h"
#include "api/routes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "cli/daemon.h"
#include "cli/gpu_rules.h"
#include "cli/places.h"
#include "client/token.h"
#include "failure/failure.h"

struct values {
	const char *controller, *state, *gpus, *node, *token_file, *ca, *failures;
	struct sw_cli_gpu_rules rules;
};

/* The agent's token: $SHAREWELL_TOKEN, or that of a file. Over a UNIX socket none is needed. */
static int find_token(const struct values *values, const struct sw_cli_places *places, char **ret_token, struct sw_err *err)
{
	const char *given = getenv("SHAREWELL_TOKEN");
	struct sw_err ignored = {0};
	if (strncmp(values->controller, "unix:", 5) == 0)
		return 0;
	if (given != NULL && given[0] != '\0') {
		*ret_token = strdup(given);
		return *ret_token != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	if (values->token_file != NULL)
		return sw_token_first(values->token_file, SW_ROLE_AGENT, ret_token, err);
	/* Beside a controller on the same machine; elsewhere the controller will
	 * say that it wants one. */
	sw_token_first(places->tokens, SW_ROLE_AGENT, ret_token, &ignored);
	return 0;
}

/* The small program that looks after runs, where it is installed; otherwise this one does it. */
static const char *find_supervisor(char path[PATH_MAX])
{
	static const char *const places[] = {"sharewell-supervisor", "../libexec/sharewell-supervisor"};
	char own[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", own, sizeof own - 1);
	if (size <= 0)
		return NULL;
	own[size] = '\0';
	int folder = (int)(strrchr(own, '/') - own);
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
		if (snprintf(path, PATH_MAX, "%.*s/%s", folder, own, places[i]) < PATH_MAX && access(path, X_OK) == 0)
			return path;
	return NULL;
}

/* Supervisors read it when a run has failed: what is wrong with it is found now. */
static int use_failures(const char *path, struct sw_err *err)
{
	SW_CLEANUP(sw_failure_freep) struct sw_failure_table *table = NULL;
	char whole[PATH_MAX];
	int r = path != NULL ? sw_failure_load(path, &table, err) : 0;
	if (r == 0 && path != NULL && (realpath(path, whole) == NULL || setenv(SW_FAILURES_VARIABLE, whole, 1) != 0))
		return sw_err_set(err, SW_EIO, "cannot use '%.200s'", path);
	return r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	char supervisor[PATH_MAX];
	SW_CLEANUP(sw_freep) char *token = NULL;
	struct sw_cli_places places;
	sw_cli_daemon_begin();
	int r = sw_cli_places(values->state, false, &places, err);
	r = r < 0 ? r : find_token(values, &places, &token, err);
	r = r < 0 ? r : use_failures(values->failures != NULL ? values->failures : getenv(SW_FAILURES_VARIABLE), err);
	if (r < 0)
		return r;
	struct sw_agent_options options;
	sw_agent_options_defaults(&options);
	options.node = values->node;
	options.state = places.state;
	options.controller = values->controller;
	options.token = token;
	options.ca_file = values->ca != NULL ? values->ca : getenv("SHAREWELL_CA");
	options.gpus = values->gpus;
	r = sw_cli_gpu_rules_read(&values->rules, &options, err);
	if (r < 0)
		return r;
	options.cgroup = "auto";
	options.supervisor = find_supervisor(supervisor);
	options.keep_logs_bytes = SW_CLI_KEEP_LOGS;
	options.signals = true;
	options.say = sw_cli_daemon_note;
	return sw_agent_run(&options, err);
}

static const struct sw_cli_option options[] = {
	{"controller", .kind = SW_CLI_TEXT, .required = true, .argument = "PLACE",
	 .about = "https://HOST:PORT, http://127.0.0.1:PORT or unix:/PATH", .offset = offsetof(struct values, controller)},
	{"gpus", .kind = SW_CLI_TEXT, .is_path = true, .argument = "SOURCE", .preset = "auto",
	 .about = "auto (what the driver has), none, or a file that describes GPUs", .offset = offsetof(struct values, gpus)},
	{"state", .kind = SW_CLI_TEXT, .is_path = true, .argument = "DIR",
	 .about = "where the runs are kept; below $XDG_STATE_HOME by default", .offset = offsetof(struct values, state)},
	{"node", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "what this node is called; the machine's name by default",
	 .offset = offsetof(struct values, node)},
	{"failures", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "classes of failures of your own, ahead of the built-in ones; the controller needs it too. Else $SHAREWELL_FAILURES",
	 .offset = offsetof(struct values, failures)},
	SW_CLI_GPU_RULES_OPTIONS(struct values),
	{"token-file", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "a file of tokens with a line of role agent; else $SHAREWELL_TOKEN", .offset = offsetof(struct values, token_file)},
	{"ca", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "which controller is trusted: by a file of certificates, or by the fingerprint that the controller prints; else "
		  "$SHAREWELL_CA, else what the system trusts",
	 .offset = offsetof(struct values, ca)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell agent --controller unix:/run/sharewell/controller.sock", "offer the GPUs of the controller's own machine"},
	{"sharewell agent --controller https://login1:8443 --ca sha256//k1Zk0K...= --token-file agent.token",
	 "the same from another machine"},
	{"sharewell agent --controller unix:/run/sharewell/controller.sock --gpus gpus.yaml --node b",
	 "offer GPUs that do not exist, to try things"},
};

const struct sw_cli_command sw_cli_agent = {
	.name = "agent",
	.about = "run the agent alone: offers this machine's GPUs to a controller",
	.text = "Every job has a supervisor of its own, which outlives the agent: jobs go on when the agent or the controller is "
		"restarted.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
