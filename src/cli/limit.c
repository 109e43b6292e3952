/* sharewell limit: what jobs may have of their GPUs, also while they run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/job.h"
#include "base/number.h"
#include "cli/connect.h"
#include "cli/live.h"

struct values {
	struct sw_cli_texts jobs;
	const char *gpu_memory, *compute, *controller;
	bool json;
};

static int refuse(const char *option, const char *word, const char *detail, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", option, word);
	sw_err_detail(err, "%s", detail);
	return SW_EINPUT;
}

static int add_memory(const char *word, json_t *body, struct sw_err *err)
{
	uint64_t bytes = 0;
	bool lifts = strcmp(word, "none") == 0;
	if (!lifts && (sw_parse_bytes(word, strlen(word), &bytes) < 0 || bytes > SW_JOB_BYTES_MAX))
		return refuse("gpu-memory", word, "it takes a size such as 10G or 512M, or none for no limit", err);
	if (!lifts && bytes < SW_LIMIT_LEAST_BYTES) {
		char least[32], detail[96];
		snprintf(detail, sizeof detail, "the driver alone needs %s; none is no limit",
			 sw_format_bytes(SW_LIMIT_LEAST_BYTES, least));
		return refuse("gpu-memory", word, detail, err);
	}
	json_t *value = lifts ? json_null() : json_integer((json_int_t)bytes);
	return json_object_set_new(body, "gpu_memory", value) == 0 ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int add_compute(const char *word, json_t *body, struct sw_err *err)
{
	uint64_t percent = 0;
	bool lifts = strcmp(word, "none") == 0;
	size_t size = strlen(word);
	size -= size > 1 && word[size - 1] == '%';
	if (!lifts && (sw_parse_u64(word, size, &percent) < 0 || percent < 1 || percent > 100))
		return refuse("compute", word, "it takes a percentage of the GPU's time from 1 to 100, or none for no limit", err);
	json_t *value = lifts ? json_null() : json_integer((json_int_t)percent);
	return json_object_set_new(body, "compute", value) == 0 ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int make_body(const struct values *values, json_t **ret_body, struct sw_err *err)
{
	if (values->gpu_memory == NULL && values->compute == NULL) {
		sw_err_set(err, SW_EINPUT, "'sharewell limit' needs a limit");
		sw_err_hint(err, "For example: sharewell limit 12 --gpu-memory 10G --compute 30");
		return SW_EINPUT;
	}
	SW_JSON *body = json_object();
	if (body == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = values->gpu_memory != NULL ? add_memory(values->gpu_memory, body, err) : 0;
	if (r == 0 && values->compute != NULL)
		r = add_compute(values->compute, body, err);
	if (r == 0)
		*ret_body = json_incref(body);
	return r;
}

struct wish {
	const struct values *values;
	json_t *body;
};

static int limit_one(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	const struct wish *wish = user;
	SW_JSON *job = NULL;
	char path[64], text[160];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/limit", id);
	int r = sw_client_post(client, path, wish->body, &job, err);
	if (r < 0 || wish->values->json)
		return r < 0 ? r : sw_cli_print_json(job, err);
	printf("Job %" PRIu64 " may have %s\n", id, sw_cli_limit(job, text, sizeof text));
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_JSON *body = NULL;
	sw_cli_ids ids = {0};
	int r = make_body(values, &body, err);
	r = r < 0 ? r : sw_cli_job_ids(&values->jobs, &ids, err);
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	r = r < 0 ? r : sw_cli_try_jobs(client, &ids, limit_one, &(struct wish){values, body}, err);
	sw_vec_free(&ids);
	return r;
}

static const struct sw_cli_option options[] = {
	{"gpu-memory", .kind = SW_CLI_TEXT, .argument = "SIZE", .about = "of each of its GPUs: 10G, 512M; none: no limit",
	 .offset = offsetof(struct values, gpu_memory)},
	{"compute", .kind = SW_CLI_TEXT, .argument = "PERCENT", .about = "of each GPU's time, 1 to 100; none: no limit",
	 .offset = offsetof(struct values, compute)},
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	SW_CLI_OPERAND_JOBS(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell limit 12 --gpu-memory 10G",
	 "let job 12 keep at most 10 GiB on each of its GPUs; the rest of its memory moves to the host"},
	{"sharewell limit 12 --compute 30", "let it have 30 % of their time"},
	{"sharewell limit 12 --gpu-memory none --compute none", "let it have all that it got again"},
};

const struct sw_cli_command sw_cli_limit_jobs = {
	.name = "limit",
	.about = "say what a job may have of its GPUs, also while it runs",
	.text = "A limit acts at once on a job that runs, without stopping it, and lasts for the job's life: its next runs have it too. "
		"What is "
		"not named stays as it "
		"was. Memory over the limit moves to the memory of the host and comes back when the limit is raised. The scheduler "
		"goes on keeping for the job "
		"what it asked for, so that it can be given back.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
