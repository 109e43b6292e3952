/* What events do to jobs and nodes. The policy is fifo, which starts whatever fits; the scripted
 * one where a test must decide itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

static void open_fifo(struct rig *rig, struct sw_engine_config config)
{
	config.policy = &sw_policy_fifo;
	rig_open(rig, two_by_two, 2, config, NULL);
}

static sw_ns ran_of(const struct rig *rig, uint32_t id)
{
	return sw_job_ran(sw_engine_view(rig->engine), rig_job(rig, id));
}

/* ---- answers ---- */

/* Aim: an answer counts only for the run that is on; late, repeated and
 * made-up ones change nothing. */
static void test_answers_by_epoch(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.retries = 1;
	uint32_t id = rig_submit(&rig, 0, &spec);
	struct sw_event first_end = rig_answer(&rig, SW_EV_FINISH, id);
	rig_event(&rig, 10, rig_answer(&rig, SW_EV_FAIL, id)); /* run 1 fails, run 2 begins */
	assert_true(rig_runs(&rig, id));
	assert_int_equal(sw_engine_epoch(rig.engine, (struct sw_job_id){id}), 2);

	static const enum sw_event_kind kinds[] = {SW_EV_FINISH, SW_EV_FAIL, SW_EV_PROGRESS, SW_EV_SPEED};
	struct sw_job before = *rig_job(&rig, id);
	for (size_t k = 0; k < RIG_COUNT(kinds); k++) {
		const uint32_t epochs[] = {0, 1, 3, UINT32_MAX};
		for (size_t e = 0; e < RIG_COUNT(epochs); e++)
			rig_event(&rig, 20, (struct sw_event){.kind = kinds[k], .job = {id}, .epoch = epochs[e], .left_ns = 5});
		rig_event(&rig, 20, (struct sw_event){.kind = kinds[k], .job = {id + 1}, .epoch = 2});
		rig_event(&rig, 20, (struct sw_event){.kind = kinds[k], .job = {UINT32_MAX}, .epoch = 2});
	}
	rig_event(&rig, 20, first_end);
	assert_memory_equal(rig_job(&rig, id), &before, sizeof before);

	struct sw_event end = rig_answer(&rig, SW_EV_FINISH, id);
	rig_event(&rig, 30, end);
	assert_int_equal(rig_state(&rig, id), SW_JOB_FINISHED);
	assert_int_equal(ran_of(&rig, id), 30 * SW_NS_PER_S);
	before = *rig_job(&rig, id);
	rig_event(&rig, 31, end); /* said twice */
	rig_event(&rig, 32, rig_answer(&rig, SW_EV_FAIL, id));
	rig_event(&rig, 33, rig_answer(&rig, SW_EV_PROGRESS, id));
	assert_memory_equal(rig_job(&rig, id), &before, sizeof before);
	rig_close(&rig);
}

/* Aim: an answer about a job that waits is late, whatever it says. */
static void test_answers_about_waiting_jobs(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 4, 100);
	uint32_t waits = rig_submit_plain(&rig, 0, 1, 100);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_FINISH, .job = {waits}, .epoch = 0});
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_FAIL, .job = {waits}, .epoch = 0});
	assert_int_equal(rig_state(&rig, waits), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: how fast a run was measured to be is what policies see, for that run alone. */
static void test_speed(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	const struct sw_view *view = sw_engine_view(rig.engine);
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.retries = 1;
	uint32_t id = rig_submit(&rig, 0, &spec);
	assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, id)), 0);
	struct sw_event news = rig_answer(&rig, SW_EV_SPEED, id);
	news.speed_milli = 940;
	rig_event(&rig, 10, news);
	assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, id)), 940);
	rig_event(&rig, 20, rig_answer(&rig, SW_EV_FAIL, id)); /* run 2 begins */
	assert_true(rig_runs(&rig, id));
	assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, id)), 0);
	rig_event(&rig, 21, news); /* late */
	assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, id)), 0);
	news = rig_answer(&rig, SW_EV_SPEED, id);
	news.speed_milli = 700;
	rig_event(&rig, 30, news);
	assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, id)), 700);
	news.speed_milli = 0; /* which job shares its GPU has changed */
	rig_event(&rig, 40, news);
	assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, id)), 0);
	rig_close(&rig);
}

