/* Parked runs that are off their GPUs whole, and those that cannot be. */
#include "unit/brain/bench.h"

static int propose_deep(struct bench *bench, uint64_t job, struct sw_err *err)
{
	sw_records records = {0};
	if (err != NULL)
		*err = (struct sw_err){0};
	int r = sw_brain_propose_deep(bench->brain, &alice, job, &records, err);
	apply_all(bench, &records, NULL);
	sync_now(bench);
	return r;
}

static bool is_wished_deep(const struct bench *bench, uint64_t job)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job)
			return bench->answer->wants[w].deep;
	return false;
}

/* What the agent says of a run that is suspended. */
static void stands(struct bench *bench, size_t run, enum sw_run_depth depth, const char *detail)
{
	bench->runs[run].state = SW_RUN_SUSPENDED;
	bench->runs[run].depth = depth;
	bench->runs[run].detail = detail;
	sync_now(bench);
}

/* Aim: a job that is off its GPUs whole leaves all their memory to others, and
 * goes on as the same run. */
static void test_off_its_gpus(void **state)
{
	struct bench *bench = *state;
	char why[200];
	submit(bench, 100, WITH(60));
	sync_now(bench);
	runs(bench, 1, 1);
	submit(bench, 200, ", \"gpus\": 2, \"preempt\": \"requeue\"");
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	WISH(1, 1, SW_WANT_SUSPEND);
	assert_true(is_wished_deep(bench, 1));
	STATE(2, "PD");
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_LEAVING);
	stands(bench, 0, SW_DEPTH_LEAVING, NULL);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_LEAVING);
	stands(bench, 0, SW_DEPTH_OFF, NULL);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_OFF);
	WISH(2, 1, SW_WANT_RUN);
	size_t records = bench->journal.count;
	sync_now(bench);
	assert_int_equal(bench->journal.count, records);
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "off its GPUs whole"));
	change(bench, SW_RECORD_RELEASE, 1);
	runs(bench, 2, 1);
	STATE(1, "R"); /* it is the shorter one */
	assert_false(is_wished_deep(bench, 1));
	WISH(1, 1, SW_WANT_RUN);
	WISH(2, 1, SW_WANT_STOP);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_USUAL);
	/* The next time it stands still as usual, and the other waits. */
	tell(bench, 2, 1, SW_RUN_EXITED, 15, "stopped");
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 1, SW_WANT_SUSPEND);
	STATE(2, "PD");
}

/* Aim: one that cannot be taken off counts like any other that stands still: others that do not fit
 * beside its memory wait. */
static void test_not_off_its_gpus(void **state)
{
	struct bench *bench = *state;
	char why[300];
	submit(bench, 100, WITH(60));
	sync_now(bench);
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	assert_true(is_wished_deep(bench, 1));
	stands(bench, 0, SW_DEPTH_REFUSED, "the driver is too old");
	WISH(1, 1, SW_WANT_SUSPEND);
	assert_false(is_wished_deep(bench, 1));
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_REFUSED);
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "the driver is too old"));
	/* It may be tried again, while others wait for its memory. */
	bench->runs[0].depth = SW_DEPTH_USUAL;
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_LEAVING);
	submit(bench, 5, ", \"gpus\": 2");
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	STATE(2, "PD");
	stands(bench, 0, SW_DEPTH_REFUSED, NULL);
	WISH(1, 1, SW_WANT_SUSPEND);
	STATE(1, "S");
	STATE(2, "PD");
}

/* Aim: one that was said to be off before it went on, in an answer that came late, and cannot be
 * taken off this time, is not waited for. */
static void test_refused_after_a_late_word(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, WITH(60));
	sync_now(bench);
	runs(bench, 1, 1);
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	stands(bench, 0, SW_DEPTH_OFF, NULL);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_OFF);
	stands(bench, 0, SW_DEPTH_REFUSED, "the driver is too old");
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_REFUSED);
	assert_false(is_wished_deep(bench, 1));
}

/* Aim: one that cannot be taken off whole at all is told at once, and nothing happens to it. */
static void test_cannot_be_deep(void **state)
{
	struct bench *bench = *state;
	struct sw_err err = {0};
	submit(bench, 100, "");
	submit(bench, 100, ", \"preempt\": \"suspend\", \"gpu_runtime\": \"off\"");
	submit(bench, 200, ", \"preempt\": \"suspend\"");
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	assert_int_equal(propose_deep(bench, 1, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "--preempt suspend"));
	assert_int_equal(propose_deep(bench, 2, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "--gpu-runtime off"));
	assert_int_equal(propose_deep(bench, 3, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "does not run"));
	assert_int_equal(propose_deep(bench, 4, &err), SW_ENOTFOUND);
	WISH(1, 1, SW_WANT_RUN);
	WISH(2, 1, SW_WANT_RUN);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_off_its_gpus),
		TEST(test_not_off_its_gpus),
		TEST(test_refused_after_a_late_word),
		TEST(test_cannot_be_deep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
