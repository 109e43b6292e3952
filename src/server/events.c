/* What happened lately, and the clients that watch: server-sent events.
 *
 * Every record is an event; its number in the journal is the event's id, so a watcher that comes
 * back says where it was. The last ones are kept in memory. A client that asks for older ones, or
 * falls behind them, is told to look anew ("reset"). An event carries a job as it is, not how it
 * came to be, so nothing is lost by that but the steps between.
 *
 * Watchers are fed in passes. Each pass comes to every watcher once, in slices, so that many
 * watchers with much to hear do not hold up the loop. A watcher that does not read has
 * SW_STREAM_HIGH bytes made for it and no more; its connection ends when it takes nothing for a
 * minute.
 */
#include <inttypes.h>
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/connection.h"
#include "server/events.h"
#include "server/past.h"
#include "server/state.h"
#include "server/views.h"

#define EVENTS_KEPT 8192u
#define HEARTBEAT_S 15
#define SLICE_NS (5 * SW_NS_PER_MS)

struct sw_watcher {
	TAILQ_ENTRY(sw_watcher) link;
	struct sw_server *server;
	struct sw_conn *conn;
	struct sw_peer peer;
	uint64_t next; /* event to be sent */
	uint64_t job;  /* only this one's; 0: all */
	bool told_end; /* of it */
};

static const char *kind_name(enum sw_record_kind kind)
{
	switch (kind) {
	case SW_RECORD_SUBMIT:
		return "submit";
	case SW_RECORD_CANCEL:
		return "cancel";
	case SW_RECORD_HOLD:
		return "hold";
	case SW_RECORD_RELEASE:
		return "release";
	case SW_RECORD_REQUEUE:
		return "requeue";
	case SW_RECORD_NODE:
		return "node";
	case SW_RECORD_NODE_LOST:
		return "node_lost";
	case SW_RECORD_NODE_SILENT:
		return "node_unreachable";
	case SW_RECORD_NODE_REMOVE:
		return "node_removed";
	case SW_RECORD_REPORT:
		return "report";
	case SW_RECORD_WORLD:
		return "world";
	case SW_RECORD_POLICY:
		return "policy";
	case SW_RECORD_QUOTA:
		return "quota";
	case SW_RECORD_LIMIT:
		return "limit";
	case SW_RECORD_MOVE:
		return "move";
	case SW_RECORD_NODE_CLOSE:
		return "node_closed";
	case SW_RECORD_NODE_OPEN:
		return "node_opened";
	case SW_RECORD_GPUS:
		return "gpus";
	default:
		return NULL; /* wake-ups and profiles are not told, and how fast jobs are is asked for */
	}
}

/* ---- keeping */

/* Where the value of a key begins. Records are JSON of our own: a quote inside a string is escaped,
 * so this finds keys only. NULL: there is none. */
static const char *find_value(const char *body, size_t size, const char *key)
{
	const char *found = memmem(body, size, key, strlen(key));
	return found != NULL ? found + strlen(key) : NULL;
}

static uint64_t find_job(const char *body, size_t size)
{
	const char *value = find_value(body, size, "\"job\":");
	uint64_t job = 0;
	size_t digits = 0;
	while (value != NULL && value + digits < body + size && value[digits] >= '0' && value[digits] <= '9')
		digits++;
	return digits > 0 && sw_parse_u64(value, digits, &job) == 0 ? job : 0;
}

static char *find_node(const char *body, size_t size, enum sw_record_kind kind)
{
	const char *value = find_value(body, size, kind == SW_RECORD_REPORT ? "\"node\":\"" : "\"name\":\"");
	if (value == NULL)
		return NULL;
	const char *end = memchr(value, '"', (size_t)(body + size - value));
	/* A name with escapes is not worth the words. */
	return end != NULL && memchr(value, '\\', (size_t)(end - value)) == NULL ? strndup(value, (size_t)(end - value)) : NULL;
}