/* Aim: what the world reports about a run is believed: work left, and when it will end. */
static void test_progress(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	const struct sw_view *view = sw_engine_view(rig.engine);
	uint32_t id = rig_submit_plain(&rig, 0, 1, 100);
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, id)), 100 * SW_NS_PER_S);
	struct sw_event news = rig_answer(&rig, SW_EV_PROGRESS, id);
	news.left_ns = 80 * SW_NS_PER_S;
	news.as_of = 10 * SW_NS_PER_S;
	news.ends_at = 170 * SW_NS_PER_S; /* at half its speed */
	rig_event(&rig, 10, news);
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, id)), 80 * SW_NS_PER_S);
	rig_tick(&rig, 50);
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, id)), 60 * SW_NS_PER_S);
	news.left_ns = -1; /* nonsense */
	rig_event(&rig, 50, news);
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, id)), 60 * SW_NS_PER_S);
	news.left_ns = 5;
	news.as_of = 50 * SW_NS_PER_S;
	news.ends_at = 0; /* it should have ended long ago */
	rig_event(&rig, 50, news);
	assert_true(sw_job_remaining(view, rig_job(&rig, id)) >= 0);
	/* From before the beginning of time to after its end. */
	news.left_ns = SW_TIME_NEVER;
	news.as_of = INT64_MIN;
	news.ends_at = SW_TIME_NEVER;
	rig_event(&rig, 50, news);
	assert_true(sw_job_remaining(view, rig_job(&rig, id)) >= 0);
	rig_tick(&rig, 60);
	assert_true(sw_job_remaining(view, rig_job(&rig, id)) >= 0);
	rig_close(&rig);
}

/* Aim: nothing is learned about a job whose duration is unknown. */
static void test_unknown_duration(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.knowledge = SW_UNKNOWN;
	uint32_t id = rig_submit(&rig, 0, &spec);
	rig_tick(&rig, 5);
	assert_int_equal(sw_job_remaining(sw_engine_view(rig.engine), rig_job(&rig, id)), SW_TIME_NEVER);
	assert_int_equal(ran_of(&rig, id), 5 * SW_NS_PER_S);
	rig_close(&rig);
}

/* ---- failure ---- */

/* Fails until it is not tried again. */
static void fail_with_retries(uint32_t retries)
{
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){.terms.keeps_state = true});
	struct sw_job_spec spec = rig_spec(2, 100);
	spec.retries = retries;
	uint32_t id = rig_submit(&rig, 0, &spec);
	for (uint32_t attempt = 1; attempt <= retries; attempt++) {
		struct sw_event failure = rig_answer(&rig, SW_EV_FAIL, id);
		failure.left_ns = 90 * SW_NS_PER_S;
		rig_event(&rig, 20 * attempt, failure);
		const struct sw_command *start = rig_command(&rig, SW_CMD_START, id);
		assert_non_null(start);
		assert_int_equal(start->epoch, attempt + 1);
		assert_false(start->resume); /* what failed is not resumed, also where state is kept */
		assert_int_equal(rig_job(&rig, id)->restarts, attempt);
		assert_int_equal(rig_job(&rig, id)->retries_left, retries - attempt);
		assert_int_equal(sw_job_remaining(sw_engine_view(rig.engine), rig_job(&rig, id)), 90 * SW_NS_PER_S);
	}
	rig_event(&rig, 90, rig_answer(&rig, SW_EV_FAIL, id));
	assert_int_equal(rig_state(&rig, id), SW_JOB_FAILED);
	assert_int_equal(rig_job(&rig, id)->preemptions, 0);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 4);
	rig_close(&rig);
}

