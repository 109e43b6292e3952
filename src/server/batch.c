/* The group commit. Records of all requests that come in one batch of the loop are stored with one
 * fsync, applied in their order, and answered.
 *
 * A batch stays open while more requests are ready, for BATCH_NS. Then the next request that is
 * dispatched closes it, or a timer of usual priority, whatever else is ready. Storing and applying
 * are done in slices, so that thousands of jobs in one request do not hold up the others. Between
 * two slices there is a round of the loop, in which others are heard.
 *
 * Invariants:
 *  1. `storing` operations, which were `open` before, are stored together or not at all. Those that
 *     are `stored` are applied in the order of the journal, whatever becomes of their clients;
 *  2. done() is called exactly once for each operation, with its client if that is still there, and
 *     frees nothing of the operation.
 */
#include <assert.h>
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/batch.h"
#include "server/connection.h"
#include "server/devices.h"
#include "server/events.h"
#include "server/logs.h"
#include "server/past.h"
#include "server/polls.h"
#include "server/recover.h"
#include "server/snapshots.h"
#include "server/solvers.h"
#include "server/soundness.h"
#include "server/state.h"

#define BATCH_NS (2 * SW_NS_PER_MS)
#define SLICE_NS (20 * SW_NS_PER_MS)
#define RETRY_S 1
#define RECORDS_MANY 1000u
/* A record that takes long by itself. */
#define RECORD_LARGE ((size_t)16 << 10)
/* Of the reserve, at first; twice as much with each try. */
#define RESERVE_STEP ((size_t)64 << 10)
#define RESCUES_MAX 6
#define RESCUED_BYTES_MAX ((size_t)1 << 20)

void sw_op_free(struct sw_op *op)
{
	if (op->conn != NULL)
		sw_conn_detach(op->conn);
	sw_records_clear(&op->records);
	sw_request_free(op->request);
	sw_vec_free(&op->jobs);
	sw_vec_free(&op->outcomes);
	sw_vec_free(&op->fates);
	free(op->refusal);
	free(op);
}

static void client_left(void *attached)
{
	struct sw_op *op = attached;
	op->conn = NULL;
}

struct sw_op *sw_op_new(struct sw_conn *conn, sw_op_fn *done)
{
	struct sw_op *op = calloc(1, sizeof *op);
	if (op == NULL) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		if (conn != NULL)
			sw_conn_reply_error(conn, 503, &err);
		return NULL;
	}
	op->done = done;
	op->conn = conn;
	if (conn != NULL) {
		op->request = sw_conn_take_request(conn);
		op->user = sw_conn_peer(conn)->user;
		sw_conn_attach(conn, op, client_left, true);
	}
	return op;
}

/* The connection may not outlive the answer, so it is let go of before. */
static void finish(struct sw_server *server, struct sw_op *op, const struct sw_err *failure)
{
	struct sw_conn *conn = SW_TAKE(op->conn);
	if (conn != NULL)
		sw_conn_detach(conn);
	op->done(server, op, conn, failure);
	sw_op_free(op);
}

static bool is_underway(const struct sw_batch *batch)
{
	return !TAILQ_EMPTY(&batch->storing) || !TAILQ_EMPTY(&batch->stored);
}

bool sw_batch_rests(const struct sw_server *server)
{
	return TAILQ_EMPTY(&server->batch.open) && !is_underway(&server->batch);
}

void sw_batch_poke(struct sw_server *server)
{
	struct sw_batch *batch = &server->batch;
	if (!sw_batch_rests(server) && sw_now_boot_ns() - batch->opened_ns > BATCH_NS)
		event_active(batch->next, EV_TIMEOUT, 0);
}

void sw_batch_add(struct sw_server *server, struct sw_op *op)
{
	struct sw_batch *batch = &server->batch;
	if (sw_batch_rests(server)) {
		batch->opened_ns = sw_now_boot_ns();
		evtimer_add(batch->next, &(struct timeval){.tv_usec = BATCH_NS / SW_NS_PER_US});
	}
	TAILQ_INSERT_TAIL(&batch->open, op, link);
	event_active(batch->soon, EV_TIMEOUT, 0);
	sw_batch_poke(server);
}

