/* The server's state, shared by its files and by nobody else.
 *
 *	server.c	start, replay, loop, end
 *	listen.c	sockets
 *	connection.c	HTTP on one socket
 *	callers.c	what each caller takes
 *	places.c	which connections, bodies and streams there is room for
 *	waiting.c	what each user has in the queue
 *	dispatch.c	who asks for what
 *	reload.c	tokens and certificate, read again
 *	turn.c		the group commit
 *	recover.c	from the journal to the state, and records that cannot be applied
 *	snapshots.c	the state beside the journal
 *	loop.c		how long the loop is held
 *	jobs.c cluster.c nodes.c views.c devices.c logs.c events.c polls.c metrics.c	what is answered
 */
#ifndef SW_SERVER_STATE_H
#define SW_SERVER_STATE_H

#include <event2/event.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <time.h>

#include "api/json.h"
#include "api/request.h"
#include "brain/brain.h"
#include "contention/learn.h"
#include "server/clock.h"
#include "server/server.h"
#include "server/tls.h"
#include "server/tokens.h"
#include "store/journal.h"
#include "store/past.h"
#include "store/reserve.h"

#define SW_STREAMS_MAX 1024u /* of all users together, and as many of the owner and operators */
#define SW_NODES_MAX 16384u
#define SW_BODIES_MAX ((uint64_t)256 << 20) /* bytes of bodies that are on their way, of each class of callers */
#define SW_OUTPUT_HIGH ((size_t)512 << 10)  /* of one connection, before nothing more is made for it */
#define SW_STREAM_HIGH ((size_t)64 << 10)   /* the same of a stream, whose reader may never read */

/* What runs first when several can. libevent gives everything the one in the middle; only the end of a turn waits until nothing else is ready, up to its deadline. */
enum { SW_FIRST = 0, SW_USUAL, SW_LAST, SW_PRIORITIES };

struct sw_conn;
struct sw_server;

/* Who is at the other end. */
struct sw_peer {
	unsigned roles;
	struct sw_user user;
	unsigned char token[SW_TOKEN_DIGEST]; /* on TCP: the hash of what it came with */
};

