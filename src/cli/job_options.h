/* The options that describe a job, shared by `submit` and `run`, and what becomes of them:
 * the JSON of api/job.h.
 *
 * A job comes from a command, from a job file, or from a script with directives; options of the
 * command line win over all of them.
 */
#ifndef SW_CLI_JOB_OPTIONS_H
#define SW_CLI_JOB_OPTIONS_H

#include <jansson.h>

#include "cli/command.h"

struct sw_cli_job_options {
	const char *name, *gpus, *gpu_memory, *gpu_floor, *model, *gpu_runtime, *cpus, *cpus_per_gpu, *mem, *mem_per_gpu;
	const char *job_class, *deadline, *weight, *tenant, *export, *workdir, *time, *expected;
	const char *prerun, *retries, *depends, *signal, *grace, *preempt, *on_lost, *lease, *array, *out, *errors, *comment, *wrap;
	const char *nodes, *ntasks, *ntasks_per_node, *gres, *gpus_per_node, *gpus_per_task, *partition, *nice;
	struct sw_cli_texts env;
	bool hold, slurm_env;
	bool requeue, no_requeue;
	struct sw_cli_texts words; /* the operands */
};

extern const struct sw_cli_words sw_cli_class_words, sw_cli_preempt_words, sw_cli_on_lost_words, sw_cli_gpu_runtime_words;

#define SW_CLI_JOB_TEXT(type, option, key, value, field, text)                                                          \
	{                                                                                                               \
		option, key, .kind = SW_CLI_TEXT, .argument = value, .about = text, .offset = offsetof(type, job.field) \
	}
#define SW_CLI_JOB_FLAG(type, option, key, field, text)                         \
	{                                                                       \
		option, key, .about = text, .offset = offsetof(type, job.field) \
	}

