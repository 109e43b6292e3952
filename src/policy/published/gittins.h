/* The Gittins index as the published artifact of Tiresias computes it. It is taken at the point
 * just below the next sample. It has whole sizes s where the definition has s - a, what is left of
 * them. Its figures come out only so. */
#ifndef SW_POLICY_PUBLISHED_GITTINS_H
#define SW_POLICY_PUBLISHED_GITTINS_H

#include "policy/gittins_index.h"

/* As sw_gittins_index(). */
static inline int64_t sw_gittins_published_index(const int64_t *samples, const int64_t *sums, size_t count, int64_t a, int64_t delta)
{
	size_t next = sw_gittins_above(samples, count, a);
	if (next == count || delta <= 0)
		return 0;
	a = samples[next] - 1;
	size_t first = sw_gittins_above(samples, count, a);
	size_t end = delta > INT64_MAX - a ? count : sw_gittins_above(samples, count, a + delta);
	__extension__ typedef __int128 wide;
	wide ending = (wide)(end - first);
	wide spent = (wide)(sums[end] - sums[first]) + (wide)delta * (wide)(count - end);
	return spent <= 0 ? INT64_MAX / 4 : (int64_t)(ending * SW_GITTINS_UNIT / spent);
}

#endif
