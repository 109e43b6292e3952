/* The engine against the naive model: on random small clusters and traces full of ties, every job
 * must start and end at the same nanosecond and be preempted as often. A difference prints the seed
 * that replays it: SEED=n and the name of the case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "naive.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/simulator.h"

#define SEEDS 400u
#define JOBS_MAX 80u

struct instance {
	struct sw_naive_cluster cluster;
	struct sw_naive_job jobs[JOBS_MAX];
	size_t count;
	int64_t promote_milli;
};

struct fixture {
	struct sw_profiles *profiles;
	struct sw_world *ideal, *muri;
};

/* Small numbers, so that keys and times tie often; fractions of a second where the world has
 * them. */
static void draw(struct sw_rng *rng, bool overhead, struct instance *instance)
{
	static const uint32_t sizes[] = {1, 1, 1, 1, 2, 2, 3, 4, 4, 8, 12, 16};
	instance->cluster = (struct sw_naive_cluster){
		.racks = 1 + (uint32_t)sw_rng_below(rng, 2),
		.nodes_per_rack = 1 + (uint32_t)sw_rng_below(rng, 4),
		.gpus_per_node = (uint32_t[]){2, 4, 8}[sw_rng_below(rng, 3)],
		.cpus_per_node = sw_rng_below(rng, 4) == 0 ? 20 : 128,
		.mem_gb_per_node = sw_rng_below(rng, 4) == 0 ? 40 : 256,
	};
	instance->count = 5 + sw_rng_below(rng, JOBS_MAX - 5);
	instance->promote_milli = sw_rng_below(rng, 2) * 1000 * (1 + sw_rng_below(rng, 4));
	int64_t now = 0;
	uint64_t spread = 1 + sw_rng_below(rng, 60);
	for (size_t j = 0; j < instance->count; j++) {
		now += (int64_t)sw_rng_below(rng, 3) * (int64_t)sw_rng_below(rng, spread);
		int64_t work = 1 + (int64_t)sw_rng_below(rng, sw_rng_below(rng, 8) == 0 ? 9000 : 60);
		instance->jobs[j] = (struct sw_naive_job){
			.submit_ns = now * SW_NS_PER_S,
			.work_ns = work * SW_NS_PER_S + (overhead ? (int64_t)sw_rng_below(rng, 3) * 250000000 : 0),
			.overhead_ns = overhead ? 10 * SW_NS_PER_S : 0,
			.gpus = sizes[sw_rng_below(rng, sizeof sizes / sizeof sizes[0])],
		};
	}
}

static struct sw_trace *as_trace(const struct instance *instance)
{
	struct sw_trace *trace = calloc(1, sizeof *trace);
	char **empty = sw_vec_push(&trace->strings);
	*empty = strdup("");
	trace->origin = strdup("random");
	trace->format = "test";
	for (size_t j = 0; j < instance->count; j++) {
		uint32_t gpus = instance->jobs[j].gpus;
		*sw_vec_push(&trace->jobs) = (struct sw_trace_job){.id = (int64_t)j,
								   .submit_ns = instance->jobs[j].submit_ns,
								   .duration_ns = instance->jobs[j].work_ns,
								   .deadline_ns = SW_NEVER,
								   .gpus = gpus,
								   .min_gpus = gpus,
								   .max_gpus = gpus};
	}
	return trace;
}

static struct sw_topology *as_topology(const struct sw_naive_cluster *cluster)
{
	struct sw_topology_node nodes[64];
	uint32_t count = cluster->racks * cluster->nodes_per_rack;
	for (uint32_t n = 0; n < count; n++)
		nodes[n] = (struct sw_topology_node){.rack = n / cluster->nodes_per_rack,
						     .gpus = cluster->gpus_per_node,
						     .cpus = cluster->cpus_per_node,
						     .memory_bytes = (uint64_t)cluster->mem_gb_per_node << 30,
						     .gpu_memory_bytes = UINT64_C(80) << 30};
	struct sw_topology *topology;
	assert_int_equal(sw_topology_new(nodes, count, &topology, NULL), 0);
	return topology;
}

static void set_promotion(struct sw_params *params, int64_t promote_milli)
{
	char text[32];
	int length = snprintf(text, sizeof text, "%lld.%03lld", (long long)(promote_milli / 1000), (long long)(promote_milli % 1000));
	const struct sw_param *param = sw_params_find(params->policy, "promote", NULL);
	if (param != NULL)
		assert_int_equal(sw_params_set(params, param, text, (size_t)length, NULL), 0);
}

static struct sw_result *simulate(const struct fixture *fixture, const struct instance *instance, const struct sw_policy *policy,
				  const struct sw_placement *placement, const struct sw_world *world)
{
	struct sw_trace *trace = as_trace(instance);
	struct sw_topology *topology = as_topology(&instance->cluster);
	struct sw_params *params;
	struct sw_err err = {0};
	assert_int_equal(sw_params_new(policy, &params, NULL), 0);
	set_promotion(params, instance->promote_milli);
	struct sw_sim_config config = {.trace = trace,
				       .topology = topology,
				       .profiles = fixture->profiles,
				       .world = world,
				       .policy = policy,
				       .params = params,
				       .placement = placement,
				       .cluster = "random",
				       .validate = true};
	struct sw_result *result = NULL;
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	sw_params_free(params);
	sw_topology_free(topology);
	sw_trace_free(trace);
	return result;
}

