/* The world model, played by hand: a script decides, the world says when things end and what they cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "contention/predict.h"
#include "core/cut.h"
#include "sim/world.h"
#include "unit/core/scripted.h"

/* ---- a stage: an engine and a world, stepped together ---- */

struct stage {
	struct sw_topology *topology;
	struct sw_trace *trace;
	struct sw_world *world;
	struct sw_profiles *profiles;
	struct sw_engine *engine;
	struct sw_world_model *model;
	sw_events events;
	sw_ns now;
	sw_ns wake_at;
	uint32_t arrived;
	uint32_t steps;
};

/* The world starts as `name` and is changed by the test before the curtain rises. */
static void stage_begin(struct stage *stage, const char *name)
{
	*stage = (struct stage){.wake_at = SW_TIME_NEVER};
	assert_int_equal(sw_world_load(name, &stage->world, NULL), 0);
	assert_int_equal(sw_profiles_load_default(&stage->profiles, NULL), 0);
	assert_int_equal(sw_trace_new("stage", "test", &stage->trace), 0);
}

static struct sw_trace_job *stage_job(struct stage *stage, uint32_t gpus, int64_t work_s, const char *model)
{
	struct sw_trace_job *job = sw_trace_add(stage->trace);
	assert_non_null(job);
	job->gpus = job->min_gpus = job->max_gpus = gpus;
	job->duration_ns = work_s * SW_NS_PER_S;
	assert_int_equal(sw_trace_intern(stage->trace, model, strlen(model), &job->model), 0);
	return job;
}

static void stage_rise(struct stage *stage, const struct sw_topology_node *nodes, uint32_t count, const struct sw_policy *policy,
		       const struct sw_placement *placement)
{
	struct sw_err err = {0};
	static struct sw_cut cut;
	cut = sw_cut_make(1000);
	rig_must(sw_topology_new(nodes, count, &stage->topology, &err), &err);
	const struct sw_engine_config config = {
		.splitter = &cut.splitter,
		.topology = stage->topology,
		.policy = policy,
		.placement = placement,
		.quantum_ns = stage->world->quantum_ns,
		.preemption_cost_ns = stage->world->restart_ns,
		.keeps_state = sw_world_keeps_state(stage->world),
		.replace_is_free = stage->world->replace_is_free,
	};
	script = NULL;
	rig_must(sw_engine_new(&config, &stage->engine, &err), &err);
	rig_must(sw_world_model_new(stage->world, stage->profiles, stage->trace, stage->topology, 7, &stage->model, &err), &err);
}

static void stage_end(struct stage *stage)
{
	sw_world_model_free(stage->model);
	sw_engine_free(stage->engine);
	sw_trace_free(stage->trace);
	sw_profiles_free(stage->profiles);
	sw_world_free(stage->world);
	sw_topology_free(stage->topology);
	sw_vec_free(&stage->events);
}

/* One instant: what the world says, who arrives, what is decided. */
static void stage_step(struct stage *stage, sw_ns at)
{
	struct sw_job_spec specs[8];
	struct sw_step step;
	struct sw_err err = {0};
	stage->now = at;
	stage->events.count = 0;
	assert_int_equal(sw_world_collect(stage->model, stage->engine, at, &stage->events), 0);
	for (; stage->arrived < stage->trace->jobs.count && stage->trace->jobs.items[stage->arrived].submit_ns <= at; stage->arrived++) {
		struct sw_event *event = sw_vec_push(&stage->events);
		assert_non_null(event);
		assert_true(stage->arrived < 8);
		sw_world_spec(stage->model, stage->arrived, &specs[stage->arrived]);
		*event = (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &specs[stage->arrived]};
	}
	rig_must(sw_engine_step(stage->engine, at, stage->events.items, stage->events.count, &step, &err), &err);
	rig_must(sw_engine_validate(stage->engine, &err), &err);
	sw_world_obey(stage->model, stage->engine, at, &step);
	stage->wake_at = step.wake_at;
	stage->steps++;
}

