/* sharewell sim: what would have happened under these policies? */
#include "cli/sim.h"

#include <stdlib.h>
#include <string.h>

#include "cli/catalogue.h"
#include "cli/live.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/policies.h"
#include "cli/terminal.h"
#include "sim/recorded.h"
#include "sim/report/html.h"
#include "sim/report/jobs_csv.h"
#include "sim/report/json.h"

struct answers {
	const struct sw_result *const *results;
	size_t count;
	const char *command;
};

static int write_jobs(FILE *stream, const void *what, struct sw_err *err)
{
	const struct answers *answers = what;
	return sw_results_jobs_csv(stream, answers->results, answers->count, err);
}

static int write_events(FILE *stream, const void *what, struct sw_err *err)
{
	const struct answers *answers = what;
	return sw_results_events_csv(stream, answers->results, answers->count, err);
}

static int write_report(FILE *stream, const void *what, struct sw_err *err)
{
	const struct answers *answers = what;
	return sw_results_html(stream, answers->results, answers->count, answers->command, err);
}

/* The command line again, quoted for a shell where it must be. */
static char *command_text(const struct sw_cli_call *call)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	fputs("sharewell", out);
	for (int i = 1; i < call->argc; i++) {
		const char *word = call->argv[i];
		bool plain = word[0] != '\0' &&
			     word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%")] == '\0';
		fputs(plain ? " " : " '", out);
		for (; *word != '\0'; word++) {
			if (*word == '\'')
				fputs("'\\''", out);
			else
				fputc(*word, out);
		}
		if (!plain)
			fputc('\'', out);
	}
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool is_stdout(const char *path)
{
	return path != NULL && strcmp(path, "-") == 0;
}

/* The files that are written, in their order. */
static const struct output {
	const char *option, *what, *word;
	size_t offset;
	sw_cli_write_fn *write;
} outputs[] = {
	{"--jobs-out", "table of jobs", "Jobs", offsetof(struct sw_cli_sim_values, jobs_out), write_jobs},
	{"--events-out", "table of events", "Events", offsetof(struct sw_cli_sim_values, events_out), write_events},
	{"--report", "report", "Report", offsetof(struct sw_cli_sim_values, report), write_report},
};

static const char *path_of(const struct sw_cli_sim_values *values, const struct output *output)
{
	return *(const char *const *)((const char *)values + output->offset);
}

static int wants_stdout(const struct sw_cli_sim_values *values)
{
	int count = 0;
	for (size_t i = 0; i < SW_CLI_COUNT_OF(outputs); i++)
		count += is_stdout(path_of(values, &outputs[i]));
	return count;
}

static int check_outputs(const struct sw_cli_sim_values *values, struct sw_err *err)
{
	/* The first that is not given ends the list, which is why they are gathered. */
	const char *const given[] = {values->trace, values->history, values->cluster, values->world};
	const char *inputs[SW_CLI_COUNT_OF(given) + 1] = {NULL};
	size_t count = 0;
	for (size_t i = 0; i < SW_CLI_COUNT_OF(given); i++)
		if (given[i] != NULL)
			inputs[count++] = given[i];
	if (values->json + wants_stdout(values) > 1) {
		sw_err_set(err, SW_EINPUT, "standard output is wanted twice");
		sw_err_hint(err, "Only one of --json, --jobs-out -, --events-out - and --report - can have it.");
		return SW_EINPUT;
	}
	int r = 0;
	for (size_t i = 0; i < SW_CLI_COUNT_OF(outputs) && r == 0; i++) {
		const char *path = path_of(values, &outputs[i]);
		for (size_t other = 0; other < i && path != NULL; other++) {
			const char *same = path_of(values, &outputs[other]);
			if (same != NULL && strcmp(same, path) == 0)
				return sw_err_set(err, SW_EINPUT, "%s and %s are the same file, '%s'", outputs[other].option,
						  outputs[i].option, path);
		}
		r = path != NULL ? sw_cli_output_check(outputs[i].what, path, inputs, err) : 0;
	}
	return r;
}

