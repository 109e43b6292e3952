/* Agents' long polls: a sync is heard at once and answered when there is something to
 * say, or after a while.
 *
 * An agent is answered even when what it said could not be stored. The answer renews the leases of
 * its runs, and the agent will say the same again.
 */
#include <assert.h>
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/batch.h"
#include "server/bindings.h"
#include "server/connection.h"
#include "server/devices.h"
#include "server/polls.h"
#include "server/state.h"

#define PARKED_MOST_NS (10 * SW_NS_PER_S)
/* Answers at one go: a thousand agents may have to be told something at the same moment. */
#define SLICE_NS (10 * SW_NS_PER_MS)

struct sw_poll {
	TAILQ_ENTRY(sw_poll) link;
	struct sw_server *server;
	struct sw_conn *conn;
	struct sw_request *request;
	int64_t until_ns; /* uptime */
};

static void free_poll(struct sw_poll *poll)
{
	TAILQ_REMOVE(&poll->server->polls.parked, poll, link);
	sw_request_free(poll->request);
	free(poll);
}

static void agent_left(void *attached)
{
	struct sw_poll *poll = attached;
	sw_brain_left(poll->server->brain, sw_server_now(poll->server), poll->request->sync);
	free_poll(poll);
}

/* An agent that may not speak for its node hears that another one does. */
static void refuse(struct sw_conn *conn, int code, const struct sw_err *err)
{
	sw_conn_reply_error(conn, code == SW_EDENIED ? 409 : sw_status_of(code), err);
}

static void answer(struct sw_server *server, struct sw_conn *conn, const struct sw_sync *sync)
{
	struct sw_answer_message *message = NULL;
	struct sw_err err = {0};
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	int r = sw_brain_answer(server->brain, sw_server_now(server), sync, &message, &err);
	if (r == 0) {
		r = sw_answer_encode(message, &text, &size, &err);
		sw_brain_answer_free(message);
	}
	if (r < 0)
		refuse(conn, r, &err);
	else
		sw_conn_reply(conn, 200, "application/json", NULL, text, size);
}

static void set_timer(struct sw_server *server)
{
	const struct sw_poll *first = TAILQ_FIRST(&server->polls.parked);
	if (first == NULL || (evtimer_pending(server->polls.timer, NULL) && server->polls.timer_ns <= first->until_ns))
		return;
	server->polls.timer_ns = first->until_ns;
	int64_t wait_us = (first->until_ns - sw_now_boot_ns()) / SW_NS_PER_US + 1000;
	if (wait_us < 0)
		wait_us = 0;
	struct timeval wait = {.tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000};
	evtimer_add(server->polls.timer, &wait);
}

/* The first to be answered stands first; most are kept equally long, and the
 * newest then is the last. */
static void insert(struct sw_polls *polls, struct sw_poll *poll)
{
	struct sw_poll *before = TAILQ_LAST(&polls->parked, sw_poll_list);
	while (before != NULL && before->until_ns > poll->until_ns)
		before = TAILQ_PREV(before, sw_poll_list, link);
	if (before != NULL)
		TAILQ_INSERT_AFTER(&polls->parked, before, poll, link);
	else
		TAILQ_INSERT_HEAD(&polls->parked, poll, link);
}

/* All of it was heard: answers now, or keeps it for later. Takes the request. */
static void answer_or_park(struct sw_server *server, struct sw_conn *conn, struct sw_request *request)
{
	struct sw_poll *poll = NULL;
	/* Figures are kept of nodes only: how many names a token may bring is bounded
	 * where they become nodes. */
	if (sw_brain_token_of(server->brain, request->sync->node) != NULL)
		sw_machines_hear(&server->machines, request->sync);
	if (!sw_brain_has_word(server->brain, request->sync))
		poll = calloc(1, sizeof *poll);
	if (poll == NULL) {
		answer(server, conn, request->sync);
		sw_request_free(request);
		return;
	}
	int64_t patience_ns = sw_brain_patience(server->brain, request->sync);
	*poll = (struct sw_poll){.server = server, .conn = conn, .request = request};
	poll->until_ns = sw_now_boot_ns() + (patience_ns < PARKED_MOST_NS ? patience_ns : PARKED_MOST_NS);
	insert(&server->polls, poll);
	set_timer(server);
	/* Last: an agent that has gone already takes the poll with it. */
	sw_conn_attach(conn, poll, agent_left, false);
}

