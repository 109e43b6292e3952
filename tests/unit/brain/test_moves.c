/* Runs that go on on other GPUs of their node. */
#include "unit/brain/bench.h"

/* A policy that has every job at the first free GPU, but for a while when it moves none. */
#define RESTS_FROM (2000 * SW_NS_PER_S)
#define RESTS_UNTIL (9000 * SW_NS_PER_S)
static sw_ns tidy(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	bool rests = sw_view_now(view) >= RESTS_FROM && sw_view_now(view) < RESTS_UNTIL;
	const struct sw_job *next;
	for (const struct sw_job *job = sw_view_next_running(view, NULL); job != NULL && !rests; job = sw_view_next_running(view, job))
		(void)sw_plan_run(plan, job, SW_WISH(.where = sw_by(NULL)));
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL; job = next) {
		next = sw_view_next_waiting(view, job);
		(void)sw_plan_run(plan, job, NULL);
	}
	return SW_TIME_NEVER;
}
static const struct sw_policy tidy_policy = {.abi = SW_POLICY_ABI, .name = "tidy", .about = "moves jobs", .decide = tidy};

static int set_up_four(void **state)
{
	return set_up_with(state, &config, 4);
}

static int set_up_tidy(void **state)
{
	static struct sw_brain_config tidy_config;
	tidy_config = config;
	tidy_config.plugin = &tidy_policy;
	tidy_config.policy = "tidy";
	return set_up_with(state, &tidy_config, 2);
}

static int propose_move(struct bench *bench, uint64_t job, uint64_t mask, struct sw_err *err)
{
	sw_records records = {0};
	*err = (struct sw_err){0};
	int r = sw_brain_propose_move(bench->brain, &alice, job, mask, &records, err);
	apply_all(bench, &records, NULL);
	sync_now(bench);
	return r;
}

/* A record as it stands in a journal. */
static void apply_record(struct bench *bench, enum sw_record_kind kind, const char *body)
{
	sw_records records = {0};
	struct sw_record *record = sw_vec_push(&records);
	*record = (struct sw_record){.kind = (uint8_t)kind, .body = strdup(body), .size = strlen(body)};
	apply_all(bench, &records, NULL);
}

static void apply_report(struct bench *bench, const char *body)
{
	apply_record(bench, SW_RECORD_REPORT, body);
}

static const char *gpu_of(const struct bench *bench, uint64_t job)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job)
			return bench->answer->wants[w].gpus.items[0];
	return "";
}

#define ONE ", \"gpu_memory\": \"60GiB\", \"preempt\": \"suspend\""

/* Aim: a run is wished on its new GPU as the same run, others get the old one, and it is there
 * when its agent says so. */
