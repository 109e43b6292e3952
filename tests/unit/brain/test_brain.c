/* The controller's brain: requests, words of agents and time become records; records become state;
 * state becomes answers. */
#include <string.h>

#include "unit/brain/desk.h"

static void test_a_job_runs_once_and_its_exit_code_is_kept(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	uint64_t job = desk_submit(desk, "{\"command\": [\"true\"], \"name\": \"first\"}");
	assert_int_equal(job, 1);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(answer->want_count, 1);
	assert_int_equal(answer->wants[0].want, SW_WANT_RUN);
	assert_int_equal(answer->wants[0].gpus.count, 1);
	assert_string_equal(answer->wants[0].spec->argv.items[0], "true");
	assert_int_equal(answer->wants[0].spec->uid, 1000);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 1), "CF");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 0);
	answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_FORGET);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 1), "CD");
}

static void test_a_failed_job_is_tried_again_later_under_a_new_epoch_until_its_retries_are_used_up(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"false\"], \"retries\": 1}");
	assert_true(sw_brain_would_change(desk->brain, SW_RECORD_REQUEUE, 1));
	assert_false(sw_brain_would_change(desk->brain, SW_RECORD_RELEASE, 1));
	desk_say(desk, 1, 1, SW_RUN_EXITED, 7);
	desk_sync_and_drop(desk);
	/* A release lets it begin at once. */
	assert_false(sw_brain_would_change(desk->brain, SW_RECORD_REQUEUE, 1));
	assert_true(sw_brain_would_change(desk->brain, SW_RECORD_RELEASE, 1));
	assert_string_equal(desk_state(desk, 1), "PD");
	desk_pass_time(desk, 9 * SW_NS_PER_S);
	assert_string_equal(desk_state(desk, 1), "PD");
	desk_pass_time(desk, 2 * SW_NS_PER_S);
	assert_string_equal(desk_state(desk, 1), "CF");
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_FORGET);
	assert_int_equal(desk_wanted(answer, 1, 2), SW_WANT_RUN);
	sw_brain_answer_free(answer);
	desk_say(desk, 1, 2, SW_RUN_EXITED, 9);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "F");
	struct sw_job_view view;
	sw_brain_job(desk->brain, desk->now, 1, &view);
	assert_int_equal(view.code, 9);
}

static void test_late_repeated_and_made_up_words_change_nothing(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	desk_sync_and_drop(desk);
	uint64_t hash = sw_brain_log_hash(desk->brain);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 3);
	sw_brain_answer_free(desk_sync_with(desk, desk->number)); /* a number that was used */
	assert_string_equal(desk_state(desk, 1), "CF");
	desk_say(desk, 1, 9, SW_RUN_EXITED, 3); /* an epoch that never was */
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 9), SW_WANT_FORGET);
	sw_brain_answer_free(answer);
	desk_say(desk, 77, 1, SW_RUN_RUNNING, 0); /* a job that never was */
	answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 77, 1), SW_WANT_STOP);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 1), "CF");
	assert_true(hash == sw_brain_log_hash(desk->brain));
}

static void test_a_run_that_the_agent_forgot_is_lost_and_started_anew(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"], \"retries\": 3}");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	desk->run_count = 0;
	desk_sync_and_drop(desk);
	struct sw_job_view view; /* at once: it was not the job's fault */
	sw_brain_job(desk->brain, desk->now, 1, &view);
	assert_string_equal(view.state, "CF");
	assert_int_equal(view.epoch, 2);
}

/* Aim: a run whose supervisor died says nothing about the job; it runs anew without using up a
 * retry, and its own end counts. */
