/* sharewell move: jobs that go on on other GPUs of their node, without a restart. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/connect.h"
#include "cli/live.h"
#include "cli/message.h"

#define GPUS_MAX 64

struct values {
	struct sw_cli_texts jobs;
	const char *gpu, *controller;
	bool no_wait, json;
};

/* "1,2" as numbers. */
static int make_body(const char *list, json_t **ret_body, struct sw_err *err)
{
	SW_JSON *body = json_object(), *gpus = json_array();
	const char *rest = list, *word;
	size_t size;
	bool good = list == NULL || (list[0] != '\0' && list[strlen(list) - 1] != ',');
	while (list != NULL && good && sw_text_next(&rest, &word, &size)) {
		uint64_t gpu = 0;
		good = sw_parse_u64(word, size, &gpu) == 0 && gpu < GPUS_MAX;
		json_array_append_new(gpus, json_integer((json_int_t)gpu));
	}
	if (!good) {
		sw_err_set(err, SW_EINPUT, "--gpu cannot be '%.60s'", list);
		sw_err_detail(err, "it takes the numbers of GPUs on the job's node, such as 1 or 2,3");
		return SW_EINPUT;
	}
	if (body == NULL || gpus == NULL || (list != NULL && json_object_set(body, "gpus", gpus) != 0))
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*ret_body = json_incref(body);
	return 0;
}

static const char *name_gpus(json_t *job, char *text, size_t size)
{
	size_t index, used = 0;
	json_t *gpu;
	text[0] = '\0';
	json_array_foreach(json_object_get(job, "gpu_indexes"), index, gpu)
	{
		if (used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%" JSON_INTEGER_FORMAT, index > 0 ? ", " : "",
						 json_integer_value(gpu));
	}
	return text;
}

struct wish {
	const struct values *values;
	json_t *body;
};

static bool differ(const json_t *a, const json_t *b, const char *key)
{
	return !json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* No answer came: whether the controller took the move is seen from the job, as soon as
 * it can be asked again. */
static int find_out(struct sw_client *client, uint64_t id, const json_t *before, json_t **ret_job, struct sw_err *err)
{
	SW_JSON *job = NULL;
	char gpus[300];
	sw_cli_print_note("%s; looking whether job %" PRIu64 " was moved", err->fact, id);
	sw_err_clear(err);
	int r = sw_cli_await_job(client, id, &job, err);
	if (r < 0)
		return r;
	/* One that was on its way before was sent by another command. */
	bool same_run = !differ(before, job, "epoch");
	bool set_out = json_is_true(json_object_get(job, "moving")) && !json_is_true(json_object_get(before, "moving"));
	if (same_run && (set_out || differ(before, job, "gpu_indexes") || differ(before, job, "unmoved"))) {
		*ret_job = SW_TAKE(job);
		return 0;
	}
	sw_err_set(err, SW_EIO, "job %" PRIu64 " was not moved", id);
	sw_err_detail(err, "the controller did not come to it; the job is on gpu %s of %s", name_gpus(job, gpus, sizeof gpus),
		      sw_cli_text(job, "node", "?"));
	sw_err_hint(err, "Ask again.");
	return SW_EIO;
}

static int order(struct sw_client *client, uint64_t id, const json_t *body, json_t **ret_job, struct sw_err *err)
{
	SW_JSON *before = NULL;
	char path[64];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/move", id);
	int r = sw_cli_get_job(client, id, &before, err);
	r = r < 0 ? r : sw_client_post(client, path, body, ret_job, err);
	return r < 0 && before != NULL && sw_client_is_unsure(client) ? find_out(client, id, before, ret_job, err) : r;
}

static int move_one(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	const struct wish *wish = user;
	SW_JSON *job = NULL;
	char gpus[300];
	int r = order(client, id, wish->body, &job, err);
	if (r == 0 && !wish->values->no_wait)
		r = sw_cli_wait_move(client, id, &job, err);
	if (r < 0)
		return r;
	const char *unmoved = json_string_value(json_object_get(job, "unmoved"));
	if (unmoved != NULL) {
		sw_err_set(err, SW_EIO, "job %" PRIu64 " could not be moved", id);
		sw_err_detail(err, "%s", unmoved);
		sw_err_hint(err, "'sharewell show %" PRIu64 "' says where it is.", id);
		return SW_EIO;
	}
	const char *state = json_string_value(json_object_get(job, "state"));
	if (state == NULL || (strcmp(state, "R") != 0 && strcmp(state, "S") != 0)) {
		sw_err_set(err, SW_EIO, "job %" PRIu64 " does not run any more", id);
		sw_err_hint(err, "'sharewell show %" PRIu64 "' says what has become of it.", id);
		return SW_EIO;
	}
	if (wish->values->json)
		return sw_cli_print_json(job, err);
	const char *node = json_string_value(json_object_get(job, "node"));
	bool moving = json_is_true(json_object_get(job, "moving"));
	printf("Job %" PRIu64 " %s gpu %s of %s\n", id, moving ? "goes to" : "is on", name_gpus(job, gpus, sizeof gpus),
	       node != NULL ? node : "?");
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_JSON *body = NULL;
	sw_cli_ids ids = {0};
	int r = make_body(values->gpu, &body, err);
	r = r < 0 ? r : sw_cli_job_ids(&values->jobs, &ids, err);
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	r = r < 0 ? r : sw_cli_try_jobs(client, &ids, move_one, &(struct wish){values, body}, err);
	sw_vec_free(&ids);
	return r;
}

static const struct sw_cli_option options[] = {
	{"gpu", .kind = SW_CLI_TEXT, .argument = "LIST",
	 .about = "where to: numbers of GPUs on its node, as many as it has, such as 1 or 2,3; by default any that are free",
	 .offset = offsetof(struct values, gpu)},
	{"no-wait", .kind = SW_CLI_FLAG, .about = "return as soon as it is on its way", .offset = offsetof(struct values, no_wait)},
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	SW_CLI_OPERAND_JOBS(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell move 12", "let job 12 go on on other GPUs of its node that are free"},
	{"sharewell move 12 --gpu 3", "let it go on on GPU 3"},
	{"sharewell move 12 --gpu 2,3 --no-wait", "the same for a job of two GPUs, and do not wait for it"},
};

const struct sw_cli_command sw_cli_move_jobs = {
	.name = "move",
	.about = "let running jobs go on on other GPUs of their node, without a restart",
	.text = "The job stands still for as long as its memory takes to leave its GPUs and to come back on the others. Its processes "
		"stay, "
		"and its next runs start wherever the scheduler says. This needs the GPU runtime and a driver that can take processes off "
		"their GPUs (NVIDIA's from 580 on). The GPUs must be of one kind, and the job must have one process on them. Where it "
		"cannot be, the job goes on where it was, and why is said.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
