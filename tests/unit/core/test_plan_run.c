/* The wish: its zero value, fields that go together, and fields that contradict one another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "placement/registry.h"

#include "scripted.h"

static const struct sw_node_id node_0 = {0}, node_1 = {1};

static enum sw_answer run(struct sw_plan *plan, uint32_t id, const struct sw_wish *wish)
{
	return sw_plan_run(plan, job_of(plan, id), wish);
}

static struct sw_job_spec spec_of(uint32_t gpus, uint8_t job_class)
{
	struct sw_job_spec spec = rig_spec(gpus, 100);
	spec.gpu_memory_bytes = 10 * RIG_GIB;
	spec.job_class = job_class;
	return spec;
}

static void open_with(struct rig *rig, uint32_t guaranteed, uint32_t opportunistic)
{
	const struct sw_job_spec g = spec_of(1, SW_CLASS_GUARANTEED), o = spec_of(1, SW_CLASS_OPPORTUNISTIC);
	open_scripted(rig, two_by_two, 2, (struct sw_engine_config){.terms = {.keeps_state = true}});
	for (uint32_t i = 0; i < guaranteed; i++)
		rig_submit(rig, 0, &g);
	for (uint32_t i = 0; i < opportunistic; i++)
		rig_submit(rig, 0, &o);
}

static void start_plainly(struct sw_plan *plan)
{
	assert_int_equal(run(plan, 0, NULL), SW_YES);
	assert_int_equal(run(plan, 1, SW_WISH(.gpus = 0)), SW_YES);
}

/* Aim: no wish and the zero wish are the same: the job's own GPUs and class, by the cluster's
 * rule. */
static void test_zero_is_ordinary(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, 2, 0);
	run_script(&rig, 0, start_plainly);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	assert_string_equal(rig_place(&rig, 1), "0:2");
	assert_int_equal(rig_job(&rig, 1)->compute_milli, 1000);
	assert_int_equal(rig_job(&rig, 1)->job_class, SW_CLASS_GUARANTEED);
	rig_close(&rig);
}

static void contradict_waiting(struct sw_plan *plan)
{
	static const struct sw_gpus first = {{0}, 1};
	static const struct sw_placement empty = {.abi = SW_POLICY_ABI, .name = "empty", .about = "none"};
	static const struct sw_split two = {.parts = {{{0}, 0, 1}, {{0}, 1, 1}}, .count = 2, .step_milli = 1, .alone_milli = 1};
	const struct sw_wish contradictions[] = {
		{.gpus = 2},
		{.as = SW_AS_OPPORTUNISTIC + 1},
		{.promise = SW_REST + 1},
		{.evict = SW_EVICT_SPARING + 1},
		{.where = {.kind = SW_WHERE_PARTS + 1}},
		{.where = sw_by(&empty)},
		{.where = sw_on((struct sw_node_id){2})},
		{.where = sw_at(NULL, 1)},
		{.where = sw_at(&first, 0)},
		{.where = sw_beside(NULL)},
		{.where = sw_beside(job_of(plan, 1))}, /* it waits */
		{.where = sw_in_parts(NULL)},
		{.where = sw_in_parts(&two)},		/* no such job is promised its share */
		{.gpus = 1, .where = sw_at(&first, 1)}, /* the place says it */
		{.promise = SW_REST, .evict = SW_EVICT_OPPORTUNISTIC},
		{.as = SW_AS_OPPORTUNISTIC, .evict = SW_EVICT_OPPORTUNISTIC},
		{.evict = SW_EVICT_OPPORTUNISTIC, .where = sw_at(&first, 1)},
		{.as = SW_AS_GUARANTEED, .evict = SW_EVICT_BEHIND},
		{.evict = SW_EVICT_BEHIND, .where = sw_on(node_0)},
		{.evict = SW_EVICT_BEHIND}, /* the policy has no order */
	};
	for (size_t i = 0; i < sizeof contradictions / sizeof contradictions[0]; i++)
		assert_int_equal(run(plan, 0, &contradictions[i]), SW_MISUSE);
	assert_int_equal(run(plan, 1, SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC)), SW_MISUSE); /* it asked to be opportunistic */
	assert_int_equal(run(plan, 2, SW_WISH(.promise = SW_REST)), SW_MISUSE);		     /* it does not say what it needs */
	assert_int_equal(job_of(plan, 0)->job_class, SW_CLASS_GUARANTEED);
	assert_int_equal(job_of(plan, 0)->compute_milli, 1000);
}

