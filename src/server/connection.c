/* HTTP on one socket: heads and bodies in, answers and streams out, one request at a time.
 *
 *	HEAD -> BODY -> READING (in slices) -> BUSY (somebody works on it) -> HEAD ...
 *	                                         \-> STREAM -> HEAD ...
 *	any -> LINGER (the answer is written; what still comes is thrown away, so that the client can read the answer) -> gone
 *
 * Invariants:
 *  1. a connection is freed in one place, close_conn(), and never inside a call that was made by its owner's request: those end in finish();
 *  2. a phase that waits for the client has a deadline; BUSY and STREAM wait for us and have none;
 *  3. what a connection takes is counted at its caller (places.c) from when it begins until it ends, or is told to end;
 *  4. what comes in is held at a bound: by a watermark in the clear, between two records with TLS, which would not go on by itself with what it holds of one;
 *  5. when a round of the loop has taken long, connections that are ready wait for the next, in the order in which they were: a thousand that speak in the same moment do not
 *     keep out those that come after.
 */
#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "base/now.h"
#include "base/number.h"
#include "server/callers.h"
#include "server/connection.h"
#include "server/connection_state.h"
#include "server/dispatch.h"
#include "server/places.h"
#include "server/state.h"

#define HEAD_MS 10000
#define BODY_MS 60000
#define IDLE_MS 90000
#define WRITE_S 60
#define LINGER_MS 2000
#define INPUT_USUAL ((size_t)64 << 10)
#define READ_SLICE_NS (5 * SW_NS_PER_MS)
/* When a round is long, and what those that had to wait have of the next. */
#define ROUND_NS (20 * SW_NS_PER_MS)
#define LATE_NS (10 * SW_NS_PER_MS)
static void advance(struct sw_conn *conn);

/* 0: none. */
static void set_deadline(struct sw_conn *conn, uint32_t ms)
{
	if (ms == 0 && !conn->ends_soon)
		evtimer_del(conn->timer);
	if (ms == 0)
		return;
	struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	if (!conn->ends_soon)
		evtimer_add(conn->timer, &wait);
}

static uint32_t head_ms(const struct sw_conn *conn)
{
	uint32_t ms = conn->server->options->head_ms > 0 ? conn->server->options->head_ms : HEAD_MS;
	return conn->caller->key.class == SW_CALLER_STRANGER ? ms / 2 : ms;
}

static void set_idle(struct sw_conn *conn, bool idle)
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
	set_idle(conn, false);
	set_deadline(conn, LINGER_MS);
	/* Once the answer has left, on_write() shuts our side down and waits for the client's. */
	struct evbuffer *input = bufferevent_get_input(conn->bev);
	evbuffer_drain(input, evbuffer_get_length(input));
	bound_input(conn, 0);
	bufferevent_enable(conn->bev, EV_READ);
	if (evbuffer_get_length(bufferevent_get_output(conn->bev)) == 0)
		say_end(conn);
}

/* The answer is on its way: the next request, or the end. */
static void finish(struct sw_conn *conn)
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
	bound_input(conn, INPUT_USUAL);
	set_deadline(conn, IDLE_MS);
	set_idle(conn, true);
	if (!conn->advancing)
		advance(conn);
}

/* ------------------------------------------------------------------------------------------------ answers */

static void start_answer(struct sw_conn *conn, int status, const char *media, const char *headers)
{
	evbuffer_add_printf(bufferevent_get_output(conn->bev),
			    "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s%s",
			    status, sw_http_reason(status), media, headers != NULL ? headers : "",
			    conn->keep_alive ? "" : "Connection: close\r\n");
}

void sw_conn_reply(struct sw_conn *conn, int status, const char *media, const char *headers, const char *body, size_t size)
{
	assert(conn->phase != STREAM && conn->phase != LINGER);
	struct evbuffer *output = bufferevent_get_output(conn->bev);
	start_answer(conn, status, media, headers);
	evbuffer_add_printf(output, "Content-Length: %zu\r\n\r\n", size);
	evbuffer_add(output, body, size);
	finish(conn);
}

