/* Jobs that have left the state: rows in the journal's file answer what people ask about them.
 *
 * A row is made of what the brain still says of the job, in the same commit as the record that lets
 * it leave. It holds the answers as text, ready to be sent; what the job had for an environment is
 * not among them. Rows go by their number and age, in steps, when nothing is being stored.
 *
 * Invariants:
 *  1. a job that the brain knows is answered for by the brain, whether or not there is a row;
 *  2. no request walks over rows for longer than PAGE_NS.
 */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "server/batch.h"
#include "server/loop.h"
#include "server/past.h"
#include "server/state.h"
#include "server/views.h"
#include "store/past.h"

#define STEP_US 2000 /* between two steps that remove rows */
#define LATER_S 60   /* between two looks at whether rows are too old */

/* The texts of a row. */
enum { TEXT_BRIEF, TEXT_DETAILS, TEXT_ASKED, TEXT_REQUEST, TEXT_WHY };

/* As they are numbered in rows: never change, only add. */
static const char *const states[] = {"?", "CD", "F", "CA", "TO", "NF", "OOM"};
#define STATES (sizeof states / sizeof states[0])

static uint32_t number_of(const char *state)
{
	for (uint32_t i = 1; i < STATES; i++)
		if (strcmp(states[i], state) == 0)
			return i;
	return 0;
}

/* ---- keeping */

/* What stands between the brackets of an object; NULL: out of memory. */
static char *inside(struct sw_json *json)
{
	size_t size = 0;
	char *text = sw_json_take(json, &size);
	if (text == NULL || size < 2)
		return text;
	memmove(text, text + 1, size - 2);
	text[size - 2] = '\0';
	return text;
}

static char *write_part(struct sw_server *server, const struct sw_job_view *view, int which)
{
	struct sw_json json = {0};
	if (which == TEXT_ASKED) {
		sw_write_job_asked(&json, view);
		return sw_json_take(&json, NULL);
	}
	sw_json_object(&json);
	if (which == TEXT_BRIEF)
		sw_write_job_brief(server, &json, view, true);
	else
		sw_write_job_details(server, &json, view);
	sw_json_end_object(&json);
	return inside(&json);
}

/* Without its environment: that may be large, and is of no use to a job that has ended. */
static char *write_request(const struct sw_job_view *view)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	if (sw_job_request_decode(sw_job_stored, view->request, strlen(view->request), &request, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < request->env_count; i++)
		free(request->env[i]);
	request->env_count = 0;
	request->is_member = view->is_member;
	request->array_index = view->array_index;
	return sw_job_request_encode(request);
}

static int keep_job(void *user, uint64_t job)
{
	struct sw_server *server = user;
	struct sw_job_view view;
	char why[1500] = "";
	char *texts[TEXT_WHY] = {0};
	int r = SW_ENOMEM;
	if (!sw_brain_job(server->brain, sw_server_now(server), job, &view))
		return 0;
	sw_brain_explain(server->brain, sw_server_now(server), job, why, sizeof why);
	for (int t = TEXT_BRIEF; t < TEXT_REQUEST; t++)
		texts[t] = write_part(server, &view, t);
	texts[TEXT_REQUEST] = write_request(&view);
	if (texts[TEXT_BRIEF] != NULL && texts[TEXT_DETAILS] != NULL && texts[TEXT_ASKED] != NULL && texts[TEXT_REQUEST] != NULL)
		r = sw_past_put(server->journal, &(struct sw_past_row){
							 .job = job,
							 .uid = view.uid,
							 .epoch = view.epoch,
							 .state = number_of(view.state),
							 .submitted_at_ns = view.submitted_at,
							 .ended_at_ns = view.ended_at,
							 .name = view.name,
							 .node = view.node,
							 .texts = {texts[0], texts[1], texts[2], texts[3], why},
						 });
	for (int t = TEXT_BRIEF; t <= TEXT_REQUEST; t++)
		free(texts[t]);
	return r;
}

static void schedule(struct sw_server *server, bool soon)
{
	const struct timeval pause = {.tv_sec = soon ? 0 : LATER_S, .tv_usec = soon ? STEP_US : 0};
	evtimer_add(server->past.step, &pause);
}

