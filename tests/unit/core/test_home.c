/* Jobs that come back to where they were, and moves where a move is a stop and a start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

static const struct sw_topology_node one_of_four[] = {RIG_NODE(0, 4)};

static uint32_t submit_homely(struct rig *rig, uint32_t gpus)
{
	struct sw_job_spec spec = rig_spec(gpus, 100);
	spec.min_gpus = 1;
	spec.max_gpus = 4;
	spec.retries = 1;
	spec.prefers_home = true;
	return rig_submit(rig, 0, &spec);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

static void start_last(struct sw_plan *plan)
{
	const struct sw_job *last = NULL;
	for (const struct sw_job *job = sw_view_next_waiting(sw_plan_view(plan), NULL); job != NULL;
	     job = sw_view_next_waiting(sw_plan_view(plan), job))
		last = job;
	assert_int_equal(sw_plan_run(plan, last, NULL), SW_YES);
}

/* Aim: a job that prefers its home starts again on exactly the GPUs it had, though the
 * rule would take others. */
static void test_comes_home(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 1, 100);
	uint32_t homely = submit_homely(&rig, 2);
	run_script(&rig, 0, start_all);
	assert_string_equal(rig_place(&rig, homely), "0:6");
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {homely}});
	rig_finish(&rig, 2, 0);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_RELEASE, .job = {homely}});
	run_script(&rig, 4, start_last);
	assert_string_equal(rig_place(&rig, homely), "0:6");
	rig_finish(&rig, 5, homely);
	rig_close(&rig);
}

/* Aim: a job that does not prefer its home goes where the rule says, as ever. */
static void test_others_do_not(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	rig_submit_plain(&rig, 0, 1, 100);
	rig_submit_plain(&rig, 0, 2, 100);
	run_script(&rig, 0, start_all);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {1}});
	rig_finish(&rig, 2, 0);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_RELEASE, .job = {1}});
	run_script(&rig, 4, start_last);
	assert_string_equal(rig_place(&rig, 1), "0:3");
	rig_close(&rig);
}

/* Aim: newcomers are given GPUs that are no home while there are enough of them; then any. */
static void test_homes_are_left_free(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	uint32_t homely = submit_homely(&rig, 2);
	run_script(&rig, 0, start_all);
	run_script(&rig, 1, preempt_first);
	uint32_t guest = rig_submit_plain(&rig, 2, 2, 100);
	run_script(&rig, 2, start_last);
	assert_string_equal(rig_place(&rig, guest), "0:c");
	uint32_t intruder = rig_submit_plain(&rig, 3, 1, 100);
	run_script(&rig, 3, start_last);
	assert_string_equal(rig_place(&rig, intruder), "0:1");
	/* Half of its home is taken: it goes elsewhere, and its new place becomes its home. */
	rig_finish(&rig, 4, guest);
	run_script(&rig, 5, start_first);
	assert_string_equal(rig_place(&rig, homely), "0:c");
	rig_close(&rig);
}

/* Aim: no job is put where another stands still while a place that is as good is free on
 * another node, though the rule would fill up this one; so both that go on in one
 * decision do, whichever is first. */
static void test_homes_on_other_nodes(void **state)
{
	(void)state;
	const struct sw_placement *rules[] = {&sw_placement_count, &sw_placement_pack, &sw_placement_yarn};
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		struct rig rig;
		open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.placement = rules[i]});
		uint32_t fresh = rig_submit_plain(&rig, 0, 1, 100), homely = submit_homely(&rig, 1);
		run_script(&rig, 0, start_all);
		assert_string_equal(rig_place(&rig, homely), "0:2");
		rig_step(&rig, 1, (struct sw_event[]){{.kind = SW_EV_HOLD, .job = {fresh}}, {.kind = SW_EV_HOLD, .job = {homely}}}, 2);
		uint32_t other = rig_submit_plain(&rig, 1, 1, 100);
		run_script(&rig, 1, start_last);
		assert_string_equal(rig_place(&rig, other), "0:1");
		rig_step(&rig, 2, (struct sw_event[]){{.kind = SW_EV_RELEASE, .job = {fresh}}, {.kind = SW_EV_RELEASE, .job = {homely}}},
			 2);
		run_script(&rig, 2, start_all);
		assert_string_equal(rig_place(&rig, fresh), "1:1");
		assert_string_equal(rig_place(&rig, homely), "0:2");
		rig_close(&rig);
	}
}

