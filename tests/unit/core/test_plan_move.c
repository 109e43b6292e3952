/* The verbs of a plan: other places and other sizes for jobs that run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

/* ---- migrate ---- */

static void migrate_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_by(NULL))), SW_YES);
	/* It stands where the rule wants it: there is no other place. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_by(NULL))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_by(NULL))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, &made_up, SW_WISH(.where = sw_by(NULL))), SW_MISUSE);
}

/* Aim: a migrated job goes where the rule would put it now, in the same run, and its
 * service so far counts. */
static void test_migrate(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.placement = &sw_placement_yarn});
	rig_submit_plain(&rig, 0, 2, 100);
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 0, start_all);
	assert_string_equal(rig_place(&rig, 1), "1:1");
	rig_finish(&rig, 4, 0); /* yarn takes the first node that has room, and now that is node 0 */
	run_script(&rig, 5, migrate_second);
	assert_int_equal(rig_commands(&rig), 1);
	const struct sw_command *move = rig_command(&rig, SW_CMD_MOVE, 1);
	assert_non_null(move);
	assert_int_equal(move->epoch, 1);
	assert_int_equal(move->gpus, 1);
	assert_string_equal(rig_place(&rig, 1), "0:1");
	const struct sw_job *job = rig_job(&rig, 1);
	assert_int_equal(job->migrations, 1);
	assert_int_equal(job->preemptions, 0);
	assert_int_equal(job->first_start_at, 0);
	assert_int_equal(sw_job_ran(sw_engine_view(rig.engine), job), 5 * SW_NS_PER_S);
	assert_int_equal(sw_job_remaining(sw_engine_view(rig.engine), job), 95 * SW_NS_PER_S);
	/* Its old place is free again. */
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 3);
	rig_close(&rig);
}

static void migrate_first_in_vain(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_by(NULL))), SW_NO_ROOM);
}

/* Aim: a job that finds no other place is left alone: no command, and nothing about it changes. */
static void test_migrate_nowhere(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 3, 100);
	run_script(&rig, 0, start_first);
	struct sw_job before = *rig_job(&rig, 0);
	run_script(&rig, 5, migrate_first_in_vain);
	assert_int_equal(rig_commands(&rig), 0);
	assert_memory_equal(rig_job(&rig, 0), &before, sizeof before);
	rig_close(&rig);
}

static void try_every_way_to_move(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_by(NULL))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.gpus = 2)), SW_NO_ROOM);
	/* Lifted and put elsewhere in one decision would be a move too. */
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_NO_ROOM);
}

/* Aim: where the engine was told that running jobs cannot be moved, no way leads to a move; a job
 * can only be stopped and started later. */
static void test_cannot_move(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.placement = &sw_placement_yarn, .terms.moves = SW_MOVES_NEVER});
	rig_submit_plain(&rig, 0, 2, 100);
	struct sw_job_spec elastic = rig_spec(1, 100);
	elastic.max_gpus = 2;
	rig_submit(&rig, 0, &elastic);
	run_script(&rig, 0, start_all);
	rig_finish(&rig, 4, 0);
	assert_string_equal(rig_place(&rig, 1), "1:1"); /* yarn would have it on node 0 now */
	run_script(&rig, 5, try_every_way_to_move);
	assert_int_equal(rig_commands(&rig), 1);
	assert_non_null(rig_command(&rig, SW_CMD_STOP, 1));
	run_script(&rig, 6, start_all);
	assert_non_null(rig_command(&rig, SW_CMD_START, 1));
	assert_string_equal(rig_place(&rig, 1), "0:1");
	rig_close(&rig);
}

static void preempt_and_share(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_NO_ROOM);
}

/* Aim: to be lifted and to become a neighbour in one decision would be a move as well. */
static void test_cannot_move_beside_another(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec small = rig_spec(1, 100);
	small.gpu_memory_bytes = RIG_GIB;
	small.compute_milli = 100;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms.moves = SW_MOVES_NEVER});
	rig_submit(&rig, 0, &small);
	rig_submit(&rig, 0, &small);
	run_script(&rig, 0, start_all);
	run_script(&rig, 1, preempt_and_share);
	assert_int_equal(rig_commands(&rig), 1);
	assert_non_null(rig_command(&rig, SW_CMD_STOP, 1));
	rig_close(&rig);
}

/* ---- resize ---- */

static struct sw_job_spec elastic_spec(uint32_t min, uint32_t gpus, uint32_t max, int64_t work_s)
{
	struct sw_job_spec spec = rig_spec(gpus, work_s);
	spec.min_gpus = min;
	spec.max_gpus = max;
	return spec;
}

static uint32_t wanted_gpus;
static enum sw_answer wanted_answer;

static void resize_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = wanted_gpus)), wanted_answer);
}

static void resize(struct rig *rig, int64_t at_s, uint32_t gpus, enum sw_answer answer)
{
	wanted_gpus = gpus;
	wanted_answer = answer;
	run_script(rig, at_s, resize_first);
}

/* Aim: an elastic job gets any size from its min to its max that is free, in the same run;
 * other sizes are misuse. */
