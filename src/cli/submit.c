/* sharewell submit */
#include <inttypes.h>
#include <string.h>

#include "base/now.h"
#include "cli/connect.h"
#include "cli/job_options.h"
#include "cli/live.h"
#include "cli/message.h"
#include "cli/starts.h"
#include "cli/terminal.h"
#include "cli/waiting.h"
#include "policy/registry.h"

struct values {
	struct sw_cli_job_options job;
	const char *controller;
	bool parsable, test_only, json, wait;
};
_Static_assert(offsetof(struct values, job) == 0, "the options of a job are found there");

/* The most GPUs of one node, and of all. */
static int measure_cluster(struct sw_client *client, int64_t *ret_most, int64_t *ret_all, struct sw_err *err)
{
	SW_JSON *answer = NULL;
	size_t i;
	json_t *node;
	int r = sw_client_get(client, "/v1/nodes", &answer, err);
	*ret_most = *ret_all = 0;
	if (r < 0)
		return r;
	json_array_foreach(json_object_get(answer, "nodes"), i, node)
	{
		int64_t gpus = sw_cli_number(node, "gpus", 0);
		*ret_most = gpus > *ret_most ? gpus : *ret_most;
		*ret_all += gpus;
	}
	return 0;
}

static int explain_trial(const struct sw_err *own, struct sw_err *err)
{
	if (!sw_cli_starts_are_unknown(own)) {
		*err = *own;
		return own->code;
	}
	sw_err_set(err, SW_ENOTFOUND, "the controller cannot try jobs");
	sw_err_detail(err, "it is older than this command: %s", own->fact);
	sw_err_hint(err, "Submit the job, or start a controller of this version.");
	return err->code;
}

/* How many jobs the request makes: members of arrays count. `refused`: those alone that a submit
 * would make in vain. */
static int64_t count_jobs(const json_t *estimates, bool refused)
{
	int64_t count = 0;
	size_t i;
	json_t *estimate;
	json_array_foreach(estimates, i, estimate)
	{
		if (!refused || json_is_true(json_object_get(estimate, "would_be_refused")))
			count += sw_cli_number(estimate, "makes_jobs", 1);
	}
	return count;
}

static void print_estimates(const json_t *estimates)
{
	size_t i, count = json_array_size(estimates);
	json_t *estimate;
	char start[512];
	json_array_foreach(estimates, i, estimate)
	{
		int64_t members = sw_cli_number(estimate, "makes_jobs", 1);
		fputs("  ", stdout);
		if (count > 1)
			printf("number %zu: ", i + 1);
		if (members > 1)
			printf("the first of its %" PRId64 " jobs: ", members);
		puts(sw_cli_starts_say(estimate, sw_now_real_ns(), start, sizeof start));
	}
}

static int explain_refusal(int64_t refused, int64_t count, struct sw_err *err)
{
	if (count == 1)
		sw_err_set(err, SW_EINPUT, "the job would be refused");
	else
		sw_err_set(err, SW_EINPUT, "%" PRId64 " of %" PRId64 " jobs would be refused", refused, count);
	sw_err_detail(err, "the scheduler takes no such job under the policy and on the nodes that it has now");
	sw_err_hint(err, "Ask for fewer GPUs or a later deadline, or see 'sharewell policy' and 'sharewell nodes'.");
	return err->code;
}

/* The controller checks the jobs as it would at a submit, and says when they would start. */
static int test_only(struct sw_client *client, const json_t *jobs, bool json, struct sw_err *err)
{
	SW_JSON *answer = NULL;
	int64_t most = 0, all = 0;
	struct sw_err own = {0};
	int r = sw_client_post(client, "/v1/forecast", jobs, &answer, &own);
	if (r < 0)
		return explain_trial(&own, err);
	const json_t *estimates = json_object_get(answer, "jobs");
	int64_t count = count_jobs(estimates, false), refused = count_jobs(estimates, true);
	r = json ? sw_cli_print_json(answer, err) : measure_cluster(client, &most, &all, err);
	if (r < 0)
		return r;
	if (!json && refused == 0)
		printf("%" PRId64 " %s could be submitted: the cluster has %" PRId64 " GPU%s, its largest node %" PRId64 "\n", count,
		       count == 1 ? "job" : "jobs", all, all == 1 ? "" : "s", most);
	if (!json && refused < count)
		print_estimates(estimates);
	return refused > 0 ? explain_refusal(refused, count, err) : 0;
}

