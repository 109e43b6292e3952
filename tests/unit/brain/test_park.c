/* Runs that are parked in place of stopped: which job stands still, goes on, has to give way. */
#include "unit/brain/bench.h"

/* Job 1 runs on both GPUs with 20 GiB of each and is preempted by job 2. */
static void park_the_first(struct bench *bench, const char *second)
{
	submit(bench, 100, WITH(20));
	sync_now(bench);
	WISH(1, 1, SW_WANT_RUN);
	runs(bench, 1, 1);
	bench->now += 10 * SW_NS_PER_S;
	submit(bench, 5, second);
	sync_now(bench);
}

/* Aim: a preempted job stands still under the other, is shown so, and goes on in the same run; only
 * the time that it was active counts. */
static void test_goes_on_where_it_was(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(40));
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_RUN);
	STATE(1, "S");
	assert_string_equal(look(bench, 1).reason, "suspended in place for job 2");
	char why[200];
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "goes on when job 2"));
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	runs(bench, 2, 1);
	bench->now += 50 * SW_NS_PER_S;
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	WISH(1, 1, SW_WANT_RUN);
	STATE(1, "R");
	runs(bench, 1, 1);
	bench->now += 7 * SW_NS_PER_S;
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	STATE(1, "CD");
	struct sw_job_view view = look(bench, 1);
	assert_int_equal(view.epoch, 1);
	assert_int_equal(view.preemptions, 1);
	assert_int_equal(view.ran_ns, 17 * SW_NS_PER_S);
}

/* Aim: no run is stopped for a newcomer that does not fit beside the memory that it would leave on
 * its GPUs; where that memory leaves them, the run stands still there. */
static void test_memory_on_the_gpus(void **state)
{
	static const char *const newcomers[] = {WITH(61), ", \"gpus\": 1"};
	for (size_t n = 0; n < 4; n++) {
		if (n > 0) {
			tear_down(state);
			set_up(state);
		}
		struct bench *bench = *state;
		bench->frees = n >= 2;
		park_the_first(bench, newcomers[n % 2]);
		STATE(1, bench->frees ? "S" : "R");
		STATE(2, bench->frees ? "CF" : "PD");
		if (bench->frees)
			tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
		else
			tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
		runs(bench, 2, 1);
		tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
		STATE(1, bench->frees ? "R" : "CD");
		assert_int_equal(look(bench, 1).epoch, 1);
		assert_int_equal(look(bench, 1).restarts, 0);
	}
}

/* Aim: a run that says nothing stands still where its memory leaves the GPUs, from the moment that
 * its agent says so; else it runs on, and says why it cannot be suspended. */
static void test_not_said(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"gpus\": 2");
	sync_now(bench);
	runs(bench, 1, 1);
	submit(bench, 5, ", \"gpus\": 1");
	sync_now(bench);
	STATE(1, "R");
	STATE(2, "PD");
	struct sw_err err = {0};
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(bench->brain, &alice, SW_RECORD_HOLD, "suspend", 1, &records, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "its GPU memory would stay on the GPUs"));
	bench->runs[0].frees = true;
	sync_now(bench);
	STATE(1, "S");
	STATE(2, "CF");
	/* Word that it would not, before the other has begun: it goes on, and
	 * is not suspended again. */
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	STATE(1, "R");
	STATE(2, "PD");
	runs(bench, 1, 1);
	sync_now(bench);
	STATE(1, "R");
	assert_int_equal(look(bench, 1).epoch, 1);
}

/* Aim: memory that is found to be held counts, but stops no run that has begun beside it
 * and may not be stopped. */
static void test_held_beside_one_that_runs(void **state)
{
	struct bench *bench = *state;
	bench->frees = true;
	park_the_first(bench, ", \"gpus\": 1, \"preempt\": \"never\"");
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	runs(bench, 2, 1);
	bench->runs[0].held = true;
	sync_now(bench);
	STATE(1, "S");
	STATE(2, "R");
	assert_int_equal(look(bench, 2).epoch, 1);
}

/* Aim: a job that was there before the suspend keeps no newcomer from stepping back. */
static void test_held_beside_an_old_neighbour(void **state)
{
	static const struct sw_brain_config shares = {
		.policy = "antman", .placement = "pack", .silence_ns = 30 * SW_NS_PER_S, .silence_margin_ns = 5 * SW_NS_PER_S};
	tear_down(state);
	set_up_with(state, &shares, 1);
	struct bench *bench = *state;
	bench->frees = true;
	submit(bench, 100, ", \"preempt\": \"never\", \"gpu_memory\": \"20GiB\"");
	submit(bench, 100, ", \"class\": \"opportunistic\", \"gpu_memory\": \"50GiB\"");
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	bench->now += SW_NS_PER_S;
	change(bench, SW_RECORD_HOLD, 2);
	WISH(2, 1, SW_WANT_SUSPEND);
	submit(bench, 100, ", \"class\": \"opportunistic\", \"gpu_memory\": \"50GiB\"");
	sync_now(bench);
	WISH(3, 1, SW_WANT_RUN);
	bench->runs[1].state = SW_RUN_SUSPENDED;
	bench->runs[1].held = true;
	sync_now(bench);
	STATE(1, "R");
	STATE(2, "S");
	STATE(3, "PD");
	assert_int_equal(look(bench, 1).epoch, 1);
	assert_string_equal(look(bench, 3).reason, "another job could not leave these GPUs");
}

