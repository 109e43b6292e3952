/* Submits of jobs. */
#ifndef SW_SERVER_SUBMIT_H
#define SW_SERVER_SUBMIT_H

struct sw_server;
struct sw_conn;

void sw_handle_submit(struct sw_server *server, struct sw_conn *conn);

#endif
