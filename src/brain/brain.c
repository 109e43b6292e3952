#include "brain/brain.h"

#include <stdlib.h>
#include <string.h>

#include "brain/arrays.h"
#include "brain/asked.h"
#include "brain/gpu_types.h"
#include "brain/keys.h"
#include "brain/known.h"
#include "brain/state.h"
#include "contention/crowd.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "world/alone.h"

/* ---- finding */

struct sw_live *sw_brain_live(const struct sw_brain *brain, uint64_t id)
{
	return id >= 1 && id <= brain->jobs.count && sw_bitmap_has(&brain->known, (uint32_t)(id - 1)) ? &brain->jobs.items[id - 1] : NULL;
}

struct sw_live *sw_brain_add(struct sw_brain *brain)
{
	if (sw_table_reserve(&brain->jobs, brain->jobs.count + 1) < 0 ||
	    sw_bitmap_reserve(&brain->known, (uint32_t)brain->jobs.count + 1) < 0 ||
	    sw_heap_make_room(&brain->retries, (uint32_t)brain->jobs.count + 1, brain->known.count + 1) < 0)
		return NULL;
	sw_bitmap_add(&brain->known, (uint32_t)brain->jobs.count);
	return &brain->jobs.items[brain->jobs.count++];
}

void sw_brain_drop_live(struct sw_live *live)
{
	sw_asked_drop(live->asked);
	free(live->name);
	free(live->model);
	free(live->depends);
	sw_array_leave(live);
	free(live->runs);
	free(live->warning);
	free(live->not_deep);
	free(live->unmoved);
	if (live->trouble != NULL)
		free(live->trouble->cause.line);
	free(live->trouble);
	free(live->pace);
	free(live->stop);
	*live = (struct sw_live){0};
}

struct sw_brain_node *sw_brain_find_node(const struct sw_brain *brain, const char *name)
{
	uint32_t index = sw_names_find(&brain->node_index, name);
	return index != SW_NAMES_NONE ? &brain->nodes.items[index] : NULL;
}

struct sw_run *sw_brain_run_on(const struct sw_live *live, uint32_t node)
{
	for (uint32_t r = 0; r < live->run_count; r++)
		if (live->runs[r].node == node)
			return &live->runs[r];
	return NULL;
}

bool sw_brain_may_change(const struct sw_user *user, const struct sw_live *live)
{
	return user->is_operator || user->uid == live->uid;
}

const struct sw_policy *sw_brain_find_policy(const struct sw_brain_config *config, const char *name)
{
	if (config->plugin != NULL && strcmp(config->plugin->name, name) == 0)
		return config->plugin;
	return sw_policy_find(name);
}

/* ---- life */

int sw_brain_engine_config(struct sw_brain *brain, struct sw_engine_config *ret_config, struct sw_err *err)
{
	const struct sw_brain_config *config = &brain->config;
	const struct sw_placement *placement = NULL;
	for (size_t p = 0; sw_placements[p] != NULL; p++)
		if (strcmp(sw_placements[p]->name, config->placement) == 0)
			placement = sw_placements[p];
	const struct sw_policy *policy = sw_brain_find_policy(config, config->policy);
	if (policy == NULL || placement == NULL)
		return sw_err_set(err, SW_ENOTFOUND, "there is no %s '%s'", policy == NULL ? "policy" : "placement rule",
				  policy == NULL ? config->policy : config->placement);
	int r = sw_brain_make_known(brain, err);
	if (r < 0)
		return r;
	*ret_config = (struct sw_engine_config){
		.policy = policy,
		.fallback = &sw_policy_fifo,
		.placement = placement,
		.seed = config->seed,
		.terms = brain->terms,
		.predictor = {brain->crowd, brain->crowd != NULL ? sw_crowd_speeds : NULL},
		.scaler = sw_alone_scaler(brain->alone),
		.gpu_types = brain->alone != NULL ? sw_alone_types(brain->alone) : NULL,
	};
	return 0;
}

int sw_brain_find_failures(struct sw_brain *brain, struct sw_err *err)
{
	int r = brain->config.failures == NULL ? sw_failure_load(NULL, &brain->own_failures, err) : 0;
	brain->failures = brain->config.failures == NULL ? brain->own_failures : brain->config.failures;
	return r;
}

int sw_brain_new(const struct sw_brain_config *config, struct sw_brain **ret_brain, struct sw_err *err)
{
	SW_CLEANUP(sw_brain_freep) struct sw_brain *brain = calloc(1, sizeof *brain);
	SW_CLEANUP(sw_topology_freep) struct sw_topology *nothing = NULL;
	if (brain == NULL || sw_topology_new_empty(&nothing) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	brain->config = *config;
	brain->wake_at = SW_TIME_NEVER;
	brain->terms = sw_terms_unsaid;
	struct sw_engine_config engine;
	int r = sw_brain_engine_config(brain, &engine, err);
	engine.topology = nothing;
	if (r == 0)
		r = sw_engine_new(&engine, &brain->engine, err);
	if (r == 0)
		r = sw_brain_find_failures(brain, err);
	if (r < 0)
		return r;
	*ret_brain = SW_TAKE(brain);
	return 0;
}

void sw_brain_free(struct sw_brain *brain)
{
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		sw_brain_drop_live(&brain->jobs.items[id]);
	for (size_t n = 0; n < brain->nodes.count; n++) {
		free(brain->nodes.items[n].name);
		free(brain->nodes.items[n].gpus);
		sw_vec_free(&brain->nodes.items[n].jobs);
		sw_vec_free(&brain->nodes.items[n].ghosts);
	}
	for (size_t t = 0; t < brain->tenants.count; t++)
		free(brain->tenants.items[t]);
	sw_job_request_free(brain->model);
	sw_asked_drop(brain->model_of);
	if (brain->engine != NULL)
		sw_engine_free(brain->engine);
	if (brain->params != NULL)
		sw_params_free(brain->params);
	sw_table_free(&brain->jobs);
	sw_bitmap_release(&brain->known);
	sw_vec_free(&brain->nodes);
	sw_vec_free(&brain->tenants);
	sw_names_release(&brain->node_index);
	sw_names_release(&brain->tenant_index);
	free(brain->policy);
	free(brain->settings);
	free(brain->world);
	sw_vec_free(&brain->past.jobs);
	sw_vec_free(&brain->lengths.items);
	sw_vec_free(&brain->stranded);
	sw_keys_release(&brain->keys);
	sw_vec_free(&brain->inputs);
	sw_vec_free(&brain->spent);
	sw_failure_free(brain->own_failures);
	sw_brain_free_known(brain);
	sw_brain_free_gpu_types(brain);
	sw_heap_release(&brain->retries);
	free(brain->uses.items);
	free(brain);
}
