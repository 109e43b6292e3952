/* sharewell ps: the queue, as squeue shows it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/columns.h"
#include "cli/connect.h"
#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/message.h"
#include "cli/starts.h"
#include "cli/terminal.h"

#define WATCH_S 2
#define USUAL "jobid,name,user,tenant,st,time,gpus,place"
#define USUAL_START "jobid,name,user,tenant,st,gpus,estimate,reason"

struct values {
	const char *user, *states, *name, *format, *columns, *sort, *controller;
	struct sw_cli_texts jobs;
	bool me, all, start, watch, json, noheader;
};

/* What is shown, and how. */
struct look {
	struct sw_cli_columns columns, order;
	bool asked, start;
};

static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	return json_array_extend(user, jobs) == 0 ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

/* ---- which jobs */

/* The list, of one: it knows what was asked for in short. */
static int gather_one(void *user, struct sw_client *client, uint64_t id, struct sw_err *err)
{
	json_t *jobs = user;
	SW_JSON *page = NULL;
	char path[96];
	snprintf(path, sizeof path, "/v1/jobs?limit=1&asked=true&cursor=%" PRIu64, id - 1);
	int r = sw_client_get(client, path, &page, err);
	json_t *job = json_array_get(json_object_get(page, "jobs"), 0);
	if (r == 0 && (uint64_t)sw_cli_number(job, "id", 0) != id)
		r = sw_err_set(err, SW_ENOTFOUND, "there is no job %" PRIu64, id);
	if (r == 0 && json_array_append(jobs, job) != 0)
		r = sw_err_set(err, SW_ENOMEM, "out of memory");
	return r;
}

static int gather(struct sw_client *client, const struct values *values, bool asked, json_t *jobs, struct sw_err *err)
{
	if (values->jobs.count > 0)
		return sw_cli_each_job(client, &values->jobs, gather_one, jobs, err);
	SW_CLEANUP(sw_freep) char *query = NULL;
	const char *states = values->states != NULL ? values->states : values->all ? NULL : values->start ? "PD,S" : "active";
	int r = sw_cli_query_add(&query, "state", states, err);
	r = r < 0 ? r : sw_cli_query_add(&query, "user", values->me ? "me" : values->user, err);
	r = r < 0 ? r : sw_cli_query_add(&query, "name", values->name, err);
	r = r < 0 ? r : sw_cli_query_add(&query, "asked", asked ? "true" : NULL, err);
	return r < 0 ? r : sw_cli_each_page(client, query, take_page, jobs, err);
}