/* Aim: a run that fails is tried again while there are retries, with the work that was lost;
 * then the job has failed. */
static void test_fail_with_retries(void **state)
{
	(void)state;
	for (uint32_t retries = 0; retries <= 3; retries++)
		fail_with_retries(retries);
}

/* ---- cancel, hold, release ---- */

/* Aim: a job can be cancelled in any state; only a running one needs a command, and one that
 * has ended stays as it is. */
static void test_cancel(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms.keeps_state = true});
	struct sw_job_spec held = rig_spec(1, 100);
	held.held = true;
	rig_submit_plain(&rig, 0, 1, 100); /* runs */
	rig_submit_plain(&rig, 0, 1, 100); /* ends */
	run_script(&rig, 0, start_all);
	rig_finish(&rig, 1, 1);
	rig_submit_plain(&rig, 1, 1, 100); /* waits */
	rig_submit(&rig, 1, &held);
	for (uint32_t id = 0; id < 4; id++) {
		rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_CANCEL, .job = {id}});
		assert_int_equal(rig_commands(&rig), id == 0);
		assert_int_equal(rig_state(&rig, id), id == 1 ? SW_JOB_FINISHED : SW_JOB_CANCELLED);
		if (id == 0) {
			assert_int_equal(rig.step.commands[0].kind, SW_CMD_KILL);
			assert_int_equal(rig.step.commands[0].reason, SW_REASON_CANCELLED);
			assert_int_equal(rig.step.commands[0].epoch, 1);
		}
	}
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_CANCEL, .job = {0}}); /* twice */
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_CANCEL, .job = {77}});
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 4);
	/* The answer of the killed run comes late. */
	rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_FINISH, .job = {0}, .epoch = 1});
	assert_int_equal(rig_state(&rig, 0), SW_JOB_CANCELLED);
	rig_close(&rig);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: events that are heard one by one and decided on at the end come to what they would together:
 * none starts in between. */
static void test_heard_one_by_one(void **state)
{
	(void)state;
	struct rig together, apart;
	const struct sw_event events[] = {
		{.kind = SW_EV_CANCEL, .job = {0}}, {.kind = SW_EV_HOLD, .job = {1}}, {.kind = SW_EV_CANCEL, .job = {2}}};
	struct rig *both[] = {&together, &apart};
	for (size_t i = 0; i < 2; i++) {
		open_fifo(both[i], (struct sw_engine_config){0});
		for (int job = 0; job < 5; job++) /* two run at a time */
			rig_submit_plain(both[i], 0, 2, 100);
	}
	rig_step(&together, 1, events, RIG_COUNT(events));
	for (size_t e = 0; e < RIG_COUNT(events); e++) {
		struct sw_err err = {0};
		rig_must(sw_engine_hear(apart.engine, SW_NS_PER_S, &events[e], 1, &apart.step, &err), &err);
		rig_must(sw_engine_validate(apart.engine, &err), &err);
		assert_int_equal(rig_commands(&apart), e < 2); /* the stop of what ran, and no start */
		assert_int_equal(apart.step.wake_at, 0);
	}
	rig_tick(&apart, 1);
	assert_true(rig_runs(&apart, 3) && rig_runs(&apart, 4));
	assert_int_equal(sw_engine_command_hash(apart.engine), sw_engine_command_hash(together.engine));
	rig_close(&together);
	rig_close(&apart);
}

/* Aim: a suspended job can be cancelled too. */
static void test_cancel_suspended(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms.keeps_state = true});
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, preempt_first);
	assert_int_equal(rig_state(&rig, 0), SW_JOB_SUSPENDED);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_CANCEL, .job = {0}});
	assert_int_equal(rig_state(&rig, 0), SW_JOB_CANCELLED);
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(sw_view_waiting(sw_engine_view(rig.engine)), 0);
	rig_close(&rig);
}