static sw_ns stage_next(const struct stage *stage)
{
	sw_ns next = sw_world_next(stage->model);
	if (stage->arrived < stage->trace->jobs.count && stage->trace->jobs.items[stage->arrived].submit_ns < next)
		next = stage->trace->jobs.items[stage->arrived].submit_ns;
	return stage->wake_at < next ? stage->wake_at : next;
}

/* Plays what happens by itself before `at_s`, and then does `what` at that moment. */
static void stage_at(struct stage *stage, int64_t at_s, void (*what)(struct sw_plan *plan))
{
	while (stage_next(stage) < at_s * SW_NS_PER_S)
		stage_step(stage, stage_next(stage));
	script = what;
	stage_step(stage, at_s * SW_NS_PER_S);
	assert_null(script);
}

/* Plays to the end of all jobs; false if that takes more than `steps`. */
static bool stage_play_out(struct stage *stage, uint32_t steps)
{
	for (uint32_t s = 0; s < steps && stage_next(stage) != SW_TIME_NEVER; s++)
		stage_step(stage, stage_next(stage));
	for (uint32_t j = 0; j < stage->trace->jobs.count; j++)
		if (sw_engine_job(stage->engine, (struct sw_job_id){j}) == NULL ||
		    sw_engine_job(stage->engine, (struct sw_job_id){j})->state <= SW_JOB_RUNNING)
			return false;
	return true;
}

static const struct sw_job *stage_look(const struct stage *stage, uint32_t id)
{
	return sw_engine_job(stage->engine, (struct sw_job_id){id});
}

/* The job ends at this moment, and the engine knew it a second before. */
static void expect_end(struct stage *stage, uint32_t id, sw_ns at)
{
	assert_true(stage_play_out(stage, 100));
	const struct sw_job *job = stage_look(stage, id);
	assert_int_equal(job->state, SW_JOB_FINISHED);
	if (job->since != at)
		fail_msg("job %u ended at %lld ns, not at %lld", id, (long long)job->since, (long long)at);
}

static const struct sw_topology_node one_gpu[] = {RIG_NODE(0, 1)};
static const struct sw_topology_node two_nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_preempt(plan, job_of(plan, 0)), SW_YES);
}

static const struct sw_profile *profile_of(const struct stage *stage, const char *model)
{
	return sw_profiles_find(stage->profiles, model);
}

/* ---- costs ---- */

/* Aim: where nothing costs anything, a job runs for its duration, with or without interruptions. */
static void test_nothing_costs(void **state)
{
	(void)state;
	for (int interrupted = 0; interrupted < 2; interrupted++) {
		struct stage stage;
		stage_begin(&stage, "ideal");
		stage_job(&stage, 1, 100, "");
		stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
		stage_at(&stage, 0, start_first);
		assert_int_equal(sw_world_running(stage.model), 1);
		if (interrupted) {
			stage_at(&stage, 30, preempt_first);
			assert_int_equal(sw_world_running(stage.model), 0);
			assert_int_equal(sw_world_next(stage.model), SW_TIME_NEVER);
			assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 70 * SW_NS_PER_S);
			stage_at(&stage, 50, start_first);
		}
		expect_end(&stage, 0, (interrupted ? 120 : 100) * SW_NS_PER_S);
		assert_int_equal(sw_job_ran(sw_engine_view(stage.engine), stage_look(&stage, 0)), 100 * SW_NS_PER_S);
		stage_end(&stage);
	}
}

/* Aim: a first start costs its time once; the engine is told when the job will end. */
static void test_start_costs(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->start_ns = 13 * SW_NS_PER_S;
	stage_job(&stage, 1, 100, "");
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 20, NULL);
	stage_at(&stage, 40, preempt_first); /* 27 s of work are done */
	stage_at(&stage, 41, NULL);
	assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 73 * SW_NS_PER_S);
	stage_at(&stage, 60, start_first);
	expect_end(&stage, 0, 133 * SW_NS_PER_S);
	stage_end(&stage);
}

