/* What a policy that places jobs itself needs: nodes of its choice, neighbours without a promise,
 * where jobs are, what a stop leaves of them, how fast they run, and bytes for each node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

static const struct sw_node_id node_0 = {0}, node_1 = {1}, node_2 = {2};

static void start_on_nodes(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on(node_1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.gpus = 2, .where = sw_on(node_1))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.gpus = 2, .where = sw_on(node_0))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.gpus = 2, .where = sw_on(node_0))), SW_MISUSE); /* it asked for one */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.gpus = 1, .where = sw_on(node_2))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on(node_1))), SW_NO_ROOM); /* it is there */
	assert_int_equal(sw_plan_run(plan, &made_up, SW_WISH(.gpus = 1, .where = sw_on(node_0))), SW_MISUSE);
}

static void move_to_nodes(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on(node_0))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on(node_2))), SW_MISUSE);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on(node_0))), SW_YES);
}

/* Aim: a job starts on, and moves to, the node that is named, whatever the placement rule
 * would do, and only there. */
static void test_named_nodes(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.placement = &sw_placement_yarn});
	rig_submit_plain(&rig, 0, 1, 100);
	rig_submit_plain(&rig, 0, 2, 100);
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 0, start_on_nodes);
	assert_string_equal(rig_place(&rig, 0), "1:1");
	assert_string_equal(rig_place(&rig, 1), "0:3");
	run_script(&rig, 5, move_to_nodes);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	assert_int_equal(rig_job(&rig, 0)->migrations, 1);
	rig_close(&rig);
}

static void start_spread_out(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on(node_0))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

static void gather_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.gpus = 2, .where = sw_on(node_1))), SW_YES);
}

/* Aim: a job that is spread over nodes is found on each of them, and can be brought together where
 * it has a part already. */
static void test_spread_and_gathered(void **state)
{
	(void)state;
	static const struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};
	struct rig rig;
	uint32_t gpus = 0;
	open_scripted(&rig, nodes, 2, (struct sw_engine_config){.placement = &sw_placement_spread});
	rig_submit_plain(&rig, 0, 1, 100);
	rig_submit_plain(&rig, 0, 2, 100);
	run_script(&rig, 0, start_spread_out);
	const struct sw_view *view = sw_engine_view(rig.engine);
	const struct sw_job *spread = rig_job(&rig, 1);
	assert_int_not_equal(sw_job_node(view, spread, 0, &gpus).v, sw_job_node(view, spread, 1, NULL).v);
	assert_int_equal(gpus, 1);
	assert_int_equal(sw_job_node(view, spread, 2, NULL).v, SW_NO_NODE.v);
	assert_false(sw_jobs_meet(view, spread, rig_job(&rig, 0)));
	run_script(&rig, 1, gather_second);
	assert_string_equal(rig_place(&rig, 1), "1:3");
	assert_int_equal(sw_job_node(view, spread, 1, NULL).v, SW_NO_NODE.v);
	assert_int_equal(sw_job_node(view, &made_up, 0, NULL).v, SW_NO_NODE.v);
	rig_close(&rig);
}

static void pack_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))),
			 SW_NO_ROOM); /* all compute is promised */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.promise = SW_REST, .where = sw_beside(job_of(plan, 0)))),
			 SW_NO_ROOM); /* memory */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_beside(job_of(plan, 0)))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_beside(job_of(plan, 0)))), SW_MISUSE);
}

static void preempt_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
}

/* Aim: a job is packed beside one that was promised the whole GPU; it counts for nothing there but
 * its memory, until it stops. */
static void test_packed_without_a_promise(void **state)
{
	(void)state;
	struct rig rig;
	static const struct sw_topology_node one[] = {RIG_NODE(0, 1)};
	open_scripted(&rig, one, 1, (struct sw_engine_config){0});
	for (uint64_t gib = 30; gib <= 70; gib += 20) {
		struct sw_job_spec spec = rig_spec(1, 100);
		spec.gpu_memory_bytes = gib * RIG_GIB;
		rig_submit(&rig, 0, &spec);
	}
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, pack_second);
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 1));
	assert_true(sw_jobs_meet(sw_engine_view(rig.engine), rig_job(&rig, 0), rig_job(&rig, 1)));
	assert_int_equal(rig_job(&rig, 0)->compute_milli, 1000);
	assert_int_equal(rig_job(&rig, 1)->compute_milli, 0);
	run_script(&rig, 2, preempt_second);
	assert_int_equal(rig_job(&rig, 1)->compute_milli, 1000);
	rig_close(&rig);
}

