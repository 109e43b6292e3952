/* Private to the policy philly: how near to each other the GPUs of a job must be. What the policy
 * is about stands in philly.c. */
#ifndef SW_POLICY_PHILLY_H
#define SW_POLICY_PHILLY_H

#include <sharewell/policy.h>

#define SW_PHILLY_LEVELS 4u

/* The levels as placement rules. Each takes the best place of its own level and those before it. */
extern const struct sw_placement sw_philly_levels[SW_PHILLY_LEVELS];

/* The first level at which the job would have a place were the cluster idle: there is no use in
 * waiting for an earlier one. */
uint32_t sw_philly_first_level(const struct sw_view *view, const struct sw_job *job);

#endif