/* Aim: suspending and resuming cost the copy of the job's GPU memory out and in. */
static void test_suspend_costs(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->preempt = SW_PREEMPT_SUSPEND;
	stage.world->suspend = (struct sw_transfer_cost){SW_NS_PER_S, 1000000000};
	stage.world->resume = (struct sw_transfer_cost){2 * SW_NS_PER_S, 2000000000};
	stage_job(&stage, 1, 100, "resnet50");
	const struct sw_profile *profile = profile_of(&stage, "resnet50");
	uint64_t bytes = profile->mem_persistent_bytes + profile->mem_ephemeral_bytes;
	sw_ns cost = sw_transfer_ns(&stage.world->suspend, bytes) + sw_transfer_ns(&stage.world->resume, bytes);
	assert_true(cost > 3 * SW_NS_PER_S);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 30, preempt_first);
	stage_at(&stage, 50, start_first);
	expect_end(&stage, 0, 120 * SW_NS_PER_S + cost);
	stage_end(&stage);
}

/* Aim: where state cannot be kept, going on costs a restart. */
static void test_restart_costs(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->preempt = SW_PREEMPT_RESTART;
	stage.world->restart_ns = 30 * SW_NS_PER_S;
	stage_job(&stage, 1, 100, "");
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 30, preempt_first);
	stage_at(&stage, 50, start_first);
	stage_at(&stage, 60, preempt_first); /* 10 s into the restart: nothing was done, nothing is lost */
	stage_at(&stage, 70, start_first);
	expect_end(&stage, 0, 170 * SW_NS_PER_S);
	stage_end(&stage);
}

static void migrate_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_migrate(plan, job_of(plan, 0)), SW_YES);
}

static void start_second_then_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_start(plan, job_of(plan, 1)), SW_YES);
	assert_int_equal(sw_plan_start(plan, job_of(plan, 0)), SW_YES);
}

/* Job 0 on node 1, alone after 10 s: yarn would have it on node 0 then. */
static void stage_for_moving(struct stage *stage)
{
	stage_job(stage, 2, 100, "resnet50");
	stage_job(stage, 2, 10, "");
	stage_rise(stage, two_nodes, 2, &scripted, &sw_placement_yarn);
	stage_at(stage, 0, start_second_then_first);
}

/* Aim: a migration costs its time, unless the world says that moving is free; and work is neither made nor lost by it. */
static void test_migration_costs(void **state)
{
	(void)state;
	for (int variant = 0; variant < 3; variant++) {
		struct stage stage;
		stage_begin(&stage, "ideal");
		stage.world->replace_is_free = variant == 0;
		stage.world->migrate = (struct sw_transfer_cost){20 * SW_NS_PER_S, 0};
		stage_for_moving(&stage);
		stage_at(&stage, 40, migrate_first);
		if (variant == 2) { /* stopped in the middle of the move: 60 s of work are left */
			stage_at(&stage, 50, preempt_first);
			stage_at(&stage, 60, NULL);
			assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 60 * SW_NS_PER_S);
			stage_at(&stage, 60, start_first);
		}
		expect_end(&stage, 0, (const sw_ns[]){100, 120, 120}[variant] * SW_NS_PER_S);
		stage_end(&stage);
	}
}

/* ---- speed ---- */

/* Aim: GPUs that are further apart than need be slow a job down as its profile says; where the cluster has no better place they do not. */
static void test_placement_slowdown(void **state)
{
	(void)state;
	const struct sw_topology_node split[] = {RIG_NODE(0, 1), RIG_NODE(0, 1)}, linked[] = {RIG_NODE(0, 2)};
	for (int apart = 0; apart < 3; apart++) {
		struct stage stage;
		stage_begin(&stage, "ideal");
		stage.world->placement_slowdown = true;
		stage_job(&stage, 2, 1000, "vgg16");
		sw_ns work = 1000 * SW_NS_PER_S;
		if (apart == 0)
			stage_rise(&stage, linked, 1, &scripted, &sw_placement_count);
		else if (apart == 1)
			stage_rise(&stage, split, 2, &scripted, &sw_placement_count); /* the best that this cluster has */
		else
			stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_spread);
		stage_at(&stage, 0, start_first);
		if (apart == 2)
			work = work * sw_profile_placement_milli(profile_of(&stage, "vgg16"), SW_SPREAD_RACK, SW_SPREAD_GROUP) / 1000;
		expect_end(&stage, 0, work);
		stage_end(&stage);
	}
}

