/* Big Brain's experiment on a simulated node of two GPUs without MPS: what more whole jobs on a GPU
 * do to each and to all, and jobs that only two GPUs together have room for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/simulator.h"

#define K_MAX 6u
#define JOBS 500u
#define WORK_NS (2 * SW_NS_PER_S)
#define GPU_MIB 24576u

/* A small model of linear layers: it uses a quarter of the GPU, which has work
 * of it half of the time. */
#define PROFILE                                                                                                             \
	"iteration_time: 10ms, memory: {persistent: 500M, ephemeral: 1G}, tensors: {model: 10M, largest: 5M}, busy: 0.5,\n" \
	"  use: {sm: 0.25, mem_pipe: 0.25, l2: 0.1, dram_read: 0.1, dram_write: 0.1, host_cpu: 0.01, host_mem: 0.01},\n"    \
	"  placement: {group: 1, node: 1, rack: 1, cluster: 1}, scaling: {2: 1.9}, source: test}\n"
static const char profiles_text[] = "default: {" PROFILE "profiles:\n- {name: linear, " PROFILE;
static const char world_text[] = "name: slices\nbase: measured\nquantum: 0s\nstart: 0s\nsharing_by: slices\n"
				 "faults: {node_mtbf: 0s, node_repair: 0s, job_failure: 0, retries: 0}\n";

struct fixture {
	struct sw_profiles *profiles;
	struct sw_topology *topology;
	struct sw_world *world;
};

static struct sw_trace_job *add(struct sw_trace *trace, int64_t submit_ns, int64_t work_ns, uint32_t mib)
{
	struct sw_trace_job *job = sw_trace_add(trace);
	assert_non_null(job);
	job->id = (int64_t)trace->jobs.count;
	job->submit_ns = submit_ns;
	job->duration_ns = work_ns;
	job->gpus = job->min_gpus = job->max_gpus = 1;
	job->gpu_memory_mib = mib;
	assert_int_equal(sw_trace_intern(trace, "linear", 6, &job->model), 0);
	return job;
}

static struct sw_result *simulate(const struct fixture *fixture, const struct sw_trace *trace, const char *const *words)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_params_new(&sw_policy_bigbrain, &params, NULL), 0);
	for (; *words != NULL; words += 2)
		assert_int_equal(
			sw_params_set(params, sw_params_find(&sw_policy_bigbrain, words[0], NULL), words[1], strlen(words[1]), NULL), 0);
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = fixture->topology,
		.profiles = fixture->profiles,
		.world = fixture->world,
		.policy = &sw_policy_bigbrain,
		.params = params,
		.placement = &sw_placement_pack,
		.seed = 1,
		.cluster = "1 x 2",
		.validate = true,
		.reload_milli = 20,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("%s", err.fact);
	assert_string_equal(result->notes, "");
	assert_int_equal(result->summary.finished, trace->jobs.count);
	return result;
}

/* ---- the concurrency factor */

/* Arrivals at four times the rate that two GPUs could serve: a Poisson process. */
static struct sw_trace *saturate(uint64_t seed)
{
	struct sw_trace *trace = NULL;
	struct sw_rng rng;
	int64_t now = 0;
	assert_int_equal(sw_trace_new("test", "test", &trace), 0);
	sw_rng_seed(&rng, seed);
	for (uint32_t j = 0; j < JOBS; j++) {
		now += (int64_t)((double)WORK_NS / 8 * -log(1 - sw_rng_unit(&rng)));
		add(trace, now, WORK_NS, 1500);
	}
	return trace;
}

struct figures {
	double mean_s, max_s, per_30_s;
	uint32_t most_running;
};

static struct figures measure(const struct sw_trace *trace, const struct sw_result *result)
{
	struct figures figures = {0};
	int64_t until = trace->jobs.items[trace->jobs.count - 1].submit_ns;
	size_t count = 0;
	for (size_t j = 0; j < trace->jobs.count; j++) {
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		double took_s = (double)outcome->run_ns / SW_NS_PER_S;
		if (outcome->end_ns > until)
			continue; /* the GPUs are not full any more */
		figures.mean_s += took_s;
		figures.max_s = took_s > figures.max_s ? took_s : figures.max_s;
		count++;
	}
	assert_true(count > 100);
	figures.mean_s /= (double)count;
	figures.per_30_s = (double)count * 30 * SW_NS_PER_S / (double)until;
	for (size_t u = 0; u < result->usage.count; u++)
		if (result->usage.items[u].jobs_running > figures.most_running)
			figures.most_running = result->usage.items[u].jobs_running;
	return figures;
}

/* The least squares line through (1, y[0]), (2, y[1]), ... */
static void fit(const double *y, size_t count, double *ret_slope, double *ret_r_squared)
{
	double x_mean = (double)(count + 1) / 2, y_mean = 0, xy = 0, xx = 0, yy = 0;
	for (size_t i = 0; i < count; i++)
		y_mean += y[i] / (double)count;
	for (size_t i = 0; i < count; i++) {
		double dx = (double)(i + 1) - x_mean, dy = y[i] - y_mean;
		xy += dx * dy;
		xx += dx * dx;
		yy += dy * dy;
	}
	*ret_slope = xy / xx;
	*ret_r_squared = yy > 0 ? xy * xy / (xx * yy) : 0;
}

