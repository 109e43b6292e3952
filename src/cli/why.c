/* sharewell why */
#include <inttypes.h>
#include <stdio.h>

#include "cli/live.h"
#include "sim/report/text.h"

struct values {
	struct sw_cli_texts jobs;
	const char *controller;
	bool json;
};

static int explain(struct sw_cli_client *client, uint64_t id, bool json, struct sw_err *err)
{
	SW_JSON *why = NULL;
	char path[64];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/why", id);
	int r = sw_cli_client_get(client, path, &why, err);
	if (r < 0 || json)
		return r < 0 ? r : sw_cli_print_json(why, err);
	SW_CLEANUP(sw_freep) char *clean = sw_text_clean(sw_cli_text(why, "why", "there is no answer"));
	printf("job %" PRIu64 " (%s): %s\n", id, sw_cli_text(why, "state", "?"), clean != NULL ? clean : "");
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_cli_client_freep) struct sw_cli_client *client = NULL;
	sw_cli_ids ids = {0};
	int r = sw_cli_job_ids(&values->jobs, &ids, err);
	r = r < 0 ? r : sw_cli_client_open(values->controller, &client, err);
	for (size_t i = 0; r == 0 && i < ids.count; i++)
		r = explain(client, ids.items[i], values->json, err);
	sw_vec_free(&ids);
	return r;
}

static const struct sw_cli_option options[] = {
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"JOB", .kind = SW_CLI_TEXTS, .required = true, .about = "numbers, or ranges such as 12-15",
	 .offset = offsetof(struct values, jobs)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell why 12", "ask why job 12 does not run"},
};

const struct sw_cli_command sw_cli_why = {
	.name = "why",
	.about = "say in one sentence why a job waits, or how it ended",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