static void resize_first_to_four(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_resize(plan, job_of(plan, 0), 4), SW_YES);
}

/* Aim: an elastic job on twice its GPUs takes half its time, from the moment it has them. */
static void test_elastic(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	struct sw_trace_job *job = stage_job(&stage, 2, 100, "");
	job->max_gpus = 4;
	stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 40, resize_first_to_four);
	stage_at(&stage, 50, NULL);
	assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 40 * SW_NS_PER_S);
	expect_end(&stage, 0, 70 * SW_NS_PER_S);
	stage_end(&stage);
}

static void resize_to_half_and_back(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_resize(plan, job_of(plan, 0), 2), SW_YES);
}

/* Aim: the engine and the world agree about what is left after a job got smaller again. */
static void test_elastic_back_to_its_size(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	struct sw_trace_job *job = stage_job(&stage, 2, 100, "");
	job->max_gpus = 4;
	stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 10, resize_first_to_four);
	stage_at(&stage, 20, resize_to_half_and_back);
	stage_at(&stage, 30, NULL);
	assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 60 * SW_NS_PER_S);
	expect_end(&stage, 0, 90 * SW_NS_PER_S);
	stage_end(&stage);
}

static void share_second_with_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_share(plan, job_of(plan, 1), job_of(plan, 0)), SW_YES);
}

/* Aim: jobs on one GPU slow each other down while both are there, and go on at full speed when the other has gone. */
static void test_sharing_slowdown(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage_job(&stage, 1, 1000, "vgg16");
	struct sw_trace_job *guest = stage_job(&stage, 1, 100, "vgg16");
	guest->job_class = SW_TRACE_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = sw_predict_slowdown_milli(&sw_predict_default, profile, &profile, 1);
	assert_true(slow > 1000);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 100, share_second_with_first);
	/* The guest needs 100 s at the slower pace, in which the host also does 100 s of its work; the other 900 s run alone. */
	sw_ns guest_ends = 100 * SW_NS_PER_S + 100 * SW_NS_PER_S * slow / 1000;
	sw_ns host_ends = guest_ends + 800 * SW_NS_PER_S;
	stage_step(&stage, guest_ends);
	stage_step(&stage, guest_ends + SW_NS_PER_S);
	assert_int_equal(stage_look(&stage, 0)->ends_at, host_ends); /* the engine knows that it is faster again */
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 1)->since, guest_ends);
	assert_int_equal(stage_look(&stage, 0)->since, host_ends);
	stage_end(&stage);
}

/* Aim: under a gate the guaranteed job of two loses what the gate lets through and no more, the other gets the rest. */
static void test_sharing_under_a_gate(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage.world->gate_milli = 1020;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 10000, "vgg16")->job_class = SW_TRACE_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	const struct sw_profile *both[] = {profile, profile};
	struct sw_prediction found[2];
	sw_predict_set(&sw_predict_default, SW_WAY_GATE, both, 2, found);
	uint32_t slow = found[1].slow_milli;
	assert_in_range(slow, 2000, 10000);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->since, 1020 * SW_NS_PER_S);
	sw_ns done = 1020 * SW_NS_PER_S * 1000 / slow;
	assert_in_range(stage_look(&stage, 1)->since, 11020 * SW_NS_PER_S - done - 2, 11020 * SW_NS_PER_S - done + 2);
	stage_end(&stage);
}

static void start_both_as_opportunistic(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 1};
	assert_int_equal(sw_plan_start_at(plan, job_of(plan, 0), SW_CLASS_OPPORTUNISTIC, &gpu, 1), SW_YES);
	assert_int_equal(sw_plan_start_at(plan, job_of(plan, 1), SW_CLASS_OPPORTUNISTIC, &gpu, 1), SW_YES);
}

