/* How fast runs are. See speeds.c. */
#ifndef SW_BRAIN_SPEEDS_H
#define SW_BRAIN_SPEEDS_H

#include "brain/state.h"

int sw_brain_hear_speeds(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, uint32_t node, sw_records *records,
			 struct sw_err *err);
int sw_brain_apply_speeds(struct sw_brain *brain, json_t *body, struct sw_err *err);

#endif
