/* Quantiles of integers that lie somewhere else: nothing is copied, ordered or allocated, so
 * finding them cannot fail.
 *
 * A quantile between two ranks is interpolated linearly (numpy's default, type 7): of n values in
 * order, quantile q lies at rank (n - 1) q.
 */
#ifndef SW_SIM_QUANTILE_H
#define SW_SIM_QUANTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_QUANTILES_MAX 4

/* Finds `count` (at most SW_QUANTILES_MAX) quantiles, each given in thousandths (500 is the
 * median), of what `value` gives for the indices 0 .. total - 1. `value` returns false for an index
 * to be left out, and must answer alike each time it is asked. Eight passes, whatever the values
 * are. Returns how many values took part; when there are none, all quantiles are 0. */
size_t sw_quantiles(bool (*value)(const void *context, size_t index, int64_t *ret_value), const void *context, size_t total,
		    const unsigned *thousandths, size_t count, double *ret_quantiles);

#endif
