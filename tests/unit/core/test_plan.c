/* The verbs of a plan: starting and stopping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

/* ---- start ---- */

static void start_three_of_one(struct sw_plan *plan)
{
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 4);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 1);
	/* All or nothing: one GPU is free, two are wanted, none is taken. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_NO_ROOM);
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 1);
	assert_int_equal(job_of(plan, 1)->state, SW_JOB_WAITING);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), NULL), SW_YES);
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 0);
}

/* Aim: a wish takes effect at once, a gang gets all of its GPUs or none, and the commands say
 * which job starts where. */
static void test_start(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 3, 10);
	rig_submit_plain(&rig, 0, 2, 10);
	rig_submit_plain(&rig, 0, 1, 10);
	assert_int_equal(rig_commands(&rig), 0);
	run_script(&rig, 1, start_three_of_one);
	assert_int_equal(rig_commands(&rig), 2);
	const struct sw_command *start = rig_command(&rig, SW_CMD_START, 0);
	assert_non_null(start);
	assert_int_equal(start->epoch, 1);
	assert_int_equal(start->gpus, 3);
	assert_false(start->resume);
	assert_int_equal(sw_ledger_count_gpus(sw_engine_ledger(rig.engine), start->parts), 3);
	assert_non_null(rig_command(&rig, SW_CMD_START, 2));
	assert_int_equal(rig_job(&rig, 0)->first_start_at, SW_NS_PER_S);
	assert_int_equal(rig_job(&rig, 1)->first_start_at, SW_TIME_NEVER);
	rig_close(&rig);
}

static void misuse_start(struct sw_plan *plan)
{
	const struct sw_job *running = job_of(plan, 0), *elastic = job_of(plan, 1), *gone = job_of(plan, 2);
	assert_int_equal(sw_plan_run(plan, running, NULL), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, gone, NULL), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, NULL, NULL), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, &made_up, NULL), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, (const struct sw_job *)((const char *)elastic + 1), NULL), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, elastic, SW_WISH(.gpus = 1)), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, elastic, SW_WISH(.gpus = 5)), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, elastic, SW_WISH(.gpus = UINT32_MAX)), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, elastic, SW_WISH(.gpus = 4)), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, elastic, SW_WISH(.gpus = 3)), SW_YES);
}

/* Aim: starting what runs, what has ended, what was not submitted, or with too few or too many GPUs
 * is misuse and does nothing. */
static void test_start_misuse(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	struct sw_job_spec elastic = rig_spec(3, 10);
	elastic.min_gpus = 2;
	elastic.max_gpus = 4;
	rig_submit_plain(&rig, 0, 1, 10);
	run_script(&rig, 0, start_all);
	rig_submit(&rig, 0, &elastic);
	rig_submit_plain(&rig, 0, 1, 10);
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_CANCEL, .job = {2}});
	run_script(&rig, 1, misuse_start);
	assert_int_equal(rig_commands(&rig), 1);
	assert_int_equal(rig_job(&rig, 1)->gpus_held, 3);
	rig_close(&rig);
}

static void start_over_quota(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_view_tenant_held(sw_plan_view(plan), 3), 2);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_OVER_QUOTA);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), NULL), SW_YES);
}

/* Aim: guaranteed jobs stop at their tenant's quota; opportunistic jobs and other
 * tenants do not pay it. */
static void test_quota(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(2, 10);
	spec.tenant = 3;
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 3, .gpus = 2});
	rig_submit(&rig, 0, &spec);
	spec.gpus = spec.min_gpus = spec.max_gpus = 1;
	rig_submit(&rig, 0, &spec);
	spec.job_class = SW_CLASS_OPPORTUNISTIC;
	rig_submit(&rig, 0, &spec);
	spec.job_class = SW_CLASS_GUARANTEED;
	spec.tenant = 4;
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 1, start_over_quota);
	assert_int_equal(sw_view_tenant_held(sw_engine_view(rig.engine), 3), 2);
	assert_int_equal(sw_view_tenant_quota(sw_engine_view(rig.engine), 3), 2);
	assert_int_equal(sw_view_tenant_quota(sw_engine_view(rig.engine), 4), UINT32_MAX);
	rig_finish(&rig, 2, 0);
	assert_int_equal(sw_view_tenant_held(sw_engine_view(rig.engine), 3), 0);
	rig_close(&rig);
}

