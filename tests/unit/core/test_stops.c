/* What the owner of a job allows to be done to a run: never, suspend, restart; whatever a policy,
 * an order or a change wishes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

static const struct sw_topology_node one_of_two[] = {RIG_NODE(0, 2)};
static const struct sw_engine_config live = {.terms.moves = SW_MOVES_RESTART};

static uint32_t submit_ruled(struct rig *rig, int64_t at_s, uint32_t gpus, int64_t work_s, enum sw_stop_rule rule)
{
	struct sw_job_spec spec = rig_spec(gpus, work_s);
	spec.min_gpus = 1;
	spec.max_gpus = 2;
	spec.retries = 1;
	spec.stop_rule = (uint8_t)rule;
	spec.prefers_home = rule == SW_STOP_SUSPEND || rule == SW_STOP_IF_FREE;
	return rig_submit(rig, at_s, &spec);
}

static void say(struct rig *rig, int64_t at_s, uint32_t id, bool keeps, bool frees)
{
	struct sw_event event = rig_answer(rig, SW_EV_KEEPS, id);
	event.gpus = keeps;
	event.frees = frees;
	rig_event(rig, at_s, event);
}

/* That its run goes on after a stop, and leaves its GPUs to others meanwhile. */
static void say_keeps(struct rig *rig, int64_t at_s, uint32_t id, bool keeps)
{
	say(rig, at_s, id, keeps, keeps);
}

static enum sw_answer expected;

static void stop_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), expected);
}

/* Every way in which a policy can have a running job elsewhere, smaller or away. */
static void do_all_to_first(struct sw_plan *plan)
{
	const struct sw_job *job = job_of(plan, 0);
	assert_int_equal(sw_plan_stop(plan, job, SW_PREEMPT), SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.where = sw_by(NULL))), SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.where = sw_by(&sw_placement_pack))), SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.gpus = 1)), SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){0}))), SW_KEPT);
	assert_true(job->state == SW_JOB_RUNNING);
}

/* Aim: a job that may not be stopped is not, by no verb; that is no misuse. */
static void test_never(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_two, 1, live);
	uint32_t job = submit_ruled(&rig, 0, 2, 100, SW_STOP_NEVER);
	run_script(&rig, 0, start_all);
	for (int i = 1; i < 200; i++) /* twice the misuses that a policy is allowed */
		run_script(&rig, i, do_all_to_first);
	assert_true(rig_runs(&rig, job));
	assert_string_equal(sw_engine_notes(rig.engine), "");
	assert_false(sw_job_may_stop(sw_engine_view(rig.engine), rig_job(&rig, job)));
	rig_close(&rig);
}

/* Aim: one whose owner allows a restart is stopped, moved and resized as ever. */
static void test_restart(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_two, 1, live);
	uint32_t job = submit_ruled(&rig, 0, 2, 100, SW_STOP_RESTART);
	run_script(&rig, 0, start_all);
	expected = SW_YES;
	run_script(&rig, 1, stop_first);
	assert_int_equal(rig_state(&rig, job), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: one that is to be suspended is stopped only when the world has said that it goes on where it
 * was, and never moved by a stop and a start. */
static void test_suspend(void **state)
{
	(void)state;
	for (int keeps = 0; keeps < 2; keeps++) {
		struct rig rig;
		open_scripted(&rig, one_of_two, 1, live);
		uint32_t job = submit_ruled(&rig, 0, 2, 100, SW_STOP_SUSPEND);
		run_script(&rig, 0, start_all);
		expected = SW_TOO_SOON;
		run_script(&rig, 1, stop_first);
		say_keeps(&rig, 2, job, keeps);
		if (!keeps)
			run_script(&rig, 3, do_all_to_first);
		expected = keeps ? SW_YES : SW_KEPT;
		run_script(&rig, 3, stop_first);
		assert_int_equal(rig_runs(&rig, job), !keeps);
		rig_close(&rig);
	}
}

static void try_all(struct sw_plan *plan)
{
	for (const struct sw_job *job = sw_view_next_waiting(sw_plan_view(plan), NULL); job != NULL;
	     job = sw_view_next_waiting(sw_plan_view(plan), job))
		(void)sw_plan_run(plan, job, NULL);
}

static void try_elsewhere(struct sw_plan *plan)
{
	const struct sw_gpus there = {{1}, 1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){1}))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&there, 1))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_NO_ROOM);
}

/* Aim: one that was suspended waits for its own GPUs, though others are free, and those behind it
 * that are alike do not wait with it. */