void sw_events_note(struct sw_server *server, uint64_t seq, int64_t at_ns, enum sw_record_kind kind, const char *body, size_t size,
		    uint64_t job)
{
	struct sw_happening *slot = &server->events.kept[seq % server->events.size];
	free(slot->node);
	*slot = (struct sw_happening){.seq = seq, .at_ns = at_ns, .kind = kind, .job = job};
	if ((kind >= SW_RECORD_CANCEL && kind <= SW_RECORD_REQUEUE) || kind == SW_RECORD_REPORT || kind == SW_RECORD_LIMIT ||
	    kind == SW_RECORD_MOVE)
		slot->job = find_job(body, size);
	if (kind == SW_RECORD_REPORT || kind == SW_RECORD_NODE || kind == SW_RECORD_NODE_LOST || kind == SW_RECORD_NODE_CLOSE ||
	    kind == SW_RECORD_NODE_OPEN || kind == SW_RECORD_NODE_SILENT || kind == SW_RECORD_NODE_REMOVE || kind == SW_RECORD_GPUS)
		slot->node = find_node(body, size, kind);
}

/* ---- sending */

static void free_watcher(void *attached)
{
	struct sw_watcher *watcher = attached;
	struct sw_events *events = &watcher->server->events;
	if (events->at == watcher)
		events->at = TAILQ_NEXT(watcher, link);
	TAILQ_REMOVE(&events->watchers, watcher, link);
	free(watcher);
}

/* One message: its name, its id, one line of data. */
static void send_message(struct sw_watcher *watcher, const char *name, uint64_t seq, const struct sw_json *data)
{
	struct sw_json text = {0};
	char head[96];
	int size = snprintf(head, sizeof head, "event: %s\nid: %" PRIu64 "\ndata: ", name, seq);
	sw_json_bytes(&text, head, (size_t)size);
	sw_json_bytes(&text, data->text, data->size);
	sw_json_bytes(&text, "\n\n", 2);
	if (!text.failed)
		sw_conn_write(watcher->conn, text.text, text.size);
	sw_json_release(&text);
}

/* Something about the stream itself. */
static void send_word(struct sw_watcher *watcher, const char *name, uint64_t seq)
{
	SW_CLEANUP(sw_json_releasep) struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_u64(&json, "seq", seq);
	sw_write_time(&json, "at", sw_server_now(watcher->server));
	sw_json_key_string(&json, "kind", name);
	sw_json_end_object(&json);
	if (!json.failed)
		send_message(watcher, name, seq, &json);
}

static void send_happening(struct sw_watcher *watcher, const struct sw_happening *happening, const char *kind)
{
	if (kind == NULL || (watcher->job != 0 && watcher->job != happening->job))
		return;
	struct sw_server *server = watcher->server;
	SW_CLEANUP(sw_json_releasep) struct sw_json json = {0};
	SW_CLEANUP(sw_found_release) struct sw_found_job seen = {0};
	sw_json_object(&json);
	sw_json_key_u64(&json, "seq", happening->seq);
	sw_write_time(&json, "at", happening->at_ns);
	sw_json_key_string(&json, "kind", kind);
	bool in_full = true;
	if (happening->job != 0 && sw_find_job(server, happening->job, &seen)) {
		in_full = sw_may_see(&watcher->peer, &seen.view);
		watcher->told_end |= watcher->job != 0 && seen.view.ended_at != SW_TIME_NEVER;
		sw_json_key(&json, "job");
		sw_found_write(server, &json, &seen, in_full, SW_WITHOUT_REQUEST);
	} else if (happening->job != 0) {
		in_full = false; /* whose it was is not known any more */
	}
	/* Where another user's job runs is not for every user. */
	if (happening->node != NULL && in_full)
		sw_json_key_string(&json, "node", happening->node);
	sw_json_end_object(&json);
	if (!json.failed)
		send_message(watcher, kind, happening->seq, &json);
}

/* Sends what there is, as long as the client keeps up. False: the time is
 * over, and there is more. */
static bool feed(struct sw_watcher *watcher, int64_t until_ns)
{
	struct sw_server *server = watcher->server;
	uint64_t last = server->batch.applied_seq;
	for (unsigned count = 1; watcher->next <= last && sw_conn_has_room(watcher->conn); count++) {
		const struct sw_happening *happening = &server->events.kept[watcher->next % server->events.size];
		if (happening->seq != watcher->next) {
			watcher->next = last + 1;
			send_word(watcher, "reset", last);
			return true;
		}
		watcher->next++;
		send_happening(watcher, happening, kind_name(happening->kind));
		if (count % 16 == 0 && sw_now_boot_ns() > until_ns)
			return false;
	}
	return true;
}

/* A job may end by what happens to another: what it waited for failed. Then no event names it, and
 * a client that watches it alone would never hear. */
