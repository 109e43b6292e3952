#include "world/alone.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE 1000u
#define SLOWEST 1000000u
#define REMEMBERED 256u

/* The speed of one model on one type. */
struct exception {
	uint32_t gpu_type, model;
	uint32_t speed_milli;
};

/* What a world says of the types of a cluster. */
struct told {
	struct sw_gpu_types types;
	char *names; /* theirs, one after the other */
	SW_VEC(struct exception) exceptions;
	bool speeds; /* not all types are as fast as the reference */
};

struct sw_alone {
	const struct sw_profiles *profiles;
	struct told told;
	bool placement;
	const struct sw_profile *remembered[REMEMBERED]; /* by number; NULL: none is */
};

/* ---- types */

static int add_exceptions(const struct sw_profiles *profiles, struct told *made, const struct sw_gpu_rule *rule, uint32_t gpu_type)
{
	for (size_t m = 0; rule != NULL && m < rule->models.count; m++) {
		struct exception *exception = sw_vec_push(&made->exceptions);
		if (exception == NULL)
			return SW_ENOMEM;
		const struct sw_profile *profile = sw_profiles_find(profiles, rule->models.items[m].model);
		*exception = (struct exception){gpu_type, profile->number, (uint32_t)rule->models.items[m].speed_milli};
		made->speeds |= exception->speed_milli != WHOLE;
	}
	return 0;
}

static int make_told(const struct sw_profiles *profiles, struct told *made, const struct sw_gpu_rules *rules, const char *const *names,
		     size_t count)
{
	size_t size = 1;
	made->types.count = (uint32_t)(count < SW_GPU_TYPES_MAX ? count : SW_GPU_TYPES_MAX);
	for (uint32_t t = 0; t < made->types.count; t++)
		size += strlen(names[t]) + 1;
	char *at = made->names = malloc(size);
	if (at == NULL)
		return SW_ENOMEM;
	for (uint32_t t = 0; t < made->types.count; t++) {
		const struct sw_gpu_rule *rule = sw_gpu_rule_for(rules, names[t]);
		struct sw_gpu_type *type = &made->types.items[t];
		*type = (struct sw_gpu_type){.name = at, .speed_milli = WHOLE};
		at = stpcpy(at, names[t]) + 1;
		if (rule != NULL) {
			type->speed_milli = (uint32_t)rule->speed_milli;
			type->idle_watts = (uint32_t)rule->idle_watts;
			type->busy_watts = (uint32_t)rule->busy_watts;
			made->types.has_power |= type->busy_watts != 0;
			type->node_watts = (uint32_t)rule->node_watts;
		}
		made->speeds |= type->speed_milli != WHOLE;
		if (add_exceptions(profiles, made, rule, t) < 0)
			return SW_ENOMEM;
	}
	return 0;
}

static void drop_told(struct told *told)
{
	free(told->names);
	sw_vec_free(&told->exceptions);
}

int sw_alone_set_types(struct sw_alone *alone, const struct sw_gpu_rules *rules, const char *const *names, size_t count)
{
	struct told made = {0};
	if (make_told(alone->profiles, &made, rules, names, count) < 0) {
		drop_told(&made);
		return SW_ENOMEM;
	}
	drop_told(&alone->told);
	alone->told = made;
	return 0;
}

const struct sw_gpu_types *sw_alone_types(const struct sw_alone *alone)
{
	return &alone->told.types;
}

bool sw_alone_has_speeds(const struct sw_alone *alone)
{
	return alone->told.speeds;
}

/* ---- life */

