/* One order, one fate: what the controller makes of reports that cannot be read, and of orders that cannot be made. */
#include <string.h>

#include "unit/controller/desk.h"

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

/* A run of which something unreadable is said is not lost, and is wished for as before; the others are heard. */
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

/* A run that was stopped and of which something unreadable is said counts as alive: what waits for its end goes on waiting. */
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

/* A job whose order its node could not read fails, is not tried again, and says why; the job beside it is not touched. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_unreadable_report_loses_no_run),
		DESK_TEST(test_unreadable_report_lays_no_ghost),
		DESK_TEST(test_job_of_an_unreadable_order_fails),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
