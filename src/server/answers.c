/* Answers and streams of a connection. */
#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/http.h"
#include "server/answers.h"
#include "server/connection.h"
#include "server/connection_state.h"
#include "server/places.h"

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
	sw_conn_finish(conn);
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
	sw_conn_finish(conn);
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
	sw_conn_finish(conn);
}
