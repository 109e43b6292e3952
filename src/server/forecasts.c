/* Forecasts for all callers: one table for all users, and trials of requests that are not
 * submitted.
 *
 * A child process (forecast_child.c) runs a copy of the engine ahead and leaves a table. A caller
 * waits for it without holding the loop. One child works at a time. Between two there is a pause as
 * long as the last one took, so that forecasts take half of one processor at most. The common table
 * is made once a second at most.
 *
 * Invariants:
 *  1. a caller gets a table of a state with all records that were applied when it asked. One that
 *     has waited for LATE_NS gets the last table, which may be older than its question, but not
 *     older than OLD_NS. An answer says the moment that it is of. Whether a job has started, has
 *     ended or is on hold is always said as it is now, never by the table;
 *  2. all users see the same figure of a job: it comes from the table, not from what they may see;
 *  3. a child that fails means that there is no estimate, and nothing else; it is not tried again
 *     for a while. Of a trial, that holds back the trials of this user alone;
 *  4. no record comes of a forecast, and the state of the controller is not touched;
 *  5. users with trials have their turns one after the other, and so have trials and the table;
 *     every trial is answered within TRIAL_LATE_NS.
 */
#include "server/forecasts.h"

#include <inttypes.h>
#include <string.h>

#include "api/json.h"
#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/connection.h"
#include "server/forecast_child.h"
#include "server/loop.h"
#include "server/models.h"
#include "server/past.h"
#include "server/recall.h"
#include "server/state.h"
#include "server/submit.h"
#include "server/triers.h"
#include "server/views.h"

#define APART_NS SW_NS_PER_S	   /* between the beginnings of two common tables */
#define STALE_NS (5 * SW_NS_PER_S) /* a table of the same state is used for so long */
#define AFTER_FAILURE_NS (10 * SW_NS_PER_S)
#define CHILD_S 70		  /* more than the child allows itself */
#define LATE_NS (3 * SW_NS_PER_S) /* clients give up where nothing comes for a while */
#define OLD_NS (30 * SW_NS_PER_S) /* no caller gets a table that was begun so long ago */
#define TRIAL_LATE_NS (25 * SW_NS_PER_S)
#define TRIALS_APART_NS (250 * SW_NS_PER_MS) /* of one user: from the end of one to the next */
#define FAILURES_MAX 8u			     /* ways to fail that are noted */
#define TRIALS_MAX 64u			     /* requests that wait to be tried, of all users */
#define TRIALS_OF_USER 4u		     /* and of one */
#define TRIAL_ITEMS_MAX 100u		     /* of one list */
#define COME_BACK_S 5u

/* A caller that waits. */
struct asker {
	TAILQ_ENTRY(asker) link;
	struct sw_server *server;
	struct sw_conn *conn; /* NULL: it has gone, and the child is still at its trial */
	uint64_t seq;	      /* records that were applied when it asked */
	int64_t asked_ns;     /* uptime */
	/* Of a trial. */
	bool tries;
	uint32_t uid;
	sw_records records;
	size_t *item_records, item_count;
	uint32_t *item_jobs; /* that each item makes */
	struct sw_request *request;
};

struct sw_forecasts {
	TAILQ_HEAD(, asker) askers; /* the first that asked comes first */
	struct event *step;	    /* the next child may begin */
	struct event *late;	    /* a caller has waited for too long */
	struct event *ended;	    /* NULL: no child works */
	struct sw_child child;
	struct asker *trial; /* whose request the child tries; NULL: it makes the common table */
	uint64_t seq;	     /* of the state that the child has; and when it began */
	int64_t at_ns, begun_ns;
	int64_t rests_until_ns, fails_until_ns; /* the latter: of the common table */
	bool looked_last;			/* the last child was for the common table */
	struct sw_triers triers;
	struct sw_err failures[FAILURES_MAX]; /* that were noted */
	uint32_t failure_count;
	struct {
		struct sw_forecast_table found;
		uint64_t seq;
		int64_t at_ns, begun_ns; /* 0: there is none */
	} table;
	struct sw_recall recall; /* lengths of jobs that have left */
	struct sw_forecast_figures figures;
};

