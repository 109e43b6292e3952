/* Figures, and how the server is. */
#ifndef SW_SERVER_METRICS_H
#define SW_SERVER_METRICS_H

#include <stdint.h>

#include "api/routes.h"

struct sw_server;
struct sw_conn;

struct sw_figures {
	uint64_t requests[SW_ROUTES];
	uint64_t refused; /* heads that came to nothing: malformed, unauthorised, too large */
	uint64_t handshakes_failed;
	uint64_t accepts_failed; /* for want of files or memory */
	uint64_t commits, commits_failed, records;
	int64_t commit_ns, commit_longest_ns;
	int64_t batch_longest_ns;
	uint64_t snapshots, snapshots_damaged;
	uint64_t rebuilds;	     /* of the state, after a record that could be applied only in part */
	int64_t snapshot_longest_ns; /* that one held up the loop */
};

/* The handlers of its routes. */
void sw_handle_metrics(struct sw_server *server, struct sw_conn *conn);

#endif