/* Aim: where the memory of a suspended run could not leave, the newcomer steps back and the run
 * goes on; its node hears that this is known. */
static void test_held_on_the_gpus(void **state)
{
	struct bench *bench = *state;
	bench->frees = true;
	park_the_first(bench, ", \"gpus\": 1");
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_RUN);
	bench->runs[0].state = SW_RUN_SUSPENDED;
	bench->runs[0].held = true;
	sync_now(bench);
	WISH(1, 1, SW_WANT_RUN);
	STATE(1, "R");
	STATE(2, "PD");
	assert_string_equal(look(bench, 2).reason, "another job could not leave these GPUs");
	bench->runs[0].held = false;
	runs(bench, 1, 1);
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	STATE(1, "CD");
	assert_int_equal(look(bench, 1).epoch, 1);
	/* Suspended by its user it stays so, and keeps others off. */
	submit(bench, 100, WITH(20));
	tell(bench, 2, 2, SW_RUN_EXITED, 0, "");
	sync_now(bench);
	runs(bench, 3, 1);
	change(bench, SW_RECORD_HOLD, 3);
	bench->runs[bench->run_count - 1].state = SW_RUN_SUSPENDED;
	bench->runs[bench->run_count - 1].held = true;
	sync_now(bench);
	STATE(3, "S");
	bool known = false;
	for (size_t w = 0; w < bench->answer->want_count; w++)
		known |= bench->answer->wants[w].id.job == 3 && bench->answer->wants[w].held;
	assert_true(known);
	submit(bench, 5, ", \"gpus\": 1");
	sync_now(bench);
	STATE(4, "PD");
}

/* Aim: a job whose owner allows it is stopped and started anew; one that does
 * not say, is left alone. */
static void test_others_are_stopped(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"gpus\": 2, \"gpu_memory\": \"20GiB\"");
	sync_now(bench);
	runs(bench, 1, 1);
	submit(bench, 5, ", \"gpus\": 2, \"gpu_memory\": \"20GiB\", \"preempt\": \"requeue\"");
	sync_now(bench);
	STATE(1, "R");
	STATE(2, "PD");
	tear_down(state);
	set_up(state);
	bench = *state;
	submit(bench, 100, ", \"gpus\": 2, \"gpu_memory\": \"20GiB\", \"preempt\": \"requeue\"");
	sync_now(bench);
	runs(bench, 1, 1);
	submit(bench, 5, WITH(20));
	sync_now(bench);
	WISH(1, 1, SW_WANT_STOP);
	STATE(1, "PD");
	char why[600];
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "its last run was stopped at 1970-01-01T"));
	assert_non_null(strstr(why, "Z for job 2 (guaranteed, user 1000)"));
}

/* Aim: what was not seen running is not stopped yet: what it has to keep is not known. */
static void test_what_has_not_started_is_not_parked(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, WITH(20));
	sync_now(bench);
	submit(bench, 5, WITH(20));
	sync_now(bench);
	STATE(1, "CF");
	STATE(2, "PD");
	runs(bench, 1, 1);
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_RUN);
}

/* Aim: several stand on one GPU as long as their memory fits there with the one that
 * runs; the next one waits. */
static void test_several_stand(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	runs(bench, 2, 1);
	bench->now += SW_NS_PER_S;
	submit(bench, 2, WITH(20));
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_SUSPEND);
	WISH(3, 1, SW_WANT_RUN);
	runs(bench, 3, 1);
	assert_string_equal(look(bench, 1).reason, "suspended in place for job 3");
	bench->now += SW_NS_PER_S / 2;
	submit(bench, 1, WITH(30));
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_SUSPEND);
	WISH(3, 1, SW_WANT_RUN);
	STATE(4, "PD");
}

/* Aim: a user suspends and resumes in place, others leave the GPU alone while there is another, and
 * they are told what it needs. */
static void test_suspended_by_its_user(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"preempt\": \"suspend\"");
	sync_now(bench);
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 1, SW_WANT_SUSPEND);
	STATE(1, "S");
	assert_int_equal(look(bench, 1).held_by, 1000);
	char why[200];
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "sharewell resume 1"));
	/* It holds a whole GPU's memory; there is another GPU. */
	submit(bench, 5, "");
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_RUN);
	change(bench, SW_RECORD_RELEASE, 1);
	WISH(1, 1, SW_WANT_RUN);
	STATE(1, "R");
	assert_int_equal(look(bench, 1).epoch, 1);
	assert_int_equal(look(bench, 1).held_by, UINT32_MAX);
}

/* Aim: cancelling a parked job stops its run, requeueing starts it anew, and requeueing a
 * running one does not park it. */
