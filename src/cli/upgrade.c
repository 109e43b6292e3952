/* sharewell upgrade */
#include <inttypes.h>
#include <stdio.h>

#include "agent/renew.h"
#include "cli/command.h"
#include "cli/places.h"

struct values {
	const char *state;
	bool all_users;
};

static int complain(const struct sw_renewed *renewed, struct sw_err *err)
{
	const char *supervisors = renewed->deaf == 1 ? "supervisor" : "supervisors";
	if (renewed->unreadable == 0) {
		sw_err_set(err, SW_EIO, "%u %s did not answer", renewed->deaf, supervisors);
		sw_err_hint(err, "A supervisor may have been about to start or to end: say it again before you stop anything.");
		return SW_EIO;
	}
	sw_err_set(err, SW_EIO, "%u %s an order that cannot be read; the first is job %" PRIu64, renewed->unreadable,
		   renewed->unreadable == 1 ? "job has" : "jobs have", renewed->unreadable_job);
	if (renewed->deaf > 0)
		sw_err_detail(err, "besides, %u %s did not answer: say it again for those", renewed->deaf, supervisors);
	sw_err_hint(err, "Such a job is not told: cancel it, or let it end, before you stop anything.");
	return SW_EIO;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	struct sw_renewed renewed = {0};
	int r = sw_cli_places(values->state, values->all_users, &places, err);
	r = r < 0 ? r : sw_agent_renew(places.state, &renewed, err);
	if (r < 0)
		return r;
	printf("%u %s will go on while Sharewell is stopped.\n", renewed.told, renewed.told == 1 ? "job" : "jobs");
	if (renewed.leased > 0)
		printf("%u more %s submitted with --on-lost restart, and will do so for the length of the lease.\n", renewed.leased,
		       renewed.leased == 1 ? "was" : "were");
	return renewed.deaf > 0 || renewed.unreadable > 0 ? complain(&renewed, err) : 0;
}

static const struct sw_cli_option options[] = {
	{"state", .kind = SW_CLI_TEXT, .is_path = true, .argument = "DIR",
	 .about = "as it was given to 'sharewell up' or 'sharewell agent'", .offset = offsetof(struct values, state)},
	{"all-users", .about = "the one that serves every user of this machine", .offset = offsetof(struct values, all_users)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell upgrade", "before version 0.1 is stopped: its jobs go on"},
};

const struct sw_cli_command sw_cli_upgrade = {
	.name = "upgrade",
	.about = "let the jobs of version 0.1 on this machine go on while it is replaced",
	.text = "Supervisors of version 0.1 kill their job some 25 s after agent or controller are gone. This tells all of this machine "
		"that they need not, before anything is stopped. Run it with the new program while the old one is still up. Then stop the "
		"old one and start the new one. Jobs that start in between are not told; stop the old one within 20 s, or drain the node "
		"first. Later versions need none of this.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
