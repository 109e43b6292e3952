/* Requests about jobs. */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "api/when.h"
#include "base/bitmap.h"
#include "base/now.h"
#include "base/number.h"
#include "server/company.h"
#include "server/connection.h"
#include "server/jobs.h"
#include "server/models.h"
#include "server/past.h"
#include "server/state.h"
#include "server/turn.h"
#include "server/uses.h"
#include "server/views.h"
#include "server/waiting.h"

/* Jobs looked at for one page: a filter that nothing passes must not hold up everybody. */
#define LOOKED_AT_MAX 200000u
#define PAGE_NS (20 * SW_NS_PER_MS)
/* Of requests decoded for one page, for the same reason. */
#define ASKED_BYTES_MAX ((size_t)512 << 10)
/* Of proposing the jobs of one request, before others are heard. */
#define PROPOSE_SLICE_NS (5 * SW_NS_PER_MS)
/* For a user whose jobs take all that one user may have. */
#define COME_BACK_S 5u
/* Of the records that one request makes. */
#define RECORDS_BYTES_MAX ((size_t)64 << 20)

/* ------------------------------------------------------------------------------------------------ submit */

/* The jobs that a submit made: those of `ids`, or `count` from `first` on. Pre-runs are between them, and are not what was asked for. */
struct made {
	const uint64_t *ids;
	uint64_t first;
	size_t count;
};

static uint64_t next_made(struct sw_server *server, const struct made *made, size_t index, uint64_t last)
{
	if (made->ids != NULL)
		return made->ids[index];
	uint64_t id = index == 0 ? made->first : last + 1;
	for (;; id++) {
		struct sw_found_job seen;
		bool passes = sw_find_job(server, id, &seen) && seen.view.is_prerun;
		sw_found_release(&seen);
		if (!passes)
			return id;
	}
}

/* What the user should hear about the inputs of these jobs; each once. */
static void write_warnings(struct sw_server *server, const struct made *made, struct sw_json *json)
{
	struct sw_job_view view;
	const char *last = "";
	uint64_t id = 0;
	sw_json_key(json, "warnings");
	sw_json_array(json);
	for (size_t i = 0; i < made->count; i++) {
		id = next_made(server, made, i, id);
		if (!sw_brain_job(server->brain, sw_server_now(server), id, &view) || view.warning[0] == '\0' ||
		    strcmp(view.warning, last) == 0)
			continue;
		sw_json_string(json, view.warning);
		last = view.warning;
	}
	sw_json_end_array(json);
}

static void write_made(struct sw_server *server, struct sw_conn *conn, const struct made *made)
{
	struct sw_json json = {0};
	uint64_t id = 0;
	sw_json_object(&json);
	sw_json_key_u64(&json, "id", next_made(server, made, 0, 0));
	sw_json_key(&json, "ids");
	sw_json_array(&json);
	for (size_t i = 0; i < made->count; i++) {
		id = next_made(server, made, i, id);
		sw_json_u64(&json, id);
	}
	sw_json_end_array(&json);
	write_warnings(server, made, &json);
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 201, &json);
}

static void submitted(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	if (conn == NULL)
		return;
	if (failure != NULL)
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
	else
		write_made(server, conn, &(struct made){op->jobs.items, 0, op->jobs.count});
}

/* A key that is known: the jobs that it made, or word that it is another request's. False: it is new. */
static bool answer_again(struct sw_server *server, struct sw_conn *conn, const struct sw_user *user, const struct sw_request *request)
{
	struct sw_submit_key key;
	uint64_t first;
	struct sw_err err = {0};
	if (!sw_brain_find_key(server->brain, sw_server_now(server), user, request->key, &key, &first))
		return false;
	if (key.digest == request->digest) {
		write_made(server, conn, &(struct made){NULL, first, key.count});
		return true;
	}
	sw_err_set(&err, SW_EINPUT, "this Idempotency-Key came before with another request");
	sw_err_detail(&err, "it made %u %s, from number %" PRIu64, key.count, key.count == 1 ? "job" : "jobs", first);
	sw_err_hint(&err, "Take a new key for what is not the same.");
	sw_conn_reply_error(conn, 409, &err);
	return true;
}