static void test_goes_home_only(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, live);
	uint32_t job = submit_ruled(&rig, 0, 1, 100, SW_STOP_SUSPEND), other = submit_ruled(&rig, 0, 1, 100, SW_STOP_NEVER);
	run_script(&rig, 0, start_all);
	assert_string_equal(rig_place(&rig, job), "0:1");
	say_keeps(&rig, 1, job, true);
	expected = SW_YES;
	run_script(&rig, 2, stop_first);
	uint32_t two = submit_ruled(&rig, 3, 2, 100, SW_STOP_NEVER), one = submit_ruled(&rig, 3, 1, 100, SW_STOP_NEVER);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
	run_script(&rig, 3, try_all);
	assert_true(rig_runs(&rig, two) && rig_runs(&rig, one));
	assert_string_equal(rig_place(&rig, one), "0:1");
	rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
	rig_finish(&rig, 5, two);
	run_script(&rig, 5, try_elsewhere);
	uint32_t alike = submit_ruled(&rig, 6, 1, 100, SW_STOP_NEVER);
	run_script(&rig, 6, try_all);
	assert_true(rig_runs(&rig, alike));
	rig_finish(&rig, 7, one);
	run_script(&rig, 7, try_all);
	assert_string_equal(rig_place(&rig, job), "0:1");
	/* It is the run that it was. */
	run_script(&rig, 8, stop_first);
	assert_int_equal(rig_state(&rig, job), SW_JOB_WAITING);
	assert_true(rig_runs(&rig, other));
	rig_close(&rig);
}

static void start_with_both(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 2)), SW_YES);
}

/* Aim: an elastic job that was suspended with another number of GPUs than it asked for
 * goes on with that number. */
static void test_elastic_goes_home(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, live);
	uint32_t job = submit_ruled(&rig, 0, 1, 100, SW_STOP_SUSPEND);
	run_script(&rig, 0, start_with_both);
	say_keeps(&rig, 1, job, true);
	expected = SW_YES;
	run_script(&rig, 2, stop_first);
	run_script(&rig, 3, try_all);
	assert_string_equal(rig_place(&rig, job), "0:3");
	rig_close(&rig);
}

/* Aim: what stood still on a node that is lost starts anew, wherever there is room; one that may
 * not start a second time has failed. */
static void test_home_is_lost(void **state)
{
	(void)state;
	for (int no_restart = 0; no_restart < 2; no_restart++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 100);
		spec.stop_rule = SW_STOP_SUSPEND;
		spec.prefers_home = true;
		spec.no_restart = no_restart;
		open_scripted(&rig, two_by_two, 2, live);
		uint32_t job = rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_all);
		say_keeps(&rig, 1, job, true);
		expected = SW_YES;
		run_script(&rig, 2, stop_first);
		rig_event(&rig, 3, rig_node_event(SW_EV_NODE_DOWN, 0));
		if (no_restart) {
			assert_int_equal(rig_state(&rig, job), SW_JOB_FAILED);
			assert_non_null(rig_command(&rig, SW_CMD_STOP, job));
		} else {
			run_script(&rig, 4, try_all);
			assert_string_equal(rig_place(&rig, job), "1:1");
		}
		rig_close(&rig);
	}
}

/* Aim: a job that may not start a second time ends with its run: whether that failed, with retries
 * left, or its node was lost. */
static void test_no_restart(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 100);
		spec.no_restart = true;
		spec.retries = 3;
		open_scripted(&rig, two_by_two, 2, live);
		uint32_t job = rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_all);
		struct sw_event fails = rig_answer(&rig, SW_EV_FAIL, job);
		fails.verdict = how == 0 ? SW_FAIL_BY_RETRIES : SW_FAIL_FREE;
		rig_event(&rig, 1, how < 2 ? fails : rig_node_event(SW_EV_NODE_DOWN, 0));
		assert_int_equal(rig_state(&rig, job), SW_JOB_FAILED);
		rig_close(&rig);
	}
}

static void move_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_by(NULL))), SW_KEPT);
}

/* Aim: a job that may not start a second time is not stopped by a policy where its run would be
 * lost, whatever its rule and the world's; where it keeps its state it is. */
