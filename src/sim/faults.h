/* What breaks, and when: nodes by an exponential clock, runs of jobs by a coin. Seeded; draws the
 * same numbers whatever the policy does with them. */
#ifndef SW_SIM_FAULTS_H
#define SW_SIM_FAULTS_H

#include "core/topology.h"
#include "world/world.h"

struct sw_faults;

int sw_faults_new(const struct sw_world *world, const struct sw_topology *topology, uint64_t seed, struct sw_faults **ret_faults);
void sw_faults_free(struct sw_faults *faults);

/* When a node next breaks or comes back; INT64_MAX: never. */
int64_t sw_faults_next(const struct sw_faults *faults);
/* A node that breaks (*ret_up false) or comes back at or before `now`; false when there is no
 * more. Call until then. */
bool sw_faults_take(struct sw_faults *faults, int64_t now, uint32_t *ret_node, bool *ret_up);
/* Whether the run number `run` of this job fails, and after which thousandth of it. */
bool sw_faults_run_fails(const struct sw_faults *faults, uint32_t job, uint32_t run, uint32_t *ret_at_milli);

#endif
