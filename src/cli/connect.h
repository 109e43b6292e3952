/* A client for the controller that the user means. */
#ifndef SW_CLI_CONNECT_H
#define SW_CLI_CONNECT_H

#include "client/client.h"

/* `controller` as in client/address.h, or NULL: $SHAREWELL_CONTROLLER, else the socket of the
 * user's own controller, else that of the machine's. The token of a URL is $SHAREWELL_TOKEN,
 * else the user's in the state folder; $SHAREWELL_CA says which controller to believe
 * (client/trust.h). Ctrl-C ends its calls; its notes go to standard error. */
int sw_cli_connect(const char *controller, struct sw_client **ret_client, struct sw_err *err);

#endif
