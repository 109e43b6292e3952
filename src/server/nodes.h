/* Nodes, for people. */
#ifndef SW_SERVER_NODES_H
#define SW_SERVER_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "api/json.h"
#include "base/error.h"
#include "brain/brain.h"

struct sw_server;
struct sw_conn;
struct event;

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

/* The handlers of its routes. */
void sw_handle_nodes(struct sw_server *server, struct sw_conn *conn);

#endif
