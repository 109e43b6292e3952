/* The command line as data: every command is one constant struct, and all of them stand in
 * one table (commands.c).
 *
 * From that table come the parser, the help, the manual page and the shell completions;
 * none of them knows a command by name. A command is added by writing its file and adding
 * its line to the table.
 *
 * Invariants of the table (tests/unit/cli holds them):
 *  1. names and letters of a command's options differ; every option has an `about`;
 *     presets can be decoded.
 *  2. every example can be parsed.
 *  3. -h is help, unless the command has a letter h of its own (as squeue does); --help always is.
 */
#ifndef SW_CLI_COMMAND_H
#define SW_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SW_CLI_OPTIONS_MAX 64u
#define SW_CLI_TEXTS_MAX 5000u
#define SW_CLI_WORDS_MAX 100u

/* What an option becomes in the command's values. */
enum sw_cli_kind {
	SW_CLI_FLAG = 0, /* bool */
	SW_CLI_TEXT,	 /* const char *, as given */
	SW_CLI_TEXTS,	 /* struct sw_cli_texts: may be given several times */
	SW_CLI_WORD,	 /* const char *: one of `words`, nothing else */
	SW_CLI_COUNT,	 /* uint64_t, from `least` to `most` */
	SW_CLI_MILLI,	 /* uint64_t: a decimal times 1000, from `least` to `most` thousandths */
};

struct sw_cli_texts {
	const char **items;
	size_t count;
};

/* The words that an option knows: for help, completion and suggestions. */
struct sw_cli_words {
	const char *(*at)(size_t index); /* NULL behind the last */
	const char *const *all;		 /* where there is no `at`; NULL behind the last */
	bool list;			 /* several of them, with commas between */
};

struct sw_cli_option {
	const char *name; /* lower case, without dashes; of an operand in capitals: "FILE" */
	char letter;
	bool is_path;
	bool required;
	bool optional; /* its value may be left out, and stands behind '=' */
	bool alone;    /* with this one, nothing else is required */
	enum sw_cli_kind kind;
	const char *argument; /* what help calls the value; NULL for flags */
	const char *preset;   /* as a user would write it; NULL: none */
	const char *about;    /* one sentence, no full stop */
	const struct sw_cli_words *words;
	uint64_t least, most;
	size_t offset; /* into the command's values */
};

struct sw_cli_example {
	const char *line; /* begins with "sharewell " */
	const char *about;
};

/* What a command is called with. */
struct sw_cli_call {
	const void *values; /* the command's own struct, filled */
	int argc;	    /* the whole command line, as typed */
	char *const *argv;
};

struct sw_cli_command {
	const char *name;  /* one word, or a group's and its own: "trace stats" */
	const char *about; /* one line, no full stop */
	const char *text;  /* paragraphs for the help, an empty line between them; NULL: none */
	const struct sw_cli_option *options;
	size_t option_count;
	const struct sw_cli_option *operands;
	size_t operand_count;
	const struct sw_cli_example *examples;
	size_t example_count;
	size_t values_size;
	bool takes_job;	   /* its values begin with struct sw_cli_job_options, whose options it has, too */
	bool hidden;	   /* started by the program itself; people need not know it */
	bool words_follow; /* options end at the first operand: the words from there on are another program's command line */
	/* Does it; returns the exit status, or a negative code and what happened in `err`. */
	int (*run)(const struct sw_cli_call *call, struct sw_err *err);
};

#define SW_CLI_COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define SW_CLI_OPTIONS(array) .options = (array), .option_count = SW_CLI_COUNT_OF(array)
#define SW_CLI_OPERANDS(array) .operands = (array), .operand_count = SW_CLI_COUNT_OF(array)
#define SW_CLI_EXAMPLES(array) .examples = (array), .example_count = SW_CLI_COUNT_OF(array)

extern const struct sw_cli_command sw_cli_sim, sw_cli_policies, sw_cli_trace_stats, sw_cli_trace_convert, sw_cli_trace_generate,
	sw_cli_trace_check, sw_cli_help, sw_cli_completion, sw_cli_token_create, sw_cli_token_list, sw_cli_token_revoke, sw_cli_contention;
extern const struct sw_cli_command sw_cli_up, sw_cli_down, sw_cli_upgrade, sw_cli_controller, sw_cli_agent, sw_cli_supervise, sw_cli_submit,
	sw_cli_run, sw_cli_ps, sw_cli_show, sw_cli_why, sw_cli_logs, sw_cli_wait, sw_cli_cancel_jobs, sw_cli_suspend_jobs,
	sw_cli_resume_jobs, sw_cli_limit_jobs, sw_cli_requeue_jobs, sw_cli_hold_jobs, sw_cli_release_jobs, sw_cli_nodes, sw_cli_quota,
	sw_cli_policy, sw_cli_world, sw_cli_history, sw_cli_share, sw_cli_profile, sw_cli_top, sw_cli_move_jobs, sw_cli_journal_check,
	sw_cli_journal_repair, sw_cli_journal_backup, sw_cli_journal_restore;

/* In the order in which people should meet them; NULL ends. */
extern const struct sw_cli_command *const sw_cli_commands[];

/* The first word of commands that belong together. */
struct sw_cli_group {
	const char *name;
	const char *about;
};
extern const struct sw_cli_group sw_cli_groups[]; /* a NULL name ends */

/* Whether the command belongs to this group; its last word. */
bool sw_cli_in_group(const struct sw_cli_command *command, const struct sw_cli_group *group);
const char *sw_cli_last_word(const struct sw_cli_command *command);
/* Its options: those of a job, where it takes one, then its own; NULL behind the last. */
const struct sw_cli_option *sw_cli_option_at(const struct sw_cli_command *command, size_t index);
size_t sw_cli_option_count(const struct sw_cli_command *command);
/* NULL behind the last. */
const char *sw_cli_word_at(const struct sw_cli_words *words, size_t index);
/* Whether an option of the command has this letter. */
bool sw_cli_has_letter(const struct sw_cli_command *command, char letter);

/* What the first words of a command line name: a command, or a group when nothing more is said. */
struct sw_cli_target {
	const struct sw_cli_command *command; /* NULL: a group */
	const struct sw_cli_group *group;     /* NULL: a command */
	int words;			      /* taken from the command line */
};
int sw_cli_find(int count, char *const *words, struct sw_cli_target *ret_target, struct sw_err *err);

#endif
