/* From a request to its handler, if its caller may. */
#ifndef SW_SERVER_DISPATCH_H
#define SW_SERVER_DISPATCH_H

#include <stdbool.h>

#include "api/request.h"
#include "base/error.h"

struct sw_server;
struct sw_conn;
struct sw_peer;

void sw_dispatch(struct sw_server *server, struct sw_conn *conn);
/* Whether the token or the socket allows what the head asks for. 0, or the status (401, 403). */
int sw_authorise(struct sw_server *server, const struct sw_request *request, bool is_tcp, const char *token, struct sw_peer *peer,
		 struct sw_err *err);

#endif