static void upgrade_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_upgrade(plan, job_of(plan, 0)), SW_YES);
}

/* Aim: from the moment of its upgrade a job runs at the pace of a guaranteed one. */
static void test_upgrade_changes_the_pace(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage.world->gate_milli = 1000;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 10000, "vgg16");
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = sw_predict_slowdown_milli(&sw_predict_default, profile, &profile, 1);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_both_as_opportunistic);
	stage_at(&stage, 100, upgrade_first);
	assert_true(stage_play_out(&stage, 100));
	sw_ns ends = 1100 * SW_NS_PER_S - 100 * SW_NS_PER_S * 1000 / slow;
	assert_in_range(stage_look(&stage, 0)->since, ends - 2, ends + 2);
	stage_end(&stage);
}

/* Aim: by stages, an iteration of the opportunistic job takes as many of the guaranteed one's as its stages need of the other's gaps; guaranteed jobs do not slow down. */
static void test_sharing_by_stages(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage.world->sharing_by = SW_SHARING_BY_STAGES;
	stage.world->work_from_iterations = true;
	struct sw_trace_job *host = stage_job(&stage, 1, 0, ""), *guest = stage_job(&stage, 1, 0, "");
	host->iterations = 1000;
	guest->iterations = 100;
	host->iteration_ns = guest->iteration_ns = SW_NS_PER_S;
	guest->job_class = SW_TRACE_OPPORTUNISTIC;
	/* Data, GPU, network in microseconds: 0.9 s of data loading need two gaps of 0.5 s; what is left of the second is the GPU's. */
	memcpy(host->stage_us, (uint32_t[]){500000, 300000, 200000}, sizeof host->stage_us);
	memcpy(guest->stage_us, (uint32_t[]){900000, 50000, 0}, sizeof guest->stage_us);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->since, 1000 * SW_NS_PER_S);
	assert_int_equal(stage_look(&stage, 1)->since, 200 * SW_NS_PER_S);
	stage_end(&stage);
}

static void start_three_beside(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 1};
	for (uint32_t id = 0; id < 3; id++)
		assert_int_equal(sw_plan_pack_at(plan, job_of(plan, id), &gpu, 1), SW_YES);
}

/* Aim: where jobs take turns, three that are never idle take three times as long and what switching costs, whatever the parts of the GPU
 * that they use; class and gate do not matter. */
static void test_sharing_by_slices(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage.world->sharing_by = SW_SHARING_BY_SLICES;
	stage.world->gate_milli = 1020;
	stage_job(&stage, 1, 100, "resnet50");
	stage_job(&stage, 1, 100, "resnet50")->job_class = SW_TRACE_OPPORTUNISTIC;
	stage_job(&stage, 1, 100, "resnet50");
	assert_int_equal(profile_of(&stage, "resnet50")->busy_milli, 1000);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_three_beside);
	assert_true(stage_play_out(&stage, 100));
	for (uint32_t id = 0; id < 3; id++)
		assert_int_equal(stage_look(&stage, id)->since, 321 * SW_NS_PER_S);
	stage_end(&stage);
}

static void split_second_beside_first(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 1};
	const struct sw_split split = {.parts = {{{0}, 0, RIG_GIB}, {{0}, 1, RIG_GIB}}, .count = 2, .step_milli = 1, .alone_milli = 1250};
	assert_int_equal(sw_plan_pack_at(plan, job_of(plan, 0), &gpu, 1), SW_YES);
	assert_int_equal(sw_plan_start_split(plan, job_of(plan, 1), &split), SW_YES);
}

static void make_second_whole(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 2};
	assert_int_equal(sw_plan_preempt(plan, job_of(plan, 1)), SW_YES);
	assert_int_equal(sw_plan_pack_at(plan, job_of(plan, 1), &gpu, 1), SW_YES);
}

/* Aim: a split job is slower by the price of its cut and by its neighbours on the worst of its GPUs, a neighbour of one part by that
 * part; once it is whole both are as fast as ever. */
