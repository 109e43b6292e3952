/* The job's processes: stopped, suspended, resumed, reaped. */
#ifndef SW_AGENT_SUPERVISOR_TREE_H
#define SW_AGENT_SUPERVISOR_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct sw_supervisor;

void sw_supervisor_stop(struct sw_supervisor *supervisor, const char *reason, uint32_t signal, int64_t grace_ms);
/* `deep`: off its GPUs whole, if that can be. */
void sw_supervisor_suspend(struct sw_supervisor *supervisor, bool deep);
void sw_supervisor_resume(struct sw_supervisor *supervisor);
/* Takes up the dead. */
void sw_supervisor_reap(struct sw_supervisor *supervisor);
/* What is due: limits, the next look at a tree that is to stop, to stand still, or to end. */
void sw_supervisor_tick(struct sw_supervisor *supervisor, int64_t now_ns);
int64_t sw_supervisor_next(const struct sw_supervisor *supervisor);

#endif
