/* Solvers at work: each question of the policy that is open gets a child process (child.c), which
 * solves it and leaves the answer. The answer is stored as a record and applied, and so the policy
 * hears it; a replay needs no solver.
 *
 * Invariants:
 *  1. nothing is known here of questions but what works now: what is open is the engine's. So a
 *     controller that starts anew asks again what was open;
 *  2. a child that fails, in whatever way, is an answer too: SW_SOLVE_FAILED. The policy decides
 *     what to do without it;
 *  3. a question has one child at a time, and one answer. Where that cannot be stored, or there is
 *     no process to be had, the question is open still, and is asked again after a while.
 */
#include "server/solvers.h"

#include <inttypes.h>
#include <sys/mman.h>

#include "base/number.h"
#include "server/batch.h"
#include "server/child.h"
#include "server/loop.h"
#include "server/state.h"
#include "solve/solve.h"

#define CHILDREN_MAX 2u /* at work at one time; the others wait for their turns */
#define CPU_S 60u
#define ALARM_S 600u		       /* on a machine that is busy it gets little time */
#define MORE_BYTES ((uint64_t)1 << 30) /* solvers bound their own memory far below */
#define RETRY_S 1

/* What a child leaves; the bytes of the answer follow. */
struct head {
	uint32_t status, zero;
};

struct solver {
	struct sw_server *server;
	uint64_t number, print; /* of its question */
	struct sw_child child;
	struct event *ended; /* NULL: no child works */
	struct sw_op *op;    /* its answer is on the way into the state; NULL */
};

struct sw_solvers {
	struct solver all[CHILDREN_MAX];
	struct event *retry;
	bool starved; /* there was no process for the last question, which was told */
};

/* ---- in the child */

static bool run(void *work)
{
	const struct sw_question *question = work;
	struct sw_pack answer = {0};
	struct sw_solve_outcome outcome;
	if (sw_solve(question, &answer, &outcome) < 0)
		return false;
	const struct head head = {.status = outcome.status};
	return sw_child_write(&head, sizeof head) && sw_child_write(answer.bytes, answer.size);
}

/* ---- in the controller */

static bool is_busy(const struct solver *solver)
{
	return solver->ended != NULL || solver->op != NULL;
}

static void end_child(struct solver *solver, struct sw_child_result *ret_result, struct sw_err *err)
{
	if (sw_child_end(&solver->child, ret_result, err) < 0 && ret_result != NULL)
		*ret_result = (struct sw_child_result){0};
	event_free(solver->ended);
	solver->ended = NULL;
}

static void try_later(struct sw_server *server)
{
	evtimer_add(server->solvers->retry, &(struct timeval){.tv_sec = RETRY_S});
}

static void stored(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	(void)conn;
	for (size_t s = 0; s < CHILDREN_MAX; s++)
		if (server->solvers->all[s].op == op)
			server->solvers->all[s].op = NULL;
	if (failure != NULL)
		try_later(server);
}

static void send_answer(struct solver *solver, const struct sw_reply *reply)
{
	struct sw_server *server = solver->server;
	struct sw_op *op = sw_op_new(NULL, stored);
	struct sw_err err = {0};
	if (op == NULL || sw_brain_propose_answer(reply, &op->records, &err) < 0) {
		if (op != NULL)
			sw_op_free(op);
		try_later(server);
		return;
	}
	solver->op = op;
	sw_batch_add(server, op);
}

static bool is_open(const struct solver *solver, struct sw_engine_question *ret_question)
{
	return sw_brain_next_question(solver->server->brain, solver->number - 1, ret_question) && ret_question->number == solver->number &&
	       ret_question->print == solver->print;
}

/* As a child left it. What makes no sense is a failure. */
static struct sw_reply read_result(const struct solver *solver, const struct sw_child_result *result)
{
	struct sw_engine_question question;
	struct sw_reply reply = {.number = solver->number, .print = solver->print, .status = SW_SOLVE_FAILED};
	const struct head *head = result->map;
	if (result->size < sizeof *head || head->status > SW_SOLVE_FAILED || !is_open(solver, &question) ||
	    !sw_solve_fits(&question.asked, (uint8_t)head->status, head + 1, result->size - sizeof *head))
		return reply;
	reply.status = (uint8_t)head->status;
	reply.bytes = head + 1;
	reply.size = result->size - sizeof *head;
	return reply;
}

