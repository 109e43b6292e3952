/* Moves of a run within its node: the engine says whether it goes in one run, what it leaves until
 * it is there, and what becomes of one that cannot go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

static const struct sw_topology_node four_gpus[] = {RIG_NODE(0, 4)};
static const struct sw_engine_config live = {.placement = &sw_placement_pack, .terms.moves = SW_MOVES_RESTART};

static void say(struct rig *rig, int64_t at_s, enum sw_event_kind kind, uint32_t id)
{
	struct sw_event event = rig_answer(rig, kind, id);
	event.gpus = 1; /* of SW_EV_KEEPS: it does, and its memory leaves the GPUs */
	event.frees = true;
	rig_event(rig, at_s, event);
}

static void wish_move(struct rig *rig, int64_t at_s, uint32_t id, uint64_t mask)
{
	struct sw_event event = rig_answer(rig, SW_EV_MOVE, id);
	event.mask = mask;
	rig_event(rig, at_s, event);
}

static uint64_t leaves(const struct rig *rig, uint32_t id)
{
	return sw_engine_leaves(rig->engine, (struct sw_job_id){id}, NULL);
}

static void save_and_load(struct rig *rig, struct sw_engine_config config)
{
	struct sw_pack bytes = {0};
	struct sw_err err = {0};
	struct sw_engine *loaded = NULL;
	bool adopted;
	if (config.policy == NULL)
		config.policy = &scripted;
	config.params = rig->params;
	sw_engine_save(rig->engine, &bytes);
	rig_must(sw_engine_load(&config, bytes.bytes, bytes.size, &loaded, &adopted, &err), &err);
	sw_pack_release(&bytes);
	sw_engine_free(rig->engine);
	rig->engine = loaded;
}

/* Two jobs of one GPU, on GPUs 0 and 1. */
static void open_two(struct rig *rig, uint8_t stop_rule)
{
	struct sw_job_spec spec = rig_spec(1, 100000);
	open_scripted(rig, four_gpus, 1, live);
	spec.stop_rule = stop_rule;
	rig_submit(rig, 0, &spec);
	rig_submit(rig, 0, &spec);
	run_script(rig, 0, start_all);
	assert_string_equal(rig_place(rig, 1), "0:2");
}

static void move_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_by(NULL))), SW_YES);
}

static void move_second_in_vain(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_by(NULL))), SW_KEPT);
}

static void move_second_too_soon(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_by(NULL))), SW_TOO_SOON);
}

/* Of another size or on another node it would start anew. */
static void move_second_by_a_stop(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.gpus = 2)), SW_KEPT);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_on((struct sw_node_id){1}))), SW_KEPT);
	assert_int_equal(job_of(plan, 1)->state, SW_JOB_RUNNING);
}

/* The first leaves GPU 0 to the second, and is to have one again. */
static void follow_a_stop(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	move_second_in_vain(plan);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

static void move_both(struct sw_plan *plan)
{
	for (uint32_t id = 1; id <= 2; id++)
		assert_int_equal(sw_plan_run(plan, job_of(plan, id), SW_WISH(.where = sw_by(NULL))), SW_YES);
}

static void assert_one_run(struct rig *rig, uint32_t id, uint32_t epoch, uint64_t mask)
{
	const struct sw_command *move = rig_command(rig, SW_CMD_MOVE, id);
	assert_true(move != NULL && rig_command(rig, SW_CMD_STOP, id) == NULL);
	assert_int_equal(move->epoch, epoch);
	assert_int_equal(move->mask, mask);
}

static void assert_two_runs(struct rig *rig, uint32_t id, uint32_t epoch)
{
	const struct sw_command *stop = rig_command(rig, SW_CMD_STOP, id), *start = rig_command(rig, SW_CMD_START, id);
	assert_true(stop != NULL && start != NULL && rig_command(rig, SW_CMD_MOVE, id) == NULL);
	assert_int_equal(stop->reason, SW_REASON_MOVED);
	assert_int_equal(start->epoch, epoch);
}

static const struct {
	uint8_t rule;
	bool no_restart;
} kept[] = {{SW_STOP_SUSPEND, false}, {SW_STOP_IF_FREE, false}, {SW_STOP_NEVER, false}, {SW_STOP_AS_WORLD, true}};

static void open_kept(struct rig *rig, size_t which)
{
	static const struct sw_topology_node two_nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 1)};
	struct sw_job_spec spec = rig_spec(1, 100000);
	open_scripted(rig, two_nodes, 2, live);
	rig_submit(rig, 0, &spec);
	spec.max_gpus = 2;
	spec.stop_rule = kept[which].rule;
	spec.prefers_home = spec.stop_rule == SW_STOP_SUSPEND || spec.stop_rule == SW_STOP_IF_FREE;
	spec.no_restart = kept[which].no_restart;
	rig_event(rig, 0, rig_node_event(SW_EV_NODE_CLOSE, 1));
	rig_submit(rig, 0, &spec);
	run_script(rig, 0, start_all);
	assert_string_equal(rig_place(rig, 1), "0:2");
}

