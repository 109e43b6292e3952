/* A history that was recorded on a cluster, replayed: the scheduler is told what the cluster's
 * was told, and nothing is charged that is inside the recorded times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/registry.h"
#include "sim/model.h"
#include "sim/simulator.h"
#include "unit/core/rig.h"

struct fixture {
	struct sw_profiles *profiles;
	struct sw_world *world;
	struct sw_topology *topology; /* two nodes with two GPUs each */
	struct sw_trace *trace;
};

static struct sw_trace_job *add_job(struct fixture *fixture, double submit_s, double duration_s, uint32_t gpus)
{
	struct sw_trace_job *job = sw_trace_add(fixture->trace);
	struct sw_trace_told *told = sw_vec_push(&fixture->trace->told);
	assert_true(job != NULL && told != NULL);
	job->id = (int64_t)fixture->trace->jobs.count;
	job->submit_ns = (int64_t)(submit_s * 1e9);
	job->duration_ns = (int64_t)(duration_s * 1e9);
	job->gpus = job->min_gpus = job->max_gpus = gpus;
	job->told = (uint32_t)fixture->trace->told.count;
	*told = (struct sw_trace_told){
		.spec = {.gpus = gpus, .min_gpus = gpus, .max_gpus = gpus, .stop_rule = SW_STOP_SUSPEND, .prefers_home = true}};
	return job;
}

static struct sw_trace_told *told_of(struct fixture *fixture, uint32_t job)
{
	return &fixture->trace->told.items[fixture->trace->jobs.items[job].told - 1];
}

static void add_event(struct fixture *fixture, double at_s, struct sw_event event)
{
	struct sw_trace_event *slot = sw_vec_push(&fixture->trace->events);
	assert_non_null(slot);
	*slot = (struct sw_trace_event){(int64_t)(at_s * 1e9), event};
}

static struct sw_result *simulate(const struct fixture *fixture, const struct sw_policy *policy)
{
	struct sw_result *result = NULL;
	struct sw_err err = {0};
	rig_must(sw_simulate(&(struct sw_sim_config){.trace = fixture->trace,
						     .topology = fixture->topology,
						     .profiles = fixture->profiles,
						     .world = fixture->world,
						     .policy = policy,
						     .placement = &sw_placement_pack,
						     .cluster = "2x2",
						     .validate = true},
			     &result, &err),
		 &err);
	return result;
}

static void expect_span(const struct sw_result *result, uint32_t job, double start_s, double end_s)
{
	assert_float_equal((double)result->outcomes.items[job].start_ns / 1e9, start_s, 1e-6);
	assert_float_equal((double)result->outcomes.items[job].end_ns / 1e9, end_s, 1e-6);
}

/* Aim: the engine is asked as the cluster's was; tenant, model and deadline are the trace's. */
static void test_spec(void **state)
{
	struct fixture *fixture = *state;
	struct sw_world_model *model = NULL;
	struct sw_job_spec spec;
	struct sw_trace_job *job = add_job(fixture, 0, 10, 2);
	job->deadline_ns = 99;
	assert_int_equal(sw_trace_intern(fixture->trace, "resnet50", 8, &job->model), 0);
	assert_int_equal(sw_trace_intern(fixture->trace, "team", 4, &job->tenant), 0);
	struct sw_job_spec *said = &told_of(fixture, 0)->spec;
	said->is_auto = said->no_restart = true;
	said->gpu_memory_bytes = 12345678;
	said->use_milli = 321;
	said->knowledge = SW_PREDICTED;
	said->work_ns = 7;
	said->cpus = 3;
	assert_int_equal(sw_world_model_new(fixture->world, fixture->profiles, fixture->trace, fixture->topology, 0, &model, NULL), 0);
	sw_world_model_spec(model, 0, &spec);
	assert_int_equal(spec.tenant, job->tenant);
	assert_int_equal(spec.model, sw_profiles_find(fixture->profiles, "resnet50")->number);
	assert_int_equal(spec.deadline_at, 99);
	said->tenant = spec.tenant;
	said->model = spec.model;
	said->deadline_at = 99;
	assert_memory_equal(&spec, said, sizeof spec);
	sw_world_model_free(model);
}

/* Aim: a job whose owner said nothing is stopped as the world of the replay says; another one as
 * its owner said, in every world. */
