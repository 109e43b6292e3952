/* GPUs of a node that take no jobs, because of what else uses them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

static const struct sw_topology_node one_of_four[] = {RIG_NODE(0, 4)};

static void shut(struct rig *rig, int64_t at_s, uint32_t node, uint64_t mask)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {node}, .mask = mask});
}

/* Aim: jobs are put on the other GPUs of the node; one that finds none waits, says why, and starts
 * as soon as the GPU is open. */
static void test_others_are_used(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, one_of_four, 1, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	shut(&rig, 0, 0, 0x5);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 2);
	uint32_t a = rig_submit_plain(&rig, 1, 1, 100), b = rig_submit_plain(&rig, 1, 1, 100), c = rig_submit_plain(&rig, 1, 3, 100);
	assert_string_equal(rig_place(&rig, a), "0:2");
	assert_string_equal(rig_place(&rig, b), "0:8");
	char why[300];
	sw_engine_explain(rig.engine, (struct sw_job_id){c}, why, sizeof why);
	assert_string_equal(why, "it needs 3 GPUs and only 2 are open to jobs");
	shut(&rig, 2, 0, 0x1);
	assert_false(rig_runs(&rig, c));
	rig_finish(&rig, 3, a);
	rig_finish(&rig, 4, b);
	assert_string_equal(rig_place(&rig, c), "0:e");
	rig_close(&rig);
}

/* Aim: a job on a GPU that is shut goes on there, and when it has ended the GPU
 * is not given out again. */
static void test_holders_stay(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	uint32_t a = rig_submit_plain(&rig, 0, 2, 100);
	shut(&rig, 1, 0, 0x1);
	assert_int_equal(rig_commands(&rig), 0);
	assert_true(rig_runs(&rig, a));
	rig_finish(&rig, 2, a);
	uint32_t b = rig_submit_plain(&rig, 3, 1, 100), c = rig_submit_plain(&rig, 3, 1, 100), d = rig_submit_plain(&rig, 3, 1, 100),
		 e = rig_submit_plain(&rig, 3, 1, 100);
	assert_true(rig_runs(&rig, b) && rig_runs(&rig, c) && rig_runs(&rig, d));
	assert_false(rig_runs(&rig, e));
	shut(&rig, 4, 0, 0);
	assert_string_equal(rig_place(&rig, e), "0:1");
	rig_close(&rig);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_TOO_SOON);
}

/* Aim: a job is not preempted for a GPU that the next one could not have. */
static void test_no_preemption(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	uint32_t a = rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 0, start_all);
	shut(&rig, 1, 0, 0x1);
	run_script(&rig, 100, preempt_first);
	assert_true(rig_runs(&rig, a));
	rig_close(&rig);
}

static void start_with_room(struct sw_plan *plan)
{
	struct sw_gpus there = {{0}, 0x1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&there, 1))), SW_NO_ROOM);
	assert_int_equal(sw_gpu_memory_free(sw_plan_view(plan), (struct sw_node_id){0}, 0), 0);
	there.mask = 0x2;
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&there, 1))), SW_YES);
}

/* Aim: a policy that names GPUs does not get one that is shut. */
static void test_by_name(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 1, 100);
	shut(&rig, 0, 0, 0x1);
	run_script(&rig, 0, start_with_room);
	rig_close(&rig);
}

static void pack_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_NO_ROOM);
	struct sw_gpus where[4];
	assert_int_equal(sw_gpus_least_used(sw_plan_view(plan), job_of(plan, 1), 1000, where, 4), 0);
}

static void pack_second_now(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
}

/* Aim: no job is put beside another on a GPU that is shut; once it is open, it is found again. */
static void test_no_neighbour(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.gpu_memory_bytes = RIG_GIB;
	spec.compute_milli = 400;
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_all);
	rig_submit(&rig, 1, &spec);
	shut(&rig, 1, 0, 0x3);
	run_script(&rig, 1, pack_second);
	shut(&rig, 2, 0, 0x2);
	run_script(&rig, 2, pack_second_now);
	rig_close(&rig);
}

static void start_first_elsewhere(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

/* Aim: a job does not come home to a GPU that is shut; it starts elsewhere. */
static void test_home(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.prefers_home = true;
	uint32_t id = rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_all);
	assert_string_equal(rig_place(&rig, id), "0:1");
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {id}});
	shut(&rig, 2, 0, 0x1);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}});
	run_script(&rig, 3, start_first_elsewhere);
	assert_string_equal(rig_place(&rig, id), "0:2");
	rig_close(&rig);
}

/* Aim: a job is not moved to a GPU that is shut, but off one that is. */
static void test_move(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, one_of_four, 1, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	uint32_t id = rig_submit_plain(&rig, 0, 1, 100);
	shut(&rig, 1, 0, 0x9);
	rig_event(&rig, 1, rig_answer(&rig, SW_EV_BEGUN, id));
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_MOVE, .job = {id}, .epoch = 1, .mask = 0x8});
	assert_string_equal(rig_place(&rig, id), "0:1");
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_MOVE, .job = {id}, .epoch = 1, .mask = 0x4});
	assert_string_equal(rig_place(&rig, id), "0:4");
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 1);
	rig_close(&rig);
}

/* Aim: GPUs that are shut stay so when the node goes down and comes back, and under their new
 * numbers when it changes. */
static void test_nodes_change(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, one_of_four, 1, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	shut(&rig, 0, 0, 0x3);
	rig_event(&rig, 1, rig_node_event(SW_EV_NODE_DOWN, 0));
	rig_event(&rig, 2, rig_node_event(SW_EV_NODE_UP, 0));
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 2);
	struct sw_topology_change change = {.shape = one_of_four[0]};
	memset(change.to, SW_GPU_GONE, sizeof change.to);
	change.shape.gpus = 3;
	change.to[1] = 2;
	change.to[2] = 0;
	change.to[3] = 1;
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {0}, .change = &change});
	uint32_t id = rig_submit_plain(&rig, 4, 2, 100), other = rig_submit_plain(&rig, 4, 1, 100);
	assert_string_equal(rig_place(&rig, id), "0:3");
	assert_false(rig_runs(&rig, other));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others_are_used),
		cmocka_unit_test(test_holders_stay),
		cmocka_unit_test(test_no_preemption),
		cmocka_unit_test(test_by_name),
		cmocka_unit_test(test_no_neighbour),
		cmocka_unit_test(test_home),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_nodes_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
