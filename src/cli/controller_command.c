/* sharewell controller */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/supervisor/supervisor.h"
#include "cli/catalogue.h"
#include "cli/daemon.h"
#include "cli/endpoint.h"
#include "cli/lost.h"
#include "cli/message.h"
#include "cli/own_profiles.h"
#include "cli/places.h"
#include "cli/plugin.h"
#include "server/certificate.h"
#include "server/server.h"
#include "server/tokens.h"

struct values {
	const char *state, *policy, *placement, *plugin, *failures, *world;
	struct sw_cli_endpoint endpoint;
	struct sw_cli_lost lost;
	uint64_t validate_every;
};

static void ready(void *user, const struct sw_controller_place *place)
{
	const struct values *values = user;
	char text[PATH_MAX + 128], address[128] = "-";
	/* With an authority's certificate no fingerprint is needed. */
	const char *pin = place->pin != NULL && values->endpoint.self_signed ? place->pin : "";
	if (place->address != NULL)
		snprintf(address, sizeof address, "%s://%s", place->pin != NULL ? "https" : "http", place->address);
	if (getenv(SW_CLI_READY_FD) == NULL) {
		sw_cli_print_news("controller ready: %s%s%s, %llu jobs known", place->socket_path, place->address != NULL ? " and " : "",
				  place->address != NULL ? address : "", (unsigned long long)place->jobs);
		/* Words for a terminal: they are not looked for in a log. */
		if (!sw_cli_stamps_messages())
			sw_cli_endpoint_print(address, pin, stderr);
	}
	snprintf(text, sizeof text, "%s %s\n", address, pin);
	sw_cli_say_ready(text);
}

static void release_users(sw_cli_users *users)
{
	sw_vec_free(users);
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	char address[32], logs[PATH_MAX + 8], slowdowns[PATH_MAX + 20], certificate[PATH_MAX + 8], key[PATH_MAX + 8], profiles[PATH_MAX];
	const char *listen = NULL;
	const struct sw_cli_endpoint *endpoint = &values->endpoint;
	struct values copy = *values; /* for ready(), which is given what it may write */
	SW_CLEANUP(release_users) sw_cli_users operators = {0};
	const struct sw_policy *plugin = NULL;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	const char *failures = values->failures != NULL ? values->failures : getenv(SW_FAILURES_VARIABLE);
	sw_cli_daemon_begin();
	int r = values->plugin != NULL ? sw_cli_load_live_policy(values->plugin, &plugin, err) : 0;
	r = r < 0 ? r : sw_controller_load_world(values->world, &world, err);
	r = r < 0 ? r : sw_cli_endpoint_places(endpoint, values->state, &places, err);
	r = r < 0 ? r : sw_cli_endpoint_check(endpoint, failures, err);
	r = r < 0 ? r : sw_cli_endpoint_address(endpoint, address, &listen, err);
	r = r < 0 ? r : sw_cli_endpoint_operators(endpoint, &operators, err);
	r = r < 0 ? r : sw_cli_places_make(&places, endpoint->all_users, err);
	r = r < 0 ? r : sw_tokens_make(places.tokens, err);
	r = r < 0 ? r : sw_cli_own_profiles_path(values->state, endpoint->all_users, profiles, err);
	if (r < 0)
		return r;
	snprintf(logs, sizeof logs, "%s/logs", places.state);
	snprintf(slowdowns, sizeof slowdowns, "%s/slowdowns.json", places.state);
	snprintf(certificate, sizeof certificate, "%s/tls.crt", places.state);
	snprintf(key, sizeof key, "%s/tls.key", places.state);
	r = endpoint->self_signed ? sw_certificate_make(certificate, key, err) : 0;
	if (r < 0)
		return r;
	struct sw_controller_options options = {
		.journal_path = places.journal,
		.socket_path = places.socket,
		.socket_for_all = endpoint->all_users,
		.operators = operators.items,
		.operator_count = operators.count,
		.listen = listen,
		.tls_certificate = endpoint->self_signed ? certificate : endpoint->tls_cert,
		.tls_key = endpoint->self_signed ? key : endpoint->tls_key,
		.tokens_path = places.tokens,
		.runs_folder = places.runs,
		.logs_folder = logs,
		.slowdowns_path = slowdowns,
		.policy = values->policy,
		.placement = values->placement,
		.plugin = plugin,
		.world = world,
		.world_named = values->world != NULL,
		.failures = failures,
		.profiles = profiles,
		.validate_every = (uint32_t)values->validate_every,
		.on_ready = ready,
		.on_note = sw_cli_daemon_note,
		.user = &copy,
	};
	r = endpoint->bounds != NULL ? sw_user_bounds_parse(endpoint->bounds, &options.bounds, err) : 0;
	r = r < 0 ? r : sw_cli_lost_read(&values->lost, &options, err);
	r = r < 0 ? r : sw_cli_endpoint_keep(endpoint, &options, err);
	return r < 0 ? r : sw_controller_run(&options, err);
}

static const struct sw_cli_option options[] = {
	{"state", .kind = SW_CLI_TEXT, .is_path = true, .argument = "DIR",
	 .about = "where the journal and the runs are kept; below $XDG_STATE_HOME by default", .offset = offsetof(struct values, state)},
	{"policy", 'p', .kind = SW_CLI_WORD, .argument = "NAME", .words = &sw_cli_policy_names,
	 .about = "the policy of a new cluster; one that was set later stays", .offset = offsetof(struct values, policy)},
	{"placement", 'P', .kind = SW_CLI_WORD, .argument = "NAME", .words = &sw_cli_placement_words, .about = "the placement rule",
	 .offset = offsetof(struct values, placement)},
	{"world", 'w', .kind = SW_CLI_TEXT, .is_path = true, .argument = "WORLD",
	 .about = "the terms of the cluster: a name, or a YAML file of your own; one that was set later stays (" SW_WORLD_LIVE ")",
	 .offset = offsetof(struct values, world)},
	{"failures", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "classes of failures of your own, ahead of the built-in ones; agents need it too. Else $SHAREWELL_FAILURES",
	 .offset = offsetof(struct values, failures)},
	{"plugin", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "a policy of your own, for 'sharewell policy NAME'; needed at every start while it is in charge",
	 .offset = offsetof(struct values, plugin)},
	SW_CLI_LOST_OPTIONS(struct values),
	SW_CLI_VALIDATE_OPTION(struct values),
	SW_CLI_ENDPOINT_OPTIONS(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell controller --policy las", "run a controller alone; agents are started elsewhere"},
	{"sharewell controller --listen 0.0.0.0:8443 --tls-self-signed", "let agents and users on other machines connect"},
};

const struct sw_cli_command sw_cli_controller = {
	.name = "controller",
	.about = "run the controller alone: queue, policy, journal, HTTP API",
	.text = "It listens on a UNIX socket, where the kernel names the user. With --port it listens on 127.0.0.1 as well, and with "
		"--listen where other machines can connect. There a token is needed, which 'sharewell token create' makes. Addresses that "
		"other machines can reach are served with TLS alone. What a user takes is bounded (--bounds), and so is what those without "
		"a token take. Over a bound a client is told to come back later, and the commands do so by themselves. SIGHUP makes it "
		"read "
		"tokens and certificate again. Every request is in the journal before it is answered; after a crash it goes on where it "
		"was. Jobs that have ended leave its memory (--keep-jobs, --keep-for). Then ps, history, show, why and logs answer from "
		"rows in the journal's file (--keep-history). These hold all but the environment. What happened is kept for 'sim "
		"--journal' "
		"(--keep-events).",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
