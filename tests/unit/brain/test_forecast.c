/* Forecasts: when jobs that wait start, by a copy of the engine that is run ahead. Every test's
 * journal is replayed at its end (desk.h). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brain/forecast.h"
#include "unit/brain/desk.h"

#define S SW_NS_PER_S
#define NEVER (-1)

static struct sw_sync_gpu gpus[8];
static struct sw_sync_inventory inventory;
static char uuids[8][16];

/* Under this policy, on so many GPUs of one node. */
static void begin(struct desk *desk, const char *policy, uint32_t count)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, policy, NULL, 0, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	for (uint32_t g = 0; g < count; g++) {
		snprintf(uuids[g], sizeof uuids[g], "GPU-%u", g);
		gpus[g] = (struct sw_sync_gpu){.uuid = uuids[g], .name = "g", .memory_bytes = UINT64_C(80) << 30};
	}
	inventory = (struct sw_sync_inventory){gpus, count, 64, UINT64_C(640) << 30};
	desk->inventory = &inventory;
	desk_sync_and_drop(desk);
}

/* `more` begins with a comma, or is empty. */
static uint64_t add(struct desk *desk, uint32_t count, const char *limit, const char *more)
{
	char json[300], time_limit[64] = "";
	if (limit[0] != '\0')
		snprintf(time_limit, sizeof time_limit, ", \"time_limit\": \"%s\"", limit);
	snprintf(json, sizeof json, "{\"command\": [\"job\"], \"gpus\": %u%s%s}", count, time_limit, more);
	return desk_submit(desk, json);
}

/* The node is heard in between, so it does not fall silent. */
static void pass(struct desk *desk, sw_ns seconds)
{
	for (sw_ns left = seconds; left > 0; left -= 10) {
		desk_pass_time(desk, (left < 10 ? left : 10) * S);
		desk_sync_and_drop(desk);
	}
}

static void change(struct desk *desk, enum sw_record_kind kind, uint64_t job)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, kind, "change", job, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
}

static struct sw_forecast look(struct desk *desk, struct sw_forecast_config config)
{
	struct sw_forecast forecast = {0};
	struct sw_err err = {0};
	config.now = desk->now;
	uint64_t before = sw_brain_log_hash(desk->brain);
	if (sw_brain_forecast(desk->brain, &config, &forecast, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_true(sw_brain_log_hash(desk->brain) == before);
	assert_int_equal(sw_brain_validate(desk->brain, NULL), 0);
	return forecast;
}

static struct sw_forecast_row row_of(const struct sw_forecast *forecast, uint64_t job)
{
	for (size_t i = 0; i < forecast->rows.count; i++)
		if (forecast->rows.items[i].job == job)
			return forecast->rows.items[i];
	fail_msg("there is no row of job %d", (int)job);
	return (struct sw_forecast_row){0};
}

/* The row, whose start is so many seconds from now. */
static struct sw_forecast_row expect(struct desk *desk, uint64_t job, sw_ns seconds)
{
	struct sw_forecast forecast = look(desk, (struct sw_forecast_config){0});
	struct sw_forecast_row row = row_of(&forecast, job);
	sw_forecast_release(&forecast);
	sw_ns found = row.starts_at == SW_TIME_NEVER ? NEVER : (row.starts_at - desk->now) / S;
	if (found != seconds)
		fail_msg("job %d starts in %lld s instead of %lld (why: %u)", (int)job, (long long)found, (long long)seconds, row.why);
	assert_int_equal(row.why == SW_FORECAST_STARTS, seconds != NEVER);
	return row;
}

static void expect_not(struct desk *desk, uint64_t job, enum sw_forecast_why why)
{
	assert_int_equal(expect(desk, job, NEVER).why, why);
}

/* ---- starts */

/* Aim: first in, first out on four GPUs: each starts when enough of those before it have ended, and
 * the row says how many these are and what their lengths rest on. */
static void test_fifo(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 4);
	add(desk, 2, "150s", "");
	pass(desk, 90);
	add(desk, 2, "", ", \"expected\": 30");
	pass(desk, 10);
	uint64_t wide = add(desk, 4, "30s", ""), last = add(desk, 1, "10s", "");
	struct sw_forecast_row row = expect(desk, wide, 50);
	assert_int_equal(row.ended[SW_BASIS_LIMIT], 1);
	assert_int_equal(row.ended[SW_BASIS_EXPECTED], 1);
	row = expect(desk, last, 80);
	assert_int_equal(row.ended[SW_BASIS_LIMIT], 2);
}

/* Aim: jobs that run have no row, and the same state gives the same forecast. */
static void test_same_again(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 2);
	for (int i = 0; i < 20; i++)
		add(desk, 1 + (uint32_t)i % 2, "60s", "");
	struct sw_forecast one = look(desk, (struct sw_forecast_config){0}), two = look(desk, (struct sw_forecast_config){0});
	assert_int_equal(one.rows.count, 19); /* the second wants both GPUs */
	assert_int_equal(two.rows.count, one.rows.count);
	assert_memory_equal(one.rows.items, two.rows.items, one.rows.count * sizeof one.rows.items[0]);
	sw_forecast_release(&one);
	sw_forecast_release(&two);
}

