#include "contention/crowd.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* A resident as one number; in ascending order the guaranteed ones come first. */
#define BEHIND (UINT32_C(1) << 31)

struct answer {
	uint32_t count; /* 0: none is kept here */
	bool known;	/* each has a profile */
	uint32_t residents[SW_CROWD_MAX];
	uint32_t slow_milli[SW_CROWD_MAX];
};

struct sw_crowd {
	const struct sw_profiles *profiles;
	struct sw_crowd_rule rule;
	struct sw_learn *learn; /* NULL: none */
	struct answer kept[SW_CROWD_KEPT];
};

int sw_crowd_new(const struct sw_profiles *profiles, const struct sw_crowd_rule *rule, struct sw_crowd **ret_crowd, struct sw_err *err)
{
	struct sw_crowd *crowd = calloc(1, sizeof *crowd);
	if (crowd == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	crowd->profiles = profiles;
	crowd->rule = *rule;
	*ret_crowd = crowd;
	return 0;
}

void sw_crowd_free(struct sw_crowd *crowd)
{
	free(crowd);
}

void sw_crowd_forget(struct sw_crowd *crowd)
{
	for (size_t i = 0; i < SW_CROWD_KEPT; i++)
		crowd->kept[i].count = 0;
}

void sw_crowd_set_rule(struct sw_crowd *crowd, const struct sw_crowd_rule *rule)
{
	crowd->rule = *rule;
	sw_crowd_forget(crowd);
}

void sw_crowd_correct(struct sw_crowd *crowd, struct sw_learn *learn)
{
	crowd->learn = learn;
	sw_crowd_forget(crowd);
}

/* By what was measured of these models. Several guaranteed jobs with others beside them
 * are not learned about. */
static void correct(const struct sw_crowd *crowd, const struct sw_profile *const *profiles, size_t guaranteed, struct answer *answer)
{
	const char *names[SW_CROWD_MAX];
	bool gate = guaranteed > 0 && guaranteed < answer->count;
	if (crowd->learn == NULL || !answer->known || answer->count < 2 || (gate && guaranteed > 1))
		return;
	for (uint32_t i = 0; i < answer->count; i++)
		names[i] = profiles[i]->name;
	for (uint32_t i = 0; i < answer->count; i++) {
		struct sw_learn_answer learned;
		sw_learn_ask(crowd->learn, &(struct sw_learn_case){gate ? SW_WAY_GATE : crowd->rule.among, names, answer->count, i},
			     &learned);
		if (learned.known > 0)
			answer->slow_milli[i] = learned.slow_milli;
	}
}

static void work_out(const struct sw_crowd *crowd, struct answer *answer)
{
	const struct sw_profile *profiles[SW_CROWD_MAX];
	struct sw_prediction predictions[SW_CROWD_MAX];
	size_t guaranteed = 0;
	answer->known = true;
	for (uint32_t i = 0; i < answer->count; i++) {
		profiles[i] = sw_profiles_by_number(crowd->profiles, answer->residents[i] & ~BEHIND);
		answer->known &= !profiles[i]->is_default;
		guaranteed += answer->residents[i] < BEHIND;
	}
	sw_predict_gated(&crowd->rule.model, crowd->rule.among, profiles, guaranteed, answer->count, predictions);
	for (uint32_t i = 0; i < answer->count; i++)
		answer->slow_milli[i] = predictions[i].slow_milli;
	correct(crowd, profiles, guaranteed, answer);
}

/* For residents in ascending order. */
static const struct answer *answer_for(struct sw_crowd *crowd, const uint32_t *residents, size_t count)
{
	uint64_t hash = SW_HASH_START;
	for (size_t i = 0; i < count; i++)
		hash = sw_hash_u64(hash, residents[i]);
	struct answer *answer = &crowd->kept[hash % SW_CROWD_KEPT];
	if (answer->count == count && memcmp(answer->residents, residents, count * sizeof *residents) == 0)
		return answer;
	answer->count = (uint32_t)count;
	memcpy(answer->residents, residents, count * sizeof *residents);
	work_out(crowd, answer);
	return answer;
}

/* Whether each has a profile. */
static bool ask(struct sw_crowd *crowd, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_slow_milli)
{
	uint32_t sorted[SW_CROWD_MAX];
	size_t order[SW_CROWD_MAX];
	assert(count <= SW_CROWD_MAX);
	for (size_t i = 0; i < count; i++) {
		uint32_t resident = (models[i] & ~BEHIND) | (crowd->rule.gated && !guaranteed[i] ? BEHIND : 0);
		size_t at = i;
		for (; at > 0 && sorted[at - 1] > resident; at--) {
			sorted[at] = sorted[at - 1];
			order[at] = order[at - 1];
		}
		sorted[at] = resident;
		order[at] = i;
	}
	if (count == 0)
		return true;
	const struct answer *answer = answer_for(crowd, sorted, count);
	for (size_t i = 0; i < count; i++)
		ret_slow_milli[order[i]] = answer->slow_milli[i];
	return answer->known;
}

void sw_crowd_slowdowns(struct sw_crowd *crowd, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_slow_milli)
{
	(void)ask(crowd, models, guaranteed, count, ret_slow_milli);
}

bool sw_crowd_speeds(void *crowd, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli)
{
	for (size_t i = 0; i < count; i++)
		if (models[i] == 0)
			return false;
	if (!ask(crowd, models, guaranteed, count, ret_speed_milli))
		return false;
	for (size_t i = 0; i < count; i++)
		ret_speed_milli[i] = (1000000 + ret_speed_milli[i] / 2) / ret_speed_milli[i];
	return true;
}
