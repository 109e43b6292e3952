/* Requests as they come in on a connection: heads, and bodies in slices. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/http.h"
#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/callers.h"
#include "server/connection_state.h"
#include "server/dispatch.h"
#include "server/places.h"
#include "server/state.h"

#define HEAD_MS 10000
#define BODY_MS 60000
#define READ_SLICE_NS (5 * SW_NS_PER_MS)

uint32_t sw_conn_head_ms(const struct sw_conn *conn)
{
	uint32_t ms = conn->server->options->head_ms > 0 ? conn->server->options->head_ms : HEAD_MS;
	return conn->caller->key.class == SW_CALLER_STRANGER ? ms / 2 : ms;
}

/* What the head asks for cannot be: says so, and ends the connection if a body is still to come
 * that will not be read. */
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
	sw_conn_set_idle(conn, false);
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
	sw_conn_set_deadline(conn, BODY_MS);
	if (head->expects_continue && evbuffer_get_length(bufferevent_get_input(conn->bev)) < conn->body_size)
		evbuffer_add_printf(bufferevent_get_output(conn->bev), "HTTP/1.1 100 Continue\r\n\r\n");
}

bool sw_conn_try_head(struct sw_conn *conn)
{
	struct evbuffer *input = bufferevent_get_input(conn->bev);
	size_t size = evbuffer_get_length(input);
	if (size == 0)
		return false;
	if (conn->is_idle) {
		sw_conn_set_idle(conn, false);
		/* A stranger has no more time than it got when it came. */
		if (conn->caller->key.class != SW_CALLER_STRANGER || conn->asked)
			sw_conn_set_deadline(conn, sw_conn_head_ms(conn));
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

bool sw_conn_read_body(struct sw_conn *conn)
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
	bool pauses = r == 0 && !more && !conn->is_read && conn->body_size > SW_INPUT_USUAL;
	conn->is_read = pauses;
	if ((r == 0 && more) || pauses)
		return false;
	free(conn->body);
	conn->body = NULL;
	conn->body_size = 0;
	conn->phase = BUSY;
	sw_conn_set_deadline(conn, 0);
	if (r < 0)
		refuse(conn, status, &err);
	else
		sw_dispatch(conn->server, conn);
	return true;
}

/* A large body is moved as it comes: a copy of it all would hold the loop. */
bool sw_conn_try_body(struct sw_conn *conn)
{
	struct evbuffer *input = bufferevent_get_input(conn->bev);
	int moved = evbuffer_remove(input, conn->body + conn->body_have, conn->body_size - conn->body_have);
	conn->body_have += moved > 0 ? (size_t)moved : 0;
	if (conn->body_have < conn->body_size)
		return false;
	sw_conn_set_deadline(conn, 0);
	conn->phase = READING;
	conn->body[conn->body_size] = '\0';
	if (!sw_conn_read_body(conn))
		evtimer_add(conn->timer, &(struct timeval){0});
	return true;
}
