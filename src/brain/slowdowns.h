/* What was measured beside what, and learned of it. See slowdowns.c. */
#ifndef SW_BRAIN_SLOWDOWNS_H
#define SW_BRAIN_SLOWDOWNS_H

#include "brain/state.h"

/* What was just noted of the job's speed may be a lesson. */
void sw_brain_observe(struct sw_brain *brain, uint64_t id);
/* Takes the lessons in, if it is time to. */
void sw_brain_learn(struct sw_brain *brain);
/* When that is; SW_TIME_NEVER: there are none. */
sw_ns sw_brain_learns_at(const struct sw_brain *brain);
void sw_brain_pack_learned(struct sw_pack *pack, struct sw_brain *brain);

#endif