static void test_no_restart_is_kept(void **state)
{
	(void)state;
	static const uint8_t rules[] = {SW_STOP_AS_WORLD, SW_STOP_RESTART};
	for (int variant = 0; variant < 4; variant++) {
		struct rig rig;
		bool keeps_state = variant & 2;
		struct sw_job_spec spec = rig_spec(1, 100);
		spec.no_restart = true;
		spec.stop_rule = rules[variant & 1];
		open_scripted(&rig, one_of_two, 1,
			      (struct sw_engine_config){.terms = {.moves = SW_MOVES_RESTART, .keeps_state = keeps_state}});
		rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_all);
		assert_int_equal(sw_job_may_stop(sw_engine_view(rig.engine), rig_job(&rig, 0)), keeps_state);
		if (!keeps_state)
			run_script(&rig, 1, move_first);
		expected = keeps_state ? SW_YES : SW_KEPT;
		run_script(&rig, 2, stop_first);
		assert_int_equal(rig_runs(&rig, 0), !keeps_state);
		rig_close(&rig);
	}
}

/* Aim: a hold ends a job that may not start a second time where its run is lost by it, and leaves
 * alone what stands. */
static void test_no_restart_is_held(void **state)
{
	(void)state;
	for (int keeps = 0; keeps < 2; keeps++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 100);
		spec.no_restart = true;
		spec.stop_rule = SW_STOP_SUSPEND;
		open_scripted(&rig, one_of_two, 1, live);
		rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_all);
		if (keeps)
			say_keeps(&rig, 1, 0, true);
		rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
		assert_int_equal(rig_command(&rig, SW_CMD_STOP, 0)->reason, SW_REASON_HELD);
		assert_int_equal(rig_state(&rig, 0), keeps ? SW_JOB_HELD : SW_JOB_FAILED);
		rig_close(&rig);
	}
}

static void lend_first(struct sw_plan *plan)
{
	const struct sw_gpus there = {{0}, 1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC)), SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_by(&sw_placement_pack))),
			 SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&there, 1))), SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED)), SW_YES);
}

/* Aim: a job that may not be stopped never runs where it would have to make way, and is refused
 * where it asks for that. */
static void test_never_lent(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_two, 1, live);
	uint32_t job = submit_ruled(&rig, 0, 1, 100, SW_STOP_NEVER);
	run_script(&rig, 0, lend_first);
	assert_true(rig_runs(&rig, job));
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.job_class = SW_CLASS_OPPORTUNISTIC;
	spec.stop_rule = SW_STOP_NEVER;
	assert_int_equal(rig_state(&rig, rig_submit(&rig, 1, &spec)), SW_JOB_REFUSED);
	rig_close(&rig);
}

/* Aim: a hold that leaves a run alone acts when the run is over, whatever ended it; a release
 * before that takes it back. */
static void test_hold_next(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		struct rig rig;
		open_scripted(&rig, two_by_two, 2, live);
		uint32_t job = submit_ruled(&rig, 0, 1, 100, SW_STOP_RESTART);
		run_script(&rig, 0, start_all);
		rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD_NEXT, .job = {job}});
		assert_true(rig_runs(&rig, job));
		assert_int_equal(rig_commands(&rig), 0);
		if (how == 3)
			rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		struct sw_event fails = rig_answer(&rig, SW_EV_FAIL, job);
		expected = SW_YES;
		if (how == 0 || how == 3)
			run_script(&rig, 3, stop_first);
		else
			rig_event(&rig, 3, how == 1 ? fails : rig_node_event(SW_EV_NODE_DOWN, 0));
		assert_int_equal(rig_state(&rig, job), how == 3 ? SW_JOB_WAITING : SW_JOB_HELD);
		rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		run_script(&rig, 4, try_all);
		assert_true(rig_runs(&rig, job));
		rig_close(&rig);
	}
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, live);
	uint32_t waits = submit_ruled(&rig, 0, 1, 100, SW_STOP_NEVER);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD_NEXT, .job = {waits}});
	assert_int_equal(rig_state(&rig, waits), SW_JOB_HELD);
	rig_close(&rig);
}

static void start_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

/* Aim: one whose memory cannot leave its GPUs goes on there, or stands there with its memory if it
 * is held; the newcomer, which has not begun, waits again at no cost. It may be stopped again only
 * if its owner said so; then, too, nothing fits beside its memory. */
