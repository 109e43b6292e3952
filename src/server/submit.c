/* Submits: jobs are proposed in slices, and a submit that is repeated has the same answer. */
#include <inttypes.h>
#include <string.h>

#include "api/when.h"
#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/batch.h"
#include "server/connection.h"
#include "server/models.h"
#include "server/past.h"
#include "server/slices.h"
#include "server/state.h"
#include "server/submit.h"
#include "server/waiting.h"

/* For a user whose jobs take all that one user may have. */
#define COME_BACK_S 5u
/* Of the records that one request makes. */
#define RECORDS_BYTES_MAX ((size_t)64 << 20)

/* The jobs that a submit made: those of `ids`, or `count` from `first` on. Pre-runs are between
 * them, and are not what was asked for. */
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

/* A key that is known: the jobs that it made, or word that it is another
 * request's. False: it is new. */
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
static int propose_members(struct sw_server *server, const struct sw_user *user, const struct sw_submit_key *key,
			   struct sw_job_request *job, sw_records *records, struct sw_err *err)
{
	uint32_t count = sw_job_request_count(job);
	job->is_member = true;
	job->array_index = job->array_first;
	int r = sw_brain_propose_keyed_submit(server->brain, user, job, key, records, err);
	return r < 0 ? r : sw_brain_propose_others(job, count, records, err);
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

int sw_submit_propose(struct sw_server *server, const struct sw_user *user, struct sw_job_request *job, const struct sw_submit_key *key,
		      sw_records *records, struct sw_err *err)
{
	sw_models_fill(server, job);
	int r = check_deadline(server, job, err);
	r = r < 0 ? r : sw_models_propose(server, job, records, err);
	if (r < 0)
		return r;
	return job->is_array && !job->is_member ? propose_members(server, user, key, job, records, err)
						: sw_brain_propose_keyed_submit(server->brain, user, job, key, records, err);
}

/* The next job of the request. */
static int propose_next(struct sw_server *server, struct sw_op *op, struct sw_err *err)
{
	const struct sw_request *request = op->request;
	const struct sw_submit_key once = {request->key, request->digest, (uint32_t)request->job_total};
	struct sw_job_request *job = request->jobs.items[op->proposed].job;
	const struct sw_submit_key *key = op->proposed == 0 && request->key != NULL ? &once : NULL;
	int r = sw_submit_propose(server, &op->user, job, key, &op->records, err);
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

/* All are proposed, or one of them cannot be (r < 0). Jobs of one user leave
 * room for those of others. */
static void submit_or_refuse(struct sw_server *server, struct sw_op *op, int r, struct sw_err *err)
{
	int status = r < 0 ? sw_status_of(r) : sw_waiting_admit(server, &op->user, op->request->job_total, op->bytes, err);
	struct sw_conn *conn = op->conn;
	if (status == 0) {
		sw_batch_add(server, op);
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

void sw_handle_submit(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	if (request->key != NULL && answer_again(server, conn, &user, request))
		return;
	if (request->key != NULL && is_underway(&server->slices.ops, &user, request->key)) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ELIMIT, "the request that came before with this key is still being read");
		sw_err_hint(&err, "Ask again in a moment.");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	/* Repeated before the first was answered: an operation without records of its own is
	 * answered behind that one. */
	bool again = request->key != NULL &&
		     (is_underway(&server->batch.open, &user, request->key) || is_underway(&server->batch.storing, &user, request->key) ||
		      is_underway(&server->batch.stored, &user, request->key));
	struct sw_op *op = sw_op_new(conn, again ? repeated : submitted);
	if (op == NULL)
		return;
	if (again)
		sw_batch_add(server, op);
	else
		sw_slices_propose(server, op, propose_some);
}
