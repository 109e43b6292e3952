/* What happened lately, for those that watch. */
#ifndef SW_SERVER_EVENTS_H
#define SW_SERVER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "brain/brain.h"

struct sw_server;
struct sw_conn;
struct event;

struct sw_happening {
	uint64_t seq;
	int64_t at_ns;
	uint64_t job; /* 0: none */
	char *node;   /* NULL: none */
	enum sw_record_kind kind;
};
struct sw_events {
	struct sw_happening *kept; /* `size` of them, at seq modulo that */
	uint32_t size;
	TAILQ_HEAD(, sw_watcher) watchers;
	struct event *heartbeat;
	struct event *more;    /* the next slice */
	struct sw_watcher *at; /* of the pass that goes on, to be fed next; NULL: none does */
	bool again;	       /* another pass is wanted */
};
int sw_events_start(struct sw_server *server, struct sw_err *err);
void sw_events_stop(struct sw_server *server);
void sw_events_note(struct sw_server *server, uint64_t seq, int64_t at_ns, enum sw_record_kind kind, const char *body, size_t size,
		    uint64_t job);
/* Lets watchers hear what is new, soon. */
void sw_events_send(struct sw_server *server);
void sw_events_watch(struct sw_server *server, struct sw_conn *conn);

#endif
