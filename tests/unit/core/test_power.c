/* Nodes that a policy switches off and on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripted.h"

#define S SW_NS_PER_S

static const struct sw_node_id first = {0}, second = {1};
static const struct sw_terms switching = {.keeps_state = true, .nodes_switch = true};

static void open_switching(struct rig *rig, struct sw_terms terms)
{
	open_scripted(rig, two_by_two, 2, (struct sw_engine_config){.terms = terms});
}

/* The command for this node in the last step. */
static const struct sw_command *node_command(const struct rig *rig, enum sw_command_kind kind, uint32_t node)
{
	for (size_t c = 0; c < rig->step.command_count; c++)
		if (rig->step.commands[c].kind == kind && rig->step.commands[c].node == node)
			return &rig->step.commands[c];
	return NULL;
}

static struct sw_node look(const struct rig *rig, struct sw_node_id id)
{
	struct sw_node node;
	sw_view_node(sw_engine_view(rig->engine), id, &node);
	return node;
}

static void second_off(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, second, false), SW_YES);
	assert_int_equal(sw_plan_node(plan, second, false), SW_MISUSE);
	assert_int_equal(sw_view_gpus(sw_plan_view(plan)), 2);
	assert_int_equal(sw_view_gpus_free(sw_plan_view(plan)), 2);
}

static void second_on(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, second, true), SW_YES);
	assert_int_equal(sw_plan_node(plan, second, true), SW_MISUSE);
	assert_int_equal(sw_plan_node(plan, second, false), SW_NO_ROOM);
	assert_int_equal(sw_view_gpus(sw_plan_view(plan)), 2);
}

static void none_fits(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_NO_ROOM);
}

/* Aim: a node that is off takes no job, and takes jobs again once its driver says that it is up; a
 * job that needs it waits and is told why. */
static void test_off_and_on(void **state)
{
	(void)state;
	struct rig rig;
	char text[256];
	open_switching(&rig, switching);
	run_script(&rig, 1, second_off);
	assert_non_null(node_command(&rig, SW_CMD_NODE_OFF, 1));
	assert_int_equal(rig_commands(&rig), 1);
	assert_int_equal(look(&rig, second).power, SW_POWER_OFF);
	assert_false(look(&rig, second).up);
	rig_submit_plain(&rig, 2, 4, 100);
	assert_int_equal(rig_state(&rig, 0), SW_JOB_WAITING);
	sw_engine_explain(rig.engine, (struct sw_job_id){0}, text, sizeof text);
	assert_string_equal(text, "it needs 4 GPUs and only 2 are up; 2 more are on nodes that are switched off");
	run_script(&rig, 3, second_on);
	assert_non_null(node_command(&rig, SW_CMD_NODE_ON, 1));
	assert_int_equal(look(&rig, second).power, SW_POWER_BOOTING);
	run_script(&rig, 4, none_fits);
	script = start_first;
	rig_event(&rig, 60, rig_node_event(SW_EV_NODE_UP, 1));
	assert_int_equal(look(&rig, second).power, SW_POWER_ON);
	assert_string_equal(rig_place(&rig, 0), "0:3 1:3");
	rig_close(&rig);
}

static void start_on_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_on(second))), SW_YES);
	assert_int_equal(sw_plan_node(plan, second, false), SW_NO_ROOM);
}

static void stop_and_switch(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, second, false), SW_NO_ROOM);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	/* Its processes are there until the command is carried out. */
	assert_int_equal(sw_plan_node(plan, second, false), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), SW_WISH(.where = sw_on(first)), 9 * S, 10 * S), SW_YES);
	assert_int_equal(sw_plan_node(plan, first, false), SW_NO_ROOM);
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), NULL, 0, 0), SW_YES);
}

/* Aim: a node on which there is anything stays on: a run, one that was stopped just now, GPUs that
 * are held; once it is empty it can be switched off. */
static void test_in_use(void **state)
{
	(void)state;
	struct rig rig;
	open_switching(&rig, switching);
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 1, start_on_second);
	run_script(&rig, 2, stop_and_switch);
	assert_int_equal(look(&rig, second).power, SW_POWER_ON);
	run_script(&rig, 3, second_off);
	rig_close(&rig);
}

static void suspend(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

static void stays_on(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, second, false), SW_NO_ROOM);
}

/* Aim: a node on which a run is suspended stays on, also one that is closed or lost. */
static void test_suspended_there(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.stop_rule = SW_STOP_SUSPEND;
	open_switching(&rig, (struct sw_terms){.nodes_switch = true, .moves = SW_MOVES_RESTART});
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 1, start_on_second);
	struct sw_event keeps = rig_answer(&rig, SW_EV_KEEPS, 0);
	keeps.gpus = 1;
	keeps.frees = true;
	rig_event(&rig, 2, keeps);
	run_script(&rig, 3, suspend);
	assert_int_not_equal(sw_engine_stands(rig.engine, (struct sw_job_id){0}), SW_NO_PART);
	run_script(&rig, 4, stays_on);
	rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_CANCEL, .job = {0}});
	rig_event(&rig, 6, rig_node_event(SW_EV_NODE_CLOSE, 1));
	run_script(&rig, 7, stays_on);
	rig_event(&rig, 8, rig_node_event(SW_EV_NODE_OPEN, 1));
	rig_event(&rig, 9, rig_node_event(SW_EV_NODE_DOWN, 1));
	run_script(&rig, 10, stays_on);
	rig_close(&rig);
}

static void cannot(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, (struct sw_node_id){2}, false), SW_MISUSE);
	assert_int_equal(sw_plan_node(plan, SW_NO_NODE, true), SW_MISUSE);
	assert_int_equal(sw_plan_node(plan, first, true), SW_MISUSE);
	assert_int_equal(sw_plan_node(plan, first, false), SW_KEPT);
}