/* Outcomes of single jobs are the bulk of a result: kept only for outputs that show them. */
static int finish_results(const struct sw_cli_study *study, const struct sw_cli_sim_values *values, struct sw_result **results,
			  struct sw_err *err)
{
	for (size_t i = 0; i < study->contenders.count; i++) {
		int r = sw_cli_annotate(study, &study->contenders.items[i], results[i], err);
		if (r < 0)
			return r;
		if (values->jobs_out == NULL && values->report == NULL)
			sw_vec_free(&results[i]->outcomes);
	}
	return 0;
}

static int print_results(const struct sw_cli_study *study, const struct sw_cli_sim_values *values, const struct answers *answers,
			 struct sw_err *err)
{
	if (!values->json) {
		return sw_cli_show_study(wants_stdout(values) > 0 ? stderr : stdout, study, values, answers->results, err);
	}
	int r = study->record != NULL ? sw_results_json(stdout, study->record, err) : 0;
	for (size_t i = 0; i < answers->count && r == 0; i++)
		r = sw_results_json(stdout, answers->results[i], err);
	return r;
}

/* The policy that was in charge, simulated, should give what really happened. How far it does not
 * is how far the other rows can be trusted. */
static void warn_if_far(const struct sw_cli_study *study, const struct answers *answers)
{
	for (size_t i = 0; study->record != NULL && i < answers->count; i++) {
		const struct sw_result *result = answers->results[i];
		if (!sw_recorded_is_far(study->record, result))
			continue;
		sw_cli_print_note(
			"%s as simulated differs from what really happened: jobs took %.0f s on average, and really %.0f s. Failures, "
			"changes of policy and what came before the first event are not simulated: compare the other rows with simulated "
			"%s",
			result->policy, result->summary.jct_avg_s, study->record->summary.jct_avg_s, result->policy);
		return;
	}
}

/* The table first: the user gets it even when the disk is full. */
static int deliver(const struct sw_cli_study *study, const struct sw_cli_call *call, const struct answers *answers, struct sw_err *err)
{
	const struct sw_cli_sim_values *values = call->values;
	int r = print_results(study, values, answers, err);
	if (r == 0)
		r = sw_cli_finish_stdout(err);
	if (r == 0)
		warn_if_far(study, answers);
	for (size_t i = 0; i < SW_CLI_COUNT_OF(outputs) && r == 0; i++) {
		const char *path = path_of(values, &outputs[i]);
		r = path != NULL ? sw_cli_output_write(path, outputs[i].write, answers, err) : 0;
	}
	for (size_t i = 0; i < SW_CLI_COUNT_OF(outputs) && r == 0 && !values->json && !values->quiet; i++) {
		const char *path = path_of(values, &outputs[i]);
		if (path != NULL && !is_stdout(path))
			printf("%s: %s\n", outputs[i].word, path);
	}
	return r;
}

/* A trace of which nothing can run is a wrong cluster, not a result. */
static int check_results(const struct sw_cli_study *study, struct sw_result *const *results, struct sw_err *err)
{
	for (size_t i = 0; i < study->contenders.count; i++)
		if (results[i]->summary.refused < results[i]->summary.jobs)
			return 0;
	sw_err_set(err, SW_EINPUT, "no job of trace '%.150s' can run on this cluster", study->trace->origin);
	sw_err_detail(err, "%.*s", (int)strcspn(results[0]->notes, "\n"), results[0]->notes);
	sw_err_hint(err, "Give a larger --cluster, or another --placement.");
	return SW_EINPUT;
}

static bool wants_progress(const struct sw_cli_sim_values *values)
{
	if (strcmp(values->progress, "auto") != 0)
		return strcmp(values->progress, "always") == 0;
	return !values->quiet && sw_cli_terminal(stderr).is_terminal;
}

static int simulate(const struct sw_cli_study *study, const struct sw_cli_call *call, struct sw_result **results, struct sw_err *err)
{
	const struct sw_cli_sim_values *values = call->values;
	int r = sw_cli_run_study(study, values, wants_progress(values), results, err);
	if (r == 0)
		r = finish_results(study, values, results, err);
	if (r == 0)
		r = check_results(study, results, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_freep) char *command = command_text(call);
	const struct answers answers = {(const struct sw_result *const *)results, study->contenders.count, command};
	return deliver(study, call, &answers, err);
}

