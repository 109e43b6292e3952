/* HTTP on one socket: heads and bodies in, answers and streams out, one request at a time.
 *
 *	HEAD -> BODY -> READING (in slices) -> BUSY (a handler works on it) -> HEAD ...
 *	                                         \-> STREAM -> HEAD ...
 *	any -> LINGER (the answer is written; what still comes is thrown away, so that the client
 *	               can read the answer) -> gone
 *
 * Invariants:
 *  1. a connection is freed in one place, close_conn(), and never inside a call that was made by
 *     its owner's request: those end in sw_conn_finish();
 *  2. a phase that waits for the client has a deadline; BUSY and STREAM wait for us and have none;
 *  3. what a connection takes is counted at its caller (places.c) from when it begins until it
 *     ends, or is told to end;
 *  4. what comes in is held at a bound. In the clear a watermark does that. With TLS it is between
 *     two records, since TLS would not go on by itself with what it holds of one;
 *  5. when a round of the loop has taken long, connections that are ready wait for the next, in the
 *     order in which they were. A thousand that speak in the same moment do not keep out those that
 *     come after.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <string.h>
#include <sys/socket.h>

#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/callers.h"
#include "server/connection.h"
#include "server/connection_state.h"
#include "server/dispatch.h"
#include "server/places.h"
#include "server/state.h"

#define IDLE_MS 90000
#define WRITE_S 60
#define LINGER_MS 2000
/* When a round is long, and what those that had to wait have of the next. */
#define ROUND_NS (20 * SW_NS_PER_MS)
#define LATE_NS (10 * SW_NS_PER_MS)

static void advance(struct sw_conn *conn);

void sw_conn_set_deadline(struct sw_conn *conn, uint32_t ms)
{
	if (ms == 0 && !conn->ends_soon)
		evtimer_del(conn->timer);
	if (ms == 0)
		return;
	struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	if (!conn->ends_soon)
		evtimer_add(conn->timer, &wait);
}

void sw_conn_set_idle(struct sw_conn *conn, bool idle)
{
	conn->is_idle = idle;
	conn->since_ns = sw_now_boot_ns();
}

/* Stops and goes on reading with TLS; called whenever input came or went. */
static void mind_input(struct sw_conn *conn)
{
	if (!conn->is_tls)
		return;
	size_t size = evbuffer_get_length(bufferevent_get_input(conn->bev));
	bool full = conn->input_most > 0 && size >= conn->input_most;
	if (full == conn->is_full)
		return;
	conn->is_full = full;
	if (full)
		bufferevent_disable(conn->bev, EV_READ);
	else
		bufferevent_enable(conn->bev, EV_READ);
}

/* How much may come in before it is looked at; 0: no bound. */
static void bound_input(struct sw_conn *conn, size_t most)
{
	conn->input_most = most;
	if (!conn->is_tls)
		bufferevent_setwatermark(conn->bev, EV_READ, 0, most);
	mind_input(conn);
}

/* Nothing more will come from us. */
static void say_end(struct sw_conn *conn)
{
	if (conn->is_open)
		sw_tls_end(conn->bev);
	shutdown(bufferevent_getfd(conn->bev), SHUT_WR);
}

static void drop_request(struct sw_conn *conn)
{
	sw_request_free(conn->request);
	conn->request = NULL;
	free(conn->body);
	conn->body = NULL;
	sw_place_body(conn, 0, NULL);
	conn->body_size = 0;
}

static void close_conn(struct sw_conn *conn)
{
	struct sw_server *server = conn->server;
	if (conn->closed != NULL) {
		sw_conn_fn *closed = conn->closed;
		conn->closed = NULL;
		closed(conn->attached);
	}
	drop_request(conn);
	sw_place_leave(conn);
	if (conn->is_late)
		TAILQ_REMOVE(&server->late, conn, late_link);
	TAILQ_REMOVE(&server->conns, conn, link);
	server->conn_count--;
	event_free(conn->timer);
	bufferevent_free(conn->bev);
	free(conn);
}

