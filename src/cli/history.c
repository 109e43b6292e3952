/* sharewell history: jobs that have ended, as sacct shows them; and the cluster's history as a trace. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api/when.h"
#include "base/number.h"
#include "cli/job_options.h"
#include "cli/live.h"
#include "cli/output.h"
#include "sim/trace/trace.h"
#include "sim/trace/write.h"

struct values {
	const char *since, *until, *user, *states, *export, *controller;
	bool me, json, noheader;
};

struct gathered {
	int64_t since_ns, until_ns;
	json_t *jobs;
};

static const struct sw_cli_column columns[] = {
	{.name = "JOBID", .right = true},
	{.name = "NAME", .most = 32},
	{.name = "USER", .most = 16},
	{.name = "GPUS", .right = true},
	{.name = "SUBMIT"},
	{.name = "START"},
	{.name = "END"},
	{.name = "ELAPSED", .right = true},
	{.name = "STATE"},
	{.name = "EXITCODE"},
};

static int64_t moment(const json_t *job, const char *key, int64_t fallback)
{
	const char *text = sw_cli_text(job, key, "");
	int64_t ns;
	return sw_when_parse(text, strlen(text), &ns) == 0 ? ns : fallback;
}

/* Jobs that existed at some time between the two moments. */
static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	struct gathered *gathered = user;
	size_t i;
	json_t *job;
	json_array_foreach(jobs, i, job)
	{
		bool within =
			moment(job, "ended_at", INT64_MAX) >= gathered->since_ns && moment(job, "submitted_at", 0) <= gathered->until_ns;
		if (within && json_array_append(gathered->jobs, job) != 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	return 0;
}

static int add_job(struct sw_cli_rows *rows, const json_t *job)
{
	static const char *const times[] = {"submitted_at", "started_at", "ended_at"};
	char time[32];
	int r = sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(job, "id", 0));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(job, "name", "-"));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(job, "user", "-"));
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(job, "gpus", 0));
	for (size_t i = 0; i < SW_CLI_COUNT_OF(times); i++)
		r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_local_time(sw_cli_text(job, times[i], NULL), time));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_elapsed((int64_t)sw_cli_real(job, "ran_s", 0), time));
	r = r < 0 ? r : sw_cli_rows_add(rows, sw_cli_text(job, "state_long", "?"));
	return r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64 ":%" PRId64, sw_cli_number(job, "code", 0), sw_cli_number(job, "signal", 0));
}

static int print(const struct values *values, const json_t *jobs, struct sw_err *err)
{
	struct sw_cli_rows rows = {columns, SW_CLI_COUNT_OF(columns), {0}};
	size_t i;
	json_t *job;
	int r = 0;
	json_array_foreach(jobs, i, job) r = r < 0 ? r : add_job(&rows, job);
	if (r == 0)
		sw_cli_rows_print(&rows, stdout, !values->noheader);
	sw_cli_rows_release(&rows);
	return r < 0 ? sw_err_set(err, r, "out of memory") : 0;
}

/* ---- as a trace */

static int add_to_trace(struct sw_trace *trace, const json_t *job, int64_t zero_ns)
{
	int64_t ran_ns = (int64_t)(sw_cli_real(job, "ran_s", 0) * 1e9);
	const char *name = sw_cli_text(job, "name", ""), *tenant = sw_cli_text(job, "tenant", "");
	/* One that never ran, or of which nothing may be known, says nothing about the load. */
	if (ran_ns <= 0)
		return 0;
	struct sw_trace_job *row = sw_trace_add(trace);
	if (row == NULL)
		return SW_ENOMEM;
	row->id = sw_cli_number(job, "id", 0);
	row->submit_ns = moment(job, "submitted_at", zero_ns) - zero_ns;
	row->duration_ns = ran_ns;
	row->gpus = row->min_gpus = row->max_gpus = (uint32_t)sw_cli_number(job, "gpus", 1);
	uint32_t index;
	int r = sw_trace_intern(trace, name, strlen(name), &index);
	if (r == 0)
		row->name = index;
	r = r < 0 ? r : sw_trace_intern(trace, tenant, strlen(tenant), &index);
	if (r == 0)
		row->tenant = index;
	return r;
}

static int write_trace(FILE *out, const void *what, struct sw_err *err)
{
	return sw_trace_write(what, "sharewell", out, NULL, err);
}