static void contradict_running(struct sw_plan *plan)
{
	static const struct sw_gpus second = {{1}, 1};
	const struct sw_wish contradictions[] = {
		{0}, /* nothing to do */
		{.promise = SW_REST, .where = sw_on(node_1)},
		{.where = sw_at(&second, 1)},
		{.as = SW_AS_GUARANTEED}, /* it is */
		{.as = SW_AS_OPPORTUNISTIC},
		{.evict = SW_EVICT_OPPORTUNISTIC, .where = sw_on(node_1)},
	};
	assert_int_equal(run(plan, 0, NULL), SW_YES);
	for (size_t i = 0; i < sizeof contradictions / sizeof contradictions[0]; i++)
		assert_int_equal(run(plan, 0, &contradictions[i]), SW_MISUSE);
	assert_int_equal(run(plan, 1, NULL), SW_YES);
	assert_int_equal(run(plan, 1, SW_WISH(.gpus = 1, .as = SW_AS_GUARANTEED)), SW_MISUSE);
	assert_int_equal(run(plan, 1, SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_on(node_1))), SW_MISUSE);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), (enum sw_how)(SW_PAUSE + 1)), SW_MISUSE);
}

/* Aim: a wish whose fields contradict one another, or that leaves nothing to do, is misuse and
 * changes nothing. */
static void test_contradictions(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, 1, 1);
	rig_submit_plain(&rig, 0, 1, 100);
	run_script(&rig, 0, contradict_waiting);
	assert_int_equal(rig_commands(&rig), 0);
	run_script(&rig, 0, contradict_running);
	assert_string_equal(rig_place(&rig, 0), "0:1");
	rig_close(&rig);
}

static void combine(struct sw_plan *plan)
{
	/* What is promised nothing goes where the rule says, too. */
	assert_int_equal(run(plan, 0, SW_WISH(.promise = SW_REST, .where = sw_on(node_1))), SW_YES);
	assert_int_equal(job_of(plan, 0)->compute_milli, 0);
	/* In another class beside it. */
	assert_int_equal(run(plan, 1, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_beside(job_of(plan, 0)))), SW_YES);
	assert_int_equal(job_of(plan, 1)->job_class, SW_CLASS_OPPORTUNISTIC);
	/* Stopped at once, they are what they asked to be. */
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: class, promise and place go together, and last no longer than the run. */
static void test_combinations(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, 2, 0);
	run_script(&rig, 0, combine);
	assert_int_equal(rig_commands(&rig), 0);
	for (uint32_t id = 0; id < 2; id++) {
		assert_int_equal(rig_job(&rig, id)->job_class, SW_CLASS_GUARANTEED);
		assert_int_equal(rig_job(&rig, id)->compute_milli, 1000);
	}
	rig_close(&rig);
}

static void fill_with_opportunistic(struct sw_plan *plan)
{
	for (uint32_t id = 1; id < 5; id++)
		assert_int_equal(run(plan, id, SW_WISH(.as = SW_AS_OPPORTUNISTIC)), SW_YES);
}

static void start_over_on_node(struct sw_plan *plan)
{
	assert_int_equal(run(plan, 0, SW_WISH(.where = sw_on(node_1))), SW_NO_ROOM);
	assert_int_equal(run(plan, 0, SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC, .where = sw_on(node_1))), SW_YES);
}

/* Aim: a guaranteed job is placed over opportunistic ones also on a node that the policy names. */
static void test_over_on_node(void **state)
{
	(void)state;
	const struct sw_job_spec whole = rig_spec(1, 100);
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.terms = {.keeps_state = true}});
	for (int i = 0; i < 5; i++)
		rig_submit(&rig, 0, &whole);
	run_script(&rig, 0, fill_with_opportunistic);
	run_script(&rig, 1, start_over_on_node);
	assert_string_equal(rig_place(&rig, 0), "1:1");
	assert_false(rig_runs(&rig, 3));
	assert_true(rig_runs(&rig, 1) && rig_runs(&rig, 2) && rig_runs(&rig, 4));
	rig_close(&rig);
}

static void share_first_gpu(struct sw_plan *plan)
{
	static const struct sw_gpus first = {{0}, 1}, second = {{0}, 2}, third = {{1}, 1}, fourth = {{1}, 2};
	assert_int_equal(run(plan, 0, SW_WISH(.where = sw_at(&first, 1))), SW_YES);
	assert_int_equal(run(plan, 1, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&first, 1))), SW_YES);
	assert_int_equal(run(plan, 2, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&second, 1))), SW_YES);
	assert_int_equal(run(plan, 3, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&third, 1))), SW_YES);
	assert_int_equal(run(plan, 4, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&fourth, 1))), SW_YES);
}

static void upgrade_second(struct sw_plan *plan)
{
	assert_int_equal(run(plan, 1, SW_WISH(.as = SW_AS_GUARANTEED)), SW_NO_ROOM);
	assert_int_equal(run(plan, 1, SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)), SW_YES);
}

/* Aim: a running job is made guaranteed in the place of opportunistic ones only where the wish
 * says so. */
static void test_upgrade_disturbs_only_by_wish(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, 5, 0);
	run_script(&rig, 0, share_first_gpu);
	run_script(&rig, 1, upgrade_second);
	assert_int_equal(rig_job(&rig, 1)->job_class, SW_CLASS_GUARANTEED);
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 1));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zero_is_ordinary),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_over_on_node),
		cmocka_unit_test(test_upgrade_disturbs_only_by_wish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