/* Aim: where the length of a job is not known, starts behind it are not known, and the row says so;
 * others are told. */
static void test_unknown(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fjf", 4);
	add(desk, 3, "", "");
	add(desk, 1, "12s", "");
	pass(desk, 5);
	uint64_t wide = add(desk, 4, "30s", ""), small = add(desk, 1, "30s", "");
	expect_not(desk, wide, SW_FORECAST_LENGTH);
	expect(desk, small, 7);
	char text[200];
	assert_non_null(strstr(sw_forecast_say(SW_FORECAST_LENGTH, 0, text, sizeof text), "time limits would tell"));
	assert_non_null(strstr(sw_forecast_say(SW_FORECAST_LENGTH, 1, text, sizeof text), "1 GPU takes no jobs now"));
}

/* Aim: jobs that have ended say how long others of their user and name run, also when they have
 * left the state. */
static void test_lengths_of_earlier_jobs(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 1);
	uint64_t first = add(desk, 1, "", ", \"name\": \"train\"");
	desk_sync_and_drop(desk);
	desk_say(desk, first, 1, SW_RUN_RUNNING, 0);
	pass(desk, 40);
	desk_say(desk, first, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, first), "CD");
	desk->run_count = 0;
	add(desk, 1, "", ", \"name\": \"train\"");
	uint64_t waits = add(desk, 1, "", ", \"name\": \"other\"");
	struct sw_forecast_row row = expect(desk, waits, 40);
	assert_int_equal(row.ended[SW_BASIS_ALIKE], 1);
	/* What was told of jobs that have left counts as well: the median of 40 and 60. */
	const struct sw_length other = {900, sw_length_kind(alice.uid, "train"), 60 * S};
	assert_int_equal(sw_brain_recall_length(desk->brain, &other), 0);
	expect(desk, waits, 60);
	/* A user of another number has other jobs of that name. */
	const struct sw_length strange = {901, sw_length_kind(bob.uid, "train"), 5 * S};
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(sw_brain_recall_length(desk->brain, &(struct sw_length){901 + i, strange.kind, strange.ran_ns}), 0);
	expect(desk, waits, 60);
}

/* Aim: least attained service: a job leaves its queue after some more time, and then the one that
 * waits gets its GPUs. */
static void test_attained_service(void **state)
{
	struct desk *desk = *state;
	begin(desk, "las", 4);
	uint64_t first = add(desk, 4, "10000s", ", \"preempt\": \"requeue\"");
	pass(desk, 800);
	/* Out of the first queue at 3250 GPU-seconds: after 812.5 s. */
	expect(desk, add(desk, 4, "60s", ", \"preempt\": \"requeue\""), 13);
	assert_string_equal(desk_state(desk, first), "CF");
}