/* Adds when they will probably start. */
static int look_ahead(struct sw_client *client, json_t *jobs, struct sw_err *err)
{
	SW_JSON *starts = NULL;
	SW_CLEANUP(sw_freep) char *failed = NULL;
	size_t i;
	json_t *job;
	int r = sw_cli_starts_get(client, 0, &starts, &failed, err);
	if (failed != NULL)
		sw_cli_print_note("no start can be estimated: %s", failed);
	json_array_foreach(jobs, i, job)
	{
		if (r == 0 && sw_cli_starts_put(starts, (uint64_t)sw_cli_number(job, "id", 0), failed, job) < 0)
			r = sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	return r;
}

/* ---- showing them */

static int print(const struct values *values, const struct look *look, const json_t *jobs, struct sw_err *err)
{
	struct sw_cli_rows rows = {look->columns.shown, look->columns.count, {0}};
	size_t i;
	json_t *job;
	int r = 0;
	json_array_foreach(jobs, i, job) r = r < 0 ? r : sw_cli_columns_add(&look->columns, &rows, job);
	if (r == 0)
		sw_cli_rows_print(&rows, stdout, !values->noheader);
	sw_cli_rows_release(&rows);
	return r < 0 ? sw_err_set(err, r, "out of memory") : 0;
}

static int show(struct sw_client *client, const struct values *values, const struct look *look, struct sw_err *err)
{
	SW_JSON *jobs = json_array();
	int r = gather(client, values, look->asked, jobs, err);
	r = r < 0 || !look->start ? r : look_ahead(client, jobs, err);
	if (r == 0 && look->order.count > 0 && sw_cli_columns_sort(&look->order, jobs) < 0)
		r = sw_err_set(err, SW_ENOMEM, "out of memory");
	if (r < 0)
		return r;
	if (!values->json)
		return print(values, look, jobs, err);
	SW_JSON *all = json_pack("{s:O}", "jobs", jobs);
	return sw_cli_print_json(all, err);
}

static int watch(struct sw_client *client, const struct values *values, const struct look *look, struct sw_err *err)
{
	bool clear = sw_cli_terminal(stdout).is_terminal;
	int r = 0;
	sw_cli_catch_interrupts();
	while (r == 0 && sw_cli_interrupted() == 0) {
		if (clear)
			fputs("\033[H\033[2J", stdout);
		r = show(client, values, look, err);
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

static int choose(const struct values *values, struct look *look, struct sw_err *err)
{
	const char *format = values->columns != NULL ? values->columns : values->format;
	int r = sw_cli_columns_parse(format != NULL ? format : values->start ? USUAL_START : USUAL, &look->columns, err);
	if (r == 0 && values->sort != NULL)
		r = sw_cli_columns_order(values->sort, &look->order, err);
	look->asked = look->columns.needs_asked || look->order.needs_asked;
	look->start = values->start || look->columns.needs_start || look->order.needs_start;
	return r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	struct look look = {.asked = false};
	int r = choose(values, &look, err);
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	if (r < 0)
		return r;
	return values->watch ? watch(client, values, &look, err) : show(client, values, &look, err);
}

static const struct sw_cli_option options[] = {
	{"user", 'u', .kind = SW_CLI_TEXT, .argument = "NAME", .about = "only this user's jobs", .offset = offsetof(struct values, user)},
	{"me", .about = "only your own jobs", .offset = offsetof(struct values, me)},
	{"states", 't', .kind = SW_CLI_TEXT, .argument = "LIST",
	 .about = "only jobs in these states: PD,R or RUNNING; active (by default), ended, all", .offset = offsetof(struct values, states)},
	{"jobs", 'j', .kind = SW_CLI_TEXTS, .argument = "JOB", .about = "only this job, or range of jobs",
	 .offset = offsetof(struct values, jobs)},
	{"name", 'n', .kind = SW_CLI_TEXT, .argument = "NAME", .about = "only jobs with this name; a * at the end stands for anything",
	 .offset = offsetof(struct values, name)},
	{"all", 'a', .about = "those that have ended, too", .offset = offsetof(struct values, all)},
	{"start", .about = "when jobs that wait will probably start ('sharewell why' says on what that rests)",
	 .offset = offsetof(struct values, start)},
	{"format", 'o', .kind = SW_CLI_TEXT, .argument = "COLUMNS",
	 .about = "these columns, with commas between; squeue's letters (\"%i %j\") are understood", .words = &sw_cli_column_words,
	 .offset = offsetof(struct values, format)},
	{"columns", 'O', .kind = SW_CLI_TEXT, .argument = "COLUMNS", .about = "the same as --format",
	 .offset = offsetof(struct values, columns)},
	{"sort", 'S', .kind = SW_CLI_TEXT, .argument = "COLUMNS", .about = "sort by these; a - before one: the largest first",
	 .offset = offsetof(struct values, sort)},
	{"watch", .about = "show it again every two seconds, until Ctrl-C", .offset = offsetof(struct values, watch)},
	SW_CLI_OPTION_NOHEADER(struct values),
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell ps", "see what waits and what runs"},
	{"sharewell ps --me --all", "see all jobs you ever submitted"},
	{"sharewell ps -t PD -u ada", "see one user's waiting jobs"},
	{"sharewell ps --start", "see when those that wait will probably start"},
	{"sharewell ps -o jobid,name,state,timelimit,gpumemory --sort -time", "choose columns, and see the longest first"},
};

const struct sw_cli_command sw_cli_ps = {
	.name = "ps",
	.about = "list the jobs that wait and run",
	.text = "States are Slurm's: PD pending, CF configuring, R running, S suspended, CG completing, CD completed. A job that did not "
		"end well is F failed, CA cancelled, TO timeout, NF node failure or OOM out of memory. A job that is configuring has its "
		"GPUs, but they are being freed or the job is starting. One that is completing is over, but processes of it are still "
		"stopping. Behind a node stand the GPUs in use there; in brackets, why a job waits ('sharewell why JOB' says it in a "
		"sentence). Of other people's jobs you see only that they are there.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