void sw_batch_add_or_refuse(struct sw_server *server, struct sw_op *op, int r, int status, const struct sw_err *err)
{
	struct sw_conn *conn = op->conn;
	if (r < 0) {
		sw_op_free(op);
		sw_conn_reply_error(conn, status, err);
	} else {
		sw_batch_add(server, op);
	}
}

/* ---- storing */

/* From the first record on. */
static void rewind_storing(struct sw_server *server)
{
	struct sw_batch *batch = &server->batch;
	batch->appending = TAILQ_FIRST(&batch->storing);
	batch->appended = batch->appended_of_op = 0;
}

static void hold_back(struct sw_server *server);

/* What is open goes to the journal from here on, and what comes now is for the next time. */
static void begin_storing(struct sw_server *server)
{
	struct sw_batch *batch = &server->batch;
	TAILQ_CONCAT(&batch->storing, &batch->open, link);
	rewind_storing(server);
	batch->stored_at_ns = sw_server_now(server);
	hold_back(server);
}

/* As many records as fit into the time; true when all are with the journal. A failed append dooms
 * the batch; the commit says why. */
static bool append(struct sw_server *server, int64_t until_ns)
{
	struct sw_batch *batch = &server->batch;
	uint64_t seq;
	for (; batch->appending != NULL; batch->appending = TAILQ_NEXT(batch->appending, link), batch->appended_of_op = 0) {
		const sw_records *records = &batch->appending->records;
		while (batch->appended_of_op < records->count) {
			const struct sw_record *record = &records->items[batch->appended_of_op++];
			assert(record->size <= SW_JOURNAL_RECORD_MAX);
			sw_past_keep_texts(server, record);
			sw_journal_append(server->journal, batch->stored_at_ns, record->kind, record->body, record->size, &seq);
			if (record->kind == SW_RECORD_FORGET)
				sw_past_keep(server, record);
			bool look = ++batch->appended % 64 == 0 || record->size > RECORD_LARGE;
			if (look && sw_now_boot_ns() > until_ns)
				return false;
		}
	}
	return true;
}

static int commit_batch(struct sw_server *server, struct sw_err *err)
{
	struct sw_op *op;
	int64_t start_ns = sw_now_boot_ns();
	int r = sw_journal_commit(server->journal, err);
	int64_t took_ns = sw_now_boot_ns() - start_ns;
	struct sw_figures *figures = &server->figures;
	figures->commit_ns += took_ns;
	if (took_ns > figures->commit_longest_ns)
		figures->commit_longest_ns = took_ns;
	if (r < 0) {
		figures->commits_failed++;
		return r;
	}
	figures->commits++;
	figures->records += server->batch.appended;
	TAILQ_FOREACH(op, &server->batch.storing, link)
	op->stored_at_ns = server->batch.stored_at_ns;
	return 0;
}

/* What cannot be stored is told so; nothing of it has happened. */
static void tell_failed(struct sw_server *server, struct sw_ops *failed, const struct sw_err *err)
{
	struct sw_op *op;
	while ((op = TAILQ_FIRST(failed)) != NULL) {
		TAILQ_REMOVE(failed, op, link);
		finish(server, op, err);
	}
}

/* Nothing of the batch was stored: all its callers hear it, and nothing has changed. */
static void fail(struct sw_server *server, const struct sw_err *err)
{
	struct sw_batch *batch = &server->batch;
	if (!batch->failing)
		sw_server_note(server, "%s: %s", err->fact, err->detail);
	batch->failing = true;
	batch->failure = *err;
	struct timeval wait = {.tv_sec = RETRY_S};
	if (!evtimer_pending(batch->retry, NULL))
		evtimer_add(batch->retry, &wait);
	struct sw_ops failed = TAILQ_HEAD_INITIALIZER(failed);
	TAILQ_CONCAT(&failed, &batch->storing, link);
	tell_failed(server, &failed, err);
}

/* ---- a full disk */

/* Whether a record of this kind gives something free, and may use the reserve. Reports
 * leave half of it to people. */