/* Aim: a job whose owner allows no stop, or only that it stands where it is, is moved within its
 * node where its run goes on there, and in no other way. */
static void test_kept_run_moves(void **state)
{
	(void)state;
	for (size_t k = 0; k < RIG_COUNT(kept); k++) {
		struct rig rig;
		open_kept(&rig, k);
		rig_finish(&rig, 1, 0);
		run_script(&rig, 2, move_second_in_vain); /* it has not begun */
		say(&rig, 3, SW_EV_BEGUN, 1);
		rig_event(&rig, 4, rig_node_event(SW_EV_NODE_OPEN, 1));
		run_script(&rig, 5, move_second_by_a_stop);
		assert_int_equal(rig_commands(&rig), 0);
		rig_event(&rig, 6, rig_node_event(SW_EV_NODE_CLOSE, 1));
		run_script(&rig, 7, move_second);
		assert_one_run(&rig, 1, 1, 1);
		assert_int_equal(leaves(&rig, 1), 2);
		rig_close(&rig);
	}
}

/* Aim: such a run does not follow one that this decision stopped, which may start again in it: the
 * two could wait for each other. Nor does one go that is known not to leave its GPUs. */
static void test_kept_run_does_not_follow(void **state)
{
	(void)state;
	for (size_t k = 0; k < RIG_COUNT(kept); k++) {
		struct rig rig;
		open_kept(&rig, k);
		say(&rig, 1, SW_EV_BEGUN, 0);
		say(&rig, 1, SW_EV_BEGUN, 1);
		run_script(&rig, 2, follow_a_stop);
		assert_int_equal(rig_commands(&rig), 0);
		assert_string_equal(rig_place(&rig, 1), "0:2");
		rig_event(&rig, 3, rig_answer(&rig, SW_EV_KEEPS, 1));
		rig_finish(&rig, 4, 0);
		run_script(&rig, 5, move_second_in_vain);
		rig_close(&rig);
	}
}

/* Aim: one that goes on is protected for its quantum like all that are moved. */
static void test_kept_run_is_protected(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_terms terms = live.terms;
	open_kept(&rig, 2);
	terms.quantum_ns = 60 * SW_NS_PER_S;
	assert_int_equal(sw_engine_set_terms(rig.engine, &terms, NULL), 0);
	say(&rig, 1, SW_EV_BEGUN, 1);
	rig_finish(&rig, 2, 0);
	run_script(&rig, 3, move_second_too_soon);
	assert_int_equal(rig.step.wake_at, 60 * SW_NS_PER_S);
	run_script(&rig, 60, move_second);
	assert_one_run(&rig, 1, 1, 1);
	rig_close(&rig);
}

/* Aim: a policy's move within a node is one run where that has begun; else the run is stopped and
 * the next one started, also while one is on its way or leaves the GPU. */
static void test_policy_moves(void **state)
{
	(void)state;
	for (int begun = 0; begun < 2; begun++) {
		struct rig rig;
		open_two(&rig, SW_STOP_RESTART);
		if (begun)
			say(&rig, 1, SW_EV_BEGUN, 1);
		rig_finish(&rig, 2, 0);
		run_script(&rig, 3, move_second);
		assert_string_equal(rig_place(&rig, 1), "0:1");
		if (!begun) {
			assert_two_runs(&rig, 1, 2);
			rig_close(&rig);
			continue;
		}
		assert_one_run(&rig, 1, 1, 1);
		assert_int_equal(leaves(&rig, 1), 2);
		assert_int_equal(sw_engine_leaving(rig.engine, (struct sw_node_id){0}), 2);
		/* The GPU that it leaves is free, and no other run follows it there in one. */
		uint32_t third = rig_submit_plain(&rig, 4, 2, 100000);
		run_script(&rig, 4, start_all);
		assert_true(rig_runs(&rig, third));
		say(&rig, 5, SW_EV_MOVED, 1);
		assert_int_equal(leaves(&rig, 1), 0);
		assert_int_equal(rig_commands(&rig), 0);
		rig_close(&rig);
	}
}

