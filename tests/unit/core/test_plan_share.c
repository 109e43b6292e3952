/* The verbs of a plan: several jobs on one GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

/* ---- share ---- */

static struct sw_job_spec sharer(uint64_t gib, uint32_t compute_milli, uint8_t job_class)
{
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	spec.compute_milli = compute_milli;
	spec.job_class = job_class;
	return spec;
}

static void share_all_with_first(struct sw_plan *plan)
{
	static const enum sw_answer expected[] = {
		[1] = SW_YES,	  /* 30 + 30 of 80 GiB, 500 + 500 */
		[2] = SW_NO_ROOM, /* no compute is left for a guaranteed job */
		[3] = SW_YES,	  /* an opportunistic one takes what is left */
		[4] = SW_NO_ROOM, /* 71 GiB are gone */
		[5] = SW_YES,	  /* the last byte */
		[6] = SW_MISUSE,  /* does not say how much memory it needs */
	};
	for (uint32_t id = 1; id <= 6; id++)
		assert_int_equal(sw_plan_run(plan, job_of(plan, id), SW_WISH(.where = sw_beside(job_of(plan, 0)))), expected[id]);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_beside(job_of(plan, 2)))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_beside(job_of(plan, 4)))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, &made_up, SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_beside(&made_up))), SW_MISUSE);
}

/* Aim: jobs share a GPU up to its memory, guaranteed ones up to its compute, and only those
 * that say what they need. */
static void test_share(void **state)
{
	(void)state;
	const struct sw_topology_node one[] = {RIG_NODE(0, 1)};
	const struct sw_job_spec specs[] = {
		sharer(30, 500, SW_CLASS_GUARANTEED),	  sharer(30, 500, SW_CLASS_GUARANTEED),	 sharer(1, 1, SW_CLASS_GUARANTEED),
		sharer(11, 1000, SW_CLASS_OPPORTUNISTIC), sharer(10, 1, SW_CLASS_OPPORTUNISTIC), sharer(9, 0, SW_CLASS_OPPORTUNISTIC),
		sharer(0, 1, SW_CLASS_OPPORTUNISTIC),
	};
	struct rig rig;
	open_scripted(&rig, one, 1, (struct sw_engine_config){0});
	for (size_t j = 0; j < RIG_COUNT(specs); j++)
		rig_submit(&rig, 0, &specs[j]);
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, share_all_with_first);
	assert_int_equal(rig_commands(&rig), 3);
	assert_string_equal(rig_place(&rig, 5), "0:1");
	/* The host goes, the guests stay, and the GPU is not free. */
	rig_finish(&rig, 2, 0);
	assert_true(rig_runs(&rig, 1) && rig_runs(&rig, 3) && rig_runs(&rig, 5));
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 0);
	rig_close(&rig);
}

static void share_nine(struct sw_plan *plan)
{
	for (uint32_t id = 1; id < SW_GPU_RESIDENTS_MAX; id++)
		assert_int_equal(sw_plan_run(plan, job_of(plan, id), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, SW_GPU_RESIDENTS_MAX), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_NO_ROOM);
}

/* Aim: a GPU has at most so many residents, however small they are. */
static void test_share_residents(void **state)
{
	(void)state;
	const struct sw_topology_node one[] = {RIG_NODE(0, 1)};
	struct sw_job_spec tiny = sharer(1, 1, SW_CLASS_OPPORTUNISTIC);
	struct rig rig;
	open_scripted(&rig, one, 1, (struct sw_engine_config){0});
	for (uint32_t j = 0; j <= SW_GPU_RESIDENTS_MAX; j++)
		rig_submit(&rig, 0, &tiny);
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, share_nine);
	rig_close(&rig);
}

