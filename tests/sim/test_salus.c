/* Salus in a simulated world: what a turn costs, what orders and lanes are worth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/simulator.h"

struct job {
	const char *model;
	int64_t submit_s, seconds;
};

static struct sw_trace *trace_of(const struct job *jobs, size_t count)
{
	struct sw_trace *trace = NULL;
	assert_int_equal(sw_trace_new("salus", "test", &trace), 0);
	for (size_t j = 0; j < count; j++) {
		uint32_t model = 0;
		assert_int_equal(sw_trace_intern(trace, jobs[j].model, strlen(jobs[j].model), &model), 0);
		struct sw_trace_job *job = sw_trace_add(trace);
		assert_non_null(job);
		job->id = (int64_t)j + 1;
		job->gpus = job->min_gpus = job->max_gpus = 1;
		job->model = model;
		job->submit_ns = jobs[j].submit_s * SW_NS_PER_S;
		job->duration_ns = jobs[j].seconds * SW_NS_PER_S;
	}
	return trace;
}

/* Jobs of one GPU on one node of the measured world, in which nothing breaks; parameters as
 * "name", "value", NULL. */
static struct sw_result *run(const struct job *jobs, size_t count, uint32_t gpus, const char *const *words)
{
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = trace_of(jobs, count);
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	const struct sw_topology_node node = {
		.gpus = gpus, .cpus = 128, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(80) << 30};
	assert_int_equal(sw_topology_new(&node, 1, &topology, NULL), 0);
	assert_int_equal(sw_profiles_load_default(&profiles, NULL), 0);
	assert_int_equal(sw_world_load("measured", &world, NULL), 0);
	assert_int_equal(sw_params_new(&sw_policy_salus, &params, NULL), 0);
	for (; *words != NULL; words += 2)
		assert_int_equal(sw_params_set(params, sw_params_find(&sw_policy_salus, words[0], NULL), words[1], strlen(words[1]), NULL),
				 0);
	world->node_mtbf_ns = 0;
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = topology,
		.profiles = profiles,
		.world = world,
		.policy = &sw_policy_salus,
		.params = params,
		.placement = &sw_placement_pack,
		.cluster = "one node",
		.validate = true,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(result->summary.finished, count);
	assert_int_equal(result->summary.preemptions, 0);
	return result;
}

/* Aim: 720 turns of two jobs of 2.9 GiB take exactly as long as those of two jobs of 12.3 GiB, and
 * what they cost is the time of a switch each. */
static void test_a_turn_costs_the_same_for_all(void **state)
{
	(void)state;
	static const struct job small[] = {{"googlenet", 0, 3600}, {"googlenet", 0, 3600}},
				large[] = {{"resnet152", 0, 3600}, {"resnet152", 0, 3600}};
	static const char *const words[] = {"order", "fair", "lanes", "1", "turn", "10s", NULL};
	SW_CLEANUP(sw_result_freep) struct sw_result *a = run(small, 2, 1, words), *b = run(large, 2, 1, words);
	int64_t ends = 0;
	for (size_t j = 0; j < 2; j++) {
		assert_int_equal(a->outcomes.items[j].end_ns, b->outcomes.items[j].end_ns);
		ends = a->outcomes.items[j].end_ns > ends ? a->outcomes.items[j].end_ns : ends;
	}
	/* 13 s until the first starts, then both are at work; 1 ms for each switch. */
	print_message("two hours of work took %.3f s\n", (double)ends / SW_NS_PER_S);
	assert_in_range(ends / 1000000, 7213000 + 700, 7213000 + 740);
}

/* Aim: where short jobs come after a long one, the mean completion time under srtf is at most
 * 0.4 of that under fifo. */
static void test_srtf_against_fifo(void **state)
{
	(void)state;
	struct job jobs[24];
	for (size_t j = 0; j < 24; j++)
		jobs[j] = j % 12 == 0 ? (struct job){"resnet50", (int64_t)j * 10, 36000} : (struct job){"bert", (int64_t)j * 10, 300};
	SW_CLEANUP(sw_result_freep)
	struct sw_result *srtf = run(jobs, 24, 2, (const char *const[]){"order", "srtf", "lanes", "1", NULL});
	SW_CLEANUP(sw_result_freep)
	struct sw_result *fifo = run(jobs, 24, 2, (const char *const[]){"order", "fifo", "lanes", "1", NULL});
	print_message("mean completion: srtf %.0f s, fifo %.0f s\n", srtf->summary.jct_avg_s, fifo->summary.jct_avg_s);
	assert_true(srtf->summary.jct_avg_s <= 0.4 * fifo->summary.jct_avg_s);
}

/* Aim: on random mixes of models that leave each other something, all is done earlier with as many
 * lanes as fit than with one. */
static void test_pack_against_fifo(void **state)
{
	(void)state;
	static const char *const models[] = {"resnet50", "bert", "data2vec", "inception3", "resnet18", "a2c"};
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct job jobs[30];
		struct sw_rng rng;
		sw_rng_seed(&rng, seed);
		for (size_t j = 0; j < 30; j++) {
			uint64_t model = sw_rng_below(&rng, 6);
			jobs[j] = (struct job){models[model], (int64_t)j, 600 + (int64_t)sw_rng_below(&rng, 3000)};
		}
		SW_CLEANUP(sw_result_freep) struct sw_result *pack = run(jobs, 30, 2, (const char *const[]){"order", "pack", NULL});
		SW_CLEANUP(sw_result_freep)
		struct sw_result *fifo = run(jobs, 30, 2, (const char *const[]){"order", "fifo", "lanes", "1", NULL});
		print_message("seed %d: pack %.0f s, fifo %.0f s\n", (int)seed, pack->summary.makespan_s, fifo->summary.makespan_s);
		assert_true(pack->summary.makespan_s <= fifo->summary.makespan_s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_turn_costs_the_same_for_all),
		cmocka_unit_test(test_srtf_against_fifo),
		cmocka_unit_test(test_pack_against_fifo),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
