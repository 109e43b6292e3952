/* sharewell why */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "base/text.h"
#include "cli/connect.h"
#include "cli/live.h"
#include "cli/starts.h"

struct values {
	struct sw_cli_texts jobs;
	const char *controller;
	bool json;
};

/* Of several jobs the estimates are asked for together, when the first of them waits. */
struct asking {
	json_t *starts;
	char *failed;  /* why there are no estimates; NULL */
	uint64_t only; /* the one job; 0: several */
	bool json;
};

/* Not of those that are on hold: that is up to people. */
static bool waits(const json_t *why)
{
	const char *state = sw_cli_text(why, "state", "");
	return (strcmp(state, "PD") == 0 || strcmp(state, "S") == 0) && !json_is_true(json_object_get(why, "held"));
}

static int explain(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	struct asking *asking = user;
	SW_JSON *why = NULL;
	char path[64], start[512];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/why", id);
	int r = sw_client_get(client, path, &why, err);
	if (r == 0 && waits(why)) {
		r = asking->starts == NULL ? sw_cli_starts_get(client, asking->only, &asking->starts, &asking->failed, err) : 0;
		if (r == 0 && sw_cli_starts_put(asking->starts, id, asking->failed, why) < 0)
			r = sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	if (r < 0 || asking->json)
		return r < 0 ? r : sw_cli_print_json(why, err);
	SW_CLEANUP(sw_freep) char *said = sw_cli_local_sentence(sw_cli_text(why, "why", "there is no answer"));
	SW_CLEANUP(sw_freep) char *clean = said != NULL ? sw_text_clean(said) : NULL;
	printf("job %" PRIu64 " (%s): %s\n", id, sw_cli_text(why, "state", "?"), clean != NULL ? clean : "");
	const json_t *estimate = waits(why) ? sw_cli_starts_find(asking->starts, id) : NULL;
	if (estimate != NULL)
		printf("  %s\n", sw_cli_starts_say(estimate, sw_now_real_ns(), start, sizeof start));
	else if (waits(why) && asking->failed != NULL)
		printf("  no estimate: %s\n", asking->failed);
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	struct asking asking = {.json = values->json};
	struct sw_err several = {0};
	if (values->jobs.count != 1 || sw_cli_job_id(values->jobs.items[0], &asking.only, &several) < 0)
		asking.only = 0;
	int r = sw_cli_connect(values->controller, &client, err);
	r = r < 0 ? r : sw_cli_each_job(client, &values->jobs, explain, &asking, err);
	json_decref(asking.starts);
	free(asking.failed);
	return r;
}

static const struct sw_cli_option options[] = {
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	SW_CLI_OPERAND_JOBS(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell why 12", "ask why job 12 does not run"},
};

const struct sw_cli_command sw_cli_why = {
	.name = "why",
	.about = "say in one sentence why a job waits, or how it ended",
	.text = "Of a job that waits, also when it will probably start. The controller runs a copy of its scheduler ahead from the "
		"present, "
		"so all users get the same estimate. How long jobs run is taken from what their owners expect, or else from their time "
		"limits. Without these it is taken from earlier jobs of the same user and name, or else from all earlier jobs. The "
		"estimate "
		"says which of these it rests on.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
