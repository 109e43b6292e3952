/* Start, replay, loop, end. */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#include "base/now.h"
#include "base/number.h"
#include "contention/profile.h"
#include "failure/failure.h"
#include "server/batch.h"
#include "server/callers.h"
#include "server/connection.h"
#include "server/devices.h"
#include "server/events.h"
#include "server/forecasts.h"
#include "server/jobs.h"
#include "server/learned.h"
#include "server/listen.h"
#include "server/models.h"
#include "server/nodes.h"
#include "server/past.h"
#include "server/polls.h"
#include "server/recover.h"
#include "server/reload.h"
#include "server/slices.h"
#include "server/snapshots.h"
#include "server/solvers.h"
#include "server/state.h"
#include "server/waiting.h"

#define TICK_LEAST_NS (100 * SW_NS_PER_MS) /* after a tick that brought nothing of what is due */
#define TICK_MOST_S 3600
#define RESERVE_BYTES ((size_t)8 << 20)

int64_t sw_server_now(struct sw_server *server)
{
	return sw_clock_read(&server->clock, sw_now_boot_ns());
}

void sw_server_note(struct sw_server *server, const char *fmt, ...)
{
	char line[1200];
	if (server->options->on_note == NULL)
		return;
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	server->options->on_note(server->options->user, line);
}

void sw_server_give_up(struct sw_server *server, const struct sw_err *err)
{
	if (server->fatal.code == 0)
		server->fatal = *err;
	event_base_loopbreak(server->base);
}

/* ---- time */

static void set_tick(struct sw_server *server, int64_t wait_ns)
{
	if (wait_ns > TICK_MOST_S * SW_NS_PER_S)
		wait_ns = TICK_MOST_S * SW_NS_PER_S;
	if (wait_ns < 0)
		wait_ns = 0;
	/* Rounded up: waking a little early would be to wake twice. */
	int64_t wait_us = (wait_ns + SW_NS_PER_US - 1) / SW_NS_PER_US;
	struct timeval wait = {.tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000};
	evtimer_add(server->tick, &wait);
}

void sw_server_arm(struct sw_server *server)
{
	sw_ns next = sw_brain_next(server->brain);
	int64_t now_ns = sw_server_now(server);
	int64_t wait_ns = next == SW_TIME_NEVER ? INT64_MAX : next - now_ns;
	/* While the journal cannot be written, what is due stays due. */
	if (server->batch.failing && wait_ns < SW_NS_PER_S)
		wait_ns = SW_NS_PER_S;
	set_tick(server, wait_ns);
}

static void tick_done(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	(void)op;
	(void)conn;
	if (failure != NULL)
		sw_server_arm(server);
}

static void on_tick(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	/* What is stored and not applied yet may be what is due. The batch that applies
	 * it sets the timer again. */
	if (!sw_batch_rests(server)) {
		set_tick(server, SW_NS_PER_MS);
		return;
	}
	struct sw_op *op = sw_op_new(NULL, tick_done);
	struct sw_err err = {0};
	if (op == NULL || sw_brain_tick(server->brain, sw_server_now(server), &op->records, &err) < 0 || op->records.count == 0) {
		if (op != NULL)
			sw_op_free(op);
		/* Timers fire a little early: only where something is due, and brought
		 * nothing, is there a pause. */
		int64_t wait_ns = sw_brain_next(server->brain) - sw_server_now(server);
		set_tick(server, wait_ns > 0 ? wait_ns : TICK_LEAST_NS);
		return;
	}
	sw_batch_add(server, op);
}

/* ---- start */

