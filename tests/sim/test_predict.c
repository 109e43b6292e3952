/* What sw_predict_run() says against what the simulated world then does: random jobs, GPUs, places
 * and worlds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/rng.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/simulator.h"

enum { SEEDS = 30, JOBS = 60 };

static const char *const models_there[] = {"resnet50", "bert", "dlrm", "mobilenetv2", "vgg16", "gpt2", "not-there", ""};
static const char *const type_names[] = {"Fast GPU", "Slow GPU", "Third"};

/* Costs are none, so that the speed of a job is that of its work. */
static const char *const worlds[] = {
	"",
	"sharing_slowdown: false\nplacement_slowdown: false\n",
	"sharing_by: slices\n",
	"gate: 1.5\nsplit: 1.3\n",
	"gpu_types: {fast: {speed: 2, power: 700 W}, slow: {speed: 0.4, power: 250 W, models: {bert: 0.7, vgg16: 3}}}\n",
	"placement_slowdown: false\nsharing_slowdown: false\ngpu_types: {fast: {speed: 2.5}, third: {speed: 0.75}}\n",
};
#define COSTS                                                                                                                 \
	"base: measured\nname: other\nquantum: 0s\npreempt: free\nstart: 0s\nrestart: 0s\nswitch: 0s\nmigrate: {fixed: 0s}\n" \
	"faults: {node_mtbf: 0s, job_failure: 0, retries: 0}\n"

/* What was foretold in the last decision of the job that was wished something then. */
struct memory {
	uint32_t job, speed_milli;
	bool waits_for_it;
};

static uint64_t compared, beside_others, on_types, resized, split;

static bool is_near(uint32_t one, uint32_t other)
{
	uint32_t more = one > other ? one : other, less = one > other ? other : one;
	return more - less <= 2 + more / 250;
}

static void compare(uint32_t foretold, uint32_t told, const struct sw_view *view, const struct sw_job *job, const char *what)
{
	/* Of little work the nanosecond counts. */
	if (sw_job_remaining(view, job) < SW_NS_PER_S || told == 0)
		return;
	compared++;
	if (!is_near(foretold, told))
		fail_msg("job %u at %lld ns: %s %u, and the world runs it at %u, on %u of %u GPUs since %lld", job->id.v,
			 (long long)sw_view_now(view), what, foretold, told, job->gpus_held, job->gpus, (long long)job->since);
}

/* Every job that runs is as fast as would be foretold of it where it is. */
static void compare_all(const struct sw_view *view)
{
	for (const struct sw_job *job = sw_view_next_running(view, NULL); job != NULL; job = sw_view_next_running(view, job)) {
		struct sw_run_forecast found;
		struct sw_node node;
		assert_true(sw_predict_run(view, job, NULL, &found));
		assert_true(found.fits);
		assert_int_equal(found.gpus, job->gpus_held);
		if (!found.known || job->paused)
			continue;
		compare(found.speed_milli, sw_job_speed_milli(view, job), view, job, "it would be");
		sw_view_node(view, sw_job_node(view, job, 0, NULL), &node);
		beside_others += found.worst_milli != 1000;
		on_types += found.share_milli == 1000 && sw_job_type_speed_milli(view, job, node.gpu_type) != 1000;
		resized += job->gpus_held != job->gpus;
		split += sw_job_split_milli(view, job) != 0;
	}
}

static const struct sw_job *any_job(struct sw_view *view, bool runs)
{
	uint32_t count = runs ? sw_view_running(view) : sw_view_waiting(view);
	const struct sw_job *job = NULL;
	uint64_t skip = count > 0 ? sw_view_random(view, count) + 1 : 0;
	while (skip-- > 0)
		job = runs ? sw_view_next_running(view, job) : sw_view_next_waiting(view, job);
	return job;
}

static uint64_t any_gpu(struct sw_view *view, struct sw_node_id node)
{
	struct sw_node there;
	sw_view_node(view, node, &there);
	return UINT64_C(1) << sw_view_random(view, there.gpus);
}

/* A split over two GPUs, if there is one. */
static bool draw_split(struct sw_view *view, const struct sw_job *job, struct sw_split *ret_split)
{
	struct sw_split_device devices[2];
	struct sw_node_id node = {(uint32_t)sw_view_random(view, sw_view_nodes(view))};
	struct sw_node there;
	sw_view_node(view, node, &there);
	for (uint32_t d = 0; d < 2; d++)
		devices[d] = (struct sw_split_device){
			.node = node, .gpu = d, .speed_milli = 1000, .memory_bytes = sw_gpu_memory_free(view, node, d)};
	return there.gpus >= 2 && sw_view_split(view, job, devices, 2, ret_split);
}