/* Aim: a held job stops, does not compete, and goes on where it was once it is released. */
static void test_hold_and_release(void **state)
{
	(void)state;
	for (int keeps_state = 0; keeps_state < 2; keeps_state++) {
		struct rig rig;
		open_fifo(&rig, (struct sw_engine_config){.terms.keeps_state = keeps_state});
		uint32_t id = rig_submit_plain(&rig, 0, 4, 100), next = rig_submit_plain(&rig, 0, 4, 100);
		rig_event(&rig, 10, (struct sw_event){.kind = SW_EV_HOLD, .job = {id}});
		const struct sw_command *stop = rig_command(&rig, SW_CMD_STOP, id);
		assert_non_null(stop);
		assert_int_equal(stop->reason, SW_REASON_HELD);
		assert_int_equal(rig_state(&rig, id), SW_JOB_HELD);
		assert_true(rig_runs(&rig, next));
		rig_event(&rig, 11, (struct sw_event){.kind = SW_EV_HOLD, .job = {id}}); /* twice is once */
		assert_int_equal(rig_commands(&rig), 0);
		rig_finish(&rig, 20, next);
		assert_int_equal(rig_state(&rig, id), SW_JOB_HELD);
		rig_event(&rig, 30, (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}});
		const struct sw_command *start = rig_command(&rig, SW_CMD_START, id);
		assert_non_null(start);
		assert_int_equal(start->resume, keeps_state);
		assert_int_equal(ran_of(&rig, id), 10 * SW_NS_PER_S);
		rig_event(&rig, 31, (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}}); /* it is free already */
		assert_true(rig_runs(&rig, id));
		rig_close(&rig);
	}
}

/* Aim: a job can be held from the start. */
static void test_held_from_the_start(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(1, 10);
	spec.held = true;
	uint32_t id = rig_submit(&rig, 0, &spec), other = rig_submit_plain(&rig, 0, 1, 10);
	assert_int_equal(rig_state(&rig, id), SW_JOB_HELD);
	assert_true(rig_runs(&rig, other));
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}});
	assert_true(rig_runs(&rig, id));
	rig_close(&rig);
}

/* ---- nodes ---- */

/* Aim: when a node goes down its jobs stop and start elsewhere or wait, at no cost to their
 * retries; when it is back they run again. */
static void test_node_down_and_up(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){.terms.keeps_state = true});
	uint32_t one = rig_submit_plain(&rig, 0, 1, 100), two = rig_submit_plain(&rig, 0, 2, 100);
	assert_string_equal(rig_place(&rig, one), "0:1");
	assert_string_equal(rig_place(&rig, two), "1:3");
	rig_event(&rig, 10, rig_node_event(SW_EV_NODE_DOWN, 1));
	const struct sw_command *stop = rig_command(&rig, SW_CMD_STOP, two);
	assert_non_null(stop);
	assert_int_equal(stop->reason, SW_REASON_NODE_LOST);
	assert_int_equal(rig_state(&rig, two), SW_JOB_WAITING); /* its state went with the node */
	assert_int_equal(rig_job(&rig, two)->preemptions, 0);
	assert_int_equal(rig_job(&rig, two)->restarts, 1);
	assert_true(rig_runs(&rig, one));
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 2);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 1);
	rig_event(&rig, 11, rig_node_event(SW_EV_NODE_DOWN, 1)); /* still down */
	rig_event(&rig, 11, rig_node_event(SW_EV_NODE_DOWN, 9));
	rig_event(&rig, 11, rig_node_event(SW_EV_NODE_UP, UINT32_MAX));
	rig_event(&rig, 11, rig_node_event(SW_EV_NODE_UP, 0)); /* was never down */
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 2);
	rig_event(&rig, 12, rig_node_event(SW_EV_NODE_UP, 1));
	const struct sw_command *start = rig_command(&rig, SW_CMD_START, two);
	assert_non_null(start);
	assert_int_equal(start->epoch, 2);
	assert_string_equal(rig_place(&rig, two), "1:3");
	rig_close(&rig);
}