/* Now, or when the call that is at work on it comes back. */
static void doom(struct sw_conn *conn)
{
	if (conn->advancing)
		conn->doomed = true;
	else
		close_conn(conn);
}

static void linger(struct sw_conn *conn)
{
	conn->phase = LINGER;
	drop_request(conn);
	sw_conn_set_idle(conn, false);
	sw_conn_set_deadline(conn, LINGER_MS);
	/* Once the answer has left, on_write() shuts our side down and waits for the client's. */
	struct evbuffer *input = bufferevent_get_input(conn->bev);
	evbuffer_drain(input, evbuffer_get_length(input));
	bound_input(conn, 0);
	bufferevent_enable(conn->bev, EV_READ);
	if (evbuffer_get_length(bufferevent_get_output(conn->bev)) == 0)
		say_end(conn);
}

void sw_conn_finish(struct sw_conn *conn)
{
	conn->attached = NULL;
	conn->closed = NULL;
	conn->drained = NULL;
	if (!conn->keep_alive || conn->eof) {
		linger(conn);
		return;
	}
	drop_request(conn);
	conn->phase = HEAD;
	bound_input(conn, SW_INPUT_USUAL);
	sw_conn_set_deadline(conn, IDLE_MS);
	sw_conn_set_idle(conn, true);
	if (!conn->advancing)
		advance(conn);
}

void sw_conn_attach(struct sw_conn *conn, void *attached, sw_conn_fn *closed, bool patient)
{
	conn->attached = attached;
	conn->closed = closed;
	conn->patient = patient;
	/* A connection that only waits has nothing to wait for once the other side has gone. */
	if (conn->eof && !patient)
		doom(conn);
}

void sw_conn_detach(struct sw_conn *conn)
{
	conn->attached = NULL;
	conn->closed = NULL;
}

struct sw_request *sw_conn_request(struct sw_conn *conn)
{
	return conn->request;
}

struct sw_request *sw_conn_take_request(struct sw_conn *conn)
{
	return SW_TAKE(conn->request);
}

const struct sw_peer *sw_conn_peer(const struct sw_conn *conn)
{
	return &conn->peer;
}

bool sw_conn_last_event_id(const struct sw_conn *conn, uint64_t *ret_id)
{
	if (conn->has_last_event_id)
		*ret_id = conn->last_event_id;
	return conn->has_last_event_id;
}

/* Goes on with what has come in, as far as it reaches. Answers that pile up because the client does
 * not read them end it for now. */
static void advance(struct sw_conn *conn)
{
	conn->advancing = true;
	bool moved = true;
	while (moved && !conn->doomed && sw_conn_has_room(conn)) {
		if (conn->phase == HEAD)
			moved = sw_conn_try_head(conn);
		else if (conn->phase == BODY)
			moved = sw_conn_try_body(conn);
		else
			moved = false;
	}
	conn->advancing = false;
	if (conn->doomed || (conn->eof && (conn->phase == HEAD || conn->phase == BODY)))
		close_conn(conn);
	else
		mind_input(conn);
}

/* The next slice of a body. */
static void go_on_reading(struct sw_conn *conn)
{
	conn->advancing = true;
	if (!sw_conn_read_body(conn))
		evtimer_add(conn->timer, &(struct timeval){0});
	advance(conn);
}

/* ---- libevent */

/* Whether it has to wait for the next round; then it does. */
static bool is_late(struct sw_conn *conn)
{
	struct sw_server *server = conn->server;
	if (conn->is_late)
		return true;
	/* A user that was not heard in this round is, however long others take;
	 * agents may be thousands. */
	bool is_first = conn->caller->key.class != SW_CALLER_AGENT && conn->caller->round_ns != server->loop.entered_ns;
	if (is_first || sw_now_boot_ns() - server->loop.entered_ns < ROUND_NS)
		return false;
	TAILQ_INSERT_TAIL(&server->late, conn, late_link);
	conn->is_late = true;
	if (!evtimer_pending(server->late_step, NULL))
		evtimer_add(server->late_step, &(struct timeval){0});
	return true;
}