static void schedule(struct sw_server *server);
static void watch_late(struct sw_server *server);

const struct sw_forecast_figures *sw_forecasts_figures(const struct sw_server *server)
{
	return &server->forecasts->figures;
}

static void free_asker(struct asker *asker)
{
	struct sw_forecasts *forecasts = asker->server->forecasts;
	TAILQ_REMOVE(&forecasts->askers, asker, link);
	sw_records_clear(&asker->records);
	free(asker->item_records);
	free(asker->item_jobs);
	sw_request_free(asker->request);
	free(asker);
}

/* What the child has begun it ends: a client that leaves gives no work back. */
static void asker_left(void *attached)
{
	struct asker *asker = attached;
	asker->conn = NULL;
	if (asker->server->forecasts->trial != asker)
		free_asker(asker);
}

static void refuse(struct sw_conn *conn)
{
	struct sw_err err = {0};
	sw_err_set(&err, SW_ENOMEM, "out of memory");
	sw_conn_reply_error(conn, 503, &err);
}

static struct asker *add_asker(struct sw_server *server, struct sw_conn *conn)
{
	struct asker *asker = calloc(1, sizeof *asker);
	if (asker == NULL) {
		refuse(conn);
		return NULL;
	}
	*asker = (struct asker){
		.server = server,
		.conn = conn,
		.seq = server->batch.applied_seq,
		.asked_ns = sw_now_boot_ns(),
		.uid = sw_conn_peer(conn)->user.uid,
	};
	TAILQ_INSERT_TAIL(&server->forecasts->askers, asker, link);
	sw_conn_attach(conn, asker, asker_left, true);
	return asker;
}

/* ---- answers */

static void write_basis(struct sw_json *json, const struct sw_forecast_row *row)
{
	static const char *const keys[SW_BASES] = {"expected", "limits", "alike", "all", "again"};
	sw_json_key(json, "basis");
	if (row->starts_at == SW_TIME_NEVER) {
		sw_json_null(json);
		return;
	}
	sw_json_object(json);
	for (size_t b = 0; b < SW_BASES; b++)
		sw_json_key_u64(json, keys[b], row->ended[b]);
	sw_json_end_object(json);
}

/* Of one job of a request that is tried. */
struct tried {
	uint32_t makes_jobs; /* an array makes several */
	bool is_refused;
};

/* `why`: where there is no start. `tried` NULL: it is a job. */
static void write_estimate(struct sw_json *json, const struct sw_forecast_row *row, const char *why, const struct tried *tried)
{
	sw_json_object(json);
	sw_json_key(json, "id");
	if (row->job > 0)
		sw_json_u64(json, row->job);
	else
		sw_json_null(json);
	sw_write_time(json, "estimated_start_at", row->starts_at);
	write_basis(json, row);
	sw_json_key(json, "no_estimate");
	if (row->starts_at == SW_TIME_NEVER)
		sw_json_string(json, why);
	else
		sw_json_null(json);
	sw_json_key(json, "makes_jobs");
	if (tried != NULL)
		sw_json_u64(json, tried->makes_jobs);
	else
		sw_json_null(json);
	sw_json_key_bool(json, "would_be_refused", tried != NULL && tried->is_refused);
	sw_json_end_object(json);
}

static const char *say(const struct sw_forecast_table *table, const struct sw_forecast_row *row, char *text, size_t size)
{
	enum sw_forecast_why why = row->why < SW_FORECAST_WHYS ? (enum sw_forecast_why)row->why : SW_FORECAST_FAR;
	return sw_forecast_say(why, table->gpus_shut, text, size);
}