static void test_a_run_that_was_ended_from_outside_is_run_anew_at_no_cost(void **state)
{
	static const char *const reasons[] = {SW_REASON_SUPERVISOR_LOST, SW_REASON_LEASE, SW_REASON_SHUTDOWN, SW_REASON_NEVER_STARTED};
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	desk_sync_and_drop(desk);
	for (uint32_t epoch = 1; epoch <= 4; epoch++) {
		desk_say(desk, 1, epoch, SW_RUN_EXITED, 0);
		desk->runs[0].reason = reasons[epoch - 1];
		desk_sync_and_drop(desk);
		/* At once for some times, then after a while; the node stays in touch. */
		assert_string_equal(desk_state(desk, 1), epoch <= 3 ? "CF" : "PD");
		for (int i = 0; epoch > 3 && i < 4; i++) {
			desk_pass_time(desk, 6 * SW_NS_PER_S);
			desk_sync_and_drop(desk);
		}
		assert_string_equal(desk_state(desk, 1), "CF");
	}
	desk_say(desk, 1, 5, SW_RUN_EXITED, 5);
	desk_sync_and_drop(desk);
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
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"false\"], \"retries\": 1}");
	desk_say(desk, 1, 1, SW_RUN_EXITED, 7);
	desk_sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_REQUEUE, "requeue", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 1), "PD");
	desk_pass_time(desk, 11 * SW_NS_PER_S);
	assert_string_equal(desk_state(desk, 1), "CF");
}

static void test_only_the_owner_or_an_operator_changes_a_job(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	desk_submit(desk, "{\"command\": [\"true\"]}");
	assert_int_equal(sw_brain_propose_change(desk->brain, &bob, SW_RECORD_CANCEL, "cancel", 1, &records, &err), SW_EDENIED);
	assert_int_equal(sw_brain_propose_change(desk->brain, &bob, SW_RECORD_CANCEL, "cancel", 2, &records, NULL), SW_ENOTFOUND);
	assert_int_equal(sw_brain_propose_quota(desk->brain, &alice, "t", 1, &records, NULL), SW_EDENIED);
	assert_int_equal(records.count, 0);
	assert_int_equal(sw_brain_propose_change(desk->brain, &root, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 1), "CA");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), SW_EINPUT);
}

static void test_what_could_never_run_is_refused_at_submit(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	desk_sync_and_drop(desk);
	struct sw_job_request *asked = desk_request("{\"command\": [\"true\"], \"gpus\": 3}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, &err), SW_EINPUT);
	assert_non_null(strstr(err.fact, "asks for 3 GPUs"));
	sw_job_request_free(asked);
	asked = desk_request("{\"command\": [\"true\"], \"gpu_memory\": \"200G\"}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), SW_EINPUT);
	sw_job_request_free(asked);
	asked = desk_request("{\"command\": [\"true\"], \"depends\": \"afterok:5\"}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), SW_EINPUT);
	sw_job_request_free(asked);
	assert_int_equal(records.count, 0);
}

static void test_dependents_go_when_they_may_and_end_when_they_never_can(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"]}");
	desk_submit(desk, "{\"command\": [\"b\"], \"depends\": \"afterok:1\"}");
	desk_submit(desk, "{\"command\": [\"c\"], \"depends\": \"afterok:2\"}");
	desk_submit(desk, "{\"command\": [\"d\"], \"depends\": \"afterany:1\"}");
	assert_string_equal(desk_state(desk, 4), "PD");
	desk_say(desk, 1, 1, SW_RUN_EXITED, 1);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "F");
	assert_string_equal(desk_state(desk, 2), "CA");
	assert_string_equal(desk_state(desk, 3), "CA");
	assert_string_equal(desk_state(desk, 4), "CF");
}

static void test_cancelling_a_running_job_stops_its_run(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_STOP);
	sw_brain_answer_free(answer);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 0);
	answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_FORGET);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 1), "CA");
}

/* Of an array with a limit, the first members that have not ended may be under way, and no more. */
static void test_an_array_runs_as_many_at_a_time_as_it_may(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_job_request *asked = desk_request("{\"command\":[\"x\"],\"array\":\"0-4%1\"}");
	asked->is_member = true;
	desk_sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, 5, &records, NULL), 0);
	sw_job_request_free(asked);
	desk_apply(desk, &records, NULL);
	/* There are two GPUs, but only one of the array runs. The last is gone before its turn. */
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 5, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
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
		desk_say(desk, job, 1, SW_RUN_EXITED, 0);
		desk_sync_and_drop(desk);
		assert_string_equal(desk_state(desk, job), "CD");
	}
}

