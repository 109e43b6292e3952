/* The simulator as a driver: what goes in, what comes out, and how it is stopped. What the numbers
 * should be is the business of the other tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sim/simulator.h"
#include "sim/trace/generate.h"
#include "unit/core/rig.h"

struct fixture {
	struct sw_profiles *profiles;
	struct sw_world *ideal, *measured;
	struct sw_topology *topology;
	struct sw_trace *trace; /* 200 jobs for the 16 GPUs of the topology */
};

static struct sw_sim_config config_of(const struct fixture *fixture)
{
	return (struct sw_sim_config){
		.trace = fixture->trace,
		.topology = fixture->topology,
		.profiles = fixture->profiles,
		.world = fixture->ideal,
		.policy = &sw_policy_fifo,
		.placement = &sw_placement_count,
		.seed = 42,
		.cluster = "2 nodes x 8 GPUs",
	};
}

static struct sw_result *simulate(const struct sw_sim_config *config)
{
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	rig_must(sw_simulate(config, &result, &err), &err);
	return result;
}

/* Aim: the result says what was simulated, and has an outcome for every job of
 * the trace, in its order. */
static void test_result(void **state)
{
	const struct fixture *fixture = *state;
	struct sw_sim_config config = config_of(fixture);
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(&config);
	assert_string_equal(result->policy, "fifo");
	assert_string_equal(result->placement, "count");
	assert_string_equal(result->world, "ideal");
	assert_string_equal(result->cluster, "2 nodes x 8 GPUs");
	assert_string_equal(result->notes, "");
	assert_int_equal(result->seed, 42);
	assert_int_equal(result->gpus, 16);
	assert_int_equal(result->decision_p99_ns, 0); /* not asked for */
	assert_int_equal(result->outcomes.count, fixture->trace->jobs.count);
	assert_true(result->events >= 2 * fixture->trace->jobs.count);
	assert_true(result->decisions > 0 && result->decisions <= result->events);
	for (size_t j = 0; j < result->outcomes.count; j++) {
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		const struct sw_trace_job *job = &fixture->trace->jobs.items[j];
		assert_int_equal(outcome->id, job->id);
		assert_int_equal(outcome->submit_ns, job->submit_ns);
		assert_int_equal(outcome->gpus, job->gpus);
		assert_int_equal(outcome->work_ns, job->duration_ns);
		assert_int_equal(outcome->state, SW_OUTCOME_FINISHED);
		assert_int_equal(outcome->run_ns, job->duration_ns); /* none preempts, nothing costs */
		assert_int_equal(outcome->end_ns - outcome->start_ns, job->duration_ns);
	}
	assert_int_equal(result->summary.finished, fixture->trace->jobs.count);
}

/* Aim: the same seed gives the same log and the same outcomes; looking closely changes nothing. */
static void test_deterministic(void **state)
{
	const struct fixture *fixture = *state;
	for (size_t p = 0; sw_policies[p] != NULL; p++) {
		struct sw_sim_config config = config_of(fixture);
		config.policy = sw_policies[p];
		config.world = fixture->measured;
		SW_CLEANUP(sw_result_freep) struct sw_result *a = simulate(&config);
		config.validate = true;
		config.time_decisions = true;
		SW_CLEANUP(sw_result_freep) struct sw_result *b = simulate(&config);
		assert_int_equal(a->log_hash, b->log_hash);
		assert_int_equal(a->decisions, b->decisions);
		assert_true(b->decision_p99_ns > 0);
		assert_memory_equal(a->outcomes.items, b->outcomes.items, a->outcomes.count * sizeof a->outcomes.items[0]);
	}
}

