/* What is known of models: the built-in profiles, and over them those that users measured. Policies
 * predict by it, so it is state like all else. A profile is a record before the first job that was
 * submitted with it (models.c). It is a part of the snapshot. What becomes of the file that it came
 * from changes nothing by itself.
 *
 *  1. Jobs know their model by the number of its profile, which follows from its name. One whose
 *     profile is forgotten later has none.
 *  2. A profile that comes again replaces the one before, also for jobs that are there: it is of
 *     the same program, measured more often.
 *  3. At most SW_BRAIN_PROFILES are put over the others. Where there is no room, those that
 *     no living job needs go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "brain/gpu_types.h"
#include "brain/known.h"
#include "brain/record.h"
#include "brain/state.h"
#include "contention/crowd.h"
#include "world/alone.h"
#include "world/world.h"

#define LOOKED_BACK 16u /* records of the same request */

int sw_brain_make_known(struct sw_brain *brain, struct sw_err *err)
{
	const struct sw_crowd_rule rule = sw_terms_crowd_rule(&brain->terms);
	if (brain->learn != NULL)
		return 0;
	int r = brain->config.profiles != NULL ? sw_profiles_copy(brain->config.profiles, &brain->profiles, err) : 0;
	r = r < 0 ? r : sw_learn_new(brain->profiles, &rule.model, &brain->learn, err);
	if (brain->config.profiles == NULL)
		return r;
	r = r < 0 ? r : sw_crowd_new(brain->profiles, &rule, &brain->crowd, err);
	if (r == 0)
		sw_crowd_correct(brain->crowd, brain->learn);
	r = r < 0 ? r : sw_alone_new(brain->profiles, &brain->alone, err);
	return r < 0 || sw_brain_tell_gpu_types(brain) == 0 ? r : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_brain_free_known(struct sw_brain *brain)
{
	if (brain->crowd != NULL)
		sw_crowd_free(brain->crowd);
	sw_alone_free(brain->alone);
	if (brain->learn != NULL)
		sw_learn_free(brain->learn);
	sw_profiles_free(brain->profiles);
}

uint32_t sw_brain_model(const struct sw_brain *brain, const struct sw_job_request *request)
{
	const char *names[] = {request->model, request->name};
	uint32_t number = 0;
	for (size_t i = 0; i < 2 && brain->profiles != NULL && number == 0; i++)
		number = names[i] != NULL ? sw_profiles_find(brain->profiles, names[i])->number : 0;
	return number;
}

void sw_brain_warn_model(const struct sw_brain *brain, struct sw_live *live, const struct sw_job_request *request)
{
	size_t count = 0;
	if (live->warning != NULL || request->model == NULL || brain->profiles == NULL ||
	    !sw_profiles_find(brain->profiles, request->model)->is_default)
		return;
	while (sw_profiles_at(brain->profiles, count) != NULL)
		count++;
	const char *near = sw_suggest(request->model, sw_profiles_at(brain->profiles, 0), count, sizeof(struct sw_profile));
	if (asprintf(&live->warning, "there is no profile of the model '%s'%s%s%s", request->model, near != NULL ? ": did you mean '" : "",
		     near != NULL ? near : "", near != NULL ? "'?" : "; 'sharewell profile' measures one") < 0)
		live->warning = NULL; /* a warning less */
}

/* ---- proposing */

/* What predictions are made of. */
static bool are_same(const struct sw_profile *a, const struct sw_profile *b)
{
	return a->busy_milli == b->busy_milli && a->busy_known == b->busy_known &&
	       memcmp(a->use_milli, b->use_milli, sizeof a->use_milli) == 0;
}

static bool was_proposed(const sw_records *records, const struct sw_record *last)
{
	for (const struct sw_record *record = last; record > records->items && last - record < LOOKED_BACK;) {
		record--;
		if (record->kind == last->kind && record->size == last->size && memcmp(record->body, last->body, last->size) == 0)
			return true;
	}
	return false;
}

int sw_brain_propose_profile(const struct sw_brain *brain, const char *name, const struct sw_profile *profile, sw_records *records,
			     struct sw_err *err)
{
	const struct sw_profile *known = brain->profiles != NULL ? sw_profiles_find(brain->profiles, name) : NULL;
	if (known == NULL || (profile != NULL ? known->is_own && are_same(known, profile) : !known->is_own))
		return 0;
	json_t *body = json_pack("{s:s}", "name", profile != NULL ? profile->name : known->name);
	if (profile != NULL) {
		json_t *use = json_array();
		for (int i = 0; i < SW_USE_COUNT; i++)
			json_array_append_new(use, json_integer(profile->use_milli[i]));
		json_object_set_new(body, "use_milli", use);
		json_object_set_new(body, "busy_milli", json_integer(profile->busy_milli));
		json_object_set_new(body, "busy_known", json_boolean(profile->busy_known));
	}
	int r = sw_record_push(records, SW_RECORD_PROFILE, body, err);
	if (r == 0 && was_proposed(records, &records->items[records->count - 1]))
		free(records->items[--records->count].body);
	return r;
}

/* ---- applying */

static bool is_other(void *name, const struct sw_profile *profile)
{
	return strcmp(profile->name, name) != 0;
}

typedef SW_VEC(uint32_t) numbers;

static int compare_numbers(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;
	return (*a > *b) - (*a < *b);
}

static bool is_needed(void *user, const struct sw_profile *profile)
{
	const numbers *needed = user;
	return bsearch(&profile->number, needed->items, needed->count, sizeof needed->items[0], compare_numbers) != NULL;
}

/* Leaves those that jobs need that wait or run. */
static int make_room(struct sw_brain *brain, struct sw_err *err)
{
	numbers needed = {0};
	int r = sw_vec_reserve(&needed, brain->known.count + 1) < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE && r == 0; id = sw_brain_next_known(brain, id + 1)) {
		const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){id});
		if (job->model != 0 && job->state <= SW_JOB_RUNNING)
			*sw_vec_push(&needed) = job->model;
	}
	if (r == 0) {
		qsort(needed.items, needed.count, sizeof needed.items[0], compare_numbers);
		r = sw_profiles_restore(brain->profiles, brain->config.profiles, is_needed, &needed, err);
	}
	sw_vec_free(&needed);
	return r;
}

