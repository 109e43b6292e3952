/* Types of GPUs in the live cluster. A type gets a number when a node with such GPUs joins first,
 * and keeps it. What is known of it is what the world in force says of its name, and may change.
 *
 * Type 0 is that of GPUs without a name and of nodes whose GPUs differ. It is also that of nodes
 * that joined before types were recorded, until their GPUs change.
 */
#include <stdlib.h>
#include <string.h>

#include "brain/gpu_types.h"
#include "world/alone.h"

#define NAMELESS "gpu"
#define SPEED_MAX_MILLI 1000000
#define WATTS_MAX 1000000

json_t *sw_brain_gpu_name(const struct sw_sync_inventory *inventory)
{
	const char *name = inventory->gpu_count > 0 ? inventory->gpus[0].name : NULL;
	for (size_t g = 1; g < inventory->gpu_count; g++)
		if (name == NULL || inventory->gpus[g].name == NULL || strcmp(inventory->gpus[g].name, name) != 0)
			return NULL;
	return name != NULL && name[0] != '\0' ? json_string(name) : NULL;
}

int sw_brain_find_gpu_type(struct sw_brain *brain, const char *name, uint32_t *ret_type)
{
	*ret_type = 0;
	for (uint32_t t = 0; name != NULL && t < brain->gpu_types.count; t++)
		if (strcmp(brain->gpu_types.items[t], name) == 0)
			*ret_type = t + 1;
	if (name == NULL || *ret_type != 0 || brain->gpu_types.count + 1 >= SW_GPU_TYPES_MAX)
		return 0;
	char *copy = strdup(name), **slot = copy != NULL ? sw_vec_push(&brain->gpu_types) : NULL;
	if (slot == NULL) {
		free(copy);
		return SW_ENOMEM;
	}
	*slot = copy;
	*ret_type = (uint32_t)brain->gpu_types.count;
	return sw_brain_tell_gpu_types(brain);
}

int sw_brain_tell_gpu_types(struct sw_brain *brain)
{
	const char *names[SW_GPU_TYPES_MAX] = {NAMELESS};
	if (brain->alone == NULL)
		return 0;
	for (size_t t = 0; t < brain->gpu_types.count; t++)
		names[t + 1] = brain->gpu_types.items[t];
	sw_alone_set_placement(brain->alone, brain->terms.placement);
	sw_alone_forget(brain->alone);
	return sw_alone_set_types(brain->alone, &brain->gpu_rules, names, brain->gpu_types.count + 1);
}

/* ---- in a record */

static json_t *rule_to_json(const struct sw_gpu_rule *rule)
{
	json_t *models = json_array();
	for (size_t m = 0; m < rule->models.count; m++)
		json_array_append_new(models, json_pack("{s:s, s:I}", "model", rule->models.items[m].model, "speed_milli",
							(json_int_t)rule->models.items[m].speed_milli));
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "name", rule->name, "speed_milli", (json_int_t)rule->speed_milli, "idle_watts",
			 (json_int_t)rule->idle_watts, "busy_watts", (json_int_t)rule->busy_watts, "node_watts",
			 (json_int_t)rule->node_watts, "models", models);
}

json_t *sw_brain_gpu_rules_to_json(const struct sw_gpu_rules *rules)
{
	if (rules == NULL || rules->list.count == 0)
		return NULL;
	json_t *array = json_array();
	for (size_t r = 0; r < rules->list.count; r++)
		json_array_append_new(array, rule_to_json(&rules->list.items[r]));
	return array;
}

static bool is_within(json_int_t value, json_int_t least, json_int_t most)
{
	return value >= least && value <= most;
}

static int read_models(const json_t *array, struct sw_gpu_rule *rule)
{
	for (size_t m = 0; m < json_array_size(array); m++) {
		const json_t *object = json_array_get(array, m);
		const char *name = json_string_value(json_object_get(object, "model"));
		json_int_t speed = json_integer_value(json_object_get(object, "speed_milli"));
		if (name == NULL || !is_within(speed, 1, SPEED_MAX_MILLI) || m >= SW_GPU_RULE_MODELS_MAX)
			return SW_EINPUT;
		struct sw_gpu_model *model = sw_vec_push(&rule->models);
		if (model == NULL || (model->model = strdup(name)) == NULL)
			return SW_ENOMEM;
		model->speed_milli = speed;
	}
	return 0;
}

static int read_rule(const json_t *object, struct sw_gpu_rule *rule)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	rule->speed_milli = json_integer_value(json_object_get(object, "speed_milli"));
	rule->idle_watts = json_integer_value(json_object_get(object, "idle_watts"));
	rule->busy_watts = json_integer_value(json_object_get(object, "busy_watts"));
	rule->node_watts = json_integer_value(json_object_get(object, "node_watts"));
	if (name == NULL || !is_within(rule->speed_milli, 1, SPEED_MAX_MILLI) || !is_within(rule->idle_watts, 0, WATTS_MAX) ||
	    !is_within(rule->busy_watts, 0, WATTS_MAX) || !is_within(rule->node_watts, 0, WATTS_MAX))
		return SW_EINPUT;
	rule->name = strdup(name);
	return rule->name != NULL ? read_models(json_object_get(object, "models"), rule) : SW_ENOMEM;
}

int sw_brain_gpu_rules_from_json(const json_t *array, struct sw_gpu_rules *ret_rules, struct sw_err *err)
{
	struct sw_gpu_rules rules = {0};
	int r = array == NULL || (json_is_array(array) && json_array_size(array) <= SW_GPU_RULES_MAX) ? 0 : SW_EINPUT;
	for (size_t i = 0; r == 0 && i < json_array_size(array); i++) {
		struct sw_gpu_rule *rule = sw_vec_push(&rules.list);
		r = rule != NULL ? read_rule(json_array_get(array, i), rule) : SW_ENOMEM;
	}
	if (r == 0)
		*ret_rules = rules;
	else
		sw_gpu_rules_release(&rules);
	return r == 0 ? 0 : sw_err_set(err, r, r == SW_ENOMEM ? "out of memory" : "the types of GPUs of a world are out of their bounds");
}

/* ---- as bytes */

void sw_brain_pack_gpu_types(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = brain->gpu_types.count;
	sw_pack_count(pack, &count);
	if (count >= SW_GPU_TYPES_MAX)
		sw_pack_fail(pack);
	for (size_t t = 0; t < count && pack->failed == 0; t++) {
		char **name = pack->reads ? sw_vec_push(&brain->gpu_types) : &brain->gpu_types.items[t];
		if (name == NULL)
			pack->failed = SW_ENOMEM;
		else
			sw_pack_text(pack, name);
	}
}

void sw_brain_free_gpu_types(struct sw_brain *brain)
{
	for (size_t t = 0; t < brain->gpu_types.count; t++)
		free(brain->gpu_types.items[t]);
	sw_vec_free(&brain->gpu_types);
	sw_gpu_rules_release(&brain->gpu_rules);
}