/* Aim: shortest first: a longer job stands still for a shorter one and goes on behind it with what
 * it has left. */
static void test_suspended(void **state)
{
	struct desk *desk = *state;
	begin(desk, "srtf", 1);
	uint64_t first = add(desk, 1, "", ", \"expected\": 100, \"preempt\": \"suspend\"");
	desk_sync_and_drop(desk);
	desk_say(desk, first, 1, SW_RUN_RUNNING, 0);
	desk->runs[0].frees = true;
	pass(desk, 40);
	add(desk, 1, "", ", \"expected\": 20, \"preempt\": \"suspend\"");
	assert_string_equal(desk_state(desk, first), "S");
	desk->runs[0].state = SW_RUN_SUSPENDED;
	pass(desk, 5);
	expect(desk, first, 15);
	/* It needs 60 s more, so one of 70 s comes behind it. */
	expect(desk, add(desk, 1, "", ", \"expected\": 70, \"preempt\": \"suspend\""), 75);
}

/* Gives a job that runs all the GPUs that are free, then starts those that wait. */
static sw_ns grow(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (const struct sw_job *job = sw_view_next_running(view, NULL); job != NULL; job = sw_view_next_running(view, job))
		if (job->gpus_held < job->max_gpus)
			(void)sw_plan_run(plan, job, SW_WISH(.gpus = job->max_gpus));
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL;) {
		const struct sw_job *next = sw_view_next_waiting(view, job);
		(void)sw_plan_run(plan, job, NULL);
		job = next;
	}
	return SW_TIME_NEVER;
}

static const struct sw_policy growing = {.abi = SW_POLICY_ABI, .name = "growing", .about = "as the test says", .decide = grow};

static int growing_up(void **state)
{
	desk_config.plugin = &growing;
	return desk_up(state);
}

static int growing_down(void **state)
{
	int r = desk_down(state);
	desk_config.plugin = NULL;
	return r;
}

/* Aim: a job that is stopped to go on with more GPUs begins anew, and takes its whole length. */
static void test_moved(void **state)
{
	struct desk *desk = *state;
	begin(desk, "growing", 2);
	add(desk, 1, "20s", "");
	add(desk, 1, "100s", ", \"min_gpus\": 1, \"max_gpus\": 2, \"preempt\": \"requeue\"");
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 2), "CF");
	expect(desk, add(desk, 2, "10s", ""), 120);
}

/* Aim: a job that depends on others competes when the last of them has ended; in a chain each waits
 * for the one before. */
static void test_dependencies(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 4);
	add(desk, 1, "10s", "");
	add(desk, 1, "25s", "");
	uint64_t both = add(desk, 1, "5s", ", \"depends\": \"afterok:1,afterany:2\"");
	uint64_t chain = add(desk, 1, "5s", ", \"depends\": \"afterok:3\""), fails = add(desk, 1, "5s", ", \"depends\": \"afternotok:1\"");
	uint64_t behind = add(desk, 1, "5s", ", \"depends\": \"afterany:5\"");
	expect(desk, both, 25);
	expect(desk, chain, 30);
	expect_not(desk, fails, SW_FORECAST_IF_FAILED);
	expect_not(desk, behind, SW_FORECAST_AWAITS);
}

/* Aim: of an array of which two may be under way, the others start one by one, in their order. */
static void test_array(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 4);
	struct sw_job_request *request = desk_request("{\"command\": [\"job\"], \"array\": \"0-4%2\", \"time_limit\": \"10s\"}");
	sw_records records = {0};
	request->is_member = true;
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, request, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(request, 5, &records, NULL), 0);
	sw_job_request_free(request);
	desk_apply(desk, &records, NULL);
	expect(desk, 3, 10);
	expect(desk, 4, 10);
	expect(desk, 5, 20);
}

