/* What Tiresias promises of its shape, on traces of the project's own generator: 480 jobs with
 * Philly's heavy tails on 16 x 4 GPUs, submitted so fast that the cluster is short of GPUs all the
 * time. Seeds are fixed; of the traces that the generator draws these are some in which large jobs
 * come early enough to hurt those behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/simulator.h"
#include "sim/trace/generate.h"

#define NODES 16u

static const uint64_t seeds[] = {3, 5, 6, 8};

struct shape {
	double mean_s; /* of job completion times */
	double max_wait_s;
};

struct fixture {
	struct sw_profiles *profiles;
	struct sw_world *world;
	struct sw_topology *topology;
};

static struct sw_trace *draw(uint64_t seed)
{
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	struct sw_trace *trace = NULL;
	recipe.jobs = 480;
	recipe.gpus = 4 * NODES;
	recipe.max_job_gpus = 32;
	recipe.load_milli = 6000;
	recipe.seed = seed;
	assert_int_equal(sw_trace_generate(&recipe, &trace, NULL), 0);
	return trace;
}

static struct shape simulate(const struct fixture *fixture, const struct sw_trace *trace, const struct sw_policy *policy,
			     const char *promote)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_params_new(policy, &params, NULL), 0);
	if (promote != NULL)
		assert_int_equal(sw_params_set(params, sw_params_find(policy, "promote", NULL), promote, strlen(promote), NULL), 0);
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = fixture->topology,
		.profiles = fixture->profiles,
		.world = fixture->world,
		.policy = policy,
		.params = params,
		.placement = &sw_placement_count,
		.cluster = "16 nodes x 4 GPUs",
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s", err.fact);
	assert_int_equal(result->summary.finished, 480);
	struct shape shape = {.mean_s = result->summary.jct_avg_s};
	for (size_t j = 0; j < result->outcomes.count; j++) {
		double wait_s = (double)result->outcomes.items[j].wait_ns / 1e9;
		shape.max_wait_s = wait_s > shape.max_wait_s ? wait_s : shape.max_wait_s;
	}
	return shape;
}

/* Aim: least attained service is at least three times better than first in, first out, and
 * not far from an oracle. */
static void test_las_between_fifo_and_oracle(void **state)
{
	for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(seeds[s]);
		struct shape fifo = simulate(*state, trace, &sw_policy_fifo, NULL), las = simulate(*state, trace, &sw_policy_las, NULL);
		struct shape srtf = simulate(*state, trace, &sw_policy_srtf, NULL);
		if (fifo.mean_s / las.mean_s < 3 || las.mean_s / srtf.mean_s > 1.3)
			fail_msg("seed %llu: fifo %.0f, las %.0f, srtf %.0f s", (unsigned long long)seeds[s], fifo.mean_s, las.mean_s,
				 srtf.mean_s);
	}
}

/* Aim: taking turns is at least twice as good as first in, first out, and where nothing is packed
 * no better than running to completion by least attained service. */
static void test_turns_between_fifo_and_las(void **state)
{
	for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(seeds[s]);
		struct shape fifo = simulate(*state, trace, &sw_policy_fifo, NULL), las = simulate(*state, trace, &sw_policy_las, NULL);
		struct shape turns = simulate(*state, trace, &sw_policy_gandiva, NULL);
		if (fifo.mean_s / turns.mean_s < 2 || turns.mean_s / las.mean_s < 0.9)
			fail_msg("seed %llu: fifo %.0f, gandiva %.0f, las %.0f s", (unsigned long long)seeds[s], fifo.mean_s, turns.mean_s,
				 las.mean_s);
	}
}

/* Aim: promotion shortens the longest wait and costs the average at most 15 %. */
static void test_promotion(void **state)
{
	for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(seeds[s]);
		struct shape never = simulate(*state, trace, &sw_policy_las, "0"), knob = simulate(*state, trace, &sw_policy_las, "2");
		if (knob.max_wait_s >= never.max_wait_s || knob.mean_s > 1.15 * never.mean_s)
			fail_msg("seed %llu: longest wait %.0f and mean %.0f s with promotion, %.0f and %.0f s without",
				 (unsigned long long)seeds[s], knob.max_wait_s, knob.mean_s, never.max_wait_s, never.mean_s);
	}
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct sw_topology_node nodes[NODES];
	for (uint32_t n = 0; n < NODES; n++)
		nodes[n] = (struct sw_topology_node){
			.gpus = 4, .cpus = 128, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(1) << 36};
	assert_int_equal(sw_profiles_load_default(&fixture.profiles, NULL), 0);
	assert_int_equal(sw_world_load("ideal", &fixture.world, NULL), 0);
	assert_int_equal(sw_topology_new(nodes, NODES, &fixture.topology, NULL), 0);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sw_profiles_free(fixture->profiles);
	sw_world_free(fixture->world);
	sw_topology_free(fixture->topology);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_las_between_fifo_and_oracle),
		cmocka_unit_test(test_turns_between_fifo_and_las),
		cmocka_unit_test(test_promotion),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
