/* How runs are set up: what of a configuration counts, what drivers are told, and how long it
 * holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/pack.h"
#include "scripted.h"

static const struct sw_config wide = {.batch = 64, .workers = 3, .cpus = 20, .host_memory_bytes = 50 * RIG_GIB};

static void submit(struct rig *rig, uint32_t gpus)
{
	struct sw_job_spec spec = rig_spec(gpus, 100);
	spec.cpus = 4;
	spec.host_memory_bytes = 10 * RIG_GIB;
	rig_submit(rig, 0, &spec);
}

static void expect_config(const struct rig *rig, uint32_t job, struct sw_config expected)
{
	const struct sw_config *found = sw_job_config(sw_engine_view(rig->engine), rig_job(rig, job));
	assert_int_equal(found->batch, expected.batch);
	assert_int_equal(found->accumulation, expected.accumulation);
	assert_int_equal(found->workers, expected.workers);
	assert_int_equal(found->servers, expected.servers);
	assert_int_equal(found->cpus, expected.cpus);
	assert_int_equal(found->host_memory_bytes, expected.host_memory_bytes);
}

static uint32_t cpus_free(const struct rig *rig)
{
	struct sw_node node;
	sw_view_node(sw_engine_view(rig->engine), (struct sw_node_id){0}, &node);
	return node.cpus_free;
}

static void start_wide(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.config = wide)), SW_YES);
	assert_int_equal(job_of(plan, 0)->cpus, 20);
}

static void preempt_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: the CPUs and the host memory of a configuration count for the run instead of the job's own,
 * its driver is told all of it, and the job's own come back with the end of the run. */
static void test_counts_for_one_run(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.placement = &sw_placement_yarn});
	submit(&rig, 2);
	run_script(&rig, 0, start_wide);
	const struct sw_command *command = rig_command(&rig, SW_CMD_START, 0);
	assert_non_null(command);
	assert_int_equal(command->config.batch, 64);
	assert_int_equal(command->config.cpus, 20);
	assert_int_equal(cpus_free(&rig), 128 - 40);
	expect_config(&rig, 0, wide);
	run_script(&rig, 10, preempt_first);
	assert_int_equal(cpus_free(&rig), 128);
	expect_config(&rig, 0, (struct sw_config){0});
	assert_int_equal(rig_job(&rig, 0)->cpus, 4);
	assert_int_equal(rig_job(&rig, 0)->host_memory_bytes, 10 * RIG_GIB);
	run_script(&rig, 20, start_first);
	assert_int_equal(cpus_free(&rig), 128 - 8);
	assert_int_equal(rig_command(&rig, SW_CMD_START, 0)->config.batch, 0);
	rig_close(&rig);
}

static void want_too_much(struct sw_plan *plan)
{
	static const struct sw_config absurd[] = {
		{.batch = UINT32_MAX},	 {.accumulation = SW_CONFIG_MOST + 1}, {.workers = UINT32_MAX},
		{.servers = UINT32_MAX}, {.cpus = SW_CONFIG_CPUS_MOST + 1},    {.host_memory_bytes = UINT64_MAX}};
	for (size_t c = 0; c < sizeof absurd / sizeof *absurd; c++)
		assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.config = absurd[c])), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.config.cpus = 65)), SW_NO_ROOM);
	assert_int_equal(job_of(plan, 0)->cpus, 4);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.config.host_memory_bytes = 300 * RIG_GIB)), SW_NO_ROOM);
	assert_int_equal(job_of(plan, 0)->host_memory_bytes, 10 * RIG_GIB);
}

/* Aim: what the node does not have is refused, absurd numbers are misuse, and the job is as it
 * was. */
static void test_refused(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.placement = &sw_placement_yarn});
	submit(&rig, 2);
	run_script(&rig, 0, want_too_much);
	expect_config(&rig, 0, (struct sw_config){0});
	run_script(&rig, 1, start_first);
	run_script(&rig, 2, want_too_much);
	expect_config(&rig, 0, (struct sw_config){0});
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(cpus_free(&rig), 128 - 8);
	rig_close(&rig);
}

static void set_up_otherwise(struct sw_plan *plan)
{
	struct sw_run_forecast found;
	const struct sw_wish *wish = SW_WISH(.config = {.batch = 128, .cpus = 30});
	assert_true(sw_predict_run(sw_plan_view(plan), job_of(plan, 0), wish, &found));
	assert_true(found.fits);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), wish), SW_YES);
	/* It is so already. */
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.config = {.batch = 128})), SW_YES);
}

/* Aim: a running job is set up otherwise where it is: by a move where moves are free, else by a
 * stop and a start; what the wish does not name stays. */
