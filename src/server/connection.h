/* HTTP on one socket: requests come, answers and streams go. */
#ifndef SW_SERVER_CONNECTION_H
#define SW_SERVER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/json.h"
#include "base/error.h"

struct sw_server;
struct sw_conn;
struct sw_request;
struct sw_caller_key;
struct sw_peer;

#define SW_STREAMS_MAX 1024u /* of all users together, and as many of the owner and operators */
#define SW_NODES_MAX 16384u
#define SW_BODIES_MAX ((uint64_t)256 << 20) /* bytes of bodies that are on their way, of each class of callers */
#define SW_OUTPUT_HIGH ((size_t)512 << 10)  /* of one connection, before nothing more is made for it */
#define SW_STREAM_HIGH ((size_t)64 << 10)   /* the same of a stream, whose reader may never read */

typedef void sw_conn_fn(void *attached);

/* Takes the descriptor where it returns 0. */
int sw_conn_new(struct sw_server *server, int fd, bool is_tcp, const struct sw_peer *peer, const struct sw_caller_key *key);
/* Answers the request at hand. `headers` are whole lines with CR LF, or NULL. */
void sw_conn_reply(struct sw_conn *conn, int status, const char *media, const char *headers, const char *body, size_t size);
void sw_conn_reply_json(struct sw_conn *conn, int status, struct sw_json *json); /* releases it */
/* One answer for many: its text is there once. */
struct sw_shared;
struct sw_shared *sw_shared_take(struct sw_json *json); /* releases it; NULL: out of memory */
void sw_shared_drop(struct sw_shared *shared);
void sw_conn_reply_shared(struct sw_conn *conn, int status, struct sw_shared *shared); /* NULL: says so */
void sw_conn_reply_error(struct sw_conn *conn, int status, const struct sw_err *err);
/* The same with when to come back. */
void sw_conn_reply_later(struct sw_conn *conn, int status, const struct sw_err *err, unsigned seconds);
/* Room for one more stream: 0, or the status that says that there is none. */
int sw_conn_admit_stream(struct sw_conn *conn, struct sw_err *err);
/* An answer of unknown length; `drained` is called when more can be written. */
void sw_conn_stream(struct sw_conn *conn, const char *media, const char *headers, sw_conn_fn *drained);
bool sw_conn_has_room(const struct sw_conn *conn);
void sw_conn_write(struct sw_conn *conn, const char *bytes, size_t size);
void sw_conn_end_stream(struct sw_conn *conn);
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
