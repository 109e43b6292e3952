/* Answers and streams of a connection. */
#ifndef SW_SERVER_ANSWERS_H
#define SW_SERVER_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

#include "api/json.h"
#include "base/error.h"
#include "server/connection.h"

#define SW_OUTPUT_HIGH ((size_t)512 << 10) /* of one connection, before nothing more is made for it */
#define SW_STREAM_HIGH ((size_t)64 << 10)  /* the same of a stream, whose reader may never read */

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

#endif
