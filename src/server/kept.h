/* Records that are kept, a page at a time. */
#ifndef SW_SERVER_KEPT_H
#define SW_SERVER_KEPT_H

struct sw_server;
struct sw_conn;

void sw_handle_kept(struct sw_server *server, struct sw_conn *conn);

#endif