void sw_past_keep(struct sw_server *server, const struct sw_record *record)
{
	if (sw_brain_each_forgotten(server->brain, record->body, record->size, keep_job, server, NULL) < 0)
		sw_past_spoil(server->journal); /* no job leaves without its row */
	server->past.sweeps = true;
	schedule(server, true);
}

_Static_assert(SW_BULK_DIGEST == SW_BLOB_DIGEST, "texts are known by one kind of digest");

void sw_past_keep_texts(struct sw_server *server, const struct sw_record *record)
{
	for (int b = 0; b < SW_BULKS; b++)
		if (record->texts[b].bytes != NULL)
			(void)sw_blob_put(server->journal, record->texts[b].digest, record->texts[b].bytes, record->texts[b].size);
}

int sw_past_load_text(void *context, const unsigned char *digest, char **ret_bytes, size_t *ret_size, struct sw_err *err)
{
	struct sw_server *server = context;
	return sw_blob_get(server->journal, digest, ret_bytes, ret_size, err);
}

static bool is_needed(void *context, const unsigned char *digest)
{
	const struct sw_server *server = context;
	/* A start that failed has no state: nothing can be said to be unneeded. */
	return server->brain == NULL || sw_brain_needs_text(server->brain, digest);
}

/* ---- looking */

/* By the name that they all have. */
static bool is_prerun(const char *name)
{
	static const char suffix[] = ".prerun";
	size_t length = strlen(name), end = sizeof suffix - 1;
	return length > end && strcmp(name + length - end, suffix) == 0;
}

static void view_row(const struct sw_past_row *row, struct sw_job_view *ret_view)
{
	const char *state = row->state < STATES ? states[row->state] : states[0];
	unsigned known = sw_state_find(state);
	*ret_view = (struct sw_job_view){
		.id = row->job,
		.state = state,
		.state_long = known < SW_STATES ? sw_state_names[known].full : state,
		.request = row->texts[TEXT_REQUEST],
		.name = row->name,
		.model = "",
		.tenant = "",
		.reason = "",
		.held_by = UINT32_MAX,
		.uid = row->uid,
		.is_prerun = is_prerun(row->name),
		.epoch = row->epoch,
		.submitted_at = row->submitted_at_ns,
		.started_at = SW_TIME_NEVER,
		.ended_at = row->ended_at_ns,
		.retry_at = SW_TIME_NEVER,
		.node = row->node,
		.not_deep = "",
		.unmoved = "",
		.warning = "",
		.failure = "",
		.failure_layer = "",
		.failure_line = "",
		.failure_says = "",
		.failure_hint = "",
	};
}

/* A copy of the row that outlives the walk, in one block. */
static int copy_row(void *user, const struct sw_past_row *row)
{
	struct sw_found_job *seen = user;
	const char *from[2 + SW_PAST_TEXTS] = {row->name, row->node};
	size_t size = 0, count = 2 + SW_PAST_TEXTS;
	memcpy(from + 2, row->texts, sizeof row->texts);
	for (size_t i = 0; i < count; i++)
		size += strlen(from[i]) + 1;
	char *at = seen->own = malloc(size);
	if (at == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(from[i]) + 1;
		memcpy(at, from[i], length);
		from[i] = at;
		at += length;
	}
	struct sw_past_row copy = *row;
	copy.name = from[0];
	copy.node = from[1];
	memcpy(copy.texts, from + 2, sizeof copy.texts);
	memcpy(seen->texts, copy.texts, sizeof seen->texts);
	view_row(&copy, &seen->view);
	seen->is_past = true;
	return 0;
}

bool sw_find_job(struct sw_server *server, uint64_t job, struct sw_found_job *ret_seen)
{
	*ret_seen = (struct sw_found_job){0};
	if (sw_brain_job(server->brain, sw_server_now(server), job, &ret_seen->view))
		return true;
	struct sw_err err = {0};
	int r = job >= 1 && job <= sw_brain_job_count(server->brain) ? sw_past_find(server->journal, job, copy_row, ret_seen, &err)
								     : SW_ENOTFOUND;
	if (r < 0 && r != SW_ENOTFOUND)
		sw_server_note(server, "%s: %s", err.fact, err.detail);
	return r == 0;
}

