/* Which job sits on which GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sim/neighbours.h"

#define JOBS 12u
#define GPUS 8u

static const struct sw_topology_node nodes[] = {
	{.gpus = 2, .gpu_memory_bytes = 100}, {.gpus = 4, .gpu_memory_bytes = 100}, {.gpus = 2, .gpu_memory_bytes = 100}};

/* Parts for a mask over all GPUs, counted through the nodes. */
static uint32_t parts_of(struct sw_ledger *ledger, uint32_t gpus)
{
	uint32_t head = SW_NO_PART, first[] = {0, 2, 6}, count[] = {2, 4, 2};
	for (uint32_t n = 3; n-- > 0;) {
		uint64_t mask = gpus >> first[n] & ((1u << count[n]) - 1);
		if (mask == 0)
			continue;
		struct sw_spot spot;
		sw_spot_begin(&spot, ledger, (struct sw_share){.gpu_memory_bytes = 1, .compute_milli = 1, .guaranteed = false});
		assert_true(sw_spot_add(&spot, (struct sw_node_id){n}, 1, 0, 0));
		ledger->parts[spot.head].mask = mask;
		ledger->parts[spot.head].next = head;
		head = spot.head;
	}
	return head;
}

static bool sits_among(const uint32_t *residents, uint32_t count, uint32_t job)
{
	uint32_t times = 0;
	for (uint32_t r = 0; r < count; r++)
		times += residents[r] == job;
	assert_true(times <= 1);
	return times == 1;
}

/* Aim: after any sequence of sitting down and getting up, each GPU has just the residents
 * that a plain table says. */
static void test_against_a_table(void **state)
{
	(void)state;
	struct sw_rng rng;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_ledger ledger;
	uint32_t seats[JOBS] = {0}, residents_of[GPUS] = {0};
	assert_int_equal(sw_topology_new(nodes, 3, &topology, NULL), 0);
	assert_int_equal(sw_ledger_init(&ledger, topology), 0);
	struct sw_neighbours *neighbours = sw_neighbours_new(GPUS, JOBS);
	assert_non_null(neighbours);
	sw_rng_seed(&rng, 1);
	for (int step = 0; step < 3000; step++) {
		uint32_t job = (uint32_t)sw_rng_below(&rng, JOBS), wanted = 1 + (uint32_t)sw_rng_below(&rng, 255);
		if (seats[job] != 0) {
			sw_neighbours_leave(neighbours, job);
			for (uint32_t g = 0; g < GPUS; g++)
				residents_of[g] -= seats[job] >> g & 1;
			seats[job] = 0;
		} else {
			for (uint32_t g = 0; g < GPUS; g++)
				if (residents_of[g] == SW_GPU_RESIDENTS_MAX)
					wanted &= ~(1u << g);
			uint32_t parts = parts_of(&ledger, wanted);
			assert_int_equal(sw_neighbours_enter(neighbours, &ledger, job, parts), 0);
			sw_ledger_drop_parts(&ledger, parts);
			for (uint32_t g = 0; g < GPUS; g++)
				residents_of[g] += wanted >> g & 1;
			seats[job] = wanted;
		}
		for (uint32_t j = 0; j < JOBS; j++) {
			const uint32_t *residents;
			uint32_t count, index = 0;
			for (uint32_t g = 0; g < GPUS; g++) {
				if ((seats[j] >> g & 1) == 0)
					continue;
				assert_true(sw_neighbours_at(neighbours, j, index++, &residents, &count));
				assert_int_equal(count, residents_of[g]);
				for (uint32_t k = 0; k < JOBS; k++)
					assert_int_equal(sits_among(residents, count, k), seats[k] >> g & 1);
			}
			assert_false(sw_neighbours_at(neighbours, j, index, &residents, &count));
		}
	}
	sw_neighbours_free(neighbours);
	sw_ledger_release(&ledger);
}

/* Aim: a job that sits nowhere has no neighbours, and getting up twice does no harm. */
static void test_nowhere(void **state)
{
	(void)state;
	const uint32_t *residents;
	uint32_t count;
	struct sw_neighbours *neighbours = sw_neighbours_new(GPUS, JOBS);
	assert_non_null(neighbours);
	assert_false(sw_neighbours_at(neighbours, 3, 0, &residents, &count));
	sw_neighbours_leave(neighbours, 3);
	sw_neighbours_leave(neighbours, 3);
	sw_neighbours_free(neighbours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_a_table),
		cmocka_unit_test(test_nowhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
