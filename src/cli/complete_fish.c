/* Completion for fish: one line per option. */
#include <string.h>

#include "cli/command.h"
#include "cli/completion.h"

static void put_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

/* "__fish_seen_subcommand_from trace; and __fish_seen_subcommand_from stats" */
static void put_condition(FILE *out, const struct sw_cli_command *command)
{
	const char *last = sw_cli_last_word(command);
	fputs("complete -c sharewell -n '", out);
	if (last != command->name)
		fprintf(out, "__fish_seen_subcommand_from %.*s; and ", (int)(last - command->name - 1), command->name);
	fprintf(out, "__fish_seen_subcommand_from %s'", last);
}

static void put_words(FILE *out, const struct sw_cli_words *words)
{
	const char *word;
	/* fish completes lists by itself when it is given a function; here each word is offered
	 * with what was typed before the last comma. */
	fputs(words->list ? " -a '(__sharewell_list" : " -a '", out);
	for (size_t i = 0; (word = sw_cli_word_at(words, i)) != NULL; i++)
		fprintf(out, "%s%s", i > 0 || words->list ? " " : "", word);
	fputs(words->list ? ")'" : "'", out);
}

static void put_option(FILE *out, const struct sw_cli_command *command, const struct sw_cli_option *option)
{
	put_condition(out, command);
	fprintf(out, " -l %s", option->name);
	if (option->letter != '\0')
		fprintf(out, " -s %c", option->letter);
	if (option->kind != SW_CLI_FLAG && !option->optional)
		fputs(option->is_path ? " -r -F" : " -x", out);
	if (option->words != NULL)
		put_words(out, option->words);
	fputs(" -d ", out);
	put_quoted(out, option->about);
	fputc('\n', out);
}

static void put_commands(FILE *out)
{
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++) {
		const struct sw_cli_command *command = sw_cli_commands[i];
		if (command->hidden)
			continue;
		const char *last = sw_cli_last_word(command);
		if (last == command->name)
			fprintf(out, "complete -c sharewell -n __fish_use_subcommand -f -a %s -d ", last);
		else
			fprintf(out,
				"complete -c sharewell -n '__fish_seen_subcommand_from %.*s; and test (count (commandline -opc)) -eq 2' -f "
				"-a "
				"%s -d ",
				(int)(last - command->name - 1), command->name, last);
		put_quoted(out, command->about);
		fputc('\n', out);
	}
	for (const struct sw_cli_group *group = sw_cli_groups; group->name != NULL; group++) {
		fprintf(out, "complete -c sharewell -n __fish_use_subcommand -f -a %s -d ", group->name);
		put_quoted(out, group->about);
		fputc('\n', out);
	}
}

void sw_cli_complete_fish(FILE *out)
{
	fputs("# fish completion for sharewell; made by 'sharewell completion fish'.\n"
	      "function __sharewell_list\n"
	      "\tset -l head (string replace -r '[^,=]*$' '' -- (string replace -r '^--[^=]*=' '' -- (commandline -ct)))\n"
	      "\tfor word in $argv\n\t\techo $head$word\n\tend\nend\n"
	      "complete -c sharewell -n __fish_use_subcommand -f -l help -s h -d 'print help'\n"
	      "complete -c sharewell -n __fish_use_subcommand -f -l version -s V -d 'print the version'\n",
	      out);
	put_commands(out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++) {
		const struct sw_cli_command *command = sw_cli_commands[i];
		if (command->hidden)
			continue;
		const struct sw_cli_option *option;
		for (size_t o = 0; (option = sw_cli_option_at(command, o)) != NULL; o++)
			put_option(out, command, option);
		for (size_t o = 0; o < command->operand_count; o++) {
			if (command->operands[o].words == NULL)
				continue;
			put_condition(out, command);
			fputs(" -f", out);
			put_words(out, command->operands[o].words);
			fputc('\n', out);
		}
	}
}
