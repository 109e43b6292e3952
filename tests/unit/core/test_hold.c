/* Holds: GPUs that are kept for a job that waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripted.h"

#define S SW_NS_PER_S

static uint32_t over_count; /* of `expired`, for jobs that wait */
static uint32_t changes;

static void on_expired(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	over_count += sw_job_is_waiting(job);
}

static sw_ns holding_decide(struct sw_plan *plan)
{
	changes = sw_view_changes(sw_plan_view(plan));
	return scripted_decide(plan);
}

static const struct sw_policy holding = {
	.abi = SW_POLICY_ABI, .name = "holding", .about = "holds", .expired = on_expired, .decide = holding_decide};

static void open_with(struct rig *rig, struct sw_engine_config config)
{
	over_count = 0;
	script = NULL;
	if (config.policy == NULL)
		config.policy = &holding;
	rig_open(rig, two_by_two, 2, config, NULL);
}

/* Two nodes of two GPUs, and three jobs that wait: of two GPUs, of one and of one. */
static void open_three(struct rig *rig)
{
	open_with(rig, (struct sw_engine_config){.terms = {.keeps_state = true}});
	rig_submit_plain(rig, 0, 2, 500);
	rig_submit_plain(rig, 0, 1, 500);
	rig_submit_plain(rig, 0, 1, 500);
}

static const struct sw_node_id second = {1};

/* ---- from now on */

static void hold_second_node(struct sw_plan *plan)
{
	const struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job = job_of(plan, 0);
	struct sw_hold hold;
	struct sw_node node;
	assert_false(sw_job_hold(view, job, &hold));
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.where = sw_on(second)), 0, 20 * S), SW_YES);
	assert_true(sw_job_hold(view, job, &hold));
	assert_int_equal(hold.from, sw_view_now(view));
	assert_int_equal(hold.to, 20 * S);
	assert_int_equal(hold.gpus, 2);
	assert_int_equal(sw_view_gpus_free(view), 2);
	assert_int_equal(sw_view_gpus_free_for(view, job), 4);
	assert_int_equal(sw_view_gpus_free_for(view, job_of(plan, 1)), 2);
	assert_int_equal(sw_gpu_memory_free(view, second, 0), 0);
	sw_view_node(view, second, &node);
	assert_int_equal(node.gpus_free, 0);
}

static void others_keep_off(struct sw_plan *plan)
{
	const struct sw_gpus there = {second, 1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_at(&there, 1))), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second)), 0, 5 * S), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), NULL), SW_YES);
}

/* Aim: what is held is free to its job alone, which starts there though other GPUs come first, and
 * its start ends the hold. */
static void test_held_from_now_on(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, hold_second_node);
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(rig.step.wake_at, 20 * S);
	run_script(&rig, 2, others_keep_off);
	assert_string_equal(rig_place(&rig, 1), "0:1");
	assert_string_equal(rig_place(&rig, 2), "0:2");
	rig_finish(&rig, 3, 1);
	rig_finish(&rig, 3, 2);
	run_script(&rig, 4, start_first);
	assert_string_equal(rig_place(&rig, 0), "1:3");
	assert_false(sw_job_hold(sw_engine_view(rig.engine), rig_job(&rig, 0), NULL));
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	rig_tick(&rig, 30);
	assert_int_equal(over_count, 0);
	rig_close(&rig);
}

static void nothing(struct sw_plan *plan)
{
	(void)plan;
}

/* Aim: a hold ends at its moment, the policy hears of it, and others may have the GPUs. */
static void test_time_out(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, hold_second_node);
	run_script(&rig, 19, nothing);
	assert_int_equal(over_count, 0);
	assert_int_equal(changes & (SW_CHANGE_HOLDS | SW_CHANGE_CAPACITY), 0);
	run_script(&rig, 20, start_all);
	assert_int_equal(over_count, 1);
	assert_int_equal(changes & (SW_CHANGE_HOLDS | SW_CHANGE_CAPACITY), SW_CHANGE_HOLDS | SW_CHANGE_CAPACITY);
	assert_string_equal(rig_place(&rig, 0), "0:3");
	assert_string_equal(rig_place(&rig, 1), "1:1");
	rig_close(&rig);
}

