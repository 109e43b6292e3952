/* The controller's brain: requests, words of agents and time become records; records become state; state becomes answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "contention/profile.h"
#include "controller/brain_state.h"

static struct sw_brain_config config = {
	.policy = "fifo",
	.placement = "pack",
	.lease_ns = 30 * SW_NS_PER_S,
	.lease_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 10 * SW_NS_PER_S,
};
static const struct sw_user alice = {.uid = 1000, .gid = 1000}, bob = {.uid = 1001, .gid = 1001}, root = {.is_operator = true};

/* A controller without surroundings: keeps every record, as a journal would. */
struct desk {
	struct sw_brain *brain;
	SW_VEC(struct kept {
		sw_ns at;
		struct sw_record record;
	})
	journal;
	sw_ns now;
	uint64_t number; /* of syncs */
	struct sw_sync_run runs[8];
	size_t run_count;
	uint64_t have;
};

static void apply_all(struct desk *desk, sw_records *records, uint64_t *ret_job)
{
	struct sw_err err = {0};
	for (size_t r = 0; r < records->count; r++) {
		if (sw_brain_apply(desk->brain, desk->now, records->items[r].kind, records->items[r].body, records->items[r].size, ret_job,
				   &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		*sw_vec_push(&desk->journal) = (struct kept){desk->now, records->items[r]};
	}
	sw_vec_free(records); /* the bodies live on in the journal */
	if (sw_brain_validate(desk->brain, &err) < 0)
		fail_msg("%s", err.fact);
}

static struct sw_job_request *request(const char *json)
{
	struct sw_job_request *asked = NULL;
	struct sw_err err = {0};
	if (sw_job_request_decode("test", json, strlen(json), &asked, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return asked;
}

static uint64_t submit(struct desk *desk, const char *json)
{
	sw_records records = {0};
	uint64_t job = 0;
	struct sw_job_request *asked = request(json);
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	apply_all(desk, &records, &job);
	return job;
}

/* The agent of node "n" says what it has and hears what is wanted. */
static struct sw_answer_message *sync_with(struct desk *desk, uint64_t number)
{
	struct sw_sync_gpu gpus[] = {{.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-1", .name = "g", .memory_bytes = UINT64_C(80) << 30}};
	const struct sw_sync_inventory inventory = {gpus, 2, 16, UINT64_C(64) << 30};
	const struct sw_sync sync = {.node = "n",
				     .instance = "a1",
				     .number = number,
				     .have = desk->have,
				     .inventory = &inventory,
				     .runs = desk->runs,
				     .run_count = desk->run_count};
	sw_records records = {0};
	struct sw_err err = {0};
	struct sw_answer_message *answer = NULL;
	assert_int_equal(sw_brain_hear(desk->brain, desk->now, &sync, &records, &err), 0);
	apply_all(desk, &records, NULL);
	assert_int_equal(sw_brain_answer(desk->brain, desk->now, &sync, &answer, &err), 0);
	desk->have = answer->version;
	return answer;
}

static struct sw_answer_message *sync_now(struct desk *desk)
{
	return sync_with(desk, ++desk->number);
}

static enum sw_want_kind wanted(const struct sw_answer_message *answer, uint64_t job, uint32_t epoch)
{
	for (size_t w = 0; w < answer->want_count; w++)
		if (answer->wants[w].id.job == job && answer->wants[w].id.epoch == epoch)
			return answer->wants[w].want;
	return (enum sw_want_kind)99;
}

static void say(struct desk *desk, uint64_t job, uint32_t epoch, enum sw_run_state state, uint32_t code)
{
	desk->runs[0] = (struct sw_sync_run){.id = {job, epoch}, .state = state, .code = code, .reason = ""};
	desk->run_count = 1;
}

static void sync_and_drop(struct desk *desk)
{
	sw_brain_answer_free(sync_now(desk));
}

static const char *state_of(const struct desk *desk, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
	return view.state;
}

static void pass_time(struct desk *desk, sw_ns by)
{
	desk->now += by;
	for (int rounds = 0; sw_brain_next(desk->brain) <= desk->now && rounds < 100; rounds++) {
		sw_records records = {0};
		assert_int_equal(sw_brain_tick(desk->brain, desk->now, &records, NULL), 0);
		apply_all(desk, &records, NULL);
	}
}

/* ---- */

static void test_a_job_runs_once_and_its_exit_code_is_kept(void **state)
{
	struct desk *desk = *state;
	sync_and_drop(desk);
	uint64_t job = submit(desk, "{\"command\": [\"true\"], \"name\": \"first\"}");
	assert_int_equal(job, 1);
	struct sw_answer_message *answer = sync_now(desk);
	assert_int_equal(answer->want_count, 1);
	assert_int_equal(answer->wants[0].want, SW_WANT_RUN);
	assert_int_equal(answer->wants[0].gpus.count, 1);
	assert_string_equal(answer->wants[0].spec->argv.items[0], "true");
	assert_int_equal(answer->wants[0].spec->uid, 1000);
	sw_brain_answer_free(answer);
	assert_string_equal(state_of(desk, 1), "CF");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	say(desk, 1, 1, SW_RUN_EXITED, 0);
	answer = sync_now(desk);
	assert_int_equal(wanted(answer, 1, 1), SW_WANT_FORGET);
	sw_brain_answer_free(answer);
	assert_string_equal(state_of(desk, 1), "CD");
}

static void test_a_failed_job_is_tried_again_later_under_a_new_epoch_until_its_retries_are_used_up(void **state)
{
	struct desk *desk = *state;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"false\"], \"retries\": 1}");
	assert_true(sw_brain_would_change(desk->brain, SW_RECORD_REQUEUE, 1));
	assert_false(sw_brain_would_change(desk->brain, SW_RECORD_RELEASE, 1));
	say(desk, 1, 1, SW_RUN_EXITED, 7);
	sync_and_drop(desk);
	/* A release lets it begin at once. */
	assert_false(sw_brain_would_change(desk->brain, SW_RECORD_REQUEUE, 1));
	assert_true(sw_brain_would_change(desk->brain, SW_RECORD_RELEASE, 1));
	assert_string_equal(state_of(desk, 1), "PD");
	pass_time(desk, 9 * SW_NS_PER_S);
	assert_string_equal(state_of(desk, 1), "PD");
	pass_time(desk, 2 * SW_NS_PER_S);
	assert_string_equal(state_of(desk, 1), "CF");
	struct sw_answer_message *answer = sync_now(desk);
	assert_int_equal(wanted(answer, 1, 1), SW_WANT_FORGET);
	assert_int_equal(wanted(answer, 1, 2), SW_WANT_RUN);
	sw_brain_answer_free(answer);
	say(desk, 1, 2, SW_RUN_EXITED, 9);
	sync_and_drop(desk);
	assert_string_equal(state_of(desk, 1), "F");
	struct sw_job_view view;
	sw_brain_job(desk->brain, desk->now, 1, &view);
	assert_int_equal(view.code, 9);
}

static void test_a_silent_node_is_lost_after_its_lease_and_not_before(void **state)
{
	struct desk *desk = *state;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	pass_time(desk, 34 * SW_NS_PER_S);
	assert_string_equal(state_of(desk, 1), "R");
	pass_time(desk, 2 * SW_NS_PER_S);
	assert_string_equal(state_of(desk, 1), "PD");
	/* It comes back and still has the old run, which its supervisor ended for want of a lease. */
	say(desk, 1, 1, SW_RUN_EXITED, 0);
	struct sw_answer_message *answer = sync_now(desk);
	assert_int_equal(wanted(answer, 1, 1), SW_WANT_FORGET);
	assert_int_equal(wanted(answer, 1, 2), SW_WANT_RUN);
	sw_brain_answer_free(answer);
	assert_string_equal(state_of(desk, 1), "CF");
}

static void test_late_repeated_and_made_up_words_change_nothing(void **state)
{
	struct desk *desk = *state;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	sync_and_drop(desk);
	uint64_t hash = sw_brain_log_hash(desk->brain);
	say(desk, 1, 1, SW_RUN_EXITED, 3);
	sw_brain_answer_free(sync_with(desk, desk->number)); /* a number that was used */
	assert_string_equal(state_of(desk, 1), "CF");
	say(desk, 1, 9, SW_RUN_EXITED, 3); /* an epoch that never was */
	struct sw_answer_message *answer = sync_now(desk);
	assert_int_equal(wanted(answer, 1, 9), SW_WANT_FORGET);
	sw_brain_answer_free(answer);
	say(desk, 77, 1, SW_RUN_RUNNING, 0); /* a job that never was */
	answer = sync_now(desk);
	assert_int_equal(wanted(answer, 77, 1), SW_WANT_STOP);
	sw_brain_answer_free(answer);
	assert_string_equal(state_of(desk, 1), "CF");
	assert_true(hash == sw_brain_log_hash(desk->brain));
}

static void test_a_run_that_the_agent_forgot_is_lost_and_started_anew(void **state)
{
	struct desk *desk = *state;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"sleep\", \"9\"], \"retries\": 3}");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	desk->run_count = 0;
	sync_and_drop(desk);
	struct sw_job_view view; /* at once: it was not the job's fault */
	sw_brain_job(desk->brain, desk->now, 1, &view);
	assert_string_equal(view.state, "CF");
	assert_int_equal(view.epoch, 2);
}

/* Aim: a run whose supervisor died says nothing about the job; it runs anew without using up a retry, and its own end counts. */
static void test_a_run_that_was_ended_from_outside_is_run_anew_at_no_cost(void **state)
{
	static const char *const reasons[] = {SW_REASON_SUPERVISOR_LOST, SW_REASON_LEASE, SW_REASON_SHUTDOWN, SW_REASON_NEVER_STARTED};
	struct desk *desk = *state;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	sync_and_drop(desk);
	for (uint32_t epoch = 1; epoch <= 4; epoch++) {
		say(desk, 1, epoch, SW_RUN_EXITED, 0);
		desk->runs[0].reason = reasons[epoch - 1];
		sync_and_drop(desk);
		/* At once for some times, then after a while; the node stays in touch. */
		assert_string_equal(state_of(desk, 1), epoch <= 3 ? "CF" : "PD");
		for (int i = 0; epoch > 3 && i < 4; i++) {
			pass_time(desk, 6 * SW_NS_PER_S);
			sync_and_drop(desk);
		}
		assert_string_equal(state_of(desk, 1), "CF");
	}
	say(desk, 1, 5, SW_RUN_EXITED, 5);
	sync_and_drop(desk);
	struct sw_job_view view;
	sw_brain_job(desk->brain, desk->now, 1, &view);
	assert_string_equal(view.state, "F");
	assert_int_equal(view.code, 5);
}

/* Aim: a requeue of a job that waits for its next try does not make it wait for ever. */
static void test_a_requeue_leaves_the_next_try_alone(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"false\"], \"retries\": 1}");
	say(desk, 1, 1, SW_RUN_EXITED, 7);
	sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_REQUEUE, "requeue", 1, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(state_of(desk, 1), "PD");
	pass_time(desk, 11 * SW_NS_PER_S);
	assert_string_equal(state_of(desk, 1), "CF");
}

static void test_only_the_owner_or_an_operator_changes_a_job(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	submit(desk, "{\"command\": [\"true\"]}");
	assert_int_equal(sw_brain_propose_change(desk->brain, &bob, SW_RECORD_CANCEL, "cancel", 1, &records, &err), SW_EDENIED);
	assert_int_equal(sw_brain_propose_change(desk->brain, &bob, SW_RECORD_CANCEL, "cancel", 2, &records, NULL), SW_ENOTFOUND);
	assert_int_equal(sw_brain_propose_quota(desk->brain, &alice, "t", 1, &records, NULL), SW_EDENIED);
	assert_int_equal(records.count, 0);
	assert_int_equal(sw_brain_propose_change(desk->brain, &root, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(state_of(desk, 1), "CA");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), SW_EINPUT);
}

/* ---- limits */

static int limit(struct desk *desk, const struct sw_user *user, uint64_t job, struct sw_job_limit wanted, struct sw_err *err)
{
	sw_records records = {0};
	int r = sw_brain_propose_limit(desk->brain, user, job, &wanted, &records, err);
	assert_int_equal(records.count, r == 0);
	apply_all(desk, &records, NULL);
	return r;
}

/* What the agent hears of the job: its wish, with the limits. */
static struct sw_want heard(struct desk *desk, uint64_t job)
{
	struct sw_want want = {0};
	struct sw_answer_message *answer = sync_now(desk);
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

/* Aim: a limit is heard by the agent as news, changes only what it sets, and goes with the next run too. */
static void test_a_limit_is_news_and_lasts(void **state)
{
	struct desk *desk = *state;
	struct sw_job_view view;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"], \"retries\": 1}");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
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
	say(desk, 1, 1, SW_RUN_EXITED, 1);
	sync_and_drop(desk);
	pass_time(desk, 11 * SW_NS_PER_S);
	want = heard(desk, 1);
	assert_true(want.id.epoch == 2 && want.gpu_limit_bytes == GIB(10) && want.gpu_share_milli == 300);
	say(desk, 1, 2, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	assert_int_equal(limit(desk, &alice, 1, MEMORY(0), NULL), 0);
	want = heard(desk, 1);
	assert_true(want.gpu_limit_bytes == 0 && want.gpu_share_milli == 300);
	assert_true(sw_brain_job(desk->brain, desk->now, 1, &view) && view.limit_bytes == 0 && view.limit_milli == 300);
}

/* Aim: a job that asked for memory hears that as its limit, and one that somebody set only where it is lower. */
static void test_a_limit_stays_within_what_the_job_gets(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"], \"gpu_memory\": \"20G\"}");
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
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"], \"model\": \"resnet50\", \"gpu_use\": 0.3}");
	submit(desk, "{\"command\": [\"a\"]}");
	const struct sw_engine *engine = desk->brain->engine;
	assert_int_equal(sw_engine_job(engine, (struct sw_job_id){0})->use_milli, 300);
	assert_int_equal(sw_engine_job(engine, (struct sw_job_id){1})->use_milli, 0);
	assert_true(heard(desk, 1).gpu_limit_bytes == 0);
}

/* Aim: limits that make no sense, or are not the asker's to set, are refused and leave no record. */
static void test_limits_are_checked(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"]}");
	assert_int_equal(limit(desk, &alice, 2, SHARE(300), NULL), SW_ENOTFOUND);
	assert_int_equal(limit(desk, &bob, 1, SHARE(300), NULL), SW_EDENIED);
	assert_int_equal(limit(desk, &alice, 1, MEMORY((16 << 20) - 1), &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "16.0 MiB"));
	sw_err_clear(&err);
	assert_int_equal(limit(desk, &alice, 1, MEMORY(GIB(80) + 1), &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "80.0 GiB"));
	assert_int_equal(limit(desk, &alice, 1, MEMORY(GIB(80)), NULL), 0);
	say(desk, 1, 1, SW_RUN_EXITED, 0);
	sync_and_drop(desk);
	sw_err_clear(&err);
	assert_int_equal(limit(desk, &alice, 1, SHARE(300), &err), SW_EINPUT);
	assert_string_equal(err.fact, "cannot limit job 1");
	assert_string_equal(err.detail, "it has ended");
	/* Nothing would hold it to one. */
	sw_err_clear(&err);
	submit(desk, "{\"command\": [\"x\"], \"gpu_runtime\": \"off\"}");
	assert_int_equal(limit(desk, &alice, 2, SHARE(300), &err), SW_EINPUT);
	assert_string_equal(err.fact, "cannot limit job 2");
	assert_non_null(strstr(err.detail, "--gpu-runtime off"));
	assert_true(err.hint[0] != '\0');
}

static void test_what_could_never_run_is_refused_at_submit(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	sync_and_drop(desk);
	struct sw_job_request *asked = request("{\"command\": [\"true\"], \"gpus\": 3}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, &err), SW_EINPUT);
	assert_non_null(strstr(err.fact, "asks for 3 GPUs"));
	sw_job_request_free(asked);
	asked = request("{\"command\": [\"true\"], \"gpu_memory\": \"200G\"}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), SW_EINPUT);
	sw_job_request_free(asked);
	asked = request("{\"command\": [\"true\"], \"depends\": \"afterok:5\"}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), SW_EINPUT);
	sw_job_request_free(asked);
	assert_int_equal(records.count, 0);
}

static void test_dependents_go_when_they_may_and_end_when_they_never_can(void **state)
{
	struct desk *desk = *state;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"]}");
	submit(desk, "{\"command\": [\"b\"], \"depends\": \"afterok:1\"}");
	submit(desk, "{\"command\": [\"c\"], \"depends\": \"afterok:2\"}");
	submit(desk, "{\"command\": [\"d\"], \"depends\": \"afterany:1\"}");
	assert_string_equal(state_of(desk, 4), "PD");
	say(desk, 1, 1, SW_RUN_EXITED, 1);
	sync_and_drop(desk);
	assert_string_equal(state_of(desk, 1), "F");
	assert_string_equal(state_of(desk, 2), "CA");
	assert_string_equal(state_of(desk, 3), "CA");
	assert_string_equal(state_of(desk, 4), "CF");
}

static void test_cancelling_a_running_job_stops_its_run(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	struct sw_answer_message *answer = sync_now(desk);
	assert_int_equal(wanted(answer, 1, 1), SW_WANT_STOP);
	sw_brain_answer_free(answer);
	say(desk, 1, 1, SW_RUN_EXITED, 0);
	answer = sync_now(desk);
	assert_int_equal(wanted(answer, 1, 1), SW_WANT_FORGET);
	sw_brain_answer_free(answer);
	assert_string_equal(state_of(desk, 1), "CA");
}

/* Of an array with a limit, the first members that have not ended may be under way, and no more. */
static void test_an_array_runs_as_many_at_a_time_as_it_may(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_job_request *asked = request("{\"command\":[\"x\"],\"array\":\"0-4%1\"}");
	asked->is_member = true;
	sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, 5, &records, NULL), 0);
	sw_job_request_free(asked);
	apply_all(desk, &records, NULL);
	/* There are two GPUs, but only one of the array runs. The last is gone before its turn. */
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 5, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	for (uint64_t job = 1; job <= 4; job++) {
		struct sw_job_view view;
		char text[300];
		for (uint64_t other = job; other <= 4; other++) {
			assert_true(sw_brain_job(desk->brain, desk->now, other, &view));
			assert_string_equal(view.state, other == job ? "CF" : "PD");
			assert_string_equal(view.reason, other == job ? "" : "JobArrayTaskLimit");
		}
		sw_brain_explain(desk->brain, desk->now, 4, text, sizeof text);
		assert_true(job == 4 || strstr(text, "1 of them may run at a time") != NULL);
		say(desk, job, 1, SW_RUN_EXITED, 0);
		sync_and_drop(desk);
		assert_string_equal(state_of(desk, job), "CD");
	}
}

/* A job whose process outlives its cancellation is completing, not over, and the next one on its GPUs does not run before its agent says so. */
static void test_a_job_is_over_when_its_processes_are(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_job_view view;
	char text[400];
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"stubborn\"], \"gpus\": 2}");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"next\"], \"gpus\": 2}");
	assert_string_equal(state_of(desk, 2), "PD");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	sync_and_drop(desk); /* it runs still */
	assert_true(sw_brain_job(desk->brain, desk->now, 1, &view));
	assert_string_equal(view.state, "CG");
	assert_true(view.ended_at == SW_TIME_NEVER);
	sw_brain_explain(desk->brain, desk->now, 1, text, sizeof text);
	assert_non_null(strstr(text, "still stopping on node n"));
	assert_true(sw_brain_job(desk->brain, desk->now, 2, &view));
	assert_string_equal(view.state, "CF");
	assert_string_equal(view.reason, "its GPUs are being freed");
	sw_brain_explain(desk->brain, desk->now, 2, text, sizeof text);
	assert_non_null(strstr(text, "job 1 is still stopping there"));
	/* It is gone; the agent has taken in the next one, and then started it. */
	say(desk, 2, 1, SW_RUN_STARTING, 0);
	sync_and_drop(desk);
	assert_true(sw_brain_job(desk->brain, desk->now, 1, &view));
	assert_string_equal(view.state, "CA");
	assert_true(view.ended_at != SW_TIME_NEVER);
	assert_true(sw_brain_job(desk->brain, desk->now, 2, &view));
	assert_string_equal(view.state, "CF");
	assert_string_equal(view.reason, "");
	say(desk, 2, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	assert_string_equal(state_of(desk, 2), "R");
}

