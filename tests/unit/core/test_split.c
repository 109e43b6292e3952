/* Jobs in parts, and whole ones beside others on GPUs of the policy's choice: what is booked, what
 * is refused, and that a saved engine knows it again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"
#include "split/cut.h"

static struct sw_cut simple; /* made in main */

static struct sw_engine_config splitting(void)
{
	return (struct sw_engine_config){.splitter = &simple.splitter};
}

static uint32_t submit(struct rig *rig, int64_t at_s, uint32_t gpus, uint64_t gib)
{
	struct sw_job_spec spec = rig_spec(gpus, 1000);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	return rig_submit(rig, at_s, &spec);
}

/* 30 GiB on the first GPU of node 0, 10 on the second. */
static const struct sw_split uneven = {
	.parts = {{{0}, 0, 30 * RIG_GIB}, {{0}, 1, 10 * RIG_GIB}}, .count = 2, .step_milli = 1500, .alone_milli = 1200};

static uint64_t free_gib(const struct rig *rig, uint32_t gpu)
{
	return sw_gpu_memory_free(sw_engine_view(rig->engine), (struct sw_node_id){0}, gpu) / RIG_GIB;
}

static void split_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))), SW_YES);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: a split job holds on each GPU what its part says, takes as long as the splitter says, and
 * all of it is free again when it stops. */
static void test_what_is_booked(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_config config = splitting();
	config.terms.keeps_state = true;
	open_scripted(&rig, two_by_two, 2, config);
	uint32_t job = submit(&rig, 0, 1, 40);
	run_script(&rig, 1, split_first);
	assert_string_equal(rig_place(&rig, job), "0:1 0:2");
	assert_int_equal(rig_job(&rig, job)->gpus_held, 2);
	assert_int_equal(free_gib(&rig, 0), 50);
	assert_int_equal(free_gib(&rig, 1), 70);
	const struct sw_view *view = sw_engine_view(rig.engine);
	assert_int_equal(sw_job_split_milli(view, rig_job(&rig, job)), 1200);
	assert_int_equal(sw_engine_clock(rig.engine, (struct sw_job_id){job})->ends_at, (1 + 1200) * SW_NS_PER_S);
	assert_ptr_equal(sw_gpu_resident(view, (struct sw_node_id){0}, 1, 0), rig_job(&rig, job));
	assert_null(sw_gpu_resident(view, (struct sw_node_id){0}, 1, 1));
	assert_null(sw_gpu_resident(view, (struct sw_node_id){0}, 2, 0));
	assert_int_equal(sw_ledger_distance(sw_engine_ledger(rig.engine), sw_engine_parts(rig.engine, (struct sw_job_id){job})),
			 SW_WITHIN_GROUP);
	run_script(&rig, 601, preempt_first);
	assert_int_equal(free_gib(&rig, 0), 80);
	assert_int_equal(sw_job_split_milli(view, rig_job(&rig, job)), 0);
	assert_int_equal(sw_engine_clock(rig.engine, (struct sw_job_id){job})->gpu_time_ns, 1200 * SW_NS_PER_S);
	/* Half of its steps are done. */
	assert_int_equal(sw_job_remaining(view, rig_job(&rig, job)), 500 * SW_NS_PER_S);
	rig_close(&rig);
}

static enum sw_answer expected;

static void try_to_preempt(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), expected);
}

/* Aim: a split run stands nowhere: one that is to be suspended where it runs is not preempted, and
 * is in a world that keeps its state. */
