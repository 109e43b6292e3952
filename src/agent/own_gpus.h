/* Which GPUs of the node are a run's own, as its folder tells: what it uses beside
 * these is none of its own. */
#ifndef SW_AGENT_OWN_GPUS_H
#define SW_AGENT_OWN_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"

struct sw_own_gpus {
	uint32_t places[SW_GPUS_MAX]; /* in the order of the run's page; the number of GPUs: one that the node does not have */
	uint32_t count;
	bool moving; /* to others, which are not in the list yet */
};

/* From its order, since the job can write its page. */
void sw_own_gpus_read(const struct sw_gpu_source *gpus, int folder, struct sw_own_gpus *ret_own);
/* It may have been moved to others since, as its supervisor says. */
void sw_own_gpus_follow(const struct sw_gpu_source *gpus, int folder, struct sw_own_gpus *own);
bool sw_own_gpus_has(const struct sw_own_gpus *own, uint32_t gpu);

#endif
