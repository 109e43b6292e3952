/* What happened, from the journal's own records, a page at a time: for watchers and queries of the
 * past. How many are kept is told by --keep-events; snapshots.c removes the others.
 *
 * Given are the records that a replay of the history needs and that rows about jobs do not have:
 * when jobs were held and released. All users may see them, as they may in the stream of events.
 *
 * Invariants:
 *  1. a page looks at LOOKED_AT_MAX records at most, and for PAGE_NS;
 *  2. a page that ends early says where the next one begins.
 */
#include <jansson.h>

#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/connection.h"
#include "server/kept.h"
#include "server/state.h"
#include "server/views.h"

#define LOOKED_AT_MAX 20000u
#define PAGE_NS (20 * SW_NS_PER_MS)

struct page {
	struct sw_json json;
	uint64_t last; /* record that was looked at */
	uint32_t looked_at, written, limit;
	int64_t until_ns;
};

static int write_event(struct page *page, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	json_t *body = json_loadb(bytes, size, 0, NULL);
	if (body == NULL)
		return 0; /* one that cannot be read was no event */
	struct sw_json *json = &page->json;
	sw_json_object(json);
	sw_json_key_u64(json, "seq", seq);
	sw_write_time(json, "at", at_ns);
	sw_json_key_string(json, "kind", kind == SW_RECORD_HOLD ? "hold" : "release");
	sw_json_key_u64(json, "job", (uint64_t)json_integer_value(json_object_get(body, "job")));
	if (kind == SW_RECORD_HOLD)
		sw_json_key_bool(json, "leaves", json_is_true(json_object_get(body, "leaves")));
	sw_json_end_object(json);
	json_decref(body);
	page->written++;
	return 0;
}

static int take(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	struct page *page = user;
	if (page->written >= page->limit || page->looked_at >= LOOKED_AT_MAX ||
	    (++page->looked_at % 64 == 0 && sw_now_boot_ns() > page->until_ns))
		return 1;
	if (kind == SW_RECORD_HOLD || kind == SW_RECORD_RELEASE)
		write_event(page, seq, at_ns, kind, bytes, size);
	page->last = seq;
	return 0;
}

static int note_time(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	(void)seq;
	(void)kind;
	(void)bytes;
	(void)size;
	*(int64_t *)user = at_ns;
	return 1;
}

static int write_page(struct sw_server *server, uint64_t after, struct page *page, struct sw_err *err)
{
	struct sw_json *json = &page->json;
	int64_t since_ns = 0;
	uint64_t first = sw_journal_first_seq(server->journal);
	int r = first > 1 ? sw_journal_replay(server->journal, first, note_time, &since_ns, err) : 0;
	if (r < 0)
		return r;
	sw_json_object(json);
	sw_json_key(json, "events");
	sw_json_array(json);
	r = sw_journal_replay(server->journal, after + 1, take, page, err);
	if (r < 0)
		return r;
	sw_json_end_array(json);
	sw_json_key(json, "next");
	if (r == 1 && page->last > after)
		sw_json_u64(json, page->last);
	else
		sw_json_null(json);
	if (since_ns > 0) {
		sw_write_time(json, "since", since_ns);
	} else {
		sw_json_key(json, "since");
		sw_json_null(json);
	}
	sw_json_end_object(json);
	return 0;
}

void sw_handle_kept(struct sw_server *server, struct sw_conn *conn)
{
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	/* The journal has one transaction at a time. */
	if (!TAILQ_EMPTY(&server->batch.storing)) {
		sw_err_set(&err, SW_ELIMIT, "the journal is being written");
		sw_err_hint(&err, "Ask again in a moment.");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	struct page page = {.limit = request->list.limit, .until_ns = sw_now_boot_ns() + PAGE_NS};
	uint64_t after = request->after < INT64_MAX ? request->after : INT64_MAX - 1;
	int r = write_page(server, after, &page, &err);
	if (r < 0) {
		sw_json_release(&page.json);
		sw_conn_reply_error(conn, sw_status_of(r), &err);
		return;
	}
	sw_conn_reply_json(conn, 200, &page.json);
}
