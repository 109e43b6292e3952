/* How long it takes to choose which jobs share GPUs: exact matching on dense random graphs, and the packer on jobs of the known models. Prints
 * one line of JSON each: median and longest of the repeats, in milliseconds of CPU time.
 *
 *	bench_packing [repeats]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "contention/match.h"
#include "contention/pack.h"

#define REPEATS_MAX 1000

static int64_t clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
	return (a > b) - (a < b);
}

static void report(const char *what, size_t jobs, int64_t *took_ns, int repeats)
{
	qsort(took_ns, (size_t)repeats, sizeof *took_ns, compare);
	printf("{\"what\": \"%s\", \"jobs\": %zu, \"median_ms\": %.3f, \"longest_ms\": %.3f}\n", what, jobs,
	       (double)took_ns[repeats / 2] / 1e6, (double)took_ns[repeats - 1] / 1e6);
}

static void match(struct sw_rng *rng, size_t jobs, int repeats)
{
	static uint32_t weights[SW_MATCH_MAX * SW_MATCH_MAX], mates[SW_MATCH_MAX];
	int64_t took_ns[REPEATS_MAX];
	for (int i = 0; i < repeats; i++) {
		for (size_t a = 0; a < jobs; a++)
			for (size_t b = 0; b < a; b++)
				weights[a * jobs + b] = weights[b * jobs + a] = (uint32_t)(1300 + sw_rng_below(rng, 700));
		int64_t start = clock_ns();
		if (sw_match(weights, jobs, mates) < 0)
			exit(1);
		took_ns[i] = clock_ns() - start;
	}
	report("exact matching", jobs, took_ns, repeats);
}

static void pack(struct sw_rng *rng, const struct sw_profiles *profiles, size_t jobs, uint32_t set_max, int repeats)
{
	static const struct sw_profile *chosen[SW_PACK_JOBS_MAX];
	static struct sw_pack_set sets[SW_PACK_JOBS_MAX];
	int64_t took_ns[REPEATS_MAX];
	struct sw_pack_rule rule = sw_pack_rule_of(UINT64_C(80) << 30);
	size_t known = 0, count = 0;
	while (sw_profiles_at(profiles, known) != NULL)
		known++;
	rule.set_max = set_max;
	for (int i = 0; i < repeats; i++) {
		for (size_t j = 0; j < jobs; j++)
			chosen[j] = sw_profiles_at(profiles, sw_rng_below(rng, known));
		int64_t start = clock_ns();
		if (sw_pack(&rule, chosen, jobs, sets, &count) < 0)
			exit(1);
		took_ns[i] = clock_ns() - start;
	}
	report(set_max == 2 ? "packing pairs" : "packing sets of up to 4", jobs, took_ns, repeats);
}

int main(int argc, char **argv)
{
	int repeats = argc > 1 ? atoi(argv[1]) : 9;
	repeats = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
	struct sw_rng rng;
	sw_rng_seed(&rng, 1);
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	if (sw_profiles_load_default(&profiles, NULL) < 0)
		return 1;
	static const size_t sizes[] = {50, 100, 200, 512}, crowds[] = {50, 200, 1000, 4000};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		match(&rng, sizes[i], repeats);
	for (size_t i = 0; i < sizeof crowds / sizeof crowds[0]; i++)
		pack(&rng, profiles, crowds[i], 2, repeats);
	for (size_t i = 0; i < 3; i++)
		pack(&rng, profiles, crowds[i], 4, repeats);
	return 0;
}
