/* sharewell cancel, suspend, resume, requeue, hold, release: one word to the controller. Jobs are
 * given by number or chosen by name, user or state, as scancel does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/request.h"
#include "base/text.h"
#include "cli/connect.h"
#include "cli/live.h"
#include "cli/message.h"

struct values {
	struct sw_cli_texts jobs;
	const char *name, *user, *states, *controller;
	bool json, deep, force;
};

/* What is done: its word, how it is told afterwards, and to jobs in which states by default. */
struct change {
	const char *name, *done, *states;
	bool held_only;
};

static bool chooses(const struct values *values)
{
	return values->name != NULL || values->user != NULL || values->states != NULL;
}

struct choice {
	const struct change *verb;
	sw_cli_ids *ids;
};

static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	const struct choice *choice = user;
	size_t i;
	json_t *job;
	json_array_foreach(jobs, i, job)
	{
		if (choice->verb->held_only && !json_is_true(json_object_get(job, "held")))
			continue;
		uint64_t *id = sw_vec_push(choice->ids);
		if (id == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		*id = (uint64_t)sw_cli_number(job, "id", 0);
	}
	return 0;
}

/* One's own jobs, unless a user is named: a name alone never ends other users' jobs. To be
 * cancelled the latest come first, so that none is gone because what it depended on went before it.
 * All else is done in their own order, which is that in which they queue again. */
static int choose(struct sw_client *client, const struct change *verb, const struct values *values, sw_cli_ids *ids, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *query = NULL;
	int r = sw_cli_query_add(&query, "state", values->states != NULL ? values->states : verb->states, err);
	r = r < 0 ? r : sw_cli_query_add(&query, "user", values->user != NULL ? values->user : "me", err);
	r = r < 0 ? r : sw_cli_query_add(&query, "name", values->name, err);
	r = r < 0 ? r : sw_cli_each_page(client, query, take_page, &(struct choice){verb, ids}, err);
	bool turns = strcmp(verb->name, "cancel") == 0;
	for (size_t i = 0, count = ids->count; r == 0 && turns && i < count / 2; i++) {
		uint64_t early = ids->items[i];
		ids->items[i] = ids->items[count - 1 - i];
		ids->items[count - 1 - i] = early;
	}
	return r;
}

static int find_jobs(struct sw_client *client, const struct change *verb, const struct values *values, sw_cli_ids *ids, struct sw_err *err)
{
	if (chooses(values) == (values->jobs.count > 0)) {
		sw_err_set(err, SW_EINPUT, "'sharewell %s' needs either numbers of jobs or a choice", verb->name);
		sw_err_hint(err, "'sharewell %s 12', or for example: sharewell %s --name 'train*' --state PD", verb->name, verb->name);
		return SW_EINPUT;
	}
	return chooses(values) ? choose(client, verb, values, ids, err) : sw_cli_job_ids(&values->jobs, ids, err);
}

struct wish {
	const struct change *verb;
	const struct values *values;
	bool alone; /* one job is changed */
	size_t done;
	const json_t *answers; /* about many jobs, in their order */
	size_t answered;
};

static void tell(const struct wish *wish, uint64_t id, bool changed)
{
	const struct change *verb = wish->verb;
	if (!changed)
		printf("Nothing to %s: job %" PRIu64 " is not %s\n", verb->name, id, verb->held_only ? "held by any user" : "running");
}

static int change_one(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	struct wish *wish = user;
	const struct values *values = wish->values;
	SW_JSON *job = NULL;
	char path[64];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/%s%s%s", id, wish->verb->name, values->deep ? "?deep=true" : "",
		 !values->force ? ""
		 : values->deep ? "&force=true"
				: "?force=true");
	int r = sw_client_post(client, path, NULL, &job, err);
	if (r < 0)
		return r;
	bool changed = !json_is_false(json_object_get(job, "changed"));
	wish->done += changed;
	if (values->json)
		return sw_cli_print_json(job, err);
	tell(wish, id, changed);
	const char *state = sw_cli_text(job, "state", "");
	if (wish->alone && strcmp(wish->verb->name, "hold") == 0 && (strcmp(state, "R") == 0 || strcmp(state, "CF") == 0))
		printf("Job %" PRIu64 " runs on: it is held once this run is over\n", id);
	return 0;
}

/* ---- many at once */

#define CHANGE_PATH "/v1/jobs/change"

/* As the controller shows a job that was changed alone. */
static int print_job(struct sw_client *client, uint64_t id, bool changed, struct sw_err *err)
{
	SW_JSON *job = NULL;
	int r = sw_cli_get_job(client, id, &job, err);
	if (r < 0)
		return r;
	json_object_del(job, "request");
	json_object_set_new(job, "changed", json_boolean(changed));
	return sw_cli_print_json(job, err);
}