/* Aim: a job over several nodes stops when any of them goes down, and all of
 * its GPUs are free again. */
static void test_node_down_under_a_wide_job(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	uint32_t wide = rig_submit_plain(&rig, 0, 3, 100), small = rig_submit_plain(&rig, 0, 1, 100);
	assert_string_equal(rig_place(&rig, wide), "0:3 1:1");
	rig_event(&rig, 5, rig_node_event(SW_EV_NODE_DOWN, 0));
	assert_int_equal(rig_state(&rig, wide), SW_JOB_WAITING);
	assert_true(rig_runs(&rig, small));
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 1);
	rig_close(&rig);
}

/* Aim: what goes down and comes back in one step has still lost its jobs. */
static void test_node_blinks(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	uint32_t id = rig_submit_plain(&rig, 0, 4, 100);
	const struct sw_event blink[] = {rig_node_event(SW_EV_NODE_DOWN, 0), rig_node_event(SW_EV_NODE_UP, 0)};
	rig_step(&rig, 5, blink, 2);
	assert_int_equal(rig_commands(&rig), 2);
	assert_int_equal(rig.step.commands[0].kind, SW_CMD_STOP);
	assert_int_equal(rig.step.commands[1].kind, SW_CMD_START);
	assert_int_equal(rig.step.commands[1].job, id);
	assert_int_equal(rig.step.commands[1].epoch, 2);
	rig_close(&rig);
}

/* Aim: a node that joins is used at once, and jobs may be as large as the grown cluster. */
static void test_node_joins(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 4, 100);
	uint32_t waits = rig_submit_plain(&rig, 0, 2, 100);
	const struct sw_topology_node shape = RIG_NODE(1, 4);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_NODE_ADD, .shape = &shape});
	assert_string_equal(rig_place(&rig, waits), "2:3");
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 8);
	assert_int_equal(sw_view_racks(sw_engine_view(rig.engine)), 2);
	uint32_t large = rig_submit_plain(&rig, 2, 8, 100);
	assert_int_equal(rig_state(&rig, large), SW_JOB_WAITING);
	/* The shape that the engine was made with is the caller's and has not changed. */
	assert_int_equal(rig.topology->node_count, 2);
	rig_close(&rig);
}

/* ---- refusals ---- */

static enum sw_reason refused_for(struct rig *rig, const struct sw_job_spec *spec)
{
	uint32_t id = rig_submit(rig, 0, spec);
	const struct sw_command *refusal = rig_command(rig, SW_CMD_REFUSE, id);
	if (refusal == NULL)
		return SW_REASON_NONE;
	assert_int_equal(rig_state(rig, id), SW_JOB_REFUSED);
	assert_int_equal(rig_commands(rig), 1);
	return (enum sw_reason)refusal->reason;
}

/* Aim: a job that makes no sense or could never run is refused at once, with the reason. */
static void test_refusals(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &sw_policy_fifo, .placement = &sw_placement_yarn}, NULL);
	struct sw_job_spec good = rig_spec(1, 10), spec = good;
	spec.gpus = spec.min_gpus = spec.max_gpus = 0;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_BAD_SPEC);
	spec = good, spec.min_gpus = 0;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_BAD_SPEC);
	spec = good, spec.min_gpus = 2;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_BAD_SPEC);
	spec = good, spec.gpus = 2;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_BAD_SPEC);
	spec = good, spec.work_ns = -1;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_BAD_SPEC);
	spec = good, spec.compute_milli = 1001;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_BAD_SPEC);
	spec = good, spec.tenant = 1000000;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_BAD_SPEC);
	spec = rig_spec(5, 10);
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_TOO_LARGE);
	spec = good, spec.cpus = 129;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_NO_SUCH_PLACE);
	spec = good, spec.gpu_memory_bytes = 81 * RIG_GIB;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_NO_SUCH_PLACE);
	assert_int_equal(refused_for(&rig, &good), SW_REASON_NONE);
	rig_close(&rig);
}

