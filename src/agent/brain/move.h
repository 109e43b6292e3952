/* Runs go to other GPUs where the wish names others. */
#ifndef SW_AGENT_BRAIN_MOVE_H
#define SW_AGENT_BRAIN_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/sync.h"

struct sw_agent_brain;
struct sw_agent_run;

/* Where the controller wishes it to be. */
void sw_agent_wish_gpus(struct sw_agent_brain *brain, struct sw_agent_run *run, const struct sw_texts *gpus);
/* What its supervisor has said of its GPUs is in `said`. */
void sw_agent_hear_gpus(struct sw_agent_brain *brain, struct sw_agent_run *run);
bool sw_agent_is_moving(const struct sw_agent_run *run);
/* It is not where it is wished to be. */
bool sw_agent_is_elsewhere(const struct sw_agent_run *run);
/* The same of one that stands still, or is to: it will not move, which is told. */
bool sw_agent_stands_elsewhere(struct sw_agent_brain *brain, struct sw_agent_run *run);
/* Of one that moves: whether it comes to this GPU, which it has not. */
bool sw_agent_goes_to(const struct sw_agent_run *run, uint32_t gpu);
/* Whether it is to be told to move now. The users of the GPUs must have been counted. */
bool sw_agent_move_is_due(struct sw_agent_brain *brain, struct sw_agent_run *run);
/* It is told to go to these. */
const char *sw_agent_begin_move(const struct sw_agent_brain *brain, struct sw_agent_run *run);

#endif