/* Aim: a job that waits for its next try competes when that is due, though there is room. */
static void test_pause(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 2);
	uint64_t fails = add(desk, 1, "60s", ", \"retries\": 3");
	desk_sync_and_drop(desk);
	desk_say(desk, fails, 1, SW_RUN_RUNNING, 0);
	pass(desk, 3);
	desk_say(desk, fails, 1, SW_RUN_EXITED, 1);
	desk_sync_and_drop(desk);
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, fails, &view));
	assert_string_equal(view.state, "PD");
	assert_true(view.retry_at > desk->now);
	desk->run_count = 0;
	add(desk, 2, "100s", "");
	expect(desk, fails, 100); /* the other is there when the pause is over */
	add(desk, 1, "5s", ", \"depends\": \"afterany:1\"");
	expect(desk, 3, 160);
}

/* Aim: a tenant's quota holds in the forecast, too. */
static void test_quota(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fjf", 4);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_quota(desk->brain, &root, "three", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	add(desk, 1, "40s", ", \"tenant\": \"three\"");
	uint64_t waits = add(desk, 1, "5s", ", \"tenant\": \"three\"");
	expect(desk, waits, 40);
	add(desk, 1, "5s", ", \"tenant\": \"four\"");
	expect(desk, waits, 40);
	expect_not(desk, add(desk, 2, "5s", ", \"tenant\": \"three\""), SW_FORECAST_QUOTA);
}

/* Aim: a job on hold has no start, and keeps no other from starting. */
static void test_held(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 2);
	add(desk, 2, "30s", "");
	uint64_t held = add(desk, 2, "30s", ""), behind = add(desk, 1, "30s", "");
	change(desk, SW_RECORD_HOLD, held);
	expect_not(desk, held, SW_FORECAST_HELD);
	expect(desk, behind, 30);
	change(desk, SW_RECORD_RELEASE, held);
	expect(desk, behind, 60);
}

/* Aim: GPUs that take no jobs do not count, nor does a node that is closed: what fits only with
 * them has no start. */
static void test_shut(void **state)
{
	struct desk *desk = *state;
	desk->looked = true;
	desk->shut[desk->shut_count++] = (struct sw_sync_shut){"GPU-0", SW_SHUT_STRANGER, 1000, NULL};
	begin(desk, "fjf", 4);
	add(desk, 2, "50s", "");
	uint64_t wide = add(desk, 4, "100s", ""), two = add(desk, 2, "100s", "");
	expect_not(desk, wide, SW_FORECAST_NO_ROOM);
	expect(desk, two, 50);
	struct sw_forecast forecast = look(desk, (struct sw_forecast_config){0});
	assert_int_equal(forecast.gpus_shut, 1);
	sw_forecast_release(&forecast);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", true, "", &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	expect_not(desk, two, SW_FORECAST_NO_NODE);
}

/* ---- bounds */

static bool three_times(void *left)
{
	return (*(int *)left)-- > 0;
}

/* Aim: a forecast ends at its bounds of steps and time; what it found until then stays, and the
 * others say that they are too far ahead. */
static void test_bounds(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 1);
	for (int i = 0; i < 400; i++)
		add(desk, 1, "10s", "");
	for (int round = 0; round < 2; round++) {
		int left = 3;
		struct sw_forecast_config config = {
			.steps_max = round == 0 ? 100 : 0, .goes_on = round == 1 ? three_times : NULL, .user = &left};
		struct sw_forecast forecast = look(desk, config);
		assert_int_equal(forecast.rows.count, 399);
		assert_int_equal(row_of(&forecast, 2).starts_at, desk->now + 10 * S);
		assert_int_equal(row_of(&forecast, 400).why, SW_FORECAST_FAR);
		size_t found = 0;
		while (found < 399 && forecast.rows.items[found].why == SW_FORECAST_STARTS)
			found++;
		assert_in_range(found, 20, 200);
		sw_forecast_release(&forecast);
	}
	expect(desk, 400, 3990);
}

