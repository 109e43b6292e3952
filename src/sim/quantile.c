/* Radix selection: each pass fixes eleven more bits of every wanted value, from the top. It counts
 * how many values share what is known so far.
 *
 * Invariants after each pass, for every search:
 *  1. the wanted value starts with the bits of `prefix` that are under `known`;
 *  2. exactly `rank` of the values that start so are smaller than it, or equal to it
 *     and counted before it.
 */
#include "sim/quantile.h"

#include <assert.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define SIGN (UINT64_C(1) << 63)

struct search {
	uint64_t prefix;
	uint64_t next; /* the value one rank further up */
	size_t rank;
	size_t equal_above; /* how many values equal to the wanted one have a higher rank */
	unsigned fraction;  /* thousandths of the way to `next` */
	size_t counts[DIGITS];
};

struct source {
	bool (*value)(const void *context, size_t index, int64_t *ret_value);
	const void *context;
	size_t total;
};

/* Orders negative numbers before positive ones as unsigned keys. */
static bool key_of(const struct source *source, size_t index, uint64_t *ret_key)
{
	int64_t value;
	if (!source->value(source->context, index, &value))
		return false;
	*ret_key = (uint64_t)value ^ SIGN;
	return true;
}

static size_t count_values(const struct source *source)
{
	size_t n = 0;
	uint64_t key;
	for (size_t i = 0; i < source->total; i++)
		n += key_of(source, i, &key);
	return n;
}

static void take_digit(struct search *search, unsigned shift)
{
	unsigned digit = 0;
	while (search->rank >= search->counts[digit])
		search->rank -= search->counts[digit++];
	search->prefix |= (uint64_t)digit << shift;
	search->equal_above = search->counts[digit] - search->rank - 1;
}

static void find_digit(const struct source *source, struct search *searches, size_t count, unsigned shift, uint64_t known)
{
	for (size_t s = 0; s < count; s++)
		memset(searches[s].counts, 0, sizeof searches[s].counts);
	for (size_t i = 0; i < source->total; i++) {
		uint64_t key;
		if (!key_of(source, i, &key))
			continue;
		for (size_t s = 0; s < count; s++)
			if (((key ^ searches[s].prefix) & known) == 0)
				searches[s].counts[(key >> shift) & (DIGITS - 1)]++;
	}
	for (size_t s = 0; s < count; s++)
		take_digit(&searches[s], shift);
}

/* The value one rank above: the same one where it occurs again, else the
 * smallest that is greater. */
static void find_next(const struct source *source, struct search *searches, size_t count)
{
	for (size_t s = 0; s < count; s++)
		searches[s].next = searches[s].equal_above > 0 ? searches[s].prefix : UINT64_MAX;
	for (size_t i = 0; i < source->total; i++) {
		uint64_t key;
		if (!key_of(source, i, &key))
			continue;
		for (size_t s = 0; s < count; s++)
			if (key > searches[s].prefix && key < searches[s].next)
				searches[s].next = key;
	}
}

static double interpolate(const struct search *search)
{
	double low = (double)(int64_t)(search->prefix ^ SIGN);
	if (search->fraction == 0)
		return low;
	double high = (double)(int64_t)(search->next ^ SIGN);
	return low + (high - low) * search->fraction / 1000;
}

size_t sw_quantiles(bool (*value)(const void *context, size_t index, int64_t *ret_value), const void *context, size_t total,
		    const unsigned *thousandths, size_t count, double *ret_quantiles)
{
	assert(count <= SW_QUANTILES_MAX);
	const struct source source = {.value = value, .context = context, .total = total};
	size_t n = count_values(&source);
	if (n == 0) {
		memset(ret_quantiles, 0, count * sizeof *ret_quantiles);
		return 0;
	}

	struct search searches[SW_QUANTILES_MAX];
	for (size_t s = 0; s < count; s++) {
		assert(thousandths[s] <= 1000);
		/* (n - 1) * thousandths / 1000 without overflow. */
		size_t whole = (n - 1) / 1000 * thousandths[s];
		size_t rest = (n - 1) % 1000 * thousandths[s];
		searches[s].prefix = 0;
		searches[s].rank = whole + rest / 1000;
		searches[s].fraction = (unsigned)(rest % 1000);
	}
	uint64_t known = 0;
	for (unsigned shift = 55;; shift -= DIGIT_BITS) {
		find_digit(&source, searches, count, shift, known);
		if (shift == 0)
			break;
		known = ~UINT64_C(0) << shift;
	}
	find_next(&source, searches, count);
	for (size_t s = 0; s < count; s++)
		ret_quantiles[s] = interpolate(&searches[s]);
	return n;
}
