/* Which connections, bodies and streams there is room for. What returns a status returns 0, 429
 * or 503. */
#ifndef SW_SERVER_PLACES_H
#define SW_SERVER_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sw_server;
struct sw_conn;
struct sw_caller;

/* Whether there is room for one more connection of this caller; makes some. */
int sw_place_admit(struct sw_server *server, struct sw_caller *caller, struct sw_err *err);
/* Whether one more connection of this caller, for which there is no room, may hear that. One
 * that has heard it makes way. */
bool sw_place_turn_away(struct sw_server *server, struct sw_caller *caller);
void sw_place_take(struct sw_conn *conn, struct sw_caller *caller, bool turned_away);
void sw_place_leave(struct sw_conn *conn);
/* Once the head tells whose it is. */
int sw_place_settle(struct sw_conn *conn, struct sw_err *err);
/* A head that has begun, and has not come whole; and the end of that. */
int sw_place_head(struct sw_conn *conn, bool begun, struct sw_err *err);
/* A body of this size is to come; 0: no more. Small ones are not counted. */
int sw_place_body(struct sw_conn *conn, uint64_t size, struct sw_err *err);
void sw_place_stream(struct sw_conn *conn, bool is_one);

#endif