static void test_running(void **state)
{
	(void)state;
	for (int moves = SW_MOVES_FREELY; moves <= SW_MOVES_NEVER; moves++) {
		struct rig rig;
		open_scripted(&rig, two_by_two, 2,
			      (struct sw_engine_config){.placement = &sw_placement_yarn, .terms.moves = (uint8_t)moves});
		submit(&rig, 2);
		run_script(&rig, 0, start_wide);
		char place[256];
		snprintf(place, sizeof place, "%s", rig_place(&rig, 0));
		uint32_t epoch = sw_engine_epoch(rig.engine, (struct sw_job_id){0});
		if (moves == SW_MOVES_NEVER) {
			rig_close(&rig);
			continue;
		}
		run_script(&rig, 10, set_up_otherwise);
		assert_string_equal(rig_place(&rig, 0), place);
		expect_config(&rig, 0, (struct sw_config){.batch = 128, .workers = 3, .cpus = 30, .host_memory_bytes = 50 * RIG_GIB});
		assert_int_equal(cpus_free(&rig), 128 - 60);
		const struct sw_command *moved = rig_command(&rig, SW_CMD_MOVE, 0), *stop = rig_command(&rig, SW_CMD_STOP, 0),
					*start = rig_command(&rig, SW_CMD_START, 0);
		if (moves == SW_MOVES_FREELY) {
			assert_true(moved != NULL && stop == NULL && start == NULL);
			assert_int_equal(moved->config.batch, 128);
		} else {
			assert_true(moved == NULL && stop != NULL && start != NULL);
			assert_int_equal(stop->reason, SW_REASON_MOVED);
			assert_int_equal(start->config.batch, 128);
			assert_int_equal(start->epoch, epoch + 1);
		}
		rig_close(&rig);
	}
}

static void set_batch_in_vain(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.config.batch = 7)), SW_KEPT);
}

/* Aim: a job whose owner lets it be suspended and not be started anew is not set up otherwise while
 * it runs; while it is suspended where it was it keeps its configuration, and goes on with it. */
static void test_suspended(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.placement = &sw_placement_yarn, .terms.moves = SW_MOVES_RESTART});
	struct sw_job_spec spec = rig_spec(2, 100);
	spec.cpus = 4;
	spec.host_memory_bytes = 10 * RIG_GIB;
	spec.stop_rule = SW_STOP_SUSPEND;
	rig_submit(&rig, 0, &spec);
	run_script(&rig, 0, start_wide);
	struct sw_event keeps = rig_answer(&rig, SW_EV_KEEPS, 0);
	keeps.gpus = 1;
	keeps.frees = true;
	rig_event(&rig, 1, keeps);
	run_script(&rig, 5, set_batch_in_vain);
	run_script(&rig, 10, preempt_first);
	assert_int_not_equal(sw_engine_stands(rig.engine, (struct sw_job_id){0}), SW_NO_PART);
	expect_config(&rig, 0, wide);
	run_script(&rig, 15, set_batch_in_vain);
	run_script(&rig, 20, start_first);
	assert_true(rig_command(&rig, SW_CMD_START, 0)->goes_on);
	expect_config(&rig, 0, wide);
	rig_finish(&rig, 30, 0);
	expect_config(&rig, 0, (struct sw_config){0});
	rig_close(&rig);
}

/* Aim: an engine that is saved and loaded knows how its runs are set up, and goes on alike. */
static void test_saved(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_config config = {.policy = &scripted, .placement = &sw_placement_yarn};
	open_scripted(&rig, two_by_two, 1, config);
	submit(&rig, 2);
	run_script(&rig, 0, start_wide);
	struct sw_pack pack = {0};
	struct sw_engine *loaded = NULL;
	bool adopted = true;
	sw_engine_save(rig.engine, &pack);
	assert_int_equal(pack.failed, 0);
	config.topology = rig.topology;
	config.params = rig.params;
	assert_int_equal(sw_engine_load(&config, pack.bytes, pack.size, &loaded, &adopted, NULL), 0);
	assert_false(adopted);
	sw_pack_release(&pack);
	sw_engine_free(rig.engine);
	rig.engine = loaded;
	expect_config(&rig, 0, wide);
	assert_int_equal(cpus_free(&rig), 128 - 40);
	run_script(&rig, 10, preempt_first);
	assert_int_equal(rig_job(&rig, 0)->cpus, 4);
	rig_close(&rig);
}

static void hold_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_hold(plan, job_of(plan, 0), NULL, 0, 100 * SW_NS_PER_S), SW_YES);
}

/* Aim: a run on what was held for its job takes the CPUs of its configuration, too. */
static void test_on_what_is_held(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.placement = &sw_placement_yarn});
	submit(&rig, 2);
	run_script(&rig, 0, hold_first);
	run_script(&rig, 1, start_wide);
	assert_int_equal(cpus_free(&rig), 128 - 40);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_for_one_run), cmocka_unit_test(test_refused), cmocka_unit_test(test_running),
		cmocka_unit_test(test_suspended),	   cmocka_unit_test(test_saved),   cmocka_unit_test(test_on_what_is_held),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
