/* The table of commands keeps its promises, and commands are found by their words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/parse.h"

#define WORDS_MAX 64

static bool is_lower_words(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

static void check_option(const struct sw_cli_command *command, size_t index)
{
	const struct sw_cli_option *option = sw_cli_option_at(command, index);
	assert_true(is_lower_words(option->name));
	assert_string_not_equal(option->name, "help");
	/* -h is help, but where Slurm's users know it as this. */
	assert_true(option->letter != 'h' || strcmp(option->name, "noheader") == 0);
	assert_non_null(option->about);
	assert_int_not_equal(option->about[strlen(option->about) - 1], '.');
	assert_int_equal(option->kind == SW_CLI_FLAG, option->argument == NULL);
	assert_true(option->kind != SW_CLI_WORD || option->words != NULL);
	assert_true((option->kind != SW_CLI_COUNT && option->kind != SW_CLI_MILLI) || option->most > option->least);
	assert_true(option->offset < command->values_size);
	for (size_t other = 0; other < index; other++) {
		const struct sw_cli_option *before = sw_cli_option_at(command, other);
		assert_string_not_equal(option->name, before->name);
		assert_true(option->letter == '\0' || option->letter != before->letter);
		assert_true(option->offset != before->offset);
	}
}

/* Every command has what help, manual and completions need, and no two options of
 * one command are alike. */
static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++) {
		const struct sw_cli_command *command = sw_cli_commands[i];
		assert_non_null(command->about);
		assert_non_null(command->run);
		assert_true(sw_cli_option_count(command) <= SW_CLI_OPTIONS_MAX);
		assert_true(command->example_count > 0);
		for (size_t o = 0; o < sw_cli_option_count(command); o++)
			check_option(command, o);
		for (size_t o = 0; o < command->operand_count; o++)
			assert_true(command->operands[o].about != NULL && command->operands[o].name[0] >= 'A' &&
				    command->operands[o].name[0] <= 'Z');
	}
}

/* Cuts the line at spaces, up to what a shell would treat as the end of the command. */
static int split(char *line, char **words)
{
	int count = 0;
	char *rest = NULL;
	for (char *word = strtok_r(line, " ", &rest); word != NULL && count < WORDS_MAX - 1; word = strtok_r(NULL, " ", &rest)) {
		if (strcmp(word, "|") == 0 || strcmp(word, ">") == 0)
			break;
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

static void check_example(const struct sw_cli_command *command, const char *text)
{
	SW_CLEANUP(sw_freep) char *line = strdup(text);
	SW_CLEANUP(sw_freep) void *values = calloc(1, command->values_size);
	char *words[WORDS_MAX];
	struct sw_cli_target target;
	struct sw_err err = {0};
	bool help = false;
	int count = split(line, words);
	assert_true(count > 1);
	assert_string_equal(words[0], "sharewell");
	assert_int_equal(sw_cli_find(count - 1, words + 1, &target, &err), 0);
	assert_ptr_equal(target.command, command);
	int r = sw_cli_parse(command, count - target.words, words + target.words, values, &help, &err);
	if (r < 0)
		print_error("%s: %s: %s\n", text, err.fact, err.detail);
	assert_int_equal(r, 0);
	assert_false(help);
	sw_cli_release(command, values);
}

/* Every example in the help is a command line that works as far as parsing goes, for the
 * command that shows it. */
static void test_examples(void **state)
{
	(void)state;
	for (size_t i = 0; sw_cli_commands[i] != NULL; i++)
		for (size_t e = 0; e < sw_cli_commands[i]->example_count; e++)
			check_example(sw_cli_commands[i], sw_cli_commands[i]->examples[e].line);
}

static int find(const char *first, const char *second, struct sw_cli_target *target, struct sw_err *err)
{
	char a[64], b[64];
	char *words[] = {a, b};
	strcpy(a, first);
	strcpy(b, second != NULL ? second : "");
	*err = (struct sw_err){0};
	return sw_cli_find(second != NULL ? 2 : 1, words, target, err);
}

/* A command is found by one word or by two; a group alone is a group, also before an option. */
static void test_find(void **state)
{
	(void)state;
	struct sw_cli_target target;
	struct sw_err err;
	assert_int_equal(find("sim", "stats", &target, &err), 0);
	assert_ptr_equal(target.command, &sw_cli_sim);
	assert_int_equal(target.words, 1);
	assert_int_equal(find("trace", "stats", &target, &err), 0);
	assert_ptr_equal(target.command, &sw_cli_trace_stats);
	assert_int_equal(target.words, 2);
	assert_int_equal(find("trace", NULL, &target, &err), 0);
	assert_null(target.command);
	assert_string_equal(target.group->name, "trace");
	assert_int_equal(find("trace", "--help", &target, &err), 0);
	assert_non_null(target.group);
}

/* What is not there gets the nearest name, of the group where one was named; a command of a
 * group is none by itself. */
static void test_find_unknown(void **state)
{
	(void)state;
	struct sw_cli_target target;
	struct sw_err err;
	assert_int_equal(find("smi", NULL, &target, &err), SW_EINPUT);
	assert_string_equal(err.hint, "Did you mean 'sharewell sim'?");
	assert_int_equal(find("trace", "chekc", &target, &err), SW_EINPUT);
	assert_string_equal(err.fact, "unknown command 'trace chekc'");
	assert_string_equal(err.hint, "Did you mean 'sharewell trace check'?");
	assert_int_equal(find("stats", NULL, &target, &err), SW_EINPUT);
	assert_int_equal(find("trace stats", NULL, &target, &err), SW_EINPUT);
	assert_int_equal(find("", NULL, &target, &err), SW_EINPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
