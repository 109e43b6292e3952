/* GPUs that take no jobs. See shut.c. */
#ifndef SW_BRAIN_SHUT_H
#define SW_BRAIN_SHUT_H

#include "brain/state.h"

/* After a sync of the node: what is on its GPUs, and a record where others
 * take no jobs than before. */
int sw_brain_hear_shut(struct sw_brain_node *node, const struct sw_sync *sync, sw_records *records, struct sw_err *err);
/* Those of the sync, for a record; NULL: it does not know, or (unless `always`) there are none. */
json_t *sw_brain_list_shut(const struct sw_sync *sync, bool always);
/* Marks the GPUs by the list of a record; the engine is told of the mask. */
void sw_brain_take_shut(struct sw_brain_gpu *gpus, uint32_t count, const json_t *list);
uint64_t sw_brain_shut_mask(const struct sw_brain_gpu *gpus, uint32_t count);
int sw_brain_apply_shut(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* In words, which GPUs of the cluster take no jobs and why; "" where all do. */
void sw_brain_describe_shut(const struct sw_brain *brain, char *text, size_t size);
/* Adds what else uses the GPUs of a job that runs. */
void sw_brain_add_company(const struct sw_brain *brain, uint64_t id, char *text, size_t size);

#endif