/* For a struct with a member `job`. */
#define SW_CLI_JOB_OPTIONS(type)                                                                                                           \
	SW_CLI_JOB_TEXT(type, "job-name", 'J', "NAME", name, "what it is called; the command's name unless told"),                         \
		SW_CLI_JOB_TEXT(type, "gpus", 'G', "N", gpus,                                                                              \
				"how many GPUs in all, or MIN-MAX for a job that can run on any number between"),                          \
		SW_CLI_JOB_TEXT(type, "gpus-per-node", '\0', "N", gpus_per_node,                                                           \
				"the same for each node, of which --nodes says how many"),                                                 \
		SW_CLI_JOB_TEXT(type, "gpus-per-task", '\0', "N", gpus_per_task,                                                           \
				"the same for each task, of which --ntasks says how many"),                                                \
		SW_CLI_JOB_TEXT(type, "gres", '\0', "gpu:N", gres, "as --gpus-per-node, in the words of Slurm: gpu:2"),                    \
		SW_CLI_JOB_TEXT(type, "gpu-memory", '\0', "SIZE", gpu_memory, "memory it needs on each GPU: 20G"),                         \
		SW_CLI_JOB_TEXT(type, "gpu-floor", '\0', "SIZE", gpu_floor,                                                                \
				"of that, what it keeps between iterations: 2G; all of it unless told"),                                   \
		SW_CLI_JOB_TEXT(type, "model", '\0', "NAME", model,                                                                        \
				"its profile ('sharewell profile'); found by the job's name and command unless told"),                     \
		{"gpu-runtime",                                                                                                            \
		 .kind = SW_CLI_WORD,                                                                                                      \
		 .argument = "WORD",                                                                                                       \
		 .words = &sw_cli_gpu_runtime_words,                                                                                       \
		 .about = "whether its GPU memory can be limited and moved away while it is suspended; on unless told",                    \
		 .offset = offsetof(type, job.gpu_runtime)},                                                                               \
		SW_CLI_JOB_TEXT(type, "cpus", 'c', "N", cpus, "cores for the job; with --ntasks, for each task"),                          \
		SW_CLI_JOB_TEXT(type, "cpus-per-gpu", '\0', "N", cpus_per_gpu, "cores for each of its GPUs"),                              \
		SW_CLI_JOB_TEXT(type, "mem", '\0', "SIZE", mem, "memory of the machine for the job; a bare number is MiB, as in Slurm"),   \
		SW_CLI_JOB_TEXT(type, "mem-per-gpu", '\0', "SIZE", mem_per_gpu, "the same for each of its GPUs"),                          \
		{"class",                                                                                                                  \
		 .kind = SW_CLI_WORD,                                                                                                      \
		 .argument = "CLASS",                                                                                                      \
		 .words = &sw_cli_class_words,                                                                                             \
		 .about = "whether it may be stopped for others",                                                                          \
		 .offset = offsetof(type, job.job_class)},                                                                                 \
		SW_CLI_JOB_TEXT(type, "deadline", '\0', "WHEN", deadline, "when it should be done: 2030-01-31T18:00, or 8h from now"),     \
		SW_CLI_JOB_TEXT(type, "weight", '\0', "X", weight, "how much it counts; 1 is the ordinary job"),                           \
		SW_CLI_JOB_TEXT(type, "tenant", 'A', "NAME", tenant, "on whose quota"),                                                    \
		{"env", .kind = SW_CLI_TEXTS, .argument = "NAME=VALUE", .about = "a variable of its environment",                          \
		 .offset = offsetof(type, job.env)},                                                                                       \
		SW_CLI_JOB_TEXT(type, "export", '\0', "WHAT", export,                                                                      \
				"which of your variables it gets: ALL (unless told), NONE, or a list"),                                    \
		SW_CLI_JOB_TEXT(type, "chdir", 'D', "DIR", workdir, "where it runs; here unless told"),                                    \
		SW_CLI_JOB_TEXT(type, "time", 't', "TIME", time,                                                                           \
				"ends it after so long: 90s, 2h, 1-12:00:00; a bare number is minutes, as in Slurm"),                      \
		SW_CLI_JOB_TEXT(type, "expected", '\0', "TIME", expected, "how long you think it runs; only a hint for the policy"),       \
		SW_CLI_JOB_TEXT(type, "retries", '\0', "N", retries, "how often it is tried again where that can help; 3 unless told"),    \
		SW_CLI_JOB_TEXT(                                                                                                           \
			type, "prerun", '\0', "TIME", prerun,                                                                              \
			"first runs it on one GPU, for so long at most, and ends it there if it is wrong; it must bear to run twice"),     \
		SW_CLI_JOB_TEXT(type, "dependency", 'd', "KIND:JOB", depends, "waits for jobs: afterok:12:13,afterany:14,afternotok:15"),  \
		SW_CLI_JOB_TEXT(type, "signal", '\0', "SIG[@SECONDS]", signal,                                                             \
				"what asks it to stop, and how long before it is killed: USR1@120"),                                       \
		SW_CLI_JOB_TEXT(type, "grace", '\0', "TIME", grace, "time between that signal and SIGKILL; 30s unless told"),              \
		{"preempt",                                                                                                                \
		 .kind = SW_CLI_WORD,                                                                                                      \
		 .argument = "HOW",                                                                                                        \
		 .words = &sw_cli_preempt_words,                                                                                           \
		 .about = "how it may be made to give its GPUs to others: suspend (it goes on where it was), requeue (it starts anew), "   \
			  "never; unless told suspend where its GPU memory can move to the host, else never",                              \
		 .offset = offsetof(type, job.preempt)},                                                                                   \
		{"on-lost",                                                                                                                \
		 .kind = SW_CLI_WORD,                                                                                                      \
		 .argument = "WORD",                                                                                                       \
		 .words = &sw_cli_on_lost_words,                                                                                           \
		 .about =                                                                                                                  \
			 "when its node does not answer: it waits for the node and runs on there (unless told), or starts anew elsewhere", \
		 .offset = offsetof(type, job.on_lost)},                                                                                   \
		SW_CLI_JOB_TEXT(type, "lease", '\0', "TIME", lease,                                                                        \
				"with --on-lost restart: how long it may go on without a word from the controller; 10m unless told"),      \
		SW_CLI_JOB_TEXT(                                                                                                           \
			type, "array", 'a', "LIST", array,                                                                                 \
			"makes many jobs of one, 10000 at most: 0-9, 0-90:10, 0-99%4 (four at a time, with those that are on hold)"),      \
		SW_CLI_JOB_TEXT(type, "output", 'o', "FILE", out,                                                                          \
				"where standard output goes, with %j for the job's number, %x its name, %u its user, %N its node, %A and " \
				"%a the first job of its array and its index there; kept for 'sharewell logs' unless told"),               \
		SW_CLI_JOB_TEXT(type, "error", 'e', "FILE", errors,                                                                        \
				"where standard error goes, in the same way; with standard output unless told"),                           \
		SW_CLI_JOB_TEXT(type, "nodes", 'N', "N", nodes,                                                                            \
				"multiplies --gpus-per-node; on how many nodes a job runs follows from its GPUs"),                         \
		SW_CLI_JOB_TEXT(type, "ntasks", 'n', "N", ntasks,                                                                          \
				"multiplies --cpus and --gpus-per-task; the command starts its tasks itself"),                             \
		SW_CLI_JOB_TEXT(type, "ntasks-per-node", '\0', "N", ntasks_per_node, "the same for each of --nodes"),                      \
		SW_CLI_JOB_TEXT(type, "partition", 'p', "NAME", partition,                                                                 \
				"for scripts from Slurm: there are no partitions, and a note says so"),                                    \
		{"nice",                                                                                                                   \
		 .kind = SW_CLI_TEXT,                                                                                                      \
		 .optional = true,                                                                                                         \
		 .argument = "[=N]",                                                                                                       \
		 .about = "for scripts from Slurm: it is not heeded, and a note says so; see --weight",                                    \
		 .offset = offsetof(type, job.nice)},                                                                                      \
		SW_CLI_JOB_FLAG(type, "requeue", '\0', requeue,                                                                            \
				"may start a second time; others may stop it, unless --preempt says more"),                                \
		SW_CLI_JOB_FLAG(type, "no-requeue", '\0', no_requeue,                                                                      \
				"is never started a second time: after a failure or a lost node it ends, and says why"),                   \
		SW_CLI_JOB_FLAG(type, "hold", 'H', hold, "does not run before 'sharewell resume'"),                                        \
		SW_CLI_JOB_TEXT(type, "comment", '\0', "TEXT", comment, "a note for people"),                                              \
		SW_CLI_JOB_TEXT(type, "wrap", '\0', "LINE", wrap, "a line for /bin/sh instead of a command"),                              \
		SW_CLI_JOB_FLAG(type, "slurm-env", '\0', slurm_env, "gives it SLURM_* variables too, for programs that look for them")

