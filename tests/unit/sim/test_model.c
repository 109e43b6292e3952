/* The world model, played by hand: a script decides, the world says when things
 * end and what they cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "stage.h"

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
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
		if (interrupted) {
			stage_at(&stage, 30, preempt_first);
			assert_int_equal(sw_world_model_next(stage.model), SW_TIME_NEVER);
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
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_by(NULL))), SW_YES);
}

static void start_second_then_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

/* Job 0 on node 1, alone after 10 s: yarn would have it on node 0 then. */
static void stage_for_moving(struct stage *stage)
{
	stage_job(stage, 2, 100, "resnet50");
	stage_job(stage, 2, 10, "");
	stage_rise(stage, two_nodes, 2, &scripted, &sw_placement_yarn);
	stage_at(stage, 0, start_second_then_first);
}

/* Aim: a migration costs its time, unless the world says that moving is free; and work is
 * neither made nor lost by it. */
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

/* Aim: GPUs that are further apart than need be slow a job down as its profile says; where the
 * cluster has no better place they do not. */
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
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 4)), SW_YES);
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
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 2)), SW_YES);
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

/* Aim: a job whose node is lost goes back to its last checkpoint, or to the start of the
 * run where there are none. */
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
		sw_ns lost_at = sw_world_model_next(stage.model);
		stage_step(&stage, lost_at);
		assert_int_equal(stage_look(&stage, 0)->state, SW_JOB_WAITING);
		sw_ns back_at = sw_world_model_next(stage.model);
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

/* Aim: a job that starts anew in the very step in which its node was lost: engine and world agree
 * about the work that it lost. */
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
		stage_step(&stage, sw_world_model_next(stage.model));
	assert_int_equal(stage_look(&stage, 0)->state, SW_JOB_RUNNING);
	sw_ns started = stage.now;
	stage_step(&stage, started + 1);
	assert_int_equal(sw_job_remaining(sw_engine_view(stage.engine), stage_look(&stage, 0)), 10000000 * SW_NS_PER_S - 1);
	stage_end(&stage);
}

/* Aim: runs that fail are reported with the work that is left, and a job that always
 * fails uses up its retries. */
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
	(void)sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_by(NULL)));
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

/* Aim: where events cost progress, starting still costs its time too: one charge does
 * not pay for the other. */
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

/* Aim: where events cost progress, a job in a poor place is as slow between two
 * events as it is otherwise. */
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

/* Aim: a quantum shorter than what a restart costs does not let two jobs preempt each other for
 * ever: something always gets done. */
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

/* Aim: a job is described as its trace and its profile say; memory only where jobs can share, skew
 * only where the model is known. */
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
		job->job_class = SW_CLASS_OPPORTUNISTIC;
		stage_job(&stage, 1, 0, "never-heard-of");
		stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_count);
		sw_world_model_spec(stage.model, 0, &spec);
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
		sw_world_model_spec(stage.model, 1, &spec);
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
