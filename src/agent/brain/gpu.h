/* What runs that share a GPU may have of it. */
#ifndef SW_AGENT_BRAIN_GPU_H
#define SW_AGENT_BRAIN_GPU_H

#include <stdbool.h>
#include <stdint.h>

struct sw_agent_brain;
struct sw_agent_run;
struct sw_run_spec;

void sw_agent_take_spec(struct sw_agent_run *run, const struct sw_run_spec *spec);
/* Whether run->terms have changed, or must be told anew; notes them as told. The users of the GPUs
 * must have been counted. */
bool sw_agent_terms_change(const struct sw_agent_brain *brain, struct sw_agent_run *run, int64_t now_ns);
/* What it may have of a GPU's memory, by its spec and by the controller's wish. It also says
 * whether that wish is less than it asked for. */
uint64_t sw_agent_asked_bytes(const struct sw_agent_run *run);
bool sw_agent_is_limited(const struct sw_agent_run *run);

bool sw_agent_meet(const struct sw_agent_run *a, const struct sw_agent_run *b); /* on a GPU */

#endif