static bool frees(const struct sw_server *server, enum sw_record_kind kind)
{
	switch (kind) {
	case SW_RECORD_CANCEL:
	case SW_RECORD_HOLD:
	case SW_RECORD_NODE_CLOSE:
	case SW_RECORD_NODE_REMOVE:
		return true;
	case SW_RECORD_REPORT:
	case SW_RECORD_NODE_LOST:
	case SW_RECORD_NODE_SILENT:
	case SW_RECORD_GPUS:
		return sw_reserve_left(server->reserve) > RESERVE_STEP * 4;
	default:
		return false;
	}
}

static bool op_frees(const struct sw_server *server, const struct sw_op *op)
{
	size_t bytes = 0;
	for (size_t i = 0; i < op->records.count; i++) {
		bytes += op->records.items[i].size;
		if (!frees(server, op->records.items[i].kind))
			return false;
	}
	return bytes <= RESCUED_BYTES_MAX;
}

/* Of those that are to be stored, the ones that may not use the reserve. */
static void take_others(struct sw_server *server, struct sw_ops *ret_others)
{
	struct sw_op *op = TAILQ_FIRST(&server->batch.storing);
	TAILQ_INIT(ret_others);
	while (op != NULL) {
		struct sw_op *next = TAILQ_NEXT(op, link);
		if (!op_frees(server, op)) {
			TAILQ_REMOVE(&server->batch.storing, op, link);
			TAILQ_INSERT_TAIL(ret_others, op, link);
		}
		op = next;
	}
}

/* The disk is full: cancels and the like are stored with the help of the reserve, and the others
 * hear that it is. False: the batch failed as it was. */
static bool rescue(struct sw_server *server, const struct sw_err *err)
{
	struct sw_batch *batch = &server->batch;
	struct sw_ops others;
	if (server->reserve == NULL || err->code != SW_EIO)
		return false;
	take_others(server, &others);
	bool stored = false;
	for (int i = 0; !stored && i < RESCUES_MAX && !TAILQ_EMPTY(&batch->storing); i++) {
		struct sw_err ignored = {0};
		if (!sw_reserve_give(server->reserve, RESERVE_STEP << i))
			break;
		rewind_storing(server);
		append(server, INT64_MAX);
		stored = commit_batch(server, &ignored) == 0;
	}
	struct sw_ops rescued = TAILQ_HEAD_INITIALIZER(rescued);
	if (stored)
		TAILQ_CONCAT(&rescued, &batch->storing, link);
	TAILQ_CONCAT(&batch->storing, &others, link);
	fail(server, err);
	TAILQ_CONCAT(&batch->stored, &rescued, link);
	return true;
}

/* While the disk is full, nothing but what frees something, and the probe, gets to the journal:
 * what was given back is not for others. */
static void hold_back(struct sw_server *server)
{
	struct sw_batch *batch = &server->batch;
	struct sw_ops others, probes = TAILQ_HEAD_INITIALIZER(probes);
	if (!batch->failing || server->reserve == NULL)
		return;
	const struct sw_err failure = batch->failure;
	take_others(server, &others);
	struct sw_op *op = TAILQ_FIRST(&others);
	while (op != NULL) {
		struct sw_op *next = TAILQ_NEXT(op, link);
		if (op->probes) {
			TAILQ_REMOVE(&others, op, link);
			TAILQ_INSERT_TAIL(&probes, op, link);
		}
		op = next;
	}
	TAILQ_CONCAT(&batch->storing, &probes, link);
	rewind_storing(server);
	tell_failed(server, &others, &failure);
}

/* Whether storing these shows that the disk has room: what may use the reserve shows nothing. */
static bool proves_room(const struct sw_server *server)
{
	const struct sw_op *op;
	if (server->reserve == NULL)
		return true;
	TAILQ_FOREACH(op, &server->batch.storing, link)
	if (op->probes)
		return true;
	return false;
}

