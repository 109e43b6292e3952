/* The group commit: propose, store, apply, answer. */
#ifndef SW_SERVER_BATCH_H
#define SW_SERVER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/vec.h"
#include "brain/brain.h"

struct sw_server;
struct sw_conn;
struct sw_request;
struct event;

struct sw_op;
/* `conn` is NULL when no client waits any more; once answered it may be gone. */
typedef void sw_op_fn(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure);

/* Proposes what fits into the time. False: there is more; true: the operation went its way. */
typedef bool sw_propose_fn(struct sw_server *server, struct sw_op *op, int64_t until_ns);

/* What a change finds, when it comes. */
enum sw_change_outcome { SW_OUTCOME_CHANGED = 0, SW_OUTCOME_IDLE, SW_OUTCOME_HAD_ENDED };

#define SW_FATE_NONE UINT8_MAX

/* Records that a client waits for. */
struct sw_op {
	TAILQ_ENTRY(sw_op) link;
	struct sw_conn *conn; /* NULL: it is gone, or no client asked */
	struct sw_request *request;
	struct sw_user user; /* that asked */
	sw_records records;
	bool idle;		  /* there was nothing to do when it came */
	size_t proposed, counted; /* jobs that have records or were looked at, and records whose bytes are counted */
	uint64_t bytes;		  /* of those */
	bool probes;		  /* it is there to see whether the journal can be written */
	SW_VEC(uint8_t) outcomes; /* the same of each of many jobs: enum sw_change_outcome */
	SW_VEC(uint8_t)
	/* of each of many jobs that were looked at: 0, or, once it has left the state, 1 + how it
	 * ended, or SW_FATE_NONE */
	fates;
	size_t applied;
	struct sw_err *refusal; /* one of its records could not be applied; NULL: each could */
	int64_t stored_at_ns;
	SW_VEC(uint64_t) jobs;	   /* that were made */
	sw_op_fn *done;		   /* called once: applied, or not stored (failure) */
	struct sw_hearing hearing; /* of a sync */
	sw_propose_fn *propose;	   /* of one that is proposed in slices */
};
TAILQ_HEAD(sw_ops, sw_op);

struct sw_batch {
	int64_t round_ns;	 /* the round of the loop that it had last */
	struct event *soon;	 /* once nothing else is ready */
	struct event *next;	 /* at the latest: armed whenever the batch does not rest */
	struct event *retry;	 /* after a commit that failed */
	struct sw_ops open;	 /* not stored yet */
	struct sw_ops storing;	 /* on their way into the journal */
	struct sw_ops stored;	 /* to be applied */
	struct sw_op *appending; /* of `storing`: what comes before is with the journal; NULL: all of them */
	size_t appended_of_op;	 /* records of that one */
	size_t appended;	 /* records of all in `storing` */
	int64_t stored_at_ns;	 /* the time that those get */
	uint64_t applied_seq;	 /* of the last record that was applied */
	int64_t opened_ns;	 /* uptime: since then others are heard */
	bool failing;
	struct sw_err failure;
};
int sw_batch_start(struct sw_server *server, struct sw_err *err);
void sw_batch_stop(struct sw_server *server);
/* An operation for the request of this connection (NULL: none); NULL: out of memory, and the
 * client was told. */
struct sw_op *sw_op_new(struct sw_conn *conn, sw_op_fn *done);
/* Drops an operation that was not begun. */
void sw_op_free(struct sw_op *op);
void sw_batch_add(struct sw_server *server, struct sw_op *op);
/* The status of an operation that failed: it could not be stored, or was and did not fit. */
int sw_failure_status(const struct sw_err *failure);
/* By what became of its proposal: `r` is 0, or its client is refused with this status. */
void sw_batch_add_or_refuse(struct sw_server *server, struct sw_op *op, int r, int status, const struct sw_err *err);
/* Nothing is open, on its way into the journal, or to be applied. */
bool sw_batch_rests(const struct sw_server *server);
/* Called now and then: a batch does not stay open because requests keep coming. */
void sw_batch_poke(struct sw_server *server);
/* Stores and applies what is there, at the end. */
void sw_batch_finish(struct sw_server *server);

#endif