static void begin_answer(struct sw_json *json, int64_t at_ns, uint64_t seq)
{
	sw_json_object(json);
	sw_write_time(json, "at", at_ns);
	sw_json_key_u64(json, "seq", seq);
	sw_json_key(json, "jobs");
	sw_json_array(json);
}

/* Where there is no table, or the job came later. */
static const char has_failed[] = "the forecast failed; it is tried again in a few seconds";
static const char is_not_ready[] = "the forecast is not ready yet; ask again in a moment";

static void end_answer(struct sw_conn *conn, struct sw_json *json, const char *failed, uint64_t next)
{
	sw_json_end_array(json);
	sw_json_key(json, "failed");
	if (failed != NULL)
		sw_json_string(json, failed);
	else
		sw_json_null(json);
	sw_json_key(json, "next");
	if (next > 0)
		sw_json_u64(json, next);
	else
		sw_json_null(json);
	sw_json_end_object(json);
	sw_conn_reply_json(conn, 200, json);
}

/* The first row of this job, or behind it. */
static size_t find_row(const struct sw_forecast_table *table, uint64_t job)
{
	size_t low = 0, high = table->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table->rows[middle].job < job)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool waits(const struct sw_found_job *seen)
{
	return strcmp(seen->view.state, "PD") == 0 || strcmp(seen->view.state, "S") == 0;
}

/* What the job does now, where that leaves nothing to estimate; NULL: it waits. */
static const char *what_it_does(const struct sw_server *server, const struct sw_found_job *seen)
{
	const char *state = seen->view.state;
	if (seen->is_past || sw_brain_has_ended(server->brain, seen->view.id))
		return "it has ended";
	if (!waits(seen) && strcmp(state, "UN") != 0)
		return "it has started";
	return seen->view.held ? "it is on hold" : NULL;
}

/* Of one job, by the table; NULL: there is none, and `failed` says why. */
static void write_one(struct sw_server *server, struct sw_json *json, const struct sw_peer *peer, const struct sw_forecast_table *table,
		      const char *failed, const struct sw_found_job *seen)
{
	char text[300];
	size_t at = table != NULL ? find_row(table, seen->view.id) : 0;
	struct sw_forecast_row none = {.job = seen->view.id, .starts_at = SW_TIME_NEVER};
	const struct sw_forecast_row *row = table != NULL && at < table->count && table->rows[at].job == none.job ? &table->rows[at] : NULL;
	const char *why = what_it_does(server, seen);
	if (why != NULL || row == NULL)
		row = &none;
	else
		why = say(table, row, text, sizeof text);
	if (why == NULL && table != NULL)
		why = waits(seen) ? is_not_ready : "it has started";
	else if (why == NULL)
		why = failed;
	/* Why another user's job waits is for its owner and operators. */
	write_estimate(json, row, sw_may_see(peer, &seen->view) ? why : "it belongs to another user", NULL);
}

static void answer_one(struct sw_server *server, struct sw_conn *conn, const struct sw_forecast_table *table, const char *failed)
{
	const struct sw_forecasts *forecasts = server->forecasts;
	SW_CLEANUP(sw_found_release) struct sw_found_job seen;
	struct sw_err err = {0};
	struct sw_json json = {0};
	uint64_t job = sw_conn_request(conn)->job;
	if (!sw_find_job(server, job, &seen)) {
		sw_err_set(&err, SW_ENOTFOUND, "there is no job %" PRIu64, job);
		sw_conn_reply_error(conn, 404, &err);
		return;
	}
	begin_answer(&json, table != NULL ? forecasts->table.at_ns : sw_server_now(server),
		     table != NULL ? forecasts->table.seq : server->batch.applied_seq);
	write_one(server, &json, sw_conn_peer(conn), table, failed, &seen);
	end_answer(conn, &json, failed, 0);
}

