/* The worked example of Tiresias's talk, through the simulator: two GPUs and three jobs (GPUs,
 * seconds) J1(2,2) J2(1,8) J3(2,6), all at time zero; and the plainest queue of all, whose answer
 * can be added up by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/simulator.h"

struct job {
	uint32_t gpus;
	int64_t seconds;
};

struct setting {
	const char *name;
	const char *value;
};

static const struct job example[] = {{2, 2}, {1, 8}, {2, 6}};

static struct sw_trace *trace_of(const struct job *jobs, size_t count)
{
	struct sw_trace *trace = NULL;
	assert_int_equal(sw_trace_new("example", "test", &trace), 0);
	for (size_t j = 0; j < count; j++) {
		struct sw_trace_job *job = sw_trace_add(trace);
		assert_non_null(job);
		job->id = (int64_t)j + 1;
		job->gpus = job->min_gpus = job->max_gpus = jobs[j].gpus;
		job->duration_ns = jobs[j].seconds * SW_NS_PER_S;
	}
	return trace;
}

static struct sw_params *params_of(const struct sw_policy *policy, const struct setting *settings)
{
	struct sw_params *params = NULL;
	assert_int_equal(sw_params_new(policy, &params, NULL), 0);
	for (; settings != NULL && settings->name != NULL; settings++) {
		const struct sw_param *param = sw_params_find(policy, settings->name, NULL);
		assert_non_null(param);
		assert_int_equal(sw_params_set(params, param, settings->value, strlen(settings->value), NULL), 0);
	}
	return params;
}

static struct sw_result *run(const struct job *jobs, size_t count, uint32_t gpus, const struct sw_policy *policy,
			     const struct setting *settings)
{
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = trace_of(jobs, count);
	SW_CLEANUP(sw_params_freep) struct sw_params *params = params_of(policy, settings);
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	const struct sw_topology_node node = {
		.gpus = gpus, .cpus = 128, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(1) << 36};
	assert_int_equal(sw_topology_new(&node, 1, &topology, NULL), 0);
	assert_int_equal(sw_profiles_load_default(&profiles, NULL), 0);
	assert_int_equal(sw_world_load("ideal", &world, NULL), 0);
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = topology,
		.profiles = profiles,
		.world = world,
		.policy = policy,
		.params = params,
		.placement = &sw_placement_count,
		.cluster = "example",
		.validate = true,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(result->summary.finished, count);
	return result;
}

static void expect_ends(const struct sw_result *result, const int64_t *seconds)
{
	for (size_t j = 0; j < result->outcomes.count; j++)
		assert_int_equal(result->outcomes.items[j].end_ns, seconds[j] * SW_NS_PER_S);
}

/* Aim: shortest remaining service runs the jobs one after the other by GPU time: 2, 10 and
 * 16 s, on average 9.33. */
static void test_srsf(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = run(example, 3, 2, &sw_policy_srsf, NULL);
	expect_ends(result, (const int64_t[]){2, 10, 16});
	assert_float_equal(result->summary.jct_avg_s, 28.0 / 3, 1e-9);
}

/* Aim: plain least attained service, looked at every second, ends the jobs at 5, 14 and
 * 16 s, on average 11.67. */
static void test_las_by_the_second(void **state)
{
	(void)state;
	static const struct setting settings[] = {{"thresholds", ""}, {"tick", "1s"}, {NULL, NULL}};
	SW_CLEANUP(sw_result_freep) struct sw_result *result = run(example, 3, 2, &sw_policy_las, settings);
	expect_ends(result, (const int64_t[]){5, 14, 16});
	assert_float_equal(result->summary.jct_avg_s, 35.0 / 3, 1e-9);
}

/* Aim: the Gittins index with the jobs' own distribution lies between the oracle and what the talk
 * computed by hand: 9.33 to 10. */
static void test_gittins(void **state)
{
	(void)state;
	static const struct setting settings[] = {
		{"thresholds", ""}, {"samples", "4\n8\n12\n"}, {"delta", "4"}, {"tick", "1s"}, {NULL, NULL},
	};
	SW_CLEANUP(sw_result_freep) struct sw_result *result = run(example, 3, 2, &sw_policy_gittins, settings);
	if (result->summary.jct_avg_s < 28.0 / 3 - 1e-9 || result->summary.jct_avg_s > 10.0 + 1e-9)
		fail_msg("average %.4f s is not in 9.33 to 10", result->summary.jct_avg_s);
}

/* Aim: first in, first out on one GPU ends every job at the sum of all durations so far. */
static void test_fifo_adds_up(void **state)
{
	(void)state;
	struct job jobs[40];
	int64_t ends[40], sum = 0;
	struct sw_rng rng;
	sw_rng_seed(&rng, 7);
	for (size_t j = 0; j < 40; j++) {
		jobs[j] = (struct job){1, 1 + (int64_t)sw_rng_below(&rng, 500)};
		ends[j] = sum += jobs[j].seconds;
	}
	SW_CLEANUP(sw_result_freep) struct sw_result *result = run(jobs, 40, 1, &sw_policy_fifo, NULL);
	expect_ends(result, ends);
	assert_int_equal(result->summary.preemptions, 0);
	assert_float_equal(result->summary.makespan_s, (double)sum, 1e-9);
	assert_float_equal(result->summary.gpu_utilization, 1.0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_srsf),
		cmocka_unit_test(test_las_by_the_second),
		cmocka_unit_test(test_gittins),
		cmocka_unit_test(test_fifo_adds_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
