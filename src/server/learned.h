/* A file of what measured slowdowns say of jobs that share GPUs. */
#ifndef SW_SERVER_LEARNED_H
#define SW_SERVER_LEARNED_H

#include <stdint.h>

#include "base/error.h"

struct sw_server;
struct event;

struct sw_learned {
	struct event *timer;
	uint64_t written; /* measurements that the file is of */
};
int sw_learned_start(struct sw_server *server, struct sw_err *err);
void sw_learned_stop(struct sw_server *server);

#endif