/* Aim: a home is no reason to tear a job apart. */
static void test_homes_do_not_tear_apart(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	uint32_t homely = submit_homely(&rig, 1);
	run_script(&rig, 0, start_all);
	run_script(&rig, 1, preempt_first);
	uint32_t guest = rig_submit_plain(&rig, 2, 1, 100), pair = rig_submit_plain(&rig, 2, 2, 100);
	run_script(&rig, 2, start_last);
	assert_string_equal(rig_place(&rig, pair), "1:3");
	rig_finish(&rig, 3, pair);
	run_script(&rig, 3, start_last);
	assert_string_equal(rig_place(&rig, guest), "0:2");
	rig_event(&rig, 4, rig_node_event(SW_EV_NODE_CLOSE, 0));
	uint32_t single = rig_submit_plain(&rig, 4, 1, 100);
	run_script(&rig, 4, start_last);
	assert_string_equal(rig_place(&rig, single), "1:1");
	rig_event(&rig, 5, rig_node_event(SW_EV_NODE_OPEN, 0));
	rig_finish(&rig, 5, guest);
	pair = rig_submit_plain(&rig, 5, 2, 100);
	run_script(&rig, 5, start_last);
	assert_string_equal(rig_place(&rig, pair), "0:3");
	assert_int_equal(rig_state(&rig, homely), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: a job that needs more GPUs than those that are no home takes all of these first. */
static void test_few_homes_are_taken(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	for (uint32_t id = 0; id < 2; id++)
		submit_homely(&rig, 1);
	run_script(&rig, 0, start_all);
	rig_step(&rig, 1, (struct sw_event[]){{.kind = SW_EV_HOLD, .job = {0}}, {.kind = SW_EV_HOLD, .job = {1}}}, 2);
	uint32_t guest = rig_submit_plain(&rig, 2, 3, 100);
	run_script(&rig, 2, start_last);
	assert_string_equal(rig_place(&rig, guest), "0:d");
	rig_close(&rig);
}

static void start_with_three(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 3)), SW_YES);
}

/* Aim: a home of another size is no home, and one on a node that goes down is forgotten. */
static void test_home_must_fit(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	uint32_t homely = submit_homely(&rig, 1);
	run_script(&rig, 0, start_all);
	assert_string_equal(rig_place(&rig, homely), "0:1");
	run_script(&rig, 1, preempt_first);
	run_script(&rig, 2, start_with_three);
	assert_int_equal(rig_job(&rig, homely)->gpus_held, 3);
	run_script(&rig, 3, preempt_first);
	rig_event(&rig, 4, rig_node_event(SW_EV_NODE_DOWN, 0));
	run_script(&rig, 5, start_first);
	assert_string_equal(rig_place(&rig, homely), "1:1");
	rig_close(&rig);
}

static void start_and_preempt(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

static void start_and_resize(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_by(NULL))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 3)), SW_YES);
}

/* Aim: a policy that changes its mind within a decision does not cost a job its home, and
 * leaves nothing behind. */
static void test_home_survives_second_thoughts(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	uint32_t homely = submit_homely(&rig, 2);
	run_script(&rig, 0, start_all);
	run_script(&rig, 1, preempt_first);
	run_script(&rig, 2, start_and_preempt);
	assert_int_equal(rig_commands(&rig), 0);
	uint32_t guest = rig_submit_plain(&rig, 3, 1, 100);
	run_script(&rig, 3, start_last);
	assert_string_equal(rig_place(&rig, guest), "0:4");
	run_script(&rig, 4, start_and_resize);
	assert_string_equal(rig_place(&rig, homely), "0:b");
	rig_close(&rig);
}

