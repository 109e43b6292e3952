/* getopt_long() takes words apart; the table says what they mean. */
#include "cli/parse.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/suggest.h"

/* Above all letters: what getopt_long() returns for the option with this index. */
enum { LONG = 256, HELP = LONG + SW_CLI_OPTIONS_MAX };

struct parser {
	const struct sw_cli_command *command;
	void *values;
	bool given[SW_CLI_OPTIONS_MAX];
	struct sw_err *err;
};

/* "--seed" or "FILE": operands are written in capitals. */
static const char *show_name(const struct sw_cli_option *option, char buffer[64])
{
	bool operand = option->name[0] >= 'A' && option->name[0] <= 'Z';
	snprintf(buffer, 64, "%s%s", operand ? "" : "--", option->name);
	return buffer;
}

static void hint_at_help(const struct parser *parser)
{
	sw_err_hint(parser->err, "See 'sharewell %s --help'.", parser->command->name);
}

static int refuse_value(const struct parser *parser, const struct sw_cli_option *option, const char *text, const char *wanted)
{
	char name[64];
	sw_err_set(parser->err, SW_EINPUT, "%s cannot be '%.60s'", show_name(option, name), text);
	sw_err_detail(parser->err, "%s", wanted);
	hint_at_help(parser);
	return SW_EINPUT;
}

int sw_cli_unknown_word(const char *noun, const char *word, const struct sw_cli_words *words, struct sw_err *err)
{
	const char *names[SW_CLI_WORDS_MAX];
	char all[256] = "";
	size_t count = 0, used = 0;
	for (const char *name; count < SW_CLI_WORDS_MAX && (name = sw_cli_word_at(words, count)) != NULL; count++) {
		names[count] = name;
		if (used < sizeof all)
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", count > 0 ? ", " : "", name);
	}
	sw_err_set(err, SW_EINPUT, "unknown %s '%.60s'", noun, word);
	const char *near = sw_suggest(word, names, count, sizeof *names);
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s'?", near);
	else
		sw_err_hint(err, "There are: %s.", all);
	return SW_EINPUT;
}

static int decode_word(const struct parser *parser, const struct sw_cli_option *option, const char *text, const char **ret_word)
{
	const char *word;
	for (size_t i = 0; (word = sw_cli_word_at(option->words, i)) != NULL; i++)
		if (strcmp(word, text) == 0) {
			*ret_word = word;
			return 0;
		}
	char name[64], noun[80];
	snprintf(noun, sizeof noun, "value of %s", show_name(option, name));
	return sw_cli_unknown_word(noun, text, option->words, parser->err);
}

static int decode_number(const struct parser *parser, const struct sw_cli_option *option, const char *text, uint64_t *ret_number)
{
	uint64_t number = 0;
	bool thousandths = option->kind == SW_CLI_MILLI;
	int r;
	assert(text != NULL); /* getopt_long() sees to it for options that take a value */
	if (thousandths) {
		int64_t scaled = 0;
		r = sw_parse_decimal(text, strlen(text), 1000, &scaled);
		number = (uint64_t)scaled;
		r = r == 0 && scaled < 0 ? SW_EINPUT : r;
	} else {
		r = sw_parse_u64(text, strlen(text), &number);
	}
	if (r == 0 && number >= option->least && number <= option->most) {
		*ret_number = number;
		return 0;
	}
	char wanted[120];
	if (thousandths)
		snprintf(wanted, sizeof wanted, "it takes a number from %" PRIu64 ".%03" PRIu64 " to %" PRIu64 ".%03" PRIu64,
			 option->least / 1000, option->least % 1000, option->most / 1000, option->most % 1000);
	else
		snprintf(wanted, sizeof wanted, "it takes a whole number from %" PRIu64 " to %" PRIu64, option->least, option->most);
	return refuse_value(parser, option, text, wanted);
}

static int add_text(const struct parser *parser, struct sw_cli_texts *texts, const char *text)
{
	if (texts->count == SW_CLI_TEXTS_MAX)
		return sw_err_set(parser->err, SW_ELIMIT, "one option is given more than %u times", SW_CLI_TEXTS_MAX);
	const char **grown = realloc(texts->items, (texts->count + 1) * sizeof *grown);
	if (grown == NULL)
		return sw_err_set(parser->err, SW_ENOMEM, "out of memory");
	texts->items = grown;
	texts->items[texts->count++] = text;
	return 0;
}