static void test_stop_rules(void **state)
{
	struct fixture *fixture = *state;
	add_job(fixture, 0, 10, 1);
	add_job(fixture, 0, 10, 1);
	told_of(fixture, 0)->spec.stop_rule = SW_STOP_AS_WORLD;
	told_of(fixture, 1)->spec.stop_rule = SW_STOP_NEVER;
	for (int rule = SW_STOP_SUSPEND; rule <= SW_STOP_IF_FREE; rule++) {
		struct sw_world_model *model = NULL;
		struct sw_job_spec spec;
		fixture->world->guaranteed_stop = rule;
		assert_int_equal(sw_world_model_new(fixture->world, fixture->profiles, fixture->trace, fixture->topology, 0, &model, NULL),
				 0);
		sw_world_model_spec(model, 0, &spec);
		assert_int_equal(spec.stop_rule, rule);
		assert_int_equal(spec.prefers_home, rule == SW_STOP_SUSPEND || rule == SW_STOP_IF_FREE);
		sw_world_model_spec(model, 1, &spec);
		assert_true(spec.stop_rule == SW_STOP_NEVER && !spec.prefers_home);
		sw_world_model_free(model);
	}
}

static sw_ns first_now, first_deadline;

static sw_ns note_clock(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job = sw_view_next_waiting(view, NULL);
	if (first_now == 0) {
		first_now = sw_view_now(view);
		first_deadline = job != NULL ? job->deadline_at : 0;
	}
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

static int64_t by_arrival(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->submit_at;
}

/* Aim: the scheduler's clock shows what it really showed, so that turns end when they did; results
 * count from the first submit. */
static void test_clock(void **state)
{
	struct fixture *fixture = *state;
	static const struct sw_order order = {.head_blocks = true};
	static const struct sw_policy looking = {.abi = SW_POLICY_ABI,
						 .name = "looking",
						 .about = "fifo that looks",
						 .order = &order,
						 .key = by_arrival,
						 .decide = note_clock};
	const int64_t clock_ns = INT64_C(1790000000123456789);
	add_job(fixture, 0, 10, 4)->deadline_ns = 99;
	add_job(fixture, 1, 10, 4);
	add_event(fixture, 12, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {0}});
	add_event(fixture, 13, (struct sw_event){.kind = SW_EV_NODE_UP, .node = {0}});
	fixture->trace->clock_ns = clock_ns;
	first_now = 0;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(fixture, &looking);
	assert_int_equal(first_now, clock_ns);
	assert_int_equal(first_deadline, clock_ns + 99);
	expect_span(result, 0, 0, 10);
	expect_span(result, 1, 10, 21);
	assert_int_equal(result->outcomes.items[0].deadline_ns, 99);
	assert_int_equal(result->usage.items[0].at_ns, 0);
	assert_float_equal(result->summary.makespan_s, 21, 1e-6);
}

/* Aim: a run time that was not known then is not known in a replay either: srtf takes the longer
 * job, which came first, and not the shorter. */
static void test_knows_no_more(void **state)
{
	struct fixture *fixture = *state;
	for (uint32_t j = 0; j < 3; j++)
		add_job(fixture, j, j == 1 ? 50 : 10, 4);
	SW_CLEANUP(sw_result_freep) struct sw_result *unknown = simulate(fixture, &sw_policy_srtf);
	expect_span(unknown, 1, 10, 60);
	/* What its owner expected is. */
	for (uint32_t j = 0; j < 3; j++) {
		told_of(fixture, j)->spec.knowledge = SW_PREDICTED;
		told_of(fixture, j)->spec.work_ns = fixture->trace->jobs.items[j].duration_ns;
	}
	SW_CLEANUP(sw_result_freep) struct sw_result *expected = simulate(fixture, &sw_policy_srtf);
	expect_span(expected, 2, 10, 20);
}

/* Aim: nodes come, close, are silent and go as they did, whatever the policy. */
static void test_nodes(void **state)
{
	struct fixture *fixture = *state;
	add_event(fixture, 0, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {1}});
	add_event(fixture, 3, (struct sw_event){.kind = SW_EV_NODE_UP, .node = {1}});
	add_event(fixture, 4, (struct sw_event){.kind = SW_EV_NODE_CLOSE, .node = {0}});
	add_event(fixture, 20, (struct sw_event){.kind = SW_EV_NODE_OPEN, .node = {0}});
	add_event(fixture, 20, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {1}, .mask = 3});
	add_job(fixture, 0, 5, 2);
	add_job(fixture, 1, 5, 2);  /* once the other node is there */
	add_job(fixture, 6, 30, 2); /* behind it: the first node is closed */
	add_job(fixture, 7, 30, 2); /* on the first once that opens, where the other has GPUs that are shut */
	add_job(fixture, 8, 1, 2);
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(fixture, &sw_policy_fifo);
	expect_span(result, 0, 0, 5);
	expect_span(result, 1, 3, 8);
	expect_span(result, 2, 8, 38);
	expect_span(result, 3, 20, 50);
	expect_span(result, 4, 50, 51);
}