static void answer_page(struct sw_server *server, struct sw_conn *conn, const struct sw_forecast_table *table, const char *failed)
{
	const struct sw_forecasts *forecasts = server->forecasts;
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_json json = {0};
	size_t at = table != NULL ? find_row(table, request->list.cursor + 1) : 0, count = table != NULL ? table->count : 0;
	begin_answer(&json, table != NULL ? forecasts->table.at_ns : sw_server_now(server),
		     table != NULL ? forecasts->table.seq : server->batch.applied_seq);
	uint64_t last = 0;
	for (uint32_t written = 0; at < count && written < request->list.limit; at++, written++) {
		struct sw_found_job seen = {0};
		last = table->rows[at].job;
		if (sw_brain_job(server->brain, sw_server_now(server), last, &seen.view) && !sw_brain_has_ended(server->brain, last))
			write_one(server, &json, sw_conn_peer(conn), table, failed, &seen);
	}
	end_answer(conn, &json, failed, at < count ? last : 0);
}

/* `table` NULL: there is none, and `failed` says why. */
static void answer(struct sw_server *server, struct sw_conn *conn, const struct sw_forecast_table *table, const char *failed)
{
	if (sw_conn_request(conn)->job > 0)
		answer_one(server, conn, table, table == NULL ? failed : NULL);
	else
		answer_page(server, conn, table, table == NULL ? failed : NULL);
}

/* `table` NULL: there is none, and `failed` says why. */
static void answer_trial(const struct asker *asker, struct sw_conn *conn, const struct sw_forecast_table *table, const char *failed)
{
	struct sw_server *server = asker->server;
	const struct sw_forecasts *forecasts = server->forecasts;
	struct sw_json json = {0};
	char text[300];
	begin_answer(&json, table != NULL ? forecasts->at_ns : sw_server_now(server),
		     table != NULL ? forecasts->seq : server->batch.applied_seq);
	for (size_t i = 0; i < asker->item_count; i++) {
		struct sw_forecast_row row = {.starts_at = SW_TIME_NEVER};
		struct tried tried = {.makes_jobs = asker->item_jobs[i]};
		const char *why = failed != NULL ? failed : has_failed;
		if (table != NULL && i < table->count) {
			row = table->rows[i];
			tried.is_refused = row.why == SW_FORECAST_REFUSED;
			why = row.why == SW_FORECAST_OVER ? "it would end at once, as a job that it depends on did not end as it asks"
							  : say(table, &row, text, sizeof text);
		}
		row.job = 0; /* it has no number: there is no such job */
		write_estimate(&json, &row, why, &tried);
	}
	end_answer(conn, &json, failed, 0);
}

/* ---- the child */

static void on_ended(evutil_socket_t fd, short what, void *user);

/* The first that asks for the table of a state up to this record, or the first with a request to
 * try. */
static struct asker *first_asker(const struct sw_forecasts *forecasts, bool tries, uint64_t seq)
{
	struct asker *asker;
	TAILQ_FOREACH(asker, &forecasts->askers, link)
	if (asker->tries == tries && asker->seq <= seq)
		return asker;
	return NULL;
}

/* Answers the callers that this table is new enough for; NULL: all hear that there is none. */
static void answer_askers(struct sw_server *server, const struct sw_forecast_table *table)
{
	struct sw_forecasts *forecasts = server->forecasts;
	uint64_t seq = table != NULL ? forecasts->table.seq : UINT64_MAX;
	struct asker *asker;
	/* From the start each time: an answer may let go of any connection. A caller that asks
	 * now and could be answered is not added. */
	while ((asker = first_asker(forecasts, false, seq)) != NULL) {
		struct sw_conn *conn = asker->conn;
		free_asker(asker);
		sw_conn_detach(conn);
		answer(server, conn, table, has_failed);
	}
}