static void test_stays(void **state)
{
	(void)state;
	for (int c = 0; c < 4; c++) {
		struct rig rig;
		bool held = c % 2 == 1;
		open_scripted(&rig, one_of_two, 1, live);
		uint32_t job = submit_ruled(&rig, 0, 2, 100, c < 2 ? SW_STOP_SUSPEND : SW_STOP_IF_FREE);
		run_script(&rig, 0, start_all);
		say_keeps(&rig, 1, job, true);
		expected = SW_YES;
		if (held)
			rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
		else
			run_script(&rig, 2, stop_first);
		uint32_t guest = submit_ruled(&rig, 2, 2, 100, SW_STOP_NEVER);
		run_script(&rig, 2, start_second);
		/* Not in the step in which it goes on. */
		expected = c < 2 ? SW_TOO_SOON : SW_KEPT;
		script = held ? NULL : stop_first;
		rig_event(&rig, 3, rig_answer(&rig, SW_EV_STAY, job));
		expected = SW_YES;
		assert_int_equal(rig_command(&rig, SW_CMD_STOP, guest)->reason, SW_REASON_BOUNCED);
		assert_int_equal(rig_job(&rig, guest)->restarts + rig_job(&rig, guest)->preemptions, 0);
		assert_int_equal(rig_runs(&rig, job), !held);
		assert_int_equal(rig_command(&rig, SW_CMD_START, job) != NULL, !held);
		if (!held)
			run_script(&rig, 4, c < 2 ? stop_first : do_all_to_first);
		run_script(&rig, 4, try_all);
		assert_false(rig_runs(&rig, guest));
		rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		run_script(&rig, 5, try_all);
		rig_finish(&rig, 6, job);
		run_script(&rig, 6, try_all);
		assert_true(rig_runs(&rig, guest));
		rig_close(&rig);
	}
}

/* Aim: where the newcomer has begun and may not be stopped, the run stands beside it until that is
 * over, and is not stopped again. */
static void test_stays_beside_one_that_has_begun(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_two, 1, live);
	uint32_t job = submit_ruled(&rig, 0, 2, 100, SW_STOP_IF_FREE);
	run_script(&rig, 0, start_all);
	say_keeps(&rig, 1, job, true);
	expected = SW_YES;
	run_script(&rig, 2, stop_first);
	uint32_t guest = submit_ruled(&rig, 2, 2, 100, SW_STOP_NEVER);
	run_script(&rig, 2, start_second);
	script = NULL;
	rig_event(&rig, 3, rig_answer(&rig, SW_EV_BEGUN, guest));
	rig_event(&rig, 3, rig_answer(&rig, SW_EV_STAY, job));
	assert_true(rig_runs(&rig, guest));
	assert_false(rig_runs(&rig, job));
	rig_finish(&rig, 4, guest);
	run_script(&rig, 4, try_all);
	assert_true(rig_runs(&rig, job));
	expected = SW_KEPT;
	run_script(&rig, 5, stop_first);
	assert_true(rig_runs(&rig, job));
	rig_close(&rig);
}

/* Aim: a run that came back to GPUs which another could not leave is not lost:
 * it stands there again. */
static void test_steps_back(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_two, 1, live);
	uint32_t job = submit_ruled(&rig, 0, 2, 100, SW_STOP_SUSPEND), other = submit_ruled(&rig, 0, 2, 100, SW_STOP_SUSPEND);
	expected = SW_YES;
	run_script(&rig, 0, try_all);
	say_keeps(&rig, 1, job, true);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
	run_script(&rig, 2, start_second);
	say_keeps(&rig, 3, other, true);
	rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_HOLD, .job = {other}});
	rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
	run_script(&rig, 4, try_all);
	assert_true(rig_runs(&rig, job));
	rig_event(&rig, 5, rig_answer(&rig, SW_EV_STAY, other));
	const struct sw_command *stop = rig_command(&rig, SW_CMD_STOP, job);
	assert_true(stop != NULL && stop->stands && stop->reason == SW_REASON_BOUNCED);
	assert_int_equal(rig_job(&rig, job)->restarts, 0);
	/* Both hold all of their GPUs now: the one that is not held cannot go
	 * on before the other has. */
	run_script(&rig, 6, try_all);
	assert_false(rig_runs(&rig, job));
	rig_event(&rig, 7, (struct sw_event){.kind = SW_EV_CANCEL, .job = {other}});
	run_script(&rig, 7, try_all);
	assert_string_equal(rig_place(&rig, job), "0:3");
	rig_close(&rig);
}

/* ---- what a run holds while it stands */

static struct sw_job_spec with_memory(uint32_t gpus, uint64_t gib, enum sw_stop_rule rule)
{
	struct sw_job_spec spec = rig_spec(gpus, 100);
	spec.gpu_memory_bytes = gib << 30;
	spec.stop_rule = (uint8_t)rule;
	spec.prefers_home = rule == SW_STOP_SUSPEND;
	return spec;
}

