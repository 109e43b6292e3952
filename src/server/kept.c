/* What happened, from the journal's own records, a page at a time: for watchers and queries of the
 * past. How many are kept is told by --keep-events; snapshots.c removes the others.
 *
 * Given are holds and releases. On demand there are also all records that a replay of the history
 * needs and that rows about jobs do not have. brain/retell.c says what they tell, and to which
 * users.
 *
 * Invariants:
 *  1. a page looks at LOOKED_AT_MAX records at most, and for PAGE_NS;
 *  2. a page that ends early says where the next one begins;
 *  3. without `all` there are holds and releases alone: clients of an earlier version take each
 *     other event that names a job for a release.
 */
#include <string.h>

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
	struct sw_server *server;
	const struct sw_user *user;
	struct sw_json json;
	uint64_t last; /* record that was looked at */
	uint32_t looked_at, written, limit;
	bool all;
	int64_t until_ns;
};

static void write_event(struct page *page, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	char *text = sw_brain_retell(page->server->brain, page->user, seq, at_ns, (enum sw_record_kind)kind, bytes, size);
	if (text == NULL)
		return;
	sw_json_raw(&page->json, text, strlen(text));
	page->written++;
	free(text);
}

static int take(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	struct page *page = user;
	if (page->written >= page->limit || page->looked_at >= LOOKED_AT_MAX ||
	    (++page->looked_at % 64 == 0 && sw_now_boot_ns() > page->until_ns))
		return 1;
	if (page->all || kind == SW_RECORD_HOLD || kind == SW_RECORD_RELEASE)
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

static int write_page(uint64_t after, struct page *page, struct sw_err *err)
{
	struct sw_server *server = page->server;
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
	sw_json_key(json, "last_job");
	sw_json_u64(json, sw_brain_job_count(server->brain));
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
	struct page page = {.server = server,
			    .user = &sw_conn_peer(conn)->user,
			    .limit = request->list.limit,
			    .all = request->all_events,
			    .until_ns = sw_now_boot_ns() + PAGE_NS};
	uint64_t after = request->after < INT64_MAX ? request->after : INT64_MAX - 1;
	int r = write_page(after, &page, &err);
	if (r < 0) {
		sw_json_release(&page.json);
		sw_conn_reply_error(conn, sw_status_of(r), &err);
		return;
	}
	sw_conn_reply_json(conn, 200, &page.json);
}