static void print_ids(const json_t *answer, const json_t *jobs, bool parsable)
{
	size_t i;
	json_t *id;
	const json_t *ids = json_object_get(answer, "ids");
	bool list = json_is_array(jobs);
	if (!list && json_array_size(ids) > 1 && !parsable) {
		printf("Submitted batch job %" PRId64 " (array of %zu: jobs %" PRId64 " to %" JSON_INTEGER_FORMAT ")\n",
		       sw_cli_number(answer, "id", 0), json_array_size(ids), sw_cli_number(answer, "id", 0),
		       json_integer_value(json_array_get(ids, json_array_size(ids) - 1)));
		return;
	}
	if (!list) {
		printf(parsable ? "%" PRId64 "\n" : "Submitted batch job %" PRId64 "\n", sw_cli_number(answer, "id", 0));
		return;
	}
	json_array_foreach(ids, i, id)
		printf("%s%" JSON_INTEGER_FORMAT "\n", parsable ? "" : "Submitted batch job ", json_integer_value(id));
}

/* The rule by which a job may be stopped for others: as it says, or NULL. */
static const char *rule_of(const json_t *job)
{
	const char *preempt = sw_cli_text(job, "preempt", NULL);
	return preempt != NULL || json_object_get(job, "requeue") == NULL ? preempt : "requeue";
}

/* Whether the policy in charge would stop jobs for others, as far as is known here. */
static bool policy_stops(struct sw_client *client)
{
	SW_JSON *answer = NULL;
	struct sw_err ignored = {0};
	if (sw_client_get(client, "/v1/policy", &answer, &ignored) < 0)
		return false;
	const struct sw_policy *policy = sw_policy_find(sw_cli_text(answer, "policy", ""));
	return policy != NULL && policy->order != NULL && policy->order->preemptive;
}

/* The rule of the cluster's world for jobs of this class that say none; the usual one where that
 * is not known. */
static const char *world_rule(struct sw_client *client, bool is_opportunistic, json_t **answer)
{
	struct sw_err ignored = {0};
	if (*answer == NULL)
		(void)sw_client_get(client, "/v1/world", answer, &ignored);
	return is_opportunistic ? sw_cli_text(json_object_get(*answer, "terms"), "opportunistic_stop", "suspend")
				: sw_cli_text(json_object_get(*answer, "terms"), "guaranteed_stop", "suspend_if_free");
}

/* What a plain job that says nothing may not expect of this rule; NULL: there is no such thing. */
static const char *surprise_of(const char *rule, bool is_opportunistic)
{
	if (strcmp(rule, "requeue") == 0)
		return "it may be stopped for others and starts anew then, as this cluster's world says; with --preempt suspend it keeps "
		       "its work";
	if (is_opportunistic)
		return NULL;
	if (strcmp(rule, "suspend") == 0)
		return "it may be suspended for others, and goes on later; --preempt never rules that out";
	return strcmp(rule, "suspend_if_free") == 0 ? "it may be suspended for others, and goes on later, where its GPU memory can move "
						      "to the host; --preempt never rules that out"
						    : NULL;
}

/* What follows from the rule by which a job may be stopped, in one line, where the owner may have
 * expected something else. That is a job that asks for lent GPUs and never gets them. For a person
 * at a terminal it is also one that says nothing and would be stopped. */
static void note_rule(struct sw_client *client, const json_t *jobs)
{
	SW_JSON *world = NULL;
	const char *plain = NULL;
	bool is_terminal = sw_cli_terminal(stderr).is_terminal, makes_way = false;
	for (size_t i = 0; i < (json_is_array(jobs) ? json_array_size(jobs) : 1); i++) {
		const json_t *job = json_is_array(jobs) ? json_array_get(jobs, i) : jobs;
		const char *class_name = sw_cli_text(job, "class", "guaranteed"), *rule = rule_of(job);
		bool is_auto = strcmp(class_name, "auto") == 0, is_opportunistic = strcmp(class_name, "opportunistic") == 0;
		bool is_said = rule != NULL;
		if (!is_said && !is_auto && !is_terminal)
			continue;
		rule = is_said ? rule : world_rule(client, is_opportunistic, &world);
		if ((is_said || is_auto) && (strcmp(rule, "never") == 0 || strcmp(rule, "suspend_if_free") == 0)) {
			sw_cli_print_note("it runs on GPUs of its own alone, never on lent ones; with --preempt suspend or requeue it "
					  "would run there "
					  "and make way");
			return;
		}
		const char *found = is_said ? NULL : surprise_of(rule, is_opportunistic);
		plain = found != NULL ? found : plain;
		makes_way |= found != NULL && (is_opportunistic || is_auto);
	}
	if (plain != NULL && is_terminal && (makes_way || policy_stops(client)))
		sw_cli_print_note("%s", plain);
}

