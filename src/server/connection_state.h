/* One connection, as connection.c and places.c see it. */
#ifndef SW_SERVER_CONNECTION_STATE_H
#define SW_SERVER_CONNECTION_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/answers.h"
#include "server/callers.h"
#include "server/connection.h"

enum phase { HEAD, BODY, READING, BUSY, STREAM, LINGER };

struct bufferevent;
struct event;

struct sw_conn {
	TAILQ_ENTRY(sw_conn) link, caller_link, away_link, late_link;
	struct sw_server *server;
	struct sw_caller *caller;
	struct bufferevent *bev;
	struct event *timer;
	struct sw_peer peer;
	enum phase phase;
	bool is_tcp, is_idle, keep_alive, is_old; /* old: HTTP/1.0 */
	bool advancing, eof, doomed;
	bool is_tls, is_open, is_full; /* open: the handshake is done; full: not read from for now */
	bool asked;		       /* one whole head has come */
	bool turned_away;	       /* there was no room for it: it hears that, and counts elsewhere */
	bool ends_soon;		       /* it makes room for another, and counts no more */
	bool is_late;		       /* it waits for the next round of the loop */
	bool counts_head, counts_stream;
	int64_t since_ns; /* uptime: when it came, or became or ceased to be idle */
	size_t input_most;
	size_t body_size;
	char *body;	  /* from when it begins to come until it is read; NULL */
	size_t body_have; /* bytes of it that have come */
	bool is_read;
	uint64_t body_counted;
	uint64_t last_event_id;
	bool has_last_event_id;
	struct sw_request *request;
	void *attached;
	sw_conn_fn *closed, *drained;
	bool patient;
};

/* Closes it when the loop comes to it. Not at once, since its owner may be at work on it or on a
 * list that it is in. */
void sw_conn_end_soon(struct sw_conn *conn);
/* Only where no request is at work. */
void sw_conn_end_now(struct sw_conn *conn);

/* When it is closed unless something comes; 0: never. */
void sw_conn_set_deadline(struct sw_conn *conn, uint32_t ms);
void sw_conn_set_idle(struct sw_conn *conn, bool idle);
/* The answer is on its way: the next request, or the end. */
void sw_conn_finish(struct sw_conn *conn);

/* ---- reading.c */
#define SW_INPUT_USUAL ((size_t)64 << 10)
/* For how long a head may take to come. */
uint32_t sw_conn_head_ms(const struct sw_conn *conn);
/* False: it has not come yet. */
bool sw_conn_try_head(struct sw_conn *conn);
bool sw_conn_try_body(struct sw_conn *conn);
/* One slice of reading the body, or of none while its caller has to wait. True: it is read, or
 * cannot be, and the client has its answer or waits for it. */
bool sw_conn_read_body(struct sw_conn *conn);

#endif