/* Aim: what a job lost with its node is inside its run time: it does not begin anew. */
static void test_lost_node(void **state)
{
	struct fixture *fixture = *state;
	add_event(fixture, 4, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {0}});
	add_job(fixture, 0, 10, 2);
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(fixture, &sw_policy_fifo);
	expect_span(result, 0, 0, 10);
}

/* Aim: a quota holds from when it was set until it was lifted. */
static void test_quota(void **state)
{
	struct fixture *fixture = *state;
	uint32_t team = 0;
	assert_int_equal(sw_trace_intern(fixture->trace, "team", 4, &team), 0);
	add_event(fixture, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = team, .gpus = 1});
	add_event(fixture, 5, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = team, .gpus = UINT32_MAX});
	add_job(fixture, 0, 10, 1)->tenant = team;
	add_job(fixture, 1, 10, 1)->tenant = team;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(fixture, &sw_policy_fjf);
	expect_span(result, 1, 5, 15);
}

/* Aim: a stop that the job had is inside its run time; one more is charged. A run can be stopped
 * only once it was heard to have begun. */
static void test_stops(void **state)
{
	struct fixture *fixture = *state;
	struct sw_trace_fate *fate;
	fixture->world->quantum_ns = 0;
	add_job(fixture, 0, 20, 4);
	add_job(fixture, 5, 1, 4);
	add_job(fixture, 10, 1, 4);
	fate = sw_trace_fate_of(fixture->trace, &fixture->trace->jobs.items[0]);
	fate->preemptions = 1;
	for (uint32_t j = 0; j < 3; j++) {
		told_of(fixture, j)->spec.knowledge = SW_PREDICTED;
		told_of(fixture, j)->spec.work_ns = fixture->trace->jobs.items[j].duration_ns;
		told_of(fixture, j)->frees = true;
	}
	told_of(fixture, 0)->begins_after_ns = 6 * SW_NS_PER_S;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(fixture, &sw_policy_srtf);
	assert_int_equal(result->outcomes.items[0].preemptions, 2);
	expect_span(result, 1, 6, 7);
	expect_span(result, 2, 10, 11);
	double charged_s = (double)result->outcomes.items[0].end_ns / 1e9 - 22;
	assert_true(charged_s > 0.009 && charged_s < 5); /* a copy out and in, and not a start */
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct sw_err err = {0};
	const struct sw_topology_node nodes[] = {
		{.gpus = 2, .cpus = 16, .memory_bytes = UINT64_C(1) << 37, .gpu_memory_bytes = UINT64_C(1) << 36},
		{.gpus = 2, .cpus = 16, .memory_bytes = UINT64_C(1) << 37, .gpu_memory_bytes = UINT64_C(1) << 36}};
	rig_must(sw_profiles_load_default(&fixture.profiles, &err), &err);
	rig_must(sw_world_load("live", &fixture.world, &err), &err);
	rig_must(sw_world_record(fixture.world, &err), &err);
	rig_must(sw_topology_new(nodes, 2, &fixture.topology, &err), &err);
	assert_int_equal(sw_trace_new("history", "test", &fixture.trace), 0);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sw_profiles_free(fixture->profiles);
	sw_world_free(fixture->world);
	sw_topology_free(fixture->topology);
	sw_trace_free(fixture->trace);
	return 0;
}

/* Aim: a requeue is replayed: the job waits again, behind others, and what it lost is inside its
 * run time. */
static void test_requeue(void **state)
{
	struct fixture *fixture = *state;
	add_job(fixture, 0, 10, 4);
	add_job(fixture, 1, 5, 4);
	add_event(fixture, 4, (struct sw_event){.kind = SW_EV_REQUEUE, .job = {0}});
	SW_CLEANUP(sw_result_freep) struct sw_result *result = simulate(fixture, &sw_policy_fjf);
	assert_int_equal(result->outcomes.items[0].state, SW_OUTCOME_FINISHED);
	assert_float_equal((double)result->outcomes.items[0].run_ns / 1e9, 10, 1e-6);
	double first = (double)result->outcomes.items[0].end_ns / 1e9, second = (double)result->outcomes.items[1].end_ns / 1e9;
	assert_float_equal(first > second ? first : second, 15, 1e-6);
	assert_int_equal(result->outcomes.items[0].preemptions, 0);
}

/* Aim: the report says which acts of people on jobs are not in a replay. */
static void test_says_what_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	assert_non_null(strstr(fixture->world->not_modelled, "cancels by people"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_spec),      TEST(test_stop_rules), TEST(test_clock), TEST(test_knows_no_more), TEST(test_nodes),
		TEST(test_lost_node), TEST(test_quota),	     TEST(test_stops), TEST(test_requeue),	 TEST(test_says_what_is_left_out)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
