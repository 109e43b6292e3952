/* The controller as a process: one event loop around the brain. HTTP on a UNIX socket and on TCP,
 * the journal, timers.
 *
 * requests of one batch -> records -> one commit -> brain -> answers
 *
 * Invariants:
 *  1. no client hears yes before the records behind it are committed;
 *  2. a commit that fails is told to the clients that asked (507) and undoes nothing that was said
 *     before. Agents are answered all the same, so what runs goes on. Cancels and reports get
 *     through while there is a reserve of disk space;
 *  3. the clock of the records never goes back;
 *  4. every list here has a bound: connections, bodies, events that are kept, answers that wait.
 */
#ifndef SW_SERVER_SERVER_H
#define SW_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <sharewell/policy.h>

#include "api/job.h"
#include "base/error.h"
#include "world/world.h"

/* Where a controller listens, once it does. */
struct sw_controller_place {
	const char *socket_path; /* NULL: not there */
	const char *address;	 /* "127.0.0.1:7411"; NULL: not on TCP */
	const char *pin;	 /* the fingerprint of the certificate's key; NULL: no TLS */
	uint64_t records;	 /* that there ever were */
	uint64_t replayed;	 /* those after the last snapshot */
	uint64_t jobs;
};

/* What one user may take at once; 0: what is usual. Root, the controller's own user and
 * operators are not bounded by those marked (*), only by what the cluster has for all of them. */
struct sw_user_bounds {
	uint32_t connections; /* (*) 256 */
	uint32_t heads;	      /* (*) requests whose head has begun and not ended: 32 */
	uint32_t streams;     /* (*) of events and logs: 128 */
	uint32_t requests;    /* (*) a second, after a burst of four seconds' worth: 1000 */
	uint64_t bodies;      /* (*) bytes of large bodies on their way: 64 MiB */
	uint64_t jobs;	      /* (*) that wait or run: 200,000 */
	uint64_t held;	      /* bytes of environments and scripts of those: 512 MiB */
	uint32_t syncs;	      /* (*) a second, of one agent's token for each of its nodes, after such a burst: 100 */
};
#define SW_USER_BOUNDS 8
/* The members by name, with what is usual. */
struct sw_user_bound_row {
	const char *name, *about;
	bool is_bytes;
	uint64_t usual;
};
extern const struct sw_user_bound_row sw_user_bound_rows[SW_USER_BOUNDS];
/* "connections=64,held=1G"; names that are not given are left alone. */
int sw_user_bounds_parse(const char *text, struct sw_user_bounds *bounds, struct sw_err *err);

/* Zero and NULL mean what is usual, except where said. */
struct sw_controller_options {
	const char *journal_path;  /* must be given */
	const char *socket_path;   /* NULL: none */
	const uint32_t *operators; /* users that may do on the socket what root may */
	size_t operator_count;
	bool socket_for_all;	     /* every user of this machine may connect, not only the owner; the kernel names its user */
	const char *listen;	     /* "127.0.0.1:7411" or "[::1]:0"; NULL: no TCP. Addresses beyond loopback are refused without TLS */
	const char *tls_certificate; /* files; NULL: no TLS */
	const char *tls_key;
	const char *tokens_path; /* needed with `listen` */
	const char *runs_folder; /* of the agent on this machine, for logs of its runs; NULL: none from there */
	const char *logs_folder; /* where that agent keeps logs of runs that it has forgotten; NULL: nowhere */
	const char *policy;	 /* "sharewell" */
	const char *placement;	 /* "pack" */
	/* its terms; one that an operator chose later stays. NULL: those before
	 * worlds were in the journal */
	const struct sw_world *world;
	bool world_named;		/* the operator named it at this start: says so where it stays out of force */
	const struct sw_policy *plugin; /* a policy beside the built-in ones; NULL: none */
	uint64_t seed;
	sw_ns silence_ns;		  /* so long after its last answer a node counts as unreachable; 30 s */
	bool restarts[SW_CLASS_AUTO + 1]; /* jobs of this class that do not say what happens when their node is lost start anew */
	sw_ns retry_backoff_ns;		  /* 30 s */
	const char *slowdowns_path;	  /* where measured slowdowns are written for people; NULL: nowhere */
	const char *profiles;		  /* file of measured profiles, by which jobs find theirs; it may come later. NULL: none */
	const char *failures;		  /* file of the operator's own classes of failures; NULL: none */
	struct sw_user_bounds bounds;	  /* of one user */
	/* of all users together: 4096. The owner and operators have places of their
	 * own, and so have agents */
	uint32_t connections_max;
	uint32_t strangers_max; /* connections on TCP that have not shown a token that is known: 256 */
	uint32_t head_ms;	/* for a request's head to arrive: 10,000, and half of that for strangers */
	uint64_t reserve_bytes; /* of disk space, for cancels and reports while the disk is full: 8 MiB */
	uint32_t keep_jobs;	/* jobs that have ended stay in memory, so many at most: 10,000 */
	sw_ns keep_for_ns;	/* and for so long at most: a day */
	uint64_t keep_history;	/* rows of jobs that have left are kept, so many at most: 1,000,000, or all that are young enough */
	sw_ns keep_history_ns;	/* and for so long at most; 0: however old */
	/* records are kept for queries of the past, so many at most: 200,000, or
	 * all that are young enough */
	uint64_t keep_events;
	sw_ns keep_events_ns;	   /* and for so long at most; 0: however old */
	uint32_t events_kept;	   /* for watchers that come back: 8192 */
	uint32_t snapshot_records; /* between two snapshots, at least: 10,000 */
	/* After so many records everything that the state keeps is derived anew and compared; 0:
	 * never. What is wrong is a note that begins with SW_UNSOUND (soundness.h). */
	uint32_t validate_every;
	/* Called once, when clients can connect. NULL: it makes no difference. */
	void (*on_ready)(void *user, const struct sw_controller_place *place);
	/* One line for the operator: the journal cannot be written, it can again. NULL:
	 * it makes no difference. */
	void (*on_note)(void *user, const char *line);
	void *user;
};

/* The world of this name or file; NULL: the live one. An error where a live cluster cannot have
 * it. The caller frees it. */
int sw_controller_load_world(const char *name, struct sw_world **ret_world, struct sw_err *err);

/* Whether the options can be right, before anything is made: the address, the certificate
 * (`certificate_to_come`: it will be made), the classes of failures. */
int sw_controller_check(const struct sw_controller_options *options, bool certificate_to_come, struct sw_err *err);

/* Runs until SIGTERM or SIGINT (0) or until it cannot go on. SIGHUP reads the tokens and the
 * certificate again. */
int sw_controller_run(const struct sw_controller_options *options, struct sw_err *err);

#endif
