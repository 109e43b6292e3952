/* Runs: what the engine decided, as wishes to nodes. 0 or SW_ENOMEM. See runs.c. */
#ifndef SW_BRAIN_RUNS_H
#define SW_BRAIN_RUNS_H

#include "brain/state.h"

#define SW_BRAIN_BOUNCED "another job could not leave these GPUs"
int sw_brain_obey(struct sw_brain *brain, const struct sw_step *step);
/* Takes back the wishes for a job's run, parked or not. A part that may still be alive leaves a ghost behind. */
int sw_brain_drop_runs(struct sw_brain *brain, uint32_t id);
/* The same for all parked runs that have a part on the node. */
int sw_brain_drop_parked(struct sw_brain *brain, struct sw_brain_node *node);
/* Strikes out ghost `index` of the node; what waited for it may start. */
void sw_brain_lay_ghost(struct sw_brain *brain, struct sw_brain_node *node, size_t index);
/* It is to be off its GPUs whole while it is parked, which it is or is about to be. */
void sw_brain_set_deep(struct sw_brain *brain, struct sw_live *live);
/* It cannot be; `why` is for people. */
int sw_brain_refuse_deep(struct sw_brain *brain, uint32_t id, const char *why);
/* Another run of a job that the engine runs, where it does. */
int sw_brain_begin_anew(struct sw_brain *brain, uint32_t id, struct sw_err *err);
/* The wishes for its run have changed. */
void sw_brain_touch(struct sw_brain *brain, const struct sw_live *live);
/* Whether a run that may not be stopped has begun on GPUs of this part of the job's parked run since that is parked. */
bool sw_brain_has_begun_beside(const struct sw_brain *brain, uint32_t id, const struct sw_run *run);
/* The job that is active on a GPU of this one's run, as people count; 0: none. */
uint64_t sw_brain_occupant(const struct sw_brain *brain, uint32_t id);
/* A job that must be off the GPUs of this one's run whole before it can start, as people count; 0: none. */
uint64_t sw_brain_parting(const struct sw_brain *brain, uint32_t id);
/* A job whose earlier run must be gone from the GPUs of this one's run before it can start, as people count: itself or another; 0: none. */
uint64_t sw_brain_leaver(const struct sw_brain *brain, uint32_t id);

#endif
