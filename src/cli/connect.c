#include "cli/connect.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/routes.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/places.h"
#include "client/token.h"

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

static void note(const char *text)
{
	sw_cli_print_note("%s", text);
}

static bool stops(void)
{
	return sw_cli_interrupted() != 0;
}

int sw_cli_connect(const char *controller, struct sw_client **ret_client, struct sw_err *err)
{
	static const struct sw_client_manner manner = {.note = note, .stops = stops};
	struct sw_cli_places places;
	char socket[PATH_MAX + 8];
	SW_CLEANUP(sw_freep) char *own = NULL;
	const char *token = setting("SHAREWELL_TOKEN");
	controller = controller != NULL ? controller : setting("SHAREWELL_CONTROLLER");
	if (controller == NULL) {
		int r = sw_cli_places(NULL, false, &places, err);
		if (r < 0)
			return r;
		bool machine = access(places.socket, F_OK) != 0 && access(SW_CLI_SOCKET_FOR_ALL, F_OK) == 0;
		snprintf(socket, sizeof socket, "unix:%s", machine ? SW_CLI_SOCKET_FOR_ALL : places.socket);
		controller = socket;
	} else if (token == NULL && strncmp(controller, "unix:", 5) != 0) {
		/* Without one the controller says that it wants one. */
		struct sw_err ignored = {0};
		if (sw_cli_places(NULL, false, &places, &ignored) == 0 && sw_token_first(places.tokens, SW_ROLE_USER, &own, &ignored) == 0)
			token = own;
	}
	return sw_client_open(controller, token, setting("SHAREWELL_CA"), &manner, ret_client, err);
}