struct drawn {
	struct sw_wish wish;
	struct sw_gpus gpus;
	struct sw_split split;
};

static void draw_wish(struct sw_view *view, const struct sw_job *job, struct drawn *drawn)
{
	bool runs = job->state == SW_JOB_RUNNING;
	const struct sw_job *with = any_job(view, true);
	struct sw_node_id node = {(uint32_t)sw_view_random(view, sw_view_nodes(view))};
	uint64_t kind = sw_view_random(view, runs ? 3 : 6);
	*drawn = (struct drawn){.gpus = {node, any_gpu(view, node)}};
	if (kind < 3 && (runs || sw_view_random(view, 2) == 0))
		drawn->wish.gpus = job->min_gpus + (uint32_t)sw_view_random(view, job->max_gpus - job->min_gpus + 1);
	if (kind == 1)
		drawn->wish.where = sw_on(node);
	else if (kind == 2)
		drawn->wish.where = sw_by(NULL);
	if (runs)
		return;
	drawn->wish.as = (uint8_t)sw_view_random(view, SW_AS_OPPORTUNISTIC + 1);
	drawn->wish.promise = job->gpu_memory_bytes > 0 ? (uint8_t)sw_view_random(view, SW_REST + 1) : SW_SHARE;
	if (kind == 3)
		drawn->wish.where = sw_at(&drawn->gpus, 1);
	else if (kind == 4 && with != NULL && job->gpu_memory_bytes > 0 && with->gpu_memory_bytes > 0)
		drawn->wish.where = sw_beside(with);
	else if (kind == 5 && drawn->wish.promise == SW_REST && draw_split(view, job, &drawn->split))
		drawn->wish.where = sw_in_parts(&drawn->split);
}

/* Foretells one wish and has it; the world's answer is compared in the next decision. */
static void try_one(struct sw_plan *plan, struct memory *memory)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job = any_job(view, sw_view_random(view, 3) == 0);
	struct sw_run_forecast found, there;
	struct drawn drawn;
	if (job == NULL)
		return;
	draw_wish(view, job, &drawn);
	if (!sw_predict_run(view, job, &drawn.wish, &found))
		return;
	enum sw_answer answer = sw_plan_run(plan, job, &drawn.wish);
	/* What stays where it is has no better place. */
	bool stays = drawn.wish.gpus == 0 || drawn.wish.gpus == job->gpus_held;
	if (answer == SW_YES && !found.fits)
		fail_msg("job %u has its wish, and it was said not to fit", job->id.v);
	if (answer == SW_NO_ROOM && found.fits && drawn.wish.where.kind != SW_WHERE_PARTS && !(job->state == SW_JOB_RUNNING && stays))
		fail_msg("job %u was said to fit, by a wish of kind %u for %u GPUs in state %u", job->id.v, drawn.wish.where.kind,
			 drawn.wish.gpus, job->state);
	if (answer != SW_YES)
		return;
	assert_true(sw_predict_run(view, job, NULL, &there));
	assert_int_equal(found.gpus, there.gpus);
	assert_int_equal(found.speed_milli, there.speed_milli);
	assert_int_equal(found.share_milli, there.share_milli);
	assert_int_equal(found.worst_milli, there.worst_milli);
	assert_int_equal(found.worth_milli, there.worth_milli);
	assert_int_equal(found.power_watts, there.power_watts);
	assert_int_equal(found.known, there.known);
	*memory = (struct memory){job->id.v, found.speed_milli, found.known};
	sw_plan_again(plan);
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct memory *memory = sw_view_state(view);
	const struct sw_job *last = sw_view_job(view, (struct sw_job_id){memory->job});
	/* Of a job that has just ended its neighbours hear in the next step. */
	bool quiet = (sw_view_changes(view) & (SW_CHANGE_RELEASES | SW_CHANGE_STOPS)) == 0;
	if (memory->waits_for_it && quiet && last != NULL && last->state == SW_JOB_RUNNING)
		compare(memory->speed_milli, sw_job_speed_milli(view, last), view, last, "it was to be");
	memory->waits_for_it = false;
	if (quiet)
		compare_all(view);
	if (sw_view_random(view, 8) == 0) {
		const struct sw_job *job = any_job(view, true);
		if (job != NULL)
			(void)sw_plan_stop(plan, job, SW_PREEMPT);
	} else {
		try_one(plan, memory);
	}
	return sw_view_now(view) + 20 * SW_NS_PER_S;
}