static void start_small_ones(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_on(second))), SW_YES);
}

static void hold_three(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 3), NULL, 0, 100 * S), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 3), SW_WISH(.gpus = 1), 0, 100 * S), SW_YES);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 3), SW_WISH(.gpus = 2), 0, 100 * S), SW_YES);
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 0);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), NULL), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_NO_ROOM);
}

static void start_gang(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), NULL), SW_YES);
}

/* Aim: a gang that is not complete holds what there is, more with each hold, and starts on that and
 * on what comes free, ahead of those that would fit there. */
static void test_partial_gang(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, start_small_ones);
	rig_submit_plain(&rig, 2, 3, 500);
	run_script(&rig, 3, hold_three);
	rig_finish(&rig, 4, 1);
	run_script(&rig, 5, start_gang);
	assert_string_equal(rig_place(&rig, 3), "0:3 1:2");
	rig_close(&rig);
}

static void release(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), NULL, 0, 0), SW_YES);
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 4);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), NULL, 0, 0), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second))), SW_YES);
}

/* Aim: what is released is free at once, and the policy hears nothing of what it did itself. */
static void test_release(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, hold_second_node);
	run_script(&rig, 2, release);
	assert_int_equal(over_count, 0);
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	assert_true(rig_runs(&rig, 1));
	rig_close(&rig);
}

static void stop_and_hold(struct sw_plan *plan)
{
	const struct sw_gpus gone = {{0}, 1};
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_at(&gone, 1)), 0, 20 * S), SW_YES);
	/* Where it was is taken; it goes on elsewhere. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

static void start_one(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

/* Aim: what a stop of the same decision has freed can be held, and its run does not come back to
 * it. */
static void test_hold_after_a_stop(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, start_one);
	assert_string_equal(rig_place(&rig, 1), "0:1");
	run_script(&rig, 2, stop_and_hold);
	assert_string_equal(rig_place(&rig, 1), "0:2");
	rig_close(&rig);
}

/* ---- from a moment to come */

static void hold_later(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second)), 50 * S, 60 * S), SW_YES);
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 4);
	assert_int_equal(sw_view_gpus_free_for(sw_plan_view(plan), job_of(plan, 1)), 2);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second), .until = 51 * S)), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second), .until = 50 * S)), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.until = 55 * S)), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.until = 45 * S)), SW_YES);
}

static void none_comes(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_on(second), .until = 51 * S)), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_beside(job_of(plan, 1)))), SW_MISUSE);
}

/* Aim: until a hold begins others run there with a lease that ends by then, and none without; then
 * no job comes, and what still runs there makes way for the start. */
static void test_held_from_later_on(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, hold_later);
	assert_int_equal(rig.step.wake_at, 45 * S);
	assert_string_equal(rig_place(&rig, 1), "1:1");
	run_script(&rig, 45, nothing);
	assert_int_equal(rig.step.wake_at, 50 * S);
	run_script(&rig, 50, none_comes);
	assert_true((changes & SW_CHANGE_HOLDS) != 0);
	assert_true(rig_runs(&rig, 1));
	assert_int_equal(rig.step.wake_at, 60 * S);
	run_script(&rig, 51, start_first);
	assert_string_equal(rig_place(&rig, 0), "1:3");
	assert_false(rig_runs(&rig, 1));
	rig_close(&rig);
}

static void hold_where_it_runs(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second)), 0, 60 * S), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second)), 29 * S, 60 * S), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second)), 30 * S, 60 * S), SW_YES);
}

static void run_on_second_until_30(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second), .until = 30 * S)), SW_YES);
}

static void renew_for_ever(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.until = 31 * S)), SW_NO_ROOM);
}

