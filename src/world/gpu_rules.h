/* What a world says of types of GPUs: how fast they are and what they draw. See world.h.
 *
 *	gpu_types:
 *	  v100: {speed: 0.5, power: 300 W, idle: 50 W, node: 400 W, models: {resnet50: 0.6}}
 */
#ifndef SW_WORLD_GPU_RULES_H
#define SW_WORLD_GPU_RULES_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/vec.h"
#include "base/yaml.h"

#define SW_GPU_RULES_MAX 64
#define SW_GPU_RULE_MODELS_MAX 256

struct sw_gpu_model {
	char *model;
	int64_t speed_milli;
};

/* Of GPUs whose name has this one in it. */
struct sw_gpu_rule {
	char *name;
	int64_t speed_milli;			    /* of the reference type */
	int64_t idle_watts, busy_watts, node_watts; /* of a GPU; of a node without its GPUs. 0: unknown */
	SW_VEC(struct sw_gpu_model) models;	    /* for which the speed is another */
};

struct sw_gpu_rules {
	SW_VEC(struct sw_gpu_rule) list; /* in the order of the file */
};

/* Those of this map, in the place of what was there. */
int sw_gpu_rules_read(const struct sw_yaml_node *node, struct sw_gpu_rules *rules, struct sw_err *err);
/* The rule for a GPU of this name: the longest that is in it, in any case; NULL: none is. */
const struct sw_gpu_rule *sw_gpu_rule_for(const struct sw_gpu_rules *rules, const char *name);
/* Lines for people. */
void sw_gpu_rules_say(FILE *out, const struct sw_gpu_rules *rules);
void sw_gpu_rules_release(struct sw_gpu_rules *rules);

#endif