/* Aim: of two jobs that move in one decision the one that would go where the other is does not go
 * in one run: the two could wait for each other. */
static void test_moves_in_a_row(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, SW_STOP_RESTART);
	uint32_t third = rig_submit_plain(&rig, 1, 1, 100000);
	run_script(&rig, 1, start_all);
	say(&rig, 1, SW_EV_BEGUN, 1);
	say(&rig, 1, SW_EV_BEGUN, third);
	rig_finish(&rig, 2, 0);
	run_script(&rig, 3, move_both);
	assert_string_equal(rig_place(&rig, 1), "0:1");
	assert_string_equal(rig_place(&rig, third), "0:2");
	assert_one_run(&rig, 1, 1, 1);
	assert_two_runs(&rig, third, 2);
	rig_close(&rig);
}

/* Aim: a run that cannot go has its GPU again; the job that was given it waits again at no cost,
 * and for a while a policy's move is a stop and a start. */
static void test_turns_back(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, SW_STOP_RESTART);
	say(&rig, 1, SW_EV_BEGUN, 0);
	say(&rig, 1, SW_EV_BEGUN, 1);
	wish_move(&rig, 2, 0, 8);
	assert_string_equal(rig_place(&rig, 0), "0:8");
	assert_string_equal(sw_engine_move_obstacle(rig.engine, (struct sw_job_id){0}, (struct sw_gpus){SW_NO_NODE, 4}),
			    "it is on its way to other GPUs already");
	assert_string_equal(sw_engine_move_obstacle(rig.engine, (struct sw_job_id){1}, (struct sw_gpus){SW_NO_NODE, 1}),
			    "another job is still on its way off one of these GPUs");
	uint32_t newcomer = rig_submit_plain(&rig, 3, 2, 100000);
	run_script(&rig, 3, start_all);
	assert_string_equal(rig_place(&rig, newcomer), "0:5");
	say(&rig, 4, SW_EV_UNMOVED, 0);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	assert_int_equal(rig_command(&rig, SW_CMD_STOP, newcomer)->reason, SW_REASON_BOUNCED);
	assert_int_equal(rig_command(&rig, SW_CMD_MOVE, 0)->reason, SW_REASON_BOUNCED);
	assert_int_equal(rig_job(&rig, newcomer)->restarts + rig_job(&rig, newcomer)->preemptions, 0);
	assert_int_equal(rig_state(&rig, newcomer), SW_JOB_WAITING);
	/* The same of the second job, which a policy moves. */
	rig_finish(&rig, 5, 0);
	run_script(&rig, 6, move_second);
	assert_one_run(&rig, 1, 1, 1);
	say(&rig, 7, SW_EV_UNMOVED, 1);
	assert_string_equal(rig_place(&rig, 1), "0:2");
	run_script(&rig, 8, move_second);
	assert_two_runs(&rig, 1, 2);
	rig_close(&rig);
}

/* Aim: a GPU that it could not leave and that takes no jobs since then is still its own: one that
 * may never be stopped goes on there. */
static void test_stays_on_a_shut_gpu(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, SW_STOP_NEVER);
	say(&rig, 1, SW_EV_BEGUN, 0);
	wish_move(&rig, 2, 0, 4);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = 1});
	say(&rig, 4, SW_EV_UNMOVED, 0);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	assert_null(rig_command(&rig, SW_CMD_STOP, 0));
	assert_int_equal(rig_command(&rig, SW_CMD_MOVE, 0)->reason, SW_REASON_BOUNCED);
	assert_true(sw_engine_has_begun(rig.engine, (struct sw_job_id){0}));
	rig_close(&rig);
}

