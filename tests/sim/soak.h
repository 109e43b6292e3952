/* The soak: random clusters, jobs, worlds and parameters, every policy, and a look at
 * everything after every step.
 *
 * Two drivers. The *simulation* runs sw_simulate() with the validator on and then judges the
 * outcomes; the *storm* feeds the engine directly with events that no simulator would send (quotas,
 * cancellations, answers about runs that never were, time that goes back) and keeps books of its
 * own. Everything follows from the seed: a failure is replayed by `tools/soak --seed N --policy P`,
 * with --storm for the second driver.
 */
#ifndef SW_TESTS_SIM_SOAK_H
#define SW_TESTS_SIM_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/rng.h"
#include "core/engine.h"
#include "sim/trace/trace.h"
#include "world/world.h"

/* ---- what is drawn (soak_draw.c) */

struct sw_soak_case {
	struct sw_topology *topology;
	struct sw_trace *trace;
	struct sw_world *world;
	struct sw_params *params;
	const struct sw_placement *placement;
};

/* The same seed gives every policy the same cluster, jobs, world and placement. */
void sw_soak_draw(uint64_t seed, const struct sw_policy *policy, struct sw_soak_case *ret_case);
void sw_soak_release(struct sw_soak_case *drawn);
/* What the simulation of this seed runs on, for a person that looks into a failure. */
void sw_soak_describe(uint64_t seed, const struct sw_policy *policy, FILE *out);

/* A number in [low, high]. */
uint64_t sw_soak_between(struct sw_rng *rng, uint64_t low, uint64_t high);
bool sw_soak_chance(struct sw_rng *rng, uint32_t percent);
struct sw_topology *sw_soak_topology(struct sw_rng *rng);
/* `patient`: nothing that changes its mind every few seconds. */
struct sw_params *sw_soak_params(struct sw_rng *rng, const struct sw_policy *policy, bool patient);

/* ---- the two drivers (soak_run.c, soak_storm.c); 0, or an error that says what went wrong */

/* `stop` is set from outside when a run takes too long. */
int sw_soak_simulate(uint64_t seed, const struct sw_policy *policy, const atomic_bool *stop, struct sw_err *err);
int sw_soak_storm(uint64_t seed, const struct sw_policy *policy, struct sw_err *err);

/* ---- many of them (soak_many.c) */

struct sw_soak_plan {
	uint64_t first, end;	      /* seeds */
	const struct sw_policy *only; /* NULL: every policy */
	bool simulate, storm;
	unsigned workers;
	bool progress; /* a line on standard error */
};

/* Runs them in `workers` processes. Prints one line for each failure, the line that replays it;
 * returns how many there were. */
unsigned sw_soak_many(const struct sw_soak_plan *plan);
/* The program behind tools/soak. */
int sw_soak_main(int count, char **words);

#endif
