/* Which connections, bodies and streams there is room for.
 *
 * Strangers, users, the owner with the operators, and agents have places of their own: none can
 * take another's. Within one of these, a caller that would have less than the caller that has most
 * takes a place of that one. A caller at its own bound makes room for itself.
 *
 *  1. What a connection is counted for is uncounted once: by sw_place_leave(), or before, when
 *     it is told to make room.
 */
#include "server/places.h"
#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/callers.h"
#include "server/connection.h"
#include "server/connection_state.h"
#include "server/state.h"

/* Bodies below this are not counted: a connection may have as much unread. */
#define BODY_SMALL ((uint64_t)64 << 10)
/* Connections that only hear that there is no room for them, of all and of one caller. */
#define AWAY_MAX 64u
#define AWAY_OF_ONE 16u
/* A head or body that has not come for so long makes way for its own user's next connection. */
#define STALE_NS (5 * SW_NS_PER_S)

/* ---- counting */

static void uncount(struct sw_conn *conn)
{
	sw_place_head(conn, false, NULL);
	sw_place_body(conn, 0, NULL);
	sw_place_stream(conn, false);
}

void sw_place_take(struct sw_conn *conn, struct sw_caller *caller, bool turned_away)
{
	struct sw_callers *callers = &conn->server->callers;
	conn->caller = caller;
	conn->turned_away = turned_away;
	if (turned_away) {
		TAILQ_INSERT_TAIL(&callers->away, conn, away_link);
		callers->away_count++;
		caller->away_count++;
	} else
		callers->conn_count[caller->key.class]++;
	caller->conn_count++;
	TAILQ_INSERT_TAIL(&caller->conns, conn, caller_link);
}

void sw_place_leave(struct sw_conn *conn)
{
	struct sw_caller *caller = conn->caller;
	struct sw_callers *callers = &conn->server->callers;
	uncount(conn);
	if (conn->turned_away) {
		TAILQ_REMOVE(&callers->away, conn, away_link);
		callers->away_count--;
		caller->away_count--;
	} else
		callers->conn_count[caller->key.class]--;
	caller->conn_count--;
	TAILQ_REMOVE(&caller->conns, conn, caller_link);
	conn->caller = NULL;
	sw_caller_leave(conn->server, caller);
}

static void make_way(struct sw_conn *conn)
{
	uncount(conn);
	sw_conn_end_soon(conn);
}

/* ---- connections */

static uint64_t conns_of(const struct sw_caller *caller)
{
	return caller->conn_count;
}

/* How easily a connection makes way: one that asks nothing, then one whose head or body has not
 * come, then a stream. Never one that waits for an answer. */
static int ease_of(const struct sw_conn *conn)
{
	if (conn->ends_soon || conn->turned_away)
		return 0;
	if (conn->is_idle)
		return 4;
	switch (conn->phase) {
	case HEAD:
		return 3;
	case BODY:
		return 2;
	case STREAM:
		return 1;
	default:
		return 0;
	}
}

/* The one that makes way most easily, of those that do at least so easily; the one that is so
 * for longest. NULL: none. */
static struct sw_conn *easiest(struct sw_caller *caller, int least)
{
	struct sw_conn *conn, *found = NULL;
	TAILQ_FOREACH(conn, &caller->conns, caller_link)
	{
		int ease = ease_of(conn);
		if (ease >= least &&
		    (found == NULL || ease > ease_of(found) || (ease == ease_of(found) && conn->since_ns < found->since_ns)))
			found = conn;
	}
	return found;
}

/* The head or body that has been on its way for longest, if that is too long. NULL: none. */
static struct sw_conn *stalest(struct sw_caller *caller)
{
	struct sw_conn *conn, *found = NULL;
	int64_t before_ns = sw_now_boot_ns() - STALE_NS;
	TAILQ_FOREACH(conn, &caller->conns, caller_link)
	if (ease_of(conn) >= 2 && conn->since_ns < (found != NULL ? found->since_ns : before_ns))
		found = conn;
	return found;
}