/* A node that is lost takes what was stopping there with it. */
static void test_a_lost_node_completes_its_jobs(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"stubborn\"]}");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(state_of(desk, 1), "CG");
	pass_time(desk, 3600 * SW_NS_PER_S);
	assert_string_equal(state_of(desk, 1), "CA");
}

static void test_the_policy_changes_while_jobs_wait_and_nonsense_does_not(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	sync_and_drop(desk);
	for (int j = 0; j < 5; j++)
		submit(desk, "{\"command\": [\"a\"]}");
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "lass", NULL, 0, &records, &err), SW_ENOTFOUND);
	assert_non_null(strstr(err.hint, "las"));
	const char *wrong[] = {"thresholds=x"}, *right[] = {"thresholds=100,200"};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "las", wrong, 1, &records, NULL), SW_EINPUT);
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "las", right, 1, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(sw_brain_policy(desk->brain), "las");
}

/* Members of an array differ in their index alone: each says and runs with its own, though what they asked for is told and kept once. */
static void test_members_of_an_array_share_what_they_asked_for(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_job_request *asked =
		request("{\"command\":[\"x\"],\"env\":{\"array_index\":\"7\"},\"array\":\"3-9:3\",\"stdout\":\"/o.%A.%a\"}");
	uint32_t count = sw_job_request_count(asked);
	asked->is_member = true;
	asked->array_index = 3;
	submit(desk, "{\"command\":[\"another\"]}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, count, &records, NULL), 0);
	assert_int_equal(records.count, 3);
	assert_true(records.items[2].size < 20);
	sw_job_request_free(asked);
	apply_all(desk, &records, NULL);
	static const char *const indexes[] = {"\"array_index\":3,", "\"array_index\":6,", "\"array_index\":9,"};
	for (uint64_t job = 2; job <= 4; job++) {
		struct sw_job_view view;
		struct sw_json json = {0};
		assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
		assert_int_equal(view.uid, alice.uid);
		sw_job_view_request(&view, &json);
		struct sw_job_request *said = request(json.text);
		assert_non_null(strstr(json.text, indexes[job - 2]));
		assert_int_equal(said->array_index, 3 * (job - 1));
		sw_job_request_free(said);
		sw_json_release(&json);
	}
	/* Two GPUs: the first job and the first member run. Then the others. */
	sync_and_drop(desk);
	struct sw_answer_message *answer = sync_now(desk);
	assert_int_equal(answer->want_count, 2);
	sw_brain_answer_free(answer);
	say(desk, 1, 1, SW_RUN_EXITED, 0);
	sync_and_drop(desk);
	desk->run_count = 0;
	desk->have = 0;
	answer = sync_now(desk);
	const struct sw_want *last = &answer->wants[answer->want_count - 1];
	assert_int_equal(last->id.job, 3);
	assert_string_equal(last->spec->stdout_path, "/o.2.6");
	assert_string_equal(last->spec->env.items[1], "SHAREWELL_ARRAY_INDEX=6");
	sw_brain_answer_free(answer);
	/* A member needs an array before it. */
	submit(desk, "{\"command\":[\"alone\"]}");
	assert_int_equal(sw_brain_apply(desk->brain, desk->now, SW_RECORD_SUBMIT, "{\"member\":1}", 12, NULL, NULL), SW_EBUG);
}

/* ---- reasons */

static void expect_why(const struct desk *desk, uint64_t job, const char *words)
{
	char why[600];
	sw_brain_explain(desk->brain, desk->now, job, why, sizeof why);
	if (strstr(why, words) == NULL)
		fail_msg("job %d: '%s' does not say '%s'", (int)job, why, words);
}

/* Aim: of a job that runs it is said where, of one that has ended how and when. */
static void test_why_tells_where_a_job_runs_and_how_it_ended(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	desk->now = INT64_C(1700000000) * SW_NS_PER_S;
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"]}");
	expect_why(desk, 1, "it is about to start on node n");
	say(desk, 1, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	expect_why(desk, 1, "it runs on node n, since 2023-11-14T22:13:20Z");
	desk->now += 12 * SW_NS_PER_S;
	say(desk, 1, 1, SW_RUN_EXITED, 0);
	sync_and_drop(desk);
	expect_why(desk, 1, "it ended well at 2023-11-14T22:13:32Z, after running for 12.0 s");
	submit(desk, "{\"command\": [\"b\"], \"hold\": true}");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 2, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	expect_why(desk, 2, "it was cancelled at 2023-11-14T22:13:32Z, before it ran");
	submit(desk, "{\"command\": [\"c\"], \"depends\": \"afternotok:1\"}");
	expect_why(desk, 3, "before it ran: dependency never satisfied");
	submit(desk, "{\"command\": [\"d\"], \"retries\": 0}");
	say(desk, 4, 1, SW_RUN_EXITED, 3);
	sync_and_drop(desk);
	expect_why(desk, 4, "it failed with exit code 3 at 2023-11-14T22:13:32Z, after running for");
	expect_why(desk, 5, "there is no job 5");
}

/* Aim: a job that waits for nothing but drained nodes says which and why; one that waits for its turn, for its user or for a job does not. */
static void test_why_names_drained_nodes(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	char text[400];
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"], \"gpus\": 2}");
	submit(desk, "{\"command\": [\"b\"]}");
	submit(desk, "{\"command\": [\"c\"], \"hold\": true}");
	submit(desk, "{\"command\": [\"d\"], \"depends\": \"afterok:2\"}");
	assert_false(sw_brain_drained(desk->brain, 2, text, sizeof text));
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", true, "new fans", &records, NULL), 0);
	apply_all(desk, &records, NULL);
	/* Its GPUs are in use, but when they are free it cannot have them either. */
	assert_true(sw_brain_drained(desk->brain, 2, text, sizeof text));
	assert_string_equal(text, "Drained: n (new fans)");
	expect_why(desk, 2, "Drained: n (new fans)");
	expect_why(desk, 2, "only 0 are in nodes that take jobs");
	for (uint64_t job = 1; job <= 5; job++)
		assert_int_equal(sw_brain_drained(desk->brain, job, text, sizeof text), job == 2);
	/* A second node that takes jobs is busy: the job would run now, if the first took any. */
	struct sw_sync_gpu gpu = {.uuid = "GPU-2", .name = "g", .memory_bytes = UINT64_C(80) << 30};
	const struct sw_sync_inventory inventory = {&gpu, 1, 16, UINT64_C(64) << 30};
	const struct sw_sync sync = {.node = "m", .instance = "a1", .number = 1, .inventory = &inventory};
	assert_int_equal(sw_brain_hear(desk->brain, desk->now, &sync, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(state_of(desk, 2), "CF");
	submit(desk, "{\"command\": [\"e\"]}");
	assert_false(sw_brain_drained(desk->brain, 5, text, sizeof text));
	say(desk, 1, 1, SW_RUN_EXITED, 0);
	sync_and_drop(desk);
	assert_true(sw_brain_drained(desk->brain, 5, text, sizeof text));
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", false, "", &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(state_of(desk, 5), "CF");
}

/* Runs after every test: the journal, applied to a new brain, gives the same state. */
static void replay(struct desk *desk)
{
	struct sw_brain *again;
	struct sw_err err = {0};
	assert_int_equal(sw_brain_new(&config, &again, NULL), 0);
	for (size_t r = 0; r < desk->journal.count; r++) {
		const struct kept *kept = &desk->journal.items[r];
		if (sw_brain_apply(again, kept->at, kept->record.kind, kept->record.body, kept->record.size, NULL, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
	}
	assert_true(sw_brain_log_hash(again) == sw_brain_log_hash(desk->brain));
	assert_int_equal(sw_brain_job_count(again), sw_brain_job_count(desk->brain));
	for (uint64_t job = 1; job <= sw_brain_job_count(again); job++) {
		struct sw_job_view a, b;
		sw_brain_job(again, desk->now, job, &a);
		sw_brain_job(desk->brain, desk->now, job, &b);
		assert_string_equal(a.state, b.state);
		assert_int_equal(a.code, b.code);
		assert_int_equal(a.epoch, b.epoch);
		assert_true(a.limit_bytes == b.limit_bytes && a.limit_milli == b.limit_milli);
		struct sw_speed_view fast = {0}, also = {0};
		assert_int_equal(sw_brain_speed(desk->brain, job, &fast), sw_brain_speed(again, job, &also));
		assert_true(fast.iteration_ns == also.iteration_ns && fast.alone_ns == also.alone_ns && fast.slow_milli == also.slow_milli);
	}
	struct sw_pack one = {0}, two = {0};
	sw_brain_save(again, &one);
	sw_brain_save(desk->brain, &two);
	assert_int_equal(one.size, two.size);
	assert_memory_equal(one.bytes, two.bytes, one.size);
	sw_pack_release(&one);
	sw_pack_release(&two);
	sw_brain_free(again);
}

/* What the agent of node "n" says of a job's speed; how many records that makes. */
static size_t say_speed(struct desk *desk, struct sw_sync_speed speed)
{
	size_t before = desk->journal.count;
	desk->runs[0].speed = speed;
	sync_and_drop(desk);
	return desk->journal.count - before;
}

/* Aim: what agents measured of runs is recorded when it is new, not again and not too often, is what policies see, and is forgotten with the run but for the time alone. */
static void test_speeds(void **state)
{
	struct desk *desk = *state;
	struct sw_speed_view view;
	sync_and_drop(desk);
	uint64_t job = submit(desk, "{\"command\": [\"a\"]}");
	say(desk, job, 1, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	assert_string_equal(state_of(desk, job), "R");
	assert_false(sw_brain_speed(desk->brain, job, &view));
	const struct sw_view *seen = sw_engine_view(desk->brain->engine);
	const struct sw_job *engine_job = sw_engine_job(desk->brain->engine, (struct sw_job_id){(uint32_t)(job - 1)});

	struct sw_sync_speed speed = {.iteration_ns = 1000, .alone_ns = 1000, .iterations = 50};
	assert_int_equal(say_speed(desk, speed), 1);
	assert_int_equal(say_speed(desk, speed), 0);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 1000);
	assert_true(sw_brain_speed(desk->brain, job, &view) && view.slow_milli == 1000 && view.iterations == 50);
	/* A neighbour comes: taken back at once, then measured anew. */
	speed.iteration_ns = 0;
	assert_int_equal(say_speed(desk, speed), 1);
	assert_int_equal(say_speed(desk, speed), 0);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 0);
	speed.iteration_ns = 1250;
	speed.beside = (struct sw_sync_jobs){{job, 99}, 2}; /* one of whom is not known here */
	assert_int_equal(say_speed(desk, speed), 0);	    /* too soon */
	pass_time(desk, 5 * SW_NS_PER_S);
	assert_int_equal(say_speed(desk, speed), 1);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 800);
	assert_true(sw_brain_speed(desk->brain, job, &view) && view.slow_milli == 1250 && view.beside.count == 1);
	/* The next run of the job was never alone. */
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_REQUEUE, "requeue", job, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_int_equal(say_speed(desk, speed), 0); /* late words about the first */
	say(desk, job, 1, SW_RUN_EXITED, 0);
	sync_and_drop(desk);
	say(desk, job, 2, SW_RUN_RUNNING, 0);
	sync_and_drop(desk);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 0);
	assert_true(sw_brain_speed(desk->brain, job, &view) && view.iteration_ns == 0 && view.alone_ns == 1000);
	pass_time(desk, 5 * SW_NS_PER_S);
	assert_int_equal(say_speed(desk, (struct sw_sync_speed){.iteration_ns = 2000, .beside = {{job}, 1}}), 1);
	assert_int_equal(say_speed(desk, (struct sw_sync_speed){.iteration_ns = 2000, .beside = {{job}, 1}}), 0);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 500);
	/* Of others that never were alone, one of its kind takes what it took; one of another kind has nobody to ask. */
	static const char *const commands[] = {"{\"command\": [\"b\"]}", "{\"command\": [\"a\"]}"};
	for (int like = 0; like < 2; like++) {
		say(desk, job, like == 0 ? 2 : 1, SW_RUN_EXITED, 0);
		sync_and_drop(desk);
		job = submit(desk, commands[like]);
		say(desk, job, 1, SW_RUN_RUNNING, 0);
		sync_and_drop(desk);
		assert_int_equal(say_speed(desk, (struct sw_sync_speed){.iteration_ns = 4000}), 1);
		assert_true(sw_brain_speed(desk->brain, job, &view) && view.iteration_ns == 4000);
		assert_int_equal(view.alone_ns, like == 0 ? 0 : 1000);
		assert_int_equal(view.slow_milli, like == 0 ? 0 : 4000);
	}
}

