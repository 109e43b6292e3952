/* Residents of a GPU by the numbers of their profiles and their classes: how much each is slowed
 * down. What was asked before is remembered, since a cluster has many jobs of few models.
 *
 * This is the shape in which a scheduler asks: sw_crowd_speeds() is what the engine of core takes
 * for a predictor. The simulated world lets its jobs run by the same numbers.
 *
 * Invariants:
 *  1. an answer depends on the profiles, the rule, the residents and what was learned alone, not on
 *     their order or on what was asked before;
 *  2. memory is bounded: SW_CROWD_KEPT answers.
 */
#ifndef SW_CONTENTION_CROWD_H
#define SW_CONTENTION_CROWD_H

#include "contention/learn.h"

#define SW_CROWD_MAX 8u	    /* residents of one GPU */
#define SW_CROWD_KEPT 1024u /* answers */

struct sw_crowd_rule {
	struct sw_predict_model model;
	enum sw_predict_way among; /* how jobs of one class share: SW_WAY_MPS or SW_WAY_SLICES */
	bool gated;		   /* opportunistic jobs give way to guaranteed ones; else all are alike */
};

struct sw_crowd;

/* `profiles` must outlive it. */
int sw_crowd_new(const struct sw_profiles *profiles, const struct sw_crowd_rule *rule, struct sw_crowd **ret_crowd, struct sw_err *err);
void sw_crowd_free(struct sw_crowd *crowd);
SW_DEFINE_FREEP(struct sw_crowd, sw_crowd_free)

/* From now on what `learn` learned corrects its answers, where it can. That is for jobs of one
 * class, and any beside one guaranteed job that they give way to. It must outlive the crowd. */
void sw_crowd_correct(struct sw_crowd *crowd, struct sw_learn *learn);
/* Another rule from now on. */
void sw_crowd_set_rule(struct sw_crowd *crowd, const struct sw_crowd_rule *rule);
/* Forgets its answers: the profiles are others now, or more was learned. */
void sw_crowd_forget(struct sw_crowd *crowd);

/* Slowdowns of up to SW_CROWD_MAX residents, in thousandths, in their order. `models` are numbers
 * of profiles (struct sw_profile). */
void sw_crowd_slowdowns(struct sw_crowd *crowd, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_slow_milli);

/* The same as speeds, in thousandths of alone; false where one of them has no profile, and then
 * nothing is answered. `crowd` is a struct sw_crowd. */
bool sw_crowd_speeds(void *crowd, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli);

#endif
