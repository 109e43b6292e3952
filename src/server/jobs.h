/* Jobs as they are. */
#ifndef SW_SERVER_JOBS_H
#define SW_SERVER_JOBS_H

#include <stdint.h>

#include "server/views.h"

struct sw_server;
struct sw_conn;

/* Answers with the job, or that there is none. */
void sw_job_reply(struct sw_server *server, struct sw_conn *conn, uint64_t id, int status, enum sw_job_extra extra);

/* The handlers of its routes. */
void sw_handle_job(struct sw_server *server, struct sw_conn *conn);
void sw_handle_why(struct sw_server *server, struct sw_conn *conn);
void sw_handle_list(struct sw_server *server, struct sw_conn *conn);

#endif
