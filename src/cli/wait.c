/* sharewell wait */
#include <inttypes.h>
#include <stdio.h>

#include "cli/connect.h"
#include "cli/live.h"
#include "cli/message.h"
#include "cli/waiting.h"

struct values {
	struct sw_cli_texts jobs;
	const char *controller;
	bool json, quiet;
};

static int wait_for(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	const struct values *values = user;
	SW_JSON *job = NULL;
	int r = values->json || values->quiet ? sw_cli_wait_job(client, id, &job, err)
					      : sw_cli_waiting_wait(client, values->controller, id, &job, err);
	if (r < 0)
		return r;
	if (values->json)
		r = sw_cli_print_json(job, err);
	else if (!values->quiet)
		printf("%" PRIu64 " %s %" PRId64 ":%" PRId64 "\n", id, sw_cli_text(job, "state_long", "?"), sw_cli_number(job, "code", 0),
		       sw_cli_number(job, "signal", 0));
	fflush(stdout);
	return r < 0 ? r : sw_cli_job_exit(job);
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	struct values values = *(const struct values *)call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	int r = sw_cli_connect(values.controller, &client, err);
	return r < 0 ? r : sw_cli_each_job(client, &values.jobs, wait_for, &values, err);
}

static const struct sw_cli_option options[] = {
	{"quiet", 'q', .about = "print nothing", .offset = offsetof(struct values, quiet)},
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	SW_CLI_OPERAND_JOBS(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell wait 12 13", "wait until both have ended, and end with the worse exit status"},
};

const struct sw_cli_command sw_cli_wait = {
	.name = "wait",
	.about = "wait until jobs have ended",
	.text = "Prints number, state and exit code of each, in their order; the exit status is the highest of theirs. It waits through "
		"restarts of the controller. Standard error says why the job that is next in their order does not run. With --quiet or "
		"--json it does not, and nothing is polled.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
