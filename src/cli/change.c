/* sharewell cancel, suspend, resume, requeue, hold, release: one word to the controller for each job. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/live.h"
#include "cli/message.h"

struct values {
	struct sw_cli_texts jobs;
	const char *controller;
	bool json, quiet;
};

static int change_one(struct sw_cli_client *client, const char *verb, uint64_t id, const struct values *values, struct sw_err *err)
{
	SW_JSON *job = NULL;
	char path[64];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/%s", id, verb);
	int r = sw_cli_client_post(client, path, NULL, &job, err);
	return r == 0 && values->json ? sw_cli_print_json(job, err) : r;
}

/* All of them are tried; the first failure decides the exit status. */
static int change(const char *verb, const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_cli_client_freep) struct sw_cli_client *client = NULL;
	sw_cli_ids ids = {0};
	int first = sw_cli_job_ids(&values->jobs, &ids, err);
	first = first < 0 ? first : sw_cli_client_open(values->controller, &client, err);
	for (size_t i = 0; client != NULL && i < ids.count; i++) {
		struct sw_err problem = {0};
		int r = change_one(client, verb, ids.items[i], values, &problem);
		if (r == 0)
			continue;
		if (first == 0) {
			first = r;
			*err = problem;
		} else {
			sw_cli_print_error(&problem);
		}
		if (sw_cli_client_is_away(client))
			break;
	}
	sw_vec_free(&ids);
	return first;
}

static const struct sw_cli_option options[] = {
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"JOB", .kind = SW_CLI_TEXTS, .required = true, .about = "numbers, or ranges such as 12-15",
	 .offset = offsetof(struct values, jobs)},
};

#define CHANGE(verb, title, sentence, purpose)                                    \
	static int run_##verb(const struct sw_cli_call *call, struct sw_err *err) \
	{                                                                         \
		return change(#verb, call, err);                                  \
	}                                                                         \
	static const struct sw_cli_example examples_##verb[] = {                  \
		{"sharewell " #verb " 12", purpose},                              \
	};                                                                        \
	const struct sw_cli_command sw_cli_##verb##_jobs = {                      \
		.name = #verb,                                                    \
		.about = title,                                                   \
		.text = sentence,                                                 \
		SW_CLI_OPTIONS(options),                                          \
		SW_CLI_OPERANDS(operands),                                        \
		SW_CLI_EXAMPLES(examples_##verb),                                 \
		.values_size = sizeof(struct values),                             \
		.run = run_##verb,                                                \
	}

CHANGE(cancel, "end jobs for good",
       "A job that runs gets its signal (TERM unless it asked for another), then its grace time, then SIGKILL, with all its processes.",
       "end job 12");
CHANGE(suspend, "take jobs off their GPUs until they are resumed",
       "A job that was submitted with --preempt suspend stands still with all its processes and goes on where it was. It keeps its memory, "
       "of "
       "the GPU too; where others need that, and for "
       "every other job, suspending is stopping: it gets its signal and its grace time, and starts anew later.",
       "let others use the GPUs of job 12");
CHANGE(resume, "let suspended or held jobs go on", NULL, "let job 12 go on as soon as there is room");
CHANGE(requeue, "stop running jobs and let them start anew", NULL, "run job 12 again from the beginning, or from its own checkpoint");
CHANGE(hold, "keep jobs from running until they are released", NULL, "keep job 12 waiting");
CHANGE(release, "let held jobs compete again", NULL, "let job 12 run when its turn comes");