static const struct sw_policy seer = {
	.abi = SW_POLICY_ABI, .name = "seer", .about = "foretells, and looks", .state_size = sizeof(struct memory), .decide = decide};

static void draw_jobs(struct sw_trace *trace, struct sw_rng *rng)
{
	for (int64_t j = 0; j < JOBS; j++) {
		struct sw_trace_job *job = sw_trace_add(trace);
		const char *model = models_there[sw_rng_below(rng, sizeof models_there / sizeof *models_there)];
		assert_non_null(job);
		job->gpus = (uint32_t)(1 + sw_rng_below(rng, sw_rng_below(rng, 2) == 0 ? 1 : 10));
		job->min_gpus = sw_rng_below(rng, 2) == 0 ? 1 : job->gpus;
		job->max_gpus = sw_rng_below(rng, 2) == 0 ? 2 * job->gpus : job->gpus;
		job->submit_ns = j * 100 * SW_NS_PER_S;
		job->duration_ns = (int64_t)(100 + sw_rng_below(rng, 5000)) * SW_NS_PER_S;
		job->job_class = sw_rng_below(rng, 3) == 0 ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
		assert_int_equal(sw_trace_intern(trace, model, strlen(model), &job->model), 0);
	}
}

static uint32_t draw_nodes(struct sw_topology_node *nodes, struct sw_rng *rng)
{
	uint32_t count = (uint32_t)(2 + sw_rng_below(rng, 5));
	for (uint32_t n = 0; n < count; n++)
		nodes[n] = (struct sw_topology_node){.rack = n >= count / 2,
						     .gpus = (uint32_t)(1 + sw_rng_below(rng, 8)),
						     .link_group = (uint32_t)sw_rng_below(rng, 4),
						     .gpu_type = (uint32_t)sw_rng_below(rng, 3),
						     .cpus = 128,
						     .memory_bytes = UINT64_C(1) << 40,
						     .gpu_memory_bytes = UINT64_C(1) << 36};
	return count;
}

static void simulate(uint64_t seed, const struct sw_profiles *profiles)
{
	char text[1024];
	struct sw_err err = {0};
	struct sw_rng rng;
	struct sw_topology_node nodes[8];
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = NULL;
	sw_rng_seed(&rng, seed);
	snprintf(text, sizeof text, "%s%s", COSTS, worlds[seed % (sizeof worlds / sizeof *worlds)]);
	assert_int_equal(sw_world_parse("other", text, strlen(text), &world, &err), 0);
	assert_int_equal(sw_trace_new("predict", "test", &trace), 0);
	draw_jobs(trace, &rng);
	assert_int_equal(sw_topology_new(nodes, draw_nodes(nodes, &rng), &topology, &err), 0);
	const struct sw_sim_config config = {
		.trace = trace,
		.topology = topology,
		.gpu_types = type_names,
		.gpu_type_count = 3,
		.profiles = profiles,
		.world = world,
		.policy = &seer,
		.placement = sw_placements[sw_rng_below(&rng, 3)],
		.seed = seed,
		.cluster = "random",
		.validate = true,
	};
	if (sw_simulate(&config, &result, &err) < 0)
		fail_msg("seed %llu: %s: %s", (unsigned long long)seed, err.fact, err.detail);
	if (strstr(result->notes, "seer") != NULL)
		fail_msg("seed %llu: %s", (unsigned long long)seed, result->notes);
}

/* Aim: a job runs as fast as was foretold, whatever its GPUs, its place, its number of GPUs and its
 * neighbours; a wish that is said to fit is had, one that is not is refused. */
static void test_world_does_what_was_foretold(void **state)
{
	(void)state;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	assert_int_equal(sw_profiles_load_default(&profiles, NULL), 0);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		simulate(seed, profiles);
	/* It has seen what it is for. */
	assert_true(compared > 1000 && beside_others > 100 && on_types > 100 && resized > 100 && split > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_world_does_what_was_foretold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
