/* New traces that look like Philly's: how jobs arrive, how large and how long they are, and how
 * unevenly tenants submit.
 *
 * Follows the figures in philly_figures.h: the mix of sizes, the durations of each size, and the
 * tenants' shares. So are the hours and weekdays at which people submit, and the bursts in which
 * they submit. Not followed: which tenant runs long or large jobs, and jobs that recur on the
 * clock. Same recipe, same trace, on every machine and compiler: there is no floating point in it.
 */
#ifndef SW_SIM_TRACE_GENERATE_H
#define SW_SIM_TRACE_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/trace/trace.h"

struct sw_trace_mix {
	const char *model;
	uint32_t weight;
};

struct sw_trace_recipe {
	uint64_t jobs;
	uint64_t seed;
	uint64_t gpus;	       /* of the cluster it is meant for */
	uint32_t load_milli;   /* GPU time of all jobs over what the cluster has between first and last submit: 900 is 90 % */
	uint32_t max_job_gpus; /* larger jobs are made smaller; 0: only the cluster's size is a bound */
	uint32_t tenants;
	uint32_t opportunistic_milli; /* share of jobs, as are the next two */
	uint32_t deadline_milli;
	uint32_t elastic_milli;		/* half to twice the GPUs asked for */
	uint32_t soft_milli;		/* share of the deadlines */
	const struct sw_trace_mix *mix; /* NULL: a mix of models known from the public traces */
	size_t mix_count;
};

/* 10,000 guaranteed jobs of 15 tenants for 1,000 GPUs at 90 % load. */
struct sw_trace_recipe sw_trace_recipe_default(void);

/* Submit times and durations are whole seconds; time zero is a Monday, 00:00. The first job is
 * submitted at 0. A job that has a deadline gets 1.1 to 3 times its duration. A recipe that makes
 * no sense gives SW_EINPUT. */
int sw_trace_generate(const struct sw_trace_recipe *recipe, struct sw_trace **ret_trace, struct sw_err *err);

#endif