/* A job whose process outlives its cancellation is completing, not over, and the next one on its
 * GPUs does not run before its agent says so. */
static void test_a_job_is_over_when_its_processes_are(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_job_view view;
	char text[400];
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"stubborn\"], \"gpus\": 2}");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"next\"], \"gpus\": 2}");
	assert_string_equal(desk_state(desk, 2), "PD");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk_sync_and_drop(desk); /* it runs still */
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
	desk_say(desk, 2, 1, SW_RUN_STARTING, 0);
	desk_sync_and_drop(desk);
	assert_true(sw_brain_job(desk->brain, desk->now, 1, &view));
	assert_string_equal(view.state, "CA");
	assert_true(view.ended_at != SW_TIME_NEVER);
	assert_true(sw_brain_job(desk->brain, desk->now, 2, &view));
	assert_string_equal(view.state, "CF");
	assert_string_equal(view.reason, "");
	desk_say(desk, 2, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 2), "R");
}

/* What was stopping on a node that does not answer is waited for, until an
 * operator removes the node. */
static void test_a_removed_node_completes_its_jobs(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"stubborn\"]}");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 1), "CG");
	desk_pass_time(desk, 3600 * SW_NS_PER_S);
	assert_string_equal(desk_state(desk, 1), "CG");
	assert_int_equal(sw_brain_propose_remove(desk->brain, &root, "n", "", &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 1), "CA");
}

static void test_the_policy_changes_while_jobs_wait_and_nonsense_does_not(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	desk_sync_and_drop(desk);
	for (int j = 0; j < 5; j++)
		desk_submit(desk, "{\"command\": [\"a\"]}");
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "lass", NULL, 0, &records, &err), SW_ENOTFOUND);
	assert_non_null(strstr(err.hint, "las"));
	const char *wrong[] = {"thresholds=x"}, *right[] = {"thresholds=100,200"};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "las", wrong, 1, &records, NULL), SW_EINPUT);
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "las", right, 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(sw_brain_policy(desk->brain), "las");
}

/* Members of an array differ in their index alone: each says and runs with its own, though what
 * they asked for is told and kept once. */