/* Aim: a job is known by its model, or where that has no profile or it says none by its name. Under a policy that packs, one that finds no GPU goes beside another if the profiles say that both do well; one
 * whose name says nothing waits, and is told so. */
static void test_jobs_are_packed_by_their_names(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "fifo+pack", NULL, 0, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	sync_and_drop(desk);
	submit(desk, "{\"command\": [\"a\"], \"name\": \"any\", \"model\": \"data2vec\", \"gpu_memory\": \"20G\"}");
	submit(desk, "{\"command\": [\"a\"], \"name\": \"data2vec\", \"gpu_memory\": \"20G\"}");
	submit(desk, "{\"command\": [\"a\"], \"name\": \"data2vec\", \"model\": \"only mine\", \"gpu_memory\": \"20G\"}");
	submit(desk, "{\"command\": [\"a\"], \"name\": \"my work\", \"gpu_memory\": \"20G\"}");
	sync_and_drop(desk);
	for (uint64_t job = 1; job <= 3; job++)
		desk->runs[job - 1] = (struct sw_sync_run){.id = {job, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	desk->run_count = 3;
	sync_and_drop(desk);
	expect_why(desk, 1, "shares gpu0 with job 3");
	expect_why(desk, 3, "shares gpu0 with job 1");
	expect_why(desk, 4, "nobody has profiled its model");
	/* Who names a model that there is not is told. */
	static const char *const warnings[] = {"", "", "nobody knows the model 'only mine'; 'sharewell profile' measures one", ""};
	for (uint64_t job = 1; job <= 4; job++) {
		struct sw_job_view view;
		assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
		assert_string_equal(view.warning, warnings[job - 1]);
	}
}

/* As the server proposes it before a job of that model. */
static size_t tell_profile(struct desk *desk, const char *name, const struct sw_profile *profile)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_profile(desk->brain, name, profile, &records, NULL), 0);
	size_t count = records.count;
	apply_all(desk, &records, NULL);
	return count;
}