/* Aim: another seed matters where chance has a say, and only there. */
static void test_seeds(void **state)
{
	const struct fixture *fixture = *state;
	struct sw_world breaking = *fixture->measured;
	breaking.job_failure_ppm = 100000;
	for (int chance = 0; chance < 2; chance++) {
		struct sw_sim_config config = config_of(fixture);
		config.world = chance ? &breaking : fixture->ideal;
		SW_CLEANUP(sw_result_freep) struct sw_result *a = simulate(&config);
		config.seed = 43;
		SW_CLEANUP(sw_result_freep) struct sw_result *b = simulate(&config);
		assert_int_equal(a->log_hash != b->log_hash, chance);
	}
}

/* Aim: jobs are counted as they end, all of them, also those that are refused. */
static void test_progress(void **state)
{
	const struct fixture *fixture = *state;
	_Atomic uint64_t ended = 0;
	struct sw_sim_config config = config_of(fixture);
	const struct sw_topology_node tiny[] = {RIG_NODE(0, 1)};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *one_gpu = NULL;
	assert_int_equal(sw_topology_new(tiny, 1, &one_gpu, NULL), 0);
	config.topology = one_gpu;
	config.ended = &ended;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(&config);
	assert_int_equal(ended, fixture->trace->jobs.count);
	uint32_t larger = 0;
	for (size_t j = 0; j < fixture->trace->jobs.count; j++) {
		bool fits = fixture->trace->jobs.items[j].gpus == 1;
		larger += !fits;
		assert_int_equal(result->outcomes.items[j].state, fits ? SW_OUTCOME_FINISHED : SW_OUTCOME_REFUSED);
		if (!fits)
			assert_int_equal(result->outcomes.items[j].start_ns, SW_TIME_NEVER);
	}
	assert_true(larger > 0);
	assert_int_equal(result->summary.refused, larger);
}

/* Aim: a simulation that is told to stop stops, says so, and gives no result. */
static void test_stop(void **state)
{
	const struct fixture *fixture = *state;
	atomic_bool stop = true;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	struct sw_sim_config config = config_of(fixture);
	config.stop = &stop;
	assert_int_equal(sw_simulate(&config, &result, &err), SW_ESTOPPED);
	assert_null(result);
	assert_string_not_equal(err.fact, "");
}

/* Aim: a policy that does not start is an error with its own words, not a crash. */
static void test_bad_parameters(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	struct sw_sim_config config = config_of(fixture);
	assert_int_equal(sw_params_new(&sw_policy_las, &params, NULL), 0);
	assert_int_equal(sw_params_set(params, sw_params_find(&sw_policy_las, "thresholds", NULL), "9,3", 3, NULL), 0);
	config.policy = &sw_policy_las;
	config.params = params;
	assert_int_equal(sw_simulate(&config, &result, &err), SW_EINPUT);
	assert_null(result);
	assert_non_null(strstr(err.detail, "las.thresholds"));
}

/* Aim: a trace without jobs, and one whose jobs take no time, end at once. */
static void test_nothing_to_do(void **state)
{
	const struct fixture *fixture = *state;
	for (int jobs = 0; jobs < 4; jobs += 3) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
		assert_int_equal(sw_trace_new("empty", "test", &trace), 0);
		for (int j = 0; j < jobs; j++) {
			struct sw_trace_job *job = sw_trace_add(trace);
			assert_non_null(job);
			job->gpus = job->min_gpus = job->max_gpus = 16;
			job->submit_ns = 5;
		}
		struct sw_sim_config config = config_of(fixture);
		config.trace = trace;
		for (size_t p = 0; sw_policies[p] != NULL; p++) {
			config.policy = sw_policies[p];
			config.validate = true;
			SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(&config);
			assert_int_equal(result->outcomes.count, jobs);
			assert_int_equal(result->summary.finished, jobs);
			if (sw_policies[p] != &sw_policy_chaos)
				assert_true(jobs == 0 || result->outcomes.items[2].end_ns == 5);
		}
	}
}

/* Never starts anything, but is always about to. */
static sw_ns wake_every_week(struct sw_plan *plan)
{
	return sw_view_now(sw_plan_view(plan)) + 7 * 86400 * SW_NS_PER_S;
}