/* The request whose repetition this was has been stored and applied, or was not stored. */
static void repeated(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	struct sw_err err = {0};
	if (conn == NULL)
		return;
	if (failure == NULL && answer_again(server, conn, &op->user, op->request))
		return;
	if (failure == NULL) {
		sw_err_set(&err, SW_EIO, "the request that came before with this key was not stored");
		sw_err_hint(&err, "Send it again.");
	}
	sw_conn_reply_error(conn, failure != NULL ? sw_failure_status(failure) : 503, failure != NULL ? failure : &err);
}

/* Whether a request with this key is being stored or applied at this moment. */
static bool is_underway(const struct sw_ops *ops, const struct sw_user *user, const char *key)
{
	const struct sw_op *op;
	TAILQ_FOREACH(op, ops, link)
	if (op->done == submitted && op->request->key != NULL && op->user.uid == user->uid && strcmp(op->request->key, key) == 0)
		return true;
	return false;
}

/* One record for each member; the request stands for them in turn. */
static int propose_members(struct sw_server *server, const struct sw_submit_key *key, struct sw_job_request *job, struct sw_op *op,
			   struct sw_err *err)
{
	uint32_t count = sw_job_request_count(job);
	job->is_member = true;
	job->array_index = job->array_first;
	int r = sw_brain_propose_keyed_submit(server->brain, &op->user, job, key, &op->records, err);
	return r < 0 ? r : sw_brain_propose_others(job, count, &op->records, err);
}

/* What is too late already can only be a mistake. */
static int check_deadline(struct sw_server *server, const struct sw_job_request *job, struct sw_err *err)
{
	char text[SW_WHEN_SIZE];
	if (job->deadline_at_ns <= 0 || job->deadline_at_ns > sw_server_now(server))
		return 0;
	sw_err_set(err, SW_EINPUT, "the deadline %s has passed", sw_when_format(job->deadline_at_ns, text));
	sw_err_hint(err, "Name a moment that is still to come, or none.");
	return SW_EINPUT;
}

/* The next job of the request. */
static int propose_next(struct sw_server *server, struct sw_op *op, struct sw_err *err)
{
	const struct sw_request *request = op->request;
	const struct sw_submit_key once = {request->key, request->digest, (uint32_t)request->job_total};
	struct sw_job_request *job = request->jobs.items[op->proposed].job;
	sw_models_fill(server, job);
	const struct sw_submit_key *key = op->proposed == 0 && request->key != NULL ? &once : NULL;
	int r = check_deadline(server, job, err);
	r = r < 0 ? r : sw_models_propose(server, job, &op->records, err);
	if (r == 0)
		r = job->is_array && !job->is_member ? propose_members(server, key, job, op, err)
						     : sw_brain_propose_keyed_submit(server->brain, &op->user, job, key, &op->records, err);
	if (r < 0) {
		if (request->jobs_are_listed)
			sw_err_hint(err, "This is number %zu of the list; none of it was submitted.", op->proposed + 1);
		return r;
	}
	op->proposed++;
	for (; op->counted < op->records.count; op->counted++) {
		const struct sw_record *record = &op->records.items[op->counted];
		op->bytes += record->size;
		for (int b = 0; b < SW_BULKS; b++)
			op->bytes += record->texts[b].size;
	}
	if (op->bytes > RECORDS_BYTES_MAX) {
		sw_err_set(err, SW_ELIMIT, "the jobs of this request take more than %zu MiB all together", RECORDS_BYTES_MAX >> 20);
		sw_err_hint(err, "Send them in several requests, or keep large environments in a file.");
		return SW_ELIMIT;
	}
	return 0;
}

/* All are proposed, or one of them cannot be (r < 0). Jobs of one user leave room for those of others. */
static void submit_or_refuse(struct sw_server *server, struct sw_op *op, int r, struct sw_err *err)
{
	int status = r < 0 ? sw_status_of(r) : sw_waiting_admit(server, &op->user, op->request->job_total, op->bytes, err);
	struct sw_conn *conn = op->conn;
	if (status == 0) {
		sw_turn_add(server, op);
		return;
	}
	sw_op_free(op);
	if (r < 0)
		sw_conn_reply_error(conn, status, err);
	else
		sw_conn_reply_later(conn, status, err, COME_BACK_S);
}