/* Aim: a policy that takes turns among jobs of unknown length comes to an end. */
static void test_endless(void **state)
{
	struct desk *desk = *state;
	begin(desk, "gandiva", 1);
	for (int i = 0; i < 6; i++)
		add(desk, 1, "", "");
	struct sw_forecast forecast = look(desk, (struct sw_forecast_config){0});
	for (size_t i = 0; i < forecast.rows.count; i++)
		assert_true(forecast.rows.items[i].why == SW_FORECAST_STARTS || forecast.rows.items[i].why == SW_FORECAST_LENGTH);
	sw_forecast_release(&forecast);
}

/* Aim: with some jobs in view there are rows of these alone, and their answers are the same. */
static void test_in_view(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 2);
	add(desk, 2, "10s", "");
	add(desk, 2, "10s", "");
	add(desk, 2, "10s", "");
	change(desk, SW_RECORD_CANCEL, 3);
	struct sw_forecast forecast = look(desk, (struct sw_forecast_config){.first = 1, .last = 3});
	assert_int_equal(forecast.rows.count, 3);
	assert_int_equal(forecast.rows.items[0].starts_at, desk->now);
	assert_int_equal(forecast.rows.items[1].starts_at, desk->now + 10 * S);
	assert_int_equal(forecast.rows.items[2].why, SW_FORECAST_OVER);
	sw_forecast_release(&forecast);
}

/* Aim: a request is tried in a copy of the state: it is answered as the next job would be, and the
 * state knows nothing of it. */
static void test_trial(void **state)
{
	struct desk *desk = *state;
	begin(desk, "fifo", 2);
	add(desk, 2, "70s", "");
	struct sw_pack pack = {0};
	sw_brain_save(desk->brain, &pack);
	SW_CLEANUP(sw_brain_freep) struct sw_brain *copy = NULL;
	bool adopted;
	assert_int_equal(sw_brain_load(&desk_config, pack.bytes, pack.size, &copy, &adopted, NULL), 0);
	sw_pack_release(&pack);
	struct sw_job_request *request = desk_request("{\"command\": [\"job\"], \"gpus\": 1}");
	sw_records records = {0};
	uint64_t job = 0;
	assert_int_equal(sw_brain_propose_submit(copy, &alice, request, &records, NULL), 0);
	sw_job_request_free(request);
	assert_int_equal(sw_brain_apply(copy, desk->now, records.items[0].kind, records.items[0].body, records.items[0].size, &job, NULL),
			 0);
	sw_records_clear(&records);
	struct sw_forecast forecast = {0};
	const struct sw_forecast_config config = {.now = desk->now, .first = job, .last = job};
	assert_int_equal(sw_brain_forecast(copy, &config, &forecast, NULL), 0);
	assert_int_equal(forecast.rows.count, 1);
	assert_int_equal(forecast.rows.items[0].starts_at, desk->now + 70 * S);
	sw_forecast_release(&forecast);
	assert_int_equal(sw_brain_job_count(desk->brain), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_fifo),
		DESK_TEST(test_same_again),
		DESK_TEST(test_unknown),
		DESK_TEST(test_lengths_of_earlier_jobs),
		DESK_TEST(test_attained_service),
		DESK_TEST(test_suspended),
		cmocka_unit_test_setup_teardown(test_moved, growing_up, growing_down),
		DESK_TEST(test_dependencies),
		DESK_TEST(test_array),
		DESK_TEST(test_pause),
		DESK_TEST(test_quota),
		DESK_TEST(test_held),
		DESK_TEST(test_shut),
		DESK_TEST(test_bounds),
		DESK_TEST(test_endless),
		DESK_TEST(test_in_view),
		DESK_TEST(test_trial),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
