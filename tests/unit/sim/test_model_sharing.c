/* The world model, played by hand: what jobs on one GPU do to each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "contention/learn.h"
#include "contention/predict.h"
#include "stage.h"
#include "unit/contention/slowdown.h"

static void share_second_with_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_beside(job_of(plan, 0)))), SW_YES);
}

/* Aim: jobs on one GPU slow each other down while both are there, and go on at full speed
 * when the other has gone. */
static void test_sharing_slowdown(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage_job(&stage, 1, 1000, "vgg16");
	struct sw_trace_job *guest = stage_job(&stage, 1, 100, "vgg16");
	guest->job_class = SW_CLASS_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = slowdown_milli(&sw_predict_default, profile, &profile, 1);
	assert_true(slow > 1000);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 100, share_second_with_first);
	/* The guest needs 100 s at the slower pace, in which the host also does 100 s of its work;
	 * the other 900 s run alone. */
	sw_ns guest_ends = 100 * SW_NS_PER_S + 100 * SW_NS_PER_S * slow / 1000;
	sw_ns host_ends = guest_ends + 800 * SW_NS_PER_S;
	stage_step(&stage, guest_ends);
	stage_step(&stage, guest_ends + SW_NS_PER_S);
	/* The engine knows that it is faster again. */
	assert_int_equal(sw_engine_clock(stage.engine, (struct sw_job_id){0})->ends_at, host_ends);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 1)->since, guest_ends);
	assert_int_equal(stage_look(&stage, 0)->since, host_ends);
	stage_end(&stage);
}

/* Aim: under a gate the guaranteed job of two loses what the gate lets through and no more,
 * the other gets the rest. */
static void test_sharing_under_a_gate(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage.world->gate_milli = 1020;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 10000, "vgg16")->job_class = SW_CLASS_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	const struct sw_profile *both[] = {profile, profile};
	struct sw_prediction found[2];
	sw_predict_set(&sw_predict_default, SW_WAY_GATE, both, 2, found);
	uint32_t slow = found[1].slow_milli;
	assert_in_range(slow, 2000, 10000);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->since, 1020 * SW_NS_PER_S);
	sw_ns done = 1020 * SW_NS_PER_S * 1000 / slow;
	assert_in_range(stage_look(&stage, 1)->since, 11020 * SW_NS_PER_S - done - 2, 11020 * SW_NS_PER_S - done + 2);
	stage_end(&stage);
}

static void start_both_as_opportunistic(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&gpu, 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&gpu, 1))), SW_YES);
}

static void upgrade_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)), SW_YES);
}

/* Aim: from the moment of its upgrade a job runs at the pace of a guaranteed one. */
static void test_upgrade_changes_the_pace(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage.world->gate_milli = 1000;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 10000, "vgg16");
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = slowdown_milli(&sw_predict_default, profile, &profile, 1);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_both_as_opportunistic);
	stage_at(&stage, 100, upgrade_first);
	assert_true(stage_play_out(&stage, 100));
	sw_ns ends = 1100 * SW_NS_PER_S - 100 * SW_NS_PER_S * 1000 / slow;
	assert_in_range(stage_look(&stage, 0)->since, ends - 2, ends + 2);
	stage_end(&stage);
}

/* Aim: by stages, an iteration of the opportunistic job takes as many of the guaranteed one's as
 * its stages need of the other's gaps; guaranteed jobs do not slow down. */
static void test_sharing_by_stages(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage.world->sharing_by = SW_SHARING_BY_STAGES;
	stage.world->work_from_iterations = true;
	struct sw_trace_job *host = stage_job(&stage, 1, 0, ""), *guest = stage_job(&stage, 1, 0, "");
	host->iterations = 1000;
	guest->iterations = 100;
	host->iteration_ns = guest->iteration_ns = SW_NS_PER_S;
	guest->job_class = SW_CLASS_OPPORTUNISTIC;
	/* Data, GPU, network in microseconds: 0.9 s of data loading need two gaps of 0.5 s; what is
	 * left of the second is the GPU's. */
	memcpy(host->stage_us, (uint32_t[]){500000, 300000, 200000}, sizeof host->stage_us);
	memcpy(guest->stage_us, (uint32_t[]){900000, 50000, 0}, sizeof guest->stage_us);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->since, 1000 * SW_NS_PER_S);
	assert_int_equal(stage_look(&stage, 1)->since, 200 * SW_NS_PER_S);
	stage_end(&stage);
}

