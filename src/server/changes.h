/* Changes of jobs. */
#ifndef SW_SERVER_CHANGES_H
#define SW_SERVER_CHANGES_H

struct sw_server;
struct sw_conn;

void sw_handle_change(struct sw_server *server, struct sw_conn *conn);
void sw_handle_changes(struct sw_server *server, struct sw_conn *conn);
void sw_handle_limit(struct sw_server *server, struct sw_conn *conn);
void sw_handle_move(struct sw_server *server, struct sw_conn *conn);

#endif