static const struct sw_topology_node one_of_16_gib[] = {
	{.gpus = 1, .cpus = 8, .memory_bytes = UINT64_C(64) << 30, .gpu_memory_bytes = UINT64_C(16) << 30}};

/* Aim: others come to the GPU of a run that stands there only where they fit beside the
 * memory that it holds there. */
static void test_memory_of_one_that_stands(void **state)
{
	(void)state;
	static const struct {
		bool frees;
		uint64_t gib;
		bool fits;
	} cases[] = {{false, 6, true}, {false, 7, false}, {false, 0, false}, {true, 16, true}, {true, 0, true}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct rig rig;
		open_scripted(&rig, one_of_16_gib, 1, live);
		struct sw_job_spec first = with_memory(1, 10, SW_STOP_SUSPEND), second = with_memory(1, cases[c].gib, SW_STOP_NEVER);
		uint32_t job = rig_submit(&rig, 0, &first);
		run_script(&rig, 0, start_all);
		say(&rig, 1, job, true, cases[c].frees);
		rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
		assert_true(rig_command(&rig, SW_CMD_STOP, job)->stands);
		uint32_t other = rig_submit(&rig, 2, &second);
		run_script(&rig, 2, try_all);
		assert_int_equal(rig_runs(&rig, other), cases[c].fits);
		/* Whatever it was, the one that stands goes on as soon as it has the GPU again. */
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_CANCEL, .job = {other}});
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		run_script(&rig, 3, try_all);
		assert_true(rig_runs(&rig, job));
		rig_close(&rig);
	}
}

static const struct sw_engine_config moving = {0};

/* The first job goes to the other node, the second takes its GPU, and then the
 * first is to be stopped. */
static void move_and_stop(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){1}))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){0}))), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_KEPT);
}

/* Aim: where runs can be moved, one that was put elsewhere by a decision is not suspended by the
 * same one: it would stand where others are by then. */
static void test_moved_is_not_stopped(void **state)
{
	(void)state;
	static const struct sw_topology_node two_of_one[] = {RIG_NODE(0, 1), RIG_NODE(0, 1)};
	struct rig rig;
	open_scripted(&rig, two_of_one, 2, moving);
	uint32_t first = submit_ruled(&rig, 0, 1, 100, SW_STOP_SUSPEND);
	run_script(&rig, 0, start_all);
	say(&rig, 1, first, true, false);
	uint32_t second = submit_ruled(&rig, 1, 1, 100, SW_STOP_NEVER);
	run_script(&rig, 1, move_and_stop);
	assert_true(rig_runs(&rig, first) && rig_runs(&rig, second));
	expected = SW_YES;
	run_script(&rig, 2, stop_first);
	assert_true(rig_command(&rig, SW_CMD_STOP, first)->stands);
	rig_close(&rig);
}

static void shrink_and_move(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), UINT64_C(8) << 30, SW_COMPUTE_WHOLE), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){1}))), SW_NO_ROOM);
}

/* Aim: a run is not moved, with less memory for the moment, to a GPU on which it could not go on
 * once it was suspended there. */
static void test_moves_where_it_can_come_back(void **state)
{
	(void)state;
	static const struct sw_topology_node large_and_small[] = {
		{.gpus = 1, .cpus = 8, .memory_bytes = UINT64_C(64) << 30, .gpu_memory_bytes = UINT64_C(80) << 30},
		{.gpus = 1, .cpus = 8, .memory_bytes = UINT64_C(64) << 30, .gpu_memory_bytes = UINT64_C(16) << 30}};
	struct rig rig;
	open_scripted(&rig, large_and_small, 2, moving);
	struct sw_job_spec spec = with_memory(1, 48, SW_STOP_SUSPEND);
	uint32_t job = rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_all);
	say(&rig, 1, job, true, true);
	run_script(&rig, 2, shrink_and_move);
	assert_true(rig_runs(&rig, job));
	rig_close(&rig);
}

/* Aim: a job that would not fit beside what a victim leaves on its GPU stops nothing, by order or
 * over opportunistic ones, and takes the GPU of another victim if there is one. */