/* Jobs that no empty cluster could hold are refused by the engine and wait for ever in the naive
 * model: leave them out. */
static bool drop_refused(struct instance *instance, const struct sw_result *result)
{
	size_t kept = 0;
	for (size_t j = 0; j < result->outcomes.count; j++)
		if (result->outcomes.items[j].state != SW_OUTCOME_REFUSED)
			instance->jobs[kept++] = instance->jobs[j];
	bool dropped = kept < instance->count;
	instance->count = kept;
	return dropped;
}

static void compare(const struct sw_naive_fate *fates, const struct sw_result *result, uint64_t seed, const char *name)
{
	for (size_t j = 0; j < result->outcomes.count; j++) {
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		if (outcome->start_ns != fates[j].start_ns || outcome->end_ns != fates[j].end_ns ||
		    outcome->preemptions != fates[j].preemptions || outcome->promotions != fates[j].promotions)
			fail_msg("%s, SEED=%llu: job %zu starts %lld ends %lld preempted %u promoted %u; the naive model says %lld %lld %u "
				 "%u",
				 name, (unsigned long long)seed, j, (long long)outcome->start_ns, (long long)outcome->end_ns,
				 outcome->preemptions, outcome->promotions, (long long)fates[j].start_ns, (long long)fates[j].end_ns,
				 fates[j].preemptions, fates[j].promotions);
	}
}

static void check_case(const struct fixture *fixture, enum sw_naive_policy naive, const struct sw_policy *policy, bool yarn, bool overhead)
{
	const char *only = getenv("SEED");
	uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 0, end = only != NULL ? first + 1 : SEEDS;
	char name[64];
	snprintf(name, sizeof name, "%s %s %s", policy->name, yarn ? "yarn" : "count", overhead ? "muri" : "ideal");
	for (uint64_t seed = first; seed < end; seed++) {
		struct sw_rng rng;
		struct instance instance;
		struct sw_naive_fate fates[JOBS_MAX];
		sw_rng_seed(&rng, seed);
		draw(&rng, overhead, &instance);
		struct sw_naive_rules rules = sw_naive_rules(naive, yarn ? SW_NAIVE_YARN : SW_NAIVE_COUNT);
		rules.promote_milli = naive == SW_NAIVE_LAS ? instance.promote_milli : 0;
		rules.merge_ppb = 0;
		const struct sw_placement *placement = yarn ? &sw_placement_yarn : &sw_placement_count;
		const struct sw_world *world = overhead ? fixture->muri : fixture->ideal;
		struct sw_result *result = simulate(fixture, &instance, policy, placement, world);
		if (drop_refused(&instance, result)) {
			sw_result_free(result);
			result = simulate(fixture, &instance, policy, placement, world);
		}
		assert_int_equal(sw_naive_run(instance.jobs, instance.count, &instance.cluster, &rules, fates), 0);
		compare(fates, result, seed, name);
		sw_result_free(result);
	}
}

#define CASE(name, naive, policy)                                                     \
	static void name(void **state)                                                \
	{                                                                             \
		for (int variant = 0; variant < 4; variant++)                         \
			check_case(*state, naive, &policy, variant & 1, variant & 2); \
	}

CASE(test_fifo_equals_the_naive_model, SW_NAIVE_FIFO, sw_policy_fifo)
CASE(test_fjf_equals_the_naive_model, SW_NAIVE_FJF, sw_policy_fjf)
CASE(test_sjf_equals_the_naive_model, SW_NAIVE_SJF, sw_policy_sjf)
CASE(test_srtf_equals_the_naive_model, SW_NAIVE_SRTF, sw_policy_srtf)
CASE(test_srsf_equals_the_naive_model, SW_NAIVE_SRSF, sw_policy_srsf)
CASE(test_las_equals_the_naive_model, SW_NAIVE_LAS, sw_policy_las)

static int set_up(void **state)
{
	static struct fixture fixture;
	assert_int_equal(sw_profiles_load_default(&fixture.profiles, NULL), 0);
	assert_int_equal(sw_world_load("ideal", &fixture.ideal, NULL), 0);
	assert_int_equal(sw_world_load("muri", &fixture.muri, NULL), 0);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sw_profiles_free(fixture->profiles);
	sw_world_free(fixture->ideal);
	sw_world_free(fixture->muri);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo_equals_the_naive_model), cmocka_unit_test(test_fjf_equals_the_naive_model),
		cmocka_unit_test(test_sjf_equals_the_naive_model),  cmocka_unit_test(test_srtf_equals_the_naive_model),
		cmocka_unit_test(test_srsf_equals_the_naive_model), cmocka_unit_test(test_las_equals_the_naive_model),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