/* Aim: GPUs on which a run is can be held from the end of its lease on, not earlier; and then the
 * lease is not renewed beyond. */
static void test_leased_runs_leave(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, run_on_second_until_30);
	run_script(&rig, 2, hold_where_it_runs);
	run_script(&rig, 3, renew_for_ever);
	rig_close(&rig);
}

static void hold_that_of_a_kept_run(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second)), 30 * S, 60 * S), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on((struct sw_node_id){0})), 30 * S, 60 * S), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_on((struct sw_node_id){0}), .until = 20 * S)), SW_NO_ROOM);
}

/* Aim: a lease says nothing of a job that may not be stopped: what it runs on cannot be held, and
 * it does not start on what is. */
static void test_runs_that_stay(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec stays = rig_spec(1, 500);
	stays.stop_rule = SW_STOP_NEVER;
	open_with(&rig, (struct sw_engine_config){.terms = {.keeps_state = true}});
	rig_submit_plain(&rig, 0, 2, 500);
	rig_submit(&rig, 0, &stays);
	rig_submit(&rig, 0, &stays);
	run_script(&rig, 1, run_on_second_until_30);
	run_script(&rig, 2, hold_that_of_a_kept_run);
	rig_close(&rig);
}

static void hold_in_turn(struct sw_plan *plan)
{
	const struct sw_wish there = {.where = sw_on(second), .gpus = 1};
	const struct sw_gpus first_gpu = {second, 1};
	const struct sw_wish exact = {.where = sw_at(&first_gpu, 1)};
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second)), 20 * S, 30 * S), SW_YES);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 1), &there, 29 * S, 40 * S), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 1), &there, 10 * S, 21 * S), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 1), &exact, 30 * S, 40 * S), SW_YES);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 2), &exact, 0, 20 * S), SW_YES);
}

static void start_in_turn(struct sw_plan *plan)
{
	const struct sw_view *view = sw_plan_view(plan);
	/* Too long for its own GPU, so elsewhere. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_on(second), .until = 21 * S)), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.until = 20 * S)), SW_YES);
	assert_int_equal(sw_job_node(view, job_of(plan, 2), 0, NULL).v, second.v);
}

/* Aim: holds of one GPU follow each other and do not overlap; the start of a job on what is held
 * for it leaves in time for the next. */
static void test_one_after_the_other(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, hold_in_turn);
	assert_int_equal(rig.step.wake_at, 20 * S);
	run_script(&rig, 2, start_in_turn);
	rig_tick(&rig, 20);
	rig_tick(&rig, 30);
	assert_int_equal(over_count, 1);
	rig_tick(&rig, 40);
	assert_int_equal(over_count, 2);
	rig_close(&rig);
}

/* ---- how they end */

static bool is_held(const struct rig *rig)
{
	return sw_job_hold(sw_engine_view(rig->engine), rig_job(rig, 0), NULL);
}

/* Aim: the loss, the closing or a change of what is held ends the hold, and the job waits on and is
 * heard of; so does a change of the job. */
static void test_losses(void **state)
{
	(void)state;
	struct sw_topology_change change = {.shape = RIG_NODE(0, 2)};
	memset(change.to, SW_GPU_GONE, sizeof change.to);
	change.to[0] = 0;
	change.to[1] = 1;
	const struct sw_event events[] = {
		rig_node_event(SW_EV_NODE_DOWN, 1),
		rig_node_event(SW_EV_NODE_CLOSE, 1),
		{.kind = SW_EV_GPUS_SHUT, .node = {1}, .mask = 2},
		{.kind = SW_EV_NODE_CHANGE, .node = {1}, .change = &change},
		{.kind = SW_EV_CHANGE, .job = {0}, .gpu_memory_bytes = RIG_GIB, .avoid = UINT32_MAX},
	};
	static void (*const scripts[])(struct sw_plan *) = {hold_second_node, hold_later};
	for (size_t e = 0; e < RIG_COUNT(events); e++) {
		for (size_t s = 0; s < RIG_COUNT(scripts); s++) {
			struct rig rig;
			open_three(&rig);
			run_script(&rig, 1, scripts[s]);
			assert_true(is_held(&rig));
			/* Not its affair. */
			rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = 1});
			assert_true(is_held(&rig));
			rig_event(&rig, 3, events[e]);
			assert_false(is_held(&rig));
			assert_int_equal(over_count, 1);
			assert_true((changes & SW_CHANGE_HOLDS) != 0);
			rig_close(&rig);
		}
	}
}

