/* Completion for bash: one case per option that has something to offer, one per command. */
#include "cli/command.h"
#include "cli/completion.h"

static void put_words(FILE *out, const struct sw_cli_words *words)
{
	const char *word;
	for (size_t i = 0; (word = sw_cli_word_at(words, i)) != NULL; i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", word);
}

/* What may follow an option; nothing is offered for free text, and files where the shell is told
 * so. */
static void put_value(FILE *out, const struct sw_cli_command *command, const struct sw_cli_option *option)
{
	if (option->kind == SW_CLI_FLAG || option->optional)
		return;
	fprintf(out, "\t'%s --%s'", command->name, option->name);
	if (option->letter != '\0')
		fprintf(out, " | '%s -%c'", command->name, option->letter);
	fputs(")\n", out);
	if (option->words != NULL) {
		fputs(option->words->list ? "\t\t_sharewell_list '" : "\t\t_sharewell_words '", out);
		put_words(out, option->words);
		fputs("'\n", out);
	}
	/* A path beside the words: shared objects, world files. */
	if (option->is_path)
		fputs(option->words != NULL ? "\t\t[[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default\n" : "\t\tcompopt -o default\n", out);
	fputs("\t\treturn ;;\n", out);
}

static void put_command(FILE *out, const struct sw_cli_command *command)
{
	fprintf(out, "\t'%s')\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_sharewell_words '", command->name);
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		fprintf(out, "--%s ", option->name);
	fputs("--help'\n\t\telse\n", out);
	bool any = false;
	for (size_t i = 0; i < command->operand_count; i++) {
		const struct sw_cli_option *operand = &command->operands[i];
		if (operand->words == NULL)
			continue;
		fputs("\t\t\t_sharewell_words '", out);
		put_words(out, operand->words);
		fputs("'\n", out);
		any = true;
	}
	fputs(any ? "\t\t\t:\n\t\tfi ;;\n" : "\t\t\tcompopt -o default\n\t\tfi ;;\n", out);
}

static void put_first_words(FILE *out)
{
	fputs("\tif ((COMP_CWORD == 1)); then\n\t\t_sharewell_words '", out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		if (!sw_cli_commands[i]->hidden && sw_cli_last_word(sw_cli_commands[i]) == sw_cli_commands[i]->name)
			fprintf(out, "%s ", sw_cli_commands[i]->name);
	for (const struct sw_cli_group *group = sw_cli_groups; group->name != NULL; group++)
		fprintf(out, "%s ", group->name);
	fputs("--help --version'\n\t\treturn\n\tfi\n\tcase $command in\n", out);
	for (const struct sw_cli_group *group = sw_cli_groups; group->name != NULL; group++) {
		fprintf(out, "\t'%s')\n\t\tif ((COMP_CWORD == 2)); then\n\t\t\t_sharewell_words '", group->name);
		for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
			if (sw_cli_in_group(sw_cli_commands[i], group))
				fprintf(out, "%s ", sw_cli_last_word(sw_cli_commands[i]));
		fputs("--help'\n\t\t\treturn\n\t\tfi\n\t\tcommand=\"$command ${COMP_WORDS[2]}\" ;;\n", out);
	}
	fputs("\tesac\n", out);
}

void sw_cli_complete_bash(FILE *out)
{
	fputs("# bash completion for sharewell; made by 'sharewell completion bash'.\n"
	      "_sharewell_words() {\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	      "}\n"
	      "# The last of several words with commas between them.\n"
	      "_sharewell_list() {\n"
	      "\tlocal head=''\n"
	      "\t[[ $cur != *,* ]] || head=${cur%,*},\n"
	      "\tmapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$1\" -- \"${cur##*,}\")\n"
	      "}\n"
	      "_sharewell() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}\n"
	      "\tCOMPREPLY=()\n"
	      "\t# --option=value comes as three words.\n"
	      "\tif [[ $cur == '=' ]]; then\n"
	      "\t\tcur=''\n"
	      "\telif [[ $prev == '=' ]] && ((COMP_CWORD > 2)); then\n"
	      "\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	      "\tfi\n",
	      out);
	put_first_words(out);
	fputs("\tcase \"$command $prev\" in\n", out);
	const struct sw_cli_option *option;
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		for (size_t o = 0; (option = sw_cli_option_at(sw_cli_commands[i], o)) != NULL; o++)
			put_value(out, sw_cli_commands[i], option);
	fputs("\tesac\n\tcase $command in\n", out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		if (!sw_cli_commands[i]->hidden)
			put_command(out, sw_cli_commands[i]);
	fputs("\tesac\n}\ncomplete -F _sharewell sharewell\n", out);
}
