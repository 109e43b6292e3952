#include "world/gpu_rules.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WATTS_MAX 1000000
#define SPEED_MAX_MILLI 1000000

void sw_gpu_rules_release(struct sw_gpu_rules *rules)
{
	for (size_t r = 0; r < rules->list.count; r++) {
		struct sw_gpu_rule *rule = &rules->list.items[r];
		for (size_t m = 0; m < rule->models.count; m++)
			free(rule->models.items[m].model);
		sw_vec_free(&rule->models);
		free(rule->name);
	}
	sw_vec_free(&rules->list);
}

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "cannot read world: out of memory");
}

static int read_models(const struct sw_yaml_node *node, struct sw_gpu_rule *rule, struct sw_err *err)
{
	static const struct sw_yaml_field field = {NULL, SW_YAML_MILLI, .min = 1, .max = SPEED_MAX_MILLI};
	for (const struct sw_yaml_node *member = node != NULL ? node->first : NULL; member != NULL; member = member->next) {
		int64_t speed = 0;
		int r = sw_yaml_value(member, &field, &speed, err);
		if (r < 0)
			return r;
		struct sw_gpu_model *model = sw_vec_push(&rule->models);
		if (model == NULL || (model->model = strdup(member->key)) == NULL)
			return no_memory(err);
		model->speed_milli = speed;
	}
	return 0;
}

static int read_rule(const struct sw_yaml_node *node, struct sw_gpu_rule *rule, struct sw_err *err)
{
	struct file {
		int64_t speed_milli, busy_watts, idle_watts, node_watts;
		const struct sw_yaml_node *models;
	} file = {.speed_milli = 1000};
	static const struct sw_yaml_field fields[] = {
		{"speed", SW_YAML_MILLI, .offset = offsetof(struct file, speed_milli), .min = 1, .max = SPEED_MAX_MILLI},
		{"power", SW_YAML_WATTS, .offset = offsetof(struct file, busy_watts), .max = WATTS_MAX},
		{"idle", SW_YAML_WATTS, .offset = offsetof(struct file, idle_watts), .max = WATTS_MAX},
		{"node", SW_YAML_WATTS, .offset = offsetof(struct file, node_watts), .max = WATTS_MAX},
		{"models", SW_YAML_MAP, .offset = offsetof(struct file, models), .max = SW_GPU_RULE_MODELS_MAX},
	};
	int r = sw_yaml_decode(node, "a type of GPUs", fields, SW_YAML_COUNT(fields), &file, err);
	if (r < 0)
		return r;
	if (file.idle_watts > file.busy_watts)
		return sw_yaml_fail(node, err, "'idle' is above 'power', which is what a busy GPU draws");
	rule->speed_milli = file.speed_milli;
	rule->busy_watts = file.busy_watts;
	rule->idle_watts = file.idle_watts;
	rule->node_watts = file.node_watts;
	return read_models(file.models, rule, err);
}

int sw_gpu_rules_read(const struct sw_yaml_node *node, struct sw_gpu_rules *rules, struct sw_err *err)
{
	if (node == NULL)
		return 0;
	sw_gpu_rules_release(rules);
	for (const struct sw_yaml_node *member = node->first; member != NULL; member = member->next) {
		struct sw_gpu_rule *rule = sw_vec_push(&rules->list);
		if (rule == NULL || (rule->name = strdup(member->key)) == NULL)
			return no_memory(err);
		int r = read_rule(member, rule, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whether `part` is in `text`, letters being equal in both cases. */
static bool has_part(const char *text, const char *part)
{
	size_t size = strlen(part);
	for (; *text != '\0'; text++) {
		size_t same = 0;
		while (same < size && tolower((unsigned char)text[same]) == tolower((unsigned char)part[same]))
			same++;
		if (same == size)
			return true;
	}
	return false;
}

const struct sw_gpu_rule *sw_gpu_rule_for(const struct sw_gpu_rules *rules, const char *name)
{
	const struct sw_gpu_rule *best = NULL;
	for (size_t r = 0; r < rules->list.count; r++) {
		const struct sw_gpu_rule *rule = &rules->list.items[r];
		if (has_part(name, rule->name) && (best == NULL || strlen(rule->name) > strlen(best->name)))
			best = rule;
	}
	return best;
}

static void say_watts(FILE *out, const char *what, int64_t watts)
{
	if (watts != 0)
		fprintf(out, ", %s %" PRId64 " W", what, watts);
}

void sw_gpu_rules_say(FILE *out, const struct sw_gpu_rules *rules)
{
	for (size_t r = 0; r < rules->list.count; r++) {
		const struct sw_gpu_rule *rule = &rules->list.items[r];
		fprintf(out, "  GPU type %s: %" PRId64 ".%03" PRId64 " times the speed of the reference", rule->name,
			rule->speed_milli / 1000, rule->speed_milli % 1000);
		if (rule->models.count > 0)
			fprintf(out, ", another for %zu model%s", rule->models.count, rule->models.count == 1 ? "" : "s");
		say_watts(out, "busy", rule->busy_watts);
		say_watts(out, "idle", rule->idle_watts);
		say_watts(out, "a node without its GPUs", rule->node_watts);
		fputs("\n", out);
	}
}
