/* Failures of runs, and what is done about them. See trouble.c. */
#ifndef SW_BRAIN_TROUBLE_H
#define SW_BRAIN_TROUBLE_H

#include "brain/state.h"

/* The cause that a report gives for the end of one part of a run. */
int sw_brain_note_failure(struct sw_brain *brain, uint32_t id, uint32_t node, json_t *failure, struct sw_err *err);
/* The whole run has ended, well or badly; or it was interrupted from outside, at least in part. */
int sw_brain_end_run(struct sw_brain *brain, uint32_t id, bool interrupted, struct sw_err *err);
/* Notes for the user whether the request names an input that others failed on. */
void sw_brain_warn(const struct sw_brain *brain, struct sw_live *live, const struct sw_job_request *request);
uint64_t sw_brain_command_key(const struct sw_job_request *request);

#endif