/* Aim: a run that was told to stop may still finish or fail, once; after a failure there is no
 * home, and nothing of a job without one ends so. */
static void test_ends_after_the_stop(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){0});
	uint32_t homely = submit_homely(&rig, 2);
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 0, start_all);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {homely}});
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {1}});
	struct sw_event fail = rig_answer(&rig, SW_EV_FAIL, homely);
	fail.left_ns = -1;
	rig_event(&rig, 2, fail);
	assert_int_equal(rig_state(&rig, homely), SW_JOB_HELD);
	assert_int_equal(rig_job(&rig, homely)->retries_left, 0);
	rig_event(&rig, 2, fail);
	assert_int_equal(rig_state(&rig, homely), SW_JOB_HELD);
	rig_event(&rig, 3, rig_answer(&rig, SW_EV_FINISH, 1));
	assert_int_equal(rig_state(&rig, 1), SW_JOB_HELD);
	rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_RELEASE, .job = {homely}});
	run_script(&rig, 4, start_first);
	run_script(&rig, 5, preempt_first);
	rig_finish(&rig, 6, homely);
	rig_close(&rig);
}

static void resize_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 3)), SW_YES);
}

static void preempt_and_shrink(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1)), SW_YES);
}

/* Aim: where a move is a restart, a new size is a stop of the old run and a start of the next, in
 * this order; so is lifting a job and putting it elsewhere. */
static void test_moves_restart(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	uint32_t elastic = submit_homely(&rig, 2);
	run_script(&rig, 0, start_all);
	void (*const scripts[])(struct sw_plan *) = {resize_first, preempt_and_shrink};
	const uint32_t sizes[] = {3, 1};
	for (uint32_t i = 0; i < 2; i++) {
		run_script(&rig, i + 1, scripts[i]);
		assert_int_equal(rig_commands(&rig), 2);
		assert_int_equal(rig.step.commands[0].kind, SW_CMD_STOP);
		assert_int_equal(rig.step.commands[0].reason, SW_REASON_MOVED);
		assert_int_equal(rig.step.commands[0].epoch, i + 1);
		assert_int_equal(rig.step.commands[1].kind, SW_CMD_START);
		assert_int_equal(rig.step.commands[1].epoch, i + 2);
		assert_int_equal(rig.step.commands[1].gpus, sizes[i]);
		assert_int_equal(rig_job(&rig, elastic)->gpus_held, sizes[i]);
	}
	assert_int_equal(rig_job(&rig, elastic)->preemptions, 0);
	assert_int_equal(rig_job(&rig, elastic)->migrations, 2);
	rig_close(&rig);
}

static struct sw_event move_to(const struct rig *rig, uint32_t id, uint64_t mask)
{
	struct sw_event event = rig_answer(rig, SW_EV_MOVE, id);
	event.mask = mask;
	return event;
}

/* Its run has begun, and it is where it was sent last. */
static void settle(struct rig *rig, uint32_t id)
{
	rig_event(rig, 1, rig_answer(rig, SW_EV_BEGUN, id));
	rig_event(rig, 1, rig_answer(rig, SW_EV_MOVED, id));
}

/* Aim: a run goes on on other GPUs of its node, as the same run, and what it had is free;
 * where others are, it stays. */