static void test_not_suspended(void **state)
{
	(void)state;
	for (int keeps_state = 0; keeps_state < 2; keeps_state++) {
		struct rig rig;
		struct sw_engine_config config = splitting();
		config.terms = (struct sw_terms){.moves = SW_MOVES_RESTART, .keeps_state = keeps_state};
		open_scripted(&rig, two_by_two, 2, config);
		struct sw_job_spec spec = rig_spec(1, 1000);
		spec.gpu_memory_bytes = 40 * RIG_GIB;
		spec.stop_rule = SW_STOP_SUSPEND;
		rig_submit(&rig, 0, &spec);
		run_script(&rig, 1, split_first);
		expected = keeps_state ? SW_YES : SW_KEPT;
		if (!keeps_state)
			run_script(&rig, 2, try_to_preempt);
		struct sw_event keeps = rig_answer(&rig, SW_EV_KEEPS, 0);
		keeps.gpus = 1;
		keeps.frees = true;
		rig_event(&rig, 3, keeps);
		run_script(&rig, 4, try_to_preempt);
		assert_int_equal(rig_runs(&rig, 0), !keeps_state);
		rig_close(&rig);
	}
}

static void split_nonsense(struct sw_plan *plan)
{
	const struct sw_job *job = job_of(plan, 0);
	struct sw_split split = uneven;
	split.count = 1;
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_MISUSE);
	split.count = SW_SPLIT_PARTS_MAX + 1;
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_MISUSE);
	split = uneven;
	split.parts[1].gpu = 0; /* twice the same */
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_MISUSE);
	split.parts[1].gpu = 2;
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_MISUSE);
	split.parts[1] = (struct sw_split_part){{2}, 0, 1};
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_MISUSE);
	split.parts[1] = (struct sw_split_part){{0}, 1, 0};
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_MISUSE);
	split = uneven;
	split.alone_milli = 0;
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))),
			 SW_MISUSE); /* it asked for two GPUs */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))),
			 SW_MISUSE); /* it does not say what it needs */
	assert_int_equal(sw_plan_run(plan, &made_up, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))), SW_MISUSE);
	split = uneven;
	split.parts[1].memory_bytes = 81 * RIG_GIB;
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_NO_ROOM);
	assert_int_equal(job->compute_milli, 1000);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))), SW_YES);
	assert_int_equal(job->compute_milli, 0);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))), SW_MISUSE); /* it runs */
}

/* Aim: a split that makes no sense is misuse, one that has no room is not, and neither
 * leaves anything behind. */
static void test_nonsense(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, splitting());
	submit(&rig, 0, 1, 40);
	submit(&rig, 0, 2, 40);
	submit(&rig, 0, 1, 0);
	run_script(&rig, 1, split_nonsense);
	assert_true(rig_runs(&rig, 0));
	rig_close(&rig);
}

static void split_in_vain(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))), SW_NO_ROOM);
}

static void split_over_quota(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))), SW_OVER_QUOTA);
}

/* Aim: nothing is split where there is no splitter, on a closed node, or beyond the quota, which
 * counts the GPUs that it would hold. */
static void test_where_nothing_is_split(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){0});
	submit(&rig, 0, 1, 40);
	run_script(&rig, 1, split_in_vain);
	rig_close(&rig);
	open_scripted(&rig, two_by_two, 2, splitting());
	submit(&rig, 0, 1, 40);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 1});
	run_script(&rig, 2, split_over_quota);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 2});
	rig_event(&rig, 4, rig_node_event(SW_EV_NODE_CLOSE, 0));
	run_script(&rig, 5, split_in_vain);
	rig_event(&rig, 6, rig_node_event(SW_EV_NODE_OPEN, 0));
	run_script(&rig, 7, split_first);
	assert_int_equal(sw_view_tenant_held(sw_engine_view(rig.engine), 0), 2);
	rig_close(&rig);
}