/* Aim: where the world lets no node be switched the policy is told so, and no command is given. */
static void test_not_here(void **state)
{
	(void)state;
	struct rig rig;
	open_switching(&rig, (struct sw_terms){.keeps_state = true});
	run_script(&rig, 1, cannot);
	assert_int_equal(rig_commands(&rig), 0);
	assert_true(look(&rig, first).up);
	rig_close(&rig);
}

/* Aim: a failure of a node that is off is not seen; one that fails on its way up is down, and up
 * once its driver says so. */
static void test_failures(void **state)
{
	(void)state;
	struct rig rig;
	open_switching(&rig, switching);
	run_script(&rig, 1, second_off);
	rig_event(&rig, 2, rig_node_event(SW_EV_NODE_DOWN, 1));
	assert_int_equal(look(&rig, second).power, SW_POWER_OFF);
	run_script(&rig, 3, second_on);
	rig_event(&rig, 4, rig_node_event(SW_EV_NODE_DOWN, 1));
	assert_int_equal(look(&rig, second).power, SW_POWER_ON);
	assert_false(look(&rig, second).up);
	rig_event(&rig, 5, rig_node_event(SW_EV_NODE_UP, 1));
	assert_true(look(&rig, second).open);
	/* It has other GPUs, and with them it is up. */
	struct sw_topology_change change = {.shape = RIG_NODE(0, 3)};
	memset(change.to, SW_GPU_GONE, sizeof change.to);
	run_script(&rig, 6, second_off);
	rig_event(&rig, 6, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {1}, .change = &change});
	assert_int_equal(look(&rig, second).power, SW_POWER_ON);
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 5);
	/* Its operator has switched it on. */
	run_script(&rig, 6, second_off);
	rig_event(&rig, 7, rig_node_event(SW_EV_NODE_UP, 1));
	assert_int_equal(look(&rig, second).power, SW_POWER_ON);
	assert_true(look(&rig, second).open);
	rig_close(&rig);
}

static void all_off(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_node(plan, first, false), SW_YES);
	assert_int_equal(sw_plan_node(plan, second, false), SW_YES);
}

/* Aim: a policy that sleeps while jobs wait for nodes that it has switched off is replaced, and the
 * next one finds all nodes on their way up. */
static void test_sleeper(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms = switching, .fallback = &sw_policy_fifo});
	run_script(&rig, 1, all_off);
	rig_submit_plain(&rig, 2, 1, 100);
	assert_string_equal(sw_engine_policy(rig.engine), "fifo");
	rig_step_ns(&rig, rig.step.wake_at, NULL, 0);
	assert_non_null(node_command(&rig, SW_CMD_NODE_ON, 0));
	assert_non_null(node_command(&rig, SW_CMD_NODE_ON, 1));
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	rig_event(&rig, 60, rig_node_event(SW_EV_NODE_UP, 1));
	assert_string_equal(rig_place(&rig, 0), "1:1");
	assert_string_equal(sw_engine_policy(rig.engine), "fifo");
	rig_close(&rig);
}

/* Aim: another policy that is put in charge, and terms that let no node be switched any more,
 * switch all nodes on. */
static void test_taken_over(void **state)
{
	(void)state;
	for (int by_terms = 0; by_terms < 2; by_terms++) {
		struct rig rig;
		struct sw_err err = {0};
		const struct sw_terms never = {.keeps_state = true};
		open_switching(&rig, switching);
		run_script(&rig, 1, second_off);
		if (by_terms)
			rig_must(sw_engine_set_terms(rig.engine, &never, &err), &err);
		else
			rig_must(sw_engine_set_policy(rig.engine, &sw_policy_fifo, NULL, &err), &err);
		rig_tick(&rig, 2);
		assert_non_null(node_command(&rig, SW_CMD_NODE_ON, 1));
		assert_int_equal(look(&rig, second).power, SW_POWER_BOOTING);
		rig_close(&rig);
	}
}

static struct sw_engine *reload(struct rig *rig, const struct sw_policy *policy, bool *ret_adopted)
{
	struct sw_err err = {0};
	struct sw_pack bytes = {0};
	struct sw_engine *loaded = NULL;
	const struct sw_engine_config config = {
		.policy = policy, .params = rig->params, .placement = &sw_placement_count, .terms = switching};
	sw_engine_save(rig->engine, &bytes);
	rig_must(sw_engine_load(&config, bytes.bytes, bytes.size, &loaded, ret_adopted, &err), &err);
	sw_pack_release(&bytes);
	return loaded;
}

/* Aim: which nodes are off is saved and loaded; a policy that takes over while it is loaded finds
 * them on their way up. */
static void test_saved(void **state)
{
	(void)state;
	for (int other = 0; other < 2; other++) {
		struct rig rig;
		bool adopted;
		open_switching(&rig, switching);
		run_script(&rig, 1, second_off);
		struct sw_engine *loaded = reload(&rig, other ? &sw_policy_fifo : &scripted, &adopted);
		sw_engine_free(rig.engine);
		rig.engine = loaded;
		assert_int_equal(adopted, other);
		assert_int_equal(look(&rig, second).power, SW_POWER_OFF);
		rig_tick(&rig, 2);
		assert_int_equal(look(&rig, second).power, other ? SW_POWER_BOOTING : SW_POWER_OFF);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off_and_on), cmocka_unit_test(test_in_use),   cmocka_unit_test(test_suspended_there),
		cmocka_unit_test(test_not_here),   cmocka_unit_test(test_failures), cmocka_unit_test(test_sleeper),
		cmocka_unit_test(test_taken_over), cmocka_unit_test(test_saved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