static void on_end(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct solver *solver = user;
	struct sw_server *server = solver->server;
	SW_HOLDS_LOOP(server);
	struct sw_child_result result = {0};
	struct sw_err err = {0};
	end_child(solver, &result, &err);
	if (err.code != 0)
		sw_server_note(server, "question %" PRIu64 " of policy '%s' has no answer: %s", solver->number,
			       sw_brain_policy(server->brain), err.fact);
	const struct sw_reply reply = read_result(solver, &result);
	send_answer(solver, &reply);
	if (result.map != NULL)
		munmap(result.map, result.size);
}

static void begin(struct solver *solver, const struct sw_engine_question *question)
{
	struct sw_server *server = solver->server;
	const struct sw_child_task task = {.name = "sw-solver",
					   .purpose = "a question of the policy",
					   .run = run,
					   .work = (void *)(uintptr_t)&question->asked,
					   .cpu_s = CPU_S,
					   .alarm_s = ALARM_S,
					   .more_bytes = MORE_BYTES};
	struct sw_err err = {0};
	solver->number = question->number;
	solver->print = question->print;
	if (sw_child_start(&task, &solver->child, &err) < 0) {
		if (!server->solvers->starved)
			sw_server_note(server, "%s: %s; it is tried again", err.fact, err.detail);
		server->solvers->starved = true;
		try_later(server);
		return;
	}
	server->solvers->starved = false;
	solver->ended = event_new(server->base, solver->child.end, EV_READ, on_end, solver);
	if (solver->ended != NULL && event_add(solver->ended, NULL) == 0)
		return;
	if (solver->ended != NULL)
		event_free(solver->ended);
	solver->ended = NULL;
	sw_child_end(&solver->child, NULL, NULL);
	try_later(server);
}

static bool is_worked_on(const struct sw_solvers *solvers, const struct sw_engine_question *question)
{
	for (size_t s = 0; s < CHILDREN_MAX; s++)
		if (is_busy(&solvers->all[s]) && solvers->all[s].number == question->number && solvers->all[s].print == question->print)
			return true;
	return false;
}

void sw_solvers_consider(struct sw_server *server)
{
	struct sw_solvers *solvers = server->solvers;
	struct sw_engine_question question;
	for (size_t s = 0; s < CHILDREN_MAX; s++)
		if (solvers->all[s].ended != NULL && !is_open(&solvers->all[s], &question))
			end_child(&solvers->all[s], NULL, NULL);
	question.number = 0;
	while (sw_brain_next_question(server->brain, question.number, &question)) {
		struct solver *solver = solvers->all;
		while (solver < solvers->all + CHILDREN_MAX && is_busy(solver))
			solver++;
		if (solver == solvers->all + CHILDREN_MAX)
			return;
		if (!is_worked_on(solvers, &question))
			begin(solver, &question);
	}
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	sw_solvers_consider(server);
}

int sw_solvers_start(struct sw_server *server, struct sw_err *err)
{
	struct sw_solvers *solvers = calloc(1, sizeof *solvers);
	if (solvers == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	server->solvers = solvers;
	for (size_t s = 0; s < CHILDREN_MAX; s++)
		solvers->all[s].server = server;
	solvers->retry = evtimer_new(server->base, on_retry, server);
	return solvers->retry != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_solvers_stop(struct sw_server *server)
{
	struct sw_solvers *solvers = server->solvers;
	if (solvers == NULL)
		return;
	for (size_t s = 0; s < CHILDREN_MAX; s++)
		if (solvers->all[s].ended != NULL)
			end_child(&solvers->all[s], NULL, NULL);
	if (solvers->retry != NULL)
		event_free(solvers->retry);
	free(solvers);
	server->solvers = NULL;
}