/* As many as fit into the time. False: there are more. */
static bool propose_some(struct sw_server *server, struct sw_op *op, int64_t until_ns)
{
	struct sw_err err = {0};
	int r = 0;
	sw_models_look(server);
	while (r == 0 && op->proposed < op->request->jobs.count) {
		r = propose_next(server, op, &err);
		if (r == 0 && op->proposed < op->request->jobs.count && sw_now_boot_ns() > until_ns)
			return false;
	}
	submit_or_refuse(server, op, r, &err);
	return true;
}

static bool change_some(struct sw_server *server, struct sw_op *op, int64_t until_ns);

static void go_on_later(struct sw_server *server, struct sw_op *op)
{
	TAILQ_INSERT_TAIL(&server->submits.ops, op, link);
	evtimer_add(server->submits.step, &(struct timeval){0});
}

/* Long lists take turns. */
static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_op *op = TAILQ_FIRST(&server->submits.ops);
	if (op == NULL)
		return;
	TAILQ_REMOVE(&server->submits.ops, op, link);
	/* A client that has gone was promised nothing. */
	if (op->conn == NULL)
		sw_op_free(op);
	else if (!(op->done == submitted ? propose_some : change_some)(server, op, sw_now_boot_ns() + PROPOSE_SLICE_NS))
		TAILQ_INSERT_TAIL(&server->submits.ops, op, link);
	if (!TAILQ_EMPTY(&server->submits.ops))
		evtimer_add(server->submits.step, &(struct timeval){0});
}

int sw_submits_start(struct sw_server *server, struct sw_err *err)
{
	TAILQ_INIT(&server->submits.ops);
	server->submits.step = evtimer_new(server->base, on_step, server);
	return server->submits.step != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_submits_stop(struct sw_server *server)
{
	struct sw_op *op;
	if (server->submits.step == NULL)
		return;
	while ((op = TAILQ_FIRST(&server->submits.ops)) != NULL) {
		TAILQ_REMOVE(&server->submits.ops, op, link);
		sw_op_free(op);
	}
	event_free(server->submits.step);
}

void sw_handle_submit(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	if (request->key != NULL && answer_again(server, conn, &user, request))
		return;
	if (request->key != NULL && is_underway(&server->submits.ops, &user, request->key)) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ELIMIT, "the request that came before with this key is still being read");
		sw_err_hint(&err, "Ask again in a moment.");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	/* Repeated before the first was answered: an operation without records of its own is answered behind that one. */
	bool again = request->key != NULL &&
		     (is_underway(&server->turn.open, &user, request->key) || is_underway(&server->turn.storing, &user, request->key) ||
		      is_underway(&server->turn.stored, &user, request->key));
	struct sw_op *op = sw_op_new(conn, again ? repeated : submitted);
	if (op == NULL)
		return;
	if (again) {
		sw_turn_add(server, op);
	} else if (!propose_some(server, op, sw_now_boot_ns() + PROPOSE_SLICE_NS)) {
		go_on_later(server, op);
	}
}

/* ------------------------------------------------------------------------------------------------ change */

/* There never was one, or what was kept about it is gone. */
static void say_missing(const struct sw_server *server, uint64_t id, struct sw_err *err)
{
	sw_err_set(err, SW_ENOTFOUND, "there is no job %" PRIu64, id);
	if (id >= 1 && id <= sw_brain_job_count(server->brain))
		sw_err_detail(err, "it has ended, and its row is older than what is kept");
}

static void reply_job(struct sw_server *server, struct sw_conn *conn, uint64_t id, int status, enum sw_job_extra extra)
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

static void changed(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	if (conn == NULL)
		return;
	if (failure != NULL)
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
	else
		reply_job(server, conn, op->request->job, 200, op->idle ? SW_UNCHANGED : SW_CHANGED);
}

/* What a verb of the API does. */
static struct sw_change change_of(enum sw_route_id id, const struct sw_request *request)
{
	switch (id) {
	case SW_ROUTE_CANCEL:
		return (struct sw_change){.kind = SW_RECORD_CANCEL, .verb = "cancel"};
	case SW_ROUTE_HOLD:
		return (struct sw_change){.kind = SW_RECORD_HOLD, .verb = "hold", .leaves = true};
	case SW_ROUTE_SUSPEND:
		return (struct sw_change){.kind = SW_RECORD_HOLD, .verb = "suspend", .deep = request->deep, .force = request->force};
	case SW_ROUTE_RELEASE:
		return (struct sw_change){.kind = SW_RECORD_RELEASE, .verb = "release"};
	case SW_ROUTE_RESUME:
		return (struct sw_change){.kind = SW_RECORD_RELEASE, .verb = "resume"};
	default:
		return (struct sw_change){.kind = SW_RECORD_REQUEUE, .verb = "requeue"};
	}
}

