/* The simulator and the controller decide alike: one scenario, told once by a trace and the world
 * model, once by requests and the words of a fake agent, gives the same commands at the same
 * moments. Times are drawn to the nanosecond, so that no two events coincide: the controller
 * stores them one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "brain/brain.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/simulator.h"

#define GPUS 8u
#define JOBS 60u
#define SEEDS 20u
#define START_NS (INT64_C(1000) * SW_NS_PER_S) /* when the node joins and time begins */

struct scenario {
	int64_t submit_ns[JOBS], work_ns[JOBS];
	uint32_t gpus[JOBS];
};

static struct scenario draw(uint64_t seed)
{
	struct scenario scenario;
	struct sw_rng rng;
	sw_rng_seed(&rng, seed);
	int64_t now = 0;
	for (uint32_t j = 0; j < JOBS; j++) {
		now += (int64_t)sw_rng_below(&rng, 400 * SW_NS_PER_S) + 1;
		scenario.submit_ns[j] = now;
		scenario.work_ns[j] = 1 + (int64_t)sw_rng_below(&rng, sw_rng_below(&rng, 4) == 0 ? 6000 * SW_NS_PER_S : 300 * SW_NS_PER_S);
		scenario.gpus[j] = 1u << sw_rng_below(&rng, 4);
	}
	return scenario;
}

/* ---- by trace */

static uint64_t simulate(const struct scenario *scenario, const struct sw_policy *policy)
{
	struct sw_trace *trace = calloc(1, sizeof *trace);
	*sw_vec_push(&trace->strings) = strdup("");
	trace->origin = strdup("conformance");
	for (uint32_t j = 0; j < JOBS; j++)
		*sw_vec_push(&trace->jobs) = (struct sw_trace_job){.id = j,
								   .submit_ns = START_NS + scenario->submit_ns[j],
								   .duration_ns = scenario->work_ns[j],
								   .deadline_ns = SW_NEVER,
								   .gpus = scenario->gpus[j],
								   .min_gpus = scenario->gpus[j],
								   .max_gpus = scenario->gpus[j],
								   .weight_milli = 1000};
	const struct sw_topology_node node = {
		.gpus = GPUS, .cpus = 64, .memory_bytes = UINT64_C(1) << 38, .gpu_memory_bytes = UINT64_C(80) << 30};
	struct sw_topology *topology;
	struct sw_profiles *profiles;
	struct sw_world *world;
	struct sw_result *result;
	assert_int_equal(sw_topology_new(&node, 1, &topology, NULL), 0);
	assert_int_equal(sw_profiles_load_default(&profiles, NULL), 0);
	assert_int_equal(sw_world_load("ideal", &world, NULL), 0);
	world->replace_is_free = false;
	/* A stop leaves nothing of a run: it begins anew, with all of its work. */
	world->preempt = SW_PREEMPT_IN_PLACE;
	world->guaranteed_stop = SW_STOP_RESTART;
	const struct sw_sim_config config = {.trace = trace,
					     .topology = topology,
					     .profiles = profiles,
					     .world = world,
					     .policy = policy,
					     .placement = &sw_placement_pack,
					     .cluster = "one node"};
	assert_int_equal(sw_simulate(&config, &result, NULL), 0);
	uint64_t hash = result->command_hash;
	assert_int_equal(result->summary.finished, JOBS);
	sw_result_free(result);
	sw_world_free(world);
	sw_profiles_free(profiles);
	sw_topology_free(topology);
	sw_trace_free(trace);
	return hash;
}

/* ---- by requests and an agent */

struct live {
	struct sw_brain *brain;
	int64_t now_ns;
	uint64_t number;
	struct sw_sync_run runs[JOBS];
	size_t run_count;
	int64_t work_ns[JOBS], ends_at_ns[JOBS]; /* of each job; INT64_MAX: it does not run */
};

static void apply(struct live *live, sw_records *records)
{
	struct sw_err err = {0};
	for (size_t r = 0; r < records->count; r++)
		if (sw_brain_apply(live->brain, live->now_ns, records->items[r].kind, records->items[r].body, records->items[r].size, NULL,
				   &err) < 0)
			fail_msg("%s", err.fact);
	sw_records_clear(records);
}