/* Aim: nothing is held for a job that is cancelled or held back, and the policy is not called for
 * it. */
static void test_job_is_gone(void **state)
{
	(void)state;
	const enum sw_event_kind kinds[] = {SW_EV_CANCEL, SW_EV_HOLD, SW_EV_HOLD_NEXT};
	for (size_t k = 0; k < RIG_COUNT(kinds); k++) {
		struct rig rig;
		open_three(&rig);
		run_script(&rig, 1, hold_second_node);
		rig_event(&rig, 2, (struct sw_event){.kind = kinds[k], .job = {0}});
		assert_false(is_held(&rig));
		assert_int_equal(over_count, 0);
		run_script(&rig, 3, run_on_second_until_30);
		rig_close(&rig);
	}
}

/* Aim: what the operator has shut stays shut when a hold ends, and the other way round. */
static void test_shut_and_held(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, hold_second_node);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = 3});
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 0);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = 0});
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 2);
	rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {1}, .mask = 1});
	assert_false(is_held(&rig));
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 3);
	rig_close(&rig);
}

static void hold_beside(struct sw_plan *plan)
{
	const struct sw_gpus other = {{0}, 2};
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_at(&other, 1)), 9 * S, 20 * S), SW_YES);
}

/* Aim: a person does not move a run to GPUs that are held, or will be before the run has left, and
 * is told why; once they are not held it goes. */
static void test_moves_by_hand(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, start_one);
	rig_event(&rig, 2, rig_answer(&rig, SW_EV_BEGUN, 1));
	run_script(&rig, 3, hold_beside);
	struct sw_event move = rig_answer(&rig, SW_EV_MOVE, 1);
	move.mask = 2;
	for (int64_t at = 4; at < 20; at += 8) { /* before it begins, and while it is in force */
		const char *obstacle = sw_engine_move_obstacle(rig.engine, (struct sw_job_id){1}, (struct sw_gpus){SW_NO_NODE, 2});
		assert_string_equal(obstacle, "one of these GPUs is held for another job");
		rig_event(&rig, at, move);
		assert_string_equal(rig_place(&rig, 1), "0:1");
	}
	rig_event(&rig, 21, move);
	assert_string_equal(rig_place(&rig, 1), "0:2");
	rig_close(&rig);
}

/* ---- predictions */

static void hold_from_ten(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second)), 10 * S, 20 * S), SW_YES);
}

/* Whether a start of the job there is foretold to find room. */
static bool is_foretold(struct sw_plan *plan, uint32_t job, struct sw_wish wish)
{
	struct sw_run_forecast found;
	assert_true(sw_predict_run(sw_plan_view(plan), job_of(plan, job), &wish, &found));
	return found.fits;
}

static void foretell(struct sw_plan *plan)
{
	assert_false(is_foretold(plan, 1, (struct sw_wish){.where = sw_on(second)}));
	assert_true(is_foretold(plan, 1, (struct sw_wish){.where = sw_on(second), .until = 9 * S}));
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on(second), .until = 9 * S)), SW_YES);
	assert_false(is_foretold(plan, 1, (struct sw_wish){.until = 11 * S}));
}

