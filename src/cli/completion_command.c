/* sharewell completion SHELL */
#include <string.h>

#include "cli/command.h"
#include "cli/completion.h"

struct values {
	const char *shell;
};

static const struct {
	const char *name;
	void (*print)(FILE *out);
} shells[] = {{"bash", sw_cli_complete_bash}, {"zsh", sw_cli_complete_zsh}, {"fish", sw_cli_complete_fish}};

static const char *shell_word(size_t index)
{
	return index < SW_CLI_COUNT_OF(shells) ? shells[index].name : NULL;
}

static const struct sw_cli_words shell_words = {.at = shell_word};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	(void)err;
	for (size_t i = 0; i < SW_CLI_COUNT_OF(shells); i++)
		if (strcmp(values->shell, shells[i].name) == 0)
			shells[i].print(stdout);
	return 0;
}

static const struct sw_cli_option operands[] = {
	{"SHELL", .kind = SW_CLI_WORD, .words = &shell_words, .required = true, .about = "the shell",
	 .offset = offsetof(struct values, shell)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell completion bash > ~/.local/share/bash-completion/completions/sharewell", "complete in bash from the next shell on"},
	{"sharewell completion fish > ~/.config/fish/completions/sharewell.fish", "complete in fish"},
	{"sharewell completion zsh > ~/.zfunc/_sharewell", "complete in zsh, where ~/.zfunc is in $fpath"},
};

const struct sw_cli_command sw_cli_completion = {
	.name = "completion",
	.about = "print a script that completes commands in a shell",
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