static void test_stops_none_in_vain(void **state)
{
	(void)state;
	static const struct sw_topology_node two_of_16_gib[] = {
		{.gpus = 2, .cpus = 8, .memory_bytes = UINT64_C(64) << 30, .gpu_memory_bytes = UINT64_C(16) << 30}};
	for (int frees = 0; frees < 2; frees++) {
		for (int by_count = 0; by_count < 2; by_count++) {
			struct rig rig;
			struct sw_engine_config config = live;
			config.policy = &sw_policy_srtf;
			config.placement = by_count ? &sw_placement_count : &sw_placement_yarn;
			rig_open(&rig, two_of_16_gib, 1, config, NULL);
			uint32_t first = submit_ruled(&rig, 0, 1, 4000, SW_STOP_SUSPEND),
				 second = submit_ruled(&rig, 0, 1, 5000, SW_STOP_SUSPEND);
			say(&rig, 1, first, true, frees);
			say(&rig, 1, second, true, false);
			uint32_t shorter = submit_ruled(&rig, 2, 1, 10, SW_STOP_NEVER);
			assert_int_equal(rig_runs(&rig, shorter), frees);
			assert_int_equal(rig_runs(&rig, first), !frees);
			assert_true(rig_runs(&rig, second));
			rig_close(&rig);
		}
		struct rig rig;
		struct sw_engine_config config = live;
		config.policy = &sw_policy_antman;
		config.placement = &sw_placement_yarn;
		rig_open(&rig, two_of_16_gib, 1, config, NULL);
		struct sw_job_spec lent = with_memory(1, 0, SW_STOP_SUSPEND), own = with_memory(1, 0, SW_STOP_NEVER);
		lent.job_class = SW_CLASS_OPPORTUNISTIC;
		uint32_t first = rig_submit(&rig, 0, &lent), second = rig_submit(&rig, 0, &lent);
		say(&rig, 1, first, true, false);
		say(&rig, 1, second, true, frees);
		uint32_t guaranteed = rig_submit(&rig, 2, &own);
		assert_int_equal(rig_runs(&rig, guaranteed), frees);
		assert_true(rig_runs(&rig, first));
		assert_int_equal(rig_runs(&rig, second), !frees);
		rig_close(&rig);
	}
}

/* Aim: the host memory of a run that stands is its own: a newcomer that needs it waits. */
static void test_host_memory_of_one_that_stands(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_config config = live;
	config.placement = &sw_placement_yarn;
	open_scripted(&rig, one_of_16_gib, 1, config);
	struct sw_job_spec first = with_memory(1, 1, SW_STOP_SUSPEND), second = with_memory(1, 1, SW_STOP_NEVER);
	first.host_memory_bytes = second.host_memory_bytes = UINT64_C(40) << 30;
	uint32_t job = rig_submit(&rig, 0, &first);
	run_script(&rig, 0, start_all);
	say_keeps(&rig, 1, job, true);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
	uint32_t other = rig_submit(&rig, 2, &second);
	second.host_memory_bytes = UINT64_C(20) << 30;
	uint32_t smaller = rig_submit(&rig, 2, &second);
	run_script(&rig, 2, try_all);
	assert_false(rig_runs(&rig, other));
	assert_true(rig_runs(&rig, smaller));
	rig_close(&rig);
}

static void pack_third_beside_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.promise = SW_REST, .where = sw_beside(job_of(plan, 1)))), SW_NO_ROOM);
}

/* Aim: beside a run that stands, a guest needs the host memory that it asks for itself, whatever
 * the rule gave its host. */
static void test_host_memory_of_a_guest(void **state)
{
	(void)state;
	static const struct sw_topology_node two_of_16_gib[] = {
		{.gpus = 2, .cpus = 8, .memory_bytes = UINT64_C(64) << 30, .gpu_memory_bytes = UINT64_C(16) << 30}};
	struct rig rig;
	struct sw_engine_config config = live;
	config.placement = &sw_placement_yarn;
	open_scripted(&rig, two_of_16_gib, 1, config);
	const uint64_t host_gib[] = {20, 4, 50};
	uint32_t jobs[3];
	for (int j = 0; j < 3; j++) {
		struct sw_job_spec spec = with_memory(1, 6, j == 0 ? SW_STOP_SUSPEND : SW_STOP_RESTART);
		spec.host_memory_bytes = host_gib[j] << 30;
		spec.compute_milli = SW_COMPUTE_WHOLE / 4;
		jobs[j] = rig_submit(&rig, 0, &spec);
		if (j == 1)
			run_script(&rig, 0, start_all);
	}
	say_keeps(&rig, 1, jobs[0], true);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {jobs[0]}});
	run_script(&rig, 2, pack_third_beside_second);
	rig_close(&rig);
}

/* Aim: a job that says nothing is stopped only once it is known that its GPUs are free then, and
 * never runs where it would have to make way. */
