/* A copy of the journal for an operator. */
#ifndef SW_SERVER_BACKUP_H
#define SW_SERVER_BACKUP_H

struct sw_server;
struct sw_conn;

void sw_handle_backup(struct sw_server *server, struct sw_conn *conn);

#endif
