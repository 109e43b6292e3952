/* From a request to records. See propose.c. */
#ifndef SW_BRAIN_PROPOSE_H
#define SW_BRAIN_PROPOSE_H

#include "brain/state.h"

/* Of a job that has ended, here or as the driver remembers it; false: it has not, or is not
 * known. */
bool sw_brain_find_fate(const struct sw_brain *brain, uint64_t job, struct sw_fate *ret_fate);

#endif
