/* Maximum-weight matching against trying everything, and on graphs that are
 * known to be hard for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/rng.h"
#include "solve/matching.h"

#define SMALL 14

/* The weight of a matching, after seeing that it is one. */
static uint64_t weight_of(const uint32_t *weights, size_t count, const uint32_t *mates)
{
	uint64_t sum = 0;
	for (size_t v = 0; v < count; v++) {
		if (mates[v] == SW_MATCH_ALONE)
			continue;
		assert_true(mates[v] < count && mates[v] != v);
		assert_int_equal(mates[mates[v]], v);
		assert_true(weights[v * count + mates[v]] > 0);
		sum += v < mates[v] ? weights[v * count + mates[v]] : 0;
	}
	return sum;
}

/* Without a limit. */
static int match(const uint32_t *weights, size_t count, uint32_t *mates)
{
	uint32_t iterations = 0;
	bool whole = false;
	int r = sw_match(weights, count, UINT32_MAX, mates, &iterations, &whole);
	assert_true(r < 0 || whole);
	return r;
}

static uint64_t found(const uint32_t *weights, size_t count)
{
	uint32_t mates[SMALL];
	assert_int_equal(match(weights, count, mates), 0);
	return weight_of(weights, count, mates);
}

/* The best of all matchings, over all sets of vertices. */
static uint64_t best(const uint32_t *weights, size_t count)
{
	static uint64_t of[1 << SMALL];
	of[0] = 0;
	for (uint32_t set = 1; set < 1u << count; set++) {
		uint32_t low = (uint32_t)__builtin_ctz(set), rest = set & (set - 1);
		of[set] = of[rest];
		for (uint32_t v = low + 1; v < count; v++)
			if ((rest >> v & 1) != 0 && weights[low * count + v] > 0) {
				uint64_t with = weights[low * count + v] + of[rest & ~(1u << v)];
				of[set] = with > of[set] ? with : of[set];
			}
	}
	return of[(1u << count) - 1];
}

static void link_both(uint32_t *weights, size_t count, size_t a, size_t b, uint32_t weight)
{
	weights[a * count + b] = weights[b * count + a] = weight;
}

/* On 3,000 random graphs of up to 10 vertices, and some of 14, nothing is heavier than what was
 * found: sparse and dense, with few different weights (many ties, many blossoms) and many. */
static void test_against_all(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 1);
	for (int round = 0; round < 3050; round++) {
		uint32_t weights[SMALL * SMALL] = {0};
		size_t count = round < 3000 ? sw_rng_below(&rng, 11) : SMALL;
		uint64_t density = 1 + sw_rng_below(&rng, 10), heaviest = (uint64_t)1 << sw_rng_below(&rng, 12);
		for (size_t a = 0; a < count; a++)
			for (size_t b = 0; b < a; b++)
				if (sw_rng_below(&rng, 10) < density)
					link_both(weights, count, a, b, (uint32_t)(1 + sw_rng_below(&rng, heaviest)));
		assert_int_equal(found(weights, count), best(weights, count));
	}
}

/* Blossoms in blossoms: a heavy triangle, around it two more vertices that close a lighter odd
 * circle through any two of what is there, and so on, with a last vertex hanging on anywhere. The
 * weights fall from inside to outside, so that the inner circles close first, become inner, and
 * must open again at either side. */
static void test_nested_blossoms(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 2);
	for (int round = 0; round < 600; round++) {
		size_t levels = 1 + sw_rng_below(&rng, 5), count = 3 + 2 * levels + 1;
		uint32_t weights[SMALL * SMALL] = {0};
		for (size_t v = 0; v < 3; v++)
			link_both(weights, count, v, (v + 1) % 3, (uint32_t)(60 + sw_rng_below(&rng, 4)));
		for (size_t level = 1, next = 3; level <= levels; level++, next += 2) {
			uint32_t weight = (uint32_t)(60 - 10 * level);
			size_t a = sw_rng_below(&rng, next), b = (a + 1 + sw_rng_below(&rng, next - 1)) % next;
			link_both(weights, count, next, next + 1, weight + (uint32_t)sw_rng_below(&rng, 5));
			link_both(weights, count, next, a, weight + (uint32_t)sw_rng_below(&rng, 5));
			link_both(weights, count, next + 1, b, weight + (uint32_t)sw_rng_below(&rng, 5));
		}
		link_both(weights, count, count - 1, sw_rng_below(&rng, count - 1), (uint32_t)(1 + sw_rng_below(&rng, 70)));
		assert_int_equal(found(weights, count), best(weights, count));
	}
}

/* Circles of circles: on a chain of triangles and on odd rings, all of one weight and of weights
 * that differ by one, the greatest matching has the weight that counting says. */
static void test_rings(void **state)
{
	(void)state;
	for (size_t count = 3; count <= 301; count += 2) {
		SW_CLEANUP(sw_freep) uint32_t *weights = calloc(count * count, sizeof *weights);
		SW_CLEANUP(sw_freep) uint32_t *mates = calloc(count, sizeof *mates);
		assert_non_null(weights);
		assert_non_null(mates);
		for (size_t v = 0; v < count; v++) {
			link_both(weights, count, v, (v + 1) % count, 100);
			if (v + 2 < count)
				link_both(weights, count, v, v + 2, 99);
		}
		assert_int_equal(match(weights, count, mates), 0);
		assert_int_equal(weight_of(weights, count, mates), count / 2 * 100);
	}
}