/* It is answered; where the child is at it, it stays until that has ended. */
static void let_go_trial(struct asker *asker, const struct sw_forecast_table *table, const char *failed)
{
	struct sw_conn *conn = SW_TAKE(asker->conn);
	if (conn != NULL) {
		sw_conn_detach(conn);
		answer_trial(asker, conn, table, failed);
	}
	if (asker->server->forecasts->trial != asker)
		free_asker(asker);
}

static void end_trial(struct sw_server *server, const struct sw_forecast_table *table)
{
	struct asker *asker = SW_TAKE(server->forecasts->trial);
	struct sw_trier *trier = sw_trier_make(&server->forecasts->triers, asker->uid);
	int64_t now_ns = sw_now_boot_ns();
	trier->rests_until_ns = now_ns + (table != NULL ? TRIALS_APART_NS : AFTER_FAILURE_NS);
	trier->fails_until_ns = table != NULL ? 0 : trier->rests_until_ns;
	let_go_trial(asker, table, table != NULL ? NULL : has_failed);
}

static bool begin_child(struct sw_server *server, struct asker *trial, struct sw_err *err)
{
	struct sw_forecasts *forecasts = server->forecasts;
	struct sw_forecast_task task = {.brain = server->brain, .now = sw_server_now(server)};
	struct timeval patience = {.tv_sec = CHILD_S};
	if (trial != NULL) {
		task.records = &trial->records;
		task.item_records = trial->item_records;
		task.item_count = trial->item_count;
	}
	forecasts->figures.runs++;
	forecasts->trial = trial;
	forecasts->looked_last = trial == NULL;
	forecasts->seq = server->batch.applied_seq;
	forecasts->at_ns = task.now;
	forecasts->begun_ns = sw_now_boot_ns();
	if (trial != NULL)
		sw_trier_make(&forecasts->triers, trial->uid)->begun_ns = forecasts->begun_ns;
	if (sw_forecast_child_start(&task, &forecasts->child, err) < 0)
		return false;
	forecasts->ended = event_new(server->base, forecasts->child.end, EV_READ, on_ended, server);
	if (forecasts->ended != NULL && event_add(forecasts->ended, &patience) == 0)
		return true;
	if (forecasts->ended != NULL)
		event_free(forecasts->ended);
	forecasts->ended = NULL;
	sw_forecast_child_end(&forecasts->child, NULL, NULL);
	sw_err_set(err, SW_ENOMEM, "out of memory");
	return false;
}

/* Once for each way in which forecasts fail. */
static void note_failure(struct sw_server *server, const struct sw_err *err)
{
	struct sw_forecasts *forecasts = server->forecasts;
	for (uint32_t i = 0; i < forecasts->failure_count; i++)
		if (strcmp(forecasts->failures[i].fact, err->fact) == 0)
			return;
	if (forecasts->failure_count == FAILURES_MAX)
		return;
	forecasts->failures[forecasts->failure_count++] = *err;
	sw_server_note(server, "a forecast failed: %s%s%s; the next ones that fail so are not told", err->fact,
		       err->detail[0] != '\0' ? ": " : "", err->detail);
}

static void no_child(struct sw_server *server, const struct sw_err *err)
{
	struct sw_forecasts *forecasts = server->forecasts;
	note_failure(server, err);
	forecasts->figures.failed++;
	if (forecasts->trial != NULL) {
		end_trial(server, NULL);
		return;
	}
	forecasts->fails_until_ns = sw_now_boot_ns() + AFTER_FAILURE_NS;
	answer_askers(server, NULL);
}

static void note_held(struct sw_forecasts *forecasts, int64_t since_ns)
{
	int64_t held_ns = sw_now_boot_ns() - since_ns;
	if (held_ns > forecasts->figures.held_ns)
		forecasts->figures.held_ns = held_ns;
}

static void take_table(struct sw_forecasts *forecasts, const struct sw_forecast_table *found)
{
	sw_forecast_table_release(&forecasts->table.found);
	forecasts->table.found = *found;
	forecasts->table.seq = forecasts->seq;
	forecasts->table.at_ns = forecasts->at_ns;
	forecasts->table.begun_ns = forecasts->begun_ns;
}

