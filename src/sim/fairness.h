/* How evenly a simulated cluster served its jobs and its tenants: what any of them had to wait,
 * relative to what it asked for.
 *
 * The slowdown of a job is the time from submit to end over its work, the time it needs alone. That
 * of a tenant is the same over all of its finished jobs together, weighted by GPUs. It is GPU time
 * from submit to end over that of work. Served fairly, all tenants have the slowdown of the whole
 * cluster. */
#ifndef SW_SIM_FAIRNESS_H
#define SW_SIM_FAIRNESS_H

#include "sim/result.h"

/* Shorter jobs than this count as this long in the worst slowdown. A job of one second that starts
 * after a minute is not 60 times worse off. */
#define SW_FAIRNESS_SHORT_NS INT64_C(60000000000)

/* Fills the figures of fairness in the summary from `outcomes`. SW_ENOMEM leaves them 0. */
int sw_fairness_summarise(const struct sw_result *result, struct sw_summary *summary);

#endif
