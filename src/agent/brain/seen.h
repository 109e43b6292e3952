/* Which epochs of which jobs there were. */
#ifndef SW_AGENT_BRAIN_SEEN_H
#define SW_AGENT_BRAIN_SEEN_H

#include <stdbool.h>

#include "api/sync.h"

struct sw_agent_brain;

/* Notes an epoch. 0 or SW_ENOMEM. */
int sw_agent_see(struct sw_agent_brain *brain, struct sw_run_id id, bool used);
/* Whether this run was started, or must not be any more. */
bool sw_agent_is_stale(const struct sw_agent_brain *brain, struct sw_run_id id);
/* Marks the run's epoch as used; it was seen before. */
void sw_agent_use(struct sw_agent_brain *brain, struct sw_run_id id);

#endif