/* Of the jobs that the controller answered about, the next. */
static int tell_next(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	struct wish *wish = user;
	const json_t *answer = json_array_get(wish->answers, wish->answered++);
	bool changed = json_is_true(json_object_get(answer, "changed"));
	wish->done += changed;
	if (json_is_true(json_object_get(answer, "ended"))) {
		sw_err_set(err, SW_EINPUT, "cannot %s job %" PRIu64, wish->verb->name, id);
		sw_err_detail(err, "it has ended");
		return SW_EINPUT;
	}
	if (wish->values->json)
		return print_job(client, id, changed, err);
	tell(wish, id, changed);
	return 0;
}

static int tell_all(struct sw_client *client, const json_t *answers, struct wish *wish, struct sw_err *err)
{
	sw_cli_ids ids = {0};
	size_t i;
	const json_t *answer;
	int r = sw_vec_reserve(&ids, json_array_size(answers)) < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
	json_array_foreach(answers, i, answer)
	{
		if (r == 0)
			*sw_vec_push(&ids) = (uint64_t)sw_cli_number(answer, "id", 0);
	}
	wish->answers = answers;
	wish->answered = 0;
	r = r < 0 ? r : sw_cli_try_jobs(client, &ids, tell_next, wish, err);
	sw_vec_free(&ids);
	return r;
}

/* One that has ended is no reason to leave the others uncancelled; and between the choice and
 * the word some may end. */
static json_t *make_body(const struct wish *wish, const uint64_t *ids, size_t count)
{
	bool skips = strcmp(wish->verb->name, "cancel") == 0 || chooses(wish->values);
	json_t *jobs = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(jobs, json_integer((json_int_t)ids[i]));
	json_t *body = json_pack("{s:s, s:o, s:b}", "verb", wish->verb->name, "jobs", jobs, "skip_ended", skips);
	if (body != NULL && wish->values->deep)
		json_object_set_new(body, "deep", json_true());
	if (body != NULL && wish->values->force)
		json_object_set_new(body, "force", json_true());
	return body;
}

/* Controllers of earlier versions know of one job at a time. */
static bool is_too_old(int r, const struct sw_err *err)
{
	return r == SW_ENOTFOUND && strstr(err->fact, CHANGE_PATH) != NULL;
}

/* All of them or none. *ret_done: the controller has done it, and a failure is
 * of jobs that had ended. */
static int change_some(struct sw_client *client, const uint64_t *ids, size_t count, struct wish *wish, bool *ret_done, struct sw_err *err)
{
	*ret_done = false;
	SW_JSON *answer = NULL;
	SW_JSON *body = make_body(wish, ids, count);
	if (body == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_client_post(client, CHANGE_PATH, body, &answer, err);
	*ret_done = r == 0;
	return r < 0 ? r : tell_all(client, json_object_get(answer, "jobs"), wish, err);
}

/* As many as the controller takes at a time. As with one request for each, the first failure is the
 * result and later ones are printed. */
static int change_many(struct sw_client *client, const sw_cli_ids *ids, struct wish *wish, struct sw_err *err)
{
	int first = 0;
	bool done = true;
	for (size_t i = 0; i < ids->count && done; i += SW_REQUEST_CHANGES_MAX) {
		struct sw_err problem = {0};
		size_t left = ids->count - i;
		size_t count = left < SW_REQUEST_CHANGES_MAX ? left : SW_REQUEST_CHANGES_MAX;
		int r = change_some(client, ids->items + i, count, wish, &done, &problem);
		if (i == 0 && is_too_old(r, &problem))
			return sw_cli_try_jobs(client, ids, change_one, wish, err);
		if (r < 0 && first < 0)
			sw_cli_print_error(&problem);
		if (r < 0 && first == 0) {
			first = r;
			*err = problem;
		}
	}
	return first;
}

static int change(const struct change *verb, const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	sw_cli_ids ids = {0};
	struct wish wish = {.verb = verb, .values = values};
	char jobs[SW_TEXT_SIZE];
	int r = sw_cli_connect(values->controller, &client, err);
	r = r < 0 ? r : find_jobs(client, verb, values, &ids, err);
	bool found = r == 0;
	wish.alone = ids.count == 1;
	if (found)
		r = ids.count > 1 ? change_many(client, &ids, &wish, err) : sw_cli_try_jobs(client, &ids, change_one, &wish, err);
	if (found && !values->json && ids.count == 1 && wish.done == 1)
		printf("%s job %" PRIu64 "\n", verb->done, ids.items[0]);
	else if (found && !values->json && (wish.done > 0 || chooses(values)))
		printf("%s %s\n", verb->done, sw_text_plural(wish.done, "job", "jobs", jobs));
	if (!values->json && ids.count > 1 && wish.done > 0 && strcmp(verb->name, "hold") == 0)
		printf("Those that run go on: they are held once their runs are over\n");
	sw_vec_free(&ids);
	return r;
}

/* The first two are for suspend alone. */
static const struct sw_cli_option options[] = {
	{"deep", .kind = SW_CLI_FLAG,
	 .about = "off their GPUs whole, contexts and all, if the driver can; others may then have all the memory",
	 .offset = offsetof(struct values, deep)},
	{"force", .kind = SW_CLI_FLAG, .about = "also those that would lose their run and start anew later; without this, that is refused",
	 .offset = offsetof(struct values, force)},
	{"name", 'n', .kind = SW_CLI_TEXT, .argument = "NAME", .about = "jobs with this name; a * at the end stands for anything",
	 .offset = offsetof(struct values, name)},
	{"user", 'u', .kind = SW_CLI_TEXT, .argument = "NAME",
	 .about = "this user's jobs, which only operators may change; your own by default", .offset = offsetof(struct values, user)},
	{"state", 't', .kind = SW_CLI_TEXT, .argument = "LIST", .about = "jobs in these states: PD,R or RUNNING",
	 .offset = offsetof(struct values, states)},
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"JOB", .kind = SW_CLI_TEXTS, .about = "numbers, or ranges such as 12-15; without any, --name, --user or --state choose",
	 .offset = offsetof(struct values, jobs)},
};

