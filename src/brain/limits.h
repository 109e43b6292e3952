/* Limits of running jobs. See limits.c. */
#ifndef SW_BRAIN_LIMITS_H
#define SW_BRAIN_LIMITS_H

#include "brain/state.h"

int sw_brain_apply_limit(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* Puts what the job may have of its GPUs now into the wish for a part of its run. */
void sw_brain_limit(const struct sw_brain *brain, uint32_t id, struct sw_want *want);

#endif
