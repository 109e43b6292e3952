/* The table of commands, and how a command is found in it. */
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/command.h"
#include "cli/job_options.h"

const struct sw_cli_command *const sw_cli_commands[] = {
	/* a live cluster, for its users */
	&sw_cli_up,
	&sw_cli_submit,
	&sw_cli_run,
	&sw_cli_ps,
	&sw_cli_top,
	&sw_cli_show,
	&sw_cli_why,
	&sw_cli_logs,
	&sw_cli_wait,
	&sw_cli_cancel_jobs,
	&sw_cli_suspend_jobs,
	&sw_cli_resume_jobs,
	&sw_cli_limit_jobs,
	&sw_cli_move_jobs,
	&sw_cli_requeue_jobs,
	&sw_cli_hold_jobs,
	&sw_cli_release_jobs,
	&sw_cli_history,
	/* without a cluster */
	&sw_cli_share,
	&sw_cli_profile,
	/* for its operators */
	&sw_cli_nodes,
	&sw_cli_quota,
	&sw_cli_policy,
	&sw_cli_world,
	&sw_cli_token_create,
	&sw_cli_token_list,
	&sw_cli_token_revoke,
	&sw_cli_journal_check,
	&sw_cli_journal_repair,
	&sw_cli_journal_backup,
	&sw_cli_journal_restore,
	&sw_cli_down,
	&sw_cli_upgrade,
	&sw_cli_controller,
	&sw_cli_agent,
	&sw_cli_supervise,
	/* clusters that are only thought of */
	&sw_cli_sim,
	&sw_cli_policies,
	&sw_cli_contention,
	&sw_cli_trace_stats,
	&sw_cli_trace_convert,
	&sw_cli_trace_generate,
	&sw_cli_trace_check,
	/* about the program */
	&sw_cli_completion,
	&sw_cli_help,
	NULL,
};

const struct sw_cli_group sw_cli_groups[] = {
	{"journal", "look after the file that a cluster lives in: check, repair, back up, restore"},
	{"token", "let users and agents in over TCP: make tokens, list them, revoke them"},
	{"trace", "look into trace files, convert, make and check them"},
	{NULL, NULL},
};

bool sw_cli_in_group(const struct sw_cli_command *command, const struct sw_cli_group *group)
{
	size_t size = strlen(group->name);
	return strncmp(command->name, group->name, size) == 0 && command->name[size] == ' ';
}

const char *sw_cli_last_word(const struct sw_cli_command *command)
{
	const char *space = strrchr(command->name, ' ');
	return space == NULL ? command->name : space + 1;
}

bool sw_cli_has_letter(const struct sw_cli_command *command, char letter)
{
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		if (option->letter == letter)
			return true;
	return false;
}

const struct sw_cli_option *sw_cli_option_at(const struct sw_cli_command *command, size_t index)
{
	size_t count = 0;
	const struct sw_cli_option *options = command->takes_job ? sw_cli_job_options(&count) : NULL;
	if (index < count)
		return &options[index];
	return index - count < command->option_count ? &command->options[index - count] : NULL;
}

size_t sw_cli_option_count(const struct sw_cli_command *command)
{
	size_t count = 0;
	if (command->takes_job)
		(void)sw_cli_job_options(&count);
	return count + command->option_count;
}

const char *sw_cli_word_at(const struct sw_cli_words *words, size_t index)
{
	return words->at != NULL ? words->at(index) : words->all[index];
}

static const struct sw_cli_group *find_group(const char *word)
{
	for (const struct sw_cli_group *group = sw_cli_groups; group->name != NULL; group++)
		if (strcmp(group->name, word) == 0)
			return group;
	return NULL;
}

/* A command by its last word, of this group or of none. */
static const struct sw_cli_command *find_command(const struct sw_cli_group *group, const char *word)
{
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++) {
		const struct sw_cli_command *command = sw_cli_commands[i];
		bool here = group == NULL ? strchr(command->name, ' ') == NULL : sw_cli_in_group(command, group);
		if (here && strcmp(sw_cli_last_word(command), word) == 0)
			return command;
	}
	return NULL;
}

static int unknown(const struct sw_cli_group *group, const char *word, struct sw_err *err)
{
	const char *names[SW_CLI_WORDS_MAX];
	size_t count = 0;
	for (size_t i = 0; sw_cli_commands[i] != NULL && count < SW_CLI_WORDS_MAX; i++)
		if (!sw_cli_commands[i]->hidden &&
		    (group == NULL ? strchr(sw_cli_commands[i]->name, ' ') == NULL : sw_cli_in_group(sw_cli_commands[i], group)))
			names[count++] = sw_cli_last_word(sw_cli_commands[i]);
	for (const struct sw_cli_group *g = sw_cli_groups; group == NULL && g->name != NULL && count < SW_CLI_WORDS_MAX; g++)
		names[count++] = g->name;
	const char *prefix = group == NULL ? "" : group->name, *space = group == NULL ? "" : " ";
	sw_err_set(err, SW_EINPUT, "unknown command '%s%s%.60s'", prefix, space, word);
	const char *near = sw_suggest(word, names, count, sizeof *names);
	if (near != NULL)
		sw_err_hint(err, "Did you mean 'sharewell %s%s%s'?", prefix, space, near);
	else
		sw_err_hint(err, "'sharewell help%s%s' lists the commands.", space, prefix);
	return SW_EINPUT;
}

int sw_cli_find(int count, char *const *words, struct sw_cli_target *ret_target, struct sw_err *err)
{
	if (count < 1)
		return sw_err_set(err, SW_EINPUT, "no command");
	const struct sw_cli_group *group = find_group(words[0]);
	bool group_alone = group != NULL && (count < 2 || words[1][0] == '-');
	if (group_alone) {
		*ret_target = (struct sw_cli_target){.group = group, .words = 1};
		return 0;
	}
	const char *word = words[group != NULL];
	const struct sw_cli_command *command = find_command(group, word);
	if (command == NULL)
		return unknown(group, word, err);
	*ret_target = (struct sw_cli_target){.command = command, .words = 1 + (group != NULL)};
	return 0;
}
