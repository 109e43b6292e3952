/* How long it takes to choose which jobs share GPUs: exact matching on dense random graphs, and one
 * decision of las+pack in which many jobs come to a cluster that is full. Prints one line of JSON
 * each: median and longest of the repeats, in milliseconds of CPU time.
 *
 *	bench_packing [repeats]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/number.h"
#include "base/rng.h"
#include "contention/crowd.h"
#include "core/engine.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "solve/matching.h"

#define REPEATS_MAX 1000
#define JOBS_MAX 4096

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
	uint32_t iterations;
	bool whole;
	for (int i = 0; i < repeats; i++) {
		for (size_t a = 0; a < jobs; a++)
			for (size_t b = 0; b < a; b++)
				weights[a * jobs + b] = weights[b * jobs + a] = (uint32_t)(1300 + sw_rng_below(rng, 700));
		int64_t start = clock_ns();
		if (sw_match(weights, jobs, UINT32_MAX, mates, &iterations, &whole) < 0)
			exit(1);
		took_ns[i] = clock_ns() - start;
	}
	report("exact matching", jobs, took_ns, repeats);
}

/* Submits jobs of random models in one step and tells how long that took. */
static int64_t submit(struct sw_engine *engine, struct sw_rng *rng, const struct sw_profiles *profiles, size_t jobs, sw_ns at)
{
	static struct sw_job_spec specs[JOBS_MAX];
	static struct sw_event events[JOBS_MAX];
	struct sw_step step;
	size_t known = 0;
	while (sw_profiles_at(profiles, known) != NULL)
		known++;
	for (size_t j = 0; j < jobs; j++) {
		const struct sw_profile *profile = sw_profiles_at(profiles, sw_rng_below(rng, known));
		specs[j] = (struct sw_job_spec){.gpus = 1,
						.min_gpus = 1,
						.max_gpus = 1,
						.model = profile->number,
						.gpu_memory_bytes = profile->mem_persistent_bytes + profile->mem_ephemeral_bytes,
						.knowledge = SW_KNOWN,
						.work_ns = 3600 * SW_NS_PER_S,
						.deadline_at = SW_TIME_NEVER};
		events[j] = (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &specs[j]};
	}
	int64_t start = clock_ns();
	if (sw_engine_step(engine, at, events, jobs, &step, NULL) < 0)
		exit(1);
	return clock_ns() - start;
}

/* A decision of las+pack on as many nodes of 8 GPUs, all in use, when so many jobs come at once. */
static void decide(struct sw_rng *rng, const struct sw_profiles *profiles, uint32_t nodes, size_t jobs, int repeats)
{
	int64_t took_ns[REPEATS_MAX];
	uint32_t packed = 0;
	struct sw_topology_node *shapes = calloc(nodes, sizeof *shapes);
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_crowd_freep) struct sw_crowd *crowd = NULL;
	const struct sw_crowd_rule rule = {.model = sw_predict_default, .among = SW_WAY_MPS, .gated = true};
	for (uint32_t n = 0; shapes != NULL && n < nodes; n++)
		shapes[n] = (struct sw_topology_node){
			.gpus = 8, .cpus = 128, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(80) << 30};
	if (shapes == NULL || sw_topology_new(shapes, nodes, &topology, NULL) < 0 || sw_crowd_new(profiles, &rule, &crowd, NULL) < 0)
		exit(1);
	free(shapes);
	for (int i = 0; i < repeats; i++) {
		SW_CLEANUP(sw_engine_freep) struct sw_engine *engine = NULL;
		const struct sw_engine_config config = {.topology = topology,
							.policy = sw_policy_find("las+pack"),
							.placement = &sw_placement_pack,
							.terms.keeps_state = true,
							.terms.quantum_ns = 60 * SW_NS_PER_S,
							.predictor = {crowd, sw_crowd_speeds}};
		if (sw_engine_new(&config, &engine, NULL) < 0)
			exit(1);
		submit(engine, rng, profiles, (size_t)nodes * 8, 0);
		took_ns[i] = submit(engine, rng, profiles, jobs, SW_NS_PER_S);
		packed = sw_view_running(sw_engine_view(engine)) - nodes * 8;
	}
	report("a decision of las+pack, submitting included", jobs, took_ns, repeats);
	printf("{\"what\": \"of these were packed\", \"gpus\": %u, \"jobs\": %u}\n", nodes * 8, packed);
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
	static const size_t sizes[] = {50, 100, 200, 512};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		match(&rng, sizes[i], repeats);
	decide(&rng, profiles, 250, 1000, repeats);
	return 0;
}