/* Aim: also under a policy that takes placement as a wish, a job that no GPU is large
 * enough for is refused. */
static void test_refusal_under_a_wish(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &sw_policy_las, .placement = &sw_placement_yarn}, NULL);
	struct sw_job_spec spec = rig_spec(1, 10);
	spec.gpu_memory_bytes = 81 * RIG_GIB;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_NO_SUCH_PLACE);
	/* A wish is not a condition: these CPUs are nowhere, and the job runs. */
	spec = rig_spec(1, 10);
	spec.cpus = 129;
	assert_int_equal(refused_for(&rig, &spec), SW_REASON_NONE);
	rig_close(&rig);
}

/* ---- time and errors ---- */

/* Aim: time never goes back: an event from the past happens now. */
static void test_time_never_goes_back(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 100, 1, 10);
	rig_step(&rig, 50, NULL, 0);
	assert_int_equal(sw_view_now(sw_engine_view(rig.engine)), 100 * SW_NS_PER_S);
	uint32_t late = rig_submit_plain(&rig, -5, 1, 10);
	assert_int_equal(rig_job(&rig, late)->submit_at, 100 * SW_NS_PER_S);
	assert_int_equal(rig_job(&rig, late)->first_start_at, 100 * SW_NS_PER_S);
	rig_close(&rig);
}

/* Aim: a step that cannot be made changes nothing, whichever of its events is the wrong one. */
static void test_an_error_changes_nothing(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	uint32_t runs = rig_submit_plain(&rig, 0, 1, 10);
	uint64_t hash = sw_engine_log_hash(rig.engine);
	const struct sw_job_spec spec = rig_spec(1, 10);
	const struct sw_topology_node nowhere = RIG_NODE(7, 4);
	const struct sw_event unknown[] = {
		rig_answer(&rig, SW_EV_FINISH, runs), {.kind = SW_EV_SUBMIT, .spec = &spec}, {.kind = (enum sw_event_kind)99}};
	const struct sw_event misplaced[] = {
		rig_answer(&rig, SW_EV_FINISH, runs), {.kind = SW_EV_SUBMIT, .spec = &spec}, {.kind = SW_EV_NODE_ADD, .shape = &nowhere}};
	for (int i = 0; i < 2; i++) {
		struct sw_step step;
		struct sw_err err = {0};
		assert_true(sw_engine_step(rig.engine, 5 * SW_NS_PER_S, i == 0 ? unknown : misplaced, 3, &step, &err) < 0);
		assert_string_not_equal(err.fact, "");
		assert_int_equal(sw_engine_validate(rig.engine, &err), 0);
		assert_int_equal(sw_engine_job_count(rig.engine), 1);
		assert_true(rig_runs(&rig, runs));
		assert_int_equal(sw_engine_log_hash(rig.engine), hash);
		assert_int_equal(sw_view_now(sw_engine_view(rig.engine)), 0);
	}
	rig_finish(&rig, 6, runs);
	rig_close(&rig);
}

/* Aim: the same events give the same fingerprint, and others another. */
static void test_fingerprint(void **state)
{
	(void)state;
	uint64_t hashes[3];
	for (int i = 0; i < 3; i++) {
		struct rig rig;
		open_fifo(&rig, (struct sw_engine_config){0});
		rig_submit_plain(&rig, 0, 1, 10);
		rig_submit_plain(&rig, 3, i < 2 ? 2 : 3, 10);
		rig_finish(&rig, 7, 0);
		hashes[i] = sw_engine_log_hash(rig.engine);
		rig_close(&rig);
	}
	assert_int_equal(hashes[0], hashes[1]);
	assert_int_not_equal(hashes[0], hashes[2]);
}

