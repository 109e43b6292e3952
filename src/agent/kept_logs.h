/* The logs of runs that were forgotten: <state>/logs/<job>.<epoch>.log, the oldest deleted first
 * when they become too many or too large. */
#ifndef SW_AGENT_KEPT_LOGS_H
#define SW_AGENT_KEPT_LOGS_H

#include <stdint.h>

#include "api/sync.h"
#include "base/vec.h"

#define SW_KEPT_LOGS_MAX 10000u

struct sw_kept_log {
	struct sw_run_id id;
	uint64_t bytes;
	int64_t at_ns; /* when it was written last */
};

struct sw_kept_logs {
	int folder; /* -1: none are kept */
	uint64_t limit_bytes, bytes;
	SW_VEC(struct sw_kept_log) list; /* oldest first */
};

/* Reads which there are. `state` is the agent's folder; limit 0: none are kept.
 * 0 or SW_EIO, SW_ENOMEM. */
int sw_kept_logs_open(struct sw_kept_logs *logs, int state, uint64_t limit_bytes);
/* Moves the log of a run here, if it has one. */
void sw_kept_logs_keep(struct sw_kept_logs *logs, int run_folder, struct sw_run_id id);
void sw_kept_logs_close(struct sw_kept_logs *logs);

#endif