/* ---- callers.c: what each caller takes of the server */
enum sw_caller_class {
	SW_CALLER_STRANGER = 0, /* on TCP, without a token that is known: one address */
	SW_CALLER_USER,
	SW_CALLER_OWN, /* root, the controller's own user, operators */
	SW_CALLER_AGENT,
	SW_CALLER_CLASSES
};
struct sw_caller_key {
	enum sw_caller_class class;
	uint64_t id; /* the user, an address, or the hash of an agent's token */
};
struct sw_caller {
	LIST_ENTRY(sw_caller) link;
	struct sw_caller_key key;
	TAILQ_HEAD(, sw_conn) conns;
	uint32_t conn_count, head_count, stream_count;
	uint32_t away_count; /* of its connections, those that only hear that there is no room */
	uint64_t body_bytes;
	int64_t paid_ns;    /* uptime until which its requests have used up its share of them */
	int64_t counted_ns; /* of an agent's token: when its nodes were counted */
	size_t node_count;
	int64_t round_ns, used_ns; /* the round of the loop in which it was heard last, and how long it held the loop in it */
};
/* What was refused for want of room: of the caller's own bound, or of all. */
enum sw_user_bound {
	SW_USER_BOUND_CONNECTIONS = 0,
	SW_USER_BOUND_HEADS,
	SW_USER_BOUND_STREAMS,
	SW_USER_BOUND_REQUESTS,
	SW_USER_BOUND_BODIES,
	SW_USER_BOUND_JOBS,
	SW_USER_BOUND_HELD,
	SW_USER_BOUND_SYNCS /* of an agent's token */
};
#define SW_CALLER_BUCKETS 256u
struct sw_callers {
	LIST_HEAD(, sw_caller) buckets[SW_CALLER_BUCKETS];
	uint32_t count;
	uint32_t conn_count[SW_CALLER_CLASSES], conn_most[SW_CALLER_CLASSES];
	uint32_t stream_count[SW_CALLER_CLASSES], stream_most; /* of each class */
	uint64_t body_bytes[SW_CALLER_CLASSES];
	TAILQ_HEAD(, sw_conn) away; /* connections that only hear that there is no room, the oldest first */
	uint32_t away_count;
	uint64_t bounds[SW_USER_BOUNDS];
	uint64_t refused[SW_USER_BOUNDS][2];
};
/* Bounds from the options and from how many files may be open. */
void sw_callers_start(struct sw_server *server);
void sw_callers_stop(struct sw_server *server);
/* NULL: out of memory. */
struct sw_caller *sw_caller_get(struct sw_server *server, const struct sw_caller_key *key);
/* Forgets it if there is nothing to remember. */
void sw_caller_leave(struct sw_server *server, struct sw_caller *caller);
/* Which caller a request is from, once its head is known. */
struct sw_caller_key sw_caller_key_of(const struct sw_peer *peer, const struct sw_request *request, const struct sw_caller_key *before);
bool sw_caller_is_bounded(const struct sw_caller *caller);
/* Whether what it asks has to wait for the next round of the loop, so that others are heard before. */
bool sw_caller_waits(const struct sw_server *server, struct sw_caller *caller);
/* The caller that has most of it. */
typedef uint64_t sw_caller_amount_fn(const struct sw_caller *caller);
struct sw_caller *sw_callers_most(struct sw_server *server, enum sw_caller_class class, sw_caller_amount_fn *amount);
/* 0, or 429: the caller has asked too often. `size`: of the body that comes, within the bound of its route. */
int sw_caller_ask(struct sw_server *server, struct sw_caller *caller, const struct sw_peer *peer, uint64_t size, struct sw_err *err);
/* The same without a word. */
bool sw_caller_may_ask(struct sw_server *server, struct sw_caller *caller);
/* Counts a refusal and words it. 429 where the bound is the caller's own, 503 where it is the cluster's. */
int sw_user_bound_refuse(struct sw_server *server, enum sw_user_bound bound, bool own, struct sw_err *err);

/* ---- waiting.c: what each user has in the queue */
struct sw_user_jobs {
	uint32_t uid;
	uint64_t jobs, bytes;		/* at most: those that ended since the last count are in it */
	uint64_t next_jobs, next_bytes; /* of the count that goes on */
};
struct sw_waiting {
	SW_VEC(struct sw_user_jobs) users; /* by uid */
	struct event *step;
	bool counting, begun;
	uint64_t next, last;				    /* jobs that the count has yet to look at */
	const char *request;				    /* of the job looked at last: members of an array share one */
	int64_t counted_ns;				    /* uptime: when the last count ended */
	uint64_t jobs, bytes;				    /* of all */
	uint64_t states[SW_STATES], next_states[SW_STATES]; /* jobs by state, at the last count and in the one that goes on */
};
/* Jobs in each state, at the last count; asks for another. */
void sw_waiting_states(struct sw_server *server, uint64_t counts[SW_STATES]);
int sw_waiting_start(struct sw_server *server, struct sw_err *err);
void sw_waiting_stop(struct sw_server *server);
/* Room for this much more of a user: 0, 429 or 503. Counts them where there is. */
int sw_waiting_admit(struct sw_server *server, const struct sw_user *user, uint64_t jobs, uint64_t bytes, struct sw_err *err);

/* ---- connection.c */
typedef void sw_conn_fn(void *attached);

