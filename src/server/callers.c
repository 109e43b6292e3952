/* What each caller takes of the server: connections, unfinished heads, bodies, streams,
 * requests. A caller is a user, an address without a token that is known, or an agent's token.
 * The bounds of one caller come before those of all, so that a caller that takes much is in
 * its own way only.
 *
 *  1. Counts are those of the connections that are there; connection.c and places.c keep them.
 *  2. A caller whose requests have held the loop for its slice of a round waits for the next round.
 *     So requests on all of its connections together keep others waiting no longer than one.
 *  3. A caller without connections is remembered only for as long as its requests weigh on it.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "base/now.h"
#include "base/number.h"
#include "server/callers.h"
#include "server/state.h"

#define BURST_NS (4 * SW_NS_PER_S)
/* What one caller, and all of them, have of one round of the loop. */
#define SLICE_NS (10 * SW_NS_PER_MS)
#define ROUND_NS (30 * SW_NS_PER_MS)
/* Files that are no connections with a place: the journal, snapshots, listeners, the loop. Also
 * connections that are told that there is no room, or are on their way out. */
#define FILES_KEPT 192u
#define OWN_MOST 1024u
/* A token that has brought fewer nodes may sync as if it had so many. So many bytes of a
 * sync count as one more. */
#define SYNC_NODES_LEAST 8u
#define SYNC_BYTES ((uint64_t)20 << 10)

const struct sw_user_bound_row sw_user_bound_rows[SW_USER_BOUNDS] = {
	[SW_USER_BOUND_CONNECTIONS] = {"connections", "connections", false, 256},
	[SW_USER_BOUND_HEADS] = {"heads", "requests whose head has begun and not ended", false, 32},
	[SW_USER_BOUND_STREAMS] = {"streams", "streams of events and logs", false, 128},
	[SW_USER_BOUND_REQUESTS] = {"requests", "requests a second", false, 1000},
	[SW_USER_BOUND_BODIES] = {"bodies", "bytes of requests on their way", true, (uint64_t)64 << 20},
	[SW_USER_BOUND_JOBS] = {"jobs", "jobs that wait or run", false, 200000},
	[SW_USER_BOUND_HELD] = {"held", "bytes of environments and scripts of jobs that wait or run", true, (uint64_t)512 << 20},
	[SW_USER_BOUND_SYNCS] = {"syncs", "syncs a second for each node of a token", false, 100},
};

/* ---- bounds */

static int set_bound(struct sw_user_bounds *bounds, enum sw_user_bound bound, uint64_t value)
{
	uint32_t small = (uint32_t)value;
	uint32_t *const counts[SW_USER_BOUNDS] = {
		[SW_USER_BOUND_CONNECTIONS] = &bounds->connections,
		[SW_USER_BOUND_HEADS] = &bounds->heads,
		[SW_USER_BOUND_STREAMS] = &bounds->streams,
		[SW_USER_BOUND_REQUESTS] = &bounds->requests,
		[SW_USER_BOUND_SYNCS] = &bounds->syncs,
	};
	uint64_t *const sizes[SW_USER_BOUNDS] = {
		[SW_USER_BOUND_BODIES] = &bounds->bodies, [SW_USER_BOUND_JOBS] = &bounds->jobs, [SW_USER_BOUND_HELD] = &bounds->held};
	if (value == 0 || (counts[bound] != NULL && value > UINT32_MAX))
		return SW_EINPUT;
	if (counts[bound] != NULL)
		*counts[bound] = small;
	else
		*sizes[bound] = value;
	return 0;
}

static int parse_one(const char *word, size_t size, struct sw_user_bounds *bounds, struct sw_err *err)
{
	const char *equals = memchr(word, '=', size);
	size_t name = equals != NULL ? (size_t)(equals - word) : size;
	for (int b = 0; b < SW_USER_BOUNDS; b++) {
		const struct sw_user_bound_row *row = &sw_user_bound_rows[b];
		if (equals == NULL || strlen(row->name) != name || strncmp(row->name, word, name) != 0)
			continue;
		uint64_t value = 0;
		size_t rest = size - name - 1;
		int r = row->is_bytes ? sw_parse_bytes(equals + 1, rest, &value) : sw_parse_u64(equals + 1, rest, &value);
		if (r == 0 && set_bound(bounds, (enum sw_user_bound)b, value) == 0)
			return 0;
		break;
	}
	sw_err_set(err, SW_EINPUT, "'%.*s' is no bound", (int)(size < 60 ? size : 60), word);
	sw_err_detail(err, "it takes NAME=NUMBER, with a number above 0, and connections, heads, streams, requests, bodies, jobs, held, "
			   "syncs for NAME");
	sw_err_hint(err, "Write, for example, connections=512,held=1G.");
	return SW_EINPUT;
}

int sw_user_bounds_parse(const char *text, struct sw_user_bounds *bounds, struct sw_err *err)
{
	struct sw_user_bounds copy = *bounds;
	for (const char *word = text;; word += strcspn(word, ",") + 1) {
		int r = parse_one(word, strcspn(word, ","), &copy, err);
		if (r < 0)
			return r;
		if (word[strcspn(word, ",")] == '\0')
			break;
	}
	*bounds = copy;
	return 0;
}