static void test_split_job(void **state)
{
	(void)state;
	static const struct sw_topology_node two_gpus[] = {RIG_NODE(0, 2)};
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = stage.world->placement_slowdown = true;
	stage.world->sharing_by = SW_SHARING_BY_SLICES;
	stage_job(&stage, 1, 1000, "resnet50");
	stage_job(&stage, 1, 1000, "resnet50");
	stage_rise(&stage, two_gpus, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, split_second_beside_first);
	/* Turns make both 2.14 times slower; in 535 s the first does 250 s of its work and the other, at 1.25 x 2.14, 200 s. */
	stage_at(&stage, 535, make_second_whole);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->since, (535 + 750) * SW_NS_PER_S);
	assert_int_equal(stage_look(&stage, 1)->since, (535 + 800) * SW_NS_PER_S);
	stage_end(&stage);
}

static void preempt_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_preempt(plan, job_of(plan, 1)), SW_YES);
}

/* Aim: the same when the guest is preempted instead of ending. */
static void test_sharing_ends_by_preemption(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 10000, "vgg16")->job_class = SW_TRACE_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = sw_predict_slowdown_milli(&sw_predict_default, profile, &profile, 1);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	stage_at(&stage, 100, preempt_second);
	sw_ns done = 100 * SW_NS_PER_S * 1000 / slow;
	while (stage_look(&stage, 0)->state == SW_JOB_RUNNING && stage_next(&stage) != SW_TIME_NEVER)
		stage_step(&stage, stage_next(&stage));
	assert_in_range(stage_look(&stage, 0)->since, 1100 * SW_NS_PER_S - done - 2, 1100 * SW_NS_PER_S - done + 2);
	stage_end(&stage);
}

static void migrate_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_migrate(plan, job_of(plan, 1)), SW_YES);
}

/* Aim: when one of two neighbours moves away, both run at full speed from then on. */
static void test_sharing_ends_by_moving(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal"); /* moving is free */
	stage.world->sharing_slowdown = true;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 1000, "vgg16")->job_class = SW_TRACE_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = sw_predict_slowdown_milli(&sw_predict_default, profile, &profile, 1);
	stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	stage_at(&stage, 100, migrate_second);
	assert_true(stage_play_out(&stage, 100));
	sw_ns ends = 1100 * SW_NS_PER_S - 100 * SW_NS_PER_S * 1000 / slow;
	for (uint32_t id = 0; id < 2; id++)
		assert_in_range(stage_look(&stage, id)->since, ends - 2, ends + 2);
	stage_end(&stage);
}

/* ---- losses ---- */

static void start_waiting(struct sw_plan *plan)
{
	start_all(plan);
}

/* A world in which node 0 goes down once, early; repaired after a long time. */
static void stage_with_faults(struct stage *stage, int64_t mtbf_s, int64_t repair_s)
{
	stage_begin(stage, "ideal");
	stage->world->node_mtbf_ns = mtbf_s * SW_NS_PER_S;
	stage->world->node_repair_ns = repair_s * SW_NS_PER_S;
}

/* Aim: a job whose node is lost goes back to its last checkpoint, or to the start of the run where there are none. */
static void test_node_lost(void **state)
{
	(void)state;
	for (int checkpoints = 0; checkpoints < 2; checkpoints++) {
		struct stage stage;
		stage_with_faults(&stage, 100000, 500);
		stage.world->checkpoint_ns = checkpoints ? 100 * SW_NS_PER_S : 0;
		stage_job(&stage, 1, 10000000, "");
		stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
		stage_at(&stage, 0, start_first);
		sw_ns lost_at = sw_world_next(stage.model);
		stage_step(&stage, lost_at);
		assert_int_equal(stage_look(&stage, 0)->state, SW_JOB_WAITING);
		assert_int_equal(sw_world_running(stage.model), 0);
		sw_ns back_at = sw_world_next(stage.model);
		assert_int_equal(back_at, lost_at + 500 * SW_NS_PER_S);
		script = start_waiting;
		stage_step(&stage, back_at);
		sw_ns kept = checkpoints ? lost_at / (100 * SW_NS_PER_S) * (100 * SW_NS_PER_S) : 0;
		sw_ns left = 10000000 * SW_NS_PER_S - kept;
		stage_step(&stage, back_at + 1);
		assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), left - 1);
		stage_end(&stage);
	}
}