void sw_handle_change(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, changed);
	if (op == NULL)
		return;
	struct sw_change change = change_of(request->route->id, request);
	change.now = sw_server_now(server);
	int r = sw_brain_propose_one(server->brain, &user, &change, request->job, &op->records, &err);
	/* The record is made all the same: what is under way may still give it something to do. */
	op->idle = !sw_brain_would_change(server->brain, change.kind, request->job);
	/* The request is right in itself, but not for a job in this state. */
	sw_turn_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
}

/* In short: whoever changes thousands of jobs has no use for all that there is to say of each. */
static void changed_many(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	struct sw_json json = {0};
	if (conn == NULL)
		return;
	if (failure != NULL) {
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
		return;
	}
	sw_json_object(&json);
	sw_json_key(&json, "jobs");
	sw_json_array(&json);
	for (size_t i = 0; i < op->outcomes.count; i++) {
		uint64_t id = op->request->change.jobs.items[i];
		uint8_t fate = op->fates.items[i];
		struct sw_found_job seen = {0};
		const char *job_state =
			fate > 0 && fate <= SW_STATES ? sw_state_names[fate - 1].brief : sw_brain_state_of(server->brain, id);
		if (fate == SW_FATE_NONE || (job_state == NULL && !sw_find_job(server, id, &seen)))
			continue;
		sw_json_object(&json);
		sw_json_key_u64(&json, "id", id);
		sw_json_key_string(&json, "state", job_state != NULL ? job_state : seen.view.state);
		sw_found_release(&seen);
		sw_json_key_bool(&json, "changed", op->outcomes.items[i] == SW_OUTCOME_CHANGED);
		sw_json_key_bool(&json, "ended", op->outcomes.items[i] == SW_OUTCOME_HAD_ENDED);
		sw_json_end_object(&json);
	}
	sw_json_end_array(&json);
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 200, &json);
}

/* A job that is named twice is changed once. Numbers of no job are left to who refuses them. */
static int drop_repeats(const struct sw_brain *brain, struct sw_request *request)
{
	struct sw_bitmap seen = {0};
	uint32_t jobs = (uint32_t)sw_brain_job_count(brain);
	if (sw_bitmap_reserve(&seen, jobs + 1) < 0)
		return SW_ENOMEM;
	size_t kept = 0;
	for (size_t i = 0; i < request->change.jobs.count; i++) {
		uint64_t id = request->change.jobs.items[i];
		if (id <= jobs && sw_bitmap_has(&seen, (uint32_t)id))
			continue;
		if (id <= jobs)
			sw_bitmap_add(&seen, (uint32_t)id);
		request->change.jobs.items[kept++] = id;
	}
	request->change.jobs.count = kept;
	sw_bitmap_release(&seen);
	return 0;
}

static int foresee(const struct sw_brain *brain, enum sw_record_kind kind, struct sw_op *op)
{
	const struct sw_request *request = op->request;
	if (sw_vec_reserve(&op->outcomes, request->change.jobs.count) < 0)
		return SW_ENOMEM;
	for (size_t i = 0; i < request->change.jobs.count; i++) {
		uint64_t id = request->change.jobs.items[i];
		*sw_vec_push(&op->outcomes) = sw_brain_has_ended(brain, id)	       ? SW_OUTCOME_HAD_ENDED
					      : sw_brain_would_change(brain, kind, id) ? SW_OUTCOME_CHANGED
										       : SW_OUTCOME_IDLE;
	}
	return 0;
}