void sw_found_release(struct sw_found_job *seen)
{
	free(seen->own);
}

const char *sw_found_why(const struct sw_found_job *seen)
{
	return seen->texts[TEXT_WHY];
}

static void write_row(struct sw_json *json, const char *const *texts, bool in_full, enum sw_job_extra extra)
{
	struct sw_json whole = {0};
	size_t size = 0;
	sw_json_bytes(&whole, "{", 1);
	sw_json_bytes(&whole, texts[TEXT_BRIEF], strlen(texts[TEXT_BRIEF]));
	if (in_full) {
		sw_json_bytes(&whole, ",", 1);
		sw_json_bytes(&whole, texts[TEXT_DETAILS], strlen(texts[TEXT_DETAILS]));
	}
	whole.wants_comma = true;
	if (in_full && extra == SW_WITH_REQUEST) {
		sw_json_key(&whole, "request");
		sw_json_raw(&whole, texts[TEXT_REQUEST], strlen(texts[TEXT_REQUEST]));
	}
	if (in_full && extra == SW_WITH_ASKED) {
		sw_json_key(&whole, "asked");
		sw_json_raw(&whole, texts[TEXT_ASKED], strlen(texts[TEXT_ASKED]));
	}
	if (extra == SW_CHANGED || extra == SW_UNCHANGED)
		sw_json_key_bool(&whole, "changed", extra == SW_CHANGED);
	sw_json_bytes(&whole, "}", 1);
	char *text = sw_json_take(&whole, &size);
	if (text != NULL)
		sw_json_raw(json, text, size);
	else
		json->failed = true;
	free(text);
}

void sw_found_write(struct sw_server *server, struct sw_json *json, const struct sw_found_job *seen, bool in_full, enum sw_job_extra extra)
{
	if (seen->is_past)
		write_row(json, seen->texts, in_full, extra);
	else
		sw_write_job(server, json, &seen->view, in_full, extra);
}

bool sw_past_fate(void *context, uint64_t job, struct sw_fate *ret_fate)
{
	struct sw_server *server = context;
	struct sw_found_job seen = {0};
	bool found = sw_past_find(server->journal, job, copy_row, &seen, NULL) == 0;
	if (found)
		*ret_fate = (struct sw_fate){.job = job, .ok = strcmp(seen.view.state, "CD") == 0, .uid = seen.view.uid};
	sw_found_release(&seen);
	return found;
}

void sw_past_add_counts(struct sw_server *server, uint64_t counts[SW_STATES])
{
	uint64_t rows[SW_PAST_STATES];
	if (sw_past_count(server->journal, rows, NULL) < 0)
		return;
	for (uint32_t i = 0; i < STATES; i++) {
		unsigned state = sw_state_find(states[i]);
		if (state < SW_STATES)
			counts[state] += rows[i];
	}
}

/* The details of a row have the seconds that the job ran. A quote in a text of a user has a
 * backslash before it, so no such text has this key. */
bool sw_past_length(const struct sw_past_row *row, struct sw_length *ret_length)
{
	static const char key[] = "\"ran_s\":";
	const char *state = row->state < STATES ? states[row->state] : "", *at = strstr(row->texts[TEXT_DETAILS], key);
	int64_t ran_ns;
	if (at == NULL || (strcmp(state, "CD") != 0 && strcmp(state, "TO") != 0))
		return false;
	at += sizeof key - 1;
	if (sw_parse_decimal(at, strcspn(at, ",}"), SW_NS_PER_S, &ran_ns) < 0 || ran_ns <= 0)
		return false;
	*ret_length = (struct sw_length){row->job, sw_length_kind(row->uid, row->name), ran_ns};
	return true;
}

/* ---- pages */

/* Whether any of these states is one of rows. */
static bool wants_ended(uint32_t wanted)
{
	for (unsigned s = 0; s < SW_STATES; s++)
		if ((wanted >> s & 1) != 0 && sw_state_names[s].ended)
			return true;
	return false;
}

