/* The terms of the cluster's world, for operators. */
#include <stdlib.h>
#include <string.h>

#include "server/answers.h"
#include "server/batch.h"
#include "server/connection.h"
#include "server/state.h"
#include "server/world.h"

static void write_terms(struct sw_json *json, const struct sw_terms *terms)
{
	sw_json_key(json, "terms");
	sw_json_object(json);
	for (size_t r = 0; r < sw_term_count; r++) {
		const struct sw_term_row *row = &sw_term_rows[r];
		int64_t value = sw_term_get(terms, row);
		char name[64];
		snprintf(name, sizeof name, "%s%s", row->name,
			 row->kind == SW_TERM_TIME    ? "_ns"
			 : row->kind == SW_TERM_MILLI ? "_milli"
						      : "");
		if (row->kind == SW_TERM_CHOICE)
			sw_json_key_string(json, name, row->choices[value]);
		else if (row->kind == SW_TERM_FLAG)
			sw_json_key_bool(json, name, value != 0);
		else
			sw_json_key_i64(json, name, value);
	}
	sw_json_end_object(json);
}

void sw_handle_world(struct sw_server *server, struct sw_conn *conn)
{
	SW_CLEANUP(sw_freep) char *name = NULL, *text = NULL;
	bool chosen = false;
	struct sw_json json = {0};
	struct sw_err err = {0};
	if (sw_brain_look_world(server->brain, &name, &text, &chosen) < 0) {
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	sw_json_object(&json);
	sw_json_key_string(&json, "world", name);
	sw_json_key_bool(&json, "chosen", chosen);
	write_terms(&json, sw_brain_terms(server->brain));
	sw_json_key_string(&json, "text", text);
	sw_json_end_object(&json);
	sw_conn_reply_json(conn, 200, &json);
}

static void world_set(struct sw_server *server, struct sw_op *op, struct sw_conn *conn, const struct sw_err *failure)
{
	(void)op;
	if (conn == NULL)
		return;
	if (failure != NULL)
		sw_conn_reply_error(conn, sw_failure_status(failure), failure);
	else
		sw_handle_world(server, conn);
}

int sw_controller_load_world(const char *name, struct sw_world **ret_world, struct sw_err *err)
{
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	int r = sw_world_load(name != NULL ? name : SW_WORLD_LIVE, &world, err);
	if (r < 0)
		return r;
	r = sw_brain_takes_world(world->name, world, err);
	if (r == 0)
		*ret_world = SW_TAKE(world);
	return r;
}

void sw_handle_set_world(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_user user = sw_conn_peer(conn)->user;
	const struct sw_request *request = sw_conn_request(conn);
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	struct sw_err err = {0};
	struct sw_op *op = sw_op_new(conn, world_set);
	if (op == NULL)
		return;
	int r = sw_world_parse(request->world, request->world_text, strlen(request->world_text), &world, &err);
	if (r == 0)
		r = sw_brain_propose_world(server->brain, &user, request->world, world, &op->records, &err);
	sw_batch_add_or_refuse(server, op, r, r == SW_ENOTFOUND ? 400 : sw_status_of(r), &err);
}

int sw_server_begin_world(struct sw_server *server, sw_records *records, struct sw_err *err)
{
	const struct sw_world *world = server->options->world;
	SW_CLEANUP(sw_freep) char *name = NULL, *text = NULL;
	bool chosen = false;
	if (world == NULL)
		return 0;
	if (sw_brain_look_world(server->brain, &name, &text, &chosen) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	const struct sw_terms terms = sw_world_terms(world);
	bool same = strcmp(text, world->text) == 0 && sw_terms_differ(&terms, sw_brain_terms(server->brain)) == NULL;
	if (chosen && !same && server->options->world_named)
		sw_server_note(server, "the world '%s' is not in force: an operator chose '%s', which stays; 'sharewell world' changes it",
			       world->name, name);
	return chosen || same ? 0 : sw_brain_propose_world(server->brain, NULL, world->name, world, records, err);
}
