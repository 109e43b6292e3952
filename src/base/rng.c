#include "base/rng.h"

static uint64_t rotate_left(uint64_t word, unsigned bits)
{
	return (word << bits) | (word >> (64 - bits));
}

/* splitmix64: spreads any seed, zero included, over the whole state, which must not be all zero. */
static uint64_t next_seed(uint64_t *seed)
{
	*seed += UINT64_C(0x9E3779B97F4A7C15);
	uint64_t z = *seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

void sw_rng_seed(struct sw_rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->state[i] = next_seed(&seed);
}

uint64_t sw_rng_next(struct sw_rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t carried = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= carried;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* The high half of number * bound is uniform once the few low halves that would favour some
 * results are thrown back. */
uint64_t sw_rng_below(struct sw_rng *rng, uint64_t bound)
{
	if (bound == 0)
		return 0;
	uint64_t surplus = -bound % bound; /* 2^64 mod bound */
	for (;;) {
		unsigned __int128 product = (unsigned __int128)sw_rng_next(rng) * bound;
		if ((uint64_t)product >= surplus)
			return (uint64_t)(product >> 64);
	}
}

double sw_rng_unit(struct sw_rng *rng)
{
	return (double)(sw_rng_next(rng) >> 11) * 0x1p-53;
}
