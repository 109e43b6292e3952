/* Jobs that have ended leave. See forget.c. */
#ifndef SW_BRAIN_FORGET_H
#define SW_BRAIN_FORGET_H

#include "brain/state.h"

/* Whether the number was given to a job that is not known any more: a record
 * that names it came late. */
bool sw_brain_has_left(const struct sw_brain *brain, int64_t job);
/* The job has ended. 0 or SW_ENOMEM. */
int sw_brain_note_end(struct sw_brain *brain, uint32_t job);
/* After a load: lists those that have ended. 0 or SW_ENOMEM. */
int sw_brain_list_past(struct sw_brain *brain);
sw_ns sw_brain_forgets_at(const struct sw_brain *brain);
/* At most one record, for those whose time is over. */
int sw_brain_propose_forget(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err);
int sw_brain_apply_forget(struct sw_brain *brain, json_t *body, struct sw_err *err);

#endif
