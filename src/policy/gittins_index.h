/* The Gittins index of a job that has used `a`, from samples of what jobs use in all:
 *
 * G(a) = P(S - a <= delta | S > a) / E[min(S - a, delta) | S > a]
 *
 * With k samples in (a, a + delta] and r beyond, this is k / (sum over the k of (s - a) + delta r).
 * These are whole numbers and one division. */
#ifndef SW_POLICY_GITTINS_INDEX_H
#define SW_POLICY_GITTINS_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* Indices are in units of 2^-44 per unit of service. */
#define SW_GITTINS_UNIT (INT64_C(1) << 44)

/* The first of the ascending samples that is above `value`. */
static inline size_t sw_gittins_above(const int64_t *samples, size_t count, int64_t value)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (samples[middle] > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* `sums[i]` is the sum of the first i samples. 0 beyond the last sample: it has lived longer than
 * any known. */
static inline int64_t sw_gittins_index(const int64_t *samples, const int64_t *sums, size_t count, int64_t a, int64_t delta)
{
	size_t first = sw_gittins_above(samples, count, a);
	if (first == count || delta <= 0)
		return 0;
	size_t end = delta > INT64_MAX - a ? count : sw_gittins_above(samples, count, a + delta);
	__extension__ typedef __int128 wide;
	wide ending = (wide)(end - first);
	wide spent = (wide)(sums[end] - sums[first]) + (wide)delta * (wide)(count - end) - ending * a;
	return spent <= 0 ? INT64_MAX / 4 : (int64_t)(ending * SW_GITTINS_UNIT / spent);
}

#endif