/* Aim: a simulation in which nothing gets done is brought to an end: by another policy, or by
 * giving up; never by waiting for ever. */
static void test_hopeless(void **state)
{
	const struct fixture *fixture = *state;
	const struct sw_policy sleeper = {.abi = SW_POLICY_ABI, .name = "sleeper", .about = "sleeps", .decide = wake_every_week};
	struct sw_sim_config config = config_of(fixture);
	config.policy = &sleeper;
	SW_CLEANUP(sw_result_freep) struct sw_result *replaced = simulate(&config);
	assert_non_null(strstr(replaced->notes, "'sleeper' was replaced by 'fifo'"));
	assert_int_equal(replaced->summary.finished, fixture->trace->jobs.count);

	/* Every event costs a running job more than the time to the next one. */
	struct sw_world treadmill = *fixture->ideal;
	treadmill.event_overhead = true;
	treadmill.overhead_default_ns = 86400 * SW_NS_PER_S;
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	assert_int_equal(sw_params_new(&sw_policy_las, &params, NULL), 0);
	assert_int_equal(sw_params_set(params, sw_params_find(&sw_policy_las, "thresholds", NULL), "", 0, NULL), 0);
	assert_int_equal(sw_params_set(params, sw_params_find(&sw_policy_las, "tick", NULL), "1d", 2, NULL), 0);
	config.world = &treadmill;
	config.policy = &sw_policy_las;
	config.params = params;
	SW_CLEANUP(sw_result_freep) struct sw_result *stuck = simulate(&config);
	assert_non_null(strstr(stuck->notes, "given up"));
	assert_true(stuck->summary.finished < fixture->trace->jobs.count);
}

/* Aim: jobs whose runs keep failing are reported as failed. */
static void test_failed_jobs(void **state)
{
	const struct fixture *fixture = *state;
	struct sw_world doomed = *fixture->ideal;
	doomed.job_failure_ppm = 1000000;
	doomed.retries = 1;
	struct sw_sim_config config = config_of(fixture);
	config.world = &doomed;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(&config);
	assert_int_equal(result->summary.failed, fixture->trace->jobs.count);
	for (size_t j = 0; j < result->outcomes.count; j++) {
		assert_int_equal(result->outcomes.items[j].state, SW_OUTCOME_FAILED);
		assert_int_equal(result->outcomes.items[j].restarts, 1);
		assert_true(result->outcomes.items[j].end_ns >= result->outcomes.items[j].submit_ns);
	}
}

/* Aim: usage over time is kept at a bounded number of moments, in order, and never
 * claims more than there is. */
static void test_usage(void **state)
{
	const struct fixture *fixture = *state;
	struct sw_sim_config config = config_of(fixture);
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	recipe.jobs = 6000;
	recipe.gpus = 16;
	assert_int_equal(sw_trace_generate(&recipe, &trace, NULL), 0);
	config.trace = trace;
	config.policy = &sw_policy_las;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(&config);
	assert_true(result->decisions > 8192);
	assert_in_range(result->usage.count, 1000, 4096);
	for (size_t i = 0; i < result->usage.count; i++) {
		const struct sw_usage *usage = &result->usage.items[i];
		assert_true(usage->gpus_used <= usage->gpus_up && usage->gpus_up == 16);
		assert_true(i == 0 || usage->at_ns > result->usage.items[i - 1].at_ns);
	}
	assert_true(result->summary.gpu_utilization > 0 && result->summary.gpu_utilization <= 1);
}

/* Aim: jobs larger than any node, over quota or not, wait their turn; the makespan is the end of
 * the last one, counted from the trace's time zero. */
