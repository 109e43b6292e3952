/* Callers, and what each takes of the server. */
#ifndef SW_SERVER_CALLERS_H
#define SW_SERVER_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/request.h"
#include "base/error.h"
#include "brain/brain.h"
#include "server/server.h"
#include "server/tokens.h"

struct sw_server;
struct sw_conn;

#define SW_STREAMS_MAX 1024u /* of all users together, and as many of the owner and operators */
/* Bytes of bodies that are on their way, of each class of callers. */
#define SW_BODIES_MAX ((uint64_t)256 << 20)

/* The caller at the other end. */
struct sw_peer {
	unsigned roles;
	struct sw_user user;
	unsigned char token[SW_TOKEN_DIGEST]; /* on TCP: the hash of what it came with */
};

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
/* Whether what it asks has to wait for the next round of the loop, so that others are heard
 * before. */
bool sw_caller_waits(const struct sw_server *server, struct sw_caller *caller);
/* The caller that has most of it. */
typedef uint64_t sw_caller_amount_fn(const struct sw_caller *caller);
struct sw_caller *sw_callers_most(struct sw_server *server, enum sw_caller_class class, sw_caller_amount_fn *amount);
/* 0, or 429: the caller has asked too often. `size`: of the body that comes, within the bound of
 * its route. */
int sw_caller_ask(struct sw_server *server, struct sw_caller *caller, const struct sw_peer *peer, uint64_t size, struct sw_err *err);
/* The same without a word. */
bool sw_caller_may_ask(struct sw_server *server, struct sw_caller *caller);
/* Counts a refusal and words it. 429 where the bound is the caller's own, 503 where it is the
 * cluster's. */
int sw_user_bound_refuse(struct sw_server *server, enum sw_user_bound bound, bool own, struct sw_err *err);

#endif
