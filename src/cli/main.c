/* The program: finds the command, parses its words, runs it, and turns what happened into a
 * message and an exit status. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/terminal.h"

static int run_command(const struct sw_cli_command *command, int argc, char **argv, const struct sw_cli_call *line, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) void *values = calloc(1, command->values_size);
	bool help = false;
	if (values == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_cli_parse(command, argc, argv, values, &help, err);
	if (r < 0)
		return r;
	if (help) {
		sw_cli_print_command(stdout, command, sw_cli_terminal(stdout).width);
	} else {
		struct sw_cli_call call = *line;
		call.values = values;
		r = command->run(&call, err);
	}
	sw_cli_release(command, values);
	return r;
}

/* A group says something only about itself. */
static int run_group(const struct sw_cli_group *group, int argc, char **argv, struct sw_err *err)
{
	if (argc > 1 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0) {
		sw_err_set(err, SW_EINPUT, "unknown option '%.60s'", argv[1]);
		sw_err_hint(err, "See 'sharewell help %s'.", group->name);
		return SW_EINPUT;
	}
	bool asked = argc > 1;
	FILE *out = asked ? stdout : stderr;
	sw_cli_print_group(out, group, sw_cli_terminal(out).width);
	return asked ? 0 : SW_CLI_BAD_INPUT;
}

static int run_line(int argc, char **argv, const struct sw_cli_call *line, struct sw_err *err)
{
	if (argc < 2) {
		sw_cli_print_overview(stderr, sw_cli_terminal(stderr).width);
		return SW_CLI_BAD_INPUT;
	}
	const char *first = argv[1];
	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
		sw_cli_print_overview(stdout, sw_cli_terminal(stdout).width);
		return 0;
	}
	if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
		puts("sharewell " SW_VERSION);
		return 0;
	}
	if (first[0] == '-') {
		sw_err_set(err, SW_EINPUT, "unknown option '%.60s'", first);
		sw_err_hint(err, "Options of a command stand behind it; see 'sharewell --help'.");
		return SW_EINPUT;
	}
	struct sw_cli_target target;
	int r = sw_cli_find(argc - 1, argv + 1, &target, err);
	if (r < 0)
		return r;
	argc -= target.words;
	argv += target.words;
	return target.group != NULL ? run_group(target.group, argc, argv, err) : run_command(target.command, argc, argv, line, err);
}

int main(int argc, char **argv)
{
	struct sw_err err = {0};
	/* A reader that went away, or a limit on the size of files, is an error of writing like any
	 * other. So nothing is left half-written. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* Parsing reorders the words; commands want them as they were typed. */
	SW_CLEANUP(sw_freep) char **copy = calloc((size_t)argc + 1, sizeof *copy);
	int r = SW_ENOMEM;
	if (copy == NULL) {
		sw_err_set(&err, r, "out of memory");
	} else {
		memcpy(copy, argv, (size_t)argc * sizeof *copy);
		r = run_line(argc, copy, &(struct sw_cli_call){.argc = argc, .argv = argv}, &err);
	}
	if (r >= 0) {
		int late = sw_cli_finish_stdout(&err);
		r = late < 0 ? late : r;
	}
	if (r == SW_EIO && sw_cli_reader_is_gone())
		return 128 + SIGPIPE;
	if (r < 0)
		sw_cli_print_error(&err);
	return r < 0 ? sw_cli_exit_status(r) : r;
}
