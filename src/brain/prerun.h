/* Trial runs of gangs on one GPU. See prerun.c. */
#ifndef SW_BRAIN_PRERUN_H
#define SW_BRAIN_PRERUN_H

#include "brain/state.h"

/* The one-GPU request that goes before this one; NULL: out of memory. */
struct sw_job_request *sw_prerun_request(const struct sw_job_request *request);
/* The gang takes over how its pre-run failed; SW_ENOMEM. */
int sw_prerun_spoil(struct sw_live *gang, const struct sw_live *prerun);
/* It ran for as long as a pre-run should: that is no failure. */
void sw_prerun_pass(struct sw_live *prerun);
/* The pre-run that the job waits for, or waited for while it waits for something else still, as
 * people count; 0: none. */
uint64_t sw_prerun_of(const struct sw_live *live);

#endif
