/* What packing gains on traces of the project's own generator, that it gains nothing where nothing
 * may be shared, and that no invariant breaks by it. */
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
#include "soak.h"

#define NODES 4u

static struct sw_profiles *profiles;
static struct sw_topology *topology;

static struct sw_trace *draw(uint64_t seed)
{
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	struct sw_trace *trace = NULL;
	recipe.jobs = 1500;
	recipe.gpus = NODES * 8;
	recipe.max_job_gpus = 8;
	recipe.load_milli = 1200;
	recipe.seed = seed;
	assert_int_equal(sw_trace_generate(&recipe, &trace, NULL), 0);
	return trace;
}

static struct sw_result *simulate(const struct sw_trace *trace, const struct sw_world *world, const char *policy)
{
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = topology,
		.profiles = profiles,
		.world = world,
		.policy = sw_policy_find(policy),
		.placement = &sw_placement_pack,
		.seed = 1,
		.cluster = "4 x 8",
		.validate = true,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s: %s", policy, err.fact);
	assert_string_equal(result->notes, "");
	assert_int_equal(result->summary.finished, trace->jobs.count);
	return result;
}

/* Aim: where GPUs are short, packing on top of an order makes the average completion shorter, with
 * or without preemption, also where the order knows how long jobs take. */
static void test_gains(void **state)
{
	(void)state;
	static const struct {
		const char *alone, *packed;
		double least;
	} cases[] = {{"las", "las+pack", 1.2}, {"srtf", "srtf+pack", 1.08}, {"fjf", "fjf+pack", 1.2}};
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	assert_int_equal(sw_world_load("measured", &world, NULL), 0);
	for (uint64_t seed = 1; seed <= 2; seed++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(seed);
		for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
			SW_CLEANUP(sw_result_freep) struct sw_result *alone = simulate(trace, world, cases[n].alone);
			SW_CLEANUP(sw_result_freep) struct sw_result *packed = simulate(trace, world, cases[n].packed);
			print_message("seed %d: %s %.0f s, %s %.0f s\n", (int)seed, cases[n].alone, alone->summary.jct_avg_s,
				      cases[n].packed, packed->summary.jct_avg_s);
			assert_true(packed->summary.jct_avg_s * cases[n].least <= alone->summary.jct_avg_s);
		}
	}
}

/* Aim: in a world where nothing is known of sharing, or of models without a profile, packing
 * changes nothing at all. */
static void test_nothing_to_share(void **state)
{
	(void)state;
	for (int nameless = 0; nameless < 2; nameless++) {
		SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(3);
		assert_int_equal(sw_world_load(nameless ? "measured" : "ideal", &world, NULL), 0);
		for (size_t j = 0; j < trace->jobs.count && nameless; j++)
			trace->jobs.items[j].model = 0;
		SW_CLEANUP(sw_result_freep) struct sw_result *alone = simulate(trace, world, "las");
		SW_CLEANUP(sw_result_freep) struct sw_result *packed = simulate(trace, world, "las+pack");
		assert_int_equal(alone->command_hash, packed->command_hash);
	}
}

/* Aim: random clusters, jobs, worlds and faults under a packed order break no invariant; and so do
 * storms of events, in which other policies take over and back. */
static void test_soak(void **state)
{
	(void)state;
	static const char *const names[] = {"las+pack", "srtf+pack", "fifo+pack", "gittins+pack"};
	for (uint64_t seed = 0; seed < 24; seed++) {
		const char *name = names[seed % (sizeof names / sizeof names[0])];
		struct sw_err err = {0};
		if (sw_soak_simulate(seed, sw_policy_find(name), NULL, &err) < 0 || sw_soak_storm(seed, sw_policy_find(name), &err) < 0)
			fail_msg("%s, seed %d: %s: %s", name, (int)seed, err.fact, err.detail);
	}
}

static int set_up(void **state)
{
	(void)state;
	struct sw_topology_node nodes[NODES];
	for (uint32_t n = 0; n < NODES; n++)
		nodes[n] = (struct sw_topology_node){
			.gpus = 8, .cpus = 96, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(80) << 30};
	return sw_topology_new(nodes, NODES, &topology, NULL) < 0 ? -1 : sw_profiles_load_default(&profiles, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	sw_topology_free(topology);
	sw_profiles_free(profiles);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gains),
		cmocka_unit_test(test_nothing_to_share),
		cmocka_unit_test(test_soak),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