static void heard(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure);

/* Goes on with what the sync says: some of it becomes records of a batch, or nothing is left to be
 * heard. Takes the request. */
static void hear(struct sw_server *server, struct sw_conn *conn, struct sw_request *request, struct sw_hearing hearing)
{
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, heard);
	if (op == NULL) {
		sw_request_free(request);
		return;
	}
	/* From the second slice on the connection has its request no more. */
	op->request = op->request != NULL ? op->request : request;
	assert(op->request != NULL);
	op->hearing = hearing;
	int r = sw_brain_hear_some(server->brain, sw_server_now(server), op->request->sync, &op->hearing, &op->records, &err);
	if (r < 0) {
		sw_op_free(op);
		refuse(conn, r, &err);
	} else if (op->records.count > 0) {
		sw_batch_add(server, op);
	} else {
		struct sw_request *done = SW_TAKE(op->request);
		sw_op_free(op);
		answer_or_park(server, conn, done);
	}
}

static void heard(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	if (conn == NULL)
		return;
	/* What could not be stored is said again. */
	if (op->hearing.more && failure == NULL)
		hear(server, conn, SW_TAKE(op->request), op->hearing);
	else
		answer_or_park(server, conn, SW_TAKE(op->request));
}

void sw_polls_hear(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_sync *sync = sw_conn_request(conn)->sync;
	struct sw_err err = {0};
	if (sw_bindings_admit(server, sw_conn_peer(conn), sync, &err) < 0) {
		sw_conn_reply_error(conn, 403, &err);
		return;
	}
	hear(server, conn, NULL, (struct sw_hearing){0});
}

static void let_go(struct sw_server *server, struct sw_poll *poll)
{
	struct sw_conn *conn = poll->conn;
	struct sw_request *request = SW_TAKE(poll->request);
	sw_conn_detach(conn);
	free_poll(poll);
	answer(server, conn, request->sync);
	sw_request_free(request);
}

void sw_polls_wake(struct sw_server *server)
{
	struct sw_poll *poll = TAILQ_FIRST(&server->polls.parked);
	int64_t until_ns = sw_now_boot_ns() + SLICE_NS;
	/* Answering one frees that one alone; a new one that comes of it stands at the end. */
	while (poll != NULL) {
		struct sw_poll *next = TAILQ_NEXT(poll, link);
		if (sw_brain_has_word(server->brain, poll->request->sync)) {
			if (sw_now_boot_ns() > until_ns) {
				evtimer_add(server->polls.more, &(struct timeval){0});
				return;
			}
			let_go(server, poll);
		}
		poll = next;
	}
}

static void on_more(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	sw_polls_wake(server);
	sw_server_arm(server);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_poll *poll;
	int64_t now_ns = sw_now_boot_ns();
	while ((poll = TAILQ_FIRST(&server->polls.parked)) != NULL && poll->until_ns <= now_ns && sw_now_boot_ns() <= now_ns + SLICE_NS)
		let_go(server, poll);
	set_timer(server);
	sw_server_arm(server);
}

int sw_polls_start(struct sw_server *server, struct sw_err *err)
{
	TAILQ_INIT(&server->polls.parked);
	server->polls.timer = evtimer_new(server->base, on_timer, server);
	server->polls.more = evtimer_new(server->base, on_more, server);
	return server->polls.timer != NULL && server->polls.more != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_polls_stop(struct sw_server *server)
{
	if (server->polls.timer != NULL)
		event_free(server->polls.timer);
	if (server->polls.more != NULL)
		event_free(server->polls.more);
}