static void test_moves(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	char why[300];
	submit(bench, 100, ONE);
	sync_now(bench);
	assert_int_equal(propose_move(bench, 1, 2, &err), SW_EINPUT);
	assert_string_equal(err.detail, "it has not started yet");
	runs(bench, 1, 1);
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
	assert_int_equal(propose_move(bench, 1, 1, &err), SW_EINPUT);
	assert_int_equal(propose_move(bench, 1, 3, &err), SW_EINPUT);
	assert_int_equal(propose_move(bench, 1, 4, &err), SW_EINPUT);
	assert_int_equal(propose_move(bench, 1, 0, &err), 0);
	assert_string_equal(gpu_of(bench, 1), "GPU-1");
	WISH(1, 1, SW_WANT_RUN);
	assert_true(look(bench, 1).is_moving);
	assert_int_equal(propose_move(bench, 1, 1, &err), SW_EINPUT);
	assert_string_equal(err.detail, "it is on its way to other GPUs already");
	submit(bench, 200, ONE);
	sync_now(bench);
	assert_string_equal(gpu_of(bench, 2), "GPU-0");
	sw_brain_explain(bench->brain, bench->now, 2, why, sizeof why);
	assert_non_null(strstr(why, "job 1 is on its way off them"));
	bench->runs[0].gpus = "GPU-0";
	bench->runs[0].moving = "GPU-1";
	sync_now(bench);
	assert_true(look(bench, 1).is_moving);
	bench->runs[0].gpus = "GPU-1";
	bench->runs[0].moving = NULL;
	sync_now(bench);
	assert_false(look(bench, 1).is_moving);
	assert_int_equal(look(bench, 1).epoch, 1);
	assert_int_equal(look(bench, 1).gpu_mask, 2);
	size_t records = bench->journal.count;
	sync_now(bench);
	assert_int_equal(bench->journal.count, records);
	runs(bench, 2, 1);
	STATE(2, "R");
	/* Where the agent says nothing of it, that is the answer in the end. */
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	assert_int_equal(propose_move(bench, 1, 1, &err), 0);
	bench->now += 500 * SW_NS_PER_S;
	sync_now(bench);
	assert_true(look(bench, 1).is_moving);
	bench->now += 200 * SW_NS_PER_S;
	sync_now(bench);
	assert_false(look(bench, 1).is_moving);
	assert_int_equal(look(bench, 1).gpu_mask, 2);
	assert_non_null(strstr(look(bench, 1).unmoved, "did not say in time"));
}

/* Aim: a run that cannot go has its GPU again, and the run that was given it in the
 * meantime begins elsewhere. */
static void test_stays(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	submit(bench, 100, ONE);
	sync_now(bench);
	runs(bench, 1, 1);
	assert_int_equal(propose_move(bench, 1, 2, &err), 0);
	submit(bench, 200, ONE);
	sync_now(bench);
	assert_string_equal(gpu_of(bench, 2), "GPU-0");
	bench->runs[0].unmoved = "the driver is too old";
	/* An answer that it has not heard yet may say something else. */
	bench->have--;
	sync_now(bench);
	assert_true(look(bench, 1).is_moving);
	sync_now(bench);
	bench->runs[0].unmoved = NULL;
	assert_false(look(bench, 1).is_moving);
	assert_string_equal(look(bench, 1).unmoved, "the driver is too old");
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
	WISH(1, 1, SW_WANT_RUN);
	sync_now(bench);
	sync_now(bench);
	assert_int_equal(wish(bench, 2, 2), SW_WANT_RUN);
	assert_int_equal(look(bench, 2).gpu_mask, 2);
	/* One that stands still meanwhile goes on where it is. */
	change(bench, SW_RECORD_CANCEL, 2);
	assert_int_equal(propose_move(bench, 1, 2, &err), 0);
	change(bench, SW_RECORD_HOLD, 1);
	bench->runs[0].state = SW_RUN_SUSPENDED;
	bench->runs[0].unmoved = "it was suspended before it could go";
	sync_now(bench);
	sync_now(bench);
	bench->runs[0].unmoved = NULL;
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
	change(bench, SW_RECORD_RELEASE, 1);
	WISH(1, 1, SW_WANT_RUN);
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
}

/* Aim: a run that could not leave a GPU that the operator keeps back since then goes on there. */
static void test_stays_on_a_shut_gpu(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	submit(bench, 100, ONE);
	sync_now(bench);
	runs(bench, 1, 1);
	assert_int_equal(propose_move(bench, 1, 2, &err), 0);
	apply_record(bench, SW_RECORD_GPUS, "{\"name\": \"n\", \"shut\": [{\"gpu\": \"GPU-0\", \"why\": \"excluded\", \"since\": 77}]}");
	bench->runs[0].unmoved = "the driver is too old";
	sync_now(bench);
	bench->runs[0].unmoved = NULL;
	assert_int_equal(wish(bench, 1, 1), SW_WANT_RUN);
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
}

/* Aim: a job whose owner held it in the meantime does not begin elsewhere where it
 * has to leave such a GPU. */