static void test_if_free(void **state)
{
	(void)state;
	for (int frees = 0; frees < 2; frees++) {
		struct rig rig;
		open_scripted(&rig, one_of_two, 1, live);
		uint32_t job = submit_ruled(&rig, 0, 2, 100, SW_STOP_IF_FREE);
		run_script(&rig, 0, lend_first);
		expected = SW_TOO_SOON;
		run_script(&rig, 1, stop_first);
		say(&rig, 2, job, frees, frees);
		expected = frees ? SW_YES : SW_KEPT;
		run_script(&rig, 3, stop_first);
		assert_int_equal(rig_runs(&rig, job), !frees);
		rig_close(&rig);
	}
}

/* ---- by order */

/* Aim: a requeue ends a run that goes, and one that stands, with all that was kept; a job that is
 * held stays so, one that may not start anew has failed, and of others nothing happens. */
static void test_requeue(void **state)
{
	(void)state;
	for (int stands = 0; stands < 2; stands++) {
		struct rig rig;
		open_scripted(&rig, one_of_two, 1, live);
		uint32_t job = submit_ruled(&rig, 0, 2, 1000, SW_STOP_SUSPEND), waits = submit_ruled(&rig, 0, 2, 1000, SW_STOP_SUSPEND);
		run_script(&rig, 0, start_first);
		say_keeps(&rig, 1, job, true);
		if (stands)
			rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
		else
			rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD_NEXT, .job = {job}});
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_REQUEUE, .job = {waits}});
		assert_int_equal(rig_commands(&rig), 0);
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_REQUEUE, .job = {job}});
		const struct sw_command *stop = rig_command(&rig, SW_CMD_STOP, job);
		assert_true(stop != NULL && !stop->stands && stop->reason == SW_REASON_REQUEUED);
		assert_int_equal(rig_state(&rig, job), SW_JOB_HELD);
		assert_int_equal(rig_job(&rig, job)->restarts, 1);
		assert_int_equal(sw_engine_stands(rig.engine, (struct sw_job_id){job}), SW_NO_PART);
		rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_REQUEUE, .job = {job}});
		assert_int_equal(rig_commands(&rig), 0);
		rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		run_script(&rig, 5, start_first);
		assert_int_equal(sw_engine_epoch(rig.engine, (struct sw_job_id){job}), 2);
		rig_close(&rig);
	}
	struct rig rig;
	struct sw_job_spec spec = rig_spec(1, 1000);
	spec.no_restart = true;
	open_scripted(&rig, one_of_two, 1, live);
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_REQUEUE, .job = {0}});
	assert_true(rig_command(&rig, SW_CMD_STOP, 0) != NULL && rig_state(&rig, 0) == SW_JOB_FAILED);
	rig_close(&rig);
}

static void start_and_stop_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: a job that a decision starts and takes back has kept nothing: it has not run. */
static void test_taken_back(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_two, 1, (struct sw_engine_config){.terms.keeps_state = true});
	rig_submit_plain(&rig, 0, 1, 1000);
	run_script(&rig, 0, start_and_stop_first);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_REQUEUE, .job = {0}});
	assert_int_equal(rig_commands(&rig), 0);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_RELEASE, .job = {0}});
	assert_int_equal(rig_state(&rig, 0), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: in a world that keeps state, a requeue ends what was kept of a suspended run. */
static void test_requeue_of_what_is_kept(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_two, 1, (struct sw_engine_config){.terms.keeps_state = true});
	rig_submit_plain(&rig, 0, 1, 1000);
	run_script(&rig, 0, start_first);
	expected = SW_YES;
	run_script(&rig, 1, stop_first);
	assert_int_equal(rig_state(&rig, 0), SW_JOB_SUSPENDED);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_REQUEUE, .job = {0}});
	assert_int_equal(rig_state(&rig, 0), SW_JOB_WAITING);
	assert_non_null(rig_command(&rig, SW_CMD_STOP, 0));
	run_script(&rig, 3, start_first);
	assert_false(rig_command(&rig, SW_CMD_START, 0)->resume);
	rig_close(&rig);
}

/* Aim: under a preemptive order a shorter job takes GPUs from those alone that may be stopped, and
 * its reason stays a wait where none may; with thousands of others behind. */