/* Aim: what a user measured of a model lets policies pack jobs of it that they would not pack without; it is recorded once, counts when it changes, is found again in a snapshot, and
 * is forgotten when it is taken back. */
static void test_measured_profiles_reach_policies(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_profile idle = *sw_profiles_find(config.profiles, "nobody knows it");
	idle.name = "only mine";
	idle.busy_milli = 100;
	idle.busy_known = true;
	memset(idle.use_milli, 0, sizeof idle.use_milli);
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "fifo+pack", NULL, 0, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	sync_and_drop(desk);
	static const char job[] = "{\"command\": [\"a\"], \"model\": \"Only Mine\", \"gpu_memory\": \"20G\"}";
	for (int i = 0; i < 3; i++)
		submit(desk, job);
	expect_why(desk, 3, "nobody has profiled its model");
	assert_int_equal(tell_profile(desk, "Only Mine", &idle), 1);
	assert_int_equal(tell_profile(desk, "Only Mine", &idle), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1 + (uint64_t)i, &records, NULL),
				 0);
		apply_all(desk, &records, NULL);
	}
	sync_and_drop(desk);
	for (uint64_t i = 0; i < 3; i++)
		desk->runs[i] = (struct sw_sync_run){.id = {submit(desk, job), 1}, .state = SW_RUN_RUNNING, .reason = ""};
	desk->run_count = 3;
	sync_and_drop(desk);
	expect_why(desk, 6, "shares gpu");

	struct sw_pack out = {0};
	struct sw_brain *loaded = NULL;
	bool adopted;
	sw_brain_save(desk->brain, &out);
	assert_int_equal(sw_brain_load(&config, out.bytes, out.size, &loaded, &adopted, NULL), 0);
	sw_pack_release(&out);
	const struct sw_profile *known = sw_profiles_find(loaded->profiles, "only mine");
	assert_true(known->is_own && known->busy_milli == 100 && known->busy_known);
	assert_true(sw_engine_job(loaded->engine, (struct sw_job_id){5})->model == known->number);
	sw_brain_free(loaded);

	idle.busy_milli = 1000;
	assert_int_equal(tell_profile(desk, "Only Mine", &idle), 1);
	assert_int_equal(sw_profiles_find(desk->brain->profiles, "only mine")->busy_milli, 1000);
	assert_int_equal(tell_profile(desk, "Only Mine", NULL), 1);
	assert_int_equal(tell_profile(desk, "Only Mine", NULL), 0);
	assert_int_equal(tell_profile(desk, "resnet50", NULL), 0);
	assert_true(sw_profiles_find(desk->brain->profiles, "only mine")->is_default);
	/* Of a list of jobs of one model there is one record. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(sw_brain_propose_profile(desk->brain, "Only Mine", &idle, &records, NULL), 0);
	assert_int_equal(records.count, 1);
	sw_records_clear(&records);
}

/* The speed that policies are told for the first of two jobs on one GPU. */
static uint32_t told(const struct desk *desk, uint64_t job, uint64_t beside)
{
	const struct sw_engine *engine = desk->brain->engine;
	const struct sw_job *jobs[] = {sw_engine_job(engine, (struct sw_job_id){(uint32_t)(job - 1)}),
				       sw_engine_job(engine, (struct sw_job_id){(uint32_t)(beside - 1)})};
	uint32_t speeds[2] = {0};
	assert_true(sw_predict_together(sw_engine_view(engine), jobs, 2, speeds));
	return speeds[0];
}

