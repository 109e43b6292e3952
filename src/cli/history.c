/* sharewell history: jobs that have ended, as sacct shows them; and the
 * cluster's history as a trace. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api/when.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/connect.h"
#include "cli/job_options.h"
#include "cli/live.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/past.h"
#include "cli/trace_write.h"

struct values {
	const char *since, *until, *user, *states, *export, *controller;
	bool me, json, noheader;
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

static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	return json_array_extend(user, jobs) == 0 ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
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

static int export(struct sw_client *client, const struct values *values, const char *query, struct sw_err *err)
{
	SW_CLEANUP(sw_cli_past_release) struct sw_cli_past past = {0};
	char jobs[SW_TEXT_SIZE];
	int r = sw_cli_past_fetch(client, query, NULL, &past, err);
	if (r < 0)
		return r;
	if (past.trace->jobs.count == 0) {
		sw_err_set(err, SW_ENOTFOUND, "there is no job to export");
		sw_err_detail(err, "none of these has run yet");
		return SW_ENOTFOUND;
	}
	r = sw_cli_write_trace(past.trace, "sharewell", values->export, err);
	if (r < 0)
		return r;
	sw_text_plural(past.trace->jobs.count, "job", "jobs", jobs);
	if (past.hidden > 0)
		sw_cli_print_note(past.hidden == 1 ? "%" PRIu64 " job is another user's: only its size and times are known"
						   : "%" PRIu64 " jobs are other people's: only their sizes and times are known",
				  past.hidden);
	if (strcmp(values->export, "-") == 0)
		return 0;
	printf("%s in %s", jobs, values->export);
	if (past.never_ran > 0)
		printf(", %" PRIu64 " that never ran left out", past.never_ran);
	printf("; 'sharewell sim --journal' asks what other policies would have done\n");
	return 0;
}

static int read_time(const char *text, const char *option, int64_t now_ns, char when[SW_WHEN_SIZE], struct sw_err *err)
{
	int64_t ns;
	when[0] = '\0';
	if (text == NULL)
		return 0;
	if (sw_cli_moment(text, now_ns, true, &ns) < 0) {
		sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", option, text);
		sw_err_detail(err, "it takes a moment such as 2030-01-31, 2030-01-31T18:00 or 18:00, or 2h (ago)");
		return SW_EINPUT;
	}
	sw_when_format(ns < 0 ? 0 : ns > SW_WHEN_MAX_NS ? SW_WHEN_MAX_NS : ns, when);
	return 0;
}

/* Which jobs: the controller chooses. Everything is exported by default. */
static int make_query(const struct values *values, char **ret_query, struct sw_err *err)
{
	int64_t now_ns = (int64_t)time(NULL) * SW_NS_PER_S;
	char since[SW_WHEN_SIZE], until[SW_WHEN_SIZE];
	const char *states = values->states != NULL ? values->states : values->export != NULL ? "all" : "ended";
	int r = read_time(values->since, "starttime", now_ns, since, err);
	r = r < 0 ? r : read_time(values->until, "endtime", now_ns, until, err);
	r = r < 0 ? r : sw_cli_query_add(ret_query, "state", states, err);
	r = r < 0 ? r : sw_cli_query_add(ret_query, "user", values->me ? "me" : values->user, err);
	r = r < 0 ? r : sw_cli_query_add(ret_query, "since", since[0] != '\0' ? since : NULL, err);
	return r < 0 ? r : sw_cli_query_add(ret_query, "until", until[0] != '\0' ? until : NULL, err);
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_CLEANUP(sw_freep) char *query = NULL;
	SW_JSON *jobs = json_array();
	int r = values->export != NULL ? sw_cli_output_check("trace", values->export, (const char *const[]){NULL}, err) : 0;
	r = r < 0 ? r : make_query(values, &query, err);
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	if (r == 0 && values->export != NULL)
		return export(client, values, query, err);
	r = r < 0 ? r : sw_cli_each_page(client, query, take_page, jobs, err);
	if (r < 0)
		return r;
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
	{"state", 's', .kind = SW_CLI_TEXT, .argument = "LIST", .about = "only jobs in these states: CD,F; ended by default, or all",
	 .offset = offsetof(struct values, states)},
	{"export", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "write all jobs that ran as a trace that 'sharewell sim' replays, with what became of them; '-' is standard output",
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