/* ---- quota ---- */

/* Aim: a quota that falls below what a tenant holds stops none and starts none; once it is
 * lifted the jobs go on. */
static void test_quota_lowered_and_lifted(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.tenant = 2;
	for (int j = 0; j < 3; j++)
		rig_submit(&rig, 0, &spec);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 2, .gpus = 1});
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 1) && rig_runs(&rig, 2));
	uint32_t more = rig_submit(&rig, 2, &spec);
	assert_int_equal(rig_state(&rig, more), SW_JOB_WAITING);
	rig_finish(&rig, 3, 0);
	rig_finish(&rig, 4, 1);
	assert_int_equal(rig_state(&rig, more), SW_JOB_WAITING);
	rig_finish(&rig, 5, 2);
	assert_true(rig_runs(&rig, more));
	uint32_t last = rig_submit(&rig, 6, &spec);
	assert_int_equal(rig_state(&rig, last), SW_JOB_WAITING);
	rig_event(&rig, 7, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 2, .gpus = UINT32_MAX});
	assert_true(rig_runs(&rig, last));
	rig_event(&rig, 8, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = UINT32_MAX, .gpus = 1}); /* no such tenant */
	rig_close(&rig);
}

/* ---- why ---- */

static void expect_why(struct rig *rig, uint32_t id, const char *words)
{
	char text[256];
	sw_engine_explain(rig->engine, (struct sw_job_id){id}, text, sizeof text);
	if (strstr(text, words) == NULL)
		fail_msg("job %u: '%s' does not say '%s'", id, text, words);
}

/* Aim: every job can say in one sentence why it waits, or that it does not. */
static void test_explain(void **state)
{
	(void)state;
	struct rig rig;
	open_fifo(&rig, (struct sw_engine_config){0});
	struct sw_job_spec spec = rig_spec(1, 10);
	rig_submit_plain(&rig, 0, 3, 10);
	expect_why(&rig, 0, "does not wait");
	expect_why(&rig, 1, "no job 1");
	rig_submit_plain(&rig, 0, 2, 10);
	expect_why(&rig, 1, "needs 2 GPUs and 1 is free");
	rig_submit_plain(&rig, 0, 1, 10);
	expect_why(&rig, 2, "others are ahead");
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = 0});
	spec.tenant = 1;
	rig_submit(&rig, 0, &spec);
	expect_why(&rig, 3, "quota of 0 GPUs");
	spec = rig_spec(1, 10);
	spec.held = true;
	rig_submit(&rig, 0, &spec);
	expect_why(&rig, 4, "held");
	rig_submit_plain(&rig, 0, 4, 10);
	rig_event(&rig, 1, rig_node_event(SW_EV_NODE_DOWN, 1));
	expect_why(&rig, 5, "only 2 are up");
	char tiny[4] = "abc";
	sw_engine_explain(rig.engine, (struct sw_job_id){5}, tiny, sizeof tiny);
	assert_int_equal(tiny[3], '\0');
	sw_engine_explain(rig.engine, (struct sw_job_id){5}, tiny, 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_by_epoch),
		cmocka_unit_test(test_answers_about_waiting_jobs),
		cmocka_unit_test(test_speed),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_unknown_duration),
		cmocka_unit_test(test_fail_with_retries),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_heard_one_by_one),
		cmocka_unit_test(test_cancel_suspended),
		cmocka_unit_test(test_hold_and_release),
		cmocka_unit_test(test_held_from_the_start),
		cmocka_unit_test(test_node_down_and_up),
		cmocka_unit_test(test_node_down_under_a_wide_job),
		cmocka_unit_test(test_node_blinks),
		cmocka_unit_test(test_node_joins),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_refusal_under_a_wish),
		cmocka_unit_test(test_time_never_goes_back),
		cmocka_unit_test(test_an_error_changes_nothing),
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_quota_lowered_and_lifted),
		cmocka_unit_test(test_explain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
