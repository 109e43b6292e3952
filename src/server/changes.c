/* Changes of jobs: one, or many in slices; limits and moves. */
#include <inttypes.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/batch.h"
#include "server/changes.h"
#include "server/connection.h"
#include "server/jobs.h"
#include "server/past.h"
#include "server/slices.h"
#include "server/state.h"

static void changed(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	if (conn == NULL)
		return;
	if (failure != NULL)
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
	else
		sw_job_reply(server, conn, op->request->job, 200, op->idle ? SW_UNCHANGED : SW_CHANGED);
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
	sw_batch_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
}

/* In short: a request that changes thousands of jobs has no use for all that there is to say of
 * each. */
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

/* A job that is named twice is changed once. Numbers of no job are left to the
 * code that refuses them. */
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

/* The next job: one that has left the state has a row, which is read now, and never changes. Those
 * in the state are looked at together, in the end. */
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
	sw_batch_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
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
		sw_batch_add_or_refuse(server, op, r, sw_status_of(r), &err);
	} else {
		sw_slices_propose(server, op, change_some);
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
	sw_batch_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
}

/* What was right when it was asked for may not be when it is its turn: of two moves that
 * come together one is made. */
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
	sw_batch_add_or_refuse(server, op, r, r == SW_EINPUT ? 409 : sw_status_of(r), &err);
}
