/* What relaxing locality does to a cluster, on traces of the project's own generator. */
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

#define RACKS 2u
#define NODES 8u
#define NODE_GPUS 8u
#define GPUS (NODES * NODE_GPUS)
#define LARGE 4u /* a job of more GPUs than this is large */

struct fixture {
	struct sw_profiles *profiles;
	struct sw_topology *topology;
};

/* Of large jobs, on average. */
struct means {
	double wait_s;
	double run_s;
};

static struct means simulate(const struct fixture *fixture, const struct sw_trace *trace, const struct sw_world *world, const char *relax)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_params_new(&sw_policy_philly, &params, NULL), 0);
	assert_int_equal(sw_params_set(params, sw_params_find(&sw_policy_philly, "relax", NULL), relax, strlen(relax), NULL), 0);
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = fixture->topology,
		.profiles = fixture->profiles,
		.world = world,
		.policy = &sw_policy_philly,
		.params = params,
		.placement = &sw_placement_count,
		.seed = 1,
		.cluster = "2 x 4 x 8",
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s", err.fact);
	assert_int_equal(result->summary.finished, trace->jobs.count);
	assert_int_equal(result->summary.preemptions, 0); /* there are no quotas */
	struct means means = {0};
	double count = 0;
	for (size_t j = 0; j < trace->jobs.count; j++) {
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		if (outcome->gpus <= LARGE)
			continue;
		means.wait_s += (double)(outcome->start_ns - outcome->submit_ns) / SW_NS_PER_S;
		means.run_s += (double)outcome->run_ns / SW_NS_PER_S;
		count++;
	}
	assert_true(count >= 300);
	return (struct means){means.wait_s / count, means.run_s / count};
}

/* Every fifth job is large; it needs as much GPU time as before. */
static struct sw_trace *draw(uint64_t seed)
{
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	struct sw_trace *trace = NULL;
	recipe.jobs = 1500;
	recipe.gpus = GPUS;
	recipe.load_milli = 1000;
	recipe.seed = seed;
	assert_int_equal(sw_trace_generate(&recipe, &trace, NULL), 0);
	for (size_t j = 0; j < trace->jobs.count; j += 5) {
		struct sw_trace_job *job = &trace->jobs.items[j];
		uint32_t gpus = j % 2 == 0 ? 8 : 16;
		job->duration_ns = job->duration_ns * job->gpus / gpus + SW_NS_PER_S;
		job->gpus = job->min_gpus = job->max_gpus = gpus;
	}
	return trace;
}

/* Aim: with relaxing off, jobs of more than 4 GPUs wait longer and run shorter. */
static void test_relaxing_trades_speed_for_waiting(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	assert_int_equal(sw_world_load("measured", &world, NULL), 0);
	world->node_mtbf_ns = 0;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(seed);
		struct means relaxed = simulate(fixture, trace, world, "on"), strict = simulate(fixture, trace, world, "off");
		print_message("seed %d: large jobs wait %.0f s and run %.0f s, strictly %.0f s and %.0f s\n", (int)seed, relaxed.wait_s,
			      relaxed.run_s, strict.wait_s, strict.run_s);
		assert_true(strict.wait_s > relaxed.wait_s);
		assert_true(strict.run_s < relaxed.run_s);
	}
}

/* Two tenants with a quota of four GPUs each on a node of eight. The first submits four jobs of two
 * GPUs at once, the second one of three a hundred seconds later, and one of two. */
static struct sw_result *simulate_quotas(const struct fixture *fixture, const struct sw_policy *policy)
{
	static const char text[] = "job_id,submit_s,duration_s,gpus,tenant\n"
				   "1,0,1000,2,a\n2,0,1000,2,a\n3,0,1000,2,a\n4,0,1000,2,a\n5,100,1000,3,b\n6,150,1000,2,b\n";
	static const struct sw_topology_node node = {
		.gpus = 8, .cpus = 96, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(80) << 30};
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_trace_parse("quotas.csv", text, strlen(text), NULL, &trace, &err), 0);
	assert_int_equal(sw_world_load("ideal", &world, NULL), 0);
	assert_int_equal(sw_topology_new(&node, 1, &topology, NULL), 0);
	const struct sw_sim_quota quotas[] = {{trace->jobs.items[0].tenant, 4}, {trace->jobs.items[4].tenant, 4}};
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = topology,
		.profiles = fixture->profiles,
		.world = world,
		.policy = policy,
		.placement = &sw_placement_count,
		.quotas = quotas,
		.quota_count = 2,
		.seed = 1,
		.cluster = "8",
		.validate = true,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s", err.fact);
	assert_int_equal(result->summary.finished, 6);
	return result;
}