/* False: there is more to store. */
static bool store(struct sw_server *server, int64_t until_ns)
{
	struct sw_batch *batch = &server->batch;
	struct sw_err err = {0};
	if (TAILQ_EMPTY(&batch->storing) && TAILQ_EMPTY(&batch->open))
		return true;
	if (TAILQ_EMPTY(&batch->storing))
		begin_storing(server);
	if (!append(server, until_ns))
		return false;
	/* A large batch takes long to commit, and has a slice of its own for that. */
	if (batch->appended > RECORDS_MANY && sw_now_boot_ns() > until_ns - SLICE_NS * 3 / 4)
		return false;
	/* A batch of nothing, as where all jobs that were to be cancelled had ended, says
	 * nothing about the disk. */
	bool writes = batch->appended > 0, proves = writes && proves_room(server);
	if (writes && commit_batch(server, &err) < 0) {
		if (!rescue(server, &err))
			fail(server, &err);
		return true;
	}
	if (proves && batch->failing)
		sw_server_note(server, "the journal can be written again");
	batch->failing = batch->failing && !proves;
	TAILQ_CONCAT(&batch->stored, &batch->storing, link);
	return true;
}

/* ---- applying */

int sw_failure_status(const struct sw_err *failure)
{
	return failure->code == SW_EINPUT ? 409 : 507;
}

/* Its client hears why. */
static void refuse(struct sw_op *op, const struct sw_err *err)
{
	if (op->refusal == NULL && (op->refusal = malloc(sizeof *op->refusal)) != NULL) {
		*op->refusal = *err;
		op->refusal->code = SW_EINPUT;
	}
}

/* One record; false when the state can no longer be trusted. */
static bool apply_one(struct sw_server *server, struct sw_op *op)
{
	struct sw_record *record = &op->records.items[op->applied];
	struct sw_err err = {0};
	uint64_t job = 0;
	uint64_t seq = ++server->batch.applied_seq;
	int r = sw_brain_apply_record(server->brain, op->stored_at_ns, record, &job, &err);
	if (r < 0) {
		if (!sw_recover_from(server, seq, r, &err)) {
			sw_server_give_up(server, &err);
			return false;
		}
		refuse(op, &err);
		/* Watchers count the records. */
		sw_events_note(server, seq, op->stored_at_ns, SW_RECORD_WAKE, "{}", 2, 0);
		op->applied++;
		return true;
	}
	if (job != 0) {
		uint64_t *slot = sw_vec_push(&op->jobs);
		if (slot == NULL) {
			sw_err_set(&err, SW_ENOMEM, "out of memory");
			sw_server_give_up(server, &err);
			return false;
		}
		*slot = job;
	}
	if (record->kind == SW_RECORD_NODE)
		sw_machines_recall(&server->machines, record->body, record->size);
	server->snapshots.bytes_since += record->size;
	sw_events_note(server, seq, op->stored_at_ns, record->kind, record->body, record->size, job);
	sw_server_validate_after(server, seq);
	op->applied++;
	return true;
}

/* As many as fit into the time; true when all are done. */
static bool apply(struct sw_server *server, int64_t until_ns)
{
	struct sw_op *op;
	while ((op = TAILQ_FIRST(&server->batch.stored)) != NULL) {
		while (op->applied < op->records.count) {
			if (!apply_one(server, op))
				return true;
			bool look = op->applied % 16 == 0 || op->records.items[op->applied - 1].size > RECORD_LARGE;
			if (look && sw_now_boot_ns() > until_ns)
				return false;
		}
		/* What it is answered may take as long again; a long answer
		 * has a slice of its own. */
		if (sw_now_boot_ns() > (op->records.count > RECORDS_MANY ? until_ns - SLICE_NS * 3 / 4 : until_ns))
			return false;
		TAILQ_REMOVE(&server->batch.stored, op, link);
		/* No number is heard before the mark has it. */
		sw_journal_gave_out(server->journal, sw_brain_job_count(server->brain));
		finish(server, op, op->refusal);
	}
	sw_recover_set_aside(server);
	return true;
}

