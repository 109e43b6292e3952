/* Sockets that connections come from. */
#ifndef SW_SERVER_LISTEN_H
#define SW_SERVER_LISTEN_H

#include <stdbool.h>

#include "base/error.h"

struct sw_server;

struct sw_listeners;
/* Whether it is an address that could be listened on. */
int sw_listen_check(const char *text, bool with_tls, struct sw_err *err);
int sw_listen(struct sw_server *server, struct sw_listeners **ret_listeners, struct sw_err *err);
const char *sw_listeners_address(const struct sw_listeners *listeners); /* NULL: not on TCP */
void sw_listeners_free(struct sw_listeners *listeners);

#endif
