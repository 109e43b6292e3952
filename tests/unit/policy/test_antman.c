/* antman by hand: which jobs run by right, which beside, which give way, and
 * which are promoted when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/core/rig.h"

static const struct sw_topology_node two[] = {RIG_NODE(0, 2)};
static const struct sw_topology_node four[] = {RIG_NODE(0, 4)};

static void open_antman(struct rig *rig, const struct sw_topology_node *nodes, const char *const *words)
{
	rig_open(rig, nodes, 1, (struct sw_engine_config){.policy = &sw_policy_antman, .terms.keeps_state = true}, words);
}

/* A job of tenant 0 that uses half of its GPUs, with this much memory on each. */
static uint32_t submit(struct rig *rig, int64_t at_s, uint32_t gpus, uint64_t gib, uint8_t job_class)
{
	struct sw_job_spec spec = rig_spec(gpus, 100000);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	spec.use_milli = 500;
	spec.job_class = job_class;
	return rig_submit(rig, at_s, &spec);
}

static uint32_t guaranteed(struct rig *rig, int64_t at_s, uint32_t gpus)
{
	return submit(rig, at_s, gpus, 10, SW_CLASS_GUARANTEED);
}

static uint32_t opportunistic(struct rig *rig, int64_t at_s, uint32_t gpus)
{
	return submit(rig, at_s, gpus, 10, SW_CLASS_OPPORTUNISTIC);
}

static void set_quota(struct rig *rig, int64_t at_s, uint32_t gpus)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = gpus});
}

static bool runs_by_right(const struct rig *rig, uint32_t id)
{
	return rig_runs(rig, id) && rig_job(rig, id)->job_class == SW_CLASS_GUARANTEED;
}

static bool runs_beside(const struct rig *rig, uint32_t id)
{
	return rig_runs(rig, id) && rig_job(rig, id)->job_class == SW_CLASS_OPPORTUNISTIC;
}

/* Aim: opportunistic jobs take idle GPUs first, then those that are used least, and
 * none that is used by 80 %. */
static void test_where_opportunistic_jobs_go(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, two, NULL);
	uint32_t first = guaranteed(&rig, 0, 1), idle = opportunistic(&rig, 1, 1);
	assert_string_equal(rig_place(&rig, first), "0:1");
	assert_string_equal(rig_place(&rig, idle), "0:2");
	/* Both are used by half: one more on each, then by all of it. */
	uint32_t second = opportunistic(&rig, 2, 1), third = opportunistic(&rig, 3, 1), fourth = opportunistic(&rig, 4, 1);
	assert_string_equal(rig_place(&rig, second), "0:1");
	assert_string_equal(rig_place(&rig, third), "0:2");
	assert_int_equal(rig_state(&rig, fourth), SW_JOB_WAITING);
	/* When one goes, the next one comes at once. */
	rig_finish(&rig, 5, second);
	assert_string_equal(rig_place(&rig, fourth), "0:1");
	rig_close(&rig);
}

/* Aim: a job whose memory does not fit beside others waits, and does not keep
 * smaller ones from trying. */
static void test_memory_decides(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, two, NULL);
	guaranteed(&rig, 0, 2);
	uint32_t large = submit(&rig, 1, 1, 75, SW_CLASS_OPPORTUNISTIC), unknown = submit(&rig, 1, 1, 0, SW_CLASS_OPPORTUNISTIC);
	uint32_t small = submit(&rig, 2, 1, 10, SW_CLASS_OPPORTUNISTIC);
	assert_false(rig_runs(&rig, large) || rig_runs(&rig, unknown));
	/* It is alike to those that found nothing: tried again when something changes. */
	rig_finish(&rig, 3, opportunistic(&rig, 3, 2));
	assert_true(runs_beside(&rig, small));
	assert_false(rig_runs(&rig, large) || rig_runs(&rig, unknown));
	rig_close(&rig);
}

/* Aim: a guaranteed job takes GPUs that only opportunistic jobs are on; these stay beside it, or
 * give way and come back elsewhere. */
static void test_guaranteed_jobs_go_first(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, two, NULL);
	uint32_t stays = opportunistic(&rig, 0, 1), goes = submit(&rig, 1, 1, 60, SW_CLASS_OPPORTUNISTIC);
	uint32_t master = submit(&rig, 2, 2, 30, SW_CLASS_GUARANTEED);
	assert_true(runs_by_right(&rig, master) && runs_beside(&rig, stays) && !rig_runs(&rig, goes));
	assert_string_equal(rig_place(&rig, master), "0:3");
	rig_finish(&rig, 100, master);
	assert_true(rig_runs(&rig, goes));
	rig_close(&rig);
}

/* Aim: a job beyond its quota runs beside others, and by right in the very decision in which quota
 * comes free, in place; both when a job ends and when the quota is raised. */