/* Aim: slowdowns that were measured beside others correct what policies are told, several at a time and not at every record; people are told the same; a brain that was saved goes on alike. */
static void test_slowdowns_reach_policies(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "fifo+pack", NULL, 0, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	sync_and_drop(desk);
	for (uint64_t i = 0; i < 3; i++)
		desk->runs[i] = (struct sw_sync_run){
			.id = {submit(desk, "{\"command\": [\"a\"], \"name\": \"data2vec\", \"gpu_memory\": \"20G\"}"), 1},
			.state = SW_RUN_RUNNING,
			.reason = "",
			.speed = {.alone_ns = 1000}};
	desk->run_count = 3;
	sync_and_drop(desk);
	sync_and_drop(desk); /* what is said of a run counts once it is known to run */
	expect_why(desk, 3, "shares gpu0 with job 1");
	uint32_t before = told(desk, 1, 3), once;
	pass_time(desk, 10 * SW_NS_PER_S);
	/* Twice, of either side, with much the same outcome: believed. The first is taken in at once, what follows some seconds later, without another word of anybody. */
	desk->runs[0].speed = (struct sw_sync_speed){.alone_ns = 1000, .iteration_ns = 2000, .iterations = 9, .beside = {{3}, 1}};
	sync_and_drop(desk);
	assert_int_equal(desk->brain->lesson_count, 0);
	once = told(desk, 1, 3);
	assert_true(once < before);
	desk->runs[2].speed = (struct sw_sync_speed){.alone_ns = 1000, .iteration_ns = 2050, .iterations = 9, .beside = {{1}, 1}};
	sync_and_drop(desk);
	assert_int_equal(desk->brain->lesson_count, 1);
	assert_int_equal(told(desk, 1, 3), once);

	struct sw_pack out = {0};
	struct desk loaded = *desk;
	bool adopted;
	sw_brain_save(desk->brain, &out);
	assert_int_equal(sw_brain_load(&config, out.bytes, out.size, &loaded.brain, &adopted, NULL), 0);
	sw_pack_release(&out);
	assert_int_equal(told(&loaded, 1, 3), once);

	assert_true(sw_brain_next(desk->brain) <= desk->now + 5 * SW_NS_PER_S);
	pass_time(desk, 5 * SW_NS_PER_S);
	assert_int_equal(desk->brain->lesson_count, 0);
	uint32_t twice = told(desk, 1, 3);
	assert_true(twice < once && twice > 400);
	struct sw_learn_answer answer;
	assert_null(sw_brain_predict(desk->brain, 1, (const uint64_t[]){3}, 1, &answer));
	assert_int_equal((1000000 + answer.slow_milli / 2) / answer.slow_milli, twice);
	assert_int_equal(answer.times, 2);

	const struct kept *last = &desk->journal.items[desk->journal.count - 1];
	assert_int_equal(sw_brain_apply(loaded.brain, last->at, last->record.kind, last->record.body, last->record.size, NULL, NULL), 0);
	assert_int_equal(told(&loaded, 1, 3), twice);
	sw_brain_free(loaded.brain);
}

