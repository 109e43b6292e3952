/* The terms of the cluster's world: a record puts them in force, like a policy. Before the first
 * such record those of sw_terms_unsaid hold, under which older journals were written.
 *
 * The terms themselves are in the record, resolved, so that a later version reads the
 * same from it whatever its own world files say. The text of the world goes along for
 * people and for simulations.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "brain/fold.h"
#include "brain/gpu_types.h"
#include "brain/record.h"
#include "brain/state.h"
#include "brain/terms.h"
#include "contention/crowd.h"
#include "failure/decide.h"
#include "world/world.h"

static json_t *to_json(const struct sw_terms *terms)
{
	json_t *object = json_object();
	for (size_t r = 0; r < sw_term_count; r++)
		if (json_object_set_new(object, sw_term_rows[r].name, json_integer(sw_term_get(terms, &sw_term_rows[r]))) != 0) {
			json_decref(object);
			return NULL;
		}
	return object;
}

static int from_json(const json_t *object, struct sw_terms *ret_terms, struct sw_err *err)
{
	struct sw_terms terms = sw_terms_unsaid;
	size_t known = 0;
	for (size_t r = 0; r < sw_term_count; r++) {
		const json_t *value = json_object_get(object, sw_term_rows[r].name);
		known += value != NULL;
		if (value != NULL && (!json_is_integer(value) || sw_term_set(&terms, &sw_term_rows[r], json_integer_value(value)) < 0))
			return sw_err_set(err, SW_EINPUT, "the '%s' of a world is out of its bounds", sw_term_rows[r].name);
	}
	if (known != json_object_size(object))
		return sw_err_set(err, SW_ELIMIT, "the journal holds a world with terms that this version does not know");
	*ret_terms = terms;
	return 0;
}

static const char in_place[] = "a run that is stopped can go on where it was, and nowhere else ('preempt: in_place')";

/* What a live cluster cannot do; NULL: it can do all of it. */
static const char *find_beyond(const struct sw_terms *terms)
{
	if (terms->keeps_state)
		return in_place;
	if (terms->replace_is_free)
		return "running jobs cannot change places for nothing ('replace_is_free: false')";
	if (terms->moves == SW_MOVES_FREELY)
		return "running jobs are moved only where a policy asks for it ('moves: restart' or 'never')";
	if (terms->exact_ties)
		return "events cost running jobs nothing that could be set ('event_overhead')";
	if (terms->tells_speed)
		return "the speed of jobs is measured and not known before ('tells_speed: false')";
	if (terms->sharing != SW_SHARING_BY_SLICES)
		return "jobs on one GPU take turns ('sharing_slowdown: true', 'sharing_by: slices')";
	if (terms->nodes_switch)
		return "agents cannot switch nodes off and on yet ('nodes: {switch: false}')";
	if (terms->split_milli != 0)
		return "jobs are not split over GPUs yet ('split')";
	if (terms->guaranteed_stop == SW_STOP_AS_WORLD || terms->opportunistic_stop == SW_STOP_AS_WORLD)
		return "it must say how jobs may be stopped whose owners did not ('stops')";
	return NULL;
}

/* The same of what the terms do not say. Records are not asked: those of earlier versions are in
 * force with what was not heeded of them. */
static const char *find_unheeded(const struct sw_world *world)
{
	if (world->preempt != SW_PREEMPT_IN_PLACE)
		return in_place;
	if (world->gate_milli == 0)
		return "agents gate opportunistic jobs in any case ('gate', such as 1.02)";
	if (world->host_cpus_per_gpu != 0 || world->host_mem_per_gpu_bytes != 0)
		return "jobs take the cores and the host memory that they ask for ('host: {cpus_per_gpu: 0, memory_per_gpu: 0}')";
	static_assert(SW_FAILURE_RETRIES == 3, "the text says so");
	if (world->retries != SW_FAILURE_RETRIES)
		return "a job that does not say --retries is tried again three times ('faults: {retries: 3}')";
	if (world->learned != NULL && world->learned[0] != '\0')
		return "a cluster learns slowdowns by itself ('learned' is for simulations)";
	return NULL;
}

/* 0, or the reason for people. */
static int refuse_beyond(const char *name, const char *beyond, struct sw_err *err)
{
	if (beyond == NULL)
		return 0;
	sw_err_set(err, SW_EINPUT, "a live cluster cannot run the world '%.60s'", name);
	sw_err_detail(err, "%s", beyond);
	sw_err_hint(err, "Begin a file of your own with 'base: live', and say there what is different.");
	return SW_EINPUT;
}

static bool has_jobs(const struct sw_brain *brain)
{
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		if (!brain->jobs.items[id].is_over)
			return true;
	return false;
}

static int check_terms(const char *name, const struct sw_terms *terms, struct sw_err *err)
{
	int r = sw_terms_check(terms, err);
	return r < 0 ? r : refuse_beyond(name, find_beyond(terms), err);
}

