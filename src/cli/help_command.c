/* sharewell help [COMMAND] */
#include "cli/help.h"
#include "cli/terminal.h"

struct values {
	struct sw_cli_texts words;
	bool man;
};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	unsigned width = sw_cli_terminal(stdout).width;
	if (values->man) {
		sw_cli_print_man(stdout);
		return 0;
	}
	if (values->words.count == 0) {
		sw_cli_print_overview(stdout, width);
		return 0;
	}
	struct sw_cli_target target;
	/* The words were the command line's; the cast gives back what parsing took away. */
	int r = sw_cli_find((int)values->words.count, (char *const *)(uintptr_t)values->words.items, &target, err);
	if (r < 0)
		return r;
	if ((size_t)target.words < values->words.count) {
		sw_err_set(err, SW_EINPUT, "unexpected argument '%.60s'", values->words.items[target.words]);
		sw_err_hint(err, "See 'sharewell help'.");
		return SW_EINPUT;
	}
	if (target.group != NULL)
		sw_cli_print_group(stdout, target.group, width);
	else
		sw_cli_print_command(stdout, target.command, width);
	return 0;
}

static const struct sw_cli_option options[] = {
	{"man", .about = "print the manual page of all commands instead", .offset = offsetof(struct values, man)},
};

static const struct sw_cli_option operands[] = {
	{"COMMAND", .kind = SW_CLI_TEXTS, .about = "the command to tell about", .offset = offsetof(struct values, words)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell help trace convert", "read about one command"},
	{"sharewell help --man | man -l -", "read everything"},
};

const struct sw_cli_command sw_cli_help = {
	.name = "help",
	.about = "tell about a command",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
