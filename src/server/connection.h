/* HTTP on one socket: requests come, answers and streams go. */
#ifndef SW_SERVER_CONNECTION_H
#define SW_SERVER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"

struct sw_server;
struct sw_conn;
struct sw_request;
struct sw_caller_key;
struct sw_peer;

typedef void sw_conn_fn(void *attached);

/* Takes the descriptor where it returns 0. */
int sw_conn_new(struct sw_server *server, int fd, bool is_tcp, const struct sw_peer *peer, const struct sw_caller_key *key);
/* Something that waits for this connection, or feeds it: `closed` is called, once, when the
 * connection ends before sw_conn_detach(). A connection without `patient` attachments ends as
 * soon as the client shuts its side down. */
void sw_conn_attach(struct sw_conn *conn, void *attached, sw_conn_fn *closed, bool patient);
void sw_conn_detach(struct sw_conn *conn);
struct sw_request *sw_conn_request(struct sw_conn *conn);
struct sw_request *sw_conn_take_request(struct sw_conn *conn);
const struct sw_peer *sw_conn_peer(const struct sw_conn *conn);
bool sw_conn_last_event_id(const struct sw_conn *conn, uint64_t *ret_id);
int sw_conns_start(struct sw_server *server, struct sw_err *err);
void sw_conns_stop(struct sw_server *server);
void sw_conns_close_all(struct sw_server *server);
/* Ends what goes on for tokens that are no more, or not the same any more. Not from within a
 * request. */
void sw_conns_close_revoked(struct sw_server *server);

TAILQ_HEAD(sw_conns, sw_conn);

#endif