/* It has ended, or it is too late. */
static void on_ended(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_forecasts *forecasts = server->forecasts;
	struct sw_forecast_table found = {0};
	struct sw_err err = {0};
	int64_t now_ns = sw_now_boot_ns(), took_ns = now_ns - forecasts->begun_ns;
	event_free(forecasts->ended);
	forecasts->ended = NULL;
	int r = sw_forecast_child_end(&forecasts->child, &found, &err);
	forecasts->rests_until_ns = now_ns + took_ns;
	if (took_ns > forecasts->figures.longest_ns)
		forecasts->figures.longest_ns = took_ns;
	note_held(forecasts, now_ns);
	if (r < 0) {
		no_child(server, &err);
	} else if (forecasts->trial != NULL) {
		end_trial(server, &found);
		sw_forecast_table_release(&found);
	} else {
		take_table(forecasts, &found);
		answer_askers(server, &forecasts->table.found);
	}
	schedule(server);
}

/* ---- what runs next */

/* What may begin next, and when. */
struct pass {
	struct asker *trial; /* NULL: the common table */
	int64_t due_ns;	     /* not before now; INT64_MAX: no caller asks for it */
};

static struct pass table_pass(const struct sw_forecasts *forecasts, int64_t now_ns)
{
	struct pass pass = {.due_ns = INT64_MAX};
	if (first_asker(forecasts, false, UINT64_MAX) == NULL)
		return pass;
	pass.due_ns = forecasts->rests_until_ns > now_ns ? forecasts->rests_until_ns : now_ns;
	if (forecasts->table.begun_ns != 0 && forecasts->table.begun_ns + APART_NS > pass.due_ns)
		pass.due_ns = forecasts->table.begun_ns + APART_NS;
	return pass;
}

/* Of those that may begin first, the one of the user whose last trial is the longest ago. */
static struct pass trial_pass(struct sw_forecasts *forecasts, int64_t now_ns)
{
	struct pass first = {.due_ns = INT64_MAX};
	int64_t first_begun_ns = 0;
	struct asker *asker;
	TAILQ_FOREACH(asker, &forecasts->askers, link)
	{
		const struct sw_trier *trier = asker->tries ? sw_trier_find(&forecasts->triers, asker->uid) : NULL;
		int64_t due_ns = forecasts->rests_until_ns > now_ns ? forecasts->rests_until_ns : now_ns;
		int64_t begun_ns = trier != NULL ? trier->begun_ns : 0;
		if (!asker->tries)
			continue;
		if (trier != NULL && trier->rests_until_ns > due_ns)
			due_ns = trier->rests_until_ns;
		if (due_ns > first.due_ns || (due_ns == first.due_ns && begun_ns >= first_begun_ns))
			continue;
		first = (struct pass){asker, due_ns};
		first_begun_ns = begun_ns;
	}
	return first;
}

static struct pass next_pass(struct sw_forecasts *forecasts, int64_t now_ns)
{
	struct pass look = table_pass(forecasts, now_ns), trial = trial_pass(forecasts, now_ns);
	bool looks = look.due_ns != trial.due_ns ? look.due_ns < trial.due_ns : !forecasts->looked_last;
	return looks || trial.trial == NULL ? look : trial;
}

static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_forecasts *forecasts = server->forecasts;
	int64_t now_ns = sw_now_boot_ns();
	struct pass pass = next_pass(forecasts, now_ns);
	struct sw_err err = {0};
	if (forecasts->ended != NULL || pass.due_ns == INT64_MAX)
		return;
	if (!sw_recall_some(server, &forecasts->recall)) {
		evtimer_add(forecasts->step, &(struct timeval){0});
		return;
	}
	if (pass.due_ns <= now_ns) {
		if (!begin_child(server, pass.trial, &err))
			no_child(server, &err);
		note_held(forecasts, now_ns);
	}
	schedule(server);
}