static void say_dead(struct rig *rig, int64_t at_s, uint32_t id, uint64_t mask)
{
	struct sw_event event = rig_answer(rig, SW_EV_UNMOVED, id);
	event.mask = mask;
	rig_event(rig, at_s, event);
}

/* Aim: where the GPU that it could not leave is dead, it begins anew where it was to go, which
 * counts as a restart; the job that was given the other one meanwhile stays. */
static void test_begins_anew(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, SW_STOP_NEVER);
	say(&rig, 1, SW_EV_BEGUN, 0);
	wish_move(&rig, 2, 0, 4);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = 1});
	say_dead(&rig, 4, 0, 1);
	assert_string_equal(rig_place(&rig, 0), "0:4");
	assert_two_runs(&rig, 0, 2);
	assert_false(sw_engine_has_begun(rig.engine, (struct sw_job_id){0}));
	assert_int_equal(rig_job(&rig, 0)->restarts, 1);
	rig_close(&rig);
}

/* Aim: one that may not start a second time and can neither go nor come back has failed, also where
 * the GPUs that it leaves are gone with a change of the node. */
static void test_no_second_start(void **state)
{
	(void)state;
	for (int changes = 0; changes < 2; changes++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 100000);
		struct sw_topology_change change = {.shape = four_gpus[0]};
		for (uint32_t g = 0; g < SW_NODE_GPUS_MAX; g++)
			change.to[g] = g > 0 && g < 4 ? (uint8_t)g : SW_GPU_GONE;
		spec.no_restart = true;
		open_scripted(&rig, four_gpus, 1, live);
		rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_first);
		say(&rig, 1, SW_EV_BEGUN, 0);
		wish_move(&rig, 2, 0, 4);
		if (changes)
			rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {0}, .change = &change});
		else
			say_dead(&rig, 3, 0, 1);
		assert_int_equal(rig_state(&rig, 0), SW_JOB_FAILED);
		assert_int_equal(rig_command(&rig, SW_CMD_STOP, 0)->reason, SW_REASON_NODE_LOST);
		assert_null(rig_command(&rig, SW_CMD_START, 0));
		rig_close(&rig);
	}
}

/* Aim: one that was suspended on its way, and whose old GPU is dead, is over and starts anew: it
 * does not stand on a dead GPU, or wait for it. One that may not start anew has failed. */
static void test_suspended_off_a_dead_gpu(void **state)
{
	(void)state;
	for (int no_restart = 0; no_restart < 2; no_restart++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 100000);
		spec.stop_rule = SW_STOP_SUSPEND;
		spec.no_restart = no_restart;
		open_scripted(&rig, four_gpus, 1, live);
		rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_first);
		say(&rig, 1, SW_EV_BEGUN, 0);
		say(&rig, 1, SW_EV_KEEPS, 0);
		wish_move(&rig, 2, 0, 4);
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = 1});
		say_dead(&rig, 4, 0, 1);
		const struct sw_command *stop = rig_command(&rig, SW_CMD_STOP, 0);
		assert_true(stop != NULL && !stop->stands && stop->reason == SW_REASON_NODE_LOST);
		assert_int_equal(sw_engine_stands(rig.engine, (struct sw_job_id){0}), SW_NO_PART);
		assert_int_equal(rig_state(&rig, 0), no_restart ? SW_JOB_FAILED : SW_JOB_HELD);
		rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_RELEASE, .job = {0}});
		if (!no_restart)
			run_script(&rig, 5, start_first);
		assert_int_equal(sw_engine_epoch(rig.engine, (struct sw_job_id){0}), no_restart ? 1 : 2);
		rig_close(&rig);
	}
}

/* Aim: one that was suspended on its way and could not go stands where it was, under the same
 * epoch, which it keeps when it goes on; a job that has begun there meanwhile stays. */
