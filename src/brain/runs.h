/* Runs: what the engine decided, as wishes to nodes. 0 or SW_ENOMEM. See runs.c. */
#ifndef SW_BRAIN_RUNS_H
#define SW_BRAIN_RUNS_H

#include "brain/state.h"

#define SW_BRAIN_BOUNCED "another job could not leave these GPUs"
int sw_brain_obey(struct sw_brain *brain, const struct sw_step *step);
/* Takes back the wishes for a job's run, suspended or not. A part that may still be alive
 * leaves a ghost behind. */
int sw_brain_drop_runs(struct sw_brain *brain, uint32_t id);
/* Strikes out ghost `index` of the node; what waited for it may start. */
void sw_brain_lay_ghost(struct sw_brain *brain, struct sw_brain_node *node, size_t index);
/* It is to be off its GPUs whole while it is suspended, which it is or is about to be. */
void sw_brain_set_deep(struct sw_brain *brain, struct sw_live *live);
/* It cannot be; `why` is for people. */
int sw_brain_refuse_deep(struct sw_brain *brain, uint32_t id, const char *why);
/* The wishes for its run have changed. */
void sw_brain_touch(struct sw_brain *brain, const struct sw_live *live);
/* The job that is active on a GPU of this one's run, as people count; 0: none. */
uint64_t sw_brain_occupant(const struct sw_brain *brain, uint32_t id);
/* A job that must be off the GPUs of this one's run whole before it can start, as
 * people count; 0: none. */
uint64_t sw_brain_parting(const struct sw_brain *brain, uint32_t id);
/* A job whose earlier run must be gone from the GPUs of this one's run before it can start. It is
 * numbered as people count, and may be the job itself; 0: none. */
uint64_t sw_brain_leaver(const struct sw_brain *brain, uint32_t id);

#endif