/* Aim: simulated tenants lend idle GPUs and get their quota back at once; what each job waited for
 * is told, share or place, to the second. */
static void test_quotas_and_delays(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_result_freep) struct sw_result *strict = simulate_quotas(fixture, &sw_policy_fifo);
	/* Without lending: two of the first tenant's jobs wait for its share until the others have
	 * ended, the second tenant's behind them for nothing but their turn, and the last then for
	 * its share, of which one GPU is not enough. */
	static const int64_t waits_s[] = {0, 0, 1000, 1000, 900, 1850}, shares_s[] = {0, 0, 1000, 1000, 0, 1000};
	for (size_t j = 0; j < 6; j++) {
		assert_int_equal(strict->outcomes.items[j].wait_ns, waits_s[j] * SW_NS_PER_S);
		assert_int_equal(strict->outcomes.items[j].share_wait_ns, shares_s[j] * SW_NS_PER_S);
	}
	SW_CLEANUP(sw_result_freep) struct sw_result *lent = simulate_quotas(fixture, &sw_policy_philly);
	assert_int_equal(lent->summary.preemptions, 2);
	static const int64_t lent_s[] = {0, 0, 900, 900, 0, 950};
	for (size_t j = 0; j < 6; j++) {
		const struct sw_outcome *outcome = &lent->outcomes.items[j];
		assert_true(j == 5 || outcome->start_ns == outcome->submit_ns);
		assert_int_equal(outcome->wait_ns, lent_s[j] * SW_NS_PER_S);
		assert_int_equal(outcome->share_wait_ns, lent_s[j] * SW_NS_PER_S);
	}
	assert_true(lent->has_quotas && lent->summary.share_delay_avg_s > 0);
}

/* Aim: a job that is below its tenant's quota and waits, waits for a place. */
static void test_waiting_for_a_place_is_no_share_delay(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_delays_freep) struct sw_delays *delays = sw_delays_new(NULL, 0, 1);
	assert_non_null(delays);
	assert_int_equal(sw_delays_of(delays, 0), 0);
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = draw(1);
	const struct sw_sim_quota quota = {trace->jobs.items[0].tenant, GPUS * 2};
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	struct sw_result *result = NULL;
	assert_int_equal(sw_world_load("ideal", &world, NULL), 0);
	const struct sw_sim_config config = {.trace = trace,
					     .topology = fixture->topology,
					     .profiles = fixture->profiles,
					     .world = world,
					     .policy = &sw_policy_fifo,
					     .placement = &sw_placement_count,
					     .quotas = &quota,
					     .quota_count = 1,
					     .seed = 1,
					     .cluster = "2 x 4 x 8"};
	assert_int_equal(sw_simulate(&config, &result, NULL), 0);
	assert_true(result->summary.queue_avg_s > 0);
	assert_true(result->summary.share_delay_avg_s == 0);
	sw_result_free(result);
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct sw_topology_node nodes[NODES];
	for (uint32_t n = 0; n < NODES; n++)
		nodes[n] = (struct sw_topology_node){.rack = n / (NODES / RACKS),
						     .gpus = NODE_GPUS,
						     .cpus = 96,
						     .memory_bytes = UINT64_C(1) << 40,
						     .gpu_memory_bytes = UINT64_C(80) << 30};
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
		cmocka_unit_test(test_relaxing_trades_speed_for_waiting),
		cmocka_unit_test(test_quotas_and_delays),
		cmocka_unit_test(test_waiting_for_a_place_is_no_share_delay),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