/* As many files as the system lets us have: each client is one. */
static void raise_limits(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void on_signal(evutil_socket_t number, short what, void *user)
{
	(void)what;
	struct sw_server *server = user;
	if (number != SIGHUP) {
		event_base_loopbreak(server->base);
		return;
	}
	sw_reload_all(server);
}

static int make_loop(struct sw_server *server, struct sw_err *err)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	/* To the microsecond. The usual clock of the loop moves in steps of some milliseconds, too
	 * coarse to start jobs by or to measure the loop itself. */
	struct event_config *config = event_config_new();
	if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
		server->base = event_base_new_with_config(config);
	if (config != NULL)
		event_config_free(config);
	if (server->base == NULL || event_base_priority_init(server->base, SW_PRIORITIES) < 0)
		return sw_err_set(err, SW_ENOMEM, "cannot make an event loop");
	for (size_t i = 0; i < 3; i++) {
		server->signals[i] = evsignal_new(server->base, numbers[i], on_signal, server);
		if (server->signals[i] == NULL || evsignal_add(server->signals[i], NULL) < 0)
			return sw_err_set(err, SW_ENOMEM, "cannot listen to signals");
	}
	server->tick = evtimer_new(server->base, on_tick, server);
	if (server->tick == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_conns_start(server, err);
	r = r < 0 ? r : sw_batch_start(server, err);
	r = r < 0 ? r : sw_slices_start(server, err);
	r = r < 0 ? r : sw_snapshots_start(server, err);
	r = r < 0 ? r : sw_past_start(server, err);
	r = r < 0 ? r : sw_events_start(server, err);
	r = r < 0 ? r : sw_nodes_start(server, err);
	r = r < 0 ? r : sw_forecasts_start(server, err);
	r = r < 0 ? r : sw_solvers_start(server, err);
	r = r < 0 ? r : sw_polls_start(server, err);
	return r < 0 ? r : sw_reload_start(server, err);
}

int sw_controller_check(const struct sw_controller_options *options, bool certificate_to_come, struct sw_err *err)
{
	SW_CLEANUP(sw_tls_freep) struct sw_tls *tls = NULL;
	SW_CLEANUP(sw_failure_freep) struct sw_failure_table *failures = NULL;
	bool has_tls = options->tls_certificate != NULL || certificate_to_come;
	int r = options->listen != NULL ? sw_listen_check(options->listen, has_tls, err) : 0;
	if (r == 0 && options->tls_certificate != NULL && !certificate_to_come)
		r = sw_tls_open(options->tls_certificate, options->tls_key, &tls, err);
	return r < 0 ? r : sw_failure_load(options->failures, &failures, err);
}

/* Without it all works but cancels while the disk is full. */
static void make_reserve(struct sw_server *server)
{
	const struct sw_controller_options *options = server->options;
	SW_CLEANUP(sw_freep) char *path = NULL;
	struct sw_err err = {0};
	size_t size = options->reserve_bytes > 0 ? (size_t)options->reserve_bytes : RESERVE_BYTES;
	if (asprintf(&path, "%s.reserve", options->journal_path) < 0) {
		path = NULL;
		return;
	}
	if (sw_reserve_open(path, size, &server->reserve, &err) < 0)
		sw_server_note(server, "no disk space is kept for cancels on a full disk: %s: %s", err.fact, err.detail);
	else if (sw_reserve_left(server->reserve) < size)
		sw_server_note(server, "the disk is almost full: %zu of %zu KiB are kept for cancels",
			       sw_reserve_left(server->reserve) >> 10, size >> 10);
}

static int start(struct sw_server *server, struct sw_err *err)
{
	const struct sw_controller_options *options = server->options;
	if (options->socket_path == NULL && options->listen == NULL)
		return sw_err_set(err, SW_EINPUT, "the controller has nowhere to listen");
	/* The journal first: the process that holds it is the controller, and may clear away what
	 * another one left behind. */
	int r = sw_journal_open(options->journal_path, &server->journal, err);
	if (r == 0)
		make_reserve(server);
	if (r == 0 && options->tokens_path != NULL)
		r = sw_tokens_read(options->tokens_path, &server->tokens, err);
	if (r == 0 && options->tls_certificate != NULL)
		r = sw_tls_open(options->tls_certificate, options->tls_key, &server->tls, err);
	r = r < 0 ? r : sw_failure_load(options->failures, &server->failures, err);
	r = r < 0 ? r : sw_profiles_load_default(&server->profiles, err);
	r = r < 0 ? r : make_loop(server, err);
	r = r < 0 ? r : sw_models_start(server, err);
	r = r < 0 ? r : sw_recover_start(server, err);
	r = r < 0 ? r : sw_learned_start(server, err);
	r = r < 0 ? r : sw_waiting_start(server, err);
	if (r < 0)
		return r;
	server->openapi = sw_openapi_encode();
	if (server->openapi == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return sw_listen(server, &server->listeners, err);
}

static void stop(struct sw_server *server)
{
	if (server->listeners != NULL)
		sw_listeners_free(server->listeners);
	if (server->fatal.code == 0 && server->batch.soon != NULL) {
		sw_batch_finish(server);
		/* Once more around, for the answers to leave. */
		event_base_loop(server->base, EVLOOP_NONBLOCK);
		if (server->fatal.code == 0 && server->listeners != NULL)
			sw_snapshots_finish(server);
	}
	sw_conns_close_all(server);
	sw_callers_stop(server);
	sw_slices_stop(server);
	sw_waiting_stop(server);
	if (server->batch.soon != NULL)
		sw_batch_stop(server);
	sw_snapshots_stop(server);
	sw_past_stop(server);
	sw_events_stop(server);
	sw_conns_stop(server);
	sw_nodes_stop(server);
	sw_forecasts_stop(server);
	sw_solvers_stop(server);
	sw_polls_stop(server);
	sw_reload_stop(server);
	sw_learned_stop(server);
	sw_recover_stop(server);
	sw_machines_clear(&server->machines);
	sw_vec_free(&server->user_names);
	free(server->openapi);
	if (server->tick != NULL)
		event_free(server->tick);
	for (size_t i = 0; i < 3; i++)
		if (server->signals[i] != NULL)
			event_free(server->signals[i]);
	if (server->base != NULL)
		event_base_free(server->base);
	if (server->brain != NULL)
		sw_brain_free(server->brain);
	sw_failure_free(server->failures);
	sw_profiles_free(server->profiles);
	sw_models_release(&server->models);
	sw_tokens_free(server->tokens);
	sw_tls_free(server->tls);
	sw_reserve_close(server->reserve);
	if (server->journal != NULL)
		sw_journal_close(server->journal);
}

static void tell_ready(struct sw_server *server)
{
	const struct sw_controller_place place = {
		.socket_path = server->options->socket_path,
		.address = sw_listeners_address(server->listeners),
		.pin = server->tls != NULL ? sw_tls_pin(server->tls) : NULL,
		.records = server->batch.applied_seq,
		.replayed = server->replayed,
		.jobs = sw_brain_job_count(server->brain),
	};
	if (server->options->on_ready != NULL)
		server->options->on_ready(server->options->user, &place);
	sw_reload_tell_end(server);
}

int sw_controller_run(const struct sw_controller_options *options, struct sw_err *err)
{
	struct sw_server server = {.options = options};
	TAILQ_INIT(&server.conns);
	TAILQ_INIT(&server.followers);
	raise_limits();
	sw_callers_start(&server);
	/* A client that goes away while it is written to, and a journal that reaches a limit, are
	 * error codes and not the end. */
	struct sigaction ignore = {.sa_handler = SIG_IGN}, on_pipe, on_size;
	sigaction(SIGPIPE, &ignore, &on_pipe);
	sigaction(SIGXFSZ, &ignore, &on_size);
	int r = start(&server, err);
	if (r == 0) {
		tell_ready(&server);
		sw_solvers_consider(&server);
		sw_server_arm(&server);
		if (event_base_dispatch(server.base) < 0)
			r = sw_err_set(err, SW_EIO, "the event loop failed");
	}
	stop(&server);
	if (r == 0 && server.fatal.code != 0) {
		r = server.fatal.code;
		if (err != NULL)
			*err = server.fatal;
	}
	sigaction(SIGPIPE, &on_pipe, NULL);
	sigaction(SIGXFSZ, &on_size, NULL);
	return r;
}
