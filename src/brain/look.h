/* What people see of jobs, nodes and the cluster. See look.c. */
#ifndef SW_BRAIN_LOOK_H
#define SW_BRAIN_LOOK_H

#include "brain/state.h"

/* The first of what the job waits for that is still to come; NULL: it waits for no job. */
const struct sw_depend *sw_brain_awaits(const struct sw_live *live);

#endif
