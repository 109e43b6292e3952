/* The controller as a process: one event loop around the brain. HTTP on a UNIX socket and on TCP, the journal, timers.
 *
 *	requests of one turn -> records -> one commit -> brain -> answers
 *
 * Invariants:
 *  1. nobody hears yes before the records behind it are committed;
 *  2. a commit that fails is told to those who asked (507) and undoes nothing that was said before; agents are answered all the same, so what runs goes on;
 *  3. the clock of the records never goes back;
 *  4. every list here has a bound: connections, bodies, events that are kept, answers that wait.
 */
#ifndef SW_CONTROLLER_SERVER_H
#define SW_CONTROLLER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <sharewell/policy.h>

#include "base/error.h"

/* Where a controller listens, once it does. */
struct sw_controller_place {
	const char *socket_path; /* NULL: not there */
	const char *address;	 /* "127.0.0.1:7411"; NULL: not on TCP */
	const char *pin;	 /* the fingerprint of the certificate's key; NULL: no TLS */
	uint64_t records;	 /* that there ever were */
	uint64_t replayed;	 /* those after the last snapshot */
	uint64_t jobs;
};

/* Zero and NULL mean what is usual, except where said. */
struct sw_controller_options {
	const char *journal_path;  /* must be given */
	const char *socket_path;   /* NULL: none */
	const uint32_t *operators; /* users who may do on the socket what root may */
	size_t operator_count;
	bool socket_for_all;	     /* every user of this machine may connect, not only the owner; the kernel says who it is */
	const char *listen;	     /* "127.0.0.1:7411" or "[::1]:0"; NULL: no TCP. Addresses beyond loopback are refused without TLS */
	const char *tls_certificate; /* files; NULL: no TLS */
	const char *tls_key;
	const char *tokens_path;	/* needed with `listen` */
	const char *runs_folder;	/* of the agent on this machine, for logs of its runs; NULL: none from there */
	const char *logs_folder;	/* where that agent keeps logs of runs that it has forgotten; NULL: nowhere */
	const char *policy;		/* "sharewell" */
	const char *placement;		/* "pack" */
	const struct sw_policy *plugin; /* a policy beside the built-in ones; NULL: none */
	uint64_t seed;
	sw_ns lease_ns;		    /* 30 s */
	sw_ns lease_margin_ns;	    /* 5 s */
	sw_ns retry_backoff_ns;	    /* 30 s */
	const char *slowdowns_path; /* where measured slowdowns are written for people; NULL: nowhere */
	const char *profiles;	    /* file of measured profiles, by which jobs find theirs; it may come later. NULL: none */
	const char *failures;	    /* file of the operator's own classes of failures; NULL: none */
	uint32_t connections_max;   /* 4096 */
	uint32_t events_kept;	    /* for watchers that come back: 8192 */
	uint32_t snapshot_records;  /* between two snapshots, at least: 10,000 */
	/* Called once, when clients can connect. NULL: nobody cares. */
	void (*on_ready)(void *user, const struct sw_controller_place *place);
	/* One line for the operator: the journal cannot be written, it can again. NULL: nobody cares. */
	void (*on_note)(void *user, const char *line);
	void *user;
};

/* Whether the options can be right, before anything is made: the address, the certificate (`certificate_to_come`: it will be made), the classes of failures. */
int sw_controller_check(const struct sw_controller_options *options, bool certificate_to_come, struct sw_err *err);

/* Runs until SIGTERM or SIGINT (0) or until it cannot go on. SIGHUP reads the tokens and the certificate again. */
int sw_controller_run(const struct sw_controller_options *options, struct sw_err *err);

#endif