/* Where the words of the command line came from. */
struct sw_cli_job_source {
	const struct sw_cli_command *command; /* whose options directives are read with */
	const struct sw_cli_call *call;
	size_t job_offset; /* of struct sw_cli_job_options in the command's values */
};

/* The jobs that the command line, a file or a script describes: one object, or a list of them.
 * Checked, so that what is wrong is found here. */
int sw_cli_job_build(const struct sw_cli_job_source *source, json_t **ret_jobs, struct sw_err *err);

/* ---- parts of it, for tests */
/* Fields of one job by options; `fields` is changed. */
int sw_cli_job_apply(const struct sw_cli_job_options *options, json_t *fields, struct sw_err *err);
/* job_slurm.c: the GPUs that all the options together ask for, and how many tasks there are. */
int sw_cli_job_resources(const struct sw_cli_job_options *options, json_t *fields, uint64_t *ret_tasks, struct sw_err *err);
/* Tells the user which of the options mean little here. */
void sw_cli_job_notes(const struct sw_cli_job_options *options);
/* "90" (minutes), "90s", "1-12", "2:30:00", "10:30" (minutes and seconds): as Slurm reads
 * times, and with units. */
int sw_cli_time_limit(const char *text, int64_t *ret_ns);
/* "2030-01-31T18:00:00Z", "2030-01-31T18:00" or "18:00" (local), "8h" (from
 * `now_ns`; `ago`: before it). */
int sw_cli_moment(const char *text, int64_t now_ns, bool ago, int64_t *ret_ns);

/* jobfile.c: a job file to one object or a list of them. */
int sw_cli_jobfile(const char *path, json_t **ret_jobs, struct sw_err *err);

/* script.c: the words of the directives of a script, up to its first command. */
struct sw_cli_script {
	char *text;	   /* owned */
	char *interpreter; /* of "#!", NULL: none; owned */
	char **words;
	size_t word_count;
	void (*warn)(unsigned line, const char *what); /* of directives that are not understood; NULL: nobody listens */
};
/* `command`: its options are the ones that are known. */
int sw_cli_script_parse(const char *name, const char *text, size_t size, const struct sw_cli_command *command, struct sw_cli_script *script,
			struct sw_err *err);
void sw_cli_script_release(struct sw_cli_script *script);

#endif
