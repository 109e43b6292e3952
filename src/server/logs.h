/* Logs of jobs, also while they grow. */
#ifndef SW_SERVER_LOGS_H
#define SW_SERVER_LOGS_H

#include <sys/queue.h>

struct sw_server;
struct sw_conn;

TAILQ_HEAD(sw_followers, sw_reader);
void sw_logs_read(struct sw_server *server, struct sw_conn *conn);
/* Followers of a job that has ended need not wait for the next look. */
void sw_logs_wake(struct sw_server *server);

#endif