static void test_members_of_an_array_share_what_they_asked_for(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_job_request *asked =
		desk_request("{\"command\":[\"x\"],\"env\":{\"array_index\":\"7\"},\"array\":\"3-9:3\",\"stdout\":\"/o.%A.%a\"}");
	uint32_t count = sw_job_request_count(asked);
	asked->is_member = true;
	asked->array_index = 3;
	desk_submit(desk, "{\"command\":[\"another\"]}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, count, &records, NULL), 0);
	assert_int_equal(records.count, 3);
	assert_true(records.items[2].size < 20);
	sw_job_request_free(asked);
	desk_apply(desk, &records, NULL);
	static const char *const indexes[] = {"\"array_index\":3,", "\"array_index\":6,", "\"array_index\":9,"};
	for (uint64_t job = 2; job <= 4; job++) {
		struct sw_job_view view;
		struct sw_json json = {0};
		assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
		assert_int_equal(view.uid, alice.uid);
		sw_job_view_request(&view, &json);
		struct sw_job_request *said = desk_request(json.text);
		assert_non_null(strstr(json.text, indexes[job - 2]));
		assert_int_equal(said->array_index, 3 * (job - 1));
		sw_job_request_free(said);
		sw_json_release(&json);
	}
	/* Two GPUs: the first job and the first member run. Then the others. */
	desk_sync_and_drop(desk);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(answer->want_count, 2);
	sw_brain_answer_free(answer);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	desk->run_count = 0;
	desk->have = 0;
	answer = desk_sync(desk);
	const struct sw_want *last = &answer->wants[answer->want_count - 1];
	assert_int_equal(last->id.job, 3);
	assert_string_equal(last->spec->stdout_path, "/o.2.6");
	assert_string_equal(last->spec->env.items[1], "SHAREWELL_ARRAY_INDEX=6");
	sw_brain_answer_free(answer);
	/* A member needs an array before it. */
	desk_submit(desk, "{\"command\":[\"alone\"]}");
	assert_int_equal(sw_brain_apply(desk->brain, desk->now, SW_RECORD_SUBMIT, "{\"member\":1}", 12, NULL, NULL), SW_EBUG);
}

/* ---- reasons */

/* Aim: of a job that runs it is said where, of one that has ended how and when. */
static void test_why_tells_where_a_job_runs_and_how_it_ended(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	desk->now = INT64_C(1700000000) * SW_NS_PER_S;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"]}");
	desk_expect_why(desk, 1, "it is about to start on node n");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	desk_expect_why(desk, 1, "it runs on node n, since 2023-11-14T22:13:20Z");
	desk->now += 12 * SW_NS_PER_S;
	desk_say(desk, 1, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	desk_expect_why(desk, 1, "it ended well at 2023-11-14T22:13:32Z, after running for 12.0 s");
	desk_submit(desk, "{\"command\": [\"b\"], \"hold\": true}");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 2, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk_expect_why(desk, 2, "it was cancelled at 2023-11-14T22:13:32Z by user 1000, before it ran");
	desk_submit(desk, "{\"command\": [\"c\"], \"depends\": \"afternotok:1\"}");
	desk_expect_why(desk, 3, "before it ran: dependency never satisfied");
	desk_submit(desk, "{\"command\": [\"d\"], \"retries\": 0}");
	desk_say(desk, 4, 1, SW_RUN_EXITED, 3);
	desk_sync_and_drop(desk);
	desk_expect_why(desk, 4, "it failed with exit code 3 at 2023-11-14T22:13:32Z, after running for");
	desk_expect_why(desk, 5, "there is no job 5");
}

/* Aim: a job that waits for nothing but drained nodes says which and why; one that waits for its
 * turn, for its user or for a job does not. */
static void test_why_names_drained_nodes(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	char text[400];
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"], \"gpus\": 2}");
	desk_submit(desk, "{\"command\": [\"b\"]}");
	desk_submit(desk, "{\"command\": [\"c\"], \"hold\": true}");
	desk_submit(desk, "{\"command\": [\"d\"], \"depends\": \"afterok:2\"}");
	assert_false(sw_brain_drained(desk->brain, 2, text, sizeof text));
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", true, "new fans", &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	/* Its GPUs are in use, but when they are free it cannot have them either. */
	assert_true(sw_brain_drained(desk->brain, 2, text, sizeof text));
	assert_string_equal(text, "Drained: n (new fans)");
	desk_expect_why(desk, 2, "Drained: n (new fans)");
	desk_expect_why(desk, 2, "only 0 are open to jobs");
	for (uint64_t job = 1; job <= 5; job++)
		assert_int_equal(sw_brain_drained(desk->brain, job, text, sizeof text), job == 2);
	/* A second node that takes jobs is busy: the job would run now, if the first took any. */
	struct sw_sync_gpu gpu = {.uuid = "GPU-2", .name = "g", .memory_bytes = UINT64_C(80) << 30};
	const struct sw_sync_inventory inventory = {&gpu, 1, 16, UINT64_C(64) << 30};
	const struct sw_sync sync = {.node = "m", .instance = "a1", .number = 1, .inventory = &inventory};
	assert_int_equal(sw_brain_hear(desk->brain, desk->now, &sync, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 2), "CF");
	desk_submit(desk, "{\"command\": [\"e\"]}");
	assert_false(sw_brain_drained(desk->brain, 5, text, sizeof text));
	desk_say(desk, 1, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	assert_true(sw_brain_drained(desk->brain, 5, text, sizeof text));
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", false, "", &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 5), "CF");
}

/* By job. */
static const struct sw_admission verdicts[] = {
	{.verdict = SW_DOWNGRADE, .reason = "too late for a guarantee"},
	{.verdict = SW_REFUSE, .reason = "zu sp\xc3\xa4t"},
	{.verdict = SW_REFUSE, .reason = "its deadline comes before the jobs ahead of it\xe2\x80\xa6 have ended"},
	{.verdict = SW_REFUSE},
	{.verdict = SW_REFUSE, .reason = "\xff"},
};

static void admit(struct sw_view *view, const struct sw_job *job, struct sw_admission *admission)
{
	(void)view;
	*admission = verdicts[job->id.v];
}

static sw_ns start_next(struct sw_plan *plan)
{
	const struct sw_job *next = sw_view_next_waiting(sw_plan_view(plan), NULL);
	if (next != NULL)
		(void)sw_plan_run(plan, next, NULL);
	return SW_TIME_NEVER;
}

static const struct sw_policy choosy = {
	.abi = SW_POLICY_ABI, .name = "choosy", .about = "as the test says", .admit = admit, .decide = start_next};

static int choosy_up(void **state)
{
	desk_config.plugin = &choosy;
	desk_config.policy = "choosy";
	return desk_up(state);
}

static int choosy_down(void **state)
{
	int r = desk_down(state);
	desk_config.plugin = NULL;
	desk_config.policy = "fifo";
	return r;
}

/* Aim: what the policy says of a job at the door is shown: of one that it lets in, and of one that
 * it refuses, whose reason is cut between characters and there in full too. */
static void test_what_the_policy_says_at_the_door_is_shown(void **state)
{
	struct desk *desk = *state;
	static const struct {
		const char *reason, *warning;
	} shown[] = {
		{"", "too late for a guarantee"},
		{"zu sp\xc3\xa4t", ""},
		{"its deadline comes before the jobs ahead of it", "its deadline comes before the jobs ahead of it\xe2\x80\xa6 have ended"},
		{"not admitted by the policy", ""},
		{"not admitted by the policy", ""},
	};
	desk_sync_and_drop(desk);
	for (size_t j = 0; j < sizeof shown / sizeof *shown; j++) {
		struct sw_job_view view;
		assert_true(sw_brain_job(desk->brain, desk->now, desk_submit(desk, "{\"command\": [\"x\"]}"), &view));
		assert_string_equal(view.reason, shown[j].reason);
		assert_string_equal(view.warning, shown[j].warning);
		assert_int_equal(view.is_opportunistic, j == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_the_policy_says_at_the_door_is_shown, choosy_up, choosy_down),
		DESK_TEST(test_a_job_runs_once_and_its_exit_code_is_kept),
		DESK_TEST(test_a_failed_job_is_tried_again_later_under_a_new_epoch_until_its_retries_are_used_up),
		DESK_TEST(test_late_repeated_and_made_up_words_change_nothing),
		DESK_TEST(test_a_run_that_the_agent_forgot_is_lost_and_started_anew),
		DESK_TEST(test_a_run_that_was_ended_from_outside_is_run_anew_at_no_cost),
		DESK_TEST(test_a_requeue_leaves_the_next_try_alone),
		DESK_TEST(test_only_the_owner_or_an_operator_changes_a_job),
		DESK_TEST(test_what_could_never_run_is_refused_at_submit),
		DESK_TEST(test_dependents_go_when_they_may_and_end_when_they_never_can),
		DESK_TEST(test_cancelling_a_running_job_stops_its_run),
		DESK_TEST(test_a_job_is_over_when_its_processes_are),
		DESK_TEST(test_a_removed_node_completes_its_jobs),
		DESK_TEST(test_an_array_runs_as_many_at_a_time_as_it_may),
		DESK_TEST(test_members_of_an_array_share_what_they_asked_for),
		DESK_TEST(test_why_tells_where_a_job_runs_and_how_it_ended),
		DESK_TEST(test_why_names_drained_nodes),
		DESK_TEST(test_the_policy_changes_while_jobs_wait_and_nonsense_does_not),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