/* Aim: a job that starts anew in the very step in which its node was lost: engine and world agree about the work that it lost. */
static void test_node_lost_and_started_at_once(void **state)
{
	(void)state;
	struct stage stage;
	stage_with_faults(&stage, 100000, 500);
	stage_job(&stage, 1, 10000000, "");
	stage_rise(&stage, two_nodes, 2, &sw_policy_fifo, &sw_placement_count);
	stage_step(&stage, 0);
	uint32_t epoch = 1;
	while (sw_engine_epoch(stage.engine, (struct sw_job_id){0}) == epoch) /* until the node under it is lost */
		stage_step(&stage, sw_world_next(stage.model));
	assert_int_equal(stage_look(&stage, 0)->state, SW_JOB_RUNNING);
	sw_ns started = stage.now;
	stage_step(&stage, started + 1);
	assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 10000000 * SW_NS_PER_S - 1);
	stage_end(&stage);
}

/* Aim: runs that fail are reported with the work that is left, and a job that always fails uses up its retries. */
static void test_failures(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->job_failure_ppm = 1000000;
	stage.world->retries = 3;
	stage_job(&stage, 1, 100, "");
	stage_rise(&stage, one_gpu, 1, &sw_policy_fifo, &sw_placement_count);
	stage_step(&stage, 0);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->state, SW_JOB_FAILED);
	assert_int_equal(stage_look(&stage, 0)->restarts, 3);
	assert_int_equal(sw_engine_epoch(stage.engine, (struct sw_job_id){0}), 4);
	assert_true(stage.now < 400 * SW_NS_PER_S); /* each run failed before its end */
	stage_end(&stage);
}

static void migrate_and_wait(struct sw_plan *plan)
{
	(void)sw_plan_migrate(plan, job_of(plan, 0));
}

/* Aim: a run that is doomed stays doomed when the job is moved. */
static void test_failure_survives_a_move(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->job_failure_ppm = 1000000;
	stage.world->replace_is_free = false;
	stage_for_moving(&stage);
	stage_at(&stage, 12, migrate_and_wait);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->state, SW_JOB_FAILED);
	stage_end(&stage);
}

/* ---- overhead of events ---- */

/* Aim: where events cost progress, starting still costs its time too: one charge does not pay for the other. */
static void test_overhead_and_start(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "muri");
	stage.world->start_ns = 50 * SW_NS_PER_S;
	stage_job(&stage, 1, 100, "never-heard-of"); /* 10 s for each event */
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 20, NULL); /* still starting */
	stage_at(&stage, 50, NULL);
	/* No work was done yet. */
	assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 100 * SW_NS_PER_S);
	stage_end(&stage);
}

/* Aim: where events cost progress, a job in a poor place is as slow between two events as it is otherwise. */
static void test_overhead_and_slowdown(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "muri");
	stage.world->placement_slowdown = true;
	stage_job(&stage, 2, 1000, "vgg16");
	stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_spread);
	uint32_t slow = sw_profile_placement_milli(profile_of(&stage, "vgg16"), SW_SPREAD_RACK, SW_SPREAD_GROUP);
	assert_true(slow > 1000);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 107, NULL); /* 7 s go to the event, 100 s count */
	sw_ns left = 1000 * SW_NS_PER_S - 100 * SW_NS_PER_S * 1000 / slow;
	assert_in_range(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), left - 2, left + 2);
	stage_end(&stage);
}

/* ---- progress ---- */

