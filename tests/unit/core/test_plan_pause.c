/* The verbs of a plan: standing still in place, and going on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripted.h"

static const struct sw_topology_node one[] = {RIG_NODE(0, 1)};

static struct sw_job_spec spec_of(uint64_t gib, uint64_t floor_gib)
{
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	spec.gpu_floor_bytes = floor_gib * RIG_GIB;
	return spec;
}

static void open_pausing(struct rig *rig)
{
	static struct sw_policy pausing;
	pausing = scripted;
	pausing.pauses = true;
	script = NULL;
	rig_open(rig, one, 1, (struct sw_engine_config){.policy = &pausing, .terms.keeps_state = true}, NULL);
}

static void pause_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PAUSE), SW_YES);
}

static void go_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

static sw_ns left_s(const struct rig *rig, uint32_t id)
{
	return sw_job_remaining(sw_engine_view(rig->engine), rig_job(rig, id)) / SW_NS_PER_S;
}

static sw_ns ran_s(const struct rig *rig, uint32_t id)
{
	return sw_job_ran(sw_engine_view(rig->engine), rig_job(rig, id)) / SW_NS_PER_S;
}

/* Aim: the time in which a job is paused is neither work nor service, and it stays on
 * its GPU in the same run. */
static void test_time_stands_still(void **state)
{
	(void)state;
	const struct sw_job_spec spec = spec_of(50, 20);
	struct rig rig;
	open_pausing(&rig);
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	run_script(&rig, 10, pause_first);
	assert_int_equal(rig_commands(&rig), 1);
	assert_non_null(rig_command(&rig, SW_CMD_LIMIT, 0));
	rig_tick(&rig, 30);
	assert_true(rig_runs(&rig, 0) && rig_job(&rig, 0)->paused);
	assert_int_equal(left_s(&rig, 0), 90);
	assert_int_equal(ran_s(&rig, 0), 10);
	run_script(&rig, 30, go_first);
	rig_tick(&rig, 35);
	assert_int_equal(left_s(&rig, 0), 85);
	assert_int_equal(ran_s(&rig, 0), 15);
	assert_int_equal(sw_engine_epoch(rig.engine, (struct sw_job_id){0}), 1);
	assert_int_equal(rig_job(&rig, 0)->preemptions, 0);
	rig_close(&rig);
}

static void take_the_rest(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_NO_ROOM);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PAUSE), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_NO_ROOM);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PAUSE), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

/* Aim: a paused job keeps its floor of the memory and no compute; a job can start, be paused and
 * make way for the other in one decision, of which the other hears nothing. */
static void test_others_use_what_it_leaves(void **state)
{
	(void)state;
	const struct sw_job_spec large = spec_of(50, 20), other = spec_of(60, 30);
	struct rig rig;
	open_pausing(&rig);
	rig_submit(&rig, 0, &large);
	rig_submit(&rig, 0, &other);
	run_script(&rig, 0, start_first);
	run_script(&rig, 5, take_the_rest);
	assert_int_equal(rig_commands(&rig), 2);
	assert_non_null(rig_command(&rig, SW_CMD_START, 1));
	assert_non_null(rig_command(&rig, SW_CMD_LIMIT, 1));
	assert_true(rig_job(&rig, 1)->paused && !rig_job(&rig, 0)->paused);
	rig_tick(&rig, 10);
	assert_int_equal(left_s(&rig, 0), 90);
	assert_int_equal(left_s(&rig, 1), 100);
	rig_close(&rig);
}

static void do_what_is_not_done(struct sw_plan *plan)
{
	const struct sw_job *job = job_of(plan, 0);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.where = sw_by(NULL))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){0}))), SW_NO_ROOM);
	assert_int_equal(sw_plan_limit(plan, job, RIG_GIB, 500), SW_NO_ROOM);
	assert_int_equal(sw_plan_stop(plan, job, SW_PAUSE), SW_MISUSE);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PAUSE), SW_MISUSE);
	assert_int_equal(sw_plan_stop(plan, &made_up, SW_PAUSE), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, &made_up, NULL), SW_MISUSE);
	assert_int_equal(sw_plan_stop(plan, job, SW_PREEMPT), SW_YES);
}

static void try_to_pause(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PAUSE), SW_MISUSE);
}

/* Aim: a paused job is not moved or limited, but can be stopped, and then is not paused any more;
 * only policies that say so pause at all. */
static void test_refusals(void **state)
{
	(void)state;
	const struct sw_job_spec spec = spec_of(50, 20);
	struct rig rig;
	open_pausing(&rig);
	rig_submit(&rig, 0, &spec);
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	run_script(&rig, 10, pause_first);
	run_script(&rig, 20, do_what_is_not_done);
	assert_int_equal(rig_state(&rig, 0), SW_JOB_SUSPENDED);
	assert_false(rig_job(&rig, 0)->paused);
	assert_int_equal(left_s(&rig, 0), 90);
	rig_close(&rig);
	open_scripted(&rig, one, 1, (struct sw_engine_config){0});
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, try_to_pause);
	rig_close(&rig);
}

static void start_both(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PAUSE), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
}

/* Aim: under a policy that does not pause, a paused one goes on if it can, else is preempted: none
 * stands still for ever. */
static void test_another_policy(void **state)
{
	(void)state;
	struct sw_err err = {0};
	for (uint64_t gib = 30; gib <= 60; gib += 30) {
		struct sw_job_spec first = spec_of(gib, 20), second = spec_of(50, 20);
		first.compute_milli = second.compute_milli = 500;
		struct rig rig;
		open_pausing(&rig);
		rig_submit(&rig, 0, &first);
		rig_submit(&rig, 0, &second);
		run_script(&rig, 0, start_both);
		rig_must(sw_engine_set_policy(rig.engine, &sw_policy_fifo, NULL, &err), &err);
		rig_tick(&rig, 1);
		assert_int_equal(rig_state(&rig, 0), gib == 30 ? SW_JOB_RUNNING : SW_JOB_SUSPENDED);
		assert_false(rig_job(&rig, 0)->paused);
		assert_true(rig_runs(&rig, 1));
		rig_close(&rig);
	}
}

/* Aim: a job without memory to its name, or with a floor above it, keeps all of it. */
static void test_floor(void **state)
{
	(void)state;
	struct sw_job job = {.gpu_memory_bytes = 0, .gpu_floor_bytes = 5};
	assert_int_equal(sw_job_floor(&job), 0);
	job.gpu_memory_bytes = 4;
	assert_int_equal(sw_job_floor(&job), 4);
	job.gpu_memory_bytes = 6;
	assert_int_equal(sw_job_floor(&job), 5);
	job.gpu_floor_bytes = 0;
	assert_int_equal(sw_job_floor(&job), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_stands_still),
		cmocka_unit_test(test_others_use_what_it_leaves),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_another_policy),
		cmocka_unit_test(test_floor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
