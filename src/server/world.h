/* The world in force, and another one. */
#ifndef SW_SERVER_WORLD_H
#define SW_SERVER_WORLD_H

#include "base/error.h"
#include "brain/brain.h"

struct sw_server;
struct sw_conn;

/* The world that the controller was started with, unless that is in force or an operator chose
 * another: records of it. */
int sw_server_begin_world(struct sw_server *server, sw_records *records, struct sw_err *err);

/* The handlers of its routes. */
void sw_handle_world(struct sw_server *server, struct sw_conn *conn);
void sw_handle_set_world(struct sw_server *server, struct sw_conn *conn);

#endif
