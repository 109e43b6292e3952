/* By which user, when and why a run was stopped: as people see it, and as the order for the
 * job's own log says it. */
#include "unit/brain/bench.h"

static const struct sw_user root = {.uid = 0, .is_operator = true};

static const char *name_user(void *context, uint32_t uid)
{
	(void)context;
	return uid == 1000 ? "alice" : uid == 0 ? "root" : NULL;
}

static int set_up_named(void **state)
{
	static struct sw_brain_config named;
	named = config;
	named.user_name = name_user;
	return set_up_with(state, &named, 2);
}

/* What the order for this run says for its log; NULL: nothing. */
static const char *order_of(const struct bench *bench, uint64_t job, uint32_t epoch)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job && bench->answer->wants[w].id.epoch == epoch)
			return bench->answer->wants[w].why;
	return "no order";
}

static struct sw_stop_view stop_of(const struct bench *bench, uint64_t job)
{
	struct sw_stop_view view;
	assert_true(sw_brain_stop(bench->brain, job, &view));
	return view;
}

static void change_as(struct bench *bench, const struct sw_user *user, const struct sw_change *change, uint64_t job)
{
	sw_records records = {0};
	struct sw_err err = {0};
	if (sw_brain_propose_one(bench->brain, user, change, job, &records, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	apply_all(bench, &records, NULL);
	sync_now(bench);
}

static void expect_why(struct bench *bench, uint64_t job, const char *words)
{
	char why[1000];
	sw_brain_explain(bench->brain, bench->now, job, why, sizeof why);
	if (strstr(why, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, why);
}

/* Job 1 runs on both GPUs. */
static void run_one(struct bench *bench, const char *more)
{
	struct sw_stop_view none;
	submit(bench, 100, more);
	sync_now(bench);
	assert_null(order_of(bench, 1, 1));
	runs(bench, 1, 1);
	bench->now += 10 * SW_NS_PER_S;
	assert_false(sw_brain_stop(bench->brain, 1, &none));
}

/* Aim: a job that a policy suspends for another names that one, its class and its
 * user; and when it went on. */
static void test_for_another_job(void **state)
{
	struct bench *bench = *state;
	run_one(bench, WITH(20));
	submit(bench, 5, WITH(40));
	sync_now(bench);
	assert_string_equal(order_of(bench, 1, 1), "for job 2 (guaranteed, user alice): it goes on when job 2 ends or makes way");
	assert_null(order_of(bench, 2, 1));
	struct sw_stop_view stop = stop_of(bench, 1);
	assert_string_equal(stop.kind, "suspended");
	assert_string_equal(stop.by, "policy");
	assert_true(stop.job == 2 && stop.at == bench->now && stop.until == SW_TIME_NEVER && stop.uid == UINT32_MAX);
	expect_why(bench, 1, "Z for job 2 (guaranteed, user alice)");
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	runs(bench, 2, 1);
	bench->now += 5 * SW_NS_PER_S;
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	stop = stop_of(bench, 1);
	assert_true(stop.until == bench->now);
	assert_string_equal(stop.next, "");
	assert_null(order_of(bench, 1, 1));
}

/* Aim: what its owner, or an operator, does to a job is told as theirs; and it is told to
 * others as little as before. */
static void test_by_people(void **state)
{
	struct bench *bench = *state;
	const struct sw_change suspend = {.kind = SW_RECORD_HOLD, .verb = "suspend"};
	const struct sw_change cancel = {.kind = SW_RECORD_CANCEL, .verb = "cancel"};
	run_one(bench, WITH(20));
	change_as(bench, &alice, &suspend, 1);
	assert_string_equal(order_of(bench, 1, 1), "by user alice: it goes on after 'sharewell resume 1'");
	expect_why(bench, 1, "Z by user alice");
	assert_string_equal(stop_of(bench, 1).by, "user");
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	bench->now += SW_NS_PER_S;
	change_as(bench, &alice, &(struct sw_change){.kind = SW_RECORD_RELEASE, .verb = "resume"}, 1);
	assert_true(stop_of(bench, 1).until == bench->now);
	change_as(bench, &root, &cancel, 1);
	assert_string_equal(order_of(bench, 1, 1), "by operator root (cancel)");
	struct sw_stop_view stop = stop_of(bench, 1);
	assert_string_equal(stop.kind, "cancelled");
	assert_string_equal(stop.by, "operator");
	assert_true(stop.uid == 0);
	tell(bench, 1, 1, SW_RUN_EXITED, 15, "stopped");
	expect_why(bench, 1, "Z by operator root, after running for ");
}

/* Aim: a job that is let go, and takes the GPUs of another by that, is what stopped the other: not
 * the user that let it go. */
static void test_not_by_who_let_another_go(void **state)
{
	struct bench *bench = *state;
	run_one(bench, WITH(20));
	submit(bench, 5, WITH(40) ", \"hold\": true");
	sync_now(bench);
	WISH(1, 1, SW_WANT_RUN);
	change_as(bench, &alice, &(struct sw_change){.kind = SW_RECORD_RELEASE, .verb = "resume"}, 2);
	WISH(1, 1, SW_WANT_SUSPEND);
	assert_string_equal(stop_of(bench, 1).by, "policy");
	assert_string_equal(stop_of(bench, 1).why, "for job 2 (guaranteed, user alice)");
}

/* Aim: of another user's job no more is named than all users see: its number and its user. */
static void test_for_another_user(void **state)
{
	struct bench *bench = *state;
	struct sw_job_request *asked = NULL;
	static const char json[] = "{\"command\": [\"job\"], \"expected\": 5" WITH(40) "}";
	sw_records records = {0};
	uint64_t job = 0;
	run_one(bench, WITH(20));
	assert_int_equal(sw_job_request_decode("test", json, sizeof json - 1, &asked, NULL), 0);
	assert_int_equal(sw_brain_propose_submit(bench->brain, &root, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	apply_all(bench, &records, &job);
	sync_now(bench);
	assert_string_equal(order_of(bench, 1, 1), "for job 2 (user root): it goes on when job 2 ends or makes way");
}

/* Aim: a run that is lost says what comes next: it starts anew by itself, or
 * when its user says so. */
static void test_starts_anew(void **state)
{
	struct bench *bench = *state;
	run_one(bench, ", \"gpus\": 2, \"gpu_memory\": \"20GiB\", \"preempt\": \"requeue\"");
	submit(bench, 5, WITH(20));
	sync_now(bench);
	assert_string_equal(order_of(bench, 1, 1), "for job 2 (guaranteed, user alice): it starts anew when there are GPUs for it");
	assert_string_equal(stop_of(bench, 1).kind, "stopped");
	tear_down(state);
	set_up_named(state);
	bench = *state;
	run_one(bench, ", \"gpus\": 2");
	change_as(bench, &alice, &(struct sw_change){.kind = SW_RECORD_HOLD, .verb = "suspend", .force = true}, 1);
	assert_string_equal(order_of(bench, 1, 1), "by user alice: it starts anew after 'sharewell resume 1'");
	tell(bench, 1, 1, SW_RUN_EXITED, 15, "stopped");
	expect_why(bench, 1, "its last run was stopped at ");
	/* What was said of the run before is not said to the next. */
	change_as(bench, &alice, &(struct sw_change){.kind = SW_RECORD_RELEASE, .verb = "resume"}, 1);
	runs(bench, 1, 2);
	assert_null(order_of(bench, 1, 2));
}

/* Aim: a requeue says that the run was stopped, also one that could have been suspended, or is, and
 * names its user. */
static void test_requeued(void **state)
{
	struct bench *bench = *state;
	const struct sw_change requeue = {.kind = SW_RECORD_REQUEUE, .verb = "requeue"};
	run_one(bench, WITH(20));
	change_as(bench, &alice, &requeue, 1);
	assert_string_equal(stop_of(bench, 1).kind, "stopped");
	assert_string_equal(stop_of(bench, 1).why, "by user alice");
	tell(bench, 1, 1, SW_RUN_EXITED, 15, "stopped");
	assert_int_equal(look(bench, 1).restarts, 1);
	runs(bench, 1, 2);
	submit(bench, 5, WITH(40));
	sync_now(bench);
	assert_string_equal(stop_of(bench, 1).kind, "suspended");
	change_as(bench, &root, &requeue, 1);
	assert_string_equal(stop_of(bench, 1).kind, "stopped");
	assert_string_equal(order_of(bench, 1, 2), "by operator root: it starts anew when there are GPUs for it");
	assert_string_equal(look(bench, 1).reason, "requeued");
}

/* Aim: a suspend that came through since it would lose nothing does nothing where that has changed
 * before it is applied; with force it stops the run. */
static void test_suspend_that_would_lose_by_now(void **state)
{
	struct bench *bench = *state;
	for (int force = 0; force < 2; force++) {
		const struct sw_change suspend = {.kind = SW_RECORD_HOLD, .verb = "suspend", .force = force};
		sw_records records = {0};
		struct sw_err err = {0};
		if (force == 0) {
			bench->frees = true;
			run_one(bench, ", \"gpu_memory\": \"20GiB\"");
		}
		if (sw_brain_propose_one(bench->brain, &alice, &suspend, 1, &records, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		bench->frees = false;
		runs(bench, 1, 1); /* its GPU memory would stay */
		apply_all(bench, &records, NULL);
		sync_now(bench);
		assert_string_equal(look(bench, 1).state, force ? "PD" : "R");
		assert_int_equal(look(bench, 1).held, force);
	}
}

/* Aim: the longest names that there are make an order that an agent can read. */
static void test_longest_words(void **state)
{
	struct bench *bench = *state;
	run_one(bench, WITH(20));
	submit(bench, 5, WITH(40));
	sync_now(bench);
	char *text = NULL;
	size_t size;
	struct sw_answer_message *back = NULL;
	assert_int_equal(sw_answer_encode(bench->answer, &text, &size, NULL), 0);
	assert_int_equal(sw_answer_decode(text, size, &back, NULL), 0);
	assert_true(back->unread_count == 0 && back->want_count == 2);
	for (size_t w = 0; w < 2; w++)
		if (back->wants[w].id.job == 1)
			assert_non_null(strstr(back->wants[w].why, "it goes on when job 2 ends or makes way"));
	sw_answer_free(back);
	free(text);
}

static const char *name_long(void *context, uint32_t uid)
{
	(void)context, (void)uid;
	static char name[300];
	memset(name, 'n', sizeof name - 1);
	return name;
}

static int set_up_long(void **state)
{
	static struct sw_brain_config named;
	named = config;
	named.user_name = name_long;
	return set_up_with(state, &named, 2);
}

/* Aim: a snapshot keeps the last stop. */
static void test_is_kept(void **state)
{
	struct bench *bench = *state;
	run_one(bench, WITH(20));
	submit(bench, 5, WITH(40));
	sync_now(bench);
	struct sw_pack pack = {0};
	struct sw_brain *again = NULL;
	struct sw_stop_view stop, before = stop_of(bench, 1);
	bool adopted;
	struct sw_err err = {0};
	sw_brain_save(bench->brain, &pack);
	if (sw_brain_load(bench->config, pack.bytes, pack.size, &again, &adopted, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_true(sw_brain_stop(again, 1, &stop));
	assert_true(stop.at == before.at && stop.job == 2 && stop.until == SW_TIME_NEVER);
	assert_string_equal(stop.why, before.why);
	assert_false(sw_brain_stop(again, 2, &stop));
	sw_brain_free(again);
	sw_pack_release(&pack);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up_named, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_for_another_job),
		TEST(test_by_people),
		TEST(test_not_by_who_let_another_go),
		TEST(test_starts_anew),
		TEST(test_requeued),
		TEST(test_suspend_that_would_lose_by_now),
		TEST(test_for_another_user),
		TEST(test_is_kept),
		cmocka_unit_test_setup_teardown(test_longest_words, set_up_long, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
