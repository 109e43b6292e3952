/* The observations of a learner, and its answers. */
#include "contention/learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contention/learn_state.h"

int sw_learn_new(const struct sw_profiles *profiles, const struct sw_predict_model *model, struct sw_learn **ret_learn, struct sw_err *err)
{
	struct sw_learn *learn = calloc(1, sizeof *learn);
	if (learn == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot learn slowdowns: out of memory");
	learn->profiles = profiles;
	learn->model = *model;
	*ret_learn = learn;
	return 0;
}

void sw_learn_free(struct sw_learn *learn)
{
	free(learn);
}

void sw_learn_refresh(struct sw_learn *learn)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		learn->fits[kind].stale = true;
}

void sw_learn_set_model(struct sw_learn *learn, const struct sw_predict_model *model)
{
	learn->model = *model;
	sw_learn_refresh(learn);
}

uint64_t sw_learn_total(const struct sw_learn *learn)
{
	return learn->clock;
}

/* Spelling */

enum sw_predict_way sw_learn_way(enum kind kind)
{
	return kind == KIND_SLICES ? SW_WAY_SLICES : kind == KIND_MPS ? SW_WAY_MPS : SW_WAY_GATE;
}

static enum kind kind_of(const struct sw_learn_case *about)
{
	if (about->way == SW_WAY_GATE)
		return about->which == 0 ? KIND_GUARANTEED : KIND_GIVES_WAY;
	return about->way == SW_WAY_MPS ? KIND_MPS : KIND_SLICES;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(left, right);
}

bool sw_learn_is_odd(const char *name)
{
	size_t size = strlen(name);
	bool odd = size == 0 || size > SW_LEARN_NAME_MAX;
	for (size_t i = 0; i < size && !odd; i++)
		odd = (unsigned char)name[i] < ' ' || name[i] == '"' || name[i] == '\\' || name[i] == 127;
	return odd;
}

/* A model goes by its profile's name, so that aliases are one; without a profile, by its own. */
static int spell(const struct sw_learn *learn, const char *model, char name[SW_LEARN_NAME_MAX + 1], struct sw_err *err)
{
	const struct sw_profile *profile = sw_profiles_find(learn->profiles, model);
	const char *text = profile->is_default ? model : profile->name;
	size_t size = strlen(text);
	if (sw_learn_is_odd(text)) {
		sw_err_set(err, SW_EINPUT, "cannot learn a slowdown of this model");
		sw_err_detail(err, "its name must have 1 to %u bytes without quotes, backslashes and control characters",
			      SW_LEARN_NAME_MAX);
		return SW_EINPUT;
	}
	memcpy(name, text, size + 1);
	return 0;
}

static int set_of(const struct sw_learn *learn, const struct sw_learn_case *about, struct sw_learn_set *ret_set, struct sw_err *err)
{
	if (about->count < 2 || about->count > SW_LEARN_JOBS_MAX || about->which >= about->count || about->way >= SW_WAY_COUNT) {
		sw_err_set(err, SW_EINPUT, "cannot learn a slowdown of %zu jobs", about->count);
		sw_err_detail(err, "it takes 2 to %u jobs, one of which was measured; a job alone is not slowed down", SW_LEARN_JOBS_MAX);
		return SW_EINPUT;
	}
	struct sw_learn_set set = {.kind = kind_of(about)};
	int r = spell(learn, about->models[about->which], set.names[set.count++], err);
	for (size_t i = 0; i < about->count && r == 0; i++)
		if (i != about->which)
			r = spell(learn, about->models[i], set.names[set.count++], err);
	if (r < 0)
		return r;
	uint32_t first = set.kind == KIND_GIVES_WAY ? 2 : 1;
	qsort(set.names[first], set.count - first, sizeof set.names[0], compare_names);
	*ret_set = set;
	return 0;
}

size_t sw_learn_order(const struct sw_learn_set *set, const char *ret_names[SW_LEARN_JOBS_MAX])
{
	size_t which = set->kind == KIND_GIVES_WAY ? 1 : 0;
	for (uint32_t i = 0; i < set->count; i++)
		ret_names[i] = set->names[i];
	if (which == 1) {
		ret_names[0] = set->names[1];
		ret_names[1] = set->names[0];
	}
	return which;
}

struct sw_prediction sw_learn_prior(const struct sw_learn *learn, const struct sw_learn_set *set)
{
	const char *names[SW_LEARN_JOBS_MAX];
	const struct sw_profile *jobs[SW_LEARN_JOBS_MAX];
	struct sw_prediction predictions[SW_LEARN_JOBS_MAX];
	size_t which = sw_learn_order(set, names);
	for (uint32_t i = 0; i < set->count; i++)
		jobs[i] = sw_profiles_find(learn->profiles, names[i]);
	sw_predict_set(&learn->model, sw_learn_way(set->kind), jobs, set->count, predictions);
	return predictions[which];
}

