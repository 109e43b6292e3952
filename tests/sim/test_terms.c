/* The same terms: what the simulator and the live controller tell their engines of one
 * world, field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "brain/state.h"
#include "core/state.h"
#include "placement/registry.h"
#include "sim/cluster.h"
#include "sim/simulator.h"
#include "world/world.h"

static struct sw_engine_config seen;

/* A policy is told the view of its engine: here that is a way to see what its driver configured. */
static sw_ns look(struct sw_plan *plan)
{
	seen = sw_plan_view(plan)->engine->config;
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

static int64_t by_arrival(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->submit_at;
}

static const struct sw_order order = {.head_blocks = true};
static const struct sw_policy looking = {
	.abi = SW_POLICY_ABI, .name = "looking", .about = "fifo that looks", .order = &order, .key = by_arrival, .decide = look};

static void must(int r, const struct sw_err *err)
{
	if (r < 0)
		fail_msg("%s: %s", err->fact, err->detail);
}

static struct sw_engine_config simulated(const struct sw_world *world, const struct sw_profiles *profiles)
{
	static const char trace[] = "job_id,num_gpu,submit_time,iterations,model_name,duration\n1,1,0,1,resnet50,10\n";
	struct sw_err err = {0};
	SW_CLEANUP(sw_trace_freep) struct sw_trace *jobs = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = NULL;
	const struct sw_topology_node node = {
		.gpus = 2, .cpus = 16, .memory_bytes = UINT64_C(1) << 37, .gpu_memory_bytes = UINT64_C(1) << 36};
	must(sw_trace_parse("jobs", trace, sizeof trace - 1, NULL, &jobs, &err), &err);
	must(sw_topology_new(&node, 1, &topology, &err), &err);
	const struct sw_sim_config config = {.trace = jobs,
					     .topology = topology,
					     .profiles = profiles,
					     .world = world,
					     .policy = &looking,
					     .placement = sw_placements[0],
					     .cluster = "1x2"};
	memset(&seen, 0, sizeof seen);
	must(sw_simulate(&config, &result, &err), &err);
	return seen;
}

static struct sw_engine_config live(const struct sw_world *world, const struct sw_profiles *profiles)
{
	struct sw_err err = {0};
	struct sw_brain *brain = NULL;
	sw_records records = {0};
	const struct sw_brain_config config = {
		.policy = "looking", .placement = sw_placements[0]->name, .plugin = &looking, .profiles = profiles};
	const struct sw_user root = {.is_operator = true};
	const struct sw_brain_world its = {world->name, world->text, sw_world_terms(world)};
	must(sw_brain_new(&config, &brain, &err), &err);
	must(sw_brain_propose_world(brain, &root, &its, &records, &err), &err);
	memset(&seen, 0, sizeof seen);
	must(sw_brain_apply(brain, 1, records.items[0].kind, records.items[0].body, records.items[0].size, NULL, &err), &err);
	sw_records_clear(&records);
	sw_brain_free(brain);
	return seen;
}

/* Aim: a new member of the configuration must be a term, or be named here: policy, placement,
 * cluster and seed say what is simulated; the rest follows from the terms. */
static void test_nothing_beside_the_terms(void **state)
{
	(void)state;
	struct sides {
		const void *topology, *policy, *fallback, *placement, *params;
		uint64_t seed;
		struct sw_terms terms;
		struct sw_predictor predictor;
		const void *splitter;
		uint32_t misuse_limit;
	};
	assert_int_equal(sizeof(struct sw_engine_config), sizeof(struct sides));
}

/* Aim: one world gives one configuration, on both sides. */
static void test_same(void **state)
{
	(void)state;
	struct sw_err err = {0};
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	must(sw_profiles_load_default(&profiles, &err), &err);
	static const char *const changes[] = {
		"", "quantum: 5s\n", "suspend: {fixed: 2s}\n", "stops: {guaranteed: requeue}\n", "moves: never\n", "gate: 1.5\n"};
	for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
		char text[200];
		SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
		snprintf(text, sizeof text, "base: live\nname: other\n%s", changes[c]);
		must(sw_world_parse("other", text, strlen(text), &world, &err), &err);
		struct sw_engine_config one = simulated(world, profiles), other = live(world, profiles);
		const struct sw_term_row *row = sw_terms_differ(&one.terms, &other.terms);
		if (row != NULL)
			fail_msg("'%s' is another live", row->name);
		assert_ptr_equal(one.policy, other.policy);
		assert_ptr_equal(one.fallback, other.fallback);
		assert_ptr_equal(one.placement, other.placement);
		assert_true(one.predictor.speeds == other.predictor.speeds);
		assert_ptr_equal(one.splitter, other.splitter);
		assert_int_equal(one.misuse_limit, other.misuse_limit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_beside_the_terms),
		cmocka_unit_test(test_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
