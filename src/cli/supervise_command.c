/* sharewell supervise FOLDER: started by agents, not by people. */
#include "agent/supervisor/supervisor.h"
#include "cli/command.h"

struct values {
	const char *folder;
};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	return sw_supervise(values->folder, err);
}

static const struct sw_cli_option operands[] = {
	{"FOLDER", .kind = SW_CLI_TEXT, .required = true, .is_path = true, .about = "of the run",
	 .offset = offsetof(struct values, folder)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell supervise runs/12.1", "look after one run until it is over"},
};

const struct sw_cli_command sw_cli_supervise = {
	.name = "supervise",
	.about = "look after one run of a job",
	.hidden = true,
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
