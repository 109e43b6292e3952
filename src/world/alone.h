/* How fast a job runs on its GPUs without neighbours: by their type and number, how far apart they
 * are, and its model's profile. This is the scaler that drivers give their engines; the simulated
 * world lets its jobs run by the same numbers.
 *
 * Invariants:
 *  1. an answer depends on the profiles, the rule and the shape alone;
 *  2. what is asked about models by their numbers is remembered, until sw_alone_forget().
 */
#ifndef SW_WORLD_ALONE_H
#define SW_WORLD_ALONE_H

#include "contention/profile.h"
#include "core/engine.h"
#include "world/world.h"

struct sw_alone;

/* For no types and a world without slowdowns by place. `profiles` must outlive it. */
int sw_alone_new(const struct sw_profiles *profiles, struct sw_alone **ret_alone, struct sw_err *err);
void sw_alone_free(struct sw_alone *alone);
SW_DEFINE_FREEP(struct sw_alone, sw_alone_free)

/* Whether the place of a job slows it down, from now on. */
void sw_alone_set_placement(struct sw_alone *alone, bool slows);
/* The types of the cluster by their numbers are GPUs of these names, and this is what a world says
 * of such. 0, or SW_ENOMEM and nothing is changed. */
int sw_alone_set_types(struct sw_alone *alone, const struct sw_gpu_rules *rules, const char *const *names, size_t count);
/* The profiles are others now. */
void sw_alone_forget(struct sw_alone *alone);

/* What policies are told of the types; valid and true as long as it. */
const struct sw_gpu_types *sw_alone_types(const struct sw_alone *alone);
/* Whether GPUs of some types differ in speed. */
bool sw_alone_has_speeds(const struct sw_alone *alone);

/* The time for a piece of work in thousandths, at least 1, of a job with this profile. */
uint32_t sw_alone_slow_milli(const struct sw_alone *alone, const struct sw_profile *profile, const struct sw_run_shape *shape);
/* The same for an engine; NULL: nothing slows jobs down. */
struct sw_scaler sw_alone_scaler(struct sw_alone *alone);

#endif
