/* Types of GPUs in the live cluster, by what their driver calls them. See gpu_types.c. */
#ifndef SW_BRAIN_GPU_TYPES_H
#define SW_BRAIN_GPU_TYPES_H

#include "brain/state.h"

/* What the record of a node says: the name of all its GPUs; NULL: they have none in common. */
json_t *sw_brain_gpu_name(const struct sw_sync_inventory *inventory);
/* The number of the type of this name; a new one where there is none. 0 too where there are too
 * many. 0 or SW_ENOMEM. */
int sw_brain_find_gpu_type(struct sw_brain *brain, const char *name, uint32_t *ret_type);
/* What a record of a world says of types, as JSON (NULL: nothing), and back. */
json_t *sw_brain_gpu_rules_to_json(const struct sw_gpu_rules *rules);
int sw_brain_gpu_rules_from_json(const json_t *array, struct sw_gpu_rules *ret_rules, struct sw_err *err);
/* The engine hears of types, rules or profiles that are others now. */
int sw_brain_tell_gpu_types(struct sw_brain *brain);
void sw_brain_pack_gpu_types(struct sw_pack *pack, struct sw_brain *brain);
void sw_brain_free_gpu_types(struct sw_brain *brain);

#endif