/* Aim: measured profiles are bounded; where there is no room those go that no living job needs, and never what is built in. */
static void test_measured_profiles_are_bounded(void **state)
{
	struct desk *desk = *state;
	struct sw_profile idle = *sw_profiles_find(config.profiles, "resnet50");
	char name[24];
	for (unsigned i = 0; i <= SW_BRAIN_PROFILES; i++) {
		snprintf(name, sizeof name, "p%u", i);
		idle.name = name;
		assert_int_equal(tell_profile(desk, name, &idle), 1);
		if (i == 7)
			submit(desk, "{\"command\": [\"a\"], \"model\": \"p7\"}");
	}
	assert_true(sw_profiles_find(desk->brain->profiles, "p7")->is_own);
	assert_true(sw_profiles_find(desk->brain->profiles, name)->is_own);
	assert_true(sw_profiles_find(desk->brain->profiles, "p8")->is_default);
	assert_false(sw_profiles_find(desk->brain->profiles, "resnet50")->is_default);
}

static int load_profiles(void **state)
{
	static struct sw_profiles *profiles;
	*state = &profiles;
	int r = sw_profiles_load_default(&profiles, NULL);
	config.profiles = profiles;
	return r;
}

static int unload_profiles(void **state)
{
	struct sw_profiles **profiles = *state;
	sw_profiles_free(*profiles);
	return 0;
}

