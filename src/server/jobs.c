/* Jobs as they are: one, why it waits, and lists of them. */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/company.h"
#include "server/connection.h"
#include "server/jobs.h"
#include "server/past.h"
#include "server/state.h"
#include "server/uses.h"
#include "server/views.h"

/* Jobs looked at for one page: a filter that nothing passes must not hold up all others. */
#define LOOKED_AT_MAX 200000u
#define PAGE_NS (20 * SW_NS_PER_MS)
/* Of requests decoded for one page, for the same reason. */
#define ASKED_BYTES_MAX ((size_t)512 << 10)

/* There never was one, or what was kept about it is gone. */
static void say_missing(const struct sw_server *server, uint64_t id, struct sw_err *err)
{
	sw_err_set(err, SW_ENOTFOUND, "there is no job %" PRIu64, id);
	if (id >= 1 && id <= sw_brain_job_count(server->brain))
		sw_err_detail(err, "it has ended, and its row is older than what is kept");
}

void sw_job_reply(struct sw_server *server, struct sw_conn *conn, uint64_t id, int status, enum sw_job_extra extra)
{
	SW_CLEANUP(sw_found_release) struct sw_found_job seen;
	struct sw_err err = {0};
	if (!sw_find_job(server, id, &seen)) {
		say_missing(server, id, &err);
		sw_conn_reply_error(conn, 404, &err);
		return;
	}
	struct sw_json json = {0};
	sw_found_write(server, &json, &seen, sw_may_see(sw_conn_peer(conn), &seen.view), extra);
	sw_conn_reply_json(conn, status, &json);
}

void sw_handle_job(struct sw_server *server, struct sw_conn *conn)
{
	sw_job_reply(server, conn, sw_conn_request(conn)->job, 200, SW_WITH_REQUEST);
}

void sw_handle_why(struct sw_server *server, struct sw_conn *conn)
{
	uint64_t id = sw_conn_request(conn)->job;
	SW_CLEANUP(sw_found_release) struct sw_found_job seen;
	struct sw_err err = {0};
	bool found = sw_find_job(server, id, &seen);
	const struct sw_job_view view = seen.view;
	if (!found || !sw_may_see(sw_conn_peer(conn), &view)) {
		if (found)
			sw_err_set(&err, SW_EDENIED, "job %" PRIu64 " belongs to another user", id);
		else
			say_missing(server, id, &err);
		sw_conn_reply_error(conn, found ? 403 : 404, &err);
		return;
	}
	char text[1500] = "";
	if (seen.is_past)
		snprintf(text, sizeof text, "%s", sw_found_why(&seen));
	else
		sw_brain_explain(server->brain, sw_server_now(server), id, text, sizeof text);
	if (strcmp(view.state, "R") == 0)
		sw_company_say(server, id, text, sizeof text);
	struct sw_use use;
	size_t used = strlen(text);
	if (sw_uses_sum(&server->machines, server->brain, id, &use) && use.trespass)
		snprintf(text + used, sizeof text - used, "; a process of it uses a GPU that it was not given");
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_u64(&json, "id", id);
	sw_json_key_string(&json, "state", view.state);
	sw_json_key_string(&json, "why", text);
	sw_json_key_bool(&json, "held", view.held);
	sw_write_stop(server, &json, id);
	sw_company_write(server, &json, id);
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 200, &json);
}

/* What a page is made of. */
struct filter {
	uint32_t states;
	bool by_user;
	uint32_t uid;
	const char *name;
	size_t name_size;
	bool is_prefix;
	int64_t since_ns, until_ns;
};

/* The user that a word names: a number, a name, "me". */
static bool find_user(const char *word, const struct sw_peer *peer, uint32_t *ret_uid)
{
	uint64_t number;
	if (strcmp(word, "me") == 0) {
		*ret_uid = peer->user.uid;
		return true;
	}
	if (sw_parse_u64(word, strlen(word), &number) == 0 && number < UINT32_MAX) {
		*ret_uid = (uint32_t)number;
		return true;
	}
	const struct passwd *entry = getpwnam(word);
	if (entry != NULL)
		*ret_uid = entry->pw_uid;
	return entry != NULL;
}

