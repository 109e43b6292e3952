/* Questions under the brain: answers are records, and a replay needs no solver: after every test
 * the journal is applied to a new brain, which must give the same state (desk.h). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "brain/forecast.h"
#include "solve/solve.h"
#include "unit/brain/desk.h"
#include "unit/solve/pairs.h"

static int pairs_up(void **state)
{
	desk_config.plugin = &pairs;
	desk_config.policy = "pairs";
	return desk_up(state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pairs_up, desk_down)
#define MEMORY "{\"command\": [\"x\"], \"time_limit\": \"1h\", \"gpu_memory\": \"10GiB\"}"

static struct sw_sync_gpu gpu = {.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30};
static const struct sw_sync_inventory one_gpu = {&gpu, 1, 64, UINT64_C(640) << 30};

/* Two jobs, and then a node with one GPU: one question about both. */
static struct sw_engine_question begin(struct desk *desk)
{
	struct sw_engine_question question;
	desk_submit(desk, MEMORY);
	desk_submit(desk, MEMORY);
	assert_false(sw_brain_next_question(desk->brain, 0, &question));
	desk->inventory = &one_gpu;
	desk_sync_and_drop(desk);
	assert_true(sw_brain_next_question(desk->brain, 0, &question));
	return question;
}

static void reply_with(struct desk *desk, const struct sw_reply *reply)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_answer(reply, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
}

static void solve(struct desk *desk, const struct sw_engine_question *question)
{
	struct sw_pack answer = {0};
	struct sw_solve_outcome outcome;
	assert_int_equal(sw_solve(&question->asked, &answer, &outcome), 0);
	reply_with(desk, &(struct sw_reply){question->number, question->print, outcome.status, answer.bytes, answer.size});
	sw_pack_release(&answer);
}

static bool is_wanted(struct desk *desk, uint64_t job)
{
	struct sw_answer_message *answer = desk_sync(desk);
	bool wanted = desk_wanted(answer, job, 1) == SW_WANT_RUN;
	sw_brain_answer_free(answer);
	return wanted;
}

/* Aim: an answer is a record that reaches the policy, which places both jobs on the GPU by it. */
static void test_answered(void **state)
{
	struct desk *desk = *state;
	const struct sw_engine_question question = begin(desk);
	assert_false(is_wanted(desk, 1));
	solve(desk, &question);
	assert_true(is_wanted(desk, 1));
	assert_true(is_wanted(desk, 2));
}

/* Aim: without an answer the policy hears that there is none, and goes on without. */
static void test_failed(void **state)
{
	struct desk *desk = *state;
	const struct sw_engine_question question = begin(desk);
	reply_with(desk, &(struct sw_reply){.number = question.number, .print = question.print, .status = SW_SOLVE_FAILED});
	assert_true(is_wanted(desk, 1));
	assert_false(is_wanted(desk, 2));
	desk_expect_why(desk, 2, "the last failed");
}

/* Aim: bytes that are no answer to the question never reach the policy: the record is refused, and
 * the question stays open. */
static void test_no_answer(void **state)
{
	struct desk *desk = *state;
	struct sw_engine_question question = begin(desk);
	sw_records records = {0};
	struct sw_err err = {0};
	const struct sw_matching_found found = {.pairs = 70000};
	const struct sw_reply reply = {question.number, question.print, SW_SOLVED, &found, sizeof found};
	uint64_t before = sw_brain_log_hash(desk->brain);
	assert_int_equal(sw_brain_propose_answer(&reply, &records, NULL), 0);
	assert_int_equal(sw_brain_apply_record(desk->brain, desk->now, &records.items[0], NULL, &err), SW_EINPUT);
	assert_non_null(strstr(err.fact, "no answer to question 1"));
	sw_records_clear(&records);
	assert_true(sw_brain_log_hash(desk->brain) == before);
	assert_true(sw_brain_next_question(desk->brain, 0, &question));
}

