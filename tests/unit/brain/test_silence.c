/* Nodes that do not answer: their jobs are unreachable, keep their GPUs, and run once. */
#include <stdio.h>
#include <string.h>

#include "brain/record.h"
#include "unit/brain/desk.h"

#define LEASE ", \"on_lost\": \"restart\", \"lease\": \"60s\", \"grace\": \"20s\""
#define WAIT_S(seconds) desk_pass_time(desk, (seconds)*SW_NS_PER_S)

/* A job that the agent says runs, on one GPU. */
static uint64_t start(struct desk *desk, const char *more)
{
	char json[300];
	snprintf(json, sizeof json, "{\"command\": [\"sleep\", \"9\"]%s}", more);
	desk_sync_and_drop(desk);
	uint64_t job = desk_submit(desk, json);
	desk_say(desk, job, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, job), "R");
	return job;
}

static void change(struct desk *desk, enum sw_record_kind kind, uint64_t job)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, kind, "change", job, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
}

static int remove_node(struct desk *desk, const struct sw_user *user, const char *name)
{
	sw_records records = {0};
	struct sw_err err = {0};
	int r = sw_brain_propose_remove(desk->brain, user, name, "on fire", &records, &err);
	if (r == 0)
		desk_apply(desk, &records, NULL);
	return r;
}

static struct sw_job_view view_of(const struct desk *desk, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
	return view;
}

/* Aim: a job of a silent node is unreachable for a week, and nothing else happens to it; its exit
 * code arrives. Nothing starts beside it. */
static void test_a_job_is_found_again_after_a_week(void **state)
{
	struct desk *desk = *state;
	uint64_t job = start(desk, "");
	sw_ns heard = desk->now;
	WAIT_S(34);
	assert_string_equal(desk_state(desk, job), "R");
	WAIT_S(2);
	assert_string_equal(desk_state(desk, job), "UN");
	assert_string_equal(view_of(desk, job).unreachable, "n");
	assert_true(view_of(desk, job).unreachable_since == heard);
	desk_expect_why(desk, job, "node n has not answered since 1970-01-01T00:00:01Z; it goes on there");
	uint64_t second = desk_submit(desk, "{\"command\": [\"true\"], \"gpus\": 1}");
	WAIT_S(7 * 86400);
	assert_string_equal(desk_state(desk, job), "UN");
	assert_string_equal(desk_state(desk, second), "PD");
	struct sw_node_view node;
	assert_true(sw_brain_node(desk->brain, 0, &node) && node.up && node.silent && node.in_use && node.heard_at == heard);
	desk_say(desk, job, 1, SW_RUN_EXITED, 7);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, job, 1), SW_WANT_RUN); /* what it said of the run is heard when it says it again */
	assert_int_equal(desk_wanted(answer, second, 1), SW_WANT_RUN);
	sw_brain_answer_free(answer);
	answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, job, 1), SW_WANT_FORGET);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, job), "F");
	assert_int_equal(view_of(desk, job).code, 7);
	assert_int_equal(view_of(desk, job).epoch, 1);
}

/* Aim: a job with a lease starts anew when lease, grace and margin are over since the last answer,
 * and not before; the old run is stopped where it still is. */
static void test_a_lease_ends(void **state)
{
	struct desk *desk = *state;
	uint64_t job = start(desk, LEASE);
	WAIT_S(36);
	assert_string_equal(desk_state(desk, job), "UN");
	desk_expect_why(desk, job, "its lease of 0:01:00");
	WAIT_S(48);
	assert_string_equal(desk_state(desk, job), "UN");
	WAIT_S(2);
	assert_string_equal(desk_state(desk, job), "PD");
	assert_int_equal(view_of(desk, job).restarts, 1);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, job, 1), SW_WANT_STOP);
	assert_int_equal(desk_wanted(answer, job, 2), SW_WANT_RUN);
	sw_brain_answer_free(answer);
}