static void push_the_first(struct sw_plan *plan)
{
	const struct sw_job *split = job_of(plan, 0);
	const struct sw_gpus second = {{0}, 2};
	assert_int_equal(sw_plan_run(plan, split, SW_WISH(.where = sw_by(NULL))), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, split, SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){1}))), SW_NO_ROOM);
	assert_int_equal(sw_plan_limit(plan, split, RIG_GIB, 500), SW_NO_ROOM);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(split))), SW_NO_ROOM);
	struct sw_run_forecast beside;
	assert_true(sw_predict_run(sw_plan_view(plan), job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_beside(split)), &beside));
	assert_false(beside.fits);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_at(&second, 1))),
			 SW_MISUSE); /* it asked for two */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.promise = SW_REST, .where = sw_at(&second, 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), SW_WISH(.promise = SW_REST, .where = sw_at(&second, 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 4), SW_WISH(.promise = SW_REST, .where = sw_at(&second, 1))), SW_NO_ROOM);
	assert_int_equal(job_of(plan, 4)->compute_milli, 1000);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 5), SW_WISH(.promise = SW_REST, .where = sw_at(&second, 1))),
			 SW_MISUSE); /* memory unknown */
}

/* Aim: a split job stays as it is, and whole jobs go beside it and each other without a promise
 * as far as memory goes. */
static void test_neighbours(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, splitting());
	submit(&rig, 0, 1, 40);
	submit(&rig, 0, 2, 10);
	submit(&rig, 0, 1, 30);
	submit(&rig, 0, 1, 40);
	submit(&rig, 0, 1, 1);
	submit(&rig, 0, 1, 0);
	run_script(&rig, 1, split_first);
	run_script(&rig, 2, push_the_first);
	assert_string_equal(rig_place(&rig, 0), "0:1 0:2");
	assert_string_equal(rig_place(&rig, 2), "0:2");
	assert_string_equal(rig_place(&rig, 3), "0:2");
	assert_int_equal(free_gib(&rig, 1), 0);
	assert_int_equal(rig_job(&rig, 3)->compute_milli, 0);
	assert_int_equal(rig_job(&rig, 3)->job_class, SW_CLASS_GUARANTEED);
	rig_close(&rig);
}

static void merge_first(struct sw_plan *plan)
{
	const struct sw_gpus other = {{1}, 1};
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.promise = SW_REST, .where = sw_at(&other, 1))), SW_YES);
}

static void lift_and_split_again(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.promise = SW_REST, .where = sw_in_parts(&uneven))), SW_YES);
}

/* Aim: a split job that is stopped and started whole in one decision has moved; one that is split
 * again as it was has not been touched. */
static void test_merging(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, splitting());
	submit(&rig, 0, 1, 40);
	run_script(&rig, 1, split_first);
	run_script(&rig, 2, lift_and_split_again);
	assert_int_equal(rig_commands(&rig), 0);
	run_script(&rig, 3, merge_first);
	const struct sw_command *command = rig_command(&rig, SW_CMD_MOVE, 0);
	assert_non_null(command);
	assert_int_equal(command->gpus, 1);
	assert_string_equal(rig_place(&rig, 0), "1:1");
	assert_int_equal(sw_job_split_milli(sw_engine_view(rig.engine), rig_job(&rig, 0)), 0);
	assert_int_equal(free_gib(&rig, 0), 80);
	rig_close(&rig);
}

/* Aim: under another policy, which lifts and puts back what it wants to keep, a split job goes on
 * as it is; when it must go, it starts whole. */
static void test_another_policy(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_err err = {0};
	open_scripted(&rig, two_by_two, 2, splitting());
	submit(&rig, 0, 1, 40);
	run_script(&rig, 1, split_first);
	rig_must(sw_engine_set_policy(rig.engine, &sw_policy_srtf, NULL, &err), &err);
	rig_tick(&rig, 2);
	submit(&rig, 3, 2, 10);
	assert_string_equal(rig_place(&rig, 0), "0:1 0:2");
	assert_int_equal(sw_job_split_milli(sw_engine_view(rig.engine), rig_job(&rig, 0)), 1200);
	struct sw_job_spec large = rig_spec(4, 1);
	rig_submit(&rig, 4, &large);
	assert_false(rig_runs(&rig, 0));
	rig_finish(&rig, 5, 2);
	assert_int_equal(rig_job(&rig, 0)->gpus_held, 1);
	assert_int_equal(sw_job_split_milli(sw_engine_view(rig.engine), rig_job(&rig, 0)), 0);
	rig_close(&rig);
}

