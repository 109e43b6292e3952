#include "sim/faults.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/rng.h"

struct sw_faults {
	const struct sw_world *world;
	uint32_t node_count;
	uint64_t seed;
	struct sw_rng rng;
	struct sw_heap clocks; /* by node: when it breaks, or when it is repaired */
	bool *down;
};

/* The natural logarithm by additions, multiplications and divisions alone, so that it has the same
 * bits everywhere. For 0 < x <= 1. */
static double log_of(double x)
{
	const double ln2 = 0.69314718055994530942;
	int halvings = 0;
	while (x < 0.5) {
		x *= 2;
		halvings++;
	}
	double z = (x - 1) / (x + 1), square = z * z, power = z, sum = 0;
	for (int k = 1; k < 60; k += 2) {
		sum += power / k;
		power *= square;
	}
	return 2 * sum - halvings * ln2;
}

/* Time to the next failure of a node. */
static int64_t draw(struct sw_faults *faults)
{
	double unit = 1.0 - sw_rng_unit(&faults->rng);
	double ns = -log_of(unit) * (double)faults->world->node_mtbf_ns;
	return ns < 1.0 ? 1 : ns > 4e18 ? INT64_MAX / 2 : (int64_t)ns;
}

int sw_faults_new(const struct sw_world *world, const struct sw_topology *topology, uint64_t seed, struct sw_faults **ret_faults)
{
	struct sw_faults *faults = calloc(1, sizeof *faults);
	if (faults == NULL)
		return SW_ENOMEM;
	*faults = (struct sw_faults){.world = world, .node_count = topology->node_count, .seed = seed};
	/* Another stream than the policy's, from the same seed. */
	sw_rng_seed(&faults->rng, sw_hash_u64(seed, UINT64_C(0xfa017)));
	faults->down = calloc(topology->node_count, sizeof *faults->down);
	if (faults->down == NULL || sw_heap_reserve(&faults->clocks, topology->node_count) < 0) {
		sw_faults_free(faults);
		return SW_ENOMEM;
	}
	for (uint32_t n = 0; world->node_mtbf_ns > 0 && n < topology->node_count; n++)
		sw_heap_set(&faults->clocks, n, draw(faults));
	*ret_faults = faults;
	return 0;
}

void sw_faults_free(struct sw_faults *faults)
{
	sw_heap_release(&faults->clocks);
	free(faults->down);
	free(faults);
}

int64_t sw_faults_next(const struct sw_faults *faults)
{
	return sw_heap_top_key(&faults->clocks);
}

bool sw_faults_take(struct sw_faults *faults, int64_t now, uint32_t *ret_node, bool *ret_up)
{
	if (sw_heap_top_key(&faults->clocks) > now)
		return false;
	uint32_t node = faults->clocks.entries[0].id;
	int64_t wait = faults->down[node] ? draw(faults) : faults->world->node_repair_ns;
	faults->down[node] = !faults->down[node];
	sw_heap_set(&faults->clocks, node, wait > INT64_MAX - now ? INT64_MAX - 1 : now + (wait > 0 ? wait : 1));
	*ret_node = node;
	*ret_up = !faults->down[node];
	return true;
}

bool sw_faults_run_fails(const struct sw_faults *faults, uint32_t job, uint32_t run, uint32_t *ret_at_milli)
{
	if (faults->world->job_failure_ppm == 0)
		return false;
	struct sw_rng rng;
	sw_rng_seed(&rng, sw_hash_u64(sw_hash_u64(faults->seed, job), run));
	if ((int64_t)sw_rng_below(&rng, 1000000) >= faults->world->job_failure_ppm)
		return false;
	*ret_at_milli = (uint32_t)sw_rng_below(&rng, 1000);
	return true;
}