static void start_three_beside(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 1};
	for (uint32_t id = 0; id < 3; id++)
		assert_int_equal(sw_plan_run(plan, job_of(plan, id), SW_WISH(.promise = SW_REST, .where = sw_at(&gpu, 1))), SW_YES);
}

static void share_by_slices(struct stage *stage, int64_t gate_milli)
{
	stage_begin(stage, "ideal");
	stage->world->sharing_slowdown = true;
	stage->world->sharing_by = SW_SHARING_BY_SLICES;
	stage->world->gate_milli = gate_milli;
	stage_job(stage, 1, 100, "resnet50");
	stage_job(stage, 1, 100, "resnet50")->job_class = SW_CLASS_OPPORTUNISTIC;
	stage_job(stage, 1, 100, "resnet50");
	assert_int_equal(profile_of(stage, "resnet50")->busy_milli, 1000);
	stage_rise(stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(stage, 0, start_three_beside);
	assert_true(stage_play_out(stage, 100));
}

/* Aim: where jobs take turns, three that are never idle take three times as long and what
 * switching costs, whatever the parts of the GPU that they use; without a gate their
 * class does not matter. */
static void test_sharing_by_slices(void **state)
{
	(void)state;
	struct stage stage;
	share_by_slices(&stage, 0);
	for (uint32_t id = 0; id < 3; id++)
		assert_int_equal(stage_look(&stage, id)->since, 321 * SW_NS_PER_S);
	stage_end(&stage);
}

/* Aim: the rule of live agents, turns and the gate: two guaranteed jobs share the time, 2 x 1.07 x
 * 1.02; the opportunistic one stands still beside them, and then has all of the GPU. */
static void test_sharing_by_slices_and_gate(void **state)
{
	(void)state;
	struct stage stage;
	share_by_slices(&stage, 1020);
	assert_in_range(stage_look(&stage, 0)->since, 218 * SW_NS_PER_S, 219 * SW_NS_PER_S);
	assert_int_equal(stage_look(&stage, 2)->since, stage_look(&stage, 0)->since);
	assert_in_range(stage_look(&stage, 1)->since, 317 * SW_NS_PER_S, 319 * SW_NS_PER_S);
	stage_end(&stage);
}

static void split_second_beside_first(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 1};
	const struct sw_split split = {.parts = {{{0}, 0, RIG_GIB}, {{0}, 1, RIG_GIB}}, .count = 2, .step_milli = 1, .alone_milli = 1250};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.promise = SW_REST, .where = sw_at(&gpu, 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))), SW_YES);
}

static void make_second_whole(struct sw_plan *plan)
{
	const struct sw_gpus gpu = {{0}, 2};
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.promise = SW_REST, .where = sw_at(&gpu, 1))), SW_YES);
}

/* Aim: a split job is slower by the price of its cut and by its neighbours on the worst of its
 * GPUs, a neighbour of one part by that part; once it is whole both are as fast as ever. */
static void test_split_job(void **state)
{
	(void)state;
	static const struct sw_topology_node two_gpus[] = {RIG_NODE(0, 2)};
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = stage.world->placement_slowdown = true;
	stage.world->sharing_by = SW_SHARING_BY_SLICES;
	stage_job(&stage, 1, 1000, "resnet50");
	stage_job(&stage, 1, 1000, "resnet50");
	stage_rise(&stage, two_gpus, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, split_second_beside_first);
	/* Turns make both 2.14 times slower; in 535 s the first does 250 s of its work and the
	 * other, at 1.25 x 2.14, 200 s. */
	stage_at(&stage, 535, make_second_whole);
	assert_true(stage_play_out(&stage, 100));
	assert_int_equal(stage_look(&stage, 0)->since, (535 + 750) * SW_NS_PER_S);
	assert_int_equal(stage_look(&stage, 1)->since, (535 + 800) * SW_NS_PER_S);
	stage_end(&stage);
}

static void preempt_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
}

/* Aim: the same when the guest is preempted instead of ending. */
static void test_sharing_ends_by_preemption(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal");
	stage.world->sharing_slowdown = true;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 10000, "vgg16")->job_class = SW_CLASS_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = slowdown_milli(&sw_predict_default, profile, &profile, 1);
	stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	stage_at(&stage, 100, preempt_second);
	sw_ns done = 100 * SW_NS_PER_S * 1000 / slow;
	while (stage_look(&stage, 0)->state == SW_JOB_RUNNING && stage_next(&stage) != SW_TIME_NEVER)
		stage_step(&stage, stage_next(&stage));
	assert_in_range(stage_look(&stage, 0)->since, 1100 * SW_NS_PER_S - done - 2, 1100 * SW_NS_PER_S - done + 2);
	stage_end(&stage);
}

