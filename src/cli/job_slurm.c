/* Slurm's words for what a job needs - nodes, tasks, generic resources - as the GPUs and
 * cores that they come to.
 *
 * A job here is its GPUs; on how many nodes they are is up to the placement. So what is asked for
 * each node or task is multiplied, and what has no meaning here is said to have none. Nothing is
 * left out in silence.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/job.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/job_options.h"
#include "cli/message.h"

#define TEXT(option, key, value, field, text)                                                                                            \
	{                                                                                                                                \
		option, key, .kind = SW_CLI_TEXT, .argument = value, .about = text, .offset = offsetof(struct sw_cli_job_options, field) \
	}

const struct sw_cli_option sw_cli_slurm_options[] = {
	TEXT("cpus-per-gpu", '\0', "N", cpus_per_gpu, "cores for each of its GPUs"),
	TEXT("export", '\0', "WHAT", export, "which of your variables it gets: ALL (by default), NONE, or a list"),
	TEXT("gpus-per-node", '\0', "N", gpus_per_node, "as --gpus, for each node, of which --nodes says how many"),
	TEXT("gpus-per-task", '\0', "N", gpus_per_task, "as --gpus, for each task, of which --ntasks says how many"),
	TEXT("gres", '\0', "gpu:N", gres, "as --gpus-per-node, in the words of Slurm: gpu:2"),
	TEXT("mem-per-gpu", '\0', "SIZE", mem_per_gpu, "as --mem, for each of its GPUs"),
	{"nice", .kind = SW_CLI_TEXT, .optional = true, .argument = "[=N]",
	 .about = "for scripts from Slurm: it is ignored, and a note says so; see --weight",
	 .offset = offsetof(struct sw_cli_job_options, nice)},
	{"no-requeue", .about = "is never started a second time: after a failure or a lost node it ends, and says why",
	 .offset = offsetof(struct sw_cli_job_options, no_requeue)},
	TEXT("nodes", 'N', "N", nodes, "multiplies --gpus-per-node; on how many nodes a job runs follows from its GPUs"),
	TEXT("ntasks", 'n', "N", ntasks, "multiplies --cpus and --gpus-per-task; the command starts its tasks itself"),
	TEXT("ntasks-per-node", '\0', "N", ntasks_per_node, "as --ntasks, for each of --nodes"),
	TEXT("partition", 'p', "NAME", partition, "for scripts from Slurm: there are no partitions, and a note says so"),
};
const size_t sw_cli_slurm_option_count = SW_CLI_COUNT_OF(sw_cli_slurm_options);

static int wrong(struct sw_err *err, const char *option, const char *text, const char *expected)
{
	sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", option, text);
	sw_err_detail(err, "it takes %s", expected);
	return SW_EINPUT;
}

/* "4", or the least of "2-4"; 1 where nothing is said. */
static int read_count(const char *option, const char *text, uint64_t *ret_count, struct sw_err *err)
{
	uint64_t count = 1;
	if (text != NULL && (sw_parse_u64(text, strcspn(text, "-"), &count) < 0 || count < 1 || count > SW_JOB_GPUS_MAX))
		return wrong(err, option, text, "a whole number from 1");
	*ret_count = count;
	return 0;
}

/* What stands behind the kind of GPU, if one is named: "a100:4" is 4. */
static const char *behind_kind(const char *text)
{
	const char *colon = strrchr(text, ':');
	return colon != NULL ? colon + 1 : text;
}

/* "gpu:a100:4,shard:2" asks for 4 GPUs, "gpu" for one, "shard:2" for none. */
static int read_gres(const char *text, uint64_t *ret_gpus, struct sw_err *err)
{
	uint64_t gpus = 0;
	const char *rest = text, *at;
	size_t size;
	while (sw_text_next(&rest, &at, &size)) {
		char word[64] = "";
		if (size >= sizeof word)
			return wrong(err, "gres", text, "gpu:2 or gpu:KIND:2");
		memcpy(word, at, size);
		bool is_gpu = size >= 3 && memcmp(word, "gpu", 3) == 0 && (word[3] == ':' || word[3] == '\0');
		if (!is_gpu)
			continue;
		const char *last = behind_kind(word);
		bool counts = last != word && last[0] >= '0' && last[0] <= '9';
		uint64_t count = 1;
		if (counts && (sw_parse_u64(last, strlen(last), &count) < 0 || count > SW_JOB_GPUS_MAX))
			return wrong(err, "gres", text, "gpu:2 or gpu:KIND:2");
		gpus += count;
	}
	*ret_gpus = gpus;
	return 0;
}

/* How many tasks; 1 where nothing is said. */
static int count_tasks(const struct sw_cli_job_options *options, uint64_t nodes, uint64_t *ret_tasks, struct sw_err *err)
{
	uint64_t tasks, per_node;
	int r = read_count("ntasks", options->ntasks, &tasks, err);
	r = r < 0 ? r : read_count("ntasks-per-node", options->ntasks_per_node, &per_node, err);
	if (r < 0)
		return r;
	*ret_tasks = options->ntasks != NULL ? tasks : nodes * per_node;
	return 0;
}