bool sw_place_turn_away(struct sw_server *server, struct sw_caller *caller)
{
	struct sw_callers *callers = &server->callers;
	struct sw_conn *oldest = TAILQ_FIRST(&callers->away);
	if (!sw_caller_may_ask(server, caller))
		return false;
	bool is_many = caller->away_count >= AWAY_OF_ONE;
	while (is_many && oldest != NULL && oldest->caller != caller)
		oldest = TAILQ_NEXT(oldest, away_link);
	/* What it was told has left, or its reader does not read. */
	if (oldest != NULL && (is_many || callers->away_count >= AWAY_MAX)) {
		caller->conn_count++; /* it stays known, though this may be its last */
		sw_conn_end_now(oldest);
		caller->conn_count--;
	}
	return true;
}

/* How many of a class are on their way out. They count until they are gone, but not here. */
static uint32_t leaving(struct sw_caller *caller)
{
	struct sw_conn *conn;
	uint32_t count = 0;
	TAILQ_FOREACH(conn, &caller->conns, caller_link)
	count += conn->ends_soon || conn->turned_away;
	return count;
}

int sw_place_admit(struct sw_server *server, struct sw_caller *caller, struct sw_err *err)
{
	struct sw_callers *callers = &server->callers;
	enum sw_caller_class class = caller->key.class;
	uint32_t count = callers->conn_count[class], most = callers->conn_most[class];
	struct sw_conn *conn = NULL;
	if (class == SW_CALLER_USER && caller->conn_count >= callers->bounds[SW_USER_BOUND_CONNECTIONS] &&
	    caller->conn_count - leaving(caller) >= callers->bounds[SW_USER_BOUND_CONNECTIONS]) {
		conn = easiest(caller, 4);
		if (conn == NULL)
			conn = stalest(caller);
		if (conn == NULL)
			return sw_user_bound_refuse(server, SW_USER_BOUND_CONNECTIONS, true, err);
	} else if (count >= most) {
		struct sw_caller *greatest = sw_callers_most(server, class, conns_of);
		if (greatest != NULL && greatest->conn_count > caller->conn_count + 1)
			conn = easiest(greatest, 1);
		/* A stranger's head that has not come is worth no more than a new stranger. */
		if (conn == NULL)
			conn = easiest(caller, class == SW_CALLER_STRANGER ? 3 : 4);
		if (conn == NULL)
			return sw_user_bound_refuse(server, SW_USER_BOUND_CONNECTIONS, false, err);
	}
	if (conn != NULL)
		make_way(conn);
	return 0;
}

int sw_place_settle(struct sw_conn *conn, struct sw_err *err)
{
	struct sw_server *server = conn->server;
	struct sw_caller *before = conn->caller;
	struct sw_caller_key key = sw_caller_key_of(&conn->peer, conn->request, &before->key);
	if (key.class == before->key.class && key.id == before->key.id)
		return 0;
	struct sw_caller *caller = sw_caller_get(server, &key);
	if (caller == NULL) {
		sw_err_set(err, SW_ENOMEM, "out of memory");
		return 503;
	}
	int status = sw_place_admit(server, caller, err);
	if (status != 0) {
		conn->keep_alive = false;
		sw_caller_leave(server, caller);
		return status;
	}
	sw_place_leave(conn);
	sw_place_take(conn, caller, false);
	return 0;
}

/* ---- heads */

int sw_place_head(struct sw_conn *conn, bool begun, struct sw_err *err)
{
	struct sw_server *server = conn->server;
	struct sw_caller *caller = conn->caller;
	if (begun == conn->counts_head)
		return 0;
	if (begun && caller->key.class == SW_CALLER_USER && caller->head_count >= server->callers.bounds[SW_USER_BOUND_HEADS])
		return sw_user_bound_refuse(server, SW_USER_BOUND_HEADS, true, err);
	conn->counts_head = begun;
	caller->head_count += begun ? 1 : -1u;
	return 0;
}