static uint32_t or_usual(uint32_t value, uint32_t usual)
{
	return value > 0 ? value : usual;
}

/* All places together are fewer than the files that may be open. */
static void fit_to_files(struct sw_callers *callers, uint64_t files)
{
	uint64_t all = 0, left;
	if (callers->stream_most > files / 8)
		callers->stream_most = files / 8 > 4 ? (uint32_t)(files / 8) : 4;
	/* A stream of a log has a file beside its connection; users and owners have so many
	 * streams each. */
	uint64_t taken = FILES_KEPT + 2 * (uint64_t)callers->stream_most;
	left = files > taken ? files - taken : 0;
	for (int c = 0; c < SW_CALLER_CLASSES; c++)
		all += callers->conn_most[c];
	for (int c = 0; c < SW_CALLER_CLASSES && all > left; c++) {
		callers->conn_most[c] = (uint32_t)(callers->conn_most[c] * left / all);
		if (callers->conn_most[c] < 4)
			callers->conn_most[c] = 4;
	}
}

void sw_callers_start(struct sw_server *server)
{
	const struct sw_controller_options *options = server->options;
	const struct sw_user_bounds *given = &options->bounds;
	struct sw_callers *callers = &server->callers;
	struct rlimit files;
	TAILQ_INIT(&callers->away);
	const uint64_t values[SW_USER_BOUNDS] = {
		[SW_USER_BOUND_CONNECTIONS] = given->connections,
		[SW_USER_BOUND_HEADS] = given->heads,
		[SW_USER_BOUND_STREAMS] = given->streams,
		[SW_USER_BOUND_REQUESTS] = given->requests,
		[SW_USER_BOUND_BODIES] = given->bodies,
		[SW_USER_BOUND_JOBS] = given->jobs,
		[SW_USER_BOUND_HELD] = given->held,
		[SW_USER_BOUND_SYNCS] = given->syncs,
	};
	for (int b = 0; b < SW_USER_BOUNDS; b++)
		callers->bounds[b] = values[b] > 0 ? values[b] : sw_user_bound_rows[b].usual;
	uint32_t users = or_usual(options->connections_max, 4096);
	callers->conn_most[SW_CALLER_USER] = users;
	callers->conn_most[SW_CALLER_OWN] = users < OWN_MOST ? users : OWN_MOST;
	callers->conn_most[SW_CALLER_STRANGER] = or_usual(options->strangers_max, 256);
	callers->conn_most[SW_CALLER_AGENT] = SW_NODES_MAX;
	callers->stream_most = SW_STREAMS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
		fit_to_files(callers, files.rlim_cur);
}

int sw_user_bound_refuse(struct sw_server *server, enum sw_user_bound bound, bool own, struct sw_err *err)
{
	const struct sw_user_bound_row *row = &sw_user_bound_rows[bound];
	server->callers.refused[bound][own ? 0 : 1]++;
	if (own) {
		sw_err_set(err, SW_ELIMIT, "you have too many %s", row->about);
		sw_err_detail(err, "the bound of one user is %" PRIu64, server->callers.bounds[bound]);
		sw_err_hint(err, "Wait until some have ended; the operator can raise '%s' with --bounds.", row->name);
		return 429;
	}
	sw_err_set(err, SW_ELIMIT, "the controller has too many %s", row->about);
	sw_err_detail(err, "those of all users together are at their bound");
	sw_err_hint(err, "Try again in a moment.");
	return 503;
}

/* ---- callers */

static size_t bucket_of(const struct sw_caller_key *key)
{
	return sw_hash_u64(sw_hash_u64(SW_HASH_START, (uint64_t)key->class), key->id) % SW_CALLER_BUCKETS;
}

struct sw_caller *sw_caller_get(struct sw_server *server, const struct sw_caller_key *key)
{
	struct sw_callers *callers = &server->callers;
	struct sw_caller *caller;
	size_t bucket = bucket_of(key);
	LIST_FOREACH(caller, &callers->buckets[bucket], link)
	if (caller->key.class == key->class && caller->key.id == key->id)
		return caller;
	caller = calloc(1, sizeof *caller);
	if (caller == NULL)
		return NULL;
	caller->key = *key;
	TAILQ_INIT(&caller->conns);
	LIST_INSERT_HEAD(&callers->buckets[bucket], caller, link);
	callers->count++;
	return caller;
}

static void forget(struct sw_server *server, struct sw_caller *caller)
{
	LIST_REMOVE(caller, link);
	server->callers.count--;
	free(caller);
}

void sw_caller_leave(struct sw_server *server, struct sw_caller *caller)
{
	if (caller->conn_count > 0)
		return;
	/* One that asked too often stays known: coming anew does not help. There are no more
	 * of these than users and tokens. */
	if (caller->paid_ns <= sw_now_boot_ns() || caller->key.class == SW_CALLER_STRANGER)
		forget(server, caller);
}

