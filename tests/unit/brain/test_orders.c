/* One order, one fate: what the controller makes of reports that cannot be read, and of
 * orders that cannot be made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brain/prerun.h"
#include "unit/brain/desk.h"

/* Two jobs run on the node of two GPUs. */
static void run_two(struct desk *desk)
{
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	for (size_t i = 0; i < 2; i++)
		desk->runs[i] = (struct sw_sync_run){.id = {i + 1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	desk->run_count = 2;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "R");
	assert_string_equal(desk_state(desk, 2), "R");
}

static uint32_t epoch_of(const struct desk *desk, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
	return view.epoch;
}

/* A run of which something unreadable is said is not lost, and is wished for as
 * before; the others are heard. */
static void test_unreadable_report_loses_no_run(void **state)
{
	struct desk *desk = *state;
	run_two(desk);
	for (int has_id = 0; has_id <= 1; has_id++) {
		desk->unread[0] = (struct sw_unread){.id = {has_id ? 2 : 0, has_id ? 1 : 0}, .has_id = has_id, .why = "?"};
		desk->unread_count = 1;
		desk->run_count = 1;
		struct sw_answer_message *answer = desk_sync(desk);
		assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_RUN);
		assert_int_equal(desk_wanted(answer, 2, 1), SW_WANT_RUN);
		sw_brain_answer_free(answer);
		assert_string_equal(desk_state(desk, 2), "R");
		assert_int_equal(epoch_of(desk, 2), 1);
	}
	desk->runs[0] = (struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_EXITED, .reason = ""};
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "CD");
	assert_string_equal(desk_state(desk, 2), "R");
	desk->unread_count = 0;
}

/* A run that waited in an agent which was killed before it started it never began: it is ordered
 * again, and neither lost nor tried a second time. */
static void test_forgotten_before_it_began(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	desk->runs[0] = (struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_STARTING, .reason = ""};
	desk->run_count = 1;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "CF");
	desk->run_count = 0;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_RUN);
	assert_non_null(answer->wants[0].spec);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 1), "CF");
	assert_int_equal(epoch_of(desk, 1), 1);
}

/* A run that was stopped and of which something unreadable is said counts as alive: what waits for
 * its end goes on waiting. */
static void test_unreadable_report_lays_no_ghost(void **state)
{
	struct desk *desk = *state;
	run_two(desk);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 2, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_int_equal(desk->brain->nodes.items[0].ghosts.count, 1);
	for (int has_id = 0; has_id <= 1; has_id++) {
		desk->unread[0] = (struct sw_unread){.id = {has_id ? 2 : 0, has_id ? 1 : 0}, .has_id = has_id, .why = "?"};
		desk->unread_count = 1;
		desk->run_count = 1;
		desk_sync_and_drop(desk);
		assert_int_equal(desk->brain->nodes.items[0].ghosts.count, 1);
	}
	desk->unread_count = 0;
	desk_sync_and_drop(desk);
	assert_int_equal(desk->brain->nodes.items[0].ghosts.count, 0);
}

/* A job whose order its node could not read fails, is not tried again, and says why; the job
 * beside it is not touched. */
static void test_job_of_an_unreadable_order_fails(void **state)
{
	struct desk *desk = *state;
	run_two(desk);
	desk->runs[1] = (struct sw_sync_run){
		.id = {2, 1}, .state = SW_RUN_EXITED, .code = 125, .reason = SW_REASON_ORDER, .detail = "'spec.argv' is 5"};
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 2), "F");
	assert_string_equal(desk_state(desk, 1), "R");
	assert_int_equal(epoch_of(desk, 1), 1);
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, 2, &view));
	assert_string_equal(view.failure, "order-unreadable");
	assert_string_equal(view.failure_line, "'spec.argv' is 5");
	assert_int_equal(view.code, 125);
	desk_expect_why(desk, 2, "could not read or carry out its order");
}

/* A request whose environment has `count` variables of `size` bytes. The caller frees. */
static char *large_request(size_t count, size_t size, const char *more)
{
	char *text = malloc(count * (size + 32) + 4000), *at = text;
	assert_non_null(text);
	at += sprintf(at, "{\"command\":[\"true\"],%s\"env\":{", more);
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s\"V%zu\":\"%0*d\"", i > 0 ? "," : "", i, (int)size, 0);
	strcpy(at, "}}");
	return text;
}

/* The members of an array, and a pre-run, can have as many variables as a request may have. */
static void test_most_variables(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	char *array = large_request(SW_JOB_ENV_MAX, 1, "\"array\":\"3-3\",\"array_index\":3,\"slurm_env\":true,"),
	     *prerun = large_request(SW_JOB_ENV_MAX, 1, "\"gpus\":2,\"prerun\":60,");
	desk_submit(desk, array);
	desk_submit(desk, prerun);
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(answer->want_count, 2);
	for (size_t w = 0; w < 2; w++) {
		assert_null(answer->wants[w].unfit);
		assert_int_equal(answer->wants[w].spec->env.count, SW_JOB_ENV_MAX + (w == 0 ? 2 : 1));
	}
	sw_brain_answer_free(answer);
	free(array);
	free(prerun);
}

