/* sharewell run: submits, shows what the job writes, and ends as the job does. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/connect.h"
#include "cli/interrupt.h"
#include "cli/job_options.h"
#include "cli/live.h"
#include "cli/message.h"
#include "cli/waiting.h"

struct values {
	struct sw_cli_job_options job;
	const char *controller;
};
_Static_assert(offsetof(struct values, job) == 0, "the options of a job are found there");

static void say_how_it_ended(const json_t *job, uint64_t id)
{
	const json_t *failure = json_object_get(job, "failure");
	const char *reason = sw_cli_text(job, "reason", "");
	int64_t code = sw_cli_number(job, "code", 0);
	char with[48] = "";
	if (strcmp(sw_cli_text(job, "state", ""), "CD") == 0)
		return;
	if (code > 0)
		snprintf(with, sizeof with, " with exit code %" PRId64, code);
	if (json_is_object(failure))
		sw_cli_print_note("job %" PRIu64 ": %s%s: %s (%s)", id, sw_cli_text(job, "state_long", "?"), with,
				  sw_cli_text(failure, "says", ""), sw_cli_text(failure, "class", "?"));
	else
		sw_cli_print_note("job %" PRIu64 ": %s%s%s%s", id, sw_cli_text(job, "state_long", "?"), with, reason[0] != '\0' ? ": " : "",
				  reason);
}

static int detached(uint64_t id, struct sw_err *err)
{
	sw_err_clear(err);
	sw_cli_print_note("detached; job %" PRIu64 " goes on", id);
	sw_cli_print_note("'sharewell logs -f %" PRIu64 "' gets back to it, 'sharewell cancel %" PRIu64 "' ends it", id, id);
	return 128 + sw_cli_interrupted();
}

static int follow(struct sw_client *client, uint64_t id, bool shown, struct sw_err *err)
{
	SW_JSON *job = NULL;
	int64_t offset = 0;
	int r = shown ? sw_cli_copy_log(client, id, "", true, &offset, err) : 0;
	if (r == SW_ESTOPPED)
		return detached(id, err);
	/* Output that is not there (it never ran) is no reason not to tell how it ended. */
	sw_err_clear(err);
	r = sw_cli_wait_job(client, id, &job, err);
	if (r == SW_ESTOPPED)
		return detached(id, err);
	if (r < 0)
		return r;
	say_how_it_ended(job, id);
	return sw_cli_job_exit(job);
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_JSON *jobs = NULL, *answer = NULL;
	int r = sw_cli_job_build(&sw_cli_run, call, &jobs, err);
	if (r == 0 && (json_is_array(jobs) || json_object_get(jobs, "array") != NULL)) {
		sw_err_set(err, SW_EINPUT, "'sharewell run' runs one job");
		sw_err_hint(err, "'sharewell submit --wait' takes arrays and lists.");
		return SW_EINPUT;
	}
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	r = r < 0 ? r : sw_client_submit(client, jobs, &answer, err);
	if (r < 0)
		return r;
	sw_cli_catch_interrupts();
	uint64_t id = (uint64_t)sw_cli_number(answer, "id", 0);
	sw_cli_print_note("job %" PRIu64, id);
	struct sw_cli_waiting waiting;
	r = sw_cli_waiting_tell(client, values->controller, id, &waiting, err);
	r = r < 0 ? r : follow(client, id, json_object_get(jobs, "stdout") == NULL, err);
	sw_cli_waiting_release(&waiting);
	return r;
}

static const struct sw_cli_option options[] = {
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"COMMAND", .kind = SW_CLI_TEXTS, .is_path = true, .about = "as for 'sharewell submit'",
	 .offset = offsetof(struct values, job.words)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell run -- python train.py", "run a program on a GPU and see what it writes"},
	{"sharewell run -G 4 -t 30 -- ./test.sh", "run it on four GPUs for at most 30 minutes"},
};

const struct sw_cli_command sw_cli_run = {
	.name = "run",
	.about = "submit a job, show what it writes, and end as it does",
	.text = "The exit status is the job's; 128 and the number where a signal ended it. Why it waits, or is tried again, is said on "
		"standard "
		"error. Ctrl-C detaches: the job goes on.",
	.takes_job = true,
	.words_follow = true,
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