static int decode(const struct parser *parser, const struct sw_cli_option *option, const char *text)
{
	void *slot = (char *)parser->values + option->offset;
	switch (option->kind) {
	case SW_CLI_FLAG:
		*(bool *)slot = true;
		return 0;
	case SW_CLI_TEXTS:
		return add_text(parser, slot, text);
	case SW_CLI_WORD:
		return decode_word(parser, option, text, slot);
	case SW_CLI_COUNT:
	case SW_CLI_MILLI:
		return decode_number(parser, option, text, slot);
	case SW_CLI_TEXT:
	default:
		*(const char **)slot = text;
		return 0;
	}
}

static int apply_preset(const struct parser *parser, const struct sw_cli_option *option)
{
	return option->preset != NULL ? decode(parser, option, option->preset) : 0;
}

static int apply_presets(const struct parser *parser)
{
	const struct sw_cli_option *option;
	int r = 0;
	for (size_t i = 0; r == 0 && (option = sw_cli_option_at(parser->command, i)) != NULL; i++)
		r = apply_preset(parser, option);
	for (size_t i = 0; r == 0 && i < parser->command->operand_count; i++)
		r = apply_preset(parser, &parser->command->operands[i]);
	return r;
}

/* ---- what getopt_long() does not understand */

static int unknown_option(const struct parser *parser, const char *word)
{
	const struct sw_cli_command *command = parser->command;
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	const char *names[SW_CLI_OPTIONS_MAX + 1], *shared[2] = {NULL, NULL};
	const struct sw_cli_option *option;
	size_t found = 0, count = 0;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++) {
		names[count++] = option->name;
		if (name[0] != '\0' && strncmp(names[i], name, strlen(name)) == 0)
			shared[found++ % 2] = names[i];
	}
	names[count++] = "help";
	if (found > 1) {
		sw_err_set(parser->err, SW_EINPUT, "option '--%s' is ambiguous", name);
		sw_err_hint(parser->err, "Did you mean '--%s' or '--%s'?", shared[0], shared[1]);
		return SW_EINPUT;
	}
	sw_err_set(parser->err, SW_EINPUT, "unknown option '--%s'", name);
	const char *near = sw_suggest(name, names, count, sizeof *names);
	if (near != NULL)
		sw_err_hint(parser->err, "Did you mean '--%s'?", near);
	else
		hint_at_help(parser);
	return SW_EINPUT;
}

static const struct sw_cli_option *by_letter(const struct sw_cli_command *command, int letter)
{
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		if (option->letter != '\0' && option->letter == letter)
			return option;
	return NULL;
}

/* `what` is '?' or ':'. */
static int misunderstood(const struct parser *parser, int what, const char *word)
{
	const struct sw_cli_command *command = parser->command;
	if (what == ':') {
		const struct sw_cli_option *option =
			optopt >= LONG ? sw_cli_option_at(command, (size_t)(optopt - LONG)) : by_letter(command, optopt);
		sw_err_set(parser->err, SW_EINPUT, "option '%.60s' needs a value", word);
		if (option != NULL)
			sw_err_detail(parser->err, "--%s %s: %s", option->name, option->argument, option->about);
	} else if (optopt >= LONG) {
		sw_err_set(parser->err, SW_EINPUT, "option '%.*s' takes no value", (int)strcspn(word, "="), word);
	} else if (optopt == 0) {
		return unknown_option(parser, word);
	} else {
		sw_err_set(parser->err, SW_EINPUT, "unknown option '-%c'", optopt > ' ' && optopt < 127 ? optopt : '?');
	}
	hint_at_help(parser);
	return SW_EINPUT;
}

/* ---- the walk over the words */

struct forms {
	struct option longs[SW_CLI_OPTIONS_MAX + 2];
	char shorts[2 * SW_CLI_OPTIONS_MAX + 5];
};

static void build_forms(const struct sw_cli_command *command, struct forms *forms)
{
	const struct sw_cli_option *option;
	size_t used = 0, count = 0;
	if (command->words_follow)
		forms->shorts[used++] = '+';
	forms->shorts[used++] = ':';
	if (by_letter(command, 'h') == NULL)
		forms->shorts[used++] = 'h';
	for (; (option = sw_cli_option_at(command, count)) != NULL; count++) {
		bool takes = option->kind != SW_CLI_FLAG;
		int form = option->optional ? optional_argument : takes ? required_argument : no_argument;
		forms->longs[count] = (struct option){option->name, form, NULL, LONG + (int)count};
		if (option->letter != '\0') {
			forms->shorts[used++] = option->letter;
			if (takes)
				forms->shorts[used++] = ':';
		}
	}
	forms->longs[count] = (struct option){"help", no_argument, NULL, HELP};
	forms->longs[count + 1] = (struct option){0};
	forms->shorts[used] = '\0';
}