/* Orders that are too much for one answer come with the next ones; none is left out, and the
 * runs that are known go on. */
static void test_answers_in_parts(void **state)
{
	enum { JOBS = 24 };
	struct desk *desk = *state;
	struct sw_sync_gpu gpus[JOBS];
	char names[JOBS][16];
	for (int g = 0; g < JOBS; g++) {
		snprintf(names[g], sizeof names[g], "GPU-%d", g);
		gpus[g] = (struct sw_sync_gpu){.uuid = names[g], .name = "g", .memory_bytes = UINT64_C(80) << 30};
	}
	const struct sw_sync_inventory inventory = {gpus, JOBS, 64, UINT64_C(64) << 30};
	desk->inventory = &inventory;
	desk_sync_and_drop(desk);
	char *large = large_request(2, 120000, "");
	for (int i = 0; i < JOBS; i++)
		desk_submit(desk, large);
	free(large);
	struct sw_sync_run runs[JOBS];
	size_t known = 0, rounds = 0;
	for (; known < JOBS && rounds < JOBS; rounds++) {
		const struct sw_sync sync = {.node = "n", .instance = "a1", .number = ++desk->number, .runs = runs, .run_count = known};
		sw_records records = {0};
		struct sw_answer_message *answer = NULL;
		assert_int_equal(sw_brain_hear(desk->brain, desk->now, &sync, &records, NULL), 0);
		desk_apply(desk, &records, NULL);
		assert_int_equal(sw_brain_answer(desk->brain, desk->now, &sync, &answer, NULL), 0);
		assert_int_equal(answer->want_count, JOBS);
		char *text = NULL;
		size_t size, before = known;
		assert_int_equal(sw_answer_encode(answer, &text, &size, NULL), 0);
		assert_true(size < SW_ANSWER_ORDERS_BYTES + SW_JOB_TEXT_MAX + JOBS * 500);
		free(text);
		for (size_t w = 0; w < JOBS; w++)
			if (answer->wants[w].spec != NULL)
				runs[known++] = (struct sw_sync_run){.id = answer->wants[w].id, .state = SW_RUN_RUNNING, .reason = ""};
		assert_true(known > before);
		sw_brain_answer_free(answer);
	}
	assert_true(known == JOBS && rounds > 1);
}

/* A job that an earlier version took, and for which there is no order, says so to its node, and
 * beside it all is well. */
static void test_no_such_order(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	char path[64] = "", name[SW_JOB_NAME_MAX + 1], text[600];
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	for (int i = 0; i < 20; i++)
		strcat(path, "%x");
	snprintf(text, sizeof text, "{\"command\":[\"true\"],\"name\":\"%s\",\"stdout\":\"%s\"}", name, path);
	desk_submit(desk, text);
	desk_submit(desk, "{\"command\":[\"true\"]}");
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(answer->want_count, 2);
	assert_null(answer->wants[0].spec);
	assert_string_equal(answer->wants[0].unfit, "'stdout' has more than 4095 bytes once its patterns are filled in");
	assert_non_null(answer->wants[1].spec);
	sw_brain_answer_free(answer);
}

/* A pre-run has a longer name than its job: where that is too much, the submit is refused and no
 * job waits for an order that cannot be. */
static void test_prerun_is_a_request(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	size_t refused = 0;
	for (size_t size = SW_JOB_TEXT_MAX - 4096 - 60; size < SW_JOB_TEXT_MAX - 4096; size += 3) {
		sw_records records = {0};
		struct sw_err err = {0};
		struct sw_job_request *request = NULL;
		char *text = large_request(3, size / 3, "\"gpus\":2,\"prerun\":60,");
		int r = sw_job_request_decode("test", text, strlen(text), &request, &err);
		free(text);
		if (r < 0)
			break;
		struct sw_job_request *prerun = sw_prerun_request(request);
		assert_non_null(prerun);
		bool fits = sw_job_request_check("test", prerun, NULL) == 0;
		assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, request, &records, &err), fits ? 0 : SW_ELIMIT);
		refused += !fits;
		sw_job_request_free(prerun);
		sw_job_request_free(request);
		sw_records_clear(&records);
		sw_vec_free(&records);
	}
	assert_true(refused > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_unreadable_report_loses_no_run),
		DESK_TEST(test_unreadable_report_lays_no_ghost),
		DESK_TEST(test_forgotten_before_it_began),
		DESK_TEST(test_job_of_an_unreadable_order_fails),
		DESK_TEST(test_most_variables),
		DESK_TEST(test_answers_in_parts),
		DESK_TEST(test_no_such_order),
		DESK_TEST(test_prerun_is_a_request),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