static int export(const char *path, const json_t *jobs, struct sw_err *err)
{
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	int64_t zero_ns = INT64_MAX;
	size_t i;
	json_t *job;
	int r = sw_trace_new("history", "sharewell", &trace);
	json_array_foreach(jobs, i, job)
	{
		int64_t at_ns = moment(job, "submitted_at", INT64_MAX);
		zero_ns = at_ns < zero_ns ? at_ns : zero_ns;
	}
	json_array_foreach(jobs, i, job) r = r < 0 ? r : add_to_trace(trace, job, zero_ns);
	r = r < 0 ? r : sw_trace_sort(trace);
	if (r < 0)
		return sw_err_set(err, r, "out of memory");
	if (trace->jobs.count == 0)
		return sw_err_set(err, SW_ENOTFOUND, "there is no job to export: none has ended after running");
	r = sw_cli_output_write(path, write_trace, trace, err);
	if (r == 0)
		printf("%zu jobs in %s; 'sharewell sim --trace %s --cluster 1x4 --policy all' tells what other policies would have done\n",
		       trace->jobs.count, path, path);
	return r;
}

static int read_times(const struct values *values, struct gathered *gathered, struct sw_err *err)
{
	int64_t now_ns = (int64_t)time(NULL) * SW_NS_PER_S;
	const char *texts[] = {values->since, values->until};
	int64_t *moments[] = {&gathered->since_ns, &gathered->until_ns};
	for (size_t i = 0; i < 2; i++)
		if (texts[i] != NULL && sw_cli_moment(texts[i], now_ns, true, moments[i]) < 0) {
			sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", i == 0 ? "starttime" : "endtime", texts[i]);
			sw_err_detail(err, "it takes a moment such as 2030-01-31, 2030-01-31T18:00 or 18:00, or 2h (ago)");
			return SW_EINPUT;
		}
	return 0;
}

static int make_query(const struct values *values, char **ret_query, struct sw_err *err)
{
	const char *user = values->me ? "me" : values->user;
	SW_CLEANUP(sw_freep)
	char *name = sw_cli_escape(user != NULL ? user : ""),
	     *states = sw_cli_escape(values->states != NULL ? values->states : "ended");
	if (name == NULL || states == NULL ||
	    asprintf(ret_query, "state=%s&%s%s%s", states, user != NULL ? "user=" : "", name, user != NULL ? "&" : "") < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_cli_client_freep) struct sw_cli_client *client = NULL;
	SW_CLEANUP(sw_freep) char *query = NULL;
	SW_JSON *jobs = json_array();
	struct gathered gathered = {.since_ns = INT64_MIN, .until_ns = INT64_MAX, .jobs = jobs};
	int r = read_times(values, &gathered, err);
	r = r < 0 || values->export == NULL ? r : sw_cli_output_check("trace", values->export, (const char *const[]){NULL}, err);
	r = r < 0 ? r : make_query(values, &query, err);
	r = r < 0 ? r : sw_cli_client_open(values->controller, &client, err);
	r = r < 0 ? r : sw_cli_each_page(client, query, take_page, &gathered, err);
	if (r < 0)
		return r;
	if (values->export != NULL)
		return export(values->export, jobs, err);
	if (!values->json)
		return print(values, jobs, err);
	SW_JSON *all = json_pack("{s:O}", "jobs", jobs);
	return sw_cli_print_json(all, err);
}

static const struct sw_cli_option options[] = {
	{"starttime", 'S', .kind = SW_CLI_TEXT, .argument = "WHEN",
	 .about = "only jobs that ended after this: 2030-01-31, 18:00, or 2h (ago)", .offset = offsetof(struct values, since)},
	{"endtime", 'E', .kind = SW_CLI_TEXT, .argument = "WHEN", .about = "only jobs that were submitted before this",
	 .offset = offsetof(struct values, until)},
	{"user", 'u', .kind = SW_CLI_TEXT, .argument = "NAME", .about = "only this user's jobs", .offset = offsetof(struct values, user)},
	{"me", .about = "only your own jobs", .offset = offsetof(struct values, me)},
	{"state", 's', .kind = SW_CLI_TEXT, .argument = "LIST", .about = "only jobs in these states: CD,F; ended unless told, all for all",
	 .offset = offsetof(struct values, states)},
	{"export", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE", .about = "write them as a trace that 'sharewell sim' replays",
	 .offset = offsetof(struct values, export)},
	SW_CLI_OPTION_NOHEADER(struct values),
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell history --me -S 24h", "see how your jobs of the last day ended"},
	{"sharewell history --export jobs.csv", "write the cluster's history as a trace, for 'sharewell sim'"},
};

const struct sw_cli_command sw_cli_history = {
	.name = "history",
	.about = "list jobs that have ended, or write them as a trace",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
