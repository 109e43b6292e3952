/* sharewell ps: the queue, as squeue shows it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/terminal.h"

#define WATCH_S 2

struct values {
	const char *user, *states, *name, *controller;
	struct sw_cli_texts jobs;
	bool me, all, watch, json, noheader;
};

static const struct sw_cli_column columns[] = {
	{"JOBID", .right = true}, {"NAME", .most = 32},	   {"USER", .most = 16},    {"TENANT", .most = 16},
	{.name = "ST"},		  {"TIME", .right = true}, {"GPUS", .right = true}, {.name = "NODE(REASON)"},
};

/* Where it runs, or in brackets why it does not. */
static int add_place(struct sw_cli_rows *rows, const json_t *job)
{
	const char *state = sw_cli_text(job, "state", "?"), *node = sw_cli_text(job, "node", ""), *reason = sw_cli_text(job, "reason", "");
	char gpus[128] = "";
	size_t i, used = 0;
	json_t *index;
	if (strcmp(state, "PD") == 0)
		return sw_cli_rows_addf(rows, "(%s)", reason[0] != '\0' ? reason : "Resources");
	json_array_foreach(json_object_get(job, "gpu_indexes"), i, index) if (used < sizeof gpus - 8) used +=
		(size_t)snprintf(gpus + used, sizeof gpus - used, "%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : ":", json_integer_value(index));
	if (strcmp(state, "R") != 0 && reason[0] != '\0')
		return sw_cli_rows_addf(rows, "%s (%s)", node, reason);
	return sw_cli_rows_addf(rows, "%s%s", node, gpus);
}

static int add_job(struct sw_cli_rows *rows, const json_t *job)
{
	char time[32];
	int r = sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(job, "id", 0));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(job, "name", "-"));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(job, "user", "-"));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(job, "tenant", "-"));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(job, "state", "?"));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_elapsed((int64_t)sw_cli_real(job, "ran_s", 0), time));
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(job, "gpus", 0));
	return r < 0 ? r : add_place(rows, job);
}

/* ---- which jobs */

struct gathered {
	struct sw_cli_rows rows;
	json_t *list; /* NULL: rows are wanted */
};

static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	struct gathered *gathered = user;
	size_t i;
	json_t *job;
	json_array_foreach(jobs, i, job)
	{
		int r = gathered->list != NULL ? json_array_append(gathered->list, job) : add_job(&gathered->rows, job);
		if (r < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	return 0;
}

static int append_parameter(char **query, const char *name, const char *value, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *escaped = value != NULL ? sw_cli_escape(value) : NULL;
	char *longer = NULL;
	if (value == NULL)
		return 0;
	if (escaped == NULL || asprintf(&longer, "%s%s=%s&", *query, name, escaped) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	free(*query);
	*query = longer;
	return 0;
}

static int gather(struct sw_cli_client *client, const struct values *values, struct gathered *gathered, struct sw_err *err)
{
	if (values->jobs.count > 0) {
		sw_cli_ids ids = {0};
		int r = sw_cli_job_ids(&values->jobs, &ids, err);
		for (size_t i = 0; r == 0 && i < ids.count; i++) {
			SW_JSON *job = NULL, *page = json_array();
			r = sw_cli_get_job(client, ids.items[i], &job, err);
			json_array_append(page, job);
			r = r < 0 ? r : take_page(gathered, page, err);
		}
		sw_vec_free(&ids);
		return r;
	}
	SW_CLEANUP(sw_freep) char *query = strdup("");
	const char *states = values->states != NULL ? values->states : values->all ? NULL : "active";
	int r = query != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
	r = r < 0 ? r : append_parameter(&query, "state", states, err);
	r = r < 0 ? r : append_parameter(&query, "user", values->me ? "me" : values->user, err);
	r = r < 0 ? r : append_parameter(&query, "name", values->name, err);
	return r < 0 ? r : sw_cli_each_page(client, query, take_page, gathered, err);
}

static int show(struct sw_cli_client *client, const struct values *values, struct sw_err *err)
{
	struct gathered gathered = {.rows = {columns, SW_CLI_COUNT_OF(columns), {0}}, .list = values->json ? json_array() : NULL};
	int r = gather(client, values, &gathered, err);
	if (r == 0 && values->json) {
		SW_JSON *all = json_pack("{s:O}", "jobs", gathered.list);
		r = sw_cli_print_json(all, err);
	} else if (r == 0) {
		sw_cli_rows_print(&gathered.rows, stdout, !values->noheader);
	}
	sw_cli_rows_release(&gathered.rows);
	json_decref(gathered.list);
	return r;
}

static int watch(struct sw_cli_client *client, const struct values *values, struct sw_err *err)
{
	bool clear = sw_cli_terminal(stdout).is_terminal;
	int r = 0;
	sw_cli_catch_interrupts();
	while (r == 0 && sw_cli_interrupted() == 0) {
		if (clear)
			fputs("\033[H\033[2J", stdout);
		r = show(client, values, err);
		fflush(stdout);
		if (ferror(stdout))
			break;
		struct timespec pause = {.tv_sec = WATCH_S};
		nanosleep(&pause, NULL);
	}
	if (sw_cli_interrupted() != 0)
		sw_err_clear(err);
	return sw_cli_interrupted() != 0 ? 0 : r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_cli_client_freep) struct sw_cli_client *client = NULL;
	int r = sw_cli_client_open(values->controller, &client, err);
	if (r < 0)
		return r;
	return values->watch ? watch(client, values, err) : show(client, values, err);
}

static const struct sw_cli_option options[] = {
	{"user", 'u', .kind = SW_CLI_TEXT, .argument = "NAME", .about = "only this user's jobs", .offset = offsetof(struct values, user)},
	{"me", .about = "only your own jobs", .offset = offsetof(struct values, me)},
	{"states", 't', .kind = SW_CLI_TEXT, .argument = "LIST",
	 .about = "only jobs in these states: PD,R or RUNNING; active (unless told), ended, all",
	 .offset = offsetof(struct values, states)},
	{"jobs", 'j', .kind = SW_CLI_TEXTS, .argument = "JOB", .about = "only this job, or range of jobs",
	 .offset = offsetof(struct values, jobs)},
	{"name", 'n', .kind = SW_CLI_TEXT, .argument = "NAME", .about = "only jobs with this name; a * at the end stands for anything",
	 .offset = offsetof(struct values, name)},
	{"all", 'a', .about = "those that have ended, too", .offset = offsetof(struct values, all)},
	{"watch", .about = "show it again every two seconds, until Ctrl-C", .offset = offsetof(struct values, watch)},
	SW_CLI_OPTION_NOHEADER(struct values),
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell ps", "see what waits and what runs"},
	{"sharewell ps --me --all", "see all jobs you ever submitted"},
	{"sharewell ps -t PD -u ada", "see what somebody waits for"},
};

const struct sw_cli_command sw_cli_ps = {
	.name = "ps",
	.about = "list the jobs that wait and run",
	.text = "States are Slurm's: PD pending, R running, S suspended, CG completing, CD completed, F failed, CA cancelled, TO timeout, "
		"NF node failure, OOM out of "
		"memory. Behind a node stand the GPUs in use there; in brackets, why a job waits ('sharewell why JOB' says it in a "
		"sentence). Of other people's jobs you "
		"see only that they are there.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
