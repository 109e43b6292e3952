/* The simulator: a driver of the engine whose cluster is a model. It feeds the engine a
 * trace, lets the world (world.h) turn commands into later events, and writes down what
 * happened. The engine, the policies and the placement rules are those of the live system and
 * do not know the difference. */
#ifndef SW_SIM_SIMULATOR_H
#define SW_SIM_SIMULATOR_H

#include <stdatomic.h>

#include "contention/profile.h"
#include "core/engine.h"
#include "sim/delays.h"
#include "sim/result.h"
#include "sim/trace/trace.h"
#include "world/world.h"

struct sw_sim_config {
	const struct sw_trace *trace;
	const struct sw_topology *topology;
	const char *const *gpu_types; /* their names by the numbers in the topology */
	size_t gpu_type_count;
	const struct sw_profiles *profiles;
	const struct sw_world *world;
	const struct sw_policy *policy;
	const struct sw_params *params; /* NULL: presets */
	const struct sw_placement *placement;
	const struct sw_sim_quota *quotas; /* of tenants, by the trace's numbers; NULL: none */
	size_t quota_count;
	uint64_t seed;
	const char *cluster; /* as people call it, for the report */
	bool validate;	     /* check every invariant after every step */
	/* how often a step begins with an engine loaded from the bytes of the one
	 * before: it must not matter */
	uint32_t reload_milli;
	bool list_job_events;	 /* fill job_events */
	bool time_decisions;	 /* fill decision_p99_ns */
	_Atomic uint64_t *ended; /* counts jobs as they end, for a progress bar; NULL: no callback */
	const atomic_bool *stop; /* set: end now with SW_ESTOPPED; NULL: never */
};

/* Runs to the end of the last job. */
int sw_simulate(const struct sw_sim_config *config, struct sw_result **ret_result, struct sw_err *err);

#endif
