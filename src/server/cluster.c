/* Requests about the cluster as a whole: nodes, policy, quota, health. */
#include <string.h>

#include "base/number.h"
#include "policy/registry.h"
#include "server/answers.h"
#include "server/batch.h"
#include "server/cluster.h"
#include "server/connection.h"
#include "server/nodes.h"
#include "server/state.h"
#include "server/views.h"

/* ---- nodes */

static void door_set(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	if (conn == NULL)
		return;
	if (failure != NULL) {
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
		return;
	}
	struct sw_json json = {0};
	struct sw_node_view view;
	uint32_t n = 0;
	while (sw_brain_node(server->brain, n, &view) && strcmp(view.name, op->request->node) != 0)
		n++;
	sw_write_node(server, &json, n, &view);
	sw_conn_reply_json(conn, 200, &json);
}

void sw_handle_door(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, door_set);
	if (op == NULL)
		return;
	const char *why = request->reason != NULL ? request->reason : "";
	int r = request->removed ? sw_brain_propose_remove(server->brain, &user, request->node, why, &op->records, &err)
				 : sw_brain_propose_door(server->brain, &user, request->node, request->closed, why, &op->records, &err);
	sw_batch_add_or_refuse(server, op, r, sw_status_of(r), &err);
}

static void write_totals(struct sw_server *server, struct sw_json *json)
{
	uint64_t nodes = 0, up = 0, gpus = 0, gpus_free = 0;
	struct sw_node_view view;
	for (uint32_t n = 0; sw_brain_node(server->brain, n, &view); n++) {
		nodes += !view.removed;
		if (!view.up)
			continue;
		up += !view.silent;
		gpus += view.gpus;
		gpus_free += view.gpus_free;
	}
	sw_json_key_u64(json, "nodes", nodes);
	sw_json_key_u64(json, "nodes_up", up);
	sw_json_key_u64(json, "gpus", gpus);
	sw_json_key_u64(json, "gpus_free", gpus_free);
}

void sw_handle_cluster(struct sw_server *server, struct sw_conn *conn)
{
	uint64_t counts[SW_STATES];
	sw_count_jobs(server, counts);
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_string(&json, "version", SW_VERSION);
	sw_json_key_string(&json, "policy", sw_brain_policy(server->brain));
	write_totals(server, &json);
	sw_json_key(&json, "jobs");
	sw_json_object(&json);
	for (unsigned s = 0; s < SW_STATES; s++)
		sw_json_key_u64(&json, sw_state_names[s].brief, counts[s]);
	sw_json_end_object(&json);
	sw_write_time(&json, "now", sw_server_now(server));
	sw_write_time(&json, "started_at", server->started_at_ns);
	sw_json_key_u64(&json, "seq", server->batch.applied_seq);
	sw_json_key_u64(&json, "aside", sw_journal_aside_count(server->journal));
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 200, &json);
}

/* ---- policy and quota */

static void write_policy(struct sw_json *json, const struct sw_policy *policy)
{
	sw_json_object(json);
	sw_json_key_string(json, "name", policy->name);
	sw_json_key_string(json, "about", policy->about);
	sw_json_key(json, "parameters");
	sw_json_array(json);
	for (size_t p = 0; p < policy->param_count; p++) {
		sw_json_object(json);
		sw_json_key_string(json, "name", policy->params[p].name);
		sw_json_key_string(json, "about", policy->params[p].about);
		sw_json_end_object(json);
	}
	sw_json_end_array(json);
	sw_json_end_object(json);
}

/* What the parameters are, in the words that set them; what cannot be said so is left out. */
static void write_settings(struct sw_json *json, const char *name, const struct sw_params *params, const struct sw_policy *plugin)
{
	const struct sw_policy *policy = plugin != NULL && strcmp(plugin->name, name) == 0 ? plugin : sw_policy_find(name);
	sw_json_object(json);
	for (size_t p = 0; policy != NULL && p < policy->param_count; p++) {
		SW_CLEANUP(sw_freep) char *text = params != NULL ? sw_params_text(params, p) : strdup(policy->params[p].preset);
		if (text != NULL)
			sw_json_key_string(json, policy->params[p].name, text);
	}
	sw_json_end_object(json);
}

void sw_handle_policy(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_string(&json, "policy", sw_brain_policy(server->brain));
	sw_json_key(&json, "settings");
	write_settings(&json, sw_brain_policy(server->brain), sw_brain_params(server->brain), server->options->plugin);
	sw_json_key_string(&json, "placement", sw_brain_placement(server->brain));
	sw_json_key(&json, "available");
	sw_json_array(&json);
	for (size_t p = 0; sw_policies[p] != NULL; p++)
		write_policy(&json, sw_policies[p]);
	for (size_t p = 0; sw_policies_packed(p) != NULL; p++)
		write_policy(&json, sw_policies_packed(p));
	if (server->options->plugin != NULL)
		write_policy(&json, server->options->plugin);
	sw_json_end_array(&json);
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 200, &json);
}