/* Once that moment has come. */
static void set_timer(struct event *timer, int64_t at_ns)
{
	int64_t now_ns = sw_now_boot_ns(), wait_us = at_ns > now_ns ? (at_ns - now_ns + SW_NS_PER_US - 1) / SW_NS_PER_US : 0;
	const struct timeval wait = {.tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000};
	evtimer_add(timer, &wait);
}

static void schedule(struct sw_server *server)
{
	struct sw_forecasts *forecasts = server->forecasts;
	struct pass pass = next_pass(forecasts, sw_now_boot_ns());
	if (forecasts->ended == NULL && pass.due_ns != INT64_MAX)
		set_timer(forecasts->step, pass.due_ns);
}

/* The caller that will have waited for too long first, and when; NULL: no caller waits. */
static struct asker *first_late(const struct sw_forecasts *forecasts, int64_t *ret_late_ns)
{
	struct asker *asker, *first = NULL;
	*ret_late_ns = INT64_MAX;
	TAILQ_FOREACH(asker, &forecasts->askers, link)
	{
		int64_t late_ns = asker->asked_ns + (asker->tries ? TRIAL_LATE_NS : LATE_NS);
		if (asker->conn == NULL || late_ns >= *ret_late_ns)
			continue;
		first = asker;
		*ret_late_ns = late_ns;
	}
	return first;
}

static bool is_newer_than(const struct sw_forecasts *forecasts, int64_t age_ns)
{
	return forecasts->table.begun_ns != 0 && sw_now_boot_ns() - forecasts->table.begun_ns < age_ns;
}

/* Callers that have waited for too long get what there is. */
static void on_late(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_forecasts *forecasts = server->forecasts;
	struct asker *asker;
	int64_t late_ns;
	while ((asker = first_late(forecasts, &late_ns)) != NULL && late_ns <= sw_now_boot_ns()) {
		if (asker->tries) {
			let_go_trial(asker, NULL, is_not_ready);
			continue;
		}
		struct sw_conn *conn = asker->conn;
		free_asker(asker);
		sw_conn_detach(conn);
		answer(server, conn, is_newer_than(forecasts, OLD_NS) ? &forecasts->table.found : NULL, is_not_ready);
	}
	watch_late(server);
}

static void watch_late(struct sw_server *server)
{
	int64_t late_ns;
	if (first_late(server->forecasts, &late_ns) != NULL)
		set_timer(server->forecasts->late, late_ns);
}

/* ---- requests */

void sw_handle_forecast(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_forecasts *forecasts = server->forecasts;
	int64_t now_ns = sw_now_boot_ns();
	bool is_fresh = forecasts->table.seq == server->batch.applied_seq && is_newer_than(forecasts, STALE_NS);
	if (is_fresh || now_ns < forecasts->fails_until_ns)
		answer(server, conn, is_fresh ? &forecasts->table.found : NULL, has_failed);
	else if (add_asker(server, conn) != NULL) {
		watch_late(server);
		schedule(server);
	}
}

/* Room for one more: 0, 429 or 503. */
static int admit_trial(const struct sw_forecasts *forecasts, const struct sw_user *user, struct sw_err *err)
{
	uint32_t all = 0, own = 0;
	const struct asker *asker;
	TAILQ_FOREACH(asker, &forecasts->askers, link)
	{
		all += asker->tries;
		own += asker->tries && asker->uid == user->uid;
	}
	if (all < TRIALS_MAX && (own < TRIALS_OF_USER || user->is_operator))
		return 0;
	bool is_own = own >= TRIALS_OF_USER && !user->is_operator;
	sw_err_set(err, SW_ELIMIT, "%s too many requests that wait to be tried", is_own ? "you have" : "the controller has");
	sw_err_detail(err, "the bound is %u", is_own ? TRIALS_OF_USER : TRIALS_MAX);
	sw_err_hint(err, "Try again when one of them has been answered.");
	return is_own ? 429 : 503;
}

