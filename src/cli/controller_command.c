/* sharewell controller */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/catalogue.h"
#include "cli/daemon.h"
#include "cli/message.h"
#include "cli/places.h"
#include "controller/server.h"
#include "controller/tokens.h"

struct values {
	const char *state, *port, *policy, *placement;
	bool all_users;
};

/* Whether the usual port can be had. Who takes it between this and listening makes listening fail, with a message. */
static bool is_free(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	bool free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
	close(fd);
	return free;
}

/* "127.0.0.1:7411"; NULL: not on TCP. */
static int choose_address(const char *port, char buffer[32], const char **ret_address, struct sw_err *err)
{
	uint64_t number = is_free(SW_CLI_PORT) ? SW_CLI_PORT : 0;
	if (port != NULL && strcmp(port, "none") == 0) {
		*ret_address = NULL;
		return 0;
	}
	if (port != NULL && (sw_parse_u64(port, strlen(port), &number) < 0 || number > 65535)) {
		sw_err_set(err, SW_EINPUT, "--port cannot be '%.60s'", port);
		sw_err_detail(err, "it takes a number from 0 (any that is free) to 65535, or none");
		return SW_EINPUT;
	}
	snprintf(buffer, 32, "127.0.0.1:%u", (unsigned)number);
	*ret_address = buffer;
	return 0;
}

static void ready(void *user, const struct sw_controller_place *place)
{
	(void)user;
	char text[PATH_MAX + 128];
	if (getenv(SW_CLI_READY_FD) == NULL)
		fprintf(stderr, "sharewell: controller ready: %s%s%s, %llu jobs known\n", place->socket_path,
			place->address != NULL ? " and http://" : "", place->address != NULL ? place->address : "",
			(unsigned long long)place->jobs);
	snprintf(text, sizeof text, "%s%s\n", place->address != NULL ? "http://" : "", place->address != NULL ? place->address : "-");
	sw_cli_say_ready(text);
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	char address[32], logs[PATH_MAX + 8];
	const char *listen = NULL;
	int r = choose_address(values->port, address, &listen, err);
	r = r < 0 ? r : sw_cli_places(values->state, values->all_users, &places, err);
	r = r < 0 ? r : sw_cli_places_make(&places, values->all_users, err);
	r = r < 0 ? r : sw_tokens_make(places.tokens, err);
	if (r < 0)
		return r;
	snprintf(logs, sizeof logs, "%s/logs", places.state);
	struct sw_controller_options options = {
		.journal_path = places.journal,
		.socket_path = places.socket,
		.socket_for_all = values->all_users,
		.listen = listen,
		.tokens_path = places.tokens,
		.runs_folder = places.runs,
		.logs_folder = logs,
		.policy = values->policy,
		.placement = values->placement,
		.on_ready = ready,
		.on_note = sw_cli_daemon_note,
	};
	return sw_controller_run(&options, err);
}

static const struct sw_cli_option options[] = {
	{"state", .kind = SW_CLI_TEXT, .is_path = true, .argument = "DIR",
	 .about = "where the journal and the runs are kept; below $XDG_STATE_HOME unless told", .offset = offsetof(struct values, state)},
	{"port", .kind = SW_CLI_TEXT, .argument = "N",
	 .about = "of 127.0.0.1; 7411 unless that is taken, 0 for any that is free, none for the socket alone",
	 .offset = offsetof(struct values, port)},
	{"policy", 'p', .kind = SW_CLI_WORD, .argument = "NAME", .words = &sw_cli_policy_names,
	 .about = "the policy of a new cluster; one that was set later stays", .offset = offsetof(struct values, policy)},
	{"placement", 'P', .kind = SW_CLI_WORD, .argument = "NAME", .words = &sw_cli_placement_words, .about = "the placement rule",
	 .offset = offsetof(struct values, placement)},
	{"all-users", .about = "serve every user of this machine, at " SW_CLI_SOCKET_FOR_ALL, .offset = offsetof(struct values, all_users)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell controller --policy las", "run a controller alone; agents are started elsewhere"},
};

const struct sw_cli_command sw_cli_controller = {
	.name = "controller",
	.about = "run the controller alone: queue, policy, journal, HTTP API",
	.text = "It listens on a UNIX socket, where the kernel says who asks, and on 127.0.0.1, where a token is needed: the file 'tokens' "
		"in the state "
		"folder holds one for each role. Every request is in the journal before it is answered; after a crash it goes on where it "
		"was.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