/* Jobs of the brain up to the row, or all that are left; false: the walk is full. */
static bool give_known(struct sw_job_walk *walk, uint64_t until)
{
	struct sw_server *server = walk->server;
	for (;;) {
		uint64_t job = walk->descending ? sw_brain_prev_job(server->brain, walk->at) : sw_brain_next_job(server->brain, walk->at);
		if (job == 0 || (walk->descending ? job < until : job > until))
			return true;
		struct sw_found_job seen = {0};
		if (!walk->give(walk, sw_brain_job(server->brain, walk->now_ns, job, &seen.view) ? &seen : NULL))
			return false;
		walk->at = walk->descending ? job - 1 : job + 1;
		if (walk->at == 0)
			return true;
	}
}

static int give_row(void *user, const struct sw_past_row *row)
{
	struct sw_job_walk *walk = user;
	struct sw_job_view view;
	if (!give_known(walk, row->job))
		return 1;
	if (walk->at == 0 || (walk->descending ? row->job > walk->at : row->job < walk->at))
		return 0; /* the brain had it */
	if (walk->stops_at > row->job && walk->descending)
		return 2;
	struct sw_found_job seen = {.is_past = true};
	memcpy(seen.texts, row->texts, sizeof seen.texts);
	view_row(row, &view);
	seen.view = view;
	if (!walk->give(walk, &seen))
		return 1;
	walk->at = walk->descending ? row->job - 1 : row->job + 1;
	return walk->at == 0 ? 2 : 0;
}

bool sw_past_walk(struct sw_job_walk *walk, uint32_t wanted_states, int64_t since_ns, struct sw_err *err)
{
	struct sw_past_query query = {.from = walk->at, .descending = walk->descending, .by_user = walk->by_user, .uid = walk->uid};
	int r = 0;
	uint64_t first = 0;
	if (wants_ended(wanted_states) && walk->at > 0) {
		/* Of those that ended lately there are few: the others need not be looked at. */
		if (since_ns > 0)
			r = sw_past_first_since(walk->server->journal, since_ns, &first, err);
		if (walk->descending)
			walk->stops_at = first;
		else if (first > query.from)
			query.from = first;
		r = r < 0 ? r : sw_past_each(walk->server->journal, &query, give_row, walk, err);
	}
	if (r < 0)
		sw_server_note(walk->server, "%s: %s", err->fact, err->detail);
	if (r == 1)
		return false;
	return walk->at == 0 || give_known(walk, walk->descending ? 1 : UINT64_MAX);
}

/* ---- retention */

static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	const struct sw_controller_options *options = server->options;
	int64_t keep_ns = options->keep_history_ns, now_ns = sw_server_now(server);
	bool more = false;
	struct sw_err err = {0};
	/* The journal has one transaction at a time. */
	if (!TAILQ_EMPTY(&server->batch.storing) || sw_loop_puts_off(server, &server->past.put_off)) {
		schedule(server, true);
		return;
	}
	uint64_t keep = options->keep_history > 0 ? options->keep_history : keep_ns > 0 ? UINT64_MAX : SW_KEEP_HISTORY;
	if (!server->batch.failing &&
	    sw_past_trim(server->journal, keep, keep_ns > 0 && now_ns > keep_ns ? now_ns - keep_ns : 0, &more, &err) < 0)
		sw_server_note(server, "%s: %s; it is tried again", err.fact, err.detail);
	/* Texts whose records are stored and not applied would look as if they were of no use. */
	if (!more && server->past.sweeps && !server->batch.failing && sw_batch_rests(server)) {
		if (sw_blob_sweep(server->journal, &server->past.cursor, is_needed, server, &err) < 0)
			sw_server_note(server, "%s: %s; it is tried again", err.fact, err.detail);
		server->past.sweeps = server->past.cursor != 0;
	}
	schedule(server, more || server->past.sweeps);
}

int sw_past_start(struct sw_server *server, struct sw_err *err)
{
	server->past.step = evtimer_new(server->base, on_step, server);
	if (server->past.step == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	server->past.sweeps = true;
	schedule(server, true);
	return 0;
}

void sw_past_stop(struct sw_server *server)
{
	if (server->past.step != NULL)
		event_free(server->past.step);
}