int sw_alone_new(const struct sw_profiles *profiles, struct sw_alone **ret_alone, struct sw_err *err)
{
	struct sw_alone *alone = calloc(1, sizeof *alone);
	if (alone == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	alone->profiles = profiles;
	*ret_alone = alone;
	return 0;
}

void sw_alone_free(struct sw_alone *alone)
{
	if (alone == NULL)
		return;
	drop_told(&alone->told);
	free(alone);
}

void sw_alone_set_placement(struct sw_alone *alone, bool slows)
{
	alone->placement = slows;
}

void sw_alone_forget(struct sw_alone *alone)
{
	memset(alone->remembered, 0, sizeof alone->remembered);
}

/* ---- answers */

/* Of the slowest of these types. */
static uint32_t type_speed(const struct sw_alone *alone, uint32_t model, uint64_t types)
{
	uint32_t slowest = UINT32_MAX;
	for (; types != 0; types &= types - 1) {
		uint32_t type = (uint32_t)__builtin_ctzll(types);
		uint32_t speed = type < alone->told.types.count ? alone->told.types.items[type].speed_milli : WHOLE;
		for (size_t e = 0; e < alone->told.exceptions.count && model != 0; e++)
			if (alone->told.exceptions.items[e].gpu_type == type && alone->told.exceptions.items[e].model == model)
				speed = alone->told.exceptions.items[e].speed_milli;
		slowest = speed < slowest ? speed : slowest;
	}
	return slowest == UINT32_MAX ? WHOLE : slowest;
}

/* A job with fewer CPUs than it asked for waits for them once it needs more than it has. */
static uint64_t without_cpus(const struct sw_profile *profile, const struct sw_run_shape *shape)
{
	uint64_t needs = (uint64_t)profile->use_milli[SW_USE_HOST_CPU] * shape->cpus_asked / shape->cpus;
	return needs > WHOLE ? needs : WHOLE;
}

uint32_t sw_alone_slow_milli(const struct sw_alone *alone, const struct sw_profile *profile, const struct sw_run_shape *shape)
{
	uint64_t slow = WHOLE;
	if (shape->split_milli != 0)
		slow = shape->split_milli; /* the way between the parts is in it */
	else if (alone->placement)
		slow = sw_profile_placement_milli(profile, (enum sw_profile_spread)shape->distance, (enum sw_profile_spread)shape->best);
	if (shape->gpus != shape->gpus_asked && shape->split_milli == 0) {
		uint64_t asked = alone->placement ? sw_profile_speed_milli(profile, shape->gpus_asked) : shape->gpus_asked;
		uint64_t held = alone->placement ? sw_profile_speed_milli(profile, shape->gpus) : shape->gpus;
		slow = slow * asked / (held == 0 ? 1 : held);
	}
	if (shape->cpus != 0 && shape->cpus < shape->cpus_asked)
		slow = slow * without_cpus(profile, shape) / WHOLE;
	if (alone->told.speeds)
		slow = slow * WHOLE / type_speed(alone, profile->number, shape->gpu_types);
	return slow < 1 ? 1 : slow > SLOWEST ? SLOWEST : (uint32_t)slow;
}

static const struct sw_profile *profile_of(struct sw_alone *alone, uint32_t number)
{
	const struct sw_profile **slot = &alone->remembered[number % REMEMBERED];
	if (*slot == NULL || (*slot)->number != number)
		*slot = sw_profiles_by_number(alone->profiles, number);
	return *slot;
}

static bool slow(void *context, const struct sw_run_shape *shape, uint32_t *ret_slow_milli)
{
	struct sw_alone *alone = context;
	bool usual = shape->gpus == shape->gpus_asked && shape->distance <= shape->best && shape->split_milli == 0 &&
		     (shape->cpus == 0 || shape->cpus >= shape->cpus_asked);
	*ret_slow_milli = WHOLE;
	if (usual && !alone->told.speeds)
		return true;
	const struct sw_profile *profile = profile_of(alone, shape->model);
	*ret_slow_milli = sw_alone_slow_milli(alone, profile, shape);
	bool by_profile = alone->placement || (shape->cpus != 0 && shape->cpus < shape->cpus_asked);
	return usual || !by_profile || !profile->is_default;
}

struct sw_scaler sw_alone_scaler(struct sw_alone *alone)
{
	return (struct sw_scaler){alone, alone != NULL ? slow : NULL};
}
