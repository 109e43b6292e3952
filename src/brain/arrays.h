/* Arrays. Numbers are as people count. See arrays.c. */
#ifndef SW_BRAIN_ARRAYS_H
#define SW_BRAIN_ARRAYS_H

#include "brain/state.h"

/* The first member of the job's array; itself, if it is in none. */
uint64_t sw_array_first(const struct sw_brain *brain, uint64_t job);
/* The job is a member of the array that begins with `first`, of which `limit` may be
 * under way. 0 or SW_ENOMEM. */
int sw_array_join(struct sw_brain *brain, uint64_t job, uint64_t first, uint64_t limit);
/* A member leaves memory. */
void sw_array_leave(struct sw_live *live);
/* Whether the member may be under way. */
bool sw_array_admits(const struct sw_live *live, uint64_t job);
/* A member has ended. The member that may be under way instead; 0: none. */
uint64_t sw_array_end(struct sw_brain *brain, uint64_t job);

#endif
