/* Whether records fit, before they are stored. See check.c. */
#ifndef SW_BRAIN_CHECK_H
#define SW_BRAIN_CHECK_H

#include "brain/state.h"

int sw_brain_check(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_err *err);
int sw_brain_check_node(const struct sw_brain *brain, const char *name, size_t gpus, bool is_new, struct sw_err *err);
int sw_brain_check_jobs(const struct sw_brain *brain, uint64_t count, struct sw_err *err);

#endif