static void test_makespan(void **state)
{
	const struct fixture *fixture = *state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	assert_int_equal(sw_trace_new("two", "test", &trace), 0);
	for (int j = 0; j < 2; j++) {
		struct sw_trace_job *job = sw_trace_add(trace);
		assert_non_null(job);
		job->gpus = job->min_gpus = job->max_gpus = 16;
		job->submit_ns = 100 * SW_NS_PER_S;
		job->duration_ns = 50 * SW_NS_PER_S;
	}
	struct sw_sim_config config = config_of(fixture);
	config.trace = trace;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(&config);
	assert_float_equal(result->summary.makespan_s, 200, 1e-9);
	assert_float_equal(result->summary.jct_avg_s, 75, 1e-9);
	assert_float_equal(result->summary.queue_avg_s, 25, 1e-9);
	assert_float_equal(result->summary.gpu_utilization, 1, 1e-9);
}

static int set_up(void **state)
{
	static struct fixture fixture;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 8), RIG_NODE(0, 8)};
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	recipe.jobs = 200;
	recipe.gpus = 16;
	recipe.seed = 3;
	assert_int_equal(sw_profiles_load_default(&fixture.profiles, NULL), 0);
	assert_int_equal(sw_world_load("ideal", &fixture.ideal, NULL), 0);
	assert_int_equal(sw_world_load("measured", &fixture.measured, NULL), 0);
	assert_int_equal(sw_topology_new(nodes, 2, &fixture.topology, NULL), 0);
	assert_int_equal(sw_trace_generate(&recipe, &fixture.trace, NULL), 0);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sw_profiles_free(fixture->profiles);
	sw_world_free(fixture->ideal);
	sw_world_free(fixture->measured);
	sw_topology_free(fixture->topology);
	sw_trace_free(fixture->trace);
	return 0;
}

static struct sw_trace_job *add_job(struct sw_trace *trace, int64_t submit_s, int64_t work_s)
{
	struct sw_trace_job *job = sw_trace_add(trace);
	assert_non_null(job);
	job->submit_ns = submit_s * SW_NS_PER_S;
	job->duration_ns = work_s * SW_NS_PER_S;
	job->gpus = job->min_gpus = job->max_gpus = 16;
	return job;
}

static void hold(struct sw_trace *trace, struct sw_trace_job *job, int64_t from_s, int64_t to_s, bool leaves)
{
	assert_int_equal(sw_trace_add_hold(trace, job, from_s * SW_NS_PER_S, to_s * SW_NS_PER_S, leaves), 0);
}

/* Aim: a job that its owner held does not run meanwhile, whether it came so, waited, or
 * ran; others take its place. A hold that leaves a run alone, and one of a job that has
 * ended, change nothing. */
static void test_holds(void **state)
{
	const struct fixture *fixture = *state;
	struct sw_sim_config config = config_of(fixture);
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	assert_int_equal(sw_trace_new("holds", "test", &trace), 0);
	hold(trace, add_job(trace, 0, 10), 0, 100, false); /* came held */
	struct sw_trace_job *second = add_job(trace, 1, 50);
	hold(trace, second, 11, 31, false); /* ran, and stops for 20 s */
	hold(trace, second, 40, 45, true);  /* runs on */
	hold(trace, second, 500, 501, false);
	hold(trace, add_job(trace, 2, 5), 3, 200, false); /* waited */
	config.trace = trace;
	config.validate = true;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(&config);
	assert_int_equal(result->outcomes.items[1].start_ns, 1 * SW_NS_PER_S);
	assert_int_equal(result->outcomes.items[1].end_ns, 71 * SW_NS_PER_S);
	assert_int_equal(result->outcomes.items[0].start_ns, 100 * SW_NS_PER_S);
	assert_int_equal(result->outcomes.items[0].end_ns, 110 * SW_NS_PER_S);
	assert_int_equal(result->outcomes.items[2].start_ns, 200 * SW_NS_PER_S);
	assert_int_equal(result->summary.finished, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result),	 cmocka_unit_test(test_deterministic), cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_progress), cmocka_unit_test(test_stop),	       cmocka_unit_test(test_bad_parameters),
		cmocka_unit_test(test_hopeless), cmocka_unit_test(test_failed_jobs),   cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_usage),	 cmocka_unit_test(test_makespan),      cmocka_unit_test(test_holds),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