static void test_cancel_and_requeue(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	change(bench, SW_RECORD_REQUEUE, 1);
	WISH(1, 1, SW_WANT_STOP);
	STATE(1, "PD");
	runs(bench, 2, 1);
	change(bench, SW_RECORD_REQUEUE, 2);
	WISH(2, 1, SW_WANT_STOP);
	tell(bench, 2, 1, SW_RUN_EXITED, 15, "stopped");
	WISH(2, 2, SW_WANT_RUN);
	runs(bench, 2, 2);
	change(bench, SW_RECORD_HOLD, 2);
	WISH(2, 2, SW_WANT_SUSPEND);
	change(bench, SW_RECORD_CANCEL, 2);
	WISH(2, 2, SW_WANT_STOP);
	STATE(2, "CG");
}

/* Aim: the pre-run of a gang that is cancelled stops, also where it stands still. */
static void test_cancel_the_gang_of_a_parked_prerun(void **state)
{
	struct bench *bench = *state;
	bench->frees = true;
	submit(bench, 100, ", \"gpus\": 2, \"prerun\": 60");
	sync_now(bench);
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	STATE(1, "S");
	STATE(2, "PD");
	change(bench, SW_RECORD_CANCEL, 2);
	STATE(1, "CG");
	STATE(2, "CA");
	WISH(1, 1, SW_WANT_STOP);
	tell(bench, 1, 1, SW_RUN_EXITED, 15, "stopped");
	STATE(1, "CA");
}

/* Aim: a parked run that is killed or lost costs its job nothing but its work. */
static void test_parked_run_is_lost(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	runs(bench, 2, 1);
	tell(bench, 1, 1, SW_RUN_EXITED, 9, "");
	WISH(1, 1, SW_WANT_FORGET);
	STATE(1, "PD");
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	WISH(1, 2, SW_WANT_RUN);
	STATE(1, "CF");
	/* Parked again, and then its node is silent for long: it goes on there when the node is
	 * back, and starts nowhere else. */
	runs(bench, 1, 2);
	change(bench, SW_RECORD_HOLD, 1);
	change(bench, SW_RECORD_RELEASE, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 2, SW_WANT_SUSPEND);
	bench->now += 36 * SW_NS_PER_S;
	sw_records records = {0};
	assert_int_equal(sw_brain_tick(bench->brain, bench->now, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	STATE(1, "UN");
	change(bench, SW_RECORD_RELEASE, 1);
	sync_now(bench);
	WISH(1, 2, SW_WANT_RUN);
	STATE(1, "R");
	assert_int_equal(look(bench, 1).epoch, 2);
}

/* Aim: a run that ends by itself before it stands still has ended: well, or
 * badly with its own code. */
static void test_ends_before_it_stands_still(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	STATE(1, "CD");
	runs(bench, 2, 1);
	change(bench, SW_RECORD_HOLD, 2);
	bench->runs[1].code = 7;
	bench->runs[1].state = SW_RUN_EXITED;
	sync_now(bench);
	STATE(2, "F");
	assert_int_equal(look(bench, 2).code, 7);
}

/* Aim: the host's memory, where jobs say what they need, is not given twice either. */
static void test_host_memory(void **state)
{
	static const struct sw_brain_config counts_memory = {
		.policy = "srtf", .placement = "yarn", .silence_ns = 30 * SW_NS_PER_S, .silence_margin_ns = 5 * SW_NS_PER_S};
	tear_down(state);
	set_up_with(state, &counts_memory, 2);
	struct bench *bench = *state;
	submit(bench, 100, ", \"preempt\": \"suspend\", \"gpu_memory\": \"1GiB\", \"memory\": \"40GiB\"");
	sync_now(bench);
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 1, SW_WANT_SUSPEND);
	submit(bench, 5, ", \"memory\": \"20GiB\"");
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	submit(bench, 5, ", \"memory\": \"40GiB\", \"gpu_memory\": \"1GiB\"");
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	STATE(3, "PD");
}

/* Aim: what an elastic job gets beside its GPUs follows the GPUs that it was given. */
static void test_limits_follow_the_gpus(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"gpus\": 2, \"cpus\": 3, \"memory\": \"2GiB\"");
	sync_now(bench);
	assert_int_equal(bench->answer->wants[0].gpus.count, 2);
	assert_int_equal(bench->answer->wants[0].spec->cpus, 6);
	assert_true(bench->answer->wants[0].spec->memory_bytes == UINT64_C(4) << 30);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_goes_on_where_it_was),
		TEST(test_memory_on_the_gpus),
		TEST(test_not_said),
		TEST(test_held_beside_one_that_runs),
		TEST(test_held_beside_an_old_neighbour),
		TEST(test_held_on_the_gpus),
		TEST(test_others_are_stopped),
		TEST(test_what_has_not_started_is_not_parked),
		TEST(test_several_stand),
		TEST(test_suspended_by_its_user),
		TEST(test_cancel_and_requeue),
		TEST(test_cancel_the_gang_of_a_parked_prerun),
		TEST(test_parked_run_is_lost),
		TEST(test_ends_before_it_stands_still),
		TEST(test_host_memory),
		TEST(test_limits_follow_the_gpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
