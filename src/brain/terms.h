/* The terms in force, as a record of a world gave them. See terms.c. */
#ifndef SW_BRAIN_TERMS_H
#define SW_BRAIN_TERMS_H

#include "brain/state.h"

/* How its engine is made, by its configuration. */
/* The terms of a world record; the brain holds to that of `world`. */
int sw_brain_check_world(const json_t *body, struct sw_err *err);
int sw_brain_apply_world(struct sw_brain *brain, const json_t *body, struct sw_err *err);
int sw_brain_load_world(struct sw_brain *brain, struct sw_err *err);

#endif