/* Stops at --help, which makes all else pointless. */
static int take_options(struct parser *parser, int argc, char **argv, bool *ret_help)
{
	const struct sw_cli_command *command = parser->command;
	struct forms forms;
	build_forms(command, &forms);
	optind = 0; /* start over: this may not be the first call */
	opterr = 0;
	for (int what; (what = getopt_long(argc, argv, forms.shorts, forms.longs, NULL)) != -1;) {
		if (what == HELP || (what == 'h' && by_letter(command, 'h') == NULL)) {
			*ret_help = true;
			return 0;
		}
		if (what == '?' || what == ':')
			return misunderstood(parser, what, argv[optind - 1]);
		const struct sw_cli_option *option =
			what >= LONG ? sw_cli_option_at(command, (size_t)(what - LONG)) : by_letter(command, what);
		int r = decode(parser, option, optarg == NULL && option->optional ? "" : optarg);
		if (r < 0)
			return r;
		for (size_t i = 0; i < sw_cli_option_count(command); i++)
			parser->given[i] = parser->given[i] || sw_cli_option_at(command, i) == option;
	}
	return 0;
}

static int take_operands(struct parser *parser, int count, char **words)
{
	const struct sw_cli_command *command = parser->command;
	for (int i = 0; i < count; i++) {
		size_t which = (size_t)i;
		bool rest = command->operand_count > 0 && command->operands[command->operand_count - 1].kind == SW_CLI_TEXTS;
		if (which >= command->operand_count && rest)
			which = command->operand_count - 1;
		if (which >= command->operand_count) {
			sw_err_set(parser->err, SW_EINPUT, "unexpected argument '%.60s'", words[i]);
			hint_at_help(parser);
			return SW_EINPUT;
		}
		int r = decode(parser, &command->operands[which], words[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int missing(const struct parser *parser, const struct sw_cli_option *option)
{
	char name[64];
	sw_err_set(parser->err, SW_EINPUT, "'sharewell %s' needs %s%s%s", parser->command->name, show_name(option, name),
		   option->argument != NULL ? " " : "", option->argument != NULL ? option->argument : "");
	sw_err_detail(parser->err, "%s", option->about);
	if (parser->command->example_count > 0)
		sw_err_hint(parser->err, "For example: %s", parser->command->examples[0].line);
	return SW_EINPUT;
}

static int require(const struct parser *parser, int operands)
{
	const struct sw_cli_command *command = parser->command;
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		if (option->alone && parser->given[i])
			return 0;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		if (option->required && !parser->given[i])
			return missing(parser, option);
	for (size_t i = 0; i < command->operand_count; i++)
		if (command->operands[i].required && i >= (size_t)operands)
			return missing(parser, &command->operands[i]);
	return 0;
}

int sw_cli_parse(const struct sw_cli_command *command, int argc, char **argv, void *values, bool *ret_help, struct sw_err *err)
{
	struct parser parser = {.command = command, .values = values, .err = err};
	bool help = false;
	memset(values, 0, command->values_size);
	int r = apply_presets(&parser);
	if (r == 0)
		r = take_options(&parser, argc, argv, &help);
	if (r == 0 && !help)
		r = take_operands(&parser, argc - optind, argv + optind);
	if (r == 0 && !help)
		r = require(&parser, argc - optind);
	if (r < 0) {
		sw_cli_release(command, values);
		return r;
	}
	*ret_help = help;
	return 0;
}

static void release_texts(const struct sw_cli_option *option, void *values)
{
	struct sw_cli_texts *texts = (struct sw_cli_texts *)((char *)values + option->offset);
	if (option->kind != SW_CLI_TEXTS)
		return;
	free(texts->items);
	*texts = (struct sw_cli_texts){0};
}

void sw_cli_release(const struct sw_cli_command *command, void *values)
{
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		release_texts(option, values);
	for (size_t i = 0; i < command->operand_count; i++)
		release_texts(&command->operands[i], values);
}
