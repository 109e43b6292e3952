/* Files that change while the server runs: tokens and certificate. */
#ifndef SW_SERVER_RELOAD_H
#define SW_SERVER_RELOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/error.h"

struct sw_server;
struct event;

struct sw_reload {
	struct event *timer; /* NULL: there are no tokens */
	bool sweep;	     /* tokens have changed, and connections have not been looked at */
	int64_t looked_at_s; /* at the tokens, for those whose time is over; since 1970 */
	/* The file of tokens as it was. */
	ino_t number;
	off_t size;
	mode_t mode;
	struct timespec changed_at;
};
int sw_reload_start(struct sw_server *server, struct sw_err *err);
void sw_reload_stop(struct sw_server *server);
void sw_reload_all(struct sw_server *server);
/* Reads the tokens again if their file has changed. */
void sw_reload_tokens(struct sw_server *server);
void sw_reload_tell_end(struct sw_server *server);

#endif
