/* Submits and changes of jobs, which are proposed in slices; jobs as they are. */
#ifndef SW_SERVER_JOBS_H
#define SW_SERVER_JOBS_H

#include "base/error.h"
#include "server/turn.h"

struct sw_server;
struct sw_conn;
struct event;

struct sw_submits {
	struct sw_ops ops;
	struct event *step;
};
int sw_submits_start(struct sw_server *server, struct sw_err *err);
void sw_submits_stop(struct sw_server *server);

/* The handlers of its routes. */
void sw_handle_submit(struct sw_server *server, struct sw_conn *conn);
void sw_handle_list(struct sw_server *server, struct sw_conn *conn);
void sw_handle_job(struct sw_server *server, struct sw_conn *conn);
void sw_handle_change(struct sw_server *server, struct sw_conn *conn);
void sw_handle_changes(struct sw_server *server, struct sw_conn *conn);
void sw_handle_limit(struct sw_server *server, struct sw_conn *conn);
void sw_handle_move(struct sw_server *server, struct sw_conn *conn);
void sw_handle_why(struct sw_server *server, struct sw_conn *conn);

#endif