/* Observations */

int sw_learn_compare(const struct sw_learn_set *a, const struct sw_learn_set *b)
{
	int order = (a->kind > b->kind) - (a->kind < b->kind);
	if (order == 0)
		order = (a->count > b->count) - (a->count < b->count);
	for (uint32_t i = 0; i < a->count && order == 0; i++)
		order = strcmp(a->names[i], b->names[i]);
	return order;
}

/* Where the set is, or where it belongs. */
static uint32_t place_of(const struct sw_learn *learn, const struct sw_learn_set *set, bool *ret_found)
{
	uint32_t low = 0, high = learn->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = sw_learn_compare(set, &learn->seen[middle].set);
		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	*ret_found = false;
	return low;
}

static void forget_oldest(struct sw_learn *learn)
{
	uint32_t oldest = 0;
	for (uint32_t i = 1; i < learn->count; i++)
		if (learn->seen[i].last < learn->seen[oldest].last)
			oldest = i;
	learn->fits[learn->seen[oldest].set.kind].stale = true;
	learn->count--;
	memmove(&learn->seen[oldest], &learn->seen[oldest + 1], (learn->count - oldest) * sizeof learn->seen[0]);
}

static struct sw_learn_observation *observation_of(struct sw_learn *learn, const struct sw_learn_set *set)
{
	bool found;
	uint32_t at = place_of(learn, set, &found);
	if (found)
		return &learn->seen[at];
	if (learn->count == SW_LEARN_SETS_MAX) {
		forget_oldest(learn);
		at = place_of(learn, set, &found);
	}
	memmove(&learn->seen[at + 1], &learn->seen[at], (learn->count - at) * sizeof learn->seen[0]);
	learn->count++;
	learn->seen[at] = (struct sw_learn_observation){.set = *set};
	return &learn->seen[at];
}

int sw_learn_add(struct sw_learn *learn, const struct sw_learn_case *about, int64_t slow_milli, uint32_t samples, struct sw_err *err)
{
	struct sw_learn_set set;
	int r = set_of(learn, about, &set, err);
	if (r < 0)
		return r;
	if (samples == 0 || slow_milli < SW_LEARN_LEAST_MILLI || slow_milli > SW_PREDICT_SLOWEST_MILLI) {
		sw_err_set(err, SW_EINPUT, "cannot learn the slowdown of '%s'", set.names[0]);
		if (samples == 0)
			sw_err_detail(err, "it was measured on no steps");
		else
			sw_err_detail(err, "%.3f is not one: expected 0.5 to 1000 times as long as alone", (double)slow_milli / 1000);
		return SW_EINPUT;
	}
	struct sw_learn_observation *seen = observation_of(learn, &set);
	uint32_t slot = seen->times % SW_LEARN_REPEATS_MAX;
	seen->slow_milli[slot] = (uint32_t)slow_milli;
	seen->samples[slot] = samples;
	seen->kept = slot >= seen->kept ? slot + 1 : seen->kept;
	seen->times++;
	seen->last = ++learn->clock;
	learn->fits[set.kind].stale = true;
	return 0;
}

static int compare_u32(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	return (a > b) - (a < b);
}

static uint32_t median_of(uint32_t *values, uint32_t count)
{
	qsort(values, count, sizeof *values, compare_u32);
	uint64_t low = values[(count - 1) / 2], high = values[count / 2];
	return (uint32_t)((low + high + 1) / 2);
}

uint32_t sw_learn_median(const struct sw_learn_observation *seen)
{
	uint32_t values[SW_LEARN_REPEATS_MAX];
	memcpy(values, seen->slow_milli, sizeof values);
	return median_of(values, seen->kept);
}

double sw_learn_worth(const struct sw_learn_observation *seen)
{
	uint32_t samples[SW_LEARN_REPEATS_MAX];
	memcpy(samples, seen->samples, sizeof samples);
	qsort(samples, seen->kept, sizeof *samples, compare_u32); /* sums depend on the order */
	double worth = 0;
	for (uint32_t i = 0; i < seen->kept; i++)
		worth += samples[i] / (samples[i] + 10.0);
	return worth;
}

/* Answers */

static uint32_t scaled(uint32_t prior_milli, double correction)
{
	double slow = prior_milli * sw_learn_exp(correction) + 0.5;
	return slow < 1000 ? 1000 : slow > SW_PREDICT_SLOWEST_MILLI ? SW_PREDICT_SLOWEST_MILLI : (uint32_t)slow;
}