/* Aim: an answer to another question, or a second one, changes nothing. */
static void test_late(void **state)
{
	struct desk *desk = *state;
	struct sw_engine_question question = begin(desk), wrong = question;
	wrong.print++;
	solve(desk, &wrong);
	assert_false(is_wanted(desk, 1));
	solve(desk, &question);
	uint64_t commands = sw_brain_command_hash(desk->brain);
	solve(desk, &question);
	assert_true(sw_brain_command_hash(desk->brain) == commands);
}

/* Aim: a record that is no answer is refused before anything changes. */
static void test_refused(void **state)
{
	struct desk *desk = *state;
	static const char *const bodies[] = {
		"{}",
		"{\"bytes\":\"\",\"number\":1,\"print\":1}",
		"{\"bytes\":\"0\",\"number\":1,\"print\":1,\"status\":\"solved\"}",
		"{\"bytes\":\"0g\",\"number\":1,\"print\":1,\"status\":\"solved\"}",
		"{\"bytes\":\"00\",\"number\":-1,\"print\":1,\"status\":\"solved\"}",
		"{\"bytes\":\"00\",\"number\":1,\"print\":1,\"status\":\"guessed\"}",
		"{\"bytes\":7,\"number\":1,\"print\":1,\"status\":\"solved\"}",
	};
	uint64_t before = sw_brain_log_hash(desk->brain);
	for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
		struct sw_err err = {0};
		int r = sw_brain_apply(desk->brain, desk->now, SW_RECORD_ANSWER, bodies[b], strlen(bodies[b]), NULL, &err);
		assert_int_equal(r, SW_EINPUT);
		assert_true(err.fact[0] != '\0');
	}
	assert_true(sw_brain_log_hash(desk->brain) == before);
	size_t size = 2 * (size_t)SW_SOLUTION_BYTES_MAX + 2;
	SW_CLEANUP(sw_freep) char *digits = calloc(1, size + 1);
	SW_CLEANUP(sw_freep) char *body = NULL;
	memset(digits, '0', size);
	assert_true(asprintf(&body, "{\"bytes\":\"%s\",\"number\":1,\"print\":1,\"status\":\"solved\"}", digits) > 0);
	assert_int_equal(sw_brain_apply(desk->brain, desk->now, SW_RECORD_ANSWER, body, strlen(body), NULL, NULL), SW_EINPUT);
}

/* Aim: a brain that is loaded asks what was open, and the answer goes on from there. */
static void test_saved(void **state)
{
	struct desk *desk = *state;
	const struct sw_engine_question question = begin(desk);
	struct sw_brain *loaded = NULL;
	struct sw_pack pack = {0};
	struct sw_engine_question again;
	struct sw_err err = {0};
	bool adopted = true;
	sw_brain_save(desk->brain, &pack);
	if (sw_brain_load(&desk_config, pack.bytes, pack.size, &loaded, &adopted, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	sw_pack_release(&pack);
	assert_false(adopted);
	assert_true(sw_brain_next_question(loaded, 0, &again));
	assert_true(again.number == question.number && again.print == question.print);
	assert_int_equal(again.asked.size, question.asked.size);
	assert_memory_equal(again.asked.bytes, question.asked.bytes, question.asked.size);
	sw_brain_free(desk->brain);
	desk->brain = loaded;
	solve(desk, &again);
	assert_true(is_wanted(desk, 2));
}

/* Aim: a forecast has what is open solved, and foresees the starts that follow. */
static void test_forecast(void **state)
{
	struct desk *desk = *state;
	const struct sw_forecast_config config = {.now = desk->now};
	struct sw_forecast found = {0};
	struct sw_err err = {0};
	begin(desk);
	uint64_t before = sw_brain_log_hash(desk->brain);
	if (sw_brain_forecast(desk->brain, &config, &found, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(found.rows.count, 2);
	for (size_t r = 0; r < 2; r++)
		assert_true(found.rows.items[r].starts_at <= desk->now);
	assert_true(sw_brain_log_hash(desk->brain) == before);
	sw_forecast_release(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_answered), CASE(test_failed), CASE(test_late),     CASE(test_no_answer),
		CASE(test_refused),  CASE(test_saved),	CASE(test_forecast),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