/* Aim: an engine with a split job knows it again from its bytes, part by part, and goes on alike;
 * bytes that contradict themselves are refused or make no harm. */
static void test_save(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_pack pack = {0};
	struct sw_engine *loaded = NULL;
	struct sw_err err = {0};
	bool adopted = true;
	open_scripted(&rig, two_by_two, 2, splitting());
	submit(&rig, 0, 1, 40);
	run_script(&rig, 1, split_first);
	sw_engine_save(rig.engine, &pack);
	struct sw_engine_config config = splitting();
	config.policy = &scripted;
	config.placement = &sw_placement_count;
	config.params = rig.params;
	rig_must(sw_engine_load(&config, pack.bytes, pack.size, &loaded, &adopted, &err), &err);
	assert_false(adopted);
	struct sw_engine *first = rig.engine;
	rig.engine = loaded;
	assert_string_equal(rig_place(&rig, 0), "0:1 0:2");
	assert_int_equal(free_gib(&rig, 0), 50);
	assert_int_equal(free_gib(&rig, 1), 70);
	rig_finish(&rig, 2, 0);
	assert_int_equal(free_gib(&rig, 1), 80);
	for (size_t at = 0; at < pack.size; at++) {
		struct sw_engine *broken = NULL;
		unsigned char *byte = (unsigned char *)pack.bytes + at;
		*byte ^= 0x15;
		if (sw_engine_load(&config, pack.bytes, pack.size, &broken, &adopted, NULL) == 0) {
			rig_must(sw_engine_validate(broken, &err), &err);
			sw_engine_free(broken);
		}
		*byte ^= 0x15;
	}
	sw_pack_release(&pack);
	sw_engine_free(first);
	rig_close(&rig);
}

/* ---- what splitters may say ---- */

static struct sw_split answer;

static bool say(const struct sw_splitter *splitter, const struct sw_job *job, const struct sw_split_device *devices, size_t count,
		struct sw_split *ret_split)
{
	(void)splitter;
	(void)job;
	(void)devices;
	(void)count;
	*ret_split = answer;
	return true;
}

static bool is_taken(struct sw_plan *plan, struct sw_split what)
{
	static const struct sw_split_device devices[] = {{{0}, 0, 1000, 30 * RIG_GIB}, {{0}, 1, 1000, 30 * RIG_GIB}};
	struct sw_split split;
	answer = what;
	return sw_view_split(sw_plan_view(plan), job_of(plan, 0), devices, 2, &split);
}

static void hear_the_splitter(struct sw_plan *plan)
{
	struct sw_split split = uneven;
	assert_true(is_taken(plan, split));
	split.parts[0].memory_bytes++; /* more than was offered */
	assert_false(is_taken(plan, split));
	split = uneven;
	split.parts[1].gpu = 2; /* was not offered */
	assert_false(is_taken(plan, split));
	split = uneven;
	split.count = 0;
	assert_false(is_taken(plan, split));
	split = uneven;
	split.step_milli = 0;
	assert_false(is_taken(plan, split));
	split = uneven;
	split.alone_milli = UINT32_MAX;
	assert_false(is_taken(plan, split));
}

/* Aim: a splitter that answers with what it was not offered, or with nonsense, is
 * taken to have no answer. */
static void test_splitters_are_not_believed(void **state)
{
	(void)state;
	static const struct sw_splitter odd = {.name = "odd", .split = say};
	struct rig rig;
	open_scripted(&rig, two_by_two, 2, (struct sw_engine_config){.splitter = &odd});
	submit(&rig, 0, 1, 40);
	run_script(&rig, 1, hear_the_splitter);
	rig_close(&rig);
}

int main(void)
{
	simple = sw_cut_make(1100);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_booked),
		cmocka_unit_test(test_not_suspended),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_where_nothing_is_split),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_merging),
		cmocka_unit_test(test_save),
		cmocka_unit_test(test_another_policy),
		cmocka_unit_test(test_splitters_are_not_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