static void test_suspended_on_its_way(void **state)
{
	(void)state;
	for (int begins = 0; begins < 2; begins++) {
		struct rig rig;
		open_two(&rig, SW_STOP_SUSPEND);
		say(&rig, 1, SW_EV_BEGUN, 0);
		say(&rig, 1, SW_EV_KEEPS, 0);
		wish_move(&rig, 2, 0, 4);
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
		assert_true(rig_command(&rig, SW_CMD_STOP, 0)->stands);
		uint32_t newcomer = rig_submit_plain(&rig, 4, 3, 100000);
		run_script(&rig, 4, start_all);
		assert_string_equal(rig_place(&rig, newcomer), "0:d");
		if (begins)
			say(&rig, 5, SW_EV_BEGUN, newcomer);
		say(&rig, 6, SW_EV_UNMOVED, 0);
		assert_int_equal(rig_runs(&rig, newcomer), begins);
		assert_int_equal(rig_command(&rig, SW_CMD_MOVE, 0)->mask, 1);
		if (begins)
			rig_finish(&rig, 7, newcomer);
		rig_event(&rig, 8, (struct sw_event){.kind = SW_EV_RELEASE, .job = {0}});
		run_script(&rig, 8, start_first);
		const struct sw_command *start = rig_command(&rig, SW_CMD_START, 0);
		assert_true(start->goes_on);
		assert_int_equal(start->epoch, 1);
		assert_string_equal(rig_place(&rig, 0), "0:1");
		rig_close(&rig);
	}
}

/* Aim: one that was suspended on its way and went on, and then cannot go, has its GPU and its work
 * again, also in an engine that was saved and loaded: the job that was given that GPU before the
 * suspension waits again. Its driver is waited for since it went on. */
static void test_went_on_on_its_way(void **state)
{
	(void)state;
	for (int loads = 0; loads < 2; loads++) {
		struct rig rig;
		sw_ns since = 0;
		open_two(&rig, SW_STOP_SUSPEND);
		say(&rig, 1, SW_EV_BEGUN, 0);
		say(&rig, 1, SW_EV_KEEPS, 0);
		wish_move(&rig, 2, 0, 4);
		uint32_t newcomer = rig_submit_plain(&rig, 3, 2, 100000);
		run_script(&rig, 3, start_all);
		assert_string_equal(rig_place(&rig, newcomer), "0:9");
		rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
		assert_true(rig_command(&rig, SW_CMD_STOP, 0)->stands);
		rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_RELEASE, .job = {0}});
		run_script(&rig, 5, start_first);
		assert_true(rig_command(&rig, SW_CMD_START, 0)->goes_on);
		assert_int_equal(sw_engine_leaves(rig.engine, (struct sw_job_id){0}, &since), 1);
		assert_int_equal(since, 5 * SW_NS_PER_S);
		if (loads)
			save_and_load(&rig, live);
		say(&rig, 6, SW_EV_UNMOVED, 0);
		assert_false(rig_runs(&rig, newcomer));
		assert_null(rig_command(&rig, SW_CMD_STOP, 0));
		assert_string_equal(rig_place(&rig, 0), "0:1");
		assert_int_equal(rig_command(&rig, SW_CMD_MOVE, 0)->epoch, 1);
		rig_close(&rig);
	}
}

/* Aim: the driver is told to stop a run that stands on a node that is lost, and to end one that is
 * cancelled where it stands. */
static void test_standing_runs_are_ended(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, SW_STOP_SUSPEND);
	for (uint32_t id = 0; id < 2; id++) {
		say(&rig, 1, SW_EV_BEGUN, id);
		say(&rig, 1, SW_EV_KEEPS, id);
		rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {id}});
	}
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_CANCEL, .job = {0}});
	assert_non_null(rig_command(&rig, SW_CMD_KILL, 0));
	rig_event(&rig, 4, rig_node_event(SW_EV_NODE_DOWN, 0));
	assert_int_equal(rig_command(&rig, SW_CMD_STOP, 1)->reason, SW_REASON_NODE_LOST);
	assert_false(rig_command(&rig, SW_CMD_STOP, 1)->stands);
	assert_int_equal(sw_engine_stands(rig.engine, (struct sw_job_id){1}), SW_NO_PART);
	rig_close(&rig);
}

/* Aim: a run that is on its way goes on under its GPUs' new numbers; where those that it leaves are
 * gone, it begins anew where it was to go. */
static void test_node_changes(void **state)
{
	(void)state;
	for (int gone = 0; gone < 2; gone++) {
		struct rig rig;
		open_two(&rig, SW_STOP_NEVER);
		say(&rig, 1, SW_EV_BEGUN, 0);
		wish_move(&rig, 2, 0, 4);
		struct sw_topology_change change = {.shape = four_gpus[0]};
		for (uint32_t g = 0; g < SW_NODE_GPUS_MAX; g++)
			change.to[g] = g < 4 ? (uint8_t)(3 - g) : SW_GPU_GONE;
		if (gone)
			change.to[0] = SW_GPU_GONE;
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {0}, .change = &change});
		assert_string_equal(rig_place(&rig, 0), "0:2");
		assert_int_equal(leaves(&rig, 0), gone ? 0 : 8);
		if (gone)
			assert_two_runs(&rig, 0, 2);
		rig_close(&rig);
	}
}

