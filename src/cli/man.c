/* The manual page: the table of commands in the man macros. */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/help.h"

/* Text as roff takes it literally. */
static void put_text(FILE *out, const char *text)
{
	bool line_start = true;
	for (; *text != '\0'; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			fputc(*text, out);
		line_start = *text == '\n';
	}
}

/* Paragraphs have an empty line between them. */
static void put_paragraphs(FILE *out, const char *text)
{
	while (*text != '\0') {
		const char *end = strstr(text, "\n\n");
		size_t size = end != NULL ? (size_t)(end - text) : strlen(text);
		SW_CLEANUP(sw_freep) char *paragraph = strndup(text, size);
		fputs(".PP\n", out);
		put_text(out, paragraph != NULL ? paragraph : "");
		fputc('\n', out);
		text += size + (end != NULL ? 2 : 0);
	}
}

static void put_option(FILE *out, const struct sw_cli_option *option, bool operand)
{
	SW_CLEANUP(sw_freep) char *text = sw_cli_option_text(option);
	fputs(".TP\n", out);
	if (operand) {
		fprintf(out, ".I %s\n", option->name);
	} else {
		fputs("\\fB", out);
		if (option->letter != '\0')
			fprintf(out, "\\-%c\\fR, \\fB", option->letter);
		fputs("\\-\\-", out);
		put_text(out, option->name);
		fputs("\\fR", out);
		if (option->argument != NULL)
			fprintf(out, "%s\\fI%s\\fR", option->optional ? "" : " ", option->argument);
		fputc('\n', out);
	}
	put_text(out, text != NULL ? text : option->about);
	fputc('\n', out);
}

static void put_examples(FILE *out, const struct sw_cli_command *command)
{
	for (size_t i = 0; i < command->example_count; i++) {
		fputs(".PP\nTo ", out);
		put_text(out, command->examples[i].about);
		fputs(":\n.PP\n.RS 4\n.EX\n", out);
		put_text(out, command->examples[i].line);
		fputs("\n.EE\n.RE\n", out);
	}
}

static void put_command(FILE *out, const struct sw_cli_command *command)
{
	SW_CLEANUP(sw_freep) char *usage = sw_cli_usage(command);
	fputs(".SS sharewell ", out);
	put_text(out, command->name);
	fputc('\n', out);
	fprintf(out, "\\fBsharewell %s\\fR", command->name);
	put_text(out, usage != NULL ? usage : "");
	fputs("\n.PP\n", out);
	fputc(toupper((unsigned char)command->about[0]), out);
	put_text(out, command->about + 1);
	fputs(".\n", out);
	SW_CLEANUP(sw_freep) char *paragraphs = sw_cli_paragraphs(command);
	if (paragraphs != NULL)
		put_paragraphs(out, paragraphs);
	for (size_t i = 0; i < command->operand_count; i++)
		put_option(out, &command->operands[i], true);
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		put_option(out, option, false);
	put_examples(out, command);
}

void sw_cli_print_man(FILE *out)
{
	fputs(".\\\" Made by 'sharewell help --man'.\n.TH SHAREWELL 1 \"\" \"sharewell " SW_VERSION "\" \"User Commands\"\n", out);
	fputs(".SH NAME\nsharewell \\- shares GPUs among jobs, live and simulated\n", out);
	fputs(".SH SYNOPSIS\n\\fBsharewell\\fR \\fICOMMAND\\fR [options]\n.SH DESCRIPTION\n", out);
	put_text(out, sw_cli_summary);
	fputs("\n.SH COMMANDS\n", out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		if (!sw_cli_commands[i]->hidden)
			put_command(out, sw_cli_commands[i]);
	fputs(".SH EXIT STATUS\n", out);
	for (const struct sw_cli_status *status = sw_cli_statuses; status->number != NULL; status++)
		fprintf(out, ".TP\n.B %s\n%s\n", status->number, status->about);
	fputs(".SH ENVIRONMENT\n.TP\n.B SHAREWELL_CONTROLLER\nwhere the controller is: http://HOST:PORT or unix:/PATH\n"
	      ".TP\n.B SHAREWELL_TOKEN\nnames the caller, over HTTP\n.TP\n.B SHAREWELL_STATE\nthe folder of the cluster, instead of one "
	      "below "
	      "XDG_STATE_HOME\n"
	      ".TP\n.B NO_COLOR\nset to anything: no colours\n",
	      out);
}