/* The next job: one that has left the state has a row, which is read now, and never changes. Those in the state are looked at together, in the end. */
static int look_next(struct sw_server *server, struct sw_op *op, const struct sw_change *change, struct sw_err *err)
{
	const uint64_t *jobs = op->request->change.jobs.items;
	size_t at = op->proposed++;
	uint8_t fate = 0;
	if (sw_brain_state_of(server->brain, jobs[at]) == NULL) {
		struct sw_found_job seen;
		int r = sw_brain_propose_changes(server->brain, &op->user, change, &jobs[at], 1, &op->records, err);
		if (r < 0) {
			sw_brain_say_none(err, op->request->change.jobs.count);
			return r;
		}
		bool is_there = sw_find_job(server, jobs[at], &seen);
		fate = is_there ? (uint8_t)(1 + sw_state_find(seen.view.state)) : SW_FATE_NONE;
		sw_found_release(&seen);
	}
	uint8_t *slot = sw_vec_push(&op->fates);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = fate;
	return 0;
}

/* All or none of those in the state. */
static int propose_changes(struct sw_server *server, struct sw_op *op, const struct sw_change *change, struct sw_err *err)
{
	const struct sw_request *request = op->request;
	size_t count = 0;
	SW_CLEANUP(sw_freep) uint64_t *jobs = calloc(request->change.jobs.count + 1, sizeof *jobs);
	if (jobs == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < request->change.jobs.count; i++)
		if (op->fates.items[i] == 0)
			jobs[count++] = request->change.jobs.items[i];
	int r = sw_brain_propose_changes(server->brain, &op->user, change, jobs, count, &op->records, err);
	return r < 0 ? r : foresee(server->brain, change->kind, op);
}

/* As many as fit into the time. False: there are more. */
static bool change_some(struct sw_server *server, struct sw_op *op, int64_t until_ns)
{
	struct sw_err err = {0};
	struct sw_change change = change_of(op->request->change.verb, op->request);
	change.skips_ended = op->request->change.skips_ended;
	change.now = sw_server_now(server);
	int r = 0;
	while (r == 0 && op->proposed < op->request->change.jobs.count) {
		r = look_next(server, op, &change, &err);
		if (r == 0 && op->proposed % 32 == 0 && sw_now_boot_ns() > until_ns)
			return false;
	}
	if (r == 0)
		r = propose_changes(server, op, &change, &err);
	if (r == SW_ENOMEM)
		sw_err_set(&err, SW_ENOMEM, "out of memory");
	sw_turn_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
	return true;
}

void sw_handle_changes(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, changed_many);
	if (op == NULL)
		return;
	int r = drop_repeats(server->brain, op->request);
	if (r < 0) {
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_turn_add_or_refuse(server, op, r, sw_status_of(r), &err);
	} else if (!change_some(server, op, sw_now_boot_ns() + PROPOSE_SLICE_NS)) {
		go_on_later(server, op);
	}
}

void sw_handle_limit(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, changed);
	if (op == NULL)
		return;
	int r = sw_brain_propose_limit(server->brain, &user, request->job, &request->limit, &op->records, &err);
	sw_turn_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
}

/* What was right when it was asked for may not be when it is its turn: of two moves that come together one is made. */
static void moved(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	struct sw_err err = {0};
	if (conn != NULL && failure == NULL && sw_brain_check_move(server->brain, op->request->job, op->request->gpu_mask, &err) < 0)
		sw_conn_reply_error(conn, 409, &err);
	else
		changed(server, op, conn, failure);
}

void sw_handle_move(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, moved);
	if (op == NULL)
		return;
	int r = sw_brain_propose_move(server->brain, &user, request->job, request->gpu_mask, &op->records, &err);
	sw_turn_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
}

/* ------------------------------------------------------------------------------------------------ look */

void sw_handle_job(struct sw_server *server, struct sw_conn *conn)
{
	reply_job(server, conn, sw_conn_request(conn)->job, 200, SW_WITH_REQUEST);
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
		snprintf(text + used, sizeof text - used, "; a process of it uses a GPU that is none of its own");
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

/* The user whom a word names: a number, a name, "me". */
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
	struct sw_page walk; /* first: what is given here is given to this */
	const struct sw_request *request;
	const struct filter *filter;
	const struct sw_peer *peer;
	struct sw_json *json;
	uint32_t written, looked;
	size_t decoded;
	int64_t until_ns;
};

static bool take_job(struct sw_page *walk, const struct sw_found_job *seen)
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
	if (sw_past_page(&page.walk, filter->states, filter->since_ns, &err))
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