static void share_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_beside(job_of(plan, 0)))), SW_YES);
}

static void pause_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PAUSE), SW_YES);
}

static void wake_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

/* Aim: a job that was there before the move stays when the run cannot go, though it was paused or
 * began anew there meanwhile, and also in an engine that was saved and loaded. */
static void test_old_neighbour_stays(void **state)
{
	(void)state;
	for (int anew = 0; anew < 2; anew++) {
		static struct sw_policy pausing;
		struct sw_engine_config config = live;
		struct sw_job_spec spec = rig_spec(1, 100000);
		struct rig rig;
		pausing = scripted;
		pausing.pauses = true;
		config.policy = &pausing;
		spec.gpu_memory_bytes = 10 * RIG_GIB;
		spec.gpu_floor_bytes = RIG_GIB;
		spec.stop_rule = SW_STOP_NEVER;
		script = NULL;
		rig_open(&rig, four_gpus, 1, config, NULL);
		rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_first);
		rig_submit(&rig, 1, &spec);
		run_script(&rig, 1, share_second);
		say(&rig, 2, SW_EV_BEGUN, 0);
		say(&rig, 2, SW_EV_BEGUN, 1);
		wish_move(&rig, 3, 0, 8);
		if (anew) {
			say(&rig, 4, SW_EV_ANEW, 1);
		} else {
			run_script(&rig, 4, pause_second);
			run_script(&rig, 5, wake_second);
		}
		save_and_load(&rig, config);
		say(&rig, 6, SW_EV_UNMOVED, 0);
		assert_true(rig_runs(&rig, 1));
		assert_null(rig_command(&rig, SW_CMD_STOP, 1));
		assert_string_equal(rig_place(&rig, 0), "0:1");
		assert_string_equal(rig_place(&rig, 1), "0:1");
		rig_close(&rig);
	}
}

/* Aim: two that share a GPU may both be on their way off it; where neither can go, both have it
 * again. */
static void test_two_leave_one_gpu(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = rig_spec(1, 100000);
	spec.gpu_memory_bytes = 10 * RIG_GIB;
	open_scripted(&rig, four_gpus, 1, live);
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_first);
	rig_submit(&rig, 1, &spec);
	run_script(&rig, 1, share_second);
	say(&rig, 2, SW_EV_BEGUN, 0);
	say(&rig, 2, SW_EV_BEGUN, 1);
	wish_move(&rig, 3, 0, 8);
	wish_move(&rig, 4, 1, 4);
	assert_int_equal(leaves(&rig, 0), 1);
	assert_int_equal(leaves(&rig, 1), 1);
	say(&rig, 5, SW_EV_UNMOVED, 0);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	assert_string_equal(rig_place(&rig, 1), "0:4");
	say(&rig, 6, SW_EV_UNMOVED, 1);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	assert_string_equal(rig_place(&rig, 1), "0:1");
	assert_null(rig_command(&rig, SW_CMD_STOP, 0));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy_moves),
		cmocka_unit_test(test_kept_run_moves),
		cmocka_unit_test(test_kept_run_does_not_follow),
		cmocka_unit_test(test_kept_run_is_protected),
		cmocka_unit_test(test_moves_in_a_row),
		cmocka_unit_test(test_turns_back),
		cmocka_unit_test(test_begins_anew),
		cmocka_unit_test(test_stays_on_a_shut_gpu),
		cmocka_unit_test(test_went_on_on_its_way),
		cmocka_unit_test(test_suspended_off_a_dead_gpu),
		cmocka_unit_test(test_suspended_on_its_way),
		cmocka_unit_test(test_standing_runs_are_ended),
		cmocka_unit_test(test_node_changes),
		cmocka_unit_test(test_old_neighbour_stays),
		cmocka_unit_test(test_no_second_start),
		cmocka_unit_test(test_two_leave_one_gpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
