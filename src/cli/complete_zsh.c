/* Completion for zsh: each command's options as one call of _arguments. */
#include <string.h>

#include "cli/command.h"
#include "cli/completion.h"

/* Inside single quotes, and inside the brackets or after the colon of a spec. */
static void put_quoted(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text) != NULL)
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

/* ":FILE:_files" */
static void put_action(FILE *out, const struct sw_cli_option *option)
{
	const char *noun = option->argument != NULL ? option->argument : option->name;
	fputc(':', out);
	put_quoted(out, noun);
	fputc(':', out);
	if (option->words != NULL) {
		const char *word;
		fputs(option->words->list ? "_values -s , word" : "(", out);
		for (size_t i = 0; (word = sw_cli_word_at(option->words, i)) != NULL; i++)
			fprintf(out, "%s%s", i > 0 || option->words->list ? " " : "", word);
		fputs(option->words->list ? "" : ")", out);
	} else if (option->is_path) {
		fputs("_files", out);
	} else {
		fputc(' ', out);
	}
}

static void put_option(FILE *out, const struct sw_cli_option *option)
{
	const char *equals = option->kind == SW_CLI_FLAG || option->optional ? "" : "=";
	fputs(" \\\n\t\t\t'", out);
	if (option->kind == SW_CLI_TEXTS)
		fputc('*', out);
	else if (option->letter != '\0')
		fprintf(out, "(-%c --%s)", option->letter, option->name);
	if (option->letter != '\0')
		fprintf(out, "'{-%c,--%s%s}'[", option->letter, option->name, equals);
	else
		fprintf(out, "--%s%s[", option->name, equals);
	put_quoted(out, option->about);
	fputc(']', out);
	if (option->kind != SW_CLI_FLAG && !option->optional)
		put_action(out, option);
	fputc('\'', out);
}

static void put_command(FILE *out, const struct sw_cli_command *command)
{
	fprintf(out, "\t('%s')\n\t\t_arguments -s", command->name);
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		put_option(out, option);
	fputs(sw_cli_has_letter(command, 'h') ? " \\\n\t\t\t'--help[print help]'" : " \\\n\t\t\t'(-h --help)'{-h,--help}'[print help]'",
	      out);
	for (size_t i = 0; i < command->operand_count; i++) {
		fputs(" \\\n\t\t\t'", out);
		if (command->operands[i].kind == SW_CLI_TEXTS)
			fputc('*', out);
		put_action(out, &command->operands[i]);
		fputc('\'', out);
	}
	fputs(" ;;\n", out);
}

static void put_described(FILE *out, const char *name, const char *about)
{
	fprintf(out, " '%s:", name);
	put_quoted(out, about);
	fputc('\'', out);
}

void sw_cli_complete_zsh(FILE *out)
{
	fputs("#compdef sharewell\n# zsh completion for sharewell; made by 'sharewell completion zsh'.\n"
	      "_sharewell() {\n\tlocal -a found\n\tif ((CURRENT == 2)); then\n\t\tfound=(",
	      out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		if (!sw_cli_commands[i]->hidden && sw_cli_last_word(sw_cli_commands[i]) == sw_cli_commands[i]->name)
			put_described(out, sw_cli_commands[i]->name, sw_cli_commands[i]->about);
	for (const struct sw_cli_group *group = sw_cli_groups; group->name != NULL; group++)
		put_described(out, group->name, group->about);
	fputs(")\n\t\t_describe command found\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase "
	      "$command in\n",
	      out);
	for (const struct sw_cli_group *group = sw_cli_groups; group->name != NULL; group++) {
		fprintf(out, "\t('%s')\n\t\tif ((CURRENT == 2)); then\n\t\t\tfound=(", group->name);
		for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
			if (sw_cli_in_group(sw_cli_commands[i], group))
				put_described(out, sw_cli_last_word(sw_cli_commands[i]), sw_cli_commands[i]->about);
		fputs(")\n\t\t\t_describe command found\n\t\t\treturn\n\t\tfi\n"
		      "\t\tcommand=\"$command $words[2]\"\n\t\tshift words\n\t\t((CURRENT--)) ;;\n",
		      out);
	}
	fputs("\tesac\n\tcase $command in\n", out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		if (!sw_cli_commands[i]->hidden)
			put_command(out, sw_cli_commands[i]);
	fputs("\tesac\n}\n"
	      "# Sourced, it registers itself; found in $fpath, it is the body of the function.\n"
	      "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n\t_sharewell \"$@\"\nelse\n\tcompdef _sharewell sharewell\nfi\n",
	      out);
}
