/* sharewell down */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/places.h"
#include "cli/up.h"

#define PATIENCE_MS 20000
#define STEP_MS 20

struct values {
	const char *state;
	bool all_users;
};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	char path[PATH_MAX + 8];
	pid_t holder = 0;
	int r = sw_cli_places(values->state, values->all_users, &places, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof path, "%s/up.pid", places.state);
	if (access(path, F_OK) != 0 || sw_cli_up_lock(path, &holder, err) >= 0 || holder <= 0) {
		sw_err_clear(err);
		sw_err_set(err, SW_ENOTFOUND, "nothing is up in '%s'", places.state);
		return SW_ENOTFOUND;
	}
	if (kill(holder, SIGTERM) != 0)
		return sw_err_set(err, SW_EDENIED, "process %d may not be stopped by you", (int)holder);
	sw_cli_catch_interrupts();
	for (int waited = 0; waited < PATIENCE_MS && sw_cli_interrupted() == 0; waited += STEP_MS) {
		if (kill(holder, 0) != 0) {
			puts("Sharewell is down; jobs that run go on, and are found again at the next 'sharewell up'.");
			return 0;
		}
		poll(NULL, 0, STEP_MS);
	}
	return sw_err_set(err, SW_EIO, "process %d was told to stop, and has not yet", (int)holder);
}

static const struct sw_cli_option options[] = {
	{"state", .kind = SW_CLI_TEXT, .is_path = true, .argument = "DIR", .about = "as it was given to 'sharewell up'",
	 .offset = offsetof(struct values, state)},
	{"all-users", .about = "the one that serves every user of this machine", .offset = offsetof(struct values, all_users)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell down", "stop what 'sharewell up --detach' started"},
};

const struct sw_cli_command sw_cli_down = {
	.name = "down",
	.about = "stop what 'sharewell up' started on this machine",
	.text = "Controller and agent end; jobs that run go on under their supervisors.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
