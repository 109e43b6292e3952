/* Command lines of any words: the parser accepts or refuses with a reason, never reads a file, and
 * leaves nothing behind. So do settings.
 *
 * The input is words, each ended by a newline or the end of the input. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/parse.h"
#include "cli/settings.h"
#include "policy/registry.h"

#define WORDS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(int code, const struct sw_err *err)
{
	assert(code == SW_EINPUT || code == SW_ELIMIT || code == SW_ENOTFOUND);
	assert(err->code == code && err->fact[0] != '\0');
	assert(memchr(err->fact, '\0', sizeof err->fact) && memchr(err->detail, '\0', sizeof err->detail) &&
	       memchr(err->hint, '\0', sizeof err->hint));
}

/* Texts point into the words, numbers keep to their bounds; one that was not given
 * and has no preset is 0. */
static void check_option(const struct sw_cli_option *option, const void *values)
{
	const void *slot = (const char *)values + option->offset;
	if (option->kind == SW_CLI_COUNT || option->kind == SW_CLI_MILLI) {
		uint64_t number = *(const uint64_t *)slot;
		assert((number == 0 && option->preset == NULL) || (number >= option->least && number <= option->most));
	}
	if (option->kind == SW_CLI_WORD && *(const char *const *)slot != NULL)
		assert(strlen(*(const char *const *)slot) < 64);
	if (option->kind == SW_CLI_TEXT && option->required)
		assert(*(const char *const *)slot != NULL);
}

static void try_line(int count, char **words)
{
	struct sw_cli_target target;
	struct sw_err err = {0};
	int r = sw_cli_find(count, words, &target, &err);
	if (r < 0) {
		check_error(r, &err);
		return;
	}
	if (target.command == NULL)
		return;
	assert(target.words >= 1 && target.words <= count);
	const struct sw_cli_command *command = target.command;
	SW_CLEANUP(sw_freep) void *values = calloc(1, command->values_size);
	bool help = false;
	/* The command's last word stands where a program's name does. */
	r = sw_cli_parse(command, count - target.words + 1, words + target.words - 1, values, &help, &err);
	if (r < 0) {
		check_error(r, &err);
		return;
	}
	bool alone = false;
	const struct sw_cli_option *option;
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL; i++)
		alone = alone || (option->alone && *(const bool *)((const char *)values + option->offset));
	for (size_t i = 0; (option = sw_cli_option_at(command, i)) != NULL && !help && !alone; i++)
		check_option(option, values);
	sw_cli_release(command, values);
}

static void try_setting(const char *text)
{
	struct sw_cli_setting setting;
	struct sw_err err = {0};
	int r = sw_cli_setting_parse(text, &setting, &err);
	if (r < 0) {
		check_error(r, &err);
		return;
	}
	assert(strlen(setting.owner) + strlen(setting.key) + strlen(setting.value) + 2 == strlen(text));
	if (sw_cli_setting_is_world(&setting)) {
		SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
		r = sw_world_load("ideal", &world, &err);
		assert(r == 0);
		r = sw_cli_setting_world(&setting, world, &err);
	}
	for (size_t i = 0; sw_policies[i] != NULL; i++) {
		if (strcmp(sw_policies[i]->name, setting.owner) != 0)
			continue;
		SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
		r = sw_params_new(sw_policies[i], &params, &err);
		assert(r == 0);
		r = sw_cli_setting_policy(&setting, params, false, &err);
	}
	if (r < 0)
		check_error(r, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SW_CLEANUP(sw_freep) char *text = malloc(size + 1);
	char *words[WORDS_MAX + 1];
	int count = 0;
	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *word = text; count < WORDS_MAX && word < text + size; word += strlen(word) + 1) {
		word[strcspn(word, "\n")] = '\0';
		words[count++] = word;
	}
	words[count] = NULL;
	for (int i = 0; i < count; i++)
		try_setting(words[i]);
	try_line(count, words);
	return 0;
}