/* Takes the descriptor where it returns 0. */
int sw_conn_new(struct sw_server *server, int fd, bool is_tcp, const struct sw_peer *peer, const struct sw_caller_key *key);
/* Answers the request at hand. `headers` are whole lines with CR LF, or NULL. */
void sw_conn_reply(struct sw_conn *conn, int status, const char *media, const char *headers, const char *body, size_t size);
void sw_conn_reply_json(struct sw_conn *conn, int status, struct sw_json *json); /* releases it */
/* One answer for many: its text is there once. */
struct sw_shared;
struct sw_shared *sw_shared_take(struct sw_json *json); /* releases it; NULL: out of memory */
void sw_shared_drop(struct sw_shared *shared);
void sw_conn_reply_shared(struct sw_conn *conn, int status, struct sw_shared *shared); /* NULL: says so */
void sw_conn_reply_error(struct sw_conn *conn, int status, const struct sw_err *err);
/* The same with when to come back. */
void sw_conn_reply_later(struct sw_conn *conn, int status, const struct sw_err *err, unsigned seconds);
/* Room for one more stream: 0, or the status that says that there is none. */
int sw_conn_admit_stream(struct sw_conn *conn, struct sw_err *err);
/* An answer of unknown length; `drained` is called when more can be written. */
void sw_conn_stream(struct sw_conn *conn, const char *media, const char *headers, sw_conn_fn *drained);
bool sw_conn_has_room(const struct sw_conn *conn);
void sw_conn_write(struct sw_conn *conn, const char *bytes, size_t size);
void sw_conn_end_stream(struct sw_conn *conn);
/* Something that waits for this connection, or feeds it: `closed` is called, once, when the connection ends before sw_conn_detach(). A connection without
 * `patient` attachments ends as soon as the client shuts its side down. */
void sw_conn_attach(struct sw_conn *conn, void *attached, sw_conn_fn *closed, bool patient);
void sw_conn_detach(struct sw_conn *conn);
struct sw_request *sw_conn_request(struct sw_conn *conn);
struct sw_request *sw_conn_take_request(struct sw_conn *conn);
const struct sw_peer *sw_conn_peer(const struct sw_conn *conn);
bool sw_conn_last_event_id(const struct sw_conn *conn, uint64_t *ret_id);
int sw_conns_start(struct sw_server *server, struct sw_err *err);
void sw_conns_stop(struct sw_server *server);
void sw_conns_close_all(struct sw_server *server);
/* Ends what goes on for tokens that are no more, or not the same any more. Not from within a request. */
void sw_conns_close_revoked(struct sw_server *server);

TAILQ_HEAD(sw_conns, sw_conn);

/* ---- listen.c */
struct sw_listeners;
/* Whether it is an address that could be listened on. */
int sw_listen_check(const char *text, bool with_tls, struct sw_err *err);
int sw_listen(struct sw_server *server, struct sw_listeners **ret_listeners, struct sw_err *err);
const char *sw_listeners_address(const struct sw_listeners *listeners); /* NULL: not on TCP */
void sw_listeners_free(struct sw_listeners *listeners);

/* ---- reload.c: files that change while it runs */
struct sw_reload {
	struct event *timer; /* NULL: there are no tokens */
	bool sweep;	     /* tokens have changed, and connections have not been looked at */
	int64_t looked_at_s; /* at the tokens, for those whose time is over; since 1970 */
	/* The file of tokens as it was. */
	ino_t number;
	off_t size;
	mode_t mode;
	struct timespec changed_at;
};
int sw_reload_start(struct sw_server *server, struct sw_err *err);
void sw_reload_stop(struct sw_server *server);
void sw_reload_all(struct sw_server *server);
/* Reads the tokens again if their file has changed. */
void sw_reload_tokens(struct sw_server *server);
void sw_reload_tell_end(struct sw_server *server);

/* ---- dispatch.c: a request that is complete */
void sw_dispatch(struct sw_server *server, struct sw_conn *conn);
/* Whether the token or the socket allows what the head asks for. 0, or the status (401, 403). */
int sw_authorise(struct sw_server *server, const struct sw_request *request, bool is_tcp, const char *token, struct sw_peer *peer,
		 struct sw_err *err);

/* ---- turn.c */
struct sw_op;
/* `conn` is NULL when nobody waits any more; once answered it may be gone. */
typedef void sw_op_fn(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure);

/* What a change finds, when it comes. */
enum sw_outcome { SW_OUTCOME_CHANGED = 0, SW_OUTCOME_IDLE, SW_OUTCOME_HAD_ENDED };

#define SW_FATE_NONE UINT8_MAX