static void test_resize(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = elastic_spec(1, 2, 4, 100);
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_submit(&rig, 0, &spec);
	resize(&rig, 0, 2, SW_YES); /* it starts */
	resize(&rig, 1, 0, SW_MISUSE);
	resize(&rig, 1, 5, SW_MISUSE);
	resize(&rig, 1, 2, SW_YES);
	assert_int_equal(rig_commands(&rig), 0); /* it has that size */
	resize(&rig, 10, 4, SW_YES);
	const struct sw_command *move = rig_command(&rig, SW_CMD_MOVE, 0);
	assert_non_null(move);
	assert_int_equal(move->gpus, 4);
	assert_int_equal(move->epoch, 1);
	assert_int_equal(rig_job(&rig, 0)->gpus_held, 4);
	assert_int_equal(sw_job_gpu_time(sw_engine_view(rig.engine), rig_job(&rig, 0)), 20 * SW_NS_PER_S);
	rig_tick(&rig, 20);
	assert_int_equal(sw_job_gpu_time(sw_engine_view(rig.engine), rig_job(&rig, 0)), 60 * SW_NS_PER_S);
	resize(&rig, 20, 1, SW_YES);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 3);
	rig_submit_plain(&rig, 20, 1, 10);
	run_script(&rig, 20, start_all);
	resize(&rig, 21, 4, SW_NO_ROOM);
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(rig_job(&rig, 0)->gpus_held, 1);
	rig_close(&rig);
}

/* Aim: the work that is left of a resized job falls at the speed of its size; it is counted on the
 * GPUs that the job asked for. */
static void test_resize_remaining(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = elastic_spec(1, 2, 4, 100);
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	const struct sw_view *view = sw_engine_view(rig.engine);
	resize(&rig, 10, 4, SW_YES);
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, 0)), 90 * SW_NS_PER_S);
	resize(&rig, 20, 1, SW_YES); /* 10 s at twice the speed */
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, 0)), 70 * SW_NS_PER_S);
	resize(&rig, 60, 2, SW_YES); /* 40 s at half the speed */
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, 0)), 50 * SW_NS_PER_S);
	rig_tick(&rig, 100);
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, 0)), 10 * SW_NS_PER_S);
	rig_close(&rig);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: a job that was stopped at another size than it asked for needs the time that its work takes
 * on the size it asked for. */
static void test_stopped_at_another_size(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = elastic_spec(1, 2, 4, 100);
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms.keeps_state = true});
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	resize(&rig, 0, 4, SW_YES);
	run_script(&rig, 10, preempt_first);
	assert_int_equal(sw_job_remaining(sw_engine_view(rig.engine), rig_job(&rig, 0)), 80 * SW_NS_PER_S);
	rig_close(&rig);
}

static void resize_over_quota(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 3)), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 4)), SW_OVER_QUOTA);
	assert_int_equal(job_of(plan, 0)->gpus_held, 3);
}

/* Aim: a job grows up to its tenant's quota and is told when that is the reason. */
static void test_resize_over_quota(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = elastic_spec(1, 2, 4, 100);
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 3});
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, resize_over_quota);
	assert_int_equal(sw_view_tenant_held(sw_engine_view(rig.engine), 0), 3);
	rig_close(&rig);
}

static void resize_there_and_back(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1)), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 2)), SW_YES);
}

/* Aim: a job that is where it was at the end of a decision, with the size it had, was not
 * touched. */
static void test_resize_there_and_back(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = elastic_spec(1, 2, 4, 100);
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	struct sw_job before = *rig_job(&rig, 0);
	run_script(&rig, 5, resize_there_and_back);
	assert_int_equal(rig_commands(&rig), 0);
	assert_memory_equal(rig_job(&rig, 0), &before, sizeof before);
	rig_close(&rig);
}

static void restart_elsewhere(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

/* Aim: a job that was lifted and ends up elsewhere in the same decision has
 * moved; it was not preempted. */
static void test_lifted_and_put_elsewhere(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.placement = &sw_placement_yarn});
	rig_submit_plain(&rig, 0, 1, 100);
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 0, start_all);
	rig_submit_plain(&rig, 0, 1, 100);
	assert_string_equal(rig_place(&rig, 1), "0:2");
	run_script(&rig, 5, restart_elsewhere);
	assert_int_equal(rig_commands(&rig), 2);
	assert_non_null(rig_command(&rig, SW_CMD_START, 2));
	assert_non_null(rig_command(&rig, SW_CMD_MOVE, 1));
	assert_string_equal(rig_place(&rig, 2), "0:2");
	assert_string_equal(rig_place(&rig, 1), "1:1");
	assert_int_equal(rig_job(&rig, 1)->preemptions, 0);
	assert_int_equal(rig_job(&rig, 1)->migrations, 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_migrate),
		cmocka_unit_test(test_migrate_nowhere),
		cmocka_unit_test(test_cannot_move),
		cmocka_unit_test(test_cannot_move_beside_another),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_resize_remaining),
		cmocka_unit_test(test_stopped_at_another_size),
		cmocka_unit_test(test_resize_over_quota),
		cmocka_unit_test(test_resize_there_and_back),
		cmocka_unit_test(test_lifted_and_put_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
