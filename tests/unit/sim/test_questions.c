/* Questions of a simulated policy: when their answers come, and that they come again after the
 * engine was saved and loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/simulator.h"
#include "unit/core/rig.h"
#include "unit/solve/pairs.h"

static const struct sw_topology_node nodes[] = {RIG_NODE(0, 2)};

/* Four jobs that come at once, for two GPUs. */
static struct sw_result *simulate(sw_ns start_ns, sw_ns iteration_ns, uint32_t reload_milli)
{
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	rig_must(sw_world_load("ideal", &world, &err), &err);
	rig_must(sw_topology_new(nodes, 1, &topology, &err), &err);
	rig_must(sw_profiles_load_default(&profiles, &err), &err);
	rig_must(sw_trace_new("four", "test", &trace), &err);
	for (int j = 0; j < 4; j++) {
		struct sw_trace_job *job = sw_trace_add(trace);
		job->gpus = job->min_gpus = job->max_gpus = 1;
		job->duration_ns = 100 * SW_NS_PER_S;
		job->gpu_memory_mib = 10 << 10;
	}
	world->solve_start_ns = start_ns;
	world->solve_iteration_ns = iteration_ns;
	const struct sw_sim_config config = {.trace = trace,
					     .topology = topology,
					     .profiles = profiles,
					     .world = world,
					     .policy = &pairs,
					     .placement = &sw_placement_count,
					     .cluster = "one node",
					     .validate = true,
					     .reload_milli = reload_milli};
	rig_must(sw_simulate(&config, &result, &err), &err);
	assert_string_equal(result->notes, "");
	return result;
}

/* When the jobs start, which they all do at once. */
static sw_ns start_of(const struct sw_result *result)
{
	assert_int_equal(result->outcomes.count, 4);
	for (size_t j = 0; j < 4; j++) {
		assert_int_equal(result->outcomes.items[j].state, SW_OUTCOME_FINISHED);
		assert_int_equal(result->outcomes.items[j].start_ns, result->outcomes.items[0].start_ns);
	}
	return result->outcomes.items[0].start_ns;
}

static sw_ns starts_after(sw_ns start_ns, sw_ns iteration_ns)
{
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(start_ns, iteration_ns, 0);
	return start_of(result);
}

/* Aim: the answer comes at the next nanosecond where solving costs nothing, else after the start
 * and its iterations; and jobs are placed by it, two on each GPU. */
static void test_delay(void **state)
{
	(void)state;
	assert_int_equal(starts_after(0, 0), 1);
	assert_int_equal(starts_after(5 * SW_NS_PER_S, 0), 5 * SW_NS_PER_S);
	sw_ns by_iterations = starts_after(0, SW_NS_PER_S);
	assert_true(by_iterations > SW_NS_PER_S && by_iterations % SW_NS_PER_S == 0);
	assert_int_equal(starts_after(5, SW_NS_PER_S), by_iterations + 5);
}

/* Aim: a simulation whose engine is saved and loaded at each step gets the same answers at the
 * same moments. */
static void test_reload(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *first = simulate(10 * SW_NS_PER_MS, SW_NS_PER_US, 0);
	SW_CLEANUP(sw_result_freep) struct sw_result *again = simulate(10 * SW_NS_PER_MS, SW_NS_PER_US, 1000);
	assert_true(first->log_hash == again->log_hash);
	assert_true(first->command_hash == again->command_hash);
	assert_int_equal(start_of(first), start_of(again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_delay), cmocka_unit_test(test_reload)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