static void feed_end(struct sw_watcher *watcher)
{
	struct sw_server *server = watcher->server;
	uint64_t last = server->batch.applied_seq;
	if (watcher->job == 0 || watcher->told_end || watcher->next <= last)
		return;
	SW_CLEANUP(sw_found_release) struct sw_found_job seen;
	if (!sw_find_job(server, watcher->job, &seen) || seen.view.ended_at == SW_TIME_NEVER)
		return;
	const struct sw_happening end = {.seq = last, .at_ns = seen.view.ended_at, .job = watcher->job};
	send_happening(watcher, &end, "ended");
}

/* One slice of a pass. */
static void on_more(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_events *events = &server->events;
	int64_t until_ns = sw_now_boot_ns() + SLICE_NS;
	if (events->at == NULL) {
		events->at = TAILQ_FIRST(&events->watchers);
		events->again = false;
	}
	while (events->at != NULL && sw_now_boot_ns() <= until_ns) {
		struct sw_watcher *watcher = events->at;
		if (feed(watcher, until_ns)) {
			feed_end(watcher);
			events->at = TAILQ_NEXT(watcher, link);
		}
	}
	if (events->at != NULL || events->again)
		evtimer_add(events->more, &(struct timeval){0});
}

void sw_events_send(struct sw_server *server)
{
	struct sw_events *events = &server->events;
	if (TAILQ_EMPTY(&events->watchers))
		return;
	/* A pass that goes on has been at some of them already. */
	events->again = true;
	if (!evtimer_pending(events->more, NULL))
		evtimer_add(events->more, &(struct timeval){0});
}

/* The client has read all there was. */
static void drained(void *attached)
{
	struct sw_watcher *watcher = attached;
	if (watcher->next <= watcher->server->batch.applied_seq)
		sw_events_send(watcher->server);
}

void sw_events_watch(struct sw_server *server, struct sw_conn *conn)
{
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	int status = sw_conn_admit_stream(conn, &err);
	struct sw_watcher *watcher = status == 0 ? calloc(1, sizeof *watcher) : NULL;
	if (watcher == NULL) {
		if (status == 0)
			sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, status != 0 ? status : 503, &err);
		return;
	}
	uint64_t last = server->batch.applied_seq, after = request->after;
	bool resumes = sw_conn_last_event_id(conn, &after) || request->has_after;
	*watcher = (struct sw_watcher){.server = server, .conn = conn, .peer = *sw_conn_peer(conn), .job = request->job};
	watcher->next = (resumes ? after : last) + 1;
	TAILQ_INSERT_TAIL(&server->events.watchers, watcher, link);
	sw_conn_stream(conn, "text/event-stream", "X-Accel-Buffering: no\r\n", drained);
	sw_conn_write(conn, "retry: 2000\n\n", 13);
	if (!resumes) {
		send_word(watcher, "ready", last);
	} else if (after > last) {
		/* An event that never was: the journal is another one. */
		watcher->next = last + 1;
		send_word(watcher, "reset", last);
	}
	sw_events_send(server);
	sw_conn_attach(conn, watcher, free_watcher, false);
}

static void on_heartbeat(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_watcher *watcher;
	TAILQ_FOREACH(watcher, &server->events.watchers, link)
	if (sw_conn_has_room(watcher->conn))
		sw_conn_write(watcher->conn, ":\n\n", 3);
}

int sw_events_start(struct sw_server *server, struct sw_err *err)
{
	struct sw_events *events = &server->events;
	TAILQ_INIT(&events->watchers);
	events->size = server->options->events_kept > 0 ? server->options->events_kept : EVENTS_KEPT;
	events->kept = calloc(events->size, sizeof *events->kept);
	events->heartbeat = event_new(server->base, -1, EV_PERSIST, on_heartbeat, server);
	struct timeval each = {.tv_sec = HEARTBEAT_S};
	events->more = evtimer_new(server->base, on_more, server);
	if (events->kept == NULL || events->heartbeat == NULL || events->more == NULL || event_add(events->heartbeat, &each) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

void sw_events_stop(struct sw_server *server)
{
	struct sw_events *events = &server->events;
	for (size_t i = 0; events->kept != NULL && i < events->size; i++)
		free(events->kept[i].node);
	free(events->kept);
	if (events->heartbeat != NULL)
		event_free(events->heartbeat);
	if (events->more != NULL)
		event_free(events->more);
}
