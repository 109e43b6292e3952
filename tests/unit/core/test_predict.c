/* What policies are told of jobs that would share a GPU, by a predictor that is made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

/* A job of model m takes m hundredths from each of the others, or as many from guaranteed ones if
 * it is opportunistic as model 1 would; it does not know models above 50. */
static bool take_hundredths(void *context, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli)
{
	unsigned *asked = context;
	++*asked;
	for (size_t i = 0; i < count; i++)
		if (models[i] == 0 || models[i] > 50)
			return false;
	for (size_t i = 0; i < count; i++) {
		ret_speed_milli[i] = 1000;
		for (size_t j = 0; j < count; j++)
			if (j != i)
				ret_speed_milli[i] -= 10 * (guaranteed[i] && !guaranteed[j] ? 1 : models[j]);
	}
	return true;
}

static void submit(struct rig *rig, uint32_t gpus, uint32_t model, uint64_t gib)
{
	struct sw_job_spec spec = rig_spec(gpus, 100);
	spec.model = model;
	spec.gpu_memory_bytes = gib * RIG_GIB;
	rig_submit(rig, 0, &spec);
}

static struct sw_run_forecast beside(const struct rig *rig, uint32_t job, enum sw_as as, uint32_t with)
{
	struct sw_run_forecast found;
	assert_true(sw_predict_run(sw_engine_view(rig->engine), rig_job(rig, job),
				   SW_WISH(.as = as, .promise = SW_REST, .where = sw_beside(rig_job(rig, with))), &found));
	return found;
}

static void start_two_gpu_job(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
	/* Job 1 sits on the second of its GPUs only. */
	const struct sw_gpus second = {{0}, 2};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&second, 1))), SW_YES);
}

/* Aim: of the GPUs that a job would share, the one where it or a neighbour is worst off counts,
 * with all that are there, each in its class. */
static void test_worst_gpu_counts(void **state)
{
	(void)state;
	struct rig rig;
	unsigned asked = 0;
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.predictor = {&asked, take_hundredths}});
	submit(&rig, 2, 10, 20);
	submit(&rig, 1, 20, 20);
	submit(&rig, 2, 5, 40);
	submit(&rig, 2, 5, 41);
	run_script(&rig, 0, start_two_gpu_job);
	struct sw_run_forecast found = beside(&rig, 2, SW_AS_GUARANTEED, 0);
	/* On the first GPU it would have 0.90 beside 0.95; on the second it has 0.90 and 0.01 less,
	 * beside 1 - 0.05 - 0.01 and 1 - 0.10 - 0.05. */
	assert_int_equal(found.share_milli, 890);
	assert_int_equal(found.worst_milli, 850);
	assert_int_equal(found.worth_milli, 900 + 950);
	assert_int_equal(found.before_milli, 1000);
	assert_true(found.fits && found.known);
	assert_false(beside(&rig, 3, SW_AS_GUARANTEED, 0).fits); /* a GiB too much on the second */
	/* As an opportunistic job it costs the guaranteed one 0.01 instead of 0.05. */
	found = beside(&rig, 2, SW_AS_OPPORTUNISTIC, 0);
	assert_int_equal(found.share_milli, 700); /* 1 - 0.10 - 0.20 */
	assert_int_equal(found.worth_milli, 900 + 990);
	/* It runs on one GPU only. */
	assert_false(beside(&rig, 2, SW_AS_OPPORTUNISTIC, 1).fits);
	rig_close(&rig);
}

/* Aim: no job is said to gain where a model is unknown or nothing predicts, and a question that
 * makes no sense is not answered. */
static void test_careful_where_nothing_is_known(void **state)
{
	(void)state;
	for (int predicts = 0; predicts < 2; predicts++) {
		struct rig rig;
		unsigned asked = 0;
		struct sw_engine_config config = {0};
		if (predicts)
			config.predictor = (struct sw_predictor){&asked, take_hundredths};
		open_scripted(&rig, two_by_two, 1, config);
		submit(&rig, 1, 10, 20);
		submit(&rig, 1, predicts ? 0 : 10, 20);
		run_script(&rig, 0, start_first);
		struct sw_run_forecast found = beside(&rig, 1, SW_AS_GUARANTEED, 0);
		assert_true(found.fits && !found.known);
		assert_true(found.share_milli == 500 && found.worst_milli == 500 && found.worth_milli == 1000);
		const struct sw_view *view = sw_engine_view(rig.engine);
		assert_false(
			sw_predict_run(view, rig_job(&rig, 1), SW_WISH(.promise = SW_REST, .where = sw_beside(rig_job(&rig, 1))), &found));
		assert_false(sw_predict_run(view, rig_job(&rig, 0), SW_WISH(.promise = SW_REST, .where = sw_beside(rig_job(&rig, 1))),
					    &found)); /* it waits */
		assert_false(sw_predict_run(view, &made_up, SW_WISH(.promise = SW_REST, .where = sw_beside(rig_job(&rig, 0))), &found));
		assert_false(sw_predict_run(view, rig_job(&rig, 0), SW_WISH(.promise = SW_REST, .where = sw_beside(&made_up)), &found));
		rig_close(&rig);
	}
}

/* Aim: any set of jobs can be asked about, wherever they are; of more than fit on
 * a GPU each runs at 1/n. */
static void test_together(void **state)
{
	(void)state;
	struct rig rig;
	unsigned asked = 0;
	uint32_t speed[SW_RESIDENTS_MAX + 1];
	const struct sw_job *jobs[SW_RESIDENTS_MAX + 1];
	open_scripted(&rig, two_by_two, 1, (struct sw_engine_config){.predictor = {&asked, take_hundredths}});
	for (uint32_t id = 0; id <= SW_RESIDENTS_MAX; id++)
		submit(&rig, 1, id + 1, 1);
	for (uint32_t id = 0; id <= SW_RESIDENTS_MAX; id++)
		jobs[id] = rig_job(&rig, id);
	const struct sw_view *view = sw_engine_view(rig.engine);
	assert_true(sw_predict_together(view, jobs, 3, speed));
	assert_true(speed[0] == 950 && speed[1] == 960 && speed[2] == 970);
	assert_true(sw_predict_together(view, jobs, 1, speed) && speed[0] == 1000);
	assert_true(sw_predict_together(view, jobs, SW_RESIDENTS_MAX, speed));
	assert_false(sw_predict_together(view, jobs, SW_RESIDENTS_MAX + 1, speed));
	assert_true(speed[0] == 111 && speed[SW_RESIDENTS_MAX] == 111);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worst_gpu_counts),
		cmocka_unit_test(test_careful_where_nothing_is_known),
		cmocka_unit_test(test_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
