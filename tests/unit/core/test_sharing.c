/* The verbs of policies that tell classes of jobs apart: in another class for one run, on GPUs of
 * their choice, over opportunistic jobs, and from one class to the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/state.h"
#include "scripted.h"

static const struct sw_topology_node one_by_two[] = {RIG_NODE(0, 2)};

static struct sw_job_spec spec_of(uint32_t gpus, uint64_t gib, uint8_t job_class)
{
	struct sw_job_spec spec = rig_spec(gpus, 1000);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	spec.job_class = job_class;
	return spec;
}

static uint32_t submit(struct rig *rig, int64_t at_s, uint32_t gpus, uint64_t gib, uint8_t job_class)
{
	struct sw_job_spec spec = spec_of(gpus, gib, job_class);
	return rig_submit(rig, at_s, &spec);
}

static void set_quota(struct rig *rig, int64_t at_s, uint32_t gpus)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = gpus});
}

/* ---- in another class ---- */

static void start_as_opportunistic(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_OVER_QUOTA);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC)), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC)), SW_MISUSE);
	/* There is no room for two more, whatever they are. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_OPPORTUNISTIC)), SW_NO_ROOM);
	assert_int_equal(job_of(plan, 1)->job_class, SW_CLASS_GUARANTEED);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: a guaranteed job can run as an opportunistic one, which its quota does not count, and is
 * what it asked to be once it has stopped. */
static void test_class_of_one_run(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_by_two, 1, (struct sw_engine_config){0});
	set_quota(&rig, 0, 0);
	submit(&rig, 0, 1, 10, SW_CLASS_GUARANTEED);
	submit(&rig, 0, 2, 10, SW_CLASS_GUARANTEED);
	run_script(&rig, 1, start_as_opportunistic);
	assert_true(rig_runs(&rig, 0));
	assert_int_equal(rig_job(&rig, 0)->job_class, SW_CLASS_OPPORTUNISTIC);
	assert_int_equal(sw_view_tenant_held(sw_engine_view(rig.engine), 0), 0);
	assert_int_equal(sw_view_tenant_borrowed(sw_engine_view(rig.engine), 0), 1);
	run_script(&rig, 2, preempt_first);
	assert_int_equal(rig_job(&rig, 0)->job_class, SW_CLASS_GUARANTEED);
	assert_int_equal(sw_view_tenant_borrowed(sw_engine_view(rig.engine), 0), 0);
	rig_close(&rig);
}

static bool place_on_last(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot)
{
	(void)job;
	return sw_spot_add(spot, (struct sw_node_id){sw_view_nodes(view) - 1}, gpus, 0, 0);
}

static void start_by_own_rule(struct sw_plan *plan)
{
	static const struct sw_placement last = {.abi = SW_POLICY_ABI, .name = "last", .about = "the last node", .place = place_on_last};
	static const struct sw_placement empty = {.abi = SW_POLICY_ABI, .name = "empty", .about = "none"};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_by(&empty))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_by(&last))), SW_OVER_QUOTA);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_by(&last))), SW_YES);
	/* The other node has room, but the rule does not know it. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_by(&last))), SW_NO_ROOM);
	assert_int_equal(job_of(plan, 1)->job_class, SW_CLASS_GUARANTEED);
}

/* Aim: a policy can start a job by a placement rule of its own, in a class of its
 * choice; all GPUs or none. */
static void test_start_by_own_rule(void **state)
{
	(void)state;
	static const struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};
	struct rig rig;
	open_scripted(&rig, nodes, 2, (struct sw_engine_config){0});
	set_quota(&rig, 0, 0);
	submit(&rig, 0, 1, 10, SW_CLASS_GUARANTEED);
	submit(&rig, 0, 2, 10, SW_CLASS_GUARANTEED);
	run_script(&rig, 1, start_by_own_rule);
	assert_string_equal(rig_place(&rig, 0), "1:1");
	assert_false(rig_runs(&rig, 1));
	rig_close(&rig);
}

/* ---- on GPUs of the policy's choice ---- */

static void start_at_odd_places(struct sw_plan *plan)
{
	const struct sw_gpus first = {{0}, 1}, both[] = {{{0}, 2}, {{1}, 1}}, twice[] = {{{0}, 1}, {{0}, 2}}, beyond = {{1}, 4},
			     nowhere = {{2}, 1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&first, 1))), SW_YES);
	/* Beside it: an opportunistic job may, a guaranteed one finds no compute,
	 * and 71 GiB find no room. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&first, 1))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&first, 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&first, 1))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(twice, 2))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&first, 1))),
			 SW_MISUSE); /* it asked for two */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&beyond, 1))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&nowhere, 1))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&first, 0))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, &made_up, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&first, 1))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(both, 2))), SW_YES);
}

