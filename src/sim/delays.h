/* What jobs wait for where tenants have quotas: their tenant's share, while the job would
 * exceed it, else a place.
 *
 * Counted beside the engine, the same way under every policy. For each tenant it is known how long
 * there was room for at most h GPUs below its quota, for every h. So what a job of g GPUs waited
 * for its share between two moments is the difference of two sums. */
#ifndef SW_SIM_DELAYS_H
#define SW_SIM_DELAYS_H

#include "core/engine.h"

struct sw_sim_quota {
	uint32_t tenant, gpus;
};

struct sw_delays;

/* NULL: out of memory. `jobs`: so many will come. */
struct sw_delays *sw_delays_new(const struct sw_sim_quota *quotas, size_t count, uint32_t jobs);
void sw_delays_free(struct sw_delays *delays);
SW_DEFINE_FREEP(struct sw_delays, sw_delays_free)

/* After each step, with the events and commands of it; `arrived`: jobs that there are now. */
void sw_delays_note(struct sw_delays *delays, struct sw_engine *engine, const struct sw_event *events, size_t count,
		    const struct sw_step *step, uint32_t arrived);
/* What the job has waited for its tenant's share, all its waits together. */
sw_ns sw_delays_of(const struct sw_delays *delays, uint32_t job);

#endif