/* The records that a submit would make. */
static int propose(struct sw_server *server, struct asker *asker, const struct sw_user *user, struct sw_err *err)
{
	struct sw_request *request = asker->request;
	size_t count = request->jobs.count;
	int r = 0;
	if (count > TRIAL_ITEMS_MAX) {
		sw_err_set(err, SW_ELIMIT, "one request tries at most %u jobs", TRIAL_ITEMS_MAX);
		sw_err_hint(err, "Try them in several requests.");
		return SW_ELIMIT;
	}
	asker->item_records = calloc(count + 1, sizeof *asker->item_records);
	asker->item_jobs = calloc(count + 1, sizeof *asker->item_jobs);
	if (asker->item_records == NULL || asker->item_jobs == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	sw_models_look(server);
	for (size_t i = 0; r == 0 && i < count; i++) {
		size_t before = asker->records.count;
		asker->item_jobs[i] = sw_job_request_count(request->jobs.items[i].job);
		r = sw_submit_propose(server, user, request->jobs.items[i].job, NULL, &asker->records, err);
		asker->item_records[i] = asker->records.count - before;
		if (r < 0 && request->jobs_are_listed)
			sw_err_hint(err, "This is number %zu of the list.", i + 1);
	}
	asker->item_count = count;
	return r;
}

void sw_handle_trial(struct sw_server *server, struct sw_conn *conn)
{
	const struct sw_user user = sw_conn_peer(conn)->user;
	struct sw_err err = {0};
	int status = admit_trial(server->forecasts, &user, &err);
	if (status != 0) {
		sw_conn_reply_later(conn, status, &err, COME_BACK_S);
		return;
	}
	struct asker *asker = add_asker(server, conn);
	if (asker == NULL)
		return;
	asker->tries = true;
	asker->request = sw_conn_take_request(conn);
	int r = propose(server, asker, &user, &err);
	const struct sw_trier *trier = sw_trier_find(&server->forecasts->triers, user.uid);
	if (r == 0 && trier != NULL && sw_now_boot_ns() < trier->fails_until_ns) {
		let_go_trial(asker, NULL, has_failed);
		return;
	}
	if (r == 0) {
		watch_late(server);
		schedule(server);
		return;
	}
	sw_conn_detach(conn);
	free_asker(asker);
	sw_conn_reply_error(conn, sw_status_of(r), &err);
}

/* ---- life */

int sw_forecasts_start(struct sw_server *server, struct sw_err *err)
{
	struct sw_forecasts *forecasts = calloc(1, sizeof *forecasts);
	if (forecasts == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	TAILQ_INIT(&forecasts->askers);
	server->forecasts = forecasts;
	forecasts->step = evtimer_new(server->base, on_step, server);
	forecasts->late = evtimer_new(server->base, on_late, server);
	return forecasts->step != NULL && forecasts->late != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_forecasts_stop(struct sw_server *server)
{
	struct sw_forecasts *forecasts = server->forecasts;
	if (forecasts == NULL)
		return;
	sw_forecast_child_end(&forecasts->child, NULL, NULL);
	forecasts->trial = NULL;
	while (!TAILQ_EMPTY(&forecasts->askers))
		free_asker(TAILQ_FIRST(&forecasts->askers));
	if (forecasts->ended != NULL)
		event_free(forecasts->ended);
	if (forecasts->step != NULL)
		event_free(forecasts->step);
	if (forecasts->late != NULL)
		event_free(forecasts->late);
	sw_forecast_table_release(&forecasts->table.found);
	sw_recall_release(&forecasts->recall);
	free(forecasts);
	server->forecasts = NULL;
}