static size_t count_own(const struct sw_brain *brain)
{
	const struct sw_profile *profile;
	size_t count = 0;
	for (size_t i = 0; (profile = sw_profiles_at(brain->profiles, i)) != NULL; i++)
		count += profile->is_own;
	return count;
}

/* The rest of it is what is built in under its name, or the default. */
static int put(struct sw_brain *brain, const char *name, const struct sw_profile *vector, struct sw_err *err)
{
	struct sw_profile profile = *sw_profiles_find(brain->config.profiles, name);
	profile.name = name;
	profile.source = "measured here";
	profile.is_default = false;
	profile.is_own = profile.estimated = true;
	profile.busy_milli = vector->busy_milli;
	profile.busy_known = vector->busy_known;
	memcpy(profile.use_milli, vector->use_milli, sizeof profile.use_milli);
	return sw_profiles_put(brain->profiles, &profile, NULL, err);
}

static bool is_sensible(const struct sw_profile *profile)
{
	bool sensible = profile->busy_milli >= 1 && profile->busy_milli <= 1000;
	for (int i = 0; i < SW_USE_COUNT; i++)
		sensible = sensible && profile->use_milli[i] <= 1000;
	return sensible;
}

/* False: there is something that no record says. */
static bool read_vector(json_t *body, struct sw_profile *ret_profile)
{
	json_t *use = json_object_get(body, "use_milli");
	int busy_milli = 0, busy_known = 0;
	if (json_array_size(use) != SW_USE_COUNT ||
	    json_unpack(body, "{s:i, s:b}", "busy_milli", &busy_milli, "busy_known", &busy_known) != 0)
		return false;
	ret_profile->busy_milli = (uint16_t)busy_milli;
	ret_profile->busy_known = busy_known != 0;
	for (int i = 0; i < SW_USE_COUNT; i++)
		ret_profile->use_milli[i] = (uint16_t)json_integer_value(json_array_get(use, (size_t)i));
	return is_sensible(ret_profile);
}

int sw_brain_apply_profile(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	struct sw_profile vector = {0};
	bool forgets = json_object_get(body, "use_milli") == NULL;
	if (name == NULL || (!forgets && !read_vector(body, &vector)))
		return sw_err_set(err, SW_EBUG, "a record of a profile lacks a field");
	if (brain->profiles == NULL)
		return 0;
	int r = 0;
	if (forgets)
		r = sw_profiles_restore(brain->profiles, brain->config.profiles, is_other, (void *)(uintptr_t)name, err);
	else if (!sw_profiles_find(brain->profiles, name)->is_own && count_own(brain) >= SW_BRAIN_PROFILES)
		r = make_room(brain, err);
	if (r == 0 && !forgets && (sw_profiles_find(brain->profiles, name)->is_own || count_own(brain) < SW_BRAIN_PROFILES))
		r = put(brain, name, &vector, err);
	sw_learn_refresh(brain->learn);
	sw_crowd_forget(brain->crowd);
	/* A model may have a profile now, or none any more. */
	return r < 0 || sw_brain_tell_gpu_types(brain) == 0 ? r : sw_err_set(err, SW_ENOMEM, "out of memory");
}

/* ---- as bytes */

static void pack_vector(struct sw_pack *pack, struct sw_profile *profile)
{
	for (int i = 0; i < SW_USE_COUNT; i++)
		sw_pack_u16(pack, &profile->use_milli[i]);
	sw_pack_u16(pack, &profile->busy_milli);
	sw_pack_bool(pack, &profile->busy_known);
}

static void load_profile(struct sw_pack *pack, struct sw_brain *brain)
{
	struct sw_profile profile = {0};
	SW_CLEANUP(sw_freep) char *name = NULL;
	sw_pack_text(pack, &name);
	pack_vector(pack, &profile);
	if (pack->failed == 0 && (name[0] == '\0' || !is_sensible(&profile)))
		sw_pack_fail(pack);
	/* Without profiles in the configuration nothing is predicted. */
	if (pack->failed == 0 && brain->profiles != NULL && put(brain, name, &profile, NULL) < 0)
		pack->failed = SW_ENOMEM;
}

void sw_brain_pack_known(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = !pack->reads && brain->profiles != NULL ? count_own(brain) : 0;
	sw_pack_count(pack, &count);
	if (count > SW_BRAIN_PROFILES)
		sw_pack_fail(pack);
	for (size_t i = 0; pack->reads && i < count && pack->failed == 0; i++)
		load_profile(pack, brain);
	const struct sw_profile *profile;
	for (size_t i = 0; !pack->reads && brain->profiles != NULL && (profile = sw_profiles_at(brain->profiles, i)) != NULL; i++) {
		struct sw_profile copy = *profile;
		char *name = (char *)(uintptr_t)copy.name;
		if (!copy.is_own)
			continue;
		sw_pack_text(pack, &name);
		pack_vector(pack, &copy);
	}
}