static void on_batch(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_batch *batch = &server->batch;
	/* Once in a round: a second batch in it would be heard by no client before the first. */
	if (batch->round_ns == server->loop.entered_ns) {
		evtimer_add(batch->next, &(struct timeval){0});
		return;
	}
	batch->round_ns = server->loop.entered_ns;
	int64_t start_ns = sw_now_boot_ns(), until_ns = start_ns + SLICE_NS;
	/* What is stored comes first: the rest waits for its turn in the journal's order. */
	bool had_work = !TAILQ_EMPTY(&batch->stored);
	if (apply(server, until_ns) && server->fatal.code == 0 && store(server, until_ns)) {
		had_work = had_work || !TAILQ_EMPTY(&batch->stored);
		apply(server, until_ns);
	}
	/* By a timer: an event that is made active here would run again before others are heard. */
	if (sw_batch_rests(server))
		evtimer_del(batch->next);
	else
		evtimer_add(batch->next, &(struct timeval){0});
	batch->opened_ns = sw_now_boot_ns();
	if (had_work) {
		sw_events_send(server);
		sw_polls_wake(server);
		sw_logs_wake(server);
		sw_solvers_consider(server);
		sw_server_arm(server);
	}
	int64_t took_ns = sw_now_boot_ns() - start_ns;
	if (took_ns > server->figures.batch_longest_ns)
		server->figures.batch_longest_ns = took_ns;
	if (had_work)
		sw_snapshots_consider(server);
}

static void nobody_asked(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	(void)server;
	(void)op;
	(void)conn;
	(void)failure;
}

/* Whether the journal can be written again shows when something is written: a wake-up changes
 * nothing that time does not. */
static void on_retry(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	if (!server->batch.failing)
		return;
	/* As long as the reserve is not whole again, there is no room. */
	if (server->reserve != NULL && !sw_reserve_refill(server->reserve)) {
		evtimer_add(server->batch.retry, &(struct timeval){.tv_sec = RETRY_S});
		return;
	}
	/* What is under way may write nothing. */
	struct sw_op *op = sw_batch_rests(server) ? sw_op_new(NULL, nobody_asked) : NULL;
	struct sw_record *record = op != NULL ? sw_vec_push(&op->records) : NULL;
	char *body = record != NULL ? strdup("{}") : NULL;
	if (body == NULL) {
		if (record != NULL)
			op->records.count--;
		if (op != NULL)
			sw_op_free(op);
		struct timeval wait = {.tv_sec = RETRY_S};
		evtimer_add(server->batch.retry, &wait);
		return;
	}
	*record = (struct sw_record){.kind = SW_RECORD_WAKE, .body = body, .size = 2};
	op->probes = true;
	sw_batch_add(server, op);
}

int sw_batch_start(struct sw_server *server, struct sw_err *err)
{
	struct sw_batch *batch = &server->batch;
	TAILQ_INIT(&batch->open);
	TAILQ_INIT(&batch->storing);
	TAILQ_INIT(&batch->stored);
	batch->soon = event_new(server->base, -1, EV_PERSIST, on_batch, server);
	batch->next = evtimer_new(server->base, on_batch, server);
	batch->retry = evtimer_new(server->base, on_retry, server);
	if (batch->soon == NULL || batch->next == NULL || batch->retry == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	event_priority_set(batch->soon, SW_LAST);
	return 0;
}

void sw_batch_finish(struct sw_server *server)
{
	apply(server, INT64_MAX);
	while (!TAILQ_EMPTY(&server->batch.storing) || !TAILQ_EMPTY(&server->batch.open)) {
		store(server, INT64_MAX);
		apply(server, INT64_MAX);
	}
}

static void free_ops(struct sw_ops *ops)
{
	struct sw_op *op;
	while ((op = TAILQ_FIRST(ops)) != NULL) {
		TAILQ_REMOVE(ops, op, link);
		sw_op_free(op);
	}
}

void sw_batch_stop(struct sw_server *server)
{
	struct sw_batch *batch = &server->batch;
	if (batch->open.tqh_last != NULL) {
		free_ops(&batch->open);
		free_ops(&batch->storing);
		free_ops(&batch->stored);
	}
	if (batch->soon != NULL)
		event_free(batch->soon);
	if (batch->next != NULL)
		event_free(batch->next);
	if (batch->retry != NULL)
		event_free(batch->retry);
}