/* ---- bodies */

static uint64_t bodies_of(const struct sw_caller *caller)
{
	return caller->body_bytes;
}

static struct sw_conn *oldest_body(struct sw_caller *caller)
{
	struct sw_conn *conn, *found = NULL;
	TAILQ_FOREACH(conn, &caller->conns, caller_link)
	if (conn->phase == BODY && conn->body_counted > 0 && (found == NULL || conn->since_ns < found->since_ns))
		found = conn;
	return found;
}

/* Bodies of callers that have more on their way than this one would have make way, until there
 * is room. */
static bool make_room_for_body(struct sw_server *server, const struct sw_caller *caller, uint64_t size)
{
	while (server->callers.body_bytes[caller->key.class] + size > SW_BODIES_MAX) {
		struct sw_caller *greatest = sw_callers_most(server, caller->key.class, bodies_of);
		struct sw_conn *conn = greatest != NULL && greatest->body_bytes > caller->body_bytes + size ? oldest_body(greatest) : NULL;
		if (conn == NULL)
			return false;
		make_way(conn);
	}
	return true;
}

static int count_body(struct sw_conn *conn, uint64_t size, struct sw_err *err)
{
	struct sw_server *server = conn->server;
	struct sw_caller *caller = conn->caller;
	bool bounded = sw_caller_is_bounded(caller);
	/* A body that is larger than the bound may come alone. */
	if (bounded && caller->body_bytes > 0 && caller->body_bytes + size > server->callers.bounds[SW_USER_BOUND_BODIES])
		return sw_user_bound_refuse(server, SW_USER_BOUND_BODIES, true, err);
	if (!make_room_for_body(server, caller, size))
		return sw_user_bound_refuse(server, SW_USER_BOUND_BODIES, false, err);
	conn->body_counted = size;
	caller->body_bytes += size;
	server->callers.body_bytes[caller->key.class] += size;
	return 0;
}

int sw_place_body(struct sw_conn *conn, uint64_t size, struct sw_err *err)
{
	struct sw_caller *caller = conn->caller;
	caller->body_bytes -= conn->body_counted;
	conn->server->callers.body_bytes[caller->key.class] -= conn->body_counted;
	conn->body_counted = 0;
	return size > BODY_SMALL ? count_body(conn, size, err) : 0;
}

/* ---- streams */

static uint64_t streams_of(const struct sw_caller *caller)
{
	return caller->stream_count;
}

static struct sw_conn *oldest_stream(struct sw_caller *caller)
{
	struct sw_conn *conn, *found = NULL;
	TAILQ_FOREACH(conn, &caller->conns, caller_link)
	if (conn->counts_stream && (found == NULL || conn->since_ns < found->since_ns))
		found = conn;
	return found;
}

int sw_conn_admit_stream(struct sw_conn *conn, struct sw_err *err)
{
	struct sw_server *server = conn->server;
	struct sw_callers *callers = &server->callers;
	struct sw_caller *caller = conn->caller;
	enum sw_caller_class class = caller->key.class;
	if (sw_caller_is_bounded(caller) && caller->stream_count >= callers->bounds[SW_USER_BOUND_STREAMS])
		return sw_user_bound_refuse(server, SW_USER_BOUND_STREAMS, true, err);
	if (callers->stream_count[class] < callers->stream_most)
		return 0;
	struct sw_caller *greatest = sw_callers_most(server, class, streams_of);
	if (greatest == NULL || greatest->stream_count <= caller->stream_count + 1)
		return sw_user_bound_refuse(server, SW_USER_BOUND_STREAMS, false, err);
	make_way(oldest_stream(greatest));
	return 0;
}

void sw_place_stream(struct sw_conn *conn, bool is_one)
{
	if (is_one == conn->counts_stream)
		return;
	conn->counts_stream = is_one;
	conn->caller->stream_count += is_one ? 1 : -1u;
	conn->server->callers.stream_count[conn->caller->key.class] += is_one ? 1 : -1u;
}