/* The highest exit status of them all. */
static int wait_for_all(const struct values *values, struct sw_client *client, const json_t *answer, struct sw_err *err)
{
	int highest = 0;
	size_t i;
	json_t *number;
	json_array_foreach(json_object_get(answer, "ids"), i, number)
	{
		SW_JSON *job = NULL;
		uint64_t id = (uint64_t)json_integer_value(number);
		int r = values->json ? sw_cli_wait_job(client, id, &job, err)
				     : sw_cli_waiting_wait(client, values->controller, id, &job, err);
		if (r < 0)
			return r;
		int status = sw_cli_job_exit(job);
		highest = status > highest ? status : highest;
	}
	return highest;
}

/* On standard error, so that scripts that read numbers read numbers. */
static void print_warnings(const json_t *answer)
{
	size_t i;
	json_t *warning;
	json_array_foreach(json_object_get(answer, "warnings"), i, warning) sw_cli_print_note("%s", json_string_value(warning));
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_JSON *jobs = NULL, *answer = NULL;
	int r = sw_cli_job_build(&sw_cli_submit, call, &jobs, err);
	r = r < 0 ? r : sw_cli_connect(values->controller, &client, err);
	if (r < 0)
		return r;
	if (values->test_only)
		return test_only(client, jobs, values->json, err);
	r = sw_client_submit(client, jobs, &answer, err);
	if (r < 0)
		return r;
	if (values->json)
		r = sw_cli_print_json(answer, err);
	else
		print_ids(answer, jobs, values->parsable);
	fflush(stdout);
	if (!values->json)
		note_rule(client, jobs);
	print_warnings(answer);
	return r == 0 && values->wait ? wait_for_all(values, client, answer, err) : r;
}

static const struct sw_cli_option options[] = {
	{"wait", 'W',
	 .about = "wait until it has ended, and end with its exit status; why it waits is said on standard error, unless --json is given",
	 .offset = offsetof(struct values, wait)},
	{"parsable", .about = "print the number alone", .offset = offsetof(struct values, parsable)},
	{"test-only", .about = "check the job, and say when it would start, without submitting it",
	 .offset = offsetof(struct values, test_only)},
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"COMMAND", .kind = SW_CLI_TEXTS, .is_path = true,
	 .about = "the command and its arguments; or a job file (.yaml), or a script with directives",
	 .offset = offsetof(struct values, job.words)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell submit -- python train.py --lr 0.1", "run a program as soon as there is a GPU"},
	{"sharewell submit -G 2 -t 4h -J resnet -- torchrun train.py", "ask for two GPUs, and end it after four hours"},
	{"sharewell submit -G 1-4 --class opportunistic script.sh",
	 "submit a script, whose #SHAREWELL or #SBATCH lines may hold options, too"},
	{"sharewell submit job.yaml", "submit what a file describes"},
	{"sharewell submit -a 0-9 -- sh -c 'python sweep.py $SHAREWELL_ARRAY_INDEX'", "make ten jobs"},
	{"sharewell submit -G 16 --prerun 5m -- torchrun train.py",
	 "try it on one GPU first: what is wrong at the start costs one GPU and not sixteen"},
	{"sharewell submit -d afterok:12 -- python evaluate.py", "wait for another job"},
};

const struct sw_cli_command sw_cli_submit = {
	.name = "submit",
	.about = "submit a job: a command, a script, or a job file",
	.text = "The job runs where you are and with your environment. Options end at the command; '--' before it makes sure of that. In a "
		"script, lines that begin with #SHAREWELL or #SBATCH, up to the first command, hold options; those of the command line "
		"win.\n\n--preempt says how a running job may be stopped for others. With suspend it stands still, and goes on where it "
		"was. With requeue it gets its signal and its grace time, and starts anew. With never it runs to its end. By default it "
		"is as the cluster's world says ('sharewell world'). Mostly that is suspend, of guaranteed jobs only where the GPU runtime "
		"can move the GPU memory to the host. Only jobs with suspend or requeue run on GPUs that are lent. With --no-requeue a job "
		"is never started a second time.",
	.takes_job = true,
	.words_follow = true,
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