/* ---- preempt ---- */

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_MISUSE);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_MISUSE);
	assert_int_equal(sw_plan_stop(plan, &made_up, SW_PREEMPT), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

/* Aim: a preempted job waits again, its run time is kept, and it resumes or starts anew
 * as the engine was told. */
static void test_preempt(void **state)
{
	(void)state;
	for (int keeps_state = 0; keeps_state < 2; keeps_state++) {
		struct rig rig;
		open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms.keeps_state = keeps_state});
		rig_submit_plain(&rig, 0, 3, 100);
		run_script(&rig, 0, start_first);
		rig_submit_plain(&rig, 0, 4, 100);
		run_script(&rig, 7, preempt_first);
		const struct sw_command *stop = rig_command(&rig, SW_CMD_STOP, 0);
		assert_non_null(stop);
		assert_int_equal(stop->reason, SW_REASON_PREEMPTED);
		assert_int_equal(stop->epoch, 1);
		assert_int_equal(stop->gpus, 3);
		/* Stops come before starts: the GPUs must be free first. */
		assert_ptr_equal(stop, &rig.step.commands[0]);
		const struct sw_job *job = rig_job(&rig, 0);
		assert_int_equal(job->state, keeps_state ? SW_JOB_SUSPENDED : SW_JOB_WAITING);
		assert_int_equal(job->preemptions, 1);
		assert_int_equal(sw_job_ran(sw_engine_view(rig.engine), job), 7 * SW_NS_PER_S);
		assert_int_equal(sw_job_gpu_time(sw_engine_view(rig.engine), job), 21 * SW_NS_PER_S);
		assert_int_equal(sw_job_remaining(sw_engine_view(rig.engine), job), (keeps_state ? 93 : 100) * SW_NS_PER_S);
		rig_finish(&rig, 20, 1);
		run_script(&rig, 20, start_first);
		const struct sw_command *again = rig_command(&rig, SW_CMD_START, 0);
		assert_non_null(again);
		assert_int_equal(again->resume, keeps_state);
		assert_int_equal(again->epoch, 2);
		assert_int_equal(rig_job(&rig, 0)->first_start_at, 0);
		rig_close(&rig);
	}
}

static void preempt_too_soon(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_TOO_SOON);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_by(NULL))), SW_TOO_SOON);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1)), SW_TOO_SOON);
}

static void preempt_in_time(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: within its quantum a job is neither preempted nor moved nor resized; at
 * its very end it may be. */
static void test_quantum(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms.quantum_ns = 60 * SW_NS_PER_S});
	struct sw_job_spec elastic = rig_spec(2, 100);
	elastic.min_gpus = 1;
	rig_submit(&rig, 0, &elastic);
	run_script(&rig, 5, start_first);
	run_script(&rig, 5, preempt_too_soon);
	script = preempt_too_soon;
	rig_step_ns(&rig, 65 * SW_NS_PER_S - 1, NULL, 0);
	assert_int_equal(rig_commands(&rig), 0);
	run_script(&rig, 65, preempt_in_time);
	assert_int_equal(rig_commands(&rig), 1);
	rig_close(&rig);
}

static void lift_and_put_back(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

/* Aim: a job that was lifted and put back where it was has not been touched: no command, no
 * preemption, its time runs on. */
static void test_lifted_and_put_back(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 3, 100);
	run_script(&rig, 2, start_first);
	struct sw_job before = *rig_job(&rig, 0);
	run_script(&rig, 9, lift_and_put_back);
	assert_int_equal(rig_commands(&rig), 0);
	assert_memory_equal(rig_job(&rig, 0), &before, sizeof before);
	assert_int_equal(sw_engine_epoch(rig.engine, (struct sw_job_id){0}), 1);
	rig_close(&rig);
}

static void start_and_preempt(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: a job that was started and stopped in one decision never ran. */
static void test_started_and_stopped(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms.keeps_state = true});
	rig_submit_plain(&rig, 0, 3, 100);
	struct sw_job before = *rig_job(&rig, 0);
	run_script(&rig, 9, start_and_preempt);
	assert_int_equal(rig_commands(&rig), 0);
	assert_memory_equal(rig_job(&rig, 0), &before, sizeof before);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_start_misuse),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_preempt),
		cmocka_unit_test(test_quantum),
		cmocka_unit_test(test_lifted_and_put_back),
		cmocka_unit_test(test_started_and_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