static void test_promoted_when_quota_frees(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, four, NULL);
	set_quota(&rig, 0, 1);
	uint32_t first = guaranteed(&rig, 1, 1), second = guaranteed(&rig, 2, 1), third = guaranteed(&rig, 3, 1);
	assert_true(runs_by_right(&rig, first) && runs_beside(&rig, second) && runs_beside(&rig, third));
	rig_finish(&rig, 10, first);
	assert_true(runs_by_right(&rig, second) && runs_beside(&rig, third)); /* the oldest */
	assert_int_equal(rig_job(&rig, second)->promotions, 1);
	assert_int_equal(rig_job(&rig, second)->migrations, 0);
	set_quota(&rig, 20, 2);
	assert_true(runs_by_right(&rig, third));
	rig_close(&rig);
}

/* Aim: a job beside a guaranteed one moves to a GPU that comes free and is promoted there. */
static void test_promoted_elsewhere(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, two, NULL);
	uint32_t first = guaranteed(&rig, 0, 1), second = guaranteed(&rig, 0, 1), third = guaranteed(&rig, 1, 1);
	assert_true(runs_by_right(&rig, first) && runs_by_right(&rig, second) && runs_beside(&rig, third));
	assert_string_equal(rig_place(&rig, third), "0:1");
	rig_finish(&rig, 10, second);
	assert_true(runs_by_right(&rig, third));
	assert_string_equal(rig_place(&rig, third), "0:2");
	rig_close(&rig);
}

/* Aim: without `auto` a guaranteed job waits for its quota, unless it says itself
 * that it would rather not. */
static void test_without_auto(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, four, (const char *const[]){"auto=off", NULL});
	set_quota(&rig, 0, 1);
	uint32_t first = guaranteed(&rig, 1, 1), second = guaranteed(&rig, 2, 1);
	assert_false(rig_runs(&rig, second));
	struct sw_job_spec spec = rig_spec(1, 1000);
	spec.is_auto = true;
	assert_true(runs_beside(&rig, rig_submit(&rig, 2, &spec)));
	rig_finish(&rig, 3, first);
	assert_true(runs_by_right(&rig, second));
	rig_close(&rig);
}

/* Aim: a large guaranteed job that has lost its patience is not overtaken by small ones, and what
 * it waits for is lent meanwhile. */
static void test_large_jobs_do_not_starve(void **state)
{
	(void)state;
	struct rig rig;
	uint32_t small[16];
	open_antman(&rig, four, (const char *const[]){"patience=1s", NULL});
	small[0] = guaranteed(&rig, 0, 1);
	small[1] = guaranteed(&rig, 0, 1);
	uint32_t large = submit(&rig, 1, 4, 0, SW_CLASS_GUARANTEED); /* it needs whole GPUs, so it cannot run beside others */
	for (uint32_t i = 2; i < 16; i++) {
		small[i] = guaranteed(&rig, i, 1);
		assert_true(runs_beside(&rig, small[i]) || !rig_runs(&rig, small[i]));
	}
	assert_true(runs_beside(&rig, small[2]) && runs_beside(&rig, small[3]));
	rig_finish(&rig, 20, small[0]);
	assert_false(rig_runs(&rig, large));
	rig_finish(&rig, 21, small[1]);
	assert_true(runs_by_right(&rig, large));
	rig_close(&rig);
}

/* Aim: an opportunistic job that has waited long enough is not overtaken by
 * other opportunistic ones. */
static void test_patience(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, two, (const char *const[]){"patience=100s", NULL});
	uint32_t first = opportunistic(&rig, 0, 1);
	uint32_t both = submit(&rig, 0, 2, 0, SW_CLASS_OPPORTUNISTIC); /* whole GPUs */
	uint32_t second = opportunistic(&rig, 1, 1);
	assert_true(rig_runs(&rig, first) && !rig_runs(&rig, both) && rig_runs(&rig, second));
	rig_finish(&rig, 200, second);
	assert_false(rig_runs(&rig, opportunistic(&rig, 201, 1)));
	rig_finish(&rig, 202, first);
	assert_true(rig_runs(&rig, both));
	rig_close(&rig);
}

static void expect_reason(const struct rig *rig, uint32_t id, const char *expected)
{
	char text[256];
	sw_engine_explain(rig->engine, (struct sw_job_id){id}, text, sizeof text);
	assert_string_equal(text, expected);
}

/* Aim: the reasons for waiting are true. */
static void test_explain(void **state)
{
	(void)state;
	struct rig rig;
	open_antman(&rig, two, NULL);
	guaranteed(&rig, 0, 2);
	uint32_t large = submit(&rig, 1, 1, 75, SW_CLASS_GUARANTEED), whole = submit(&rig, 1, 1, 0, SW_CLASS_OPPORTUNISTIC);
	expect_reason(
		&rig, large,
		"guaranteed jobs hold the GPUs or were submitted earlier; it needs 1 and 0 are idle; no GPUs that are used little enough "
		"have room for it beside others");
	expect_reason(&rig, whole, "it needs 1 GPU, 0 are idle, and it does not say how much GPU memory it needs, so it cannot share one");
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_opportunistic_jobs_go),
		cmocka_unit_test(test_memory_decides),
		cmocka_unit_test(test_guaranteed_jobs_go_first),
		cmocka_unit_test(test_promoted_when_quota_frees),
		cmocka_unit_test(test_promoted_elsewhere),
		cmocka_unit_test(test_without_auto),
		cmocka_unit_test(test_large_jobs_do_not_starve),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_explain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
