/* sharewell show: all that is known of a job, as scontrol shows it, one fact in a line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/job.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/connect.h"
#include "cli/live.h"

struct values {
	struct sw_cli_texts jobs;
	const char *controller;
	bool json;
};

static void put(const char *name, const char *text)
{
	SW_CLEANUP(sw_freep) char *clean = sw_text_clean(text);
	printf("  %-12s", name);
	for (const char *c = clean; c != NULL && *c != '\0'; c++)
		fputc(*c == '\n' ? ' ' : *c, stdout);
	fputc('\n', stdout);
}

static void put_command(const json_t *request)
{
	size_t i;
	json_t *word;
	printf("  %-12s", "Command");
	json_array_foreach(json_object_get(request, "command"), i, word)
	{
		SW_CLEANUP(sw_freep) char *clean = sw_text_clean(json_string_value(word));
		bool quoted = clean != NULL && (clean[0] == '\0' || strpbrk(clean, " \t\n'\"$*;&|<>()\\") != NULL);
		printf("%s%s", i > 0 ? " " : "", quoted ? "'" : "");
		for (const char *c = clean; c != NULL && *c != '\0'; c++)
			if (*c == '\'')
				fputs("'\\''", stdout);
			else
				fputc(*c, stdout);
		fputs(quoted ? "'" : "", stdout);
	}
	fputc('\n', stdout);
}

/* Whether the field has a line of its own, or is no news. */
static bool has_own_line(const char *name)
{
	static const char *const names[] = {"command", "env", "hold", "name", "requeue", "slurm_env", "tenant", "umask", "workdir"};
	for (size_t i = 0; i < SW_CLI_COUNT_OF(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* What it asked for beyond the ordinary. */
static void put_request(const json_t *request)
{
	printf("  %-12s", "Asked for");
	bool any = false;
	for (size_t i = 0; i < sw_job_field_count; i++) {
		const char *name = sw_job_fields[i].name;
		const json_t *value = json_object_get(request, name);
		if (value == NULL || json_is_null(value) || has_own_line(name))
			continue;
		SW_CLEANUP(sw_freep) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
		printf("%s%s=%s", any ? ", " : "", name, text != NULL ? text : "");
		any = true;
	}
	fputs(any ? "\n" : "nothing special\n", stdout);
}

/* How it ended, in words. */
static void put_end(const json_t *job)
{
	char text[200];
	/* Of a job that goes on there is one only after a failure, while it
	 * waits for the next try. */
	bool failed = strcmp(sw_cli_text(job, "state", ""), "PD") == 0 && json_is_object(json_object_get(job, "failure"));
	if (!sw_cli_job_ended(job) && !failed)
		return;
	int64_t code = sw_cli_number(job, "code", 0), signal = sw_cli_number(job, "signal", 0);
	if (signal > 0) {
		const char *name = sw_job_signal_name((uint32_t)signal);
		snprintf(text, sizeof text, "%" PRId64 ":%" PRId64 " (ended by signal %s%s)", code, signal, name != NULL ? "SIG" : "",
			 name != NULL ? name : "");
	} else {
		snprintf(text, sizeof text, "%" PRId64 ":0", code);
	}
	put("ExitCode", text);
}

static void put_place(const json_t *job)
{
	char text[400];
	size_t i;
	json_t *index;
	int used = snprintf(text, sizeof text, "%.200s", sw_cli_text(job, "node", "-"));
	json_array_foreach(json_object_get(job, "gpu_indexes"), i, index) if (used < (int)sizeof text - 12) used += snprintf(
		text + used, sizeof text - (size_t)used, "%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : ", GPU ", json_integer_value(index));
	put("Node", text);
	if (sw_cli_text(job, "unreachable", "")[0] != '\0') {
		char time[32];
		snprintf(text, sizeof text, "node %.200s has not answered since %s", sw_cli_text(job, "unreachable", ""),
			 sw_cli_local_time(sw_cli_text(job, "unreachable_since", NULL), time));
		put("Unreachable", text);
	}
	if (json_is_true(json_object_get(job, "moving")))
		put("Moves", "it is on its way there from other GPUs of the node");
	if (sw_cli_text(job, "unmoved", "")[0] != '\0')
		put("Stays", sw_cli_text(job, "unmoved", ""));
}

/* Where, when and why the last stop came from, and when it goes on. */
static void put_stop(const json_t *job)
{
	const json_t *stop = json_object_get(job, "stop");
	char text[600], time[32];
	if (!json_is_object(stop))
		return;
	int used = snprintf(text, sizeof text, "%s %.40s %.200s", sw_cli_local_time(sw_cli_text(stop, "at", NULL), time),
			    sw_cli_text(stop, "kind", "stopped"), sw_cli_text(stop, "why", ""));
	const char *next = sw_cli_text(stop, "next", ""), *until = sw_cli_text(stop, "until", NULL);
	if (next[0] != '\0')
		snprintf(text + used, sizeof text - (size_t)used, "; %.200s", next);
	else if (until != NULL && strcmp(until, sw_cli_text(stop, "at", "")) != 0)
		snprintf(text + used, sizeof text - (size_t)used, "; it went on at %s", sw_cli_local_time(until, time));
	put("Last stop", text);
}

/* What it may have of its GPUs, and how it does there. */
static void put_gpu(const json_t *job)
{
	char text[200];
	if (json_is_object(json_object_get(job, "limit")))
		put("Limit", sw_cli_limit(job, text, sizeof text));
	if (sw_cli_gpu_memory(job, text, sizeof text)[0] != '\0')
		put("GPU memory", text);
	if (sw_cli_outside(job, text, sizeof text)[0] != '\0')
		put("Outside", text);
	if (sw_cli_trespass(job, text, sizeof text)[0] != '\0')
		put("Trespass", text);
	if (sw_cli_gpu_time(job, text, sizeof text)[0] != '\0')
		put("GPU time", text);
	if (sw_cli_iteration(job, text, sizeof text)[0] != '\0')
		put("Iteration", text);
	if (sw_cli_slowdown(job, text, sizeof text)[0] != '\0')
		put("Slowdown", text);
}

/* What went wrong, what gave it away, what was done, what to do. */
static void put_failure(const json_t *job)
{
	const json_t *failure = json_object_get(job, "failure");
	char text[400];
	if (!json_is_object(failure))
		return;
	snprintf(text, sizeof text, "%.200s (%.40s, %.40s)", sw_cli_text(failure, "says", ""), sw_cli_text(failure, "class", "?"),
		 sw_cli_text(failure, "layer", "?"));
	put("Failure", text);
	if (sw_cli_text(failure, "line", "")[0] != '\0')
		put("Line", sw_cli_text(failure, "line", ""));
	put("Done", sw_cli_text(failure, "done", ""));
	if (sw_cli_text(failure, "hint", "")[0] != '\0')
		put("Hint", sw_cli_text(failure, "hint", ""));
}

static void print_job(const json_t *job, const char *why)
{
	const json_t *request = json_object_get(job, "request");
	char text[200], time[32], more[32];
	SW_CLEANUP(sw_freep) char *name = sw_text_clean(sw_cli_text(job, "name", "-"));
	printf("Job %" PRId64 " %s\n", sw_cli_number(job, "id", 0), name != NULL ? name : "");
	const char *reason = sw_cli_text(job, "reason", "");
	snprintf(text, sizeof text, "%s%s%.150s", sw_cli_text(job, "state_long", "?"), reason[0] != '\0' ? ", " : "", reason);
	put("State", text);
	if (why[0] != '\0')
		put("Why", why);
	if (json_object_get(job, "name") == NULL) {
		puts("  It belongs to another user; the rest is for that user alone.");
		return;
	}
	snprintf(text, sizeof text, "%.60s (uid %" PRId64 "), tenant %.60s", sw_cli_text(job, "user", "-"), sw_cli_number(job, "uid", 0),
		 sw_cli_text(job, "tenant", "-"));
	put("User", text);
	put("Submitted", sw_cli_local_time(sw_cli_text(job, "submitted_at", NULL), time));
	snprintf(text, sizeof text, "%s, ran %s", sw_cli_local_time(sw_cli_text(job, "started_at", NULL), time),
		 sw_cli_elapsed((int64_t)sw_cli_real(job, "ran_s", 0), more));
	put("Started", text);
	put("Ended", sw_cli_local_time(sw_cli_text(job, "ended_at", NULL), time));
	if (sw_cli_number(job, "epoch", 0) > 0) {
		put_place(job);
		put_end(job);
	}
	snprintf(text, sizeof text, "%" PRId64 ", restarts %" PRId64 ", preemptions %" PRId64, sw_cli_number(job, "epoch", 0),
		 sw_cli_number(job, "restarts", 0), sw_cli_number(job, "preemptions", 0));
	put("Runs", text);
	put_stop(job);
	put_gpu(job);
	put_failure(job);
	if (sw_cli_text(job, "warning", "")[0] != '\0')
		put("Warning", sw_cli_text(job, "warning", ""));
	put_command(request);
	put("WorkDir", sw_cli_text(request, "workdir", "-"));
	put_request(request);
}

static int show(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	const bool *json = user;
	SW_JSON *job = NULL, *why = NULL;
	struct sw_err ignored = {0};
	char path[64];
	int r = sw_cli_get_job(client, id, &job, err);
	if (r < 0 || *json)
		return r < 0 ? r : sw_cli_print_json(job, err);
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/why", id);
	if (sw_client_get(client, path, &why, &ignored) < 0)
		why = NULL;
	SW_CLEANUP(sw_freep) char *said = sw_cli_local_sentence(sw_cli_text(why, "why", ""));
	print_job(job, said != NULL ? said : "");
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	bool json = values->json;
	int r = sw_cli_connect(values->controller, &client, err);
	return r < 0 ? r : sw_cli_each_job(client, &values->jobs, show, &json, err);
}

static const struct sw_cli_option options[] = {
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	SW_CLI_OPERAND_JOBS(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell show 12", "see all that is known of job 12"},
};

const struct sw_cli_command sw_cli_show = {
	.name = "show",
	.about = "show all that is known of a job",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
