/* Where a live cluster keeps its things on this machine, and where its controller is found.
 *
 *	state    $SHAREWELL_STATE, else $XDG_STATE_HOME/sharewell, else ~/.local/state/sharewell
 *	socket   $XDG_RUNTIME_DIR/sharewell/controller.sock; in the state folder where that was
 *	         named or there is no such directory
 */
#ifndef SW_CLI_PLACES_H
#define SW_CLI_PLACES_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

#define SW_CLI_SOCKET_FOR_ALL "/run/sharewell/controller.sock" /* of a controller that serves every user of the machine */
#define SW_CLI_STATE_FOR_ALL "/var/lib/sharewell"

struct sw_cli_places {
	char state[PATH_MAX];	/* the folder */
	char journal[PATH_MAX]; /* file */
	char runs[PATH_MAX];	/* folder */
	char tokens[PATH_MAX];	/* file */
	char socket[PATH_MAX];
};

/* `state`: the folder that the user named, or NULL. Makes nothing. */
int sw_cli_places(const char *state, bool for_all, struct sw_cli_places *ret_places, struct sw_err *err);
/* Makes the folders, for the user alone. */
int sw_cli_places_make(const struct sw_cli_places *places, bool for_all, struct sw_err *err);

#endif