/* Aim: answers renew leases, and the agent hears the lease with the run. */
static void test_answers_renew_leases(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	uint64_t job = desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]" LEASE "}");
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, job, 1), SW_WANT_RUN);
	assert_int_equal(answer->wants[0].spec->lease_ms, 60000);
	assert_true(answer->lease_ms == SW_LEASE_OF_OLD_MS);
	sw_brain_answer_free(answer);
	desk_say(desk, job, 1, SW_RUN_RUNNING, 0);
	for (int i = 0; i < 20; i++) {
		desk_sync_and_drop(desk);
		WAIT_S(30);
	}
	assert_string_equal(desk_state(desk, job), "R");
	/* A poll is answered long before a lease is over. */
	const struct sw_sync sync = {.node = "n", .instance = "a1", .number = desk->number + 1, .have = desk->have};
	assert_true(sw_brain_patience(desk->brain, &sync) == 30 * SW_NS_PER_S / 4);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"], \"on_lost\": \"restart\", \"lease\": 4}");
	assert_true(sw_brain_patience(desk->brain, &sync) == SW_NS_PER_S);
}

/* Aim: an agent of version 0.1 gives its runs a lease of a day whatever they ask for, so a run that
 * it started is waited for so long. */
static void test_old_agents_have_long_leases(void **state)
{
	struct desk *desk = *state;
	desk->old_agent = true;
	uint64_t job = start(desk, LEASE);
	desk->old_agent = false; /* it was replaced; the run has its supervisor still */
	desk_sync_and_drop(desk);
	desk_sync_and_drop(desk);
	WAIT_S(86400);
	assert_string_equal(desk_state(desk, job), "UN");
	WAIT_S(200);
	assert_string_equal(desk_state(desk, job), "PD");
}

/* Aim: an agent without a counter of its starts, whose clock was set back before it came again, is
 * listened to once the node counts as silent: its job goes on, and the exit arrives. */
static void test_an_agent_whose_clock_went_back(void **state)
{
	struct desk *desk = *state;
	uint64_t job = start(desk, "");
	desk->instance = "a0";
	desk->number = 0;
	desk_say(desk, job, 1, SW_RUN_EXITED, 5);
	for (int i = 0; i < 20; i++) {
		desk_sync_and_drop(desk);
		WAIT_S(2);
	}
	assert_string_equal(desk_state(desk, job), "F");
	assert_int_equal(view_of(desk, job).code, 5);
	assert_int_equal(view_of(desk, job).epoch, 1);
}

/* Aim: a cancel of an unreachable job is taken, and carried out when the node is back. */
static void test_cancel_waits_for_the_node(void **state)
{
	struct desk *desk = *state;
	uint64_t job = start(desk, "");
	WAIT_S(40);
	change(desk, SW_RECORD_CANCEL, job);
	assert_string_equal(desk_state(desk, job), "CG");
	desk_expect_why(desk, job, "it is over (cancelled), but node n has not answered");
	WAIT_S(1000);
	assert_string_equal(desk_state(desk, job), "CG");
	desk_sync_and_drop(desk);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, job, 1), SW_WANT_STOP);
	sw_brain_answer_free(answer);
	desk_say(desk, job, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, job), "CA");
}

/* Aim: a job that is stopped there to run again waits for its old run, which may be alive, and
 * holds no GPUs elsewhere meanwhile; with a lease it waits for that. */
static void test_requeue_waits_for_the_node(void **state)
{
	struct desk *desk = *state;
	uint64_t job = start(desk, "");
	WAIT_S(40);
	change(desk, SW_RECORD_REQUEUE, job);
	assert_string_equal(desk_state(desk, job), "UN");
	desk_expect_why(desk, job, "its last run may still be there");
	change(desk, SW_RECORD_RELEASE, job);
	WAIT_S(1000);
	assert_string_equal(desk_state(desk, job), "UN");
	desk_sync_and_drop(desk);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, job, 1), SW_WANT_STOP);
	assert_int_equal(desk_wanted(answer, job, 2), (enum sw_want_kind)99);
	sw_brain_answer_free(answer);
	desk_say(desk, job, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, job, 2), SW_WANT_RUN);
	sw_brain_answer_free(answer);
}