static void ask_profiles(const struct sw_learn *learn, const struct sw_learn_case *about, struct sw_learn_answer *answer)
{
	const struct sw_profile *jobs[SW_PREDICT_TURNS_MAX];
	struct sw_prediction predictions[SW_PREDICT_TURNS_MAX];
	answer->prior_milli = SW_PREDICT_SLOWEST_MILLI;
	answer->bound = SW_BOUND_TURNS;
	if (about->count <= SW_PREDICT_TURNS_MAX && about->which < about->count) {
		for (size_t i = 0; i < about->count; i++)
			jobs[i] = sw_profiles_find(learn->profiles, about->models[i]);
		sw_predict_set(&learn->model, about->way, jobs, about->count, predictions);
		answer->prior_milli = predictions[about->which].slow_milli;
		answer->bound = predictions[about->which].bound;
	}
	answer->slow_milli = answer->prior_milli;
}

void sw_learn_ask(struct sw_learn *learn, const struct sw_learn_case *about, struct sw_learn_answer *ret_answer)
{
	struct sw_learn_answer answer = {0};
	struct sw_learn_set set;
	ask_profiles(learn, about, &answer);
	if (set_of(learn, about, &set, NULL) == 0) {
		struct sw_learn_fit *fit = &learn->fits[set.kind];
		if (fit->stale)
			sw_learn_refit(learn, set.kind);
		answer.known = fit->known;
	}
	if (answer.known > 0) {
		double correction = sw_learn_correction(learn, &set, answer.prior_milli);
		bool found;
		const struct sw_learn_observation *seen = &learn->seen[place_of(learn, &set, &found)];
		if (found) {
			/* What this very set showed and the regression does not explain counts the
			 * more, the better it is known. */
			double worth = sw_learn_worth(seen);
			correction += (seen->believed - correction) * worth / (worth + 0.5);
			answer.times = seen->times;
			for (uint32_t i = 0; i < seen->kept; i++)
				answer.samples += seen->samples[i];
		}
		answer.slow_milli = scaled(answer.prior_milli, correction);
	}
	*ret_answer = answer;
}

/* The error figure */

static uint32_t off_milli(uint32_t predicted, uint32_t measured)
{
	uint64_t off = predicted > measured ? predicted - measured : measured - predicted;
	return (uint32_t)((off * 1000 + measured / 2) / measured);
}

static void name_worst(const struct sw_learn_set *set, struct sw_learn_error *error)
{
	static const char *const ways[KIND_COUNT] = {"slices", "mps", "gate, guaranteed", "gate, gives way"};
	size_t used = 0;
	for (uint32_t i = 0; i < set->count; i++) {
		used += (size_t)snprintf(error->worst + used, sizeof error->worst - used, "%s%s",
					 i == 0	  ? ""
					 : i == 1 ? " beside "
						  : ", ",
					 set->names[i]);
		if (used >= sizeof error->worst)
			return;
	}
	snprintf(error->worst + used, sizeof error->worst - used, " (%s)", ways[set->kind]);
}

static void find_error(struct sw_learn *learn, unsigned kinds, struct sw_learn_error *ret_error)
{
	struct sw_learn_error error = {0};
	uint32_t learned[SW_LEARN_SETS_MAX], prior[SW_LEARN_SETS_MAX];
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if ((kinds & (1u << kind)) != 0 && learn->fits[kind].stale)
			sw_learn_refit(learn, (enum kind)kind);
	for (uint32_t i = 0; i < learn->count; i++) {
		const struct sw_learn_observation *seen = &learn->seen[i];
		if ((kinds & (1u << seen->set.kind)) == 0)
			continue;
		uint32_t measured = sw_learn_median(seen), prior_milli = sw_learn_prior(learn, &seen->set).slow_milli;
		uint32_t off = off_milli(scaled(prior_milli, seen->from_others), measured), prior_off = off_milli(prior_milli, measured);
		if (error.count == 0 || off > error.worst_milli) {
			error.worst_milli = off;
			name_worst(&seen->set, &error);
		}
		error.prior_worst_milli = prior_off > error.prior_worst_milli ? prior_off : error.prior_worst_milli;
		learned[error.count] = off;
		prior[error.count++] = prior_off;
	}
	if (error.count > 0) {
		error.median_milli = median_of(learned, error.count);
		error.prior_median_milli = median_of(prior, error.count);
	}
	*ret_error = error;
}

void sw_learn_error(struct sw_learn *learn, struct sw_learn_error *ret_error)
{
	find_error(learn, (1u << KIND_COUNT) - 1, ret_error);
}

void sw_learn_error_of(struct sw_learn *learn, enum sw_predict_way way, struct sw_learn_error *ret_error)
{
	unsigned kinds = 0;
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (sw_learn_way((enum kind)kind) == way)
			kinds |= 1u << kind;
	find_error(learn, kinds, ret_error);
}