static void policy_set(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	(void)op;
	if (conn == NULL)
		return;
	if (failure != NULL)
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
	else
		sw_handle_policy(server, conn);
}

static const char *const *as_settings(char **settings)
{
	return (const char *const *)settings;
}

void sw_handle_set_policy(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, policy_set);
	if (op == NULL)
		return;
	int r = sw_brain_propose_policy(server->brain, &user, request->policy, as_settings(request->settings), request->setting_count,
					&op->records, &err);
	sw_batch_add_or_refuse(server, op, r, r == SW_ENOTFOUND ? 400 : sw_status_of(r), &err);
}

static void write_tenant(struct sw_json *json, const struct sw_tenant_view *tenant)
{
	sw_json_object(json);
	sw_json_key(json, "tenant");
	if (tenant->name != NULL)
		sw_json_string(json, tenant->name);
	else
		sw_json_null(json);
	sw_json_key(json, "quota");
	if (tenant->quota != UINT32_MAX)
		sw_json_u64(json, tenant->quota);
	else
		sw_json_null(json);
	sw_json_key_u64(json, "gpus", tenant->gpus);
	sw_json_key_u64(json, "gpus_guaranteed", tenant->gpus_guaranteed);
	sw_json_key_u64(json, "running", tenant->running);
	sw_json_key_u64(json, "pending", tenant->waiting);
	sw_json_key_u64(json, "gpus_wanted", tenant->gpus_wanted);
	sw_json_end_object(json);
}

static void add_tenant(struct sw_tenant_view *sum, const struct sw_tenant_view *tenant)
{
	sum->gpus += tenant->gpus;
	sum->gpus_guaranteed += tenant->gpus_guaranteed;
	sum->gpus_wanted += tenant->gpus_wanted;
	sum->running += tenant->running;
	sum->waiting += tenant->waiting;
}

/* Those with a quota or with jobs. Whose name tells about others' jobs goes
 * into the sum at the end. */
void sw_handle_tenants(struct sw_server *server, struct sw_conn *conn)
{
	const struct sw_peer *peer = sw_conn_peer(conn);
	struct sw_tenant_view others = {.quota = UINT32_MAX};
	sw_tenant_views tenants = {0};
	struct sw_json json = {0};
	if (sw_brain_tenants(server->brain, peer->user.uid, &tenants) < 0) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	sw_json_object(&json);
	sw_json_key(&json, "tenants");
	sw_json_array(&json);
	for (size_t t = 0; t < tenants.count; t++) {
		const struct sw_tenant_view *tenant = &tenants.items[t];
		bool says_something = tenant->quota != UINT32_MAX || tenant->running + tenant->waiting > 0;
		if (says_something && (peer->user.is_operator || tenant->of_user))
			write_tenant(&json, tenant);
		else
			add_tenant(&others, tenant);
	}
	if (others.running + others.waiting > 0)
		write_tenant(&json, &others);
	sw_json_end_array(&json);
	sw_json_end_object(&json);
	sw_vec_free(&tenants);
	sw_conn_reply_json(conn, 200, &json);
}

static void quota_set(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	(void)server;
	if (conn == NULL)
		return;
	if (failure != NULL) {
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
		return;
	}
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_string(&json, "tenant", op->request->tenant);
	sw_json_key(&json, "gpus");
	if (op->request->quota_gpus == UINT32_MAX)
		sw_json_null(&json);
	else
		sw_json_u64(&json, op->request->quota_gpus);
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 200, &json);
}

void sw_handle_quota(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, quota_set);
	if (op == NULL)
		return;
	int r = sw_brain_propose_quota(server->brain, &user, request->tenant, request->quota_gpus, &op->records, &err);
	sw_batch_add_or_refuse(server, op, r, sw_status_of(r), &err);
}

/* ---- health */

void sw_handle_health(struct sw_server *server, struct sw_conn *conn)
{
	bool failing = server->batch.failing;
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_string(&json, "status", failing ? "failing" : "ok");
	if (sw_conn_peer(conn)->roles != 0) {
		char words[1300] = "ok";
		uint64_t aside = sw_journal_aside_count(server->journal);
		if (failing)
			sw_err_format(&server->batch.failure, words, sizeof words);
		else if (sw_journal_mark_error(server->journal) != 0)
			snprintf(words, sizeof words, "ok, but its mark cannot be written: %s",
				 strerror(sw_journal_mark_error(server->journal)));
		else if (aside > 0)
			snprintf(words, sizeof words, "ok, but %llu record%s set aside: 'sharewell journal check' lists them",
				 (unsigned long long)aside, aside == 1 ? " is" : "s are");
		sw_json_key_string(&json, "journal", words);
	}
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, failing ? 503 : 200, &json);
}

void sw_handle_openapi(struct sw_server *server, struct sw_conn *conn)
{
	sw_conn_reply(conn, 200, "application/json", NULL, server->openapi, strlen(server->openapi));
}