static void test_stays_before_one_that_is_held(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	sw_records records = {0};
	submit(bench, 100, ONE);
	sync_now(bench);
	runs(bench, 1, 1);
	assert_int_equal(propose_move(bench, 1, 2, &err), 0);
	submit(bench, 200, ONE);
	sync_now(bench);
	assert_string_equal(gpu_of(bench, 2), "GPU-0");
	assert_int_equal(sw_brain_propose_change(bench->brain, &alice, SW_RECORD_HOLD, "hold", 2, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	bench->runs[0].unmoved = "the driver is too old";
	sync_now(bench);
	sync_now(bench);
	bench->runs[0].unmoved = NULL;
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
	STATE(2, "PD");
	assert_true(look(bench, 2).held);
	WISH(2, 2, NO_WISH);
	change(bench, SW_RECORD_RELEASE, 2);
	assert_string_equal(gpu_of(bench, 2), "GPU-1");
}

/* Aim: a run that can neither go nor come back begins anew, and is not
 * suspended before it has begun. */
static void test_begins_anew(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	sw_records records = {0};
	bench->frees = true;
	submit(bench, 100, ONE);
	sync_now(bench);
	runs(bench, 1, 1);
	assert_int_equal(propose_move(bench, 1, 2, &err), 0);
	apply_record(bench, SW_RECORD_GPUS, "{\"name\": \"n\", \"shut\": [{\"gpu\": \"GPU-0\", \"why\": \"dead\", \"since\": 77}]}");
	bench->runs[0].unmoved = "the driver is too old";
	sync_now(bench);
	WISH(1, 1, SW_WANT_STOP);
	assert_string_equal(look(bench, 1).unmoved, "the driver is too old");
	submit(bench, 5, ", \"gpu_memory\": \"20GiB\"");
	sync_now(bench);
	STATE(2, "PD");
	err = (struct sw_err){0};
	assert_int_equal(sw_brain_propose_change(bench->brain, &alice, SW_RECORD_HOLD, "suspend", 1, &records, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "it is just starting"));
	tell(bench, 1, 1, SW_RUN_EXITED, 15, SW_REASON_STOPPED);
	bench->run_count = 0;
	sync_now(bench);
	WISH(1, 2, SW_WANT_RUN);
	assert_string_equal(gpu_of(bench, 1), "GPU-1");
	runs(bench, 1, 2);
	WISH(1, 2, SW_WANT_SUSPEND);
	STATE(1, "S");
	STATE(2, "CF");
}

/* Aim: one that was suspended on its way and has to stay keeps its state: the run that was given
 * its GPU in the meantime begins elsewhere, unless it has begun there. */
static void test_stays_suspended(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	bench->frees = true;
	submit(bench, 100, ONE);
	sync_now(bench);
	runs(bench, 1, 1);
	for (uint64_t newcomer = 2; newcomer <= 4; newcomer++) {
		bool late = newcomer == 3, begins = newcomer == 4;
		assert_int_equal(propose_move(bench, 1, 2, &err), 0);
		if (late)
			change(bench, SW_RECORD_HOLD, 1);
		submit(bench, 200, ONE);
		sync_now(bench);
		assert_string_equal(gpu_of(bench, newcomer), "GPU-0");
		if (!late)
			change(bench, SW_RECORD_HOLD, 1);
		WISH(1, 1, SW_WANT_SUSPEND);
		if (begins)
			runs(bench, newcomer, 1);
		bench->runs[0].state = SW_RUN_SUSPENDED;
		bench->runs[0].unmoved = "it was suspended before it could go";
		sync_now(bench);
		sync_now(bench);
		bench->runs[0].unmoved = NULL;
		assert_false(look(bench, 1).is_moving);
		if (begins)
			break;
		WISH(1, 1, SW_WANT_SUSPEND);
		assert_string_equal(gpu_of(bench, 1), "GPU-0");
		assert_int_equal(wish(bench, newcomer, 2), SW_WANT_RUN);
		assert_string_equal(gpu_of(bench, newcomer), "GPU-1");
		change(bench, SW_RECORD_CANCEL, newcomer);
		change(bench, SW_RECORD_RELEASE, 1);
		runs(bench, 1, 1);
	}
	STATE(4, "R");
	assert_string_equal(gpu_of(bench, 4), "GPU-0");
	assert_int_equal(look(bench, 4).epoch, 1);
	WISH(1, 1, SW_WANT_SUSPEND);
}

/* Aim: of moves that were proposed together the first is made, and of each other
 * one it is known why not. */
static void test_moves_together(void **state)
{
	struct bench *bench = *state;
	struct sw_err err = {0};
	sw_records records = {0};
	for (uint64_t job = 1; job <= 2; job++) {
		submit(bench, 100, ONE);
		sync_now(bench);
		runs(bench, job, 1);
	}
	assert_int_equal(sw_brain_propose_move(bench->brain, &alice, 1, 4, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_move(bench->brain, &alice, 1, 8, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_move(bench->brain, &alice, 2, 4, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	assert_int_equal(sw_brain_check_move(bench->brain, 1, 4, &err), 0);
	assert_int_equal(sw_brain_check_move(bench->brain, 1, 0, &err), 0);
	assert_int_equal(sw_brain_check_move(bench->brain, 1, 8, &err), SW_EINPUT);
	assert_string_equal(err.detail, "it is on its way to other GPUs already");
	err = (struct sw_err){0};
	assert_int_equal(sw_brain_check_move(bench->brain, 2, 4, &err), SW_EINPUT);
	assert_string_equal(err.detail, "others got these GPUs first");
	assert_int_equal(look(bench, 2).gpu_mask, 2);
}

/* Aim: a run that goes anywhere goes neither where one stands still nor where one has not left yet,
 * while there are others. */
static void test_moves_anywhere(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	bench->frees = true;
	for (uint64_t job = 1; job <= 3; job++) {
		submit(bench, 100, ONE);
		sync_now(bench);
		runs(bench, job, 1);
	}
	change(bench, SW_RECORD_HOLD, 2);
	WISH(2, 1, SW_WANT_SUSPEND);
	assert_int_equal(propose_move(bench, 1, 0, &err), 0);
	assert_string_equal(gpu_of(bench, 1), "GPU-3");
	WISH(2, 1, SW_WANT_SUSPEND);
	/* Where the first one was is free, but it may have to stay. */
	assert_int_equal(propose_move(bench, 3, 0, &err), 0);
	assert_string_equal(gpu_of(bench, 3), "GPU-1");
}

/* Aim: a job that goes anywhere goes past a GPU on which the memory of a suspended
 * one leaves it no room. */
static void test_moves_past_a_crowded_gpu(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	for (uint64_t job = 1; job <= 4; job++) {
		submit(bench, 100, ONE);
		sync_now(bench);
		bench->frees = job == 3;
		runs(bench, job, 1);
	}
	change(bench, SW_RECORD_HOLD, 2);
	change(bench, SW_RECORD_HOLD, 3);
	assert_int_equal(propose_move(bench, 1, 2, &err), SW_EINPUT);
	assert_string_equal(err.detail, "others hold one of these GPUs");
	assert_int_equal(propose_move(bench, 1, 0, &err), 0);
	assert_string_equal(gpu_of(bench, 1), "GPU-2");
	assert_int_equal(propose_move(bench, 4, 0, &err), SW_EINPUT);
	assert_string_equal(err.detail, "too few other GPUs of its node are free");
}

/* A policy may have it elsewhere, also by a stop and a start. */
#define ANEW ", \"preempt\": \"requeue\""

/* Aim: journals of versions that stopped and started what a policy moved within its node are
 * read as they were meant. */
static void test_earlier_journals(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ANEW);
	submit(bench, 100, ANEW);
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	assert_true(look(bench, 2).is_moving);
	apply_report(bench,
		     "{\"node\": \"n\", \"job\": 2, \"epoch\": 2, \"state\": \"running\", \"code\": 0, \"signal\": 0, \"reason\": \"\"}");
	assert_false(look(bench, 2).is_moving);
	assert_int_equal(look(bench, 2).epoch, 2);
	assert_int_equal(look(bench, 2).gpu_mask, 1);
	STATE(2, "R");
	apply_report(bench,
		     "{\"node\": \"n\", \"job\": 2, \"epoch\": 2, \"state\": \"exited\", \"code\": 0, \"signal\": 0, \"reason\": \"\"}");
	bench->run_count = 0;
	sync_now(bench);
	STATE(2, "CD");
}

/* Aim: what a policy moves within its node goes on as the same run; where it could not, the
 * policy's next wish stops and starts it as ever. */
static void test_policy_moves(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ANEW);
	submit(bench, 100, ANEW);
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	assert_string_equal(gpu_of(bench, 2), "GPU-1");
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	STATE(1, "CD");
	WISH(2, 1, SW_WANT_RUN);
	assert_string_equal(gpu_of(bench, 2), "GPU-0");
	assert_true(look(bench, 2).is_moving);
	bench->runs[1].gpus = "GPU-0";
	sync_now(bench);
	assert_false(look(bench, 2).is_moving);
	/* The next one cannot go. */
	submit(bench, 100, ANEW);
	sync_now(bench);
	runs(bench, 3, 1);
	assert_int_equal(look(bench, 3).gpu_mask, 2);
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	WISH(3, 1, SW_WANT_RUN);
	assert_true(look(bench, 3).is_moving);
	bench->runs[2].unmoved = "the driver is too old";
	sync_now(bench);
	sync_now(bench);
	assert_false(look(bench, 3).is_moving);
	WISH(3, 1, SW_WANT_STOP);
	tell(bench, 3, 1, SW_RUN_EXITED, 15, SW_REASON_STOPPED);
	sync_now(bench);
	WISH(3, 2, SW_WANT_RUN);
	assert_int_equal(look(bench, 3).gpu_mask, 1);
}

/* Aim: a run that could not be moved is moved, and not stopped, when a policy wishes
 * so a good while later. */
static void test_refusals_pass(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ANEW);
	submit(bench, 100, ANEW);
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	assert_true(look(bench, 2).is_moving);
	bench->now = RESTS_FROM;
	bench->runs[1].unmoved = "others hold the GPU's memory";
	sync_now(bench);
	bench->runs[1].unmoved = NULL;
	assert_false(look(bench, 2).is_moving);
	assert_int_equal(look(bench, 2).gpu_mask, 2);
	sync_now(bench);
	WISH(2, 1, SW_WANT_RUN);
	bench->now = RESTS_UNTIL;
	submit(bench, 100, ", \"gpus\": 2" ANEW);
	sync_now(bench);
	WISH(2, 1, SW_WANT_RUN);
	assert_true(look(bench, 2).is_moving);
	assert_int_equal(look(bench, 2).gpu_mask, 1);
	assert_string_equal(look(bench, 2).unmoved, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_moves),
		TEST(test_stays),
		TEST(test_stays_before_one_that_is_held),
		TEST(test_stays_on_a_shut_gpu),
		TEST(test_begins_anew),
		TEST(test_stays_suspended),
		cmocka_unit_test_setup_teardown(test_earlier_journals, set_up_tidy, tear_down),
		cmocka_unit_test_setup_teardown(test_moves_together, set_up_four, tear_down),
		cmocka_unit_test_setup_teardown(test_moves_anywhere, set_up_four, tear_down),
		cmocka_unit_test_setup_teardown(test_moves_past_a_crowded_gpu, set_up_four, tear_down),
		cmocka_unit_test_setup_teardown(test_policy_moves, set_up_tidy, tear_down),
		cmocka_unit_test_setup_teardown(test_refusals_pass, set_up_tidy, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
