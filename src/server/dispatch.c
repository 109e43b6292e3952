/* From a request to its handler, and whether the caller may ask. */
#include <unistd.h>

#include "base/now.h"
#include "base/number.h"
#include "server/backup.h"
#include "server/batch.h"
#include "server/changes.h"
#include "server/cluster.h"
#include "server/connection.h"
#include "server/dispatch.h"
#include "server/events.h"
#include "server/forecasts.h"
#include "server/jobs.h"
#include "server/kept.h"
#include "server/logs.h"
#include "server/metrics.h"
#include "server/nodes.h"
#include "server/polls.h"
#include "server/reload.h"
#include "server/state.h"
#include "server/submit.h"
#include "server/world.h"

static void identify(struct sw_server *server, const char *token, struct sw_peer *peer)
{
	struct sw_token_owner owner;
	*peer = (struct sw_peer){0};
	if (token[0] == '\0' || server->tokens == NULL)
		return;
	sw_reload_tokens(server);
	sw_token_digest(token, peer->token);
	if (!sw_tokens_find(server->tokens, peer->token, sw_now_real_ns() / SW_NS_PER_S, &owner))
		return;
	peer->roles = owner.role;
	peer->user = (struct sw_user){.uid = owner.uid, .gid = owner.gid, .is_operator = owner.role == SW_ROLE_OPERATOR};
}

int sw_authorise(struct sw_server *server, const struct sw_request *request, bool is_tcp, const char *token, struct sw_peer *peer,
		 struct sw_err *err)
{
	if (is_tcp)
		identify(server, token, peer);
	/* Its holder may be on another machine, and need not be root anywhere. */
	if (is_tcp && request->route->id == SW_ROUTE_SUBMIT && peer->roles == SW_ROLE_OPERATOR && peer->user.uid == 0) {
		sw_err_set(err, SW_EDENIED, "an operator's token does not run jobs as root");
		sw_err_detail(err, "this one names no other user");
		sw_err_hint(err, "Make one for a user: sharewell token create --role operator --user NAME");
		return 403;
	}
	if (request->route->roles == SW_ROLE_NOBODY || (request->route->roles & peer->roles) != 0)
		return 0;
	if (peer->roles == 0) {
		sw_err_set(err, SW_EDENIED, "this needs a token");
		sw_err_detail(err, "%s", token[0] != '\0' ? "the one that came is not known, or its time is over" : "none came");
		sw_err_hint(err, "Send 'Authorization: Bearer TOKEN' ('sharewell token create' makes one; commands take it from "
				 "SHAREWELL_TOKEN), or "
				 "use the UNIX socket.");
		return 401;
	}
	sw_err_set(err, SW_EDENIED, "the caller's role does not allow this");
	sw_err_detail(err, "it needs the role of %s",
		      (request->route->roles & SW_ROLE_USER) != 0	? "a user"
		      : (request->route->roles & SW_ROLE_OPERATOR) != 0 ? "an operator"
									: "an agent");
	return 403;
}

void sw_dispatch(struct sw_server *server, struct sw_conn *conn)
{
	static void (*const handlers[SW_ROUTES])(struct sw_server * server, struct sw_conn * conn) = {
		[SW_ROUTE_SUBMIT] = sw_handle_submit,
		[SW_ROUTE_LIST] = sw_handle_list,
		[SW_ROUTE_JOB] = sw_handle_job,
		[SW_ROUTE_CANCEL] = sw_handle_change,
		[SW_ROUTE_HOLD] = sw_handle_change,
		[SW_ROUTE_RELEASE] = sw_handle_change,
		[SW_ROUTE_REQUEUE] = sw_handle_change,
		[SW_ROUTE_SUSPEND] = sw_handle_change,
		[SW_ROUTE_RESUME] = sw_handle_change,
		[SW_ROUTE_LIMIT] = sw_handle_limit,
		[SW_ROUTE_CHANGE] = sw_handle_changes,
		[SW_ROUTE_MOVE] = sw_handle_move,
		[SW_ROUTE_WHY] = sw_handle_why,
		[SW_ROUTE_FORECAST] = sw_handle_forecast,
		[SW_ROUTE_TRY] = sw_handle_trial,
		[SW_ROUTE_LOGS] = sw_logs_read,
		[SW_ROUTE_NODES] = sw_handle_nodes,
		[SW_ROUTE_NODE_DOOR] = sw_handle_door,
		[SW_ROUTE_CLUSTER] = sw_handle_cluster,
		[SW_ROUTE_GET_POLICY] = sw_handle_policy,
		[SW_ROUTE_SET_POLICY] = sw_handle_set_policy,
		[SW_ROUTE_GET_WORLD] = sw_handle_world,
		[SW_ROUTE_SET_WORLD] = sw_handle_set_world,
		[SW_ROUTE_GET_QUOTA] = sw_handle_tenants,
		[SW_ROUTE_QUOTA] = sw_handle_quota,
		[SW_ROUTE_EVENTS] = sw_events_watch,
		[SW_ROUTE_SYNC] = sw_polls_hear,
		[SW_ROUTE_BACKUP] = sw_handle_backup,
		[SW_ROUTE_KEPT] = sw_handle_kept,
		[SW_ROUTE_METRICS] = sw_handle_metrics,
		[SW_ROUTE_HEALTH] = sw_handle_health,
		[SW_ROUTE_OPENAPI] = sw_handle_openapi,
	};
	enum sw_route_id id = sw_conn_request(conn)->route->id;
	server->figures.requests[id]++;
	sw_batch_poke(server);
	handlers[id](server, conn);
}
