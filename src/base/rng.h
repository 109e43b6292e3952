/* The one seeded generator (xoshiro256**, seeded by splitmix64): same seed, same numbers, on
 * every machine and compiler. */
#ifndef SW_BASE_RNG_H
#define SW_BASE_RNG_H

#include <stdint.h>

struct sw_rng {
	uint64_t state[4];
};

void sw_rng_seed(struct sw_rng *rng, uint64_t seed);
uint64_t sw_rng_next(struct sw_rng *rng);
/* Uniform in [0, bound), without bias; bound 0 gives 0. */
uint64_t sw_rng_below(struct sw_rng *rng, uint64_t bound);
/* Uniform in [0, 1), 53 bits. */
double sw_rng_unit(struct sw_rng *rng);

#endif