/* What the parser cannot know: which words go together. */
static int check_words(const struct sw_cli_sim_values *values, struct sw_err *err)
{
	if (values->history != NULL && !values->journal) {
		sw_err_set(err, SW_EINPUT, "'%.100s' has no place here", values->history);
		sw_err_hint(err, "A trace is given with --trace.");
		return SW_EINPUT;
	}
	if (values->journal && values->trace != NULL) {
		sw_err_set(err, SW_EINPUT, "--journal and --trace do not go together");
		sw_err_hint(err, "'sharewell sim --journal FILE' takes a history that was exported.");
		return SW_EINPUT;
	}
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct sw_cli_sim_values *values = call->values;
	if (values->list)
		return sw_cli_list_policies(stdout, values->json, err);
	struct sw_cli_study study = {0};
	int r = check_words(values, err);
	if (r < 0)
		return r;
	r = values->journal ? sw_cli_journal_prepare(values, &study, err) : sw_cli_study_prepare(values, &study, err);
	if (r < 0)
		return r;
	struct sw_result **results = calloc(study.contenders.count, sizeof(void *));
	if (results == NULL)
		r = sw_err_set(err, SW_ENOMEM, "out of memory");
	if (r == 0)
		r = check_outputs(values, err);
	if (r == 0 && study.trace == NULL)
		r = sw_cli_study_load_trace(values, &study, err);
	if (r == 0)
		r = sw_cli_study_quotas(&values->quotas, &study, err);
	if (r == 0)
		r = simulate(&study, call, results, err);
	for (size_t i = 0; results != NULL && i < study.contenders.count; i++)
		if (results[i] != NULL)
			sw_result_free(results[i]);
	free(results);
	sw_cli_study_release(&study);
	return r;
}

static const char *progress_word(size_t index)
{
	static const char *const words[] = {"auto", "always", "never"};
	return index < SW_CLI_COUNT_OF(words) ? words[index] : NULL;
}

static const struct sw_cli_words progress_words = {.at = progress_word};