#define CHANGE(verb, past, usual, held, title, sentence, purpose, from)                                                                 \
	static int run_##verb(const struct sw_cli_call *call, struct sw_err *err)                                                       \
	{                                                                                                                               \
		return change(&(const struct change){#verb, past, usual, held}, call, err);                                             \
	}                                                                                                                               \
	static const struct sw_cli_example examples_##verb[] = {                                                                        \
		{"sharewell " #verb " 12", purpose},                                                                                    \
		{"sharewell " #verb " --name 'train*'", "the same to all your jobs whose names begin so, and hear how many they were"}, \
	};                                                                                                                              \
	const struct sw_cli_command sw_cli_##verb##_jobs = {                                                                            \
		.name = #verb,                                                                                                          \
		.about = title,                                                                                                         \
		.text = sentence,                                                                                                       \
		.options = options + (from),                                                                                            \
		.option_count = sizeof options / sizeof options[0] - (from),                                                            \
		SW_CLI_OPERANDS(operands),                                                                                              \
		SW_CLI_EXAMPLES(examples_##verb),                                                                                       \
		.values_size = sizeof(struct values),                                                                                   \
		.run = run_##verb,                                                                                                      \
	}

#define ALL_OR_NONE "Of jobs that are named, all are changed or none: where one is not there, is not yours or has ended, nothing happens."

CHANGE(cancel, "Cancelled", "PD,CF,R,S,UN", false, "end jobs for good",
       "A job that runs gets its signal (TERM unless it asked for another), then its grace time, then SIGKILL, with all its processes. "
       "Of jobs that are named, all are cancelled or none: where one is not there or not yours, nothing happens. Those that have ended "
       "already are told, and do not keep the others.",
       "end job 12", 2);
CHANGE(suspend, "Suspended", "CF,R", false, "take jobs off their GPUs until they are resumed",
       "A job stands still with all its processes and goes on where it was. Its GPU memory is copied to the host by the GPU runtime. A job "
       "without the runtime stands still only if it was submitted with --preempt suspend, and keeps its GPU memory. With --deep the driver "
       "takes off the GPU what the runtime leaves there, and others may then have all of its memory. 'sharewell show' says when it is off, "
       "or why that cannot be; then it is suspended as usual. A job that would lose its run (such as one with --preempt never or requeue) "
       "is not suspended without --force. The refusal says how much it would lose. " ALL_OR_NONE,
       "let others use the GPUs of job 12", 0);
CHANGE(resume, "Resumed", "active", true, "let suspended or held jobs go on", ALL_OR_NONE, "let job 12 go on as soon as there is room", 2);
CHANGE(requeue, "Requeued", "CF,R", false, "stop running jobs and let them start anew", ALL_OR_NONE,
       "run job 12 again from the beginning, or from its own checkpoint", 2);
CHANGE(hold, "Held", "PD", false, "keep jobs from starting until they are released",
       "A run goes on: the job is held once that is over, if it would start again. " ALL_OR_NONE, "keep job 12 waiting", 2);
CHANGE(release, "Released", "active", true, "let held jobs compete again", ALL_OR_NONE, "let job 12 run when its turn comes", 2);