/* Aim: what a stop leaves of a job follows from its world and from itself; one that stands in
 * place is still found there. */
static void test_what_a_stop_leaves(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec homely = rig_spec(1, 100), other = rig_spec(1, 100);
	homely.prefers_home = true;
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){0});
	rig_submit(&rig, 0, &other);
	rig_submit(&rig, 0, &homely);
	const struct sw_view *view = sw_engine_view(rig.engine);
	assert_int_equal(sw_job_keeps(view, rig_job(&rig, 0)), SW_KEEPS_NOTHING);
	assert_int_equal(sw_job_keeps(view, rig_job(&rig, 1)), SW_KEEPS_IN_PLACE);
	assert_int_equal(sw_job_node(view, rig_job(&rig, 1), 0, NULL).v, SW_NO_NODE.v);
	run_script(&rig, 0, start_all);
	run_script(&rig, 1, preempt_second);
	assert_int_equal(sw_job_node(view, rig_job(&rig, 1), 0, NULL).v, 0);
	assert_false(sw_jobs_meet(view, rig_job(&rig, 0), rig_job(&rig, 1)));
	rig_close(&rig);
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.terms.keeps_state = true});
	rig_submit(&rig, 0, &other);
	assert_int_equal(sw_job_keeps(sw_engine_view(rig.engine), rig_job(&rig, 0)), SW_KEEPS_ANYWHERE);
	rig_close(&rig);
}

/* Aim: the speed of a job is what its world told, full where it told nothing, and
 * unknown where no world tells. */
static void test_speed(void **state)
{
	(void)state;
	for (int tells = 0; tells < 2; tells++) {
		struct rig rig;
		open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.terms.tells_speed = tells});
		rig_submit_plain(&rig, 0, 1, 100);
		const struct sw_view *view = sw_engine_view(rig.engine);
		assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, 0)), 0);
		run_script(&rig, 0, start_first);
		assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, 0)), tells ? 1000 : 0);
		struct sw_event event = rig_answer(&rig, SW_EV_PROGRESS, 0);
		event.left_ns = 90 * SW_NS_PER_S;
		event.as_of = 10 * SW_NS_PER_S;
		event.ends_at = 160 * SW_NS_PER_S;
		rig_event(&rig, 10, event);
		assert_int_equal(sw_job_speed_milli(view, rig_job(&rig, 0)), tells ? 600 : 0);
		rig_close(&rig);
	}
}

static sw_ns write_on_nodes(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (uint32_t n = 0; n < sw_view_nodes(view); n++) {
		uint32_t *own = sw_node_state(view, (struct sw_node_id){n});
		assert_true(*own == 0 || *own == n + 1);
		*own = n + 1;
	}
	assert_null(sw_node_state(view, (struct sw_node_id){sw_view_nodes(view)}));
	return SW_TIME_NEVER;
}

/* Aim: a policy has bytes of its own for every node, zero when it joins and kept from then on. */
static void test_bytes_of_nodes(void **state)
{
	(void)state;
	static const struct sw_policy policy = {
		.abi = SW_POLICY_ABI, .name = "writer", .about = "writes", .decide = write_on_nodes, .node_state_size = sizeof(uint32_t)};
	static const struct sw_topology_node node = RIG_NODE(0, 2);
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &policy}, NULL);
	for (int64_t at = 1; at < 40; at++)
		rig_event(&rig, at, (struct sw_event){.kind = SW_EV_NODE_ADD, .shape = &node});
	assert_int_equal(sw_view_nodes(sw_engine_view(rig.engine)), 41);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named_nodes),
		cmocka_unit_test(test_spread_and_gathered),
		cmocka_unit_test(test_packed_without_a_promise),
		cmocka_unit_test(test_what_a_stop_leaves),
		cmocka_unit_test(test_speed),
		cmocka_unit_test(test_bytes_of_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
