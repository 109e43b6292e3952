/* Which jobs sit on which GPU in the simulated world, for worlds in which
 * neighbours slow each other down. */
#ifndef SW_SIM_NEIGHBOURS_H
#define SW_SIM_NEIGHBOURS_H

#include "base/cleanup.h"
#include "base/vec.h"
#include "core/ledger.h"

struct sw_neighbours;

/* For jobs below `jobs`. NULL: out of memory. */
struct sw_neighbours *sw_neighbours_new(uint32_t gpus, uint32_t jobs);
void sw_neighbours_free(struct sw_neighbours *neighbours);

/* The job sits down on the GPUs of these parts; 0 or SW_ENOMEM. It must not sit anywhere. */
int sw_neighbours_enter(struct sw_neighbours *neighbours, const struct sw_ledger *ledger, uint32_t job, uint32_t parts);
/* The job gets up, if it sits. */
void sw_neighbours_leave(struct sw_neighbours *neighbours, uint32_t job);

/* Its `index`-th GPU; false past the last. Gives the residents of that GPU, the job among them;
 * valid until a job enters or leaves. */
bool sw_neighbours_at(const struct sw_neighbours *neighbours, uint32_t job, uint32_t index, const uint32_t **ret_residents,
		      uint32_t *ret_count);

#endif