static void on_late(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_conn *conn;
	int64_t until_ns = sw_now_boot_ns() + LATE_NS;
	while ((conn = TAILQ_FIRST(&server->late)) != NULL) {
		if (sw_now_boot_ns() > until_ns) {
			evtimer_add(server->late_step, &(struct timeval){0});
			return;
		}
		TAILQ_REMOVE(&server->late, conn, late_link);
		conn->is_late = false;
		if (!conn->ends_soon && (conn->phase == HEAD || conn->phase == BODY))
			advance(conn);
	}
}

int sw_conns_start(struct sw_server *server, struct sw_err *err)
{
	TAILQ_INIT(&server->late);
	server->late_step = evtimer_new(server->base, on_late, server);
	return server->late_step != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_conns_stop(struct sw_server *server)
{
	if (server->late_step != NULL)
		event_free(server->late_step);
}

static void on_read(struct bufferevent *bev, void *user)
{
	struct sw_conn *conn = user;
	SW_HOLDS_LOOP(conn->server);
	if (conn->ends_soon)
		return;
	if (conn->phase == LINGER)
		evbuffer_drain(bufferevent_get_input(bev), evbuffer_get_length(bufferevent_get_input(bev)));
	else if ((conn->phase == HEAD || conn->phase == BODY) && !is_late(conn))
		advance(conn);
	else
		mind_input(conn);
}

/* The output has run empty. */
static void on_write(struct bufferevent *bev, void *user)
{
	(void)bev;
	struct sw_conn *conn = user;
	SW_HOLDS_LOOP(conn->server);
	if (conn->ends_soon)
		return;
	if (conn->phase == LINGER) {
		say_end(conn);
		if (conn->eof)
			close_conn(conn);
	} else if (conn->phase == STREAM) {
		if (conn->drained != NULL)
			conn->drained(conn->attached);
	} else if (conn->phase != BUSY) {
		advance(conn);
	}
}

/* A handshake came to nothing. A client that spoke HTTP without TLS is told so in the same way. */
static void refuse_handshake(struct sw_conn *conn)
{
	static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
				     "{\"error\":{\"fact\":\"this port speaks TLS\",\"detail\":\"\","
				     "\"hint\":\"Begin the address with https://.\"}}\n";
	conn->server->figures.handshakes_failed++;
	if (!sw_tls_was_plain(conn->bev))
		return;
	char rest[4096];
	int fd = bufferevent_getfd(conn->bev);
	/* What is left unread would make the kernel throw away the answer. */
	(void)!recv(fd, rest, sizeof rest, MSG_DONTWAIT);
	(void)!send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_event(struct bufferevent *bev, short what, void *user)
{
	struct sw_conn *conn = user;
	SW_HOLDS_LOOP(conn->server);
	bool quiet = evbuffer_get_length(bufferevent_get_output(bev)) == 0;
	if ((what & BEV_EVENT_CONNECTED) != 0) {
		conn->is_open = true;
		return;
	}
	if ((what & (BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) != 0) {
		if (conn->is_tls && !conn->is_open)
			refuse_handshake(conn);
		close_conn(conn);
		return;
	}
	/* The client has shut its side down: it may still want the answer to what it asked. */
	conn->eof = true;
	if (conn->phase == HEAD || conn->phase == BODY)
		advance(conn);
	else if (conn->phase == STREAM || (conn->phase == BUSY && !conn->patient) || (conn->phase == LINGER && quiet) ||
		 (conn->phase == READING && conn->request->route->id == SW_ROUTE_SYNC)) /* its agent says all of it again */
		close_conn(conn);
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_conn *conn = user;
	SW_HOLDS_LOOP(conn->server);
	struct sw_err err = {0};
	bool makes_room = conn->ends_soon && conn->phase == BODY;
	if (conn->phase == READING && !conn->ends_soon) {
		go_on_reading(conn);
		return;
	}
	if ((conn->ends_soon && !makes_room) || conn->phase == LINGER || conn->is_idle) {
		close_conn(conn);
		return;
	}
	conn->ends_soon = false;
	conn->keep_alive = false;
	conn->server->figures.refused++;
	if (makes_room) {
		int status = sw_user_bound_refuse(conn->server, SW_USER_BOUND_BODIES, false, &err);
		sw_conn_reply_error(conn, status, &err);
		return;
	}
	sw_err_set(&err, SW_ESTOPPED, "the request took too long to arrive");
	sw_conn_reply_error(conn, 408, &err);
}

void sw_conn_end_now(struct sw_conn *conn)
{
	close_conn(conn);
}

void sw_conn_end_soon(struct sw_conn *conn)
{
	conn->ends_soon = true;
	evtimer_add(conn->timer, &(struct timeval){0});
}

/* The connection as it is when it comes. NULL: out of memory. */
static struct sw_conn *make_conn(struct sw_server *server, int fd, bool is_tcp)
{
	struct sw_conn *conn = calloc(1, sizeof *conn);
	if (conn == NULL)
		return NULL;
	conn->timer = evtimer_new(server->base, on_deadline, conn);
	conn->is_tls = is_tcp && server->tls != NULL;
	if (conn->timer != NULL)
		conn->bev = conn->is_tls ? sw_tls_accept(server->tls, server->base, fd)
					 : bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (conn->bev != NULL)
		return conn;
	if (conn->timer != NULL)
		event_free(conn->timer);
	free(conn);
	return NULL;
}

int sw_conn_new(struct sw_server *server, int fd, bool is_tcp, const struct sw_peer *peer, const struct sw_caller_key *key)
{
	struct sw_err err = {0};
	struct sw_caller *caller = sw_caller_get(server, key);
	int status = caller != NULL ? sw_place_admit(server, caller, &err) : 503;
	bool turned_away = status != 0;
	/* There is nothing to say before a handshake. */
	bool heard = !turned_away || (caller != NULL && !(is_tcp && server->tls != NULL) && sw_place_turn_away(server, caller));
	struct sw_conn *conn = heard ? make_conn(server, fd, is_tcp) : NULL;
	if (conn == NULL) {
		if (caller != NULL)
			sw_caller_leave(server, caller);
		return SW_ELIMIT;
	}
	conn->server = server;
	conn->is_tcp = is_tcp;
	conn->peer = *peer;
	conn->keep_alive = !turned_away;
	TAILQ_INSERT_TAIL(&server->conns, conn, link);
	server->conn_count++;
	sw_place_take(conn, caller, turned_away);
	sw_conn_set_idle(conn, true);
	sw_conn_set_deadline(conn, sw_conn_head_ms(conn));
	bufferevent_setcb(conn->bev, on_read, on_write, on_event, conn);
	bound_input(conn, SW_INPUT_USUAL);
	/* A long answer leaves in few steps: each waits for all the others that
	 * have something to say. */
	bufferevent_set_max_single_write(conn->bev, SW_OUTPUT_HIGH);
	bufferevent_set_max_single_read(conn->bev, SW_INPUT_USUAL);
	struct timeval stalled = {.tv_sec = WRITE_S};
	bufferevent_set_timeouts(conn->bev, NULL, &stalled);
	bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
	if (turned_away)
		sw_conn_reply_error(conn, status, &err);
	return 0;
}

void sw_conns_close_revoked(struct sw_server *server)
{
	int64_t now_s = sw_now_real_ns() / SW_NS_PER_S;
	struct sw_conn *conn = TAILQ_FIRST(&server->conns);
	while (conn != NULL) {
		struct sw_conn *next = TAILQ_NEXT(conn, link);
		struct sw_token_owner owner;
		bool matters = conn->is_tcp && conn->peer.roles != 0 && conn->phase != LINGER;
		if (matters && (!sw_tokens_find(server->tokens, conn->peer.token, now_s, &owner) || owner.role != conn->peer.roles ||
				owner.uid != conn->peer.user.uid))
			close_conn(conn);
		conn = next;
	}
}

void sw_conns_close_all(struct sw_server *server)
{
	struct sw_conn *conn;
	while ((conn = TAILQ_FIRST(&server->conns)) != NULL)
		close_conn(conn);
}