static void foretell_own(struct sw_plan *plan)
{
	assert_true(is_foretold(plan, 0, (struct sw_wish){.where = sw_on(second)}));
	assert_true(is_foretold(plan, 0, (struct sw_wish){0}));
	assert_false(is_foretold(plan, 2, (struct sw_wish){.where = sw_on(second)}));
}

/* Aim: predictions know what is held: it is room for its own job alone, now and from a moment to
 * come. */
static void test_predictions(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, hold_from_ten);
	run_script(&rig, 2, foretell);
	rig_finish(&rig, 8, 1);
	run_script(&rig, 12, foretell_own);
	rig_close(&rig);
}

/* ---- misuse */

static void misuse(struct sw_plan *plan)
{
	const struct sw_job *job = job_of(plan, 0);
	const struct sw_gpus none = {{0}, 0}, unknown = {{9}, 1}, twice[] = {{{0}, 1}, {{0}, 2}}, three[] = {{{0}, 3}, {{1}, 1}};
	assert_int_equal(sw_plan_hold(plan, NULL, NULL, 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, &made_up, NULL, 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, NULL, 0, 1 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, NULL, 0, -1), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, NULL, 9 * S, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, NULL, INT64_MAX, INT64_MAX), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.gpus = 3), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.as = SW_AS_OPPORTUNISTIC), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.promise = SW_REST), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.until = 20 * S), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.config.cpus = 2), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.where = sw_beside(job_of(plan, 1))), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.where = sw_on((struct sw_node_id){9})), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.where = sw_at(&none, 1)), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.where = sw_at(&unknown, 1)), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.where = sw_at(twice, 2)), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, SW_WISH(.where = sw_at(three, 2)), 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 1), NULL, 0, 9 * S), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 1), NULL, 0, 0), SW_MISUSE);
	assert_int_equal(sw_plan_hold(plan, job, NULL, INT64_MIN, INT64_MAX), SW_YES);
}

/* Aim: what makes no sense is misuse and changes nothing; the widest interval is none. */
static void test_misuse(void **state)
{
	(void)state;
	struct rig rig;
	open_three(&rig);
	run_script(&rig, 1, misuse);
	assert_true(is_held(&rig));
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	rig_close(&rig);
}

static void hold_for_all(struct sw_plan *plan)
{
	const struct sw_view *view = sw_plan_view(plan);
	uint32_t held = 0, refused = 0;
	sw_ns from = 10 * S;
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL; job = sw_view_next_waiting(view, job), from += S) {
		enum sw_answer answer = sw_plan_hold(plan, job, SW_WISH(.gpus = 1), from, from + S);
		held += answer == SW_YES;
		refused += answer == SW_NO_ROOM;
	}
	assert_int_equal(held, 4);
	assert_int_equal(refused, sw_view_waiting(view) - 4);
}

/* Aim: one decision adds no more holds than memory was reserved for, and the next adds more. */
static void test_bounded(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, (struct sw_engine_config){.terms = {.keeps_state = true}});
	for (int i = 0; i < 9; i++)
		rig_submit_plain(&rig, 0, 1, 500);
	run_script(&rig, 1, hold_for_all);
	assert_int_equal(rig.step.wake_at, 10 * S);
	rig_close(&rig);
}

/* ---- orders */

static int64_t by_number(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->id.v;
}