static void test_goes_on_elsewhere(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_of_four, 1, (struct sw_engine_config){.terms.moves = SW_MOVES_NEVER});
	uint32_t mover = submit_homely(&rig, 2), other = submit_homely(&rig, 1);
	run_script(&rig, 0, start_all);
	assert_string_equal(rig_place(&rig, mover), "0:3");
	settle(&rig, mover);
	rig_event(&rig, 1, move_to(&rig, mover, 0xa));
	assert_string_equal(rig_place(&rig, mover), "0:a");
	const struct sw_command *command = rig_command(&rig, SW_CMD_MOVE, mover);
	assert_true(command != NULL && rig_commands(&rig) == 1);
	assert_int_equal(command->epoch, 1);
	assert_int_equal(command->gpus, 2);
	assert_int_equal(rig_job(&rig, mover)->migrations, 1);
	settle(&rig, mover);
	/* Taken, too few, too many, not there, the same; of a run that is over. */
	const uint64_t masks[] = {0x5, 0x1, 0xb, 0x18, 0, 0xa};
	for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
		rig_event(&rig, 2, move_to(&rig, mover, masks[i]));
		assert_int_equal(rig_commands(&rig), 0);
	}
	struct sw_event late = move_to(&rig, mover, 0x3);
	late.epoch--;
	rig_event(&rig, 2, late);
	assert_string_equal(rig_place(&rig, mover), "0:a");
	rig_finish(&rig, 3, other);
	rig_event(&rig, 4, move_to(&rig, mover, 0x5));
	assert_string_equal(rig_place(&rig, mover), "0:5");
	rig_finish(&rig, 5, mover);
	rig_close(&rig);
}

/* Aim: the job that takes the GPUs between two moves has them; the same events give the same log,
 * and what was saved in between goes on alike. */
static void test_moves_replay(void **state)
{
	(void)state;
	struct sw_err err = {0};
	uint64_t hashes[2][2];
	for (int saved = 0; saved < 2; saved++) {
		struct rig rig;
		const struct sw_engine_config config = {
			.policy = &sw_policy_fifo, .placement = &sw_placement_pack, .terms.moves = SW_MOVES_NEVER};
		rig_open(&rig, one_of_four, 1, config, NULL);
		uint32_t mover = rig_submit_plain(&rig, 0, 2, 100), next = rig_submit_plain(&rig, 0, 3, 100);
		settle(&rig, mover);
		rig_event(&rig, 1, move_to(&rig, mover, 0xc));
		if (saved == 1) {
			struct sw_pack pack = {0};
			struct sw_engine *loaded = NULL;
			struct sw_engine_config same = config;
			bool adopted = true;
			size_t size;
			same.params = rig.params;
			sw_engine_save(rig.engine, &pack);
			unsigned char *bytes = sw_pack_take(&pack, &size);
			rig_must(sw_engine_load(&same, bytes, size, &loaded, &adopted, &err), &err);
			assert_false(adopted);
			sw_engine_free(rig.engine);
			rig.engine = loaded;
			free(bytes);
		}
		assert_string_equal(rig_place(&rig, mover), "0:c");
		uint32_t small = rig_submit_plain(&rig, 2, 1, 100);
		rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_CANCEL, .job = {next}});
		assert_string_equal(rig_place(&rig, small), "0:1");
		settle(&rig, mover);
		rig_event(&rig, 4, move_to(&rig, mover, 0x3));
		assert_string_equal(rig_place(&rig, mover), "0:c");
		rig_event(&rig, 5, move_to(&rig, mover, 0xa));
		assert_string_equal(rig_place(&rig, mover), "0:a");
		hashes[saved][0] = sw_engine_log_hash(rig.engine);
		hashes[saved][1] = sw_engine_command_hash(rig.engine);
		rig_close(&rig);
	}
	assert_memory_equal(hashes[0], hashes[1], sizeof hashes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comes_home),
		cmocka_unit_test(test_others_do_not),
		cmocka_unit_test(test_homes_are_left_free),
		cmocka_unit_test(test_homes_on_other_nodes),
		cmocka_unit_test(test_homes_do_not_tear_apart),
		cmocka_unit_test(test_few_homes_are_taken),
		cmocka_unit_test(test_home_must_fit),
		cmocka_unit_test(test_home_survives_second_thoughts),
		cmocka_unit_test(test_ends_after_the_stop),
		cmocka_unit_test(test_moves_restart),
		cmocka_unit_test(test_goes_on_elsewhere),
		cmocka_unit_test(test_moves_replay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