struct sw_caller *sw_callers_most(struct sw_server *server, enum sw_caller_class class, sw_caller_amount_fn *amount)
{
	struct sw_caller *caller, *most = NULL;
	for (size_t b = 0; b < SW_CALLER_BUCKETS; b++)
		LIST_FOREACH(caller, &server->callers.buckets[b], link)
	if (caller->key.class == class && (most == NULL || amount(caller) > amount(most)))
		most = caller;
	return most;
}

void sw_callers_stop(struct sw_server *server)
{
	struct sw_caller *caller;
	for (size_t b = 0; b < SW_CALLER_BUCKETS; b++)
		while ((caller = LIST_FIRST(&server->callers.buckets[b])) != NULL)
			forget(server, caller);
}

struct sw_caller_key sw_caller_key_of(const struct sw_peer *peer, const struct sw_request *request, const struct sw_caller_key *before)
{
	if (peer->roles == 0)
		return *before;
	if (request->route->id == SW_ROUTE_SYNC && (peer->roles & SW_ROLE_AGENT) != 0) {
		uint64_t id = 0;
		/* Over the socket an agent has no token: its user stands for it. */
		memcpy(&id, peer->token, sizeof id);
		return (struct sw_caller_key){SW_CALLER_AGENT, id != 0 ? id : peer->user.uid};
	}
	return (struct sw_caller_key){peer->user.is_operator ? SW_CALLER_OWN : SW_CALLER_USER, peer->user.uid};
}

bool sw_caller_is_bounded(const struct sw_caller *caller)
{
	return caller->key.class == SW_CALLER_USER || caller->key.class == SW_CALLER_STRANGER;
}

bool sw_caller_waits(const struct sw_server *server, struct sw_caller *caller)
{
	if (caller->round_ns != server->loop.entered_ns) {
		caller->round_ns = server->loop.entered_ns;
		caller->used_ns = 0;
	}
	/* Each is heard once in every round, however long others take. */
	return caller->used_ns > SLICE_NS || (caller->used_ns > 0 && sw_now_boot_ns() - server->loop.entered_ns > ROUND_NS);
}

/* What one request takes of the caller's time; false: there is no more of it for now. */
static bool pay(struct sw_caller *caller, int64_t cost_ns)
{
	int64_t now_ns = sw_now_boot_ns();
	if (caller->paid_ns < now_ns)
		caller->paid_ns = now_ns;
	if (caller->paid_ns + cost_ns - now_ns > BURST_NS && caller->paid_ns > now_ns)
		return false;
	caller->paid_ns += cost_ns;
	return true;
}

/* A token may sync for each of its nodes, and for some that it is about to bring. A large
 * sync counts for several. */
static int ask_sync(struct sw_server *server, struct sw_caller *caller, const struct sw_peer *peer, uint64_t size, struct sw_err *err)
{
	int64_t now_ns = sw_now_boot_ns();
	if (caller->node_count == 0 || now_ns - caller->counted_ns > SW_NS_PER_S) {
		char id[SW_TOKEN_ID_SIZE];
		sw_token_id(peer->token, id);
		caller->node_count = sw_brain_nodes_of_token(server->brain, id);
		if (caller->node_count < SYNC_NODES_LEAST)
			caller->node_count = SYNC_NODES_LEAST;
		caller->counted_ns = now_ns;
	}
	uint64_t bound = server->callers.bounds[SW_USER_BOUND_SYNCS];
	int64_t cost_ns = SW_NS_PER_S / (int64_t)(bound * caller->node_count) * (int64_t)(1 + size / SYNC_BYTES);
	if (pay(caller, cost_ns))
		return 0;
	server->callers.refused[SW_USER_BOUND_SYNCS][0]++;
	sw_err_set(err, SW_ELIMIT, "the agents of this token sync too often");
	sw_err_detail(err, "the bound is %" PRIu64 " a second for each node; large ones count for several", bound);
	sw_err_hint(err, "Try again in a moment; the operator can raise '%s' with --bounds.", sw_user_bound_rows[SW_USER_BOUND_SYNCS].name);
	return 429;
}

bool sw_caller_may_ask(struct sw_server *server, struct sw_caller *caller)
{
	return !sw_caller_is_bounded(caller) || pay(caller, SW_NS_PER_S / (int64_t)server->callers.bounds[SW_USER_BOUND_REQUESTS]);
}

int sw_caller_ask(struct sw_server *server, struct sw_caller *caller, const struct sw_peer *peer, uint64_t size, struct sw_err *err)
{
	static const unsigned char none[SW_TOKEN_DIGEST];
	/* What comes through the socket is root's or the controller's own user's. */
	if (caller->key.class == SW_CALLER_AGENT && memcmp(peer->token, none, sizeof none) != 0)
		return ask_sync(server, caller, peer, size, err);
	if (sw_caller_may_ask(server, caller))
		return 0;
	return sw_user_bound_refuse(server, SW_USER_BOUND_REQUESTS, true, err);
}