/* Aim: with 1 to 6 whole jobs on each of two full GPUs the mean process time is a rising line in
 * their number, the longest grows faster than the mean, one more job helps less each time, and
 * there are never more than 2 k + 1 jobs. */
static void test_concurrency_factor(void **state)
{
	const struct fixture *fixture = *state;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = saturate(seed);
		double mean[K_MAX], ratio[K_MAX], rate[K_MAX], slope, fits;
		for (uint32_t k = 1; k <= K_MAX; k++) {
			char text[8];
			snprintf(text, sizeof text, "%u", k);
			SW_CLEANUP(sw_result_freep)
			struct sw_result *result = simulate(fixture, trace, (const char *const[]){"k", text, NULL});
			struct figures figures = measure(trace, result);
			mean[k - 1] = figures.mean_s;
			ratio[k - 1] = figures.max_s / figures.mean_s;
			rate[k - 1] = figures.per_30_s;
			print_message("seed %d, k %u: mean %.2f s, max %.2f s, %.1f jobs in 30 s, at most %u at once\n", (int)seed, k,
				      figures.mean_s, figures.max_s, figures.per_30_s, figures.most_running);
			assert_true(figures.most_running <= 2 * k + 1);
			assert_true(figures.most_running >= 2 * k);
		}
		fit(mean, K_MAX, &slope, &fits);
		print_message("seed %d: a line of slope %.2f s for each k, R squared %.3f\n", (int)seed, slope, fits);
		assert_true(fits >= 0.95 && slope > 0);
		fit(ratio, K_MAX, &slope, &fits);
		assert_true(slope >= 0 && ratio[K_MAX - 1] >= ratio[0]);
		/* Which jobs happen to be split moves the rate by less than a hundredth. */
		for (uint32_t k = 2; k < K_MAX; k++)
			assert_true(rate[k] - rate[k - 1] <= rate[k - 1] - rate[k - 2] + 0.01 * rate[k]);
		assert_true(rate[K_MAX - 1] - rate[K_MAX - 2] < 0.2 * (rate[1] - rate[0]));
	}
}

/* ---- jobs in parts */

/* Aim: a job that fits beside neither of two others, but over both, runs split, slower by the price
 * of the cut and its neighbours, and finishes before they do. */
static void test_residual_memory_of_two(void **state)
{
	const struct fixture *fixture = *state;
	for (int slots = 0; slots < 2; slots++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
		assert_int_equal(sw_trace_new("test", "test", &trace), 0);
		add(trace, 0, 1000 * SW_NS_PER_S, 12000);
		add(trace, 1, 1000 * SW_NS_PER_S, 12000);
		add(trace, 2, 100 * SW_NS_PER_S, 12000);
		SW_CLEANUP(sw_result_freep)
		struct sw_result *result = simulate(fixture, trace, (const char *const[]){"slots", slots ? "1" : "0", NULL});
		const struct sw_outcome *outcome = &result->outcomes.items[2];
		if (slots == 0) {
			assert_true(outcome->start_ns >= 1000 * SW_NS_PER_S);
			continue;
		}
		assert_int_equal(outcome->start_ns, 2);
		assert_in_range(outcome->run_ns, 110 * SW_NS_PER_S, 250 * SW_NS_PER_S);
	}
}

/* Aim: jobs of all sizes, many of which have a place only in parts, all finish, never more than 2
 * k + 1 at once, and some of them become whole on the way. */
static void test_jobs_of_all_sizes(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	struct sw_rng rng;
	int64_t now = 0;
	assert_int_equal(sw_trace_new("test", "test", &trace), 0);
	sw_rng_seed(&rng, 7);
	for (uint32_t j = 0; j < 400; j++) {
		now += (int64_t)sw_rng_below(&rng, 200 * SW_NS_PER_S);
		add(trace, now, SW_NS_PER_S + (int64_t)sw_rng_below(&rng, 2000 * SW_NS_PER_S),
		    500 + (uint32_t)sw_rng_below(&rng, GPU_MIB - 500));
	}
	SW_CLEANUP(sw_result_freep)
	struct sw_result *result = simulate(fixture, trace, (const char *const[]){"k", "2", "restart", "10s", NULL});
	for (size_t u = 0; u < result->usage.count; u++)
		assert_true(result->usage.items[u].jobs_running <= 5);
	assert_true(result->summary.migrations > 0);
}

static int set_up(void **state)
{
	static struct fixture fixture;
	const struct sw_topology_node node = {
		.gpus = 2, .cpus = 64, .memory_bytes = UINT64_C(1) << 38, .gpu_memory_bytes = (uint64_t)GPU_MIB << 20};
	struct sw_err err = {0};
	assert_int_equal(sw_topology_new(&node, 1, &fixture.topology, NULL), 0);
	if (sw_profiles_parse("test", profiles_text, strlen(profiles_text), &fixture.profiles, &err) < 0 ||
	    sw_world_parse("test", world_text, strlen(world_text), &fixture.world, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sw_topology_free(fixture->topology);
	sw_profiles_free(fixture->profiles);
	sw_world_free(fixture->world);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_concurrency_factor),
		cmocka_unit_test(test_residual_memory_of_two),
		cmocka_unit_test(test_jobs_of_all_sizes),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