/* Forty small graphs side by side, their vertices shuffled: the best of all of it is the sum of
 * what trying everything finds in each. */
static void test_large(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 3);
	size_t blocks = 40, size = 9, count = blocks * size;
	SW_CLEANUP(sw_freep) uint32_t *weights = calloc(count * count, sizeof *weights);
	SW_CLEANUP(sw_freep) uint32_t *mates = calloc(count, sizeof *mates);
	SW_CLEANUP(sw_freep) size_t *place = calloc(count, sizeof *place);
	assert_true(weights != NULL && mates != NULL && place != NULL);
	for (size_t i = 0; i < count; i++) {
		size_t j = sw_rng_below(&rng, i + 1);
		place[i] = place[j];
		place[j] = i;
	}
	uint64_t expected = 0;
	for (size_t block = 0; block < blocks; block++) {
		uint32_t small[SMALL * SMALL] = {0};
		for (size_t a = 0; a < size; a++)
			for (size_t b = 0; b < a; b++) {
				link_both(small, size, a, b, (uint32_t)(1 + sw_rng_below(&rng, 9)));
				link_both(weights, count, place[block * size + a], place[block * size + b], small[a * size + b]);
			}
		expected += best(small, size);
	}
	assert_int_equal(match(weights, count, mates), 0);
	assert_int_equal(weight_of(weights, count, mates), expected);
}

/* None, one, two without an edge; the diagonal is of no account; weights up to the greatest; more
 * vertices than allowed. */
static void test_limits(void **state)
{
	(void)state;
	uint32_t none[4] = {7, 0, 0, 7}, two[4] = {7, UINT32_MAX, UINT32_MAX, 7}, mates[2] = {5, 5};
	assert_int_equal(match(none, 0, mates), 0);
	assert_int_equal(mates[0], 5);
	assert_int_equal(match(none, 1, mates), 0);
	assert_int_equal(mates[0], SW_MATCH_ALONE);
	assert_int_equal(match(none, 2, mates), 0);
	assert_int_equal(mates[1], SW_MATCH_ALONE);
	assert_int_equal(match(two, 2, mates), 0);
	assert_int_equal(mates[0], 1);
	assert_int_equal(match(two, SW_MATCH_MAX + 1, mates), SW_ELIMIT);
}

/* The best of all matchings of so many pairs. */
static uint64_t best_of(const uint32_t *weights, size_t count, uint32_t pairs)
{
	static uint64_t of[SMALL / 2 + 1][1 << SMALL];
	for (uint32_t k = 0; k <= pairs; k++)
		for (uint32_t set = 0; set < 1u << count; set++) {
			uint32_t low = set != 0 ? (uint32_t)__builtin_ctz(set) : 0, rest = set & (set - 1);
			of[k][set] = k == 0 ? 1 : set == 0 ? 0 : of[k][rest]; /* one more than the weight; 0: there is none */
			for (uint32_t v = low + 1; k > 0 && v < count; v++)
				if ((rest >> v & 1) != 0 && weights[low * count + v] > 0 && of[k - 1][rest & ~(1u << v)] > 0) {
					uint64_t with = weights[low * count + v] + of[k - 1][rest & ~(1u << v)];
					of[k][set] = with > of[k][set] ? with : of[k][set];
				}
		}
	return of[pairs][(1u << count) - 1] - 1;
}

/* Stopped at any limit, it has the heaviest matching of as many pairs as it has by then, and never
 * less than at a lower limit; where it needs no more iterations it says that it is whole. */
static void test_stopped(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 4);
	for (int round = 0; round < 60; round++) {
		uint32_t weights[SMALL * SMALL] = {0}, mates[SMALL], all = 0, used = 0;
		size_t count = 2 + sw_rng_below(&rng, 9);
		uint64_t heaviest = (uint64_t)1 << sw_rng_below(&rng, 8), last = 0;
		bool whole = false;
		for (size_t a = 0; a < count; a++)
			for (size_t b = 0; b < a; b++)
				if (sw_rng_below(&rng, 10) < 7)
					link_both(weights, count, a, b, (uint32_t)(1 + sw_rng_below(&rng, heaviest)));
		assert_int_equal(sw_match(weights, count, UINT32_MAX, mates, &all, &whole), 0);
		for (uint32_t limit = 0; limit <= all; limit++) {
			uint32_t pairs = 0;
			assert_int_equal(sw_match(weights, count, limit, mates, &used, &whole), 0);
			assert_int_equal(used, limit);
			assert_int_equal(whole, limit == all);
			for (size_t v = 0; v < count; v++)
				pairs += mates[v] != SW_MATCH_ALONE && mates[v] > v;
			uint64_t weight = weight_of(weights, count, mates);
			assert_int_equal(weight, best_of(weights, count, pairs));
			assert_true(weight >= last);
			last = weight;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_all), cmocka_unit_test(test_nested_blossoms), cmocka_unit_test(test_rings),
		cmocka_unit_test(test_large),	    cmocka_unit_test(test_limits),	    cmocka_unit_test(test_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
