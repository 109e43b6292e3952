#include "cli/help.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "api/job.h"
#include "base/cleanup.h"

enum { WIDTH_PRESET = 90, WIDTH_MIN = 50, WIDTH_MAX = 110 };

const char sw_cli_summary[] =
	"Sharewell shares the GPUs of a machine among jobs: 'sharewell up' starts a queue, 'sharewell submit' fills it. The same "
	"scheduling code, fed with traces instead of live jobs, tells what another policy would have done.";

const struct sw_cli_status sw_cli_statuses[] = {
	{"0", "all went well"},
	{"1", "something failed at run time: reading, writing, memory"},
	{"2", "the command line or an input is wrong"},
	{"130", "interrupted"},
	{"any", "of 'run', 'wait' and 'submit --wait': that of the job; 128 and the number of the signal that ended it"},
	{NULL, NULL},
};

static unsigned text_width(unsigned width)
{
	width = width == 0 ? WIDTH_PRESET : width;
	return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* Words of `text` from column `at` on, in lines that begin at `indent` and end before `width`. An
 * empty line stays one. Ends the last line. */
static void put_wrapped(FILE *out, const char *text, unsigned at, unsigned indent, unsigned width)
{
	while (*text != '\0') {
		if (text[0] == '\n') {
			fputs("\n\n", out);
			text += strspn(text, "\n");
			at = 0;
		}
		unsigned length = (unsigned)strcspn(text, " \n");
		if (at > indent && at + 1 + length > width) {
			fputc('\n', out);
			at = 0;
		}
		if (at < indent) {
			fprintf(out, "%*s", (int)(indent - at), "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", (int)length, text);
		at += length;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

char *sw_cli_option_text(const struct sw_cli_option *option)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	fputs(option->about, out);
	const char *word;
	for (size_t i = 0; option->words != NULL && (word = sw_cli_word_at(option->words, i)) != NULL; i++)
		fprintf(out, "%s%s", i == 0 ? ": " : ", ", word);
	if (option->kind == SW_CLI_TEXTS)
		fputs(" (may be given several times)", out);
	if (option->preset != NULL)
		fprintf(out, " [%s]", option->preset);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

char *sw_cli_paragraphs(const struct sw_cli_command *command)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = command->text != NULL ? open_memstream(&text, &size) : NULL;
	if (out == NULL)
		return NULL;
	fputs(command->text, out);
	for (size_t i = 0; command->takes_job && i < sw_job_field_count; i++)
		fprintf(out, "%s%s", i == 0 ? "\n\nThe keys of a job file are: " : ", ", sw_job_fields[i].name);
	fputs(command->takes_job ? "." : "", out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void put_operand(FILE *out, const struct sw_cli_option *operand)
{
	const char *dots = operand->kind == SW_CLI_TEXTS ? "..." : "";
	fprintf(out, operand->required ? " %s%s" : " [%s%s]", operand->name, dots);
}

char *sw_cli_usage(const struct sw_cli_command *command)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		if (option->required)
			fprintf(out, " --%s %s", option->name, option->argument);
	fputs(" [options]", out);
	for (size_t i = 0; i < command->operand_count; i++)
		put_operand(out, &command->operands[i]);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* A line of the table stands alone as a sentence. */
static void put_sentence(FILE *out, const char *about)
{
	fprintf(out, "%c%s.\n", toupper((unsigned char)about[0]), about + 1);
}

/* One entry of a list: `head` from column 2 on, `text` from column `indent` on, below it
 * where the head is too long. */
static void put_entry(FILE *out, const char *head, const char *text, unsigned indent, unsigned width)
{
	int at = fprintf(out, "  %s", head);
	if (at + 2 > (int)indent) {
		fputc('\n', out);
		at = 0;
	}
	put_wrapped(out, text, at < 0 ? 0 : (unsigned)at, indent, width);
}

static void put_option(FILE *out, const struct sw_cli_option *option, unsigned width)
{
	char head[80];
	char letter[8] = "    ";
	if (option->letter != '\0')
		snprintf(letter, sizeof letter, "-%c, ", option->letter);
	snprintf(head, sizeof head, "%s--%s%s%s", letter, option->name, option->argument != NULL && !option->optional ? " " : "",
		 option->argument != NULL ? option->argument : "");
	SW_CLEANUP(sw_freep) char *text = sw_cli_option_text(option);
	put_entry(out, head, text != NULL ? text : option->about, 28, width);
}

void sw_cli_print_command(FILE *out, const struct sw_cli_command *command, unsigned width)
{
	width = text_width(width);
	SW_CLEANUP(sw_freep) char *usage = sw_cli_usage(command);
	int at = fprintf(out, "Usage: sharewell %s", command->name);
	put_wrapped(out, usage != NULL ? usage + 1 : "", at < 0 ? 0 : (unsigned)at, 7, width);
	fputc('\n', out);
	put_sentence(out, command->about);
	SW_CLEANUP(sw_freep) char *paragraphs = sw_cli_paragraphs(command);
	if (paragraphs != NULL) {
		fputc('\n', out);
		put_wrapped(out, paragraphs, 0, 0, width);
	}
	if (command->operand_count > 0)
		fputs("\nArguments:\n", out);
	for (size_t i = 0; i < command->operand_count; i++) {
		SW_CLEANUP(sw_freep) char *text = sw_cli_option_text(&command->operands[i]);
		put_entry(out, command->operands[i].name, text != NULL ? text : "", 28, width);
	}
	fputs("\nOptions:\n", out);
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		put_option(out, option, width);
	put_entry(out, sw_cli_has_letter(command, 'h') ? "    --help" : "-h, --help", "print this text", 28, width);
	if (command->example_count > 0)
		fputs("\nExamples:\n", out);
	for (size_t i = 0; i < command->example_count; i++)
		fprintf(out, "%s  # %s\n  %s\n", i > 0 ? "\n" : "", command->examples[i].about, command->examples[i].line);
}

void sw_cli_print_group(FILE *out, const struct sw_cli_group *group, unsigned width)
{
	width = text_width(width);
	fprintf(out, "Usage: sharewell %s COMMAND [options]\n\n", group->name);
	put_sentence(out, group->about);
	fputs("\nCommands:\n", out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		if (sw_cli_in_group(sw_cli_commands[i], group))
			put_entry(out, sw_cli_last_word(sw_cli_commands[i]), sw_cli_commands[i]->about, 14, width);
	fprintf(out, "\n'sharewell %s COMMAND --help' tells more, with examples.\n", group->name);
}

void sw_cli_print_overview(FILE *out, unsigned width)
{
	width = text_width(width);
	fputs("Usage: sharewell COMMAND [options]\n\n", out);
	put_wrapped(out, sw_cli_summary, 0, 0, width);
	fputs("\nCommands:\n", out);
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		if (!sw_cli_commands[i]->hidden)
			put_entry(out, sw_cli_commands[i]->name, sw_cli_commands[i]->about, 18, width);
	fputs("\nOptions:\n", out);
	put_entry(out, "-h, --help", "print this text", 18, width);
	put_entry(out, "-V, --version", "print the version", 18, width);
	fputs("\nStart here:\n  sharewell up\n  sharewell submit -- python train.py\n\nOr, without a cluster:\n  sharewell trace generate "
	      "jobs.csv --jobs 2000 --gpus 64\n"
	      "  sharewell sim --trace jobs.csv --cluster 8x8 --policy all --report report.html\n\n",
	      out);
	fputs("'sharewell help COMMAND' tells more, with examples.\n", out);
}
