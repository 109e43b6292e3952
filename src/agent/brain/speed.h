/* How long iterations take, alone and beside others. */
#ifndef SW_AGENT_BRAIN_SPEED_H
#define SW_AGENT_BRAIN_SPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "api/sync.h"

struct sw_agent_brain;

/* How it gets on. */
struct sw_agent_speed {
	struct sw_sync_speed now;  /* of these circumstances: */
	int64_t since_ns;	   /* they hold; 0: they have to be seen anew */
	uint64_t began_iterations; /* it had ended then */
	int64_t advanced_ns;	   /* when an iteration was last seen to end */
	uint32_t samples;	   /* that now.iteration_ns is made from */
	struct sw_sync_speed told;
	int64_t told_ns;
};

/* Follows how all runs get on, by the last look; true: there is something to tell. */
bool sw_agent_follow_speeds(struct sw_agent_brain *brain, int64_t now_ns);

#endif
