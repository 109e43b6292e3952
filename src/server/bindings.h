/* Which nodes an agent may speak for, by its token. */
#ifndef SW_SERVER_BINDINGS_H
#define SW_SERVER_BINDINGS_H

#include "api/sync.h"
#include "base/error.h"

struct sw_server;
struct sw_peer;

/* Notes the token in the sync. SW_EDENIED: it may not. */
int sw_bindings_admit(struct sw_server *server, const struct sw_peer *peer, struct sw_sync *sync, struct sw_err *err);

#endif