static void test_order(void **state)
{
	(void)state;
	static const enum sw_stop_rule rules[] = {SW_STOP_AS_WORLD, SW_STOP_SUSPEND, SW_STOP_RESTART, SW_STOP_NEVER};
	for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
		for (int by_count = 0; by_count < 2; by_count++) {
			struct rig rig;
			struct sw_engine_config config = live;
			config.policy = &sw_policy_srtf;
			config.placement = by_count ? &sw_placement_count : &sw_placement_yarn;
			rig_open(&rig, one_of_two, 1, config, NULL);
			uint32_t never = submit_ruled(&rig, 0, 1, 5000, SW_STOP_NEVER), victim = submit_ruled(&rig, 0, 1, 4000, rules[r]);
			assert_true(rig_runs(&rig, never) && rig_runs(&rig, victim));
			if (rules[r] == SW_STOP_SUSPEND)
				say_keeps(&rig, 1, victim, true);
			uint32_t shorter = submit_ruled(&rig, 2, 1, 10, SW_STOP_NEVER), both = submit_ruled(&rig, 2, 2, 1, SW_STOP_NEVER);
			assert_true(rig_runs(&rig, never));
			assert_false(rig_runs(&rig, both));
			assert_int_equal(rig_runs(&rig, victim), rules[r] == SW_STOP_NEVER);
			assert_int_equal(rig_runs(&rig, shorter), rules[r] != SW_STOP_NEVER);
			rig_close(&rig);
		}
	}
}

/* Aim: a job that ran before the first one with a rule came gives way as one that came later
 * does. */
static void test_first_rule(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_config config = live;
	config.policy = &sw_policy_srtf;
	config.placement = &sw_placement_count;
	rig_open(&rig, one_of_two, 1, config, NULL);
	uint32_t before = submit_ruled(&rig, 0, 1, 4000, SW_STOP_AS_WORLD), never = submit_ruled(&rig, 1, 1, 5000, SW_STOP_NEVER);
	assert_true(rig_runs(&rig, before) && rig_runs(&rig, never));
	uint32_t shorter = submit_ruled(&rig, 2, 1, 10, SW_STOP_AS_WORLD);
	assert_true(rig_runs(&rig, shorter) && rig_runs(&rig, never));
	assert_false(rig_runs(&rig, before));
	rig_close(&rig);
}

/* Aim: an engine that is saved and loaded knows the same. */
static void test_saved(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_err err = {0};
	struct sw_engine_config config = live;
	config.policy = &sw_policy_srtf;
	config.placement = &sw_placement_count;
	rig_open(&rig, one_of_two, 1, config, NULL);
	uint32_t never = submit_ruled(&rig, 0, 1, 5000, SW_STOP_NEVER), suspends = submit_ruled(&rig, 0, 1, 4000, SW_STOP_SUSPEND);
	say_keeps(&rig, 1, suspends, true);
	uint32_t shorter = submit_ruled(&rig, 2, 1, 10, SW_STOP_NEVER);
	assert_true(rig_runs(&rig, shorter));
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_HOLD_NEXT, .job = {never}});
	struct sw_pack bytes = {0};
	sw_engine_save(rig.engine, &bytes);
	bool adopted;
	struct sw_engine *copy = NULL;
	config.topology = rig.topology;
	config.params = rig.params;
	rig_must(sw_engine_load(&config, bytes.bytes, bytes.size, &copy, &adopted, &err), &err);
	assert_false(adopted);
	sw_engine_free(rig.engine);
	rig.engine = copy;
	rig_finish(&rig, 20, shorter);
	assert_string_equal(rig_place(&rig, suspends), "0:2");
	rig_event(&rig, 21, rig_answer(&rig, SW_EV_FAIL, never));
	assert_int_equal(rig_state(&rig, never), SW_JOB_HELD);
	sw_pack_release(&bytes);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_suspend),
		cmocka_unit_test(test_goes_home_only),
		cmocka_unit_test(test_home_is_lost),
		cmocka_unit_test(test_elastic_goes_home),
		cmocka_unit_test(test_no_restart),
		cmocka_unit_test(test_no_restart_is_kept),
		cmocka_unit_test(test_no_restart_is_held),
		cmocka_unit_test(test_never_lent),
		cmocka_unit_test(test_hold_next),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_stays_beside_one_that_has_begun),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_first_rule),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_steps_back),
		cmocka_unit_test(test_if_free),
		cmocka_unit_test(test_memory_of_one_that_stands),
		cmocka_unit_test(test_moved_is_not_stopped),
		cmocka_unit_test(test_moves_where_it_can_come_back),
		cmocka_unit_test(test_stops_none_in_vain),
		cmocka_unit_test(test_requeue),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_requeue_of_what_is_kept),
		cmocka_unit_test(test_host_memory_of_one_that_stands),
		cmocka_unit_test(test_host_memory_of_a_guest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
