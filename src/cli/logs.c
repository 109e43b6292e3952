/* sharewell logs */
#include <inttypes.h>
#include <stdio.h>

#include "cli/connect.h"
#include "cli/live.h"
#include "cli/waiting.h"

struct values {
	const char *job, *controller;
	uint64_t tail, epoch;
	bool follow;
};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	char query[48] = "";
	uint64_t id;
	int64_t offset = values->tail > 0 ? -(int64_t)values->tail : 0;
	int r = sw_cli_job_id(values->job, &id, err);
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	if (r < 0)
		return r;
	if (values->epoch > 0)
		snprintf(query, sizeof query, "run=%" PRIu64 "&", values->epoch);
	struct sw_cli_waiting waiting = {0};
	if (values->follow && values->epoch == 0)
		r = sw_cli_waiting_tell(client, values->controller, id, &waiting, err);
	r = r < 0 ? r : sw_cli_copy_log(client, id, query, values->follow, &offset, err);
	sw_cli_waiting_release(&waiting);
	return r;
}

static const struct sw_cli_option options[] = {
	{"follow", 'f', .about = "stay until the job has ended, and print what it writes", .offset = offsetof(struct values, follow)},
	{"tail", .kind = SW_CLI_COUNT, .argument = "BYTES", .preset = "0", .least = 0, .most = INT64_MAX,
	 .about = "begin this many bytes before the end; 0: at the beginning", .offset = offsetof(struct values, tail)},
	{"run", .kind = SW_CLI_COUNT, .argument = "N", .preset = "0", .least = 0, .most = UINT32_MAX,
	 .about = "of its Nth run; 0: of the last", .offset = offsetof(struct values, epoch)},
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"JOB", .kind = SW_CLI_TEXT, .required = true, .about = "its number", .offset = offsetof(struct values, job)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell logs 12", "read what job 12 wrote"},
	{"sharewell logs -f 12", "see it as it is written"},
};

const struct sw_cli_command sw_cli_logs = {
	.name = "logs",
	.about = "print what a job wrote",
	.text = "With --follow, and unless --run names a run, why the job waits or is tried again is said on standard error.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