void sw_conn_reply_json(struct sw_conn *conn, int status, struct sw_json *json)
{
	if (json->failed) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
	} else {
		sw_json_bytes(json, "\n", 1);
		sw_conn_reply(conn, status, "application/json", NULL, json->text, json->size);
	}
	sw_json_release(json);
}

struct sw_shared {
	char *text;
	size_t size;
	unsigned count; /* answers that hold it, and its maker */
};

struct sw_shared *sw_shared_take(struct sw_json *json)
{
	struct sw_shared *shared = json->failed ? NULL : calloc(1, sizeof *shared);
	if (shared != NULL)
		shared->text = sw_json_take(json, &shared->size);
	sw_json_release(json);
	if (shared == NULL || shared->text == NULL) {
		free(shared);
		return NULL;
	}
	shared->count = 1;
	return shared;
}

void sw_shared_drop(struct sw_shared *shared)
{
	if (shared == NULL || --shared->count > 0)
		return;
	free(shared->text);
	free(shared);
}

static void shared_sent(const void *bytes, size_t size, void *user)
{
	(void)bytes;
	(void)size;
	sw_shared_drop(user);
}

void sw_conn_reply_shared(struct sw_conn *conn, int status, struct sw_shared *shared)
{
	struct sw_err err = {0};
	if (shared == NULL) {
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	struct evbuffer *output = bufferevent_get_output(conn->bev);
	start_answer(conn, status, "application/json", NULL);
	evbuffer_add_printf(output, "Content-Length: %zu\r\n\r\n", shared->size);
	shared->count++;
	if (evbuffer_add_reference(output, shared->text, shared->size, shared_sent, shared) < 0)
		sw_shared_drop(shared);
	finish(conn);
}

void sw_conn_reply_later(struct sw_conn *conn, int status, const struct sw_err *err, unsigned seconds)
{
	struct sw_json json = {0};
	char later[40];
	sw_json_object(&json);
	sw_json_key(&json, "error");
	sw_json_object(&json);
	sw_json_key_string(&json, "fact", err->fact);
	sw_json_key_string(&json, "detail", err->detail);
	sw_json_key_string(&json, "hint", err->hint);
	sw_json_end_object(&json);
	sw_json_end_object(&json);
	sw_json_bytes(&json, "\n", 1);
	snprintf(later, sizeof later, "Retry-After: %u\r\n", seconds);
	const char *headers = status == 401 ? "WWW-Authenticate: Bearer\r\n" : seconds > 0 ? later : NULL;
	sw_conn_reply(conn, status, "application/json", headers, json.failed ? "{}" : json.text, json.failed ? 2 : json.size);
	sw_json_release(&json);
}

void sw_conn_reply_error(struct sw_conn *conn, int status, const struct sw_err *err)
{
	sw_conn_reply_later(conn, status, err, status == 429 || status == 503 ? 1 : 0);
}

void sw_conn_stream(struct sw_conn *conn, const char *media, const char *headers, sw_conn_fn *drained)
{
	assert(conn->phase == BUSY);
	if (conn->is_old)
		conn->keep_alive = false;
	start_answer(conn, 200, media, headers);
	struct evbuffer *output = bufferevent_get_output(conn->bev);
	evbuffer_add_printf(output, "%s\r\n", conn->is_old ? "" : "Transfer-Encoding: chunked\r\n");
	conn->phase = STREAM;
	conn->drained = drained;
	sw_place_stream(conn, true);
}

bool sw_conn_has_room(const struct sw_conn *conn)
{
	size_t most = conn->phase == STREAM ? SW_STREAM_HIGH : SW_OUTPUT_HIGH;
	return evbuffer_get_length(bufferevent_get_output(conn->bev)) < most;
}

void sw_conn_write(struct sw_conn *conn, const char *bytes, size_t size)
{
	assert(conn->phase == STREAM);
	struct evbuffer *output = bufferevent_get_output(conn->bev);
	if (size == 0)
		return;
	if (!conn->is_old)
		evbuffer_add_printf(output, "%zx\r\n", size);
	evbuffer_add(output, bytes, size);
	if (!conn->is_old)
		evbuffer_add(output, "\r\n", 2);
}

void sw_conn_end_stream(struct sw_conn *conn)
{
	assert(conn->phase == STREAM);
	if (!conn->is_old)
		evbuffer_add(bufferevent_get_output(conn->bev), "0\r\n\r\n", 5);
	sw_place_stream(conn, false);
	conn->phase = BUSY;
	finish(conn);
}

void sw_conn_attach(struct sw_conn *conn, void *attached, sw_conn_fn *closed, bool patient)
{
	conn->attached = attached;
	conn->closed = closed;
	conn->patient = patient;
	/* Who only waits has nobody to wait for once the other side has gone. */
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

/* ------------------------------------------------------------------------------------------------ requests */

/* What the head asks for cannot be: says so, and ends the connection if a body is still to come that nobody will read. */
static void refuse(struct sw_conn *conn, int status, const struct sw_err *err)
{
	conn->server->figures.refused++;
	if (conn->body_size > 0)
		conn->keep_alive = false;
	sw_conn_reply_error(conn, status, err);
}

/* 0, or 413. */
static int check_size(const struct sw_conn *conn, uint64_t size, struct sw_err *err)
{
	size_t most = conn->request->route->body_max;
	if (size <= most)
		return 0;
	sw_err_set(err, SW_ELIMIT, "the body of the request is too large");
	sw_err_detail(err, "it has %" PRIu64 " bytes, at most %zu are taken here", size, most);
	return 413;
}

/* Whether the caller may ask this now, and has room for it. 0, or the status. */
static int admit(struct sw_conn *conn, const struct sw_http_head *head, struct sw_err *err)
{
	int status = sw_authorise(conn->server, conn->request, conn->is_tcp, head->token, &conn->peer, err);
	/* A connection without a name is not kept: its place is for the next one. */
	if (status == 401)
		conn->keep_alive = false;
	if (status == 0)
		status = sw_place_settle(conn, err);
	/* Before the caller pays for it: large bodies cost more. */
	if (status == 0)
		status = check_size(conn, head->body_size, err);
	if (status == 0)
		status = sw_caller_ask(conn->server, conn->caller, &conn->peer, head->body_size, err);
	return status != 0 ? status : sw_place_body(conn, head->body_size, err);
}

static void take_head(struct sw_conn *conn, const struct sw_http_head *head)
{
	struct sw_err err = {0};
	int status = 0;
	sw_place_head(conn, false, NULL);
	set_idle(conn, false);
	conn->keep_alive = head->keep_alive;
	conn->is_old = head->is_old;
	conn->body_size = head->body_size < SIZE_MAX ? (size_t)head->body_size : SIZE_MAX;
	conn->has_last_event_id = head->has_last_event_id;
	conn->last_event_id = head->last_event_id;
	if (sw_request_open(head->method, head->target, &conn->request, &status, &err) == 0)
		status = admit(conn, head, &err);
	bool keeps_key = status == 0 && head->key[0] != '\0';
	if (status == 0 &&
	    ((keeps_key && (conn->request->key = strdup(head->key)) == NULL) || (conn->body = malloc(conn->body_size + 1)) == NULL)) {
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		status = 503;
	}
	if (status != 0) {
		refuse(conn, status, &err);
		return;
	}
	conn->phase = BODY;
	conn->body_have = 0;
	set_deadline(conn, BODY_MS);
	if (head->expects_continue && evbuffer_get_length(bufferevent_get_input(conn->bev)) < conn->body_size)
		evbuffer_add_printf(bufferevent_get_output(conn->bev), "HTTP/1.1 100 Continue\r\n\r\n");
}

/* False: it has not come yet. */
static bool try_head(struct sw_conn *conn)
{
	struct evbuffer *input = bufferevent_get_input(conn->bev);
	size_t size = evbuffer_get_length(input);
	if (size == 0)
		return false;
	if (conn->is_idle) {
		set_idle(conn, false);
		/* A stranger has no more time than it got when it came. */
		if (conn->caller->key.class != SW_CALLER_STRANGER || conn->asked)
			set_deadline(conn, head_ms(conn));
	}
	if (size > SW_HTTP_HEAD_MAX)
		size = SW_HTTP_HEAD_MAX;
	const char *bytes = (const char *)evbuffer_pullup(input, (ssize_t)size);
	struct sw_http_head head;
	struct sw_err err = {0};
	int status = 503;
	if (bytes == NULL)
		sw_err_set(&err, SW_ENOMEM, "out of memory");
	int r = bytes != NULL ? sw_http_parse_head(bytes, size, &head, &status, &err) : SW_ENOMEM;
	if (r == 0 && (status = sw_place_head(conn, true, &err)) == 0)
		return false;
	if (r <= 0) {
		conn->keep_alive = false;
		refuse(conn, status, &err);
		return true;
	}
	conn->asked = true;
	evbuffer_drain(input, head.size);
	take_head(conn, &head);
	return true;
}

/* For how long a caller holds the loop. */
struct use {
	struct sw_caller *caller;
	int64_t began_ns;
};

static void end_use(struct use *use)
{
	int64_t took_ns = sw_now_boot_ns() - use->began_ns;
	use->caller->used_ns += took_ns > 0 ? took_ns : 1;
}

/* One slice of reading the body, or of none while its caller has to wait; true: it is read, or cannot be, and the client has its answer or waits for it. */
static bool read_body(struct sw_conn *conn)
{
	struct sw_err err = {0};
	int status = 503, r;
	bool more = false;
	if (sw_caller_waits(conn->server, conn->caller))
		return false;
	SW_CLEANUP(end_use) struct use use = {conn->caller, sw_now_boot_ns()};
	int64_t until_ns = use.began_ns + READ_SLICE_NS;
	do
		r = conn->is_read ? 0 : sw_request_read_some(conn->request, conn->body, conn->body_size, &more, &status, &err);
	while (r == 0 && more && sw_now_boot_ns() < until_ns);
	/* What is asked for with a large body takes its own time: others are heard before. */
	bool pauses = r == 0 && !more && !conn->is_read && conn->body_size > INPUT_USUAL;
	conn->is_read = pauses;
	if ((r == 0 && more) || pauses)
		return false;
	free(conn->body);
	conn->body = NULL;
	conn->body_size = 0;
	conn->phase = BUSY;
	set_deadline(conn, 0);
	if (r < 0)
		refuse(conn, status, &err);
	else
		sw_dispatch(conn->server, conn);
	return true;
}

/* A large body is moved as it comes: a copy of it all would hold the loop. */
static bool try_body(struct sw_conn *conn)
{
	struct evbuffer *input = bufferevent_get_input(conn->bev);
	int moved = evbuffer_remove(input, conn->body + conn->body_have, conn->body_size - conn->body_have);
	conn->body_have += moved > 0 ? (size_t)moved : 0;
	if (conn->body_have < conn->body_size)
		return false;
	set_deadline(conn, 0);
	conn->phase = READING;
	conn->body[conn->body_size] = '\0';
	if (!read_body(conn))
		evtimer_add(conn->timer, &(struct timeval){0});
	return true;
}

/* Goes on with what has come in, as far as it reaches. Answers that pile up because the client does not read them end it for now. */
static void advance(struct sw_conn *conn)
{
	conn->advancing = true;
	bool moved = true;
	while (moved && !conn->doomed && sw_conn_has_room(conn)) {
		if (conn->phase == HEAD)
			moved = try_head(conn);
		else if (conn->phase == BODY)
			moved = try_body(conn);
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
	if (!read_body(conn))
		evtimer_add(conn->timer, &(struct timeval){0});
	advance(conn);
}

/* ------------------------------------------------------------------------------------------------ libevent */

/* Whether it has to wait for the next round; then it does. */
static bool is_late(struct sw_conn *conn)
{
	struct sw_server *server = conn->server;
	if (conn->is_late)
		return true;
	/* A user that was not heard in this round is, however long others take; agents may be thousands. */
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

/* A handshake came to nothing. Who spoke HTTP without TLS is told so in the same way. */
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
	set_idle(conn, true);
	set_deadline(conn, head_ms(conn));
	bufferevent_setcb(conn->bev, on_read, on_write, on_event, conn);
	bound_input(conn, INPUT_USUAL);
	/* A long answer leaves in few steps: each waits for all the others who have something to say. */
	bufferevent_set_max_single_write(conn->bev, SW_OUTPUT_HIGH);
	bufferevent_set_max_single_read(conn->bev, INPUT_USUAL);
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