/* Aim: a job starts on exactly the GPUs that the policy names, if they are there and have room. */
static void test_start_at(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	submit(&rig, 0, 1, 10, SW_CLASS_GUARANTEED);
	submit(&rig, 0, 1, 10, SW_CLASS_GUARANTEED);
	submit(&rig, 0, 1, 71, SW_CLASS_OPPORTUNISTIC);
	submit(&rig, 0, 2, 10, SW_CLASS_OPPORTUNISTIC);
	run_script(&rig, 1, start_at_odd_places);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	assert_string_equal(rig_place(&rig, 1), "0:1");
	assert_string_equal(rig_place(&rig, 3), "0:2 1:1");
	rig_close(&rig);
}

static void ask_for_least_used(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_gpus where[2];
	/* GPU 0 is used by 0.6, GPU 1 by 0.3, GPU 2 by 0.9; GPU 3 is idle. */
	for (uint32_t id = 0; id < 3; id++) {
		const struct sw_gpus at = {{id / 2}, UINT64_C(1) << id % 2};
		assert_int_equal(sw_plan_run(plan, job_of(plan, id), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&at, 1))), SW_YES);
	}
	assert_int_equal(sw_gpus_least_used(view, job_of(plan, 3), 800, where, 2), 1);
	assert_true(where[0].node.v == 1 && where[0].mask == 2);
	assert_int_equal(sw_gpus_least_used(view, job_of(plan, 4), 800, where, 2), 2);
	assert_true(where[0].node.v == 1 && where[0].mask == 2 && where[1].node.v == 0 && where[1].mask == 2);
	assert_int_equal(sw_gpus_least_used(view, job_of(plan, 4), 800, where, 1), 0);
	assert_int_equal(sw_gpus_least_used(view, job_of(plan, 4), 300, where, 2), 0); /* less than that, not as much */
	/* 60 GiB find no room beside 30. */
	assert_int_equal(sw_gpus_least_used(view, job_of(plan, 5), 1000, where, 2), 0);
	assert_int_equal(sw_gpus_least_used(view, &made_up, 1000, where, 2), 0);
}

/* Aim: the least used GPUs are idle ones, then those whose residents use least, below the line and
 * with room for the memory. */
static void test_least_used(void **state)
{
	(void)state;
	static const uint16_t use[] = {600, 300, 900};
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	for (uint32_t id = 0; id < 3; id++) {
		struct sw_job_spec spec = spec_of(1, 30, SW_CLASS_GUARANTEED);
		spec.use_milli = use[id];
		rig_submit(&rig, 0, &spec);
	}
	submit(&rig, 0, 1, 10, SW_CLASS_OPPORTUNISTIC);
	submit(&rig, 0, 2, 10, SW_CLASS_OPPORTUNISTIC);
	submit(&rig, 0, 2, 60, SW_CLASS_OPPORTUNISTIC);
	run_script(&rig, 1, ask_for_least_used);
	rig_close(&rig);
}

/* ---- over opportunistic jobs ---- */

static void start_fourth_over(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), NULL), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC)), SW_MISUSE); /* it runs */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC)), SW_YES);
}

static void refuse_fourth(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC)), SW_TOO_SOON);
}

/* Three opportunistic jobs on the two GPUs of a node: 40 GiB and, later, 30 GiB on the
 * first, 40 GiB on the second. */
static void fill_with_opportunistic(struct rig *rig, struct sw_engine_config config)
{
	open_scripted(rig, one_by_two, 1, config);
	submit(rig, 0, 1, 40, SW_CLASS_OPPORTUNISTIC);
	submit(rig, 0, 1, 40, SW_CLASS_OPPORTUNISTIC);
	run_script(rig, 0, start_all);
	submit(rig, 0, 1, 30, SW_CLASS_OPPORTUNISTIC);
}

static void third_beside_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
}

/* Aim: a guaranteed job starts where only opportunistic ones are; a job that has room beside it
 * stays, the youngest in the way goes. */
static void test_start_over(void **state)
{
	(void)state;
	struct rig rig;
	fill_with_opportunistic(&rig, (struct sw_engine_config){0});
	run_script(&rig, 1, third_beside_first);
	submit(&rig, 2, 2, 40, SW_CLASS_GUARANTEED);
	run_script(&rig, 3, start_fourth_over);
	assert_string_equal(rig_place(&rig, 3), "0:3");
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 1) && !rig_runs(&rig, 2));
	assert_non_null(rig_command(&rig, SW_CMD_STOP, 2));
	assert_int_equal(rig_commands(&rig), 2);
	rig_close(&rig);
}