int sw_brain_takes_world(const char *name, const struct sw_world *world, struct sw_err *err)
{
	const struct sw_terms terms = sw_world_terms(world);
	int r = check_terms(name, &terms, err);
	return r < 0 ? r : refuse_beyond(name, find_unheeded(world), err);
}

int sw_brain_propose_world(struct sw_brain *brain, const struct sw_user *user, const char *name, const struct sw_world *world,
			   sw_records *records, struct sw_err *err)
{
	const struct sw_terms terms = sw_world_terms(world);
	if (user != NULL && !user->is_operator)
		return sw_err_set(err, SW_EDENIED, "only operators change the world");
	int r = sw_brain_takes_world(name, world, err);
	if (r == 0 && terms.may_grow != brain->terms.may_grow && has_jobs(brain)) {
		r = sw_err_set(err, SW_EINPUT, "'nodes_join' cannot change while the cluster has jobs");
		sw_err_hint(err, "It can once no job waits or runs.");
	}
	if (r < 0)
		return r;
	return sw_record_push(records, SW_RECORD_WORLD,
			      json_pack("{s:s, s:s, s:b, s:o, s:o*}", "name", name, "text", world->text, "chosen", user != NULL, "terms",
					to_json(&terms), "gpu_types", sw_brain_gpu_rules_to_json(&world->gpu_types)),
			      err);
}

/* ---- applying */

/* The rules are the caller's. */
static int read_body(const json_t *body, struct sw_terms *ret_terms, struct sw_gpu_rules *ret_rules, struct sw_err *err)
{
	const json_t *terms = json_object_get(body, "terms");
	if (!json_is_string(json_object_get(body, "name")) || !json_is_string(json_object_get(body, "text")) || !json_is_object(terms))
		return sw_err_set(err, SW_EINPUT, "a world record lacks a field");
	int r = from_json(terms, ret_terms, err);
	return r < 0 ? r : sw_brain_gpu_rules_from_json(json_object_get(body, "gpu_types"), ret_rules, err);
}

int sw_brain_check_world(const json_t *body, struct sw_err *err)
{
	struct sw_terms terms = sw_terms_unsaid;
	struct sw_gpu_rules rules = {0};
	int r = read_body(body, &terms, &rules, err);
	sw_gpu_rules_release(&rules);
	return r < 0 ? r : check_terms(json_string_value(json_object_get(body, "name")), &terms, err);
}

static int hold_to(struct sw_brain *brain, const json_t *body, struct sw_err *err)
{
	struct sw_gpu_rules rules = {0};
	int r = read_body(body, &brain->terms, &rules, err);
	if (r < 0)
		return r;
	sw_gpu_rules_release(&brain->gpu_rules);
	brain->gpu_rules = rules;
	r = sw_brain_tell_gpu_types(brain) == 0 ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
	struct sw_crowd_rule rule = sw_terms_crowd_rule(&brain->terms);
	if (r == 0 && brain->learn != NULL)
		sw_learn_set_model(brain->learn, &rule.model);
	if (r == 0 && brain->crowd != NULL)
		sw_crowd_set_rule(brain->crowd, &rule);
	return r;
}

int sw_brain_apply_world(struct sw_brain *brain, const json_t *body, struct sw_err *err)
{
	struct sw_terms terms;
	struct sw_gpu_rules rules = {0};
	SW_CLEANUP(sw_freep) char *copy = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
	int r = copy == NULL ? sw_err_set(err, SW_ENOMEM, "out of memory") : read_body(body, &terms, &rules, err);
	sw_gpu_rules_release(&rules);
	r = r < 0 ? r : sw_engine_set_terms(brain->engine, &terms, err);
	r = r < 0 ? r : hold_to(brain, body, err);
	if (r < 0)
		return r;
	free(brain->world);
	brain->world = SW_TAKE(copy);
	return sw_brain_step(brain, NULL, 0, err);
}

int sw_brain_load_world(struct sw_brain *brain, struct sw_err *err)
{
	brain->terms = sw_terms_unsaid;
	if (brain->world == NULL)
		return 0;
	json_t *body = json_loads(brain->world, 0, NULL);
	int r = hold_to(brain, body, err);
	json_decref(body);
	return r;
}

/* ---- looking */

const struct sw_terms *sw_brain_terms(const struct sw_brain *brain)
{
	return &brain->terms;
}

int sw_brain_look_world(const struct sw_brain *brain, char **ret_name, char **ret_text, bool *ret_chosen)
{
	json_t *body = brain->world != NULL ? json_loads(brain->world, 0, NULL) : NULL;
	const char *name = json_string_value(json_object_get(body, "name")), *text = json_string_value(json_object_get(body, "text"));
	char *name_copy = strdup(name != NULL ? name : ""), *text_copy = strdup(text != NULL ? text : "");
	*ret_chosen = json_is_true(json_object_get(body, "chosen"));
	json_decref(body);
	if (name_copy == NULL || text_copy == NULL) {
		free(name_copy);
		free(text_copy);
		return SW_ENOMEM;
	}
	*ret_name = name_copy;
	*ret_text = text_copy;
	return 0;
}
