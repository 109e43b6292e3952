/* Reports and orders of agents. See agents.c. */
#ifndef SW_BRAIN_AGENTS_H
#define SW_BRAIN_AGENTS_H

#include "brain/state.h"

/* In the record of a run that has begun: suspended, it leaves its GPUs' memory to others. */
#define SW_BRAIN_FREES "frees"
/* The end of a run as its agent would have said it, and of a ghost (agents.c). */
int sw_brain_record_loss(const struct sw_brain *brain, const char *node, struct sw_run_id id, const char *reason, sw_records *records,
			 struct sw_err *err);
int sw_brain_record_gone(const char *node, struct sw_run_id id, sw_records *records, struct sw_err *err);

#endif
