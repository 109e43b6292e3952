/* How much work a job has left once a run of it is over: all of it where nothing of the run is
 * kept, what was left where its state is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

#define HOUR 3600

static const struct sw_engine_config live = {.placement = &sw_placement_pack, .terms.moves = SW_MOVES_RESTART};
static const struct sw_topology_node one_by_two[] = {RIG_NODE(0, 1), RIG_NODE(0, 1)};

static int64_t left_s(const struct rig *rig, uint32_t id)
{
	return sw_job_remaining(sw_engine_view(rig->engine), rig_job(rig, id)) / SW_NS_PER_S;
}

/* Job 0, of an hour of work, runs since the start. */
static void open_one(struct rig *rig, struct sw_engine_config config, enum sw_stop_rule rule)
{
	struct sw_job_spec spec = rig_spec(1, HOUR);
	open_scripted(rig, one_by_two, 2, config);
	spec.knowledge = SW_PREDICTED;
	spec.stop_rule = (uint8_t)rule;
	rig_submit(rig, 0, &spec);
	run_script(rig, 0, start_first);
	struct sw_event keeps = rig_answer(rig, SW_EV_KEEPS, 0);
	keeps.gpus = keeps.frees = true;
	rig_event(rig, 0, keeps);
	rig_event(rig, 0, rig_answer(rig, SW_EV_BEGUN, 0));
	rig_tick(rig, 3000);
	assert_int_equal(left_s(rig, 0), 600);
}

static void stop_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

static void send_first_to_other_node(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_on((struct sw_node_id){1}))), SW_YES);
}

static void assert_all_left(struct rig *rig)
{
	assert_int_equal(left_s(rig, 0), rig_runs(rig, 0) ? HOUR - (rig->now / SW_NS_PER_S - 3000) : HOUR);
	rig_close(rig);
}

/* Aim: a run that is stopped and not kept leaves all of the work, however it was stopped. */
static void test_stopped(void **state)
{
	(void)state;
	struct rig rig;
	open_one(&rig, live, SW_STOP_RESTART);
	run_script(&rig, 3000, stop_first);
	assert_all_left(&rig);

	open_one(&rig, live, SW_STOP_RESTART);
	rig_event(&rig, 3000, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
	assert_all_left(&rig);

	open_one(&rig, live, SW_STOP_RESTART);
	rig_event(&rig, 3000, rig_node_event(SW_EV_NODE_DOWN, 0));
	assert_all_left(&rig);

	open_one(&rig, live, SW_STOP_SUSPEND);
	run_script(&rig, 3000, stop_first);
	rig_event(&rig, 3000, rig_node_event(SW_EV_NODE_DOWN, 0));
	assert_all_left(&rig);
}

/* Aim: the next run begins with all of the work where one begins at once. */
static void test_begins_anew(void **state)
{
	(void)state;
	struct rig rig;
	open_one(&rig, live, SW_STOP_RESTART);
	run_script(&rig, 3000, send_first_to_other_node);
	assert_string_equal(rig_place(&rig, 0), "1:1");
	assert_all_left(&rig);

	open_one(&rig, live, SW_STOP_RESTART);
	rig_event(&rig, 3000, rig_answer(&rig, SW_EV_ANEW, 0));
	rig_tick(&rig, 3010);
	assert_int_equal(left_s(&rig, 0), HOUR - 10);
	assert_all_left(&rig);
}

/* Aim: after a failure all of the work is left unless the event says how much. */
static void test_failed(void **state)
{
	(void)state;
	struct rig rig;
	for (int said = 0; said < 2; said++) {
		open_one(&rig, live, SW_STOP_RESTART);
		struct sw_event failure = rig_answer(&rig, SW_EV_FAIL, 0);
		failure.verdict = SW_FAIL_FREE;
		failure.left_ns = said ? 900 * SW_NS_PER_S : -1;
		rig_event(&rig, 3000, failure);
		assert_int_equal(left_s(&rig, 0), said ? 900 : HOUR);
		rig_close(&rig);
	}
}

/* Aim: a run that stands where it was, and one whose state goes anywhere, has what it did; so has
 * one of which the world says so later. */
static void test_kept(void **state)
{
	(void)state;
	struct rig rig;
	open_one(&rig, live, SW_STOP_SUSPEND);
	run_script(&rig, 3000, stop_first);
	assert_int_equal(left_s(&rig, 0), 600);
	run_script(&rig, 3100, start_first);
	rig_tick(&rig, 3200);
	assert_int_equal(left_s(&rig, 0), 500);
	rig_close(&rig);

	struct sw_engine_config keeping = live;
	keeping.terms.keeps_state = true;
	open_one(&rig, keeping, SW_STOP_AS_WORLD);
	run_script(&rig, 3000, stop_first);
	assert_int_equal(left_s(&rig, 0), 600);
	rig_close(&rig);

	open_one(&rig, live, SW_STOP_RESTART);
	run_script(&rig, 3000, stop_first);
	struct sw_event progress = rig_answer(&rig, SW_EV_PROGRESS, 0);
	progress.left_ns = 700 * SW_NS_PER_S;
	rig_event(&rig, 3000, progress);
	run_script(&rig, 3100, start_first);
	assert_int_equal(left_s(&rig, 0), 700);
	rig_close(&rig);
}

/* Aim: a program that starts again still knows how much work there was. */
static void test_saved(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_pack bytes = {0};
	struct sw_engine *loaded = NULL;
	struct sw_err err = {0};
	struct sw_engine_config config = live;
	bool adopted;
	open_one(&rig, live, SW_STOP_RESTART);
	config.policy = &scripted;
	config.params = rig.params;
	sw_engine_save(rig.engine, &bytes);
	rig_must(sw_engine_load(&config, bytes.bytes, bytes.size, &loaded, &adopted, &err), &err);
	sw_pack_release(&bytes);
	sw_engine_free(rig.engine);
	rig.engine = loaded;
	run_script(&rig, 3000, stop_first);
	assert_all_left(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped), cmocka_unit_test(test_begins_anew), cmocka_unit_test(test_failed),
		cmocka_unit_test(test_kept),	cmocka_unit_test(test_saved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
