/* Requests about many jobs, which are proposed in slices. */
#ifndef SW_SERVER_SLICES_H
#define SW_SERVER_SLICES_H

#include "base/error.h"
#include "server/batch.h"

struct event;
struct sw_server;

struct sw_slices {
	struct sw_ops ops; /* of which something is not proposed yet */
	struct event *step;
};
int sw_slices_start(struct sw_server *server, struct sw_err *err);
void sw_slices_stop(struct sw_server *server);
/* Proposes a part of it now, and the rest between other requests. */
void sw_slices_propose(struct sw_server *server, struct sw_op *op, sw_propose_fn *propose);

#endif