/* Records that somebody waits for. */
struct sw_op {
	TAILQ_ENTRY(sw_op) link;
	struct sw_conn *conn; /* NULL: it is gone, or nobody asked */
	struct sw_request *request;
	struct sw_user user; /* who asked */
	sw_records records;
	bool idle;		  /* there was nothing to do when it came */
	size_t proposed, counted; /* jobs that have records or were looked at, and records whose bytes are counted */
	uint64_t bytes;		  /* of those */
	bool probes;		  /* it is there to see whether the journal can be written */
	SW_VEC(uint8_t) outcomes; /* the same of each of many jobs: enum sw_outcome */
	SW_VEC(uint8_t)
	fates; /* of each of many jobs that were looked at: 0, or, once it has left the state, 1 + how it ended, or SW_FATE_NONE */
	size_t applied;
	struct sw_err *refusal; /* one of its records could not be applied; NULL: each could */
	int64_t stored_at_ns;
	SW_VEC(uint64_t) jobs;	   /* that were made */
	sw_op_fn *done;		   /* called once: applied, or not stored (failure) */
	struct sw_hearing hearing; /* of a sync */
};
TAILQ_HEAD(sw_ops, sw_op);

/* ---- jobs.c: submits and changes of many jobs, which are proposed in slices */
struct sw_submits {
	struct sw_ops ops;
	struct event *step;
};
int sw_submits_start(struct sw_server *server, struct sw_err *err);
void sw_submits_stop(struct sw_server *server);