/* Aim: only a node that does not answer is removed, by an operator. Its jobs end as lost, but those
 * with a lease start anew, after it. The node may come back. */
static void test_remove(void **state)
{
	struct desk *desk = *state;
	uint64_t first = start(desk, "");
	uint64_t second = desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]" LEASE "}");
	uint64_t third = desk_submit(desk, "{\"command\": [\"true\"], \"depends\": \"afternotok:1\"}");
	desk->runs[1] = (struct sw_sync_run){.id = {second, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	desk->run_count = 2;
	desk_sync_and_drop(desk);
	assert_int_equal(remove_node(desk, &root, "n"), SW_EINPUT);
	WAIT_S(40);
	assert_int_equal(remove_node(desk, &alice, "n"), SW_EDENIED);
	assert_int_equal(remove_node(desk, &root, "m"), SW_ENOTFOUND);
	assert_int_equal(remove_node(desk, &root, "n"), 0);
	assert_int_equal(remove_node(desk, &root, "n"), SW_ENOTFOUND);
	assert_string_equal(desk_state(desk, first), "NF");
	assert_string_equal(view_of(desk, first).reason, "node removed");
	desk_expect_why(desk, first, "its node n did not answer, and an operator removed it");
	assert_string_equal(desk_state(desk, second), "UN");
	assert_string_equal(desk_state(desk, third), "PD");
	WAIT_S(50);
	assert_string_equal(desk_state(desk, second), "PD");
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, first, 1), SW_WANT_STOP);
	assert_int_equal(desk_wanted(answer, second, 1), SW_WANT_STOP);
	assert_int_equal(desk_wanted(answer, second, 2), SW_WANT_RUN);
	assert_int_equal(desk_wanted(answer, third, 1), SW_WANT_RUN);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, first), "NF");
}

/* Aim: a job that may not start a second time is not to start anew when its node is lost either;
 * one that an earlier version let in with both has failed once its node is removed. */
static void test_no_second_start(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	struct sw_job_request *both = desk_request("{\"command\": [\"a\"], \"requeue\": false" LEASE "}");
	struct sw_job_request *one = desk_request("{\"command\": [\"a\"]" LEASE "}");
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, both, &records, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "'on_lost: restart' asks for one"));
	desk_sync_and_drop(desk);
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, one, &records, NULL), 0);
	const char *body = records.items[0].body, *at = strstr(body, "\"name\":\"a\"");
	char earlier[1024];
	snprintf(earlier, sizeof earlier, "%.*s\"requeue\":false,%s", (int)(at - body), body, at);
	sw_records_clear(&records);
	assert_int_equal(sw_record_push_text(&records, SW_RECORD_SUBMIT, strdup(earlier), strlen(earlier), NULL), 0);
	desk_apply(desk, &records, NULL);
	desk_sync_and_drop(desk);
	desk->runs[0] = (struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	desk->run_count = 1;
	desk_sync_and_drop(desk);
	WAIT_S(40);
	assert_int_equal(remove_node(desk, &root, "n"), 0);
	assert_int_equal(sw_engine_job(desk->brain->engine, (struct sw_job_id){0})->state, SW_JOB_FAILED);
	/* Nothing is left of its run. */
	WAIT_S(60);
	assert_string_equal(desk_state(desk, 1), "F");
	assert_string_equal(view_of(desk, 1).reason, "node removed");
	assert_int_equal(sw_brain_validate(desk->brain, NULL), 0);
	sw_job_request_free(both);
	sw_job_request_free(one);
}

