/* Cancel, hold, release, requeue. See changes.c. */
#ifndef SW_BRAIN_CHANGES_H
#define SW_BRAIN_CHANGES_H

#include "brain/state.h"

int sw_brain_apply_change(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_err *err);
/* What the last of changes that belong together does in the end, where it is still to come and
 * something else came instead; else nothing. */
int sw_brain_conclude_changes(struct sw_brain *brain, struct sw_err *err);

#endif