struct sw_turn {
	int64_t round_ns;	 /* the round of the loop that it had last */
	struct event *soon;	 /* once nothing else is ready */
	struct event *next;	 /* at the latest: armed whenever the turn does not rest */
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
int sw_turn_start(struct sw_server *server, struct sw_err *err);
void sw_turn_stop(struct sw_server *server);
/* An operation for the request of this connection (NULL: none); NULL: out of memory, and the client was told. */
struct sw_op *sw_op_new(struct sw_conn *conn, sw_op_fn *done);
/* Drops an operation that was not begun. */
void sw_op_free(struct sw_op *op);
void sw_turn_add(struct sw_server *server, struct sw_op *op);
/* The status of an operation that failed: it could not be stored, or was and did not fit. */
int sw_failure_status(const struct sw_err *failure);
/* By what became of its proposal: `r` is 0, or its client is refused with this status. */
void sw_turn_add_or_refuse(struct sw_server *server, struct sw_op *op, int r, int status, const struct sw_err *err);
/* Nothing is open, on its way into the journal, or to be applied. */
bool sw_turn_rests(const struct sw_server *server);
/* Called now and then: a turn does not stay open because requests keep coming. */
void sw_turn_poke(struct sw_server *server);
/* Stores and applies what is there, at the end. */
void sw_turn_finish(struct sw_server *server);

/* ---- recover.c */
struct sw_recovery {
	SW_VEC(struct sw_journal_bad) bad; /* records that were passed over and are not set aside in the journal yet, in order */
};
/* The state of the journal: the last snapshot, and the records behind it. */
int sw_recover_start(struct sw_server *server, struct sw_err *err);
void sw_recover_stop(struct sw_server *server);
/* Record `seq` could not be applied: `code` is what sw_brain_apply() returned, `why` says the reason. True: the state is sound again, as if the record had not been there. */
bool sw_recover_from(struct sw_server *server, uint64_t seq, int code, const struct sw_err *why);
/* Sets aside in the journal what was passed over. Not in the middle of a request. */
void sw_recover_set_aside(struct sw_server *server);

/* ---- snapshots.c */
enum sw_snapshot_stage { SW_SNAPSHOT_NONE = 0, SW_SNAPSHOT_COPIES, SW_SNAPSHOT_WRITES, SW_SNAPSHOT_PRUNES };
struct sw_snapshots {
	struct event *step;
	enum sw_snapshot_stage stage;
	uint64_t seq;	      /* of the last record that the last one covers; 0: there is none */
	uint64_t taking_seq;  /* the same of the one that is written */
	size_t size;	      /* of the last one */
	uint64_t bytes_since; /* of records, since then */
	int64_t retry_ns;     /* uptime: not before */
	/* While the state is copied: the process that does it, what it writes to, and what was read from there. */
	pid_t child;
	int file; /* 0: none */
	unsigned char *bytes;
	size_t bytes_size, bytes_read;
	unsigned put_off; /* how often the next step was */
};
int sw_snapshots_start(struct sw_server *server, struct sw_err *err);
void sw_snapshots_stop(struct sw_server *server);
/* Makes the brain, from the last snapshot if there is one; the records after it are to be applied. */
int sw_snapshots_load(struct sw_server *server, const struct sw_brain_config *config, struct sw_err *err);
/* Tells watchers' memory of the records before it. */
int sw_snapshots_recall(struct sw_server *server, struct sw_err *err);
/* After a turn: takes one if it is time. */
void sw_snapshots_consider(struct sw_server *server);
/* Takes one at the end, at one go. */
void sw_snapshots_finish(struct sw_server *server);

/* ---- events.c: what happened lately, and who watches */
struct sw_happening {
	uint64_t seq;
	int64_t at_ns;
	uint64_t job; /* 0: none */
	char *node;   /* NULL: none */
	enum sw_record_kind kind;
};
struct sw_events {
	struct sw_happening *kept; /* `size` of them, at seq modulo that */
	uint32_t size;
	TAILQ_HEAD(, sw_watcher) watchers;
	struct event *heartbeat;
	struct event *more;    /* the next slice */
	struct sw_watcher *at; /* of the pass that goes on, to be fed next; NULL: none does */
	bool again;	       /* another pass is wanted */
};
int sw_events_start(struct sw_server *server, struct sw_err *err);
void sw_events_stop(struct sw_server *server);
void sw_events_note(struct sw_server *server, uint64_t seq, int64_t at_ns, enum sw_record_kind kind, const char *body, size_t size,
		    uint64_t job);
/* Lets watchers hear what is new, soon. */
void sw_events_send(struct sw_server *server);
void sw_events_watch(struct sw_server *server, struct sw_conn *conn);

/* ---- bindings.c: which nodes an agent may speak for, by its token */
/* Notes the token in the sync. SW_EDENIED: it may not. */
int sw_bindings_admit(struct sw_server *server, const struct sw_peer *peer, struct sw_sync *sync, struct sw_err *err);

/* ---- polls.c: agents */
struct sw_polls {
	TAILQ_HEAD(sw_poll_list, sw_poll) parked; /* the first to be answered first */
	struct event *timer;
	int64_t timer_ns;   /* when it fires */
	struct event *more; /* agents are left that must be told something */
};
int sw_polls_start(struct sw_server *server, struct sw_err *err);
void sw_polls_stop(struct sw_server *server);
void sw_polls_hear(struct sw_server *server, struct sw_conn *conn);
/* Answers those for whom there is news. */
void sw_polls_wake(struct sw_server *server);

/* ---- logs.c */
TAILQ_HEAD(sw_followers, sw_reader);
void sw_logs_read(struct sw_server *server, struct sw_conn *conn);
/* Those who follow a job that has ended need not wait for the next look. */
void sw_logs_wake(struct sw_server *server);

/* ---- devices.c: what agents said of their GPUs, and how these did */
struct sw_device {
	char *uuid, *name; /* name NULL: not known */
	uint64_t memory_bytes;
	bool sampled;
	int64_t sampled_at_ns;
	uint64_t memory_used_bytes;
	uint32_t busy_milli, power_mw;
	int32_t temperature_c;
};
/* How a run does on one GPU; see uses.c. */
struct sw_use {
	struct sw_run_id run;
	char gpu[48]; /* UUID */
	int64_t sampled_at_ns;
	uint64_t memory_bytes, host_bytes;
	uint64_t limit_bytes, iteration_ns; /* 0: not known */
	uint32_t outside;		    /* of its processes use the GPU outside the runtime */
	bool has_share;			    /* it has the GPU runtime, so the next two are known */
	bool yields;			    /* it works only while guaranteed jobs beside it do not */
	bool trespass;			    /* the GPU is none of the job's own */
	uint32_t share_milli;		    /* of the GPU's time that it may take */
};
/* A process outside the queue on a GPU. */
struct sw_stranger {
	char gpu[48];		    /* UUID */
	uint32_t pid;		    /* 0: not known */
	char user[64], program[64]; /* "": not known */
	uint64_t memory_bytes;
	int64_t since_ns;
};
struct sw_machine {
	char *name;
	SW_VEC(struct sw_device) devices;
	SW_VEC(struct sw_use) uses;
	SW_VEC(struct sw_stranger) strangers;
	int64_t look_ns;		       /* its agent's last look took; 0: not known */
	uint64_t host_bytes, host_limit_bytes; /* host memory that contents of GPUs take there, and may; the second is 0: not known */
};
typedef SW_VEC(struct sw_machine) sw_machines; /* sorted by name */
void sw_machines_clear(sw_machines *machines);
const struct sw_machine *sw_machines_find(const sw_machines *machines, const char *name);
void sw_machines_hear(sw_machines *machines, const struct sw_sync *sync);
/* From a node record, for what was said before this controller started; and from all that the brain knows. */
void sw_machines_recall(sw_machines *machines, const char *body, size_t size);
void sw_machines_recall_all(sw_machines *machines, const struct sw_brain *brain);

/* ---- uses.c: how jobs do on their GPUs */
void sw_uses_hear(struct sw_machine *machine, const struct sw_sync *sync);
/* Whether the job's run of today is what it is about. */
bool sw_use_is_current(const struct sw_brain *brain, const struct sw_machine *machine, const struct sw_use *use);
/* All uses of a job's present run together: sums, the longest iteration, the least share, the latest moment; the limit only where each GPU has one. False: there is none. */
bool sw_uses_sum(const sw_machines *machines, const struct sw_brain *brain, uint64_t job, struct sw_use *ret_sum);

/* ---- learned.c: a file of what measured slowdowns say of jobs that share GPUs */
struct sw_learned {
	struct event *timer;
	uint64_t written; /* measurements that the file is of */
};
int sw_learned_start(struct sw_server *server, struct sw_err *err);
void sw_learned_stop(struct sw_server *server);

/* ---- company.c: jobs that share GPUs, for people */
/* Adds to the sentence about where the job runs what was predicted and measured of it and of those beside it, if there are any. */
void sw_company_say(struct sw_server *server, uint64_t id, char *text, size_t size);
/* The members "sharing" and "speed" of a job. */
void sw_company_write(struct sw_server *server, struct sw_json *json, uint64_t id);
void sw_company_write_speed(struct sw_server *server, struct sw_json *json, uint64_t id);

/* ---- views.c */
bool sw_may_see(const struct sw_peer *peer, const struct sw_job_view *view);
/* What is said beside how the job stands: what was asked for; whether a change found anything to do. */
enum sw_job_extra { SW_WITHOUT_REQUEST = 0, SW_WITH_REQUEST, SW_WITH_ASKED, SW_CHANGED, SW_UNCHANGED };
void sw_write_job(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view, bool in_full, enum sw_job_extra extra);
/* "stop": the last stop of the job. */
void sw_write_stop(struct sw_server *server, struct sw_json *json, uint64_t job);
void sw_write_time(struct sw_json *json, const char *key, int64_t ns); /* null for never */
const char *sw_user_name(struct sw_server *server, uint32_t uid);
/* Jobs in each state; where there are very many, as they were a second or so ago. */
void sw_count_jobs(struct sw_server *server, uint64_t counts[SW_STATES]);

struct sw_user_name {
	uint32_t uid;
	char name[64];
};

/* The parts of the above, for rows of the past. */
void sw_write_job_brief(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view, bool past);
void sw_write_job_details(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view);
void sw_write_job_asked(struct sw_json *json, const struct sw_job_view *view); /* the value */

/* ---- past.c: jobs that have left the state */
/* A job as the brain knows it, or as its row tells. Of a row, the view has what all may see, its name, node, epoch and request. */
struct sw_found_job {
	struct sw_job_view view;
	bool is_past;
	const char *texts[SW_PAST_TEXTS]; /* of the row */
	char *own;
};
/* False: there is no such job, or no longer. Release what was found. */
bool sw_find_job(struct sw_server *server, uint64_t job, struct sw_found_job *ret_seen);
void sw_found_release(struct sw_found_job *seen);
void sw_found_write(struct sw_server *server, struct sw_json *json, const struct sw_found_job *seen, bool in_full, enum sw_job_extra extra);
/* Why it ended, of a row. */
const char *sw_found_why(const struct sw_found_job *seen);
/* A walk over jobs by number, those of the brain and rows. */
struct sw_page {
	struct sw_server *server;
	bool descending, by_user;
	uint32_t uid;
	uint64_t at;	   /* the next number that is looked at; 0: the walk is over */
	uint64_t stops_at; /* rows below this one are of no interest */
	int64_t now_ns;
	/* False: it takes no more. NULL: a job that is gone. */
	bool (*give)(struct sw_page *page, const struct sw_found_job *seen);
};
/* False: it was not taken all. */
bool sw_past_page(struct sw_page *page, uint32_t wanted_states, int64_t since_ns, struct sw_err *err);
/* Rows of the jobs that the record lets go, into the batch that it is in. */
void sw_past_keep(struct sw_server *server, const struct sw_record *record);
bool sw_past_fate(void *server, uint64_t job, struct sw_fate *ret_fate);
/* A text that a record named, and the texts of a record into the batch that it is in. */
int sw_past_load_text(void *server, const unsigned char *digest, char **ret_bytes, size_t *ret_size, struct sw_err *err);
void sw_past_keep_texts(struct sw_server *server, const struct sw_record *record);
void sw_past_add_counts(struct sw_server *server, uint64_t counts[SW_STATES]);
int sw_past_start(struct sw_server *server, struct sw_err *err);
void sw_past_stop(struct sw_server *server);
struct sw_pasts {
	struct event *step; /* that removes rows and texts */
	int64_t cursor;	    /* texts up to this one were looked at */
	bool sweeps;	    /* some may be of no use any more */
	unsigned put_off;   /* how often the next step was */
};
/* What is kept unless the options say otherwise. */
#define SW_KEEP_JOBS 10000u
#define SW_KEEP_FOR_NS (INT64_C(86400) * SW_NS_PER_S)
#define SW_KEEP_HISTORY 1000000u
#define SW_KEEP_EVENTS 200000u /* records */

/* ---- jobs.c, cluster.c, metrics.c: handlers */
void sw_handle_submit(struct sw_server *server, struct sw_conn *conn);
void sw_handle_list(struct sw_server *server, struct sw_conn *conn);
void sw_handle_job(struct sw_server *server, struct sw_conn *conn);
void sw_handle_change(struct sw_server *server, struct sw_conn *conn);
void sw_handle_changes(struct sw_server *server, struct sw_conn *conn);
void sw_handle_limit(struct sw_server *server, struct sw_conn *conn);
void sw_handle_move(struct sw_server *server, struct sw_conn *conn);
void sw_handle_why(struct sw_server *server, struct sw_conn *conn);
void sw_handle_nodes(struct sw_server *server, struct sw_conn *conn);
void sw_handle_cluster(struct sw_server *server, struct sw_conn *conn);
void sw_handle_policy(struct sw_server *server, struct sw_conn *conn);
void sw_handle_set_policy(struct sw_server *server, struct sw_conn *conn);
void sw_handle_world(struct sw_server *server, struct sw_conn *conn);
void sw_handle_set_world(struct sw_server *server, struct sw_conn *conn);
/* The world that the controller was started with, unless that is in force or an operator chose another: records of it. */
int sw_server_begin_world(struct sw_server *server, sw_records *records, struct sw_err *err);
void sw_handle_tenants(struct sw_server *server, struct sw_conn *conn);
void sw_handle_door(struct sw_server *server, struct sw_conn *conn);
void sw_handle_quota(struct sw_server *server, struct sw_conn *conn);
void sw_handle_backup(struct sw_server *server, struct sw_conn *conn);
void sw_handle_kept(struct sw_server *server, struct sw_conn *conn);
void sw_handle_health(struct sw_server *server, struct sw_conn *conn);
void sw_handle_openapi(struct sw_server *server, struct sw_conn *conn);
void sw_handle_metrics(struct sw_server *server, struct sw_conn *conn);

/* ---- nodes.c: nodes for people */
struct sw_node_lists {
	TAILQ_HEAD(, sw_node_reader) readers, next; /* of the list that is being written; of the one after it */
	struct event *step;
	struct sw_json json;
	uint32_t at; /* the node that is written next */
	bool is_busy;
};
int sw_nodes_start(struct sw_server *server, struct sw_err *err);
void sw_nodes_stop(struct sw_server *server);
void sw_write_node(struct sw_server *server, struct sw_json *json, uint32_t node, const struct sw_node_view *view);

/* ---- loop.c: how long the loop is held at one go */
#define SW_LOOP_BOUNDS 8
extern const int64_t sw_loop_bounds_ns[SW_LOOP_BOUNDS];
struct sw_loop {
	struct timeval round; /* the one that goes on, as libevent knows it */
	int64_t entered_ns, left_ns;
	int64_t longest_ns, total_ns;
	int64_t entered_cpu_ns,
		longest_cpu_ns; /* the same in time of the processor: what others on a busy machine take is not in it, nor what the disk takes */
	uint64_t rounds[SW_LOOP_BOUNDS + 1]; /* by how long they took */
};
struct sw_server *sw_loop_enter(struct sw_server *server);
/* Whether a step of work that can wait does so for the next round, because this one is long. `times`: so often in a row; however long rounds are, it has an end. */
bool sw_loop_puts_off(const struct sw_server *server, unsigned *times);
void sw_loop_leave(struct sw_server **server);
/* First in each function that the loop calls: until its end the loop is held. */
#define SW_HOLDS_LOOP(server) SW_CLEANUP(sw_loop_leave) struct sw_server *held __attribute__((unused)) = sw_loop_enter(server)

struct sw_figures {
	uint64_t requests[SW_ROUTES];
	uint64_t refused; /* heads that came to nothing: malformed, unauthorised, too large */
	uint64_t handshakes_failed;
	uint64_t accepts_failed; /* for want of files or memory */
	uint64_t commits, commits_failed, records;
	int64_t commit_ns, commit_longest_ns;
	int64_t turn_longest_ns;
	uint64_t snapshots, snapshots_damaged;
	uint64_t rebuilds;	     /* of the state, after a record that could be applied only in part */
	int64_t snapshot_longest_ns; /* that one held up the loop */
};

/* ---- measured profiles (models.c) */

struct sw_profiles;
struct sw_store;
struct sw_models {
	struct sw_profiles *profiles; /* the built-in ones with those of the file over them */
	struct sw_store *store;	      /* NULL: none could be read yet */
	bool looked;
	struct timespec changed_at; /* of the file, at the last look */
	uint64_t size, number;
};
/* Before what needs profiles. */
int sw_models_start(struct sw_server *server, struct sw_err *err);
/* Reads the file if it is another one than at the last look. */
void sw_models_look(struct sw_server *server);
/* Says in the request which profile is the job's, and what follows from it, where it does not say so itself. */
void sw_models_fill(struct sw_server *server, struct sw_job_request *job);
/* A record of that profile, where the brain does not know it as it is now. */
int sw_models_propose(struct sw_server *server, const struct sw_job_request *job, sw_records *records, struct sw_err *err);
void sw_models_release(struct sw_models *models);

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
	struct sw_turn turn;
	struct sw_submits submits;
	struct sw_snapshots snapshots;
	struct sw_recovery recovery;
	struct sw_backup *backup; /* of the journal, under way; NULL */
	uint64_t replayed;	  /* records, at the start */
	struct sw_pasts past;
	struct sw_events events;
	struct sw_node_lists node_lists;
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
