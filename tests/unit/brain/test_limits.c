/* Limits of jobs that run, in the controller's brain: which user may set which, and
 * that agents hear of them. */
#include <string.h>

#include "unit/brain/desk.h"

static int limit(struct desk *desk, const struct sw_user *user, uint64_t job, struct sw_job_limit wanted, struct sw_err *err)
{
	sw_records records = {0};
	int r = sw_brain_propose_limit(desk->brain, user, job, &wanted, &records, err);
	assert_int_equal(records.count, r == 0);
	desk_apply(desk, &records, NULL);
	return r;
}

/* What the agent hears of the job: its wish, with the limits. */
static struct sw_want heard(struct desk *desk, uint64_t job)
{
	struct sw_want want = {0};
	struct sw_answer_message *answer = desk_sync(desk);
	for (size_t w = 0; w < answer->want_count; w++)
		if (answer->wants[w].id.job == job && answer->wants[w].want == SW_WANT_RUN)
			want = answer->wants[w];
	sw_brain_answer_free(answer);
	want.gpus = (struct sw_texts){0};
	return want;
}

#define MEMORY(bytes) ((struct sw_job_limit){.sets_memory = true, .memory_bytes = (bytes)})
#define SHARE(milli) ((struct sw_job_limit){.sets_share = true, .share_milli = (milli)})
#define GIB(n) (UINT64_C(n) << 30)

/* Aim: a limit is heard by the agent as news, changes only what it sets, and goes
 * with the next run too. */
static void test_a_limit_is_news_and_lasts(void **state)
{
	struct desk *desk = *state;
	struct sw_job_view view;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"], \"retries\": 1}");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	struct sw_want want = heard(desk, 1);
	assert_true(want.gpu_limit_bytes == 0 && want.gpu_share_milli == 0);
	uint64_t before = desk->have;
	assert_int_equal(limit(desk, &alice, 1, MEMORY(GIB(10)), NULL), 0);
	want = heard(desk, 1);
	assert_true(desk->have > before);
	assert_true(want.gpu_limit_bytes == GIB(10) && want.gpu_share_milli == 0);
	assert_int_equal(limit(desk, &root, 1, SHARE(300), NULL), 0);
	want = heard(desk, 1);
	assert_true(want.gpu_limit_bytes == GIB(10) && want.gpu_share_milli == 300);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 1);
	desk_sync_and_drop(desk);
	desk_pass_time(desk, 11 * SW_NS_PER_S);
	want = heard(desk, 1);
	assert_true(want.id.epoch == 2 && want.gpu_limit_bytes == GIB(10) && want.gpu_share_milli == 300);
	desk_say(desk, 1, 2, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	assert_int_equal(limit(desk, &alice, 1, MEMORY(0), NULL), 0);
	want = heard(desk, 1);
	assert_true(want.gpu_limit_bytes == 0 && want.gpu_share_milli == 300);
	assert_true(sw_brain_job(desk->brain, desk->now, 1, &view) && view.limit_bytes == 0 && view.limit_milli == 300);
}

/* Aim: a job that asked for memory hears that as its limit, and one that a user set
 * only where it is lower. */
static void test_a_limit_stays_within_what_the_job_gets(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"], \"gpu_memory\": \"20G\"}");
	assert_true(heard(desk, 1).gpu_limit_bytes == GIB(20));
	assert_int_equal(limit(desk, &alice, 1, MEMORY(GIB(30)), &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "20.0 GiB"));
	assert_int_equal(limit(desk, &alice, 1, MEMORY(GIB(5)), NULL), 0);
	assert_true(heard(desk, 1).gpu_limit_bytes == GIB(5));
}

/* Aim: what a job's profile says of its use of a GPU reaches the policy, and sets no limit. */
static void test_use_by_profile_reaches_the_policy(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"], \"model\": \"resnet50\", \"gpu_use\": 0.3}");
	desk_submit(desk, "{\"command\": [\"a\"]}");
	const struct sw_engine *engine = desk->brain->engine;
	assert_int_equal(sw_engine_job(engine, (struct sw_job_id){0})->use_milli, 300);
	assert_int_equal(sw_engine_job(engine, (struct sw_job_id){1})->use_milli, 0);
	assert_true(heard(desk, 1).gpu_limit_bytes == 0);
}

/* Aim: limits that make no sense, or are not the asker's to set, are refused and leave no
 * record. */
static void test_limits_are_checked(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"]}");
	assert_int_equal(limit(desk, &alice, 2, SHARE(300), NULL), SW_ENOTFOUND);
	assert_int_equal(limit(desk, &bob, 1, SHARE(300), NULL), SW_EDENIED);
	assert_int_equal(limit(desk, &alice, 1, MEMORY((16 << 20) - 1), &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "16.0 MiB"));
	sw_err_clear(&err);
	assert_int_equal(limit(desk, &alice, 1, MEMORY(GIB(80) + 1), &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "80.0 GiB"));
	assert_int_equal(limit(desk, &alice, 1, MEMORY(GIB(80)), NULL), 0);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	sw_err_clear(&err);
	assert_int_equal(limit(desk, &alice, 1, SHARE(300), &err), SW_EINPUT);
	assert_string_equal(err.fact, "cannot limit job 1");
	assert_string_equal(err.detail, "it has ended");
	/* Nothing would hold it to one. */
	sw_err_clear(&err);
	desk_submit(desk, "{\"command\": [\"x\"], \"gpu_runtime\": \"off\"}");
	assert_int_equal(limit(desk, &alice, 2, SHARE(300), &err), SW_EINPUT);
	assert_string_equal(err.fact, "cannot limit job 2");
	assert_non_null(strstr(err.detail, "--gpu-runtime off"));
	assert_true(err.hint[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_a_limit_is_news_and_lasts),
		DESK_TEST(test_a_limit_stays_within_what_the_job_gets),
		DESK_TEST(test_use_by_profile_reaches_the_policy),
		DESK_TEST(test_limits_are_checked),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
