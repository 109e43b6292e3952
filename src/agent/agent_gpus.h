/* The node's GPUs, as they are known and as they were seen last. */
#ifndef SW_AGENT_AGENT_GPUS_H
#define SW_AGENT_AGENT_GPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/patience.h"
#include "api/sync.h"
#include "base/vec.h"
#include "gpu/gpu.h"

struct sw_agent;

/* What is known of the GPUs, and how the sampler gets on. */
struct sw_agent_gpus {
	struct sw_sync *known; /* the last inventory with all GPUs, as in the file gpus.json; NULL: none */
	struct sw_sync *seen;  /* the sampler's last line; NULL: none yet */
	bool is_new;	       /* its samples have not arrived at the controller */
	struct {
		char uuid[SW_GPU_UUID_MAX];
	} absent[SW_SYNC_GPUS_MAX]; /* known ones that do not answer the driver */
	uint32_t absent_count;
	int64_t absent_since_ns;
	bool silent; /* the driver as a whole does not answer */
	int64_t silent_since_ns;
	char silent_why[200];
	struct sw_patience patience;	  /* on the clock of leases */
	bool restarting;		  /* the sampler's timer starts one; else it watches the one there is */
	uint32_t slices;		  /* of patience that are left with that one */
	pid_t hung[SW_PATIENCE_HUNG_MAX]; /* samplers that were killed and are still there; 0: none */
	SW_VEC(struct sw_sync_gpu) all;	  /* scratch */
	SW_VEC(struct sw_sync_shut) shut; /* as told last */
};

/* What an agent before this one has noted. */
void sw_agent_gpus_open(struct sw_agent *agent);
void sw_agent_gpus_release(struct sw_agent *agent);
/* Whether GPUs are known to be here, whether they answer now or not. */
bool sw_agent_gpus_known(const struct sw_agent *agent);
/* A line of the sampler, which it owns then. */
void sw_agent_gpus_hear(struct sw_agent *agent, struct sw_sync *seen);
/* The driver as a whole does not answer. */
void sw_agent_gpus_silence(struct sw_agent *agent, const char *why);
/* The node joins with the GPUs that are known, before the driver has said anything. */
int sw_agent_gpus_join(struct sw_agent *agent);
/* What was sampled, and which GPUs take no jobs; valid until the next call of these. */
void sw_agent_gpus_tell(struct sw_agent *agent, struct sw_sync *sync);

#endif