/* Filters by what one may not see find nothing: else they would tell it. */
static bool passes(const struct filter *filter, const struct sw_peer *peer, const struct sw_job_view *view)
{
	unsigned state = sw_state_find(view->state);
	if (state < SW_STATES && (filter->states >> state & 1) == 0)
		return false;
	if (view->ended_at < filter->since_ns || view->submitted_at > filter->until_ns)
		return false;
	if (filter->by_user && view->uid != filter->uid)
		return false;
	if (filter->name == NULL)
		return true;
	if (!sw_may_see(peer, view) || strncmp(view->name, filter->name, filter->name_size) != 0)
		return false;
	return filter->is_prefix || view->name[filter->name_size] == '\0';
}

/* A page on its way into an answer. */
struct page {
	struct sw_job_walk walk; /* first: what is given here is given to this */
	const struct sw_request *request;
	const struct filter *filter;
	const struct sw_peer *peer;
	struct sw_json *json;
	uint32_t written, looked;
	size_t decoded;
	int64_t until_ns;
};

static bool take_job(struct sw_job_walk *walk, const struct sw_found_job *seen)
{
	struct page *page = (struct page *)walk;
	const struct sw_request *request = page->request;
	if (page->written == request->list.limit || page->looked == LOOKED_AT_MAX || page->decoded > ASKED_BYTES_MAX ||
	    (page->looked % 64 == 63 && sw_now_boot_ns() > page->until_ns))
		return false;
	page->looked++;
	if (seen == NULL || !passes(page->filter, page->peer, &seen->view))
		return true;
	sw_found_write(walk->server, page->json, seen, sw_may_see(page->peer, &seen->view),
		       request->list.asked ? SW_WITH_ASKED : SW_WITHOUT_REQUEST);
	page->decoded += request->list.asked ? strlen(seen->view.request) : 0;
	page->written++;
	return true;
}

/* Writes a page and returns the cursor of the next one; 0: there is none. */
static uint64_t write_page(struct sw_server *server, const struct sw_request *request, const struct filter *filter,
			   const struct sw_peer *peer, struct sw_json *json)
{
	uint64_t jobs = sw_brain_job_count(server->brain), cursor = request->list.cursor;
	bool down = request->list.descending;
	struct page page = {
		.walk = {.server = server,
			 .descending = down,
			 .by_user = filter->by_user,
			 .uid = filter->uid,
			 .at = down ? (cursor == 0 || cursor > jobs ? jobs : cursor - 1) : cursor + 1,
			 .now_ns = sw_server_now(server),
			 .give = take_job},
		.request = request,
		.filter = filter,
		.peer = peer,
		.json = json,
		.until_ns = sw_now_boot_ns() + PAGE_NS,
	};
	struct sw_err err = {0};
	if (sw_past_walk(&page.walk, filter->states, filter->since_ns, &err))
		return 0;
	return down ? page.walk.at + 1 : page.walk.at - 1;
}

void sw_handle_list(struct sw_server *server, struct sw_conn *conn)
{
	const struct sw_request *request = sw_conn_request(conn);
	const struct sw_peer *peer = sw_conn_peer(conn);
	struct filter filter = {.states = request->list.states, .name = request->list.name, .is_prefix = request->list.name_is_prefix};
	filter.since_ns = request->list.since_ns;
	filter.until_ns = request->list.until_ns;
	filter.name_size = filter.name != NULL ? strlen(filter.name) : 0;
	filter.by_user = request->list.user != NULL;
	if (filter.by_user && !find_user(request->list.user, peer, &filter.uid)) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ENOTFOUND, "there is no user '%.60s' on this machine", request->list.user);
		sw_conn_reply_error(conn, 404, &err);
		return;
	}
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key(&json, "jobs");
	sw_json_array(&json);
	uint64_t next = write_page(server, request, &filter, peer, &json);
	sw_json_end_array(&json);
	sw_json_key(&json, "next");
	if (next > 0)
		sw_json_u64(&json, next);
	else
		sw_json_null(&json);
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 200, &json);
}