/* Aim: a quantum shorter than what a restart costs does not let two jobs preempt each other for ever: something always gets done. */
static void test_short_quantum_makes_progress(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->quantum_ns = 10 * SW_NS_PER_S;
	stage.world->preempt = SW_PREEMPT_RESTART;
	stage.world->start_ns = stage.world->restart_ns = 30 * SW_NS_PER_S;
	stage_job(&stage, 1, 100, "");
	stage_job(&stage, 1, 105, "")->submit_ns = SW_NS_PER_S;
	stage_job(&stage, 1, 103, "")->submit_ns = 2 * SW_NS_PER_S;
	stage_rise(&stage, one_gpu, 1, &sw_policy_srtf, &sw_placement_count);
	stage_step(&stage, 0);
	assert_true(stage_play_out(&stage, 300));
	stage_end(&stage);
}

/* ---- what the engine is told at submission ---- */

/* Aim: a job is described as its trace and its profile say; memory only where jobs can share, skew only where the model is known. */
static void test_spec(void **state)
{
	(void)state;
	for (int sharing = 0; sharing < 2; sharing++) {
		struct stage stage;
		struct sw_job_spec spec;
		stage_begin(&stage, "ideal");
		stage.world->sharing_slowdown = sharing;
		stage.world->host_cpus_per_gpu = 3;
		stage.world->host_mem_per_gpu_bytes = 5 * RIG_GIB;
		stage.world->retries = 2;
		struct sw_trace_job *job = stage_job(&stage, 4, 100, "vgg16");
		job->min_gpus = 2;
		job->max_gpus = 8;
		job->weight_milli = 2500;
		job->deadline_ns = 77;
		job->job_class = SW_TRACE_OPPORTUNISTIC;
		stage_job(&stage, 1, 0, "never-heard-of");
		stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_count);
		sw_world_spec(stage.model, 0, &spec);
		const struct sw_profile *profile = profile_of(&stage, "vgg16");
		assert_int_equal(spec.gpus, 4);
		assert_int_equal(spec.min_gpus, 2);
		assert_int_equal(spec.max_gpus, 8);
		assert_int_equal(spec.weight_milli, 2500);
		assert_int_equal(spec.deadline_at, 77);
		assert_int_equal(spec.job_class, SW_CLASS_OPPORTUNISTIC);
		assert_int_equal(spec.knowledge, SW_KNOWN);
		assert_int_equal(spec.work_ns, 100 * SW_NS_PER_S);
		assert_int_equal(spec.retries, 2);
		assert_int_equal(spec.cpus, 3);
		assert_int_equal(spec.host_memory_bytes, 5 * RIG_GIB);
		assert_int_equal(spec.skew_milli, 743); /* 392 of 527 MB */
		assert_int_equal(spec.gpu_memory_bytes, sharing ? profile->mem_persistent_bytes + profile->mem_ephemeral_bytes : 0);
		sw_world_spec(stage.model, 1, &spec);
		assert_int_equal(spec.skew_milli, 0);
		assert_int_equal(spec.gpu_memory_bytes, 0);
		assert_int_equal(spec.job_class, SW_CLASS_GUARANTEED);
		stage_end(&stage);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_costs),
		cmocka_unit_test(test_start_costs),
		cmocka_unit_test(test_suspend_costs),
		cmocka_unit_test(test_restart_costs),
		cmocka_unit_test(test_migration_costs),
		cmocka_unit_test(test_placement_slowdown),
		cmocka_unit_test(test_elastic),
		cmocka_unit_test(test_elastic_back_to_its_size),
		cmocka_unit_test(test_sharing_slowdown),
		cmocka_unit_test(test_sharing_under_a_gate),
		cmocka_unit_test(test_upgrade_changes_the_pace),
		cmocka_unit_test(test_sharing_by_stages),
		cmocka_unit_test(test_sharing_by_slices),
		cmocka_unit_test(test_split_job),
		cmocka_unit_test(test_sharing_ends_by_preemption),
		cmocka_unit_test(test_sharing_ends_by_moving),
		cmocka_unit_test(test_node_lost),
		cmocka_unit_test(test_node_lost_and_started_at_once),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_failure_survives_a_move),
		cmocka_unit_test(test_overhead_and_start),
		cmocka_unit_test(test_overhead_and_slowdown),
		cmocka_unit_test(test_short_quantum_makes_progress),
		cmocka_unit_test(test_spec),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
