/* Requests about many jobs, which are proposed in slices: others are heard between them. Long lists
 * take turns. */
#include "server/slices.h"

#include "base/now.h"
#include "base/number.h"
#include "server/batch.h"
#include "server/state.h"

/* Of proposing the jobs of one request, before others are heard. */
#define SLICE_NS (5 * SW_NS_PER_MS)

static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_op *op = TAILQ_FIRST(&server->slices.ops);
	if (op == NULL)
		return;
	TAILQ_REMOVE(&server->slices.ops, op, link);
	/* A client that has gone was promised nothing. */
	if (op->conn == NULL)
		sw_op_free(op);
	else if (!op->propose(server, op, sw_now_boot_ns() + SLICE_NS))
		TAILQ_INSERT_TAIL(&server->slices.ops, op, link);
	if (!TAILQ_EMPTY(&server->slices.ops))
		evtimer_add(server->slices.step, &(struct timeval){0});
}

int sw_slices_start(struct sw_server *server, struct sw_err *err)
{
	TAILQ_INIT(&server->slices.ops);
	server->slices.step = evtimer_new(server->base, on_step, server);
	return server->slices.step != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_slices_stop(struct sw_server *server)
{
	struct sw_op *op;
	if (server->slices.step == NULL)
		return;
	while ((op = TAILQ_FIRST(&server->slices.ops)) != NULL) {
		TAILQ_REMOVE(&server->slices.ops, op, link);
		sw_op_free(op);
	}
	event_free(server->slices.step);
}

void sw_slices_propose(struct sw_server *server, struct sw_op *op, sw_propose_fn *propose)
{
	op->propose = propose;
	if (propose(server, op, sw_now_boot_ns() + SLICE_NS))
		return;
	TAILQ_INSERT_TAIL(&server->slices.ops, op, link);
	evtimer_add(server->slices.step, &(struct timeval){0});
}