static int set_up(void **state)
{
	struct desk *desk = calloc(1, sizeof *desk);
	struct sw_err err = {0};
	if (desk == NULL || sw_brain_new(&config, &desk->brain, &err) < 0)
		return -1;
	desk->now = SW_NS_PER_S;
	*state = desk;
	return 0;
}

static int tear_down(void **state)
{
	struct desk *desk = *state;
	replay(desk);
	for (size_t r = 0; r < desk->journal.count; r++)
		free(desk->journal.items[r].record.body);
	sw_vec_free(&desk->journal);
	sw_brain_free(desk->brain);
	free(desk);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_job_runs_once_and_its_exit_code_is_kept),
		TEST(test_jobs_are_packed_by_their_names),
		TEST(test_a_failed_job_is_tried_again_later_under_a_new_epoch_until_its_retries_are_used_up),
		TEST(test_a_silent_node_is_lost_after_its_lease_and_not_before),
		TEST(test_late_repeated_and_made_up_words_change_nothing),
		TEST(test_a_run_that_the_agent_forgot_is_lost_and_started_anew),
		TEST(test_a_run_that_was_ended_from_outside_is_run_anew_at_no_cost),
		TEST(test_a_requeue_leaves_the_next_try_alone),
		TEST(test_only_the_owner_or_an_operator_changes_a_job),
		TEST(test_a_limit_is_news_and_lasts),
		TEST(test_a_limit_stays_within_what_the_job_gets),
		TEST(test_use_by_profile_reaches_the_policy),
		TEST(test_limits_are_checked),
		TEST(test_what_could_never_run_is_refused_at_submit),
		TEST(test_dependents_go_when_they_may_and_end_when_they_never_can),
		TEST(test_cancelling_a_running_job_stops_its_run),
		TEST(test_a_job_is_over_when_its_processes_are),
		TEST(test_a_lost_node_completes_its_jobs),
		TEST(test_an_array_runs_as_many_at_a_time_as_it_may),
		TEST(test_members_of_an_array_share_what_they_asked_for),
		TEST(test_why_tells_where_a_job_runs_and_how_it_ended),
		TEST(test_why_names_drained_nodes),
		TEST(test_the_policy_changes_while_jobs_wait_and_nonsense_does_not),
		TEST(test_speeds),
		TEST(test_measured_profiles_reach_policies),
		TEST(test_slowdowns_reach_policies),
		TEST(test_measured_profiles_are_bounded),
	};
	return cmocka_run_group_tests(tests, load_profiles, unload_profiles);
}
