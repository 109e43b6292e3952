/* What an order of a run (sync.h) may carry. That is what a request for a job may say, and what is
 * added to it on the way. A test makes an order of each bound of a request's table. */
#ifndef SW_API_BOUNDS_H
#define SW_API_BOUNDS_H

#include <stdint.h>

#include "api/job.h"

/* Variables that are added to a job's environment. They are its place in an array, twice, that it
 * is a pre-run, and how the run is set up. */
#define SW_SPEC_ENV_ADDED 7u
#define SW_SPEC_ENV_MAX (SW_JOB_ENV_MAX + SW_SPEC_ENV_ADDED)
/* What is asked for each GPU is given for all that the run has on a node. */
#define SW_SPEC_GPUS_MAX 64u
#define SW_SPEC_CPUS_MAX (SW_JOB_CPUS_MAX * SW_SPEC_GPUS_MAX)
/* Parts of a millisecond count as a whole one: nothing that was asked for becomes nothing. */
#define SW_SPEC_DURATION_MAX_MS ((SW_JOB_DURATION_MAX_NS + INT64_C(999999)) / INT64_C(1000000))
#define SW_SPEC_SIGNAL_MAX SW_JOB_SIGNAL_MAX

#endif
