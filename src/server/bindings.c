/* Which nodes an agent may speak for, by the token that it came with.
 *
 * A token that names nodes speaks for those. One that does not is bound to the nodes that it was
 * the first to speak for. Both are bounded, so that the finder of a token cannot invent nodes
 * without end. What comes through the socket is from root or the controller's own user, which may
 * do everything: its nodes are no token's.
 *
 * A node may have a token that was revoked or has ended, or none that version 0.1 noted. It belongs
 * to the next token that speaks for it.
 */
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/bindings.h"
#include "server/state.h"

#define LOCAL "local"

_Static_assert(SW_TOKEN_ID_SIZE <= SW_SYNC_TOKEN_MAX + 1, "a sync has room for the id of a token");

static int refuse_name(const struct sw_token_owner *owner, const struct sw_sync *sync, struct sw_err *err)
{
	sw_err_set(err, SW_EDENIED, "this token is not for node '%.60s'", sync->node);
	sw_err_detail(err, "it is bound to '%.255s'", owner->nodes);
	sw_err_hint(err, "Make another one: sharewell token create --role agent --nodes %.60s", sync->node);
	return SW_EDENIED;
}

/* A node that is known: another token may have brought it. */
static int check_known(const struct sw_server *server, const struct sw_token_owner *owner, const struct sw_sync *sync, const char *brought,
		       int64_t now_s, struct sw_err *err)
{
	bool is_own = strcmp(brought, sync->token) == 0 || brought[0] == '\0';
	/* Naming a node binds it, also while its old token still holds. */
	if (is_own || owner->nodes[0] != '\0')
		return 0;
	if (strcmp(brought, LOCAL) != 0 && !sw_tokens_has(server->tokens, brought, now_s))
		return 0;
	sw_err_set(err, SW_EDENIED, "this token is not for node '%.60s'", sync->node);
	sw_err_detail(err, "%s%s brought it first", strcmp(brought, LOCAL) == 0 ? "an agent on the controller's own machine" : "token ",
		      strcmp(brought, LOCAL) == 0 ? "" : brought);
	sw_err_hint(err, "Make another one: sharewell token create --role agent --nodes %.60s", sync->node);
	return SW_EDENIED;
}

static int check_new(const struct sw_server *server, const struct sw_token_owner *owner, const struct sw_sync *sync, struct sw_err *err)
{
	size_t most = owner->nodes[0] != '\0' ? SW_TOKEN_NODES_BOUND : SW_TOKEN_NODES_FREE;
	if (sw_brain_nodes_of_token(server->brain, sync->token) < most)
		return 0;
	sw_err_set(err, SW_EDENIED, "this token has brought too many nodes for one more, '%.60s'", sync->node);
	sw_err_detail(err, "it has brought %zu, which is the most", most);
	sw_err_hint(err, "Make another one: sharewell token create --role agent --nodes NAMES");
	return SW_EDENIED;
}

int sw_bindings_admit(struct sw_server *server, const struct sw_peer *peer, struct sw_sync *sync, struct sw_err *err)
{
	static const unsigned char none[SW_TOKEN_DIGEST];
	struct sw_token_owner owner;
	int64_t now_s = sw_now_real_ns() / SW_NS_PER_S;
	if (memcmp(peer->token, none, sizeof none) == 0 || server->tokens == NULL) {
		memcpy(sync->token, LOCAL, sizeof LOCAL);
		return 0;
	}
	if (!sw_tokens_find(server->tokens, peer->token, now_s, &owner))
		return sw_err_set(err, SW_EDENIED, "this token is not known any more");
	sw_token_id(peer->token, sync->token);
	if (owner.nodes[0] != '\0' && !sw_token_nodes_match(owner.nodes, sync->node))
		return refuse_name(&owner, sync, err);
	const char *brought = sw_brain_token_of(server->brain, sync->node);
	return brought != NULL ? check_known(server, &owner, sync, brought, now_s, err) : check_new(server, &owner, sync, err);
}