static void migrate_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.where = sw_by(NULL))), SW_YES);
}

/* Aim: when one of two neighbours moves away, both run at full speed from then on. */
static void test_sharing_ends_by_moving(void **state)
{
	(void)state;
	struct stage stage;
	stage_begin(&stage, "ideal"); /* moving is free */
	stage.world->sharing_slowdown = true;
	stage_job(&stage, 1, 1000, "vgg16");
	stage_job(&stage, 1, 1000, "vgg16")->job_class = SW_CLASS_OPPORTUNISTIC;
	const struct sw_profile *profile = profile_of(&stage, "vgg16");
	uint32_t slow = slowdown_milli(&sw_predict_default, profile, &profile, 1);
	stage_rise(&stage, two_nodes, 2, &scripted, &sw_placement_count);
	stage_at(&stage, 0, start_first);
	stage_at(&stage, 0, share_second_with_first);
	stage_at(&stage, 100, migrate_second);
	assert_true(stage_play_out(&stage, 100));
	sw_ns ends = 1100 * SW_NS_PER_S - 100 * SW_NS_PER_S * 1000 / slow;
	for (uint32_t id = 0; id < 2; id++)
		assert_in_range(stage_look(&stage, id)->since, ends - 2, ends + 2);
	stage_end(&stage);
}

/* What was measured of two such jobs on one GPU, in a file. */
static char *write_lessons(const struct sw_profiles *profiles, int64_t slow_milli)
{
	static const char *const names[] = {"vgg16", "vgg16"};
	char *path = strdup("lessons-XXXXXX"), *text = NULL;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = NULL;
	assert_int_equal(sw_learn_new(profiles, &sw_predict_default, &learn, NULL), 0);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(sw_learn_add(learn, &(struct sw_learn_case){SW_WAY_SLICES, names, 2, i % 2}, slow_milli, 60, NULL), 0);
	assert_int_equal(sw_learn_write(learn, &text, NULL), 0);
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
	free(text);
	return path;
}

/* Aim: what a world has learned corrects its profiles, for the jobs and for policies; a file that
 * is not there, or is none, is an error. */
static void test_learned(void **state)
{
	(void)state;
	for (int learned = 0; learned < 2; learned++) {
		struct stage stage;
		stage_begin(&stage, "ideal");
		stage.world->sharing_slowdown = true;
		stage.world->sharing_by = SW_SHARING_BY_SLICES;
		char *path = write_lessons(stage.profiles, 3300);
		stage.world->learned = strdup(learned ? path : "");
		stage_job(&stage, 1, 1000, "vgg16");
		stage_job(&stage, 1, 100, "vgg16")->job_class = SW_CLASS_OPPORTUNISTIC;
		stage_rise(&stage, one_gpu, 1, &scripted, &sw_placement_count);
		uint32_t number = profile_of(&stage, "vgg16")->number, speeds[2];
		struct sw_predictor predictor = sw_world_model_predictor(stage.model);
		assert_true(predictor.speeds(predictor.context, (uint32_t[]){number, number}, (bool[]){true, true}, 2, speeds));
		assert_true(learned ? speeds[0] < 330 : speeds[0] > 400);
		stage_at(&stage, 0, start_first);
		stage_at(&stage, 100, share_second_with_first);
		assert_true(stage_play_out(&stage, 100));
		double took_s = (double)(stage_look(&stage, 1)->since - 100 * SW_NS_PER_S) / 1e9;
		assert_true(learned ? took_s > 300 : took_s < 250);
		struct sw_world_model *model = NULL;
		for (int broken = 0; broken < 2; broken++) {
			free(stage.world->learned);
			stage.world->learned = strdup(broken ? "/dev/null" : "no-such-file");
			assert_true(sw_world_model_new(stage.world, stage.profiles, stage.trace, stage.topology, 7, &model, NULL) < 0);
		}
		stage_end(&stage);
		unlink(path);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sharing_slowdown),
		cmocka_unit_test(test_sharing_under_a_gate),
		cmocka_unit_test(test_upgrade_changes_the_pace),
		cmocka_unit_test(test_sharing_by_stages),
		cmocka_unit_test(test_sharing_by_slices),
		cmocka_unit_test(test_sharing_by_slices_and_gate),
		cmocka_unit_test(test_split_job),
		cmocka_unit_test(test_sharing_ends_by_preemption),
		cmocka_unit_test(test_learned),
		cmocka_unit_test(test_sharing_ends_by_moving),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
