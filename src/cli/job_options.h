/* The options that describe a job, shared by `submit` and `run`, and what becomes of them:
 * the JSON of api/job.h.
 *
 * A job comes from a command, from a job file, or from a script with directives. Options of the
 * command line win over all of them.
 */
#ifndef SW_CLI_JOB_OPTIONS_H
#define SW_CLI_JOB_OPTIONS_H

#include <jansson.h>

#include "api/job.h"
#include "cli/command.h"

/* What was given for one field. */
struct sw_cli_given {
	const char *text; /* NULL: nothing */
	struct sw_cli_texts texts;
	bool flag;
};

struct sw_cli_job_options {
	struct sw_cli_given fields[SW_JOB_FIELDS_MAX]; /* in the order of sw_job_fields */
	const char *cpus_per_gpu, *mem_per_gpu, *export;
	const char *nodes, *ntasks, *ntasks_per_node, *gres, *gpus_per_node, *gpus_per_task, *partition, *nice;
	bool no_requeue;
	struct sw_cli_texts words; /* the operands */
};

/* The options of every command that takes a job. They are those of the fields of its table, and
 * those that come to the same in words of Slurm. */
const struct sw_cli_option *sw_cli_job_options(size_t *ret_count);
/* What was said for the field of this name; NULL: nothing. */
const char *sw_cli_job_text(const struct sw_cli_job_options *options, const char *field);

/* The jobs that the command line, a file or a script describes: one object, or a list of them.
 * Checked, so that what is wrong is found here. */
int sw_cli_job_build(const struct sw_cli_command *command, const struct sw_cli_call *call, json_t **ret_jobs, struct sw_err *err);

/* ---- parts of it, for tests */
/* Fields of one job by options; `fields` is changed. */
int sw_cli_job_apply(const struct sw_cli_job_options *options, json_t *fields, struct sw_err *err);
/* job_slurm.c: the options that say something of a job in words of Slurm. */
extern const struct sw_cli_option sw_cli_slurm_options[];
extern const size_t sw_cli_slurm_option_count;
/* The GPUs that all the options together ask for, and how many tasks there are. */
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
	void (*warn)(unsigned line, const char *what); /* of directives that are not understood; NULL: not wanted */
};
/* `command`: its options are the ones that are known. */
int sw_cli_script_parse(const char *name, const char *text, size_t size, const struct sw_cli_command *command, struct sw_cli_script *script,
			struct sw_err *err);
void sw_cli_script_release(struct sw_cli_script *script);

#endif
