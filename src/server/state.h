/* The server's state, which its files share. Each file says its own part of it, and its functions,
 * in a header of its name. Here they stand together, with the functions of server.c. */
#ifndef SW_SERVER_STATE_H
#define SW_SERVER_STATE_H

#include <event2/event.h>
#include <stdint.h>

#include "base/vec.h"
#include "brain/brain.h"
#include "server/batch.h"
#include "server/callers.h"
#include "server/clock.h"
#include "server/connection.h"
#include "server/devices.h"
#include "server/events.h"
#include "server/forecasts.h"
#include "server/learned.h"
#include "server/logs.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/models.h"
#include "server/nodes.h"
#include "server/past.h"
#include "server/polls.h"
#include "server/recover.h"
#include "server/reload.h"
#include "server/server.h"
#include "server/slices.h"
#include "server/snapshots.h"
#include "server/solvers.h"
#include "server/tls.h"
#include "server/tokens.h"
#include "server/views.h"
#include "server/waiting.h"
#include "store/journal.h"
#include "store/reserve.h"

struct sw_server {
	const struct sw_controller_options *options;
	struct event_base *base;
	struct sw_journal *journal;
	struct sw_reserve *reserve; /* NULL: none could be made */
	struct sw_failure_table *failures;
	struct sw_profiles *profiles; /* the built-in ones */
	struct sw_brain *brain;
	struct sw_clock clock;
	int64_t started_at_ns;
	struct sw_tokens *tokens;
	struct sw_tls *tls; /* NULL: TCP is in the clear, and on loopback only */
	struct sw_listeners *listeners;
	struct event *signals[3];
	struct event *tick;

	struct sw_conns conns;
	uint32_t conn_count;
	struct sw_conns late; /* those that were ready when a round of the loop was over; the first to be heard first */
	struct event *late_step;
	struct sw_callers callers;
	struct sw_waiting waiting;

	struct sw_models models;
	struct sw_reload reload;
	struct sw_loop loop;
	struct sw_batch batch;
	struct sw_slices slices;
	struct sw_snapshots snapshots;
	struct sw_recovery recovery;
	struct sw_backup *backup; /* of the journal, under way; NULL */
	uint64_t replayed;	  /* records, at the start */
	uint32_t applied_since_validated;
	struct sw_pasts past;
	struct sw_events events;
	struct sw_node_lists node_lists;
	struct sw_forecasts *forecasts;
	struct sw_solvers *solvers;
	struct sw_polls polls;
	struct sw_followers followers;
	sw_machines machines;
	struct sw_learned learned;
	SW_VEC(struct sw_user_name) user_names;
	char *openapi;
	struct sw_figures figures;
	struct sw_err fatal; /* why the loop was left, if not on request */
};

int64_t sw_server_now(struct sw_server *server);
/* When the brain wants to be called may have changed. */
void sw_server_arm(struct sw_server *server);
void sw_server_note(struct sw_server *server, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Leaves the loop: the state can no longer be trusted. */
void sw_server_give_up(struct sw_server *server, const struct sw_err *err);

#endif