static void share_other_sizes(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
	assert_int_equal(job_of(plan, 2)->gpus_held, 2);
	/* A whole GPU is not shared, not even by its holder's wish. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), NULL), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 4), SW_WISH(.where = sw_beside(job_of(plan, 3)))), SW_MISUSE);
}

/* Aim: a guest runs on as many GPUs as its host, if that is among its sizes; a job of unknown
 * memory has its GPUs for itself. */
static void test_share_sizes(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	struct sw_job_spec host = sharer(10, 100, SW_CLASS_GUARANTEED), guest = sharer(10, 100, SW_CLASS_GUARANTEED),
			   whole = rig_spec(1, 10);
	host.gpus = host.min_gpus = host.max_gpus = 2;
	rig_submit(&rig, 0, &host);
	rig_submit(&rig, 0, &guest);
	guest.max_gpus = 2;
	rig_submit(&rig, 0, &guest);
	rig_submit(&rig, 0, &whole);
	rig_submit(&rig, 0, &guest);
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, share_other_sizes);
	char place[256];
	snprintf(place, sizeof place, "%s", rig_place(&rig, 0));
	assert_string_equal(rig_place(&rig, 2), place);
	rig_close(&rig);
}

/* ---- limit ---- */

static void change_limits(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), 40 * RIG_GIB, 300), SW_YES);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), 81 * RIG_GIB, 300), SW_NO_ROOM);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), 0, 300), SW_MISUSE);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), RIG_GIB, 0), SW_MISUSE);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), RIG_GIB, 1001), SW_MISUSE);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 1), RIG_GIB, 1), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
	/* Now another holds the rest. */
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), 51 * RIG_GIB, 300), SW_NO_ROOM);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), 50 * RIG_GIB, 301), SW_NO_ROOM);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), 50 * RIG_GIB, 300), SW_YES);
}

/* Aim: a job's share of its GPUs can be changed while it runs, up to what others leave;
 * the command comes once. */
static void test_limit(void **state)
{
	(void)state;
	const struct sw_topology_node one[] = {RIG_NODE(0, 1)};
	struct sw_job_spec host = sharer(80, 1000, SW_CLASS_GUARANTEED), guest = sharer(30, 700, SW_CLASS_GUARANTEED);
	struct rig rig;
	open_scripted(&rig, one, 1, (struct sw_engine_config){0});
	rig_submit(&rig, 0, &host);
	rig_submit(&rig, 0, &guest);
	run_script(&rig, 0, start_first);
	run_script(&rig, 1, change_limits);
	assert_int_equal(rig_commands(&rig), 2);
	assert_non_null(rig_command(&rig, SW_CMD_LIMIT, 0));
	assert_int_equal(rig_job(&rig, 0)->gpu_memory_bytes, 50 * RIG_GIB);
	assert_int_equal(rig_job(&rig, 0)->compute_milli, 300);
	assert_int_equal(rig_job(&rig, 0)->since, 0);
	rig_close(&rig);
}

static void raise_limits(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), 60 * RIG_GIB, 900), SW_YES);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: limits belong to a run: a job that must wait again asks for what it asked for at first, so
 * that its policy cannot have made it impossible to place. */
static void test_limits_end_with_the_run(void **state)
{
	(void)state;
	const struct sw_topology_node one[] = {RIG_NODE(0, 1)};
	for (int how = 0; how < 4; how++) {
		struct rig rig;
		struct sw_job_spec spec = sharer(10, 100, SW_CLASS_GUARANTEED);
		spec.retries = 1;
		open_scripted(&rig, one, 1, (struct sw_engine_config){0});
		rig_submit(&rig, 0, &spec);
		run_script(&rig, 0, start_first);
		run_script(&rig, 1, raise_limits);
		assert_int_equal(rig_job(&rig, 0)->gpu_memory_bytes, 60 * RIG_GIB);
		if (how == 0)
			run_script(&rig, 2, preempt_first);
		if (how == 1)
			rig_event(&rig, 2, rig_answer(&rig, SW_EV_FAIL, 0));
		if (how == 2)
			rig_event(&rig, 2, rig_node_event(SW_EV_NODE_DOWN, 0));
		if (how == 3)
			rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
		assert_int_equal(rig_job(&rig, 0)->gpu_memory_bytes, 10 * RIG_GIB);
		assert_int_equal(rig_job(&rig, 0)->compute_milli, 100);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share), cmocka_unit_test(test_share_residents),	      cmocka_unit_test(test_share_sizes),
		cmocka_unit_test(test_limit), cmocka_unit_test(test_limits_end_with_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