#define AT(member) .offset = offsetof(struct sw_cli_sim_values, member)
static const struct sw_cli_option options[] = {
	{"trace", 't', .kind = SW_CLI_TEXT, "FILE", .about = "the jobs; '-' is standard input, and .gz, .xz, .zst are read as they are",
	 .is_path = true, .required = true, AT(trace)},
	{"format", 'f', .kind = SW_CLI_WORD, "FORMAT", "auto", "the format of the trace", &sw_cli_format_words, AT(format)},
	{"cluster", 'c', .kind = SW_CLI_TEXT, "SHAPE", .about = "nodes x GPUs (8x8), racks x nodes x GPUs (2x16x8), or a YAML file",
	 .is_path = true, .required = true, AT(cluster)},
	{"policy", 'p', .kind = SW_CLI_TEXTS, "NAMES",
	 .about = "policies to compare, with commas between, or paths of shared objects ('all': all but chaos)",
	 .words = &sw_cli_policy_words, .is_path = true, .required = true, AT(policies)},
	{"placement", 'P', .kind = SW_CLI_TEXT, "NAME",
	 .about = "where jobs go, or the path of a shared object (if not given, the world decides)", .words = &sw_cli_placement_words,
	 .is_path = true, AT(placement)},
	{"world", 'w', .kind = SW_CLI_TEXT, "NAME",
	 .about = "what things cost, or a YAML file of your own; " SW_WORLD_DEFAULT " by default, with --journal the cluster's own",
	 .words = &sw_cli_world_words, .is_path = true, AT(world)},
	{"set", 's', .kind = SW_CLI_TEXTS, "X.KEY=VALUE",
	 .about = "set a parameter of a policy (las.tick=10s) or a value of the world (world.quantum=1s)", AT(settings)},
	{"quota", .kind = SW_CLI_TEXTS, "TENANT=GPUS",
	 .about = "GPUs that guaranteed jobs of a tenant of the trace may hold; --json then says what jobs waited for", AT(quotas)},
	{"profiles", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "measured profiles ('sharewell profile') over the built-in ones", AT(profiles)},
	{"seed", .kind = SW_CLI_COUNT, .argument = "N", .preset = "1", .about = "same seed, same result", .most = UINT64_MAX, AT(seed)},
	{"jobs-out", 'o', .kind = SW_CLI_TEXT, "FILE", .about = "write what happened to each job as CSV", .is_path = true, AT(jobs_out)},
	{"events-out", .kind = SW_CLI_TEXT, .argument = "FILE", .about = "write every start, stop, resume, move and end of a job as CSV",
	 .is_path = true, AT(events_out)},
	{"report", 'r', .kind = SW_CLI_TEXT, "FILE", .about = "write a page with plots as HTML, all in one file", .is_path = true,
	 AT(report)},
	{"json", .about = "print one JSON object per policy, one per line, and nothing else", AT(json)},
	{"human", 'H', .about = "print times as '2 h 11 min' instead of seconds", AT(human)},
	{"verbose", 'v', .about = "list all assumptions in force", AT(verbose)},
	{"quiet", 'q', .about = "print the table and what is wrong with it, no more", AT(quiet)},
	{"progress", .kind = SW_CLI_WORD, .argument = "WHEN", .preset = "auto",
	 .about = "when to draw a progress bar (auto: on a terminal)", .words = &progress_words, AT(progress)},
	{"threads", 'j', .kind = SW_CLI_COUNT, "N", "0", "simulate at most N policies at a time; 0: as many as there are cores",
	 .most = 1024, AT(threads)},
	{"stats", .about = "measure decisions, and tell what the simulations cost", AT(stats)},
	{"validate", .about = "check every invariant after every step: slow", AT(validate)},
	{"journal", 'J', .about = "replay the history of the running cluster, on its own nodes, beside what really happened", .alone = true,
	 AT(journal)},
	SW_CLI_OPTION_CONTROLLER(struct sw_cli_sim_values),
	{"policies", .about = "list policies, placement rules and worlds instead", .alone = true, AT(list)},
};
#undef AT

static const struct sw_cli_option operands[] = {
	{"FILE", .kind = SW_CLI_TEXT,
	 .about = "with --journal: a history written by 'sharewell history --export', instead of the running cluster's", .is_path = true,
	 .offset = offsetof(struct sw_cli_sim_values, history)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell sim --trace jobs.csv --cluster 8x8 --policy fifo,srtf,las", "compare three policies on 8 nodes of 8 GPUs"},
	{"sharewell sim -t jobs.csv.xz -c cluster.yaml -p all --report report.html --jobs-out jobs-out.csv",
	 "compare them all, with a page of plots"},
	{"sharewell sim -t philly.csv -c 24x8 -p las --world ideal --placement yarn --set las.thresholds=3250,7200",
	 "repeat a paper: free preemption, its placement, its thresholds"},
	{"sharewell sim -t jobs.csv -c 8x8 -p las,gittins --set world.quantum=5m --set las.promote=2 --json",
	 "change assumptions, for a script"},
	{"sharewell sim -t jobs.csv -c 8x8 -p ./mine.so,las", "try a policy of your own"},
	{"sharewell sim --journal --policy fifo,las,srtf -H", "ask what other policies would have done with the jobs of this cluster"},
};

const struct sw_cli_command sw_cli_sim = {
	.name = "sim",
	.about = "simulate a trace under one or several policies",
	.text = "Policies run side by side and end in one table. The world is the set of assumptions about what preempting, starting, "
		"moving and sharing cost; every "
		"report names the one that was in force.\n\n"
		"Without --placement it is 'pack' where the world slows down jobs whose GPUs are far apart, and 'count' where it does "
		"not.\n\n"
		"--journal takes what is not said from the running cluster: jobs, nodes, placement rule, settings of its policy; all "
		"policies "
		"by default. The first row is then what really happened.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct sw_cli_sim_values),
	.run = run,
};