/* Aim: a node that an operator closes or opens while it is silent is so when it is back. */
static void test_doors_of_a_silent_node(void **state)
{
	struct desk *desk = *state;
	uint64_t job = start(desk, ""), next = desk_submit(desk, "{\"command\": [\"true\"], \"gpus\": 2}");
	WAIT_S(40);
	for (int closed = 1; closed >= 0; closed--) {
		sw_records records = {0};
		assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", closed == 1, "fans", &records, NULL), 0);
		desk_apply(desk, &records, NULL);
		assert_string_equal(desk_state(desk, job), "UN");
		desk_sync_and_drop(desk);
		desk_sync_and_drop(desk);
		assert_string_equal(desk_state(desk, job), "R");
		struct sw_node_view node;
		assert_true(sw_brain_node(desk->brain, 0, &node) && node.closed == (closed == 1) &&
			    node.gpus_free == (closed == 1 ? 0 : 1));
		WAIT_S(closed == 1 ? 40 : 0);
	}
	desk_say(desk, job, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, next), "CF");
}

/* Aim: what the operator chose for a class stands in the record; what the job says goes before. */
static void test_choice_for_a_class(void **state)
{
	(void)state;
	struct sw_brain_config config = desk_config;
	config.restarts[SW_CLASS_OPPORTUNISTIC] = true;
	struct sw_brain *brain = NULL;
	assert_int_equal(sw_brain_new(&config, &brain, NULL), 0);
	static const struct {
		const char *request, *record;
	} cases[] = {
		{"{\"command\": [\"a\"], \"class\": \"opportunistic\"}", "\"on_lost\":\"restart\""},
		{"{\"command\": [\"a\"], \"class\": \"opportunistic\"}", "\"lease\":600"},
		{"{\"command\": [\"a\"], \"class\": \"opportunistic\", \"on_lost\": \"wait\"}", "\"on_lost\":\"wait\""},
		{"{\"command\": [\"a\"]}", "\"name\":\"a\",\"weight\""},
		/* What may not start a second time is waited for. */
		{"{\"command\": [\"a\"], \"class\": \"opportunistic\", \"requeue\": false}", "\"name\":\"a\",\"requeue\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		sw_records records = {0};
		struct sw_job_request *asked = desk_request(cases[i].request);
		assert_int_equal(sw_brain_propose_submit(brain, &alice, asked, &records, NULL), 0);
		sw_job_request_free(asked);
		if (strstr(records.items[0].body, cases[i].record) == NULL)
			fail_msg("%s does not say %s", records.items[0].body, cases[i].record);
		sw_records_clear(&records);
	}
	sw_brain_free(brain);
}

/* Aim: records of a clock that was beyond all sense leave a state that can be read again. */
static void test_records_of_a_clock_beyond_sense(void **state)
{
	struct desk *desk = *state;
	uint64_t job = start(desk, ", \"preempt\": \"suspend\"");
	desk->now = INT64_C(9000000000000000000);
	change(desk, SW_RECORD_HOLD, job);
	struct sw_pack pack = {0};
	struct sw_brain *loaded = NULL;
	bool adopted;
	sw_brain_save(desk->brain, &pack);
	assert_int_equal(sw_brain_load(&desk_config, pack.bytes, pack.size, &loaded, &adopted, NULL), 0);
	sw_brain_free(loaded);
	sw_pack_release(&pack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_a_job_is_found_again_after_a_week),
		DESK_TEST(test_a_lease_ends),
		DESK_TEST(test_answers_renew_leases),
		DESK_TEST(test_old_agents_have_long_leases),
		DESK_TEST(test_an_agent_whose_clock_went_back),
		DESK_TEST(test_cancel_waits_for_the_node),
		DESK_TEST(test_requeue_waits_for_the_node),
		DESK_TEST(test_remove),
		DESK_TEST(test_no_second_start),
		DESK_TEST(test_doors_of_a_silent_node),
		DESK_TEST(test_records_of_a_clock_beyond_sense),
		cmocka_unit_test(test_choice_for_a_class),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
