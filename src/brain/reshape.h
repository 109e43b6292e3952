/* Nodes that have other GPUs than they had. See reshape.c. */
#ifndef SW_BRAIN_RESHAPE_H
#define SW_BRAIN_RESHAPE_H

#include "brain/state.h"

#define SW_BRAIN_GPUS_GONE "its GPUs are gone"
/* It has this shape and these GPUs from now on, which it owns then, and is up; jobs on GPUs
 * that are gone start anew. */
int sw_brain_reshape(struct sw_brain *brain, struct sw_brain_node *node, const struct sw_topology_node *shape, struct sw_brain_gpu *gpus,
		     struct sw_err *err);

#endif