static sw_ns ordering_decide(struct sw_plan *plan)
{
	(void)scripted_decide(plan);
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

static const struct sw_order plain = {0}, blocking = {.head_blocks = true}, preemptive = {.preemptive = true};
#define ORDERING(name_)                                                                                                                \
	{                                                                                                                              \
		.abi = SW_POLICY_ABI, .name = #name_, .about = "an order", .order = &(name_), .key = by_number, .expired = on_expired, \
		.decide = ordering_decide                                                                                              \
	}
static const struct sw_policy in_order = ORDERING(plain), with_head = ORDERING(blocking), preempting = ORDERING(preemptive);

static void hold_for_last(struct sw_plan *plan)
{
	const struct sw_job *last = NULL;
	for (const struct sw_job *job = sw_view_next_waiting(sw_plan_view(plan), NULL); job != NULL;
	     job = sw_view_next_waiting(sw_plan_view(plan), job))
		last = job;
	assert_int_equal(sw_plan_hold(plan, last, SW_WISH(.where = sw_on(second)), 0, 100 * S), SW_YES);
}

/* Aim: in an order, of two jobs that ask for the same only the one for which GPUs are held gets
 * them, though the other is ahead, and though the first job blocks the rest; by every placement
 * rule. */
static void test_in_order(void **state)
{
	(void)state;
	const struct sw_policy *policies[] = {&in_order, &with_head, &preempting};
	const struct sw_placement *rules[] = {&sw_placement_count, &sw_placement_yarn};
	for (size_t p = 0; p < RIG_COUNT(policies); p++) {
		for (size_t r = 0; r < RIG_COUNT(rules); r++) {
			for (int free = 0; free < 2; free++) {
				struct rig rig;
				open_with(&rig, (struct sw_engine_config){.policy = policies[p],
									  .placement = rules[r],
									  .terms = {.keeps_state = true, .replace_is_free = free != 0}});
				rig_event(&rig, 0, rig_node_event(SW_EV_NODE_CLOSE, 1));
				rig_submit_plain(&rig, 0, 2, 500);
				for (int i = 0; i < 3; i++)
					rig_submit_plain(&rig, 1, 2, 500);
				assert_true(rig_runs(&rig, 0));
				/* The node opens, and in the same decision it is held for the last
				 * job. */
				script = hold_for_last;
				rig_event(&rig, 2, rig_node_event(SW_EV_NODE_OPEN, 1));
				assert_string_equal(rig_place(&rig, 3), "1:3");
				assert_false(rig_runs(&rig, 1));
				assert_false(rig_runs(&rig, 2));
				/* Its start ended the hold: the next goes to the first. */
				rig_finish(&rig, 3, 3);
				assert_string_equal(rig_place(&rig, 1), "1:3");
				rig_close(&rig);
			}
		}
	}
}

static void hold_one_of_two(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 1), SW_WISH(.gpus = 1, .where = sw_on(second)), 0, 10 * S), SW_YES);
}

/* Aim: an order does not start a job on what is held for another, and does once that is over. */
static void test_order_waits(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, (struct sw_engine_config){.policy = &in_order, .terms = {.keeps_state = true}});
	rig_submit_plain(&rig, 0, 3, 500);
	script = hold_one_of_two;
	rig_submit_plain(&rig, 1, 2, 500);
	rig_submit_plain(&rig, 2, 1, 500);
	assert_false(rig_runs(&rig, 2));
	assert_int_equal(rig.step.wake_at, 10 * S);
	rig_tick(&rig, 10);
	assert_string_equal(rig_place(&rig, 2), "1:2");
	assert_int_equal(over_count, 1);
	rig_close(&rig);
}

static void leave_some(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.gpus = 3), 0, 100 * S), SW_YES);
}

/* Aim: what a job that an order starts leaves of its hold goes to the next in order, in a decision
 * at the next nanosecond. */
static void test_order_leaves_no_rest(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec elastic = rig_spec(2, 500);
	elastic.max_gpus = 4;
	open_with(&rig, (struct sw_engine_config){.policy = &in_order, .terms = {.keeps_state = true}});
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 0});
	rig_submit(&rig, 0, &elastic);
	struct sw_job_spec other = rig_spec(2, 500);
	other.tenant = 1;
	script = leave_some;
	rig_submit(&rig, 1, &other);
	assert_false(rig_runs(&rig, 0) || rig_runs(&rig, 1));
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 4});
	assert_true(rig_runs(&rig, 0));
	assert_int_equal(rig.step.wake_at, 2 * S + 1);
	rig_step_ns(&rig, 2 * S + 1, NULL, 0);
	assert_true(rig_runs(&rig, 1));
	rig_close(&rig);
}