/* The agent tells and obeys until there is nothing new. */
static void sync_until_quiet(struct live *live)
{
	char uuids[GPUS][32];
	struct sw_sync_gpu gpus[GPUS];
	for (uint32_t g = 0; g < GPUS; g++) {
		snprintf(uuids[g], sizeof uuids[g], "GPU-%u", g);
		gpus[g] = (struct sw_sync_gpu){.uuid = uuids[g], .name = "fake", .memory_bytes = UINT64_C(80) << 30};
	}
	const struct sw_sync_inventory inventory = {gpus, GPUS, 64, UINT64_C(1) << 38};
	for (bool changed = true; changed;) {
		const struct sw_sync sync = {.node = "n",
					     .instance = "1",
					     .number = ++live->number,
					     .inventory = &inventory,
					     .runs = live->runs,
					     .run_count = live->run_count};
		sw_records records = {0};
		struct sw_answer_message *answer;
		assert_int_equal(sw_brain_hear(live->brain, live->now_ns, &sync, &records, NULL), 0);
		changed = records.count > 0;
		apply(live, &records);
		assert_int_equal(sw_brain_answer(live->brain, live->now_ns, &sync, &answer, NULL), 0);
		live->run_count = 0;
		for (size_t w = 0; w < answer->want_count; w++) {
			uint64_t job = answer->wants[w].id.job - 1;
			struct sw_sync_run run = {.id = answer->wants[w].id, .state = SW_RUN_RUNNING, .reason = ""};
			if (answer->wants[w].want == SW_WANT_FORGET)
				continue;
			if (answer->wants[w].want == SW_WANT_STOP) {
				live->ends_at_ns[job] = INT64_MAX;
				run.state = SW_RUN_EXITED;
				changed = true;
			} else if (live->ends_at_ns[job] == INT64_MAX) {
				live->ends_at_ns[job] = live->now_ns + live->work_ns[job];
				changed = true;
			}
			live->runs[live->run_count++] = run;
		}
		sw_brain_answer_free(answer);
	}
}

/* What a person expects is a prediction, what a trace says is known: the same to policies that go
 * by durations, and nothing to all others but one that makes a difference between the two. */
static bool goes_by_durations(const char *policy)
{
	return strcmp(policy, "srtf") == 0 || strcmp(policy, "srsf") == 0;
}

static void submit(struct live *live, const struct scenario *scenario, uint32_t j, bool expected)
{
	static const struct sw_user user = {.uid = 1, .gid = 1};
	struct sw_job_request *request = NULL;
	sw_records records = {0};
	/* Jobs of a trace may be stopped; live, their owners say so. */
	const char *json = "{\"command\": [\"x\"], \"preempt\": \"requeue\"}";
	assert_int_equal(sw_job_request_decode("test", json, strlen(json), &request, NULL), 0);
	request->gpus = request->min_gpus = request->max_gpus = scenario->gpus[j];
	request->expected_ns = expected ? scenario->work_ns[j] : 0;
	assert_int_equal(sw_brain_propose_submit(live->brain, &user, request, &records, NULL), 0);
	sw_job_request_free(request);
	apply(live, &records);
}

static void tick(struct live *live)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_tick(live->brain, live->now_ns, &records, NULL), 0);
	apply(live, &records);
}

static void finish(struct live *live, uint32_t job)
{
	for (size_t r = 0; r < live->run_count; r++)
		if (live->runs[r].id.job == job + 1)
			live->runs[r].state = SW_RUN_EXITED;
	live->ends_at_ns[job] = INT64_MAX - 1;
}

static uint64_t control(const struct scenario *scenario, const char *policy)
{
	const struct sw_brain_config config = {.policy = policy,
					       .placement = "pack",
					       .silence_ns = INT64_C(1) << 60,
					       .silence_margin_ns = 1,
					       .retry_backoff_ns = SW_NS_PER_S};
	struct live live = {.now_ns = START_NS};
	assert_int_equal(sw_brain_new(&config, &live.brain, NULL), 0);
	for (uint32_t j = 0; j < JOBS; j++) {
		live.work_ns[j] = scenario->work_ns[j];
		live.ends_at_ns[j] = INT64_MAX;
	}
	sync_until_quiet(&live);
	uint32_t submitted = 0, ended = 0;
	while (ended < JOBS) {
		uint32_t first = 0;
		for (uint32_t j = 1; j < JOBS; j++)
			if (live.ends_at_ns[j] < live.ends_at_ns[first])
				first = j;
		int64_t arrival = submitted < JOBS ? START_NS + scenario->submit_ns[submitted] : INT64_MAX, end = live.ends_at_ns[first];
		int64_t wake = sw_brain_next(live.brain);
		live.now_ns = arrival < end ? arrival : end;
		live.now_ns = wake < live.now_ns ? wake : live.now_ns;
		if (live.now_ns == wake) {
			tick(&live);
		} else if (live.now_ns == arrival) {
			submit(&live, scenario, submitted++, goes_by_durations(policy));
		} else {
			finish(&live, first);
			ended++;
		}
		sync_until_quiet(&live);
	}
	uint64_t hash = sw_brain_command_hash(live.brain);
	sw_brain_free(live.brain);
	return hash;
}

static void test_simulator_and_controller_give_the_same_commands(void **state)
{
	(void)state;
	size_t count = 0;
	while (sw_policies[count] != NULL)
		count++;
	for (size_t p = 0; p <= count; p++) {
		const struct sw_policy *policy = p < count ? sw_policies[p] : sw_policy_find("las+pack");
		if (policy == &sw_policy_chaos)
			continue;
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct scenario scenario = draw(seed);
			if (simulate(&scenario, policy) != control(&scenario, policy->name))
				fail_msg("policy %s, seed %llu: the commands differ", policy->name, (unsigned long long)seed);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_simulator_and_controller_give_the_same_commands)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
