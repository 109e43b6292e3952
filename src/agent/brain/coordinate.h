/* Runs that share a GPU are coordinated by what the sampler saw. */
#ifndef SW_AGENT_BRAIN_COORDINATE_H
#define SW_AGENT_BRAIN_COORDINATE_H

#include <stdbool.h>
#include <stdint.h>

struct sw_agent_brain;
struct sw_agent_run;

/* Orders for the runs that share a GPU, by the last look. */
void sw_agent_coordinate(struct sw_agent_brain *brain, int64_t now_ns);
/* The last look is so old that what was seen does not matter. */
bool sw_agent_is_blind(const struct sw_agent_brain *brain, int64_t now_ns);
/* Whether those that share its GPUs have made room for a run that is to start. */
bool sw_agent_room_is_made(const struct sw_agent_brain *brain, const struct sw_agent_run *run, int64_t now_ns);

#endif
