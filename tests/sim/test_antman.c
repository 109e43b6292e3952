/* What AntMan promises of a cluster, on traces of the project's own generator: GPUs do more, and
 * guaranteed jobs do not wait for it. */
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

#define NODES 8u
#define NODE_GPUS 8u
#define GPUS (NODES * NODE_GPUS)

struct fixture {
	struct sw_profiles *profiles;
	struct sw_topology *topology;
};

static struct sw_trace *draw(uint64_t seed)
{
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	struct sw_trace *trace = NULL;
	recipe.jobs = 1500;
	recipe.gpus = GPUS;
	recipe.max_job_gpus = 8;
	recipe.load_milli = 3000;
	recipe.opportunistic_milli = 300;
	recipe.seed = seed;
	assert_int_equal(sw_trace_generate(&recipe, &trace, NULL), 0);
	return trace;
}

static struct sw_result *simulate(const struct fixture *fixture, const struct sw_trace *trace, const struct sw_world *world,
				  const struct sw_placement *placement, const struct sw_policy *policy, const char *const *words)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_params_new(policy, &params, NULL), 0);
	for (; words != NULL && *words != NULL; words += 2)
		assert_int_equal(sw_params_set(params, sw_params_find(policy, words[0], NULL), words[1], strlen(words[1]), NULL), 0);
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = fixture->topology,
		.profiles = fixture->profiles,
		.world = world,
		.policy = policy,
		.params = params,
		.placement = placement,
		.seed = 1,
		.cluster = "8 x 8",
		.validate = true,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s", err.fact);
	assert_int_equal(result->summary.finished, trace->jobs.count);
	return result;
}

/* Part of the GPUs' time until the last submit that became work; of a job that had not ended by
 * then, in proportion to its time. */
static double useful(const struct sw_trace *trace, const struct sw_result *result)
{
	int64_t until = trace->jobs.items[trace->jobs.count - 1].submit_ns;
	double done = 0;
	for (size_t j = 0; j < trace->jobs.count; j++) {
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		double work = (double)trace->jobs.items[j].duration_ns * trace->jobs.items[j].gpus;
		if (outcome->end_ns <= until)
			done += work;
		else if (outcome->start_ns < until)
			done += work * (double)(until - outcome->start_ns) / (double)(outcome->end_ns - outcome->start_ns);
	}
	return done / ((double)until * GPUS);
}

/* Mean time from submit to first start of guaranteed jobs. */
static double guaranteed_wait_s(const struct sw_trace *trace, const struct sw_result *result)
{
	double sum = 0;
	size_t count = 0;
	for (size_t j = 0; j < trace->jobs.count; j++) {
		if (trace->jobs.items[j].job_class != SW_CLASS_GUARANTEED)
			continue;
		sum += (double)(result->outcomes.items[j].start_ns - trace->jobs.items[j].submit_ns) / SW_NS_PER_S;
		count++;
	}
	return sum / (double)count;
}

/* Aim: where GPUs are short, antman gets more out of them than a queue for whole GPUs, in submit
 * order or one in which small jobs overtake, and guaranteed jobs wait no longer; as it is meant to
 * be used, with `auto`, at least 25 % more than in submit order. How much more there is hangs on
 * how idle guaranteed jobs leave their GPUs. */
static void test_utilisation(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	assert_int_equal(sw_world_load("measured", &world, NULL), 0);
	world->node_mtbf_ns = 0;
	static const struct {
		const char *automatic;
		const struct sw_policy *queue;
		double least;
	} cases[] = {{"on", &sw_policy_fifo, 1.25}, {"off", &sw_policy_fifo, 1.05}, {"on", &sw_policy_fjf, 1.05}};
	for (uint64_t seed = 1; seed <= 3; seed++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(seed);
		for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
			const char *const words[] = {"auto", cases[c].automatic, NULL};
			SW_CLEANUP(sw_result_freep)
			struct sw_result *shared = simulate(fixture, trace, world, &sw_placement_yarn, &sw_policy_antman, words);
			SW_CLEANUP(sw_result_freep)
			struct sw_result *exclusive = simulate(fixture, trace, world, &sw_placement_yarn, cases[c].queue, NULL);
			double gain = useful(trace, shared) / useful(trace, exclusive);
			double wait_s = guaranteed_wait_s(trace, shared), wait_exclusive_s = guaranteed_wait_s(trace, exclusive);
			print_message("seed %d, auto %s: %.2f times the work under %s, guaranteed jobs wait %.0f s instead of %.0f s\n",
				      (int)seed, cases[c].automatic, gain, cases[c].queue->name, wait_s, wait_exclusive_s);
			assert_true(gain >= cases[c].least);
			assert_true(wait_s <= wait_exclusive_s);
		}
	}
}

/* The trace without its opportunistic jobs. */
static struct sw_trace *guaranteed_only(const struct sw_trace *trace)
{
	struct sw_trace *rest = NULL;
	assert_int_equal(sw_trace_new("test", "test", &rest), 0);
	for (size_t j = 0; j < trace->jobs.count; j++) {
		if (trace->jobs.items[j].job_class != SW_CLASS_GUARANTEED)
			continue;
		struct sw_trace_job *job = sw_trace_add(rest);
		*job = trace->jobs.items[j];
		job->name = job->model = job->user = 0;
	}
	return rest;
}

/* Aim: guaranteed jobs start and end to the nanosecond as if opportunistic ones did not exist,
 * where sharing and stopping cost nothing. */
static void test_guaranteed_jobs_do_not_notice(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	assert_int_equal(sw_world_load("ideal", &world, NULL), 0);
	for (uint64_t seed = 1; seed <= 5; seed++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(seed), *rest = guaranteed_only(trace);
		SW_CLEANUP(sw_result_freep)
		struct sw_result *all = simulate(fixture, trace, world, &sw_placement_count, &sw_policy_antman,
						 (const char *const[]){"auto", "off", "patience", "0s", NULL});
		SW_CLEANUP(sw_result_freep)
		struct sw_result *alone = simulate(fixture, rest, world, &sw_placement_count, &sw_policy_fifo, NULL);
		assert_true(all->summary.preemptions > 0);
		for (size_t j = 0, r = 0; j < trace->jobs.count; j++) {
			if (trace->jobs.items[j].job_class != SW_CLASS_GUARANTEED)
				continue;
			assert_int_equal(all->outcomes.items[j].start_ns, alone->outcomes.items[r].start_ns);
			assert_int_equal(all->outcomes.items[j].end_ns, alone->outcomes.items[r].end_ns);
			r++;
		}
	}
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct sw_topology_node nodes[NODES];
	for (uint32_t n = 0; n < NODES; n++)
		nodes[n] = (struct sw_topology_node){
			.gpus = NODE_GPUS, .cpus = 96, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(80) << 30};
	assert_int_equal(sw_topology_new(nodes, NODES, &fixture.topology, NULL), 0);
	assert_int_equal(sw_profiles_load_default(&fixture.profiles, NULL), 0);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sw_topology_free(fixture->topology);
	sw_profiles_free(fixture->profiles);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utilisation),
		cmocka_unit_test(test_guaranteed_jobs_do_not_notice),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