/* Aim: where one of those in the way is protected, all stay. */
static void test_start_over_is_too_soon(void **state)
{
	(void)state;
	struct rig rig;
	fill_with_opportunistic(&rig, (struct sw_engine_config){.terms.quantum_ns = 60 * SW_NS_PER_S});
	run_script(&rig, 30, third_beside_first);
	submit(&rig, 70, 2, 80, SW_CLASS_GUARANTEED); /* the first two could go, the third cannot yet */
	run_script(&rig, 71, refuse_fourth);
	assert_int_equal(rig_commands(&rig), 0);
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 1) && rig_runs(&rig, 2));
	/* It may go then, and the engine wakes for it. */
	assert_int_equal(rig.step.wake_at, 90 * SW_NS_PER_S);
	run_script(&rig, 90, start_fourth_over);
	assert_true(!rig_runs(&rig, 0) && !rig_runs(&rig, 1) && !rig_runs(&rig, 2) && rig_runs(&rig, 3));
	rig_close(&rig);
}

/* ---- from one class to the other ---- */

static void upgrade_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)), SW_MISUSE);
}

static void fail_to_upgrade_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)),
			 SW_OVER_QUOTA);
}

/* Aim: a job is upgraded where it is once its quota has room: its share changes, nothing else. */
static void test_upgrade_in_place(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, one_by_two, 1, (struct sw_engine_config){0});
	set_quota(&rig, 0, 0);
	submit(&rig, 0, 1, 10, SW_CLASS_GUARANTEED);
	submit(&rig, 0, 2, 10, SW_CLASS_GUARANTEED);
	run_script(&rig, 1, start_as_opportunistic);
	run_script(&rig, 2, fail_to_upgrade_first);
	assert_int_equal(rig_commands(&rig), 0);
	set_quota(&rig, 3, 1);
	run_script(&rig, 4, upgrade_first);
	assert_int_equal(rig_commands(&rig), 1);
	assert_non_null(rig_command(&rig, SW_CMD_LIMIT, 0));
	assert_int_equal(rig_job(&rig, 0)->job_class, SW_CLASS_GUARANTEED);
	assert_int_equal(rig_job(&rig, 0)->since, SW_NS_PER_S);
	assert_int_equal(sw_view_tenant_held(sw_engine_view(rig.engine), 0), 1);
	rig_close(&rig);
}

static void second_beside_first(struct sw_plan *plan)
{
	const struct sw_gpus first = {{0}, 1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&first, 1))), SW_YES);
}

static void upgrade_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)), SW_YES);
}

static void no_room_for_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)), SW_NO_ROOM);
}

/* Aim: beside a guaranteed job it moves to a place of its own, or stays what and where it is. */
static void test_upgrade_elsewhere(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++) {
		struct rig rig;
		open_scripted(&rig, one_by_two, 1, (struct sw_engine_config){.terms.keeps_state = true});
		submit(&rig, 0, 1, 10, SW_CLASS_GUARANTEED);
		submit(&rig, 0, 1, 10, SW_CLASS_GUARANTEED);
		run_script(&rig, 1, second_beside_first);
		submit(&rig, 2, 1, 10, SW_CLASS_GUARANTEED);
		run_script(&rig, 3, full ? no_room_for_second : upgrade_second);
		assert_string_equal(rig_place(&rig, 1), full ? "0:1" : "0:2");
		assert_int_equal(rig_job(&rig, 1)->job_class, full ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED);
		assert_int_equal(rig_job(&rig, 1)->migrations, !full);
		rig_close(&rig);
	}
}

/* ---- walking the order ---- */

static uint32_t walked[8], walked_count;

static sw_ns walk(struct sw_plan *plan)
{
	walked_count = 0;
	for (const struct sw_job *job = sw_order_next(plan, false); job != NULL; job = sw_order_next(plan, job->gpus == 1))
		walked[walked_count++] = job->id.v;
	assert_null(sw_order_next(plan, false));
	return SW_TIME_NEVER;
}

static int64_t by_class(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->asked_class;
}

/* Aim: the walk gives waiting jobs in the policy's order, and of those that are alike none after
 * the one that was given up. */
static void test_walk(void **state)
{
	(void)state;
	static const struct sw_order order = {.by_class = true};
	static const struct sw_policy walker = {
		.abi = SW_POLICY_ABI, .name = "walker", .about = "walks", .order = &order, .key = by_class, .decide = walk};
	static const uint32_t expected[] = {0, 2, 4, 1};
	struct rig rig;
	rig_open(&rig, one_by_two, 1, (struct sw_engine_config){.policy = &walker}, NULL);
	for (uint32_t id = 0; id < 5; id++) /* two GPUs, or one; the second and the fourth are opportunistic */
		submit(&rig, 0, id % 2 == 0 ? 2 : 1, 10, id % 2 == 0 ? SW_CLASS_GUARANTEED : SW_CLASS_OPPORTUNISTIC);
	assert_int_equal(walked_count, RIG_COUNT(expected));
	assert_memory_equal(walked, expected, sizeof expected);
	rig_close(&rig);
}