static int set_gpus(json_t *fields, uint64_t gpus, const char *option, const char *text, struct sw_err *err)
{
	if (gpus < 1 || gpus > SW_JOB_GPUS_MAX)
		return wrong(err, option, text, "a number of GPUs");
	return json_object_set_new(fields, "gpus", json_integer((json_int_t)gpus)) < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
}

static int refuse_nodes(const char *text, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "--nodes %.20s does not say what the job needs", text);
	sw_err_detail(err, "a job is given GPUs, and nodes follow from them");
	sw_err_hint(err, "Ask for all its GPUs: -G 16; or say how many on each node: -N %.20s --gpus-per-node 8.", text);
	return SW_EINPUT;
}

int sw_cli_job_resources(const struct sw_cli_job_options *options, json_t *fields, uint64_t *ret_tasks, struct sw_err *err)
{
	const char *in_all = sw_cli_job_text(options, "gpus");
	uint64_t nodes, tasks, gpus = 0;
	int r = read_count("nodes", options->nodes, &nodes, err);
	r = r < 0 ? r : count_tasks(options, nodes, &tasks, err);
	if (r == 0 && options->gres != NULL)
		r = read_gres(options->gres, &gpus, err);
	if (r < 0)
		return r;
	*ret_tasks = tasks;
	if (in_all != NULL) {
		json_t *text = json_string(behind_kind(in_all));
		return text != NULL ? json_object_set_new(fields, "gpus", text) : wrong(err, "gpus", in_all, "text in UTF-8");
	}
	if (options->gpus_per_task != NULL) {
		r = read_count("gpus-per-task", behind_kind(options->gpus_per_task), &gpus, err);
		return r < 0 ? r : set_gpus(fields, gpus * tasks, "gpus-per-task", options->gpus_per_task, err);
	}
	if (options->gpus_per_node != NULL) {
		r = read_count("gpus-per-node", behind_kind(options->gpus_per_node), &gpus, err);
		return r < 0 ? r : set_gpus(fields, gpus * nodes, "gpus-per-node", options->gpus_per_node, err);
	}
	if (gpus > 0)
		return set_gpus(fields, gpus * nodes, "gres", options->gres, err);
	return nodes > 1 && json_object_get(fields, "gpus") == NULL ? refuse_nodes(options->nodes, err) : 0;
}

/* ---- what is ignored */

/* Where no number follows, it is a kind only in --gres; elsewhere it is refused. */
static void note_kind(const char *option, const char *text)
{
	if (text != NULL && strcmp(option, "gres") != 0 && strchr(text, ':') == NULL)
		return;
	const char *kind = text != NULL && strncmp(text, "gpu:", 4) == 0 ? text + 4 : text;
	size_t size = kind != NULL ? strcspn(kind, ":,") : 0;
	if (size > 0 && !(kind[0] >= '0' && kind[0] <= '9') && strcmp(kind, "gpu") != 0)
		sw_cli_print_note("GPUs cannot be chosen by their kind here: '%.*s' of --%s is ignored", (int)(size < 40 ? size : 40), kind,
				  option);
}

static void note_gres(const char *text)
{
	bool only_gpus = true;
	const char *rest = text, *word;
	size_t size;
	while (sw_text_next(&rest, &word, &size))
		only_gpus = only_gpus && size >= 3 && memcmp(word, "gpu", 3) == 0 && (size == 3 || word[3] == ':');
	if (!only_gpus)
		sw_cli_print_note("of generic resources only GPUs are known here; the rest of '--gres %.60s' is ignored", text);
	else
		note_kind("gres", text);
}

void sw_cli_job_notes(const struct sw_cli_job_options *options)
{
	const char *gpus = sw_cli_job_text(options, "gpus");
	uint64_t nodes = 1, tasks = 1;
	bool both = gpus != NULL && (options->gres != NULL || options->gpus_per_node != NULL || options->gpus_per_task != NULL);
	if (options->gres != NULL)
		note_gres(options->gres);
	note_kind("gpus", gpus);
	note_kind("gpus-per-node", options->gpus_per_node);
	note_kind("gpus-per-task", options->gpus_per_task);
	if (both)
		sw_cli_print_note("--gpus %.40s is for the whole job and counts; what is said for each node or task does not", gpus);
	if (read_count("nodes", options->nodes, &nodes, NULL) == 0 && nodes > 1)
		sw_cli_print_note("on how many nodes a job runs follows from its GPUs: --nodes %.20s %s", options->nodes,
				  gpus != NULL || options->gpus_per_task != NULL ? "is ignored" : "only multiplies the GPUs of each node");
	if (count_tasks(options, nodes, &tasks, NULL) == 0 && tasks > 1)
		sw_cli_print_note("the command is started once on each node; its %" PRIu64
				  " tasks it must start itself, as torchrun and mpirun do",
				  tasks);
	if (options->partition != NULL)
		sw_cli_print_note("there are no partitions here: '--partition %.60s' is ignored; --tenant says on whose quota a job runs",
				  options->partition);
	if (options->nice != NULL)
		sw_cli_print_note("--nice is ignored here; --weight says how much a job counts");
}
