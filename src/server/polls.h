/* Long polls of agents. */
#ifndef SW_SERVER_POLLS_H
#define SW_SERVER_POLLS_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"

struct sw_server;
struct sw_conn;
struct event;

struct sw_polls {
	TAILQ_HEAD(sw_poll_list, sw_poll) parked; /* the first to be answered first */
	struct event *timer;
	int64_t timer_ns;   /* when it fires */
	struct event *more; /* agents are left that must be told something */
};
int sw_polls_start(struct sw_server *server, struct sw_err *err);
void sw_polls_stop(struct sw_server *server);
void sw_polls_hear(struct sw_server *server, struct sw_conn *conn);
/* Answers the agents for which there is news. */
void sw_polls_wake(struct sw_server *server);

#endif