/* Every job that waits and is new, in order, found by looking at all. */
static uint32_t find_fresh(struct sw_engine *engine, uint32_t found[8])
{
	uint32_t count = 0;
	for (uint32_t id = 0; id < sw_engine_job_count(engine); id++) {
		const struct sw_job *job = sw_engine_job(engine, (struct sw_job_id){id});
		if (!sw_job_is_waiting(job) || !job->fresh)
			continue;
		struct sw_rank rank = sw_order_rank(engine, id);
		assert_true(count < 8);
		uint32_t at = count++;
		for (; at > 0; at--) {
			struct sw_rank other = sw_order_rank(engine, found[at - 1]);
			if (sw_rank_before(&other, &rank))
				break;
			found[at] = found[at - 1];
		}
		found[at] = id;
	}
	return count;
}

static uint32_t fresh_given;

static sw_ns walk_fresh(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t expected[8] = {0}, count = find_fresh(view->engine, expected), given = 0;
	for (const struct sw_job *job = sw_order_next_fresh(plan); job != NULL; job = sw_order_next_fresh(plan)) {
		assert_true(given < count);
		assert_int_equal(job->id.v, expected[given++]);
		if (job->id.v % 3 == 0)
			(void)sw_plan_run(plan, job, NULL);
	}
	assert_int_equal(given, count);
	fresh_given += given;
	return sw_view_now(view) + SW_NS_PER_S;
}

static int64_t scattered(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->id.v % 5;
}

/* Aim: the walk over new jobs gives all of them in the policy's order, whatever they ask
 * for, once, and no others. */
static void test_walk_over_new_jobs(void **state)
{
	(void)state;
	static const struct sw_order order = {.by_class = true, .preemptive = true, .ties = SW_TIES_RUNNING_FIRST};
	static const struct sw_policy walker = {
		.abi = SW_POLICY_ABI, .name = "walker", .about = "walks", .order = &order, .key = scattered, .decide = walk_fresh};
	struct rig rig;
	struct sw_rng rng;
	sw_rng_seed(&rng, 3);
	rig_open(&rig, one_by_two, 1, (struct sw_engine_config){.policy = &walker}, NULL);
	for (int round = 0; round < 400; round++) {
		struct sw_job_spec specs[4];
		struct sw_event events[8];
		size_t count = 0;
		for (uint64_t more = sw_rng_below(&rng, 5); more > 0; more--) {
			specs[count] = rig_spec(1 + (uint32_t)sw_rng_below(&rng, 2), 100);
			specs[count].job_class = (uint8_t)sw_rng_below(&rng, 2);
			events[count] = (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &specs[count]};
			count++;
		}
		/* A released job is new again; one that ends or is held is not given any more. */
		static const enum sw_event_kind kinds[] = {SW_EV_HOLD, SW_EV_RELEASE, SW_EV_CANCEL};
		for (uint64_t more = sw_rng_below(&rng, 5); more > 0; more--)
			events[count++] = (struct sw_event){.kind = kinds[sw_rng_below(&rng, RIG_COUNT(kinds))],
							    .job = {(uint32_t)sw_rng_below(&rng, 40 + (uint64_t)round)}};
		rig_step(&rig, round, events, count);
	}
	assert_true(fresh_given > 800);
	rig_close(&rig);
}

/* Aim: a job that no decision has seen is still new after a node has come, and once only. */
static void test_new_jobs_and_nodes(void **state)
{
	(void)state;
	static const struct sw_order order = {.preemptive = true, .ties = SW_TIES_RUNNING_FIRST};
	static const struct sw_policy walker = {
		.abi = SW_POLICY_ABI, .name = "walker", .about = "walks", .order = &order, .key = scattered, .decide = walk_fresh};
	static const struct sw_topology_node node = RIG_NODE(0, 2);
	struct sw_job_spec spec = rig_spec(1, 100);
	const struct sw_event events[] = {{.kind = SW_EV_SUBMIT, .spec = &spec}, {.kind = SW_EV_NODE_ADD, .shape = &node}};
	struct rig rig;
	rig_open(&rig, one_by_two, 1, (struct sw_engine_config){.policy = &walker}, NULL);
	rig_tick(&rig, 0);
	fresh_given = 0;
	rig_step(&rig, 1, events, 2);
	assert_int_equal(fresh_given, 1);
	rig_tick(&rig, 2);
	assert_int_equal(fresh_given, 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_class_of_one_run),
		cmocka_unit_test(test_start_by_own_rule),
		cmocka_unit_test(test_start_at),
		cmocka_unit_test(test_least_used),
		cmocka_unit_test(test_start_over),
		cmocka_unit_test(test_start_over_is_too_soon),
		cmocka_unit_test(test_upgrade_in_place),
		cmocka_unit_test(test_upgrade_elsewhere),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_over_new_jobs),
		cmocka_unit_test(test_new_jobs_and_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