/* ---- saved, explained, taken over */

static struct sw_engine *reload(struct rig *rig, const struct sw_policy *policy, bool *ret_adopted)
{
	struct sw_err err = {0};
	struct sw_pack bytes = {0}, again = {0};
	struct sw_engine *loaded = NULL;
	const struct sw_engine_config config = {
		.policy = policy, .params = rig->params, .placement = &sw_placement_count, .terms = {.keeps_state = true}};
	sw_engine_save(rig->engine, &bytes);
	rig_must(sw_engine_load(&config, bytes.bytes, bytes.size, &loaded, ret_adopted, &err), &err);
	if (!*ret_adopted) {
		sw_engine_save(loaded, &again);
		assert_int_equal(bytes.size, again.size);
		assert_memory_equal(bytes.bytes, again.bytes, bytes.size);
	}
	sw_pack_release(&bytes);
	sw_pack_release(&again);
	return loaded;
}

/* Aim: holds in force and to come are saved and loaded; one that is loaded keeps others off and
 * ends at its moment. */
static void test_saved(void **state)
{
	(void)state;
	struct rig rig;
	bool adopted;
	open_three(&rig);
	run_script(&rig, 1, hold_in_turn);
	struct sw_engine *loaded = reload(&rig, &holding, &adopted);
	assert_false(adopted);
	sw_engine_free(rig.engine);
	rig.engine = loaded;
	run_script(&rig, 2, start_in_turn);
	rig_tick(&rig, 20);
	rig_tick(&rig, 30);
	rig_tick(&rig, 40);
	assert_int_equal(over_count, 2);
	rig_close(&rig);
}

/* Aim: another policy does not inherit holds, whether it takes over or is loaded in the place of
 * the one that made them. */
static void test_taken_over(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_err err = {0};
	bool adopted;
	open_three(&rig);
	run_script(&rig, 1, hold_second_node);
	struct sw_engine *loaded = reload(&rig, &scripted, &adopted);
	assert_true(adopted);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(loaded)), 4);
	sw_engine_free(loaded);
	rig_must(sw_engine_set_policy(rig.engine, &sw_policy_fifo, NULL, &err), &err);
	rig_tick(&rig, 2);
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 1) && rig_runs(&rig, 2));
	rig_close(&rig);
}

static void start_second_job(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

/* Aim: a job that would fit where GPUs are held for another is told so, and for how long. */
static void test_explained(void **state)
{
	(void)state;
	struct rig rig;
	char text[256];
	open_three(&rig);
	rig_submit_plain(&rig, 0, 2, 500);
	run_script(&rig, 1, hold_second_node);
	run_script(&rig, 2, start_second_job);
	sw_engine_explain(rig.engine, (struct sw_job_id){3}, text, sizeof text);
	assert_string_equal(text, "it needs 2 GPUs and 1 is free; 2 more are held for job 0 for 18 s at most");
	sw_engine_explain(rig.engine, (struct sw_job_id){2}, text, sizeof text);
	assert_null(strstr(text, "held"));
	sw_engine_explain(rig.engine, (struct sw_job_id){0}, text, sizeof text);
	assert_null(strstr(text, "held"));
	char small[20];
	sw_engine_explain(rig.engine, (struct sw_job_id){3}, small, sizeof small);
	assert_int_equal(strlen(small), sizeof small - 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_from_now_on),
		cmocka_unit_test(test_time_out),
		cmocka_unit_test(test_partial_gang),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_hold_after_a_stop),
		cmocka_unit_test(test_held_from_later_on),
		cmocka_unit_test(test_leased_runs_leave),
		cmocka_unit_test(test_runs_that_stay),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_job_is_gone),
		cmocka_unit_test(test_shut_and_held),
		cmocka_unit_test(test_moves_by_hand),
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_order_waits),
		cmocka_unit_test(test_order_leaves_no_rest),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_explained),
		cmocka_unit_test(test_predictions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
