/* Questions of a policy: what may be asked, what comes back and what is dropped, and what becomes
 * of those that are open when the engine is saved or another policy takes over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripted.h"

#define BYTES 64u

static struct sw_solution heard;
static char heard_bytes[BYTES];
static uint32_t answers;
static uint32_t changes;

static void on_answered(struct sw_view *view, const struct sw_solution *solution)
{
	(void)view;
	heard = *solution;
	assert_true(solution->size <= sizeof heard_bytes);
	if (solution->size > 0)
		memcpy(heard_bytes, solution->bytes, solution->size);
	answers++;
}

static sw_ns decide(struct sw_plan *plan)
{
	changes = sw_view_changes(sw_plan_view(plan));
	return scripted_decide(plan);
}

static const struct sw_policy curious = {.abi = SW_POLICY_ABI,
					 .name = "curious",
					 .about = "asks as the test says",
					 .question_size = BYTES,
					 .answered = on_answered,
					 .decide = decide};
static const struct sw_policy deaf = {
	.abi = SW_POLICY_ABI, .name = "deaf", .about = "hears no answer", .question_size = BYTES, .decide = decide};
static const struct sw_policy silent = {
	.abi = SW_POLICY_ABI, .name = "silent", .about = "may ask nothing", .answered = on_answered, .decide = decide};

static void open_with(struct rig *rig, const struct sw_policy *policy)
{
	script = NULL;
	answers = 0;
	heard = (struct sw_solution){0};
	rig_open(rig, two_by_two, 2, (struct sw_engine_config){.policy = policy, .misuse_limit = 1000}, NULL);
}

static struct sw_question question = {.kind = SW_SOLVE_MATCHING, .limit = 10, .bytes = "which of them?", .size = 14, .tag = 99};
static uint64_t number;

static void ask_once(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_ask(plan, &question, &number), SW_YES);
}

static void reply_with(struct rig *rig, int64_t at_s, const struct sw_engine_question *asked, uint8_t status, const char *bytes,
		       size_t size)
{
	const struct sw_reply reply = {asked->number, asked->print, status, bytes, size};
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_ANSWER, .reply = &reply});
}

/* Aim: the driver finds a question with its bytes and is told of it; the answer reaches the policy
 * once, with the tag, and brings a decision that knows why. */
static void test_there_and_back(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_question asked;
	open_with(&rig, &curious);
	assert_false(sw_engine_next_question(rig.engine, 0, &asked));
	run_script(&rig, 1, ask_once);
	assert_non_null(rig_command(&rig, SW_CMD_ASK, UINT32_MAX));
	assert_int_equal(rig_commands(&rig), 1);
	assert_true(sw_engine_next_question(rig.engine, 0, &asked));
	assert_int_equal(asked.number, number);
	assert_int_equal(asked.asked.kind, SW_SOLVE_MATCHING);
	assert_int_equal(asked.asked.limit, 10);
	assert_int_equal(asked.asked.size, 14);
	assert_memory_equal(asked.asked.bytes, "which of them?", 14);
	assert_false(sw_engine_next_question(rig.engine, number, &(struct sw_engine_question){0}));
	reply_with(&rig, 2, &asked, SW_SOLVED_TO_LIMIT, "these", 5);
	assert_int_equal(answers, 1);
	assert_int_equal(heard.number, number);
	assert_int_equal(heard.tag, 99);
	assert_int_equal(heard.kind, SW_SOLVE_MATCHING);
	assert_int_equal(heard.status, SW_SOLVED_TO_LIMIT);
	assert_memory_equal(heard_bytes, "these", 5);
	assert_true((changes & SW_CHANGE_ANSWERS) != 0);
	assert_false(sw_engine_next_question(rig.engine, 0, &asked));
	rig_tick(&rig, 3);
	assert_int_equal(changes & SW_CHANGE_ANSWERS, 0);
	rig_close(&rig);
}

static void ask_wrongly(struct sw_plan *plan)
{
	struct sw_question wrong = question;
	assert_int_equal(sw_plan_ask(plan, NULL, NULL), SW_MISUSE);
	wrong.kind = 0;
	assert_int_equal(sw_plan_ask(plan, &wrong, NULL), SW_MISUSE);
	wrong.kind = SW_SOLVER_KINDS;
	assert_int_equal(sw_plan_ask(plan, &wrong, NULL), SW_MISUSE);
	wrong = question;
	wrong.limit = 0;
	assert_int_equal(sw_plan_ask(plan, &wrong, NULL), SW_MISUSE);
	wrong = question;
	wrong.size = BYTES + 1;
	assert_int_equal(sw_plan_ask(plan, &wrong, NULL), SW_MISUSE);
	wrong.size = SIZE_MAX;
	assert_int_equal(sw_plan_ask(plan, &wrong, NULL), SW_MISUSE);
	wrong = question;
	wrong.bytes = NULL;
	assert_int_equal(sw_plan_ask(plan, &wrong, NULL), SW_MISUSE);
}

static void ask_in_vain(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_ask(plan, &question, NULL), SW_MISUSE);
}

/* Aim: what is no question (no kind, no limit, no bytes, too many of them, a policy that hears or
 * asks nothing) is misuse and opens none. */
static void test_misuse(void **state)
{
	(void)state;
	static const struct sw_policy *const policies[] = {&curious, &deaf, &silent};
	for (size_t p = 0; p < 3; p++) {
		struct rig rig;
		struct sw_engine_question asked;
		open_with(&rig, policies[p]);
		run_script(&rig, 1, p == 0 ? ask_wrongly : ask_in_vain);
		assert_false(sw_engine_next_question(rig.engine, 0, &asked));
		assert_int_equal(rig_commands(&rig), 0);
		rig_close(&rig);
	}
}

static void ask_many(struct sw_plan *plan)
{
	static char bytes[BYTES];
	const struct sw_question largest = {.kind = SW_SOLVE_MATCHING, .limit = UINT32_MAX, .bytes = bytes, .size = BYTES};
	for (uint32_t q = 0; q < SW_QUESTIONS_MAX; q++) {
		memset(bytes, (int)('a' + q), BYTES);
		assert_int_equal(sw_plan_ask(plan, &largest, NULL), SW_YES);
	}
	assert_int_equal(sw_plan_ask(plan, &largest, NULL), SW_NO_ROOM);
}

/* Aim: so many may be open and no more; an answer in the middle makes room for one, and the others
 * keep their bytes. */
static void test_bound(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_question asked;
	open_with(&rig, &curious);
	run_script(&rig, 1, ask_many);
	assert_true(sw_engine_next_question(rig.engine, 3, &asked));
	reply_with(&rig, 2, &asked, SW_SOLVED, NULL, 0);
	assert_int_equal(heard.number, 4);
	run_script(&rig, 3, ask_once);
	assert_int_equal(number, SW_QUESTIONS_MAX + 1);
	uint64_t last = 0;
	for (uint32_t q = 0; q < SW_QUESTIONS_MAX; q++) {
		assert_true(sw_engine_next_question(rig.engine, last, &asked));
		last = asked.number;
		char first = asked.number > SW_QUESTIONS_MAX ? 'w' : (char)('a' + asked.number - 1);
		assert_int_equal(*(const char *)asked.asked.bytes, first);
	}
	assert_false(sw_engine_next_question(rig.engine, last, &asked));
	rig_close(&rig);
}

/* Aim: replies to no open question (another number, another fingerprint, a second one) and such
 * that make no sense (a status that is not known, too large, bytes where there are none) change
 * nothing, and the question stays open. */
static void test_dropped(void **state)
{
	(void)state;
	static char large[SW_SOLUTION_BYTES_MAX + 1];
	struct rig rig;
	struct sw_engine_question asked, wrong;
	struct sw_err err = {0};
	open_with(&rig, &curious);
	run_script(&rig, 1, ask_once);
	assert_true(sw_engine_next_question(rig.engine, 0, &asked));
	wrong = asked;
	wrong.number++;
	reply_with(&rig, 2, &wrong, SW_SOLVED, "x", 1);
	wrong = asked;
	wrong.print ^= 1;
	reply_with(&rig, 2, &wrong, SW_SOLVED, "x", 1);
	reply_with(&rig, 2, &asked, SW_SOLVE_FAILED + 1, "x", 1);
	reply_with(&rig, 2, &asked, SW_SOLVED, large, sizeof large);
	reply_with(&rig, 2, &asked, SW_SOLVED, NULL, 1);
	reply_with(&rig, 2, &asked, SW_SOLVE_FAILED, "x", 1);
	assert_int_equal(answers, 0);
	reply_with(&rig, 3, &asked, SW_SOLVE_FAILED, NULL, 0);
	reply_with(&rig, 4, &asked, SW_SOLVED, "x", 1);
	assert_int_equal(answers, 1);
	assert_int_equal(heard.status, SW_SOLVE_FAILED);
	const struct sw_event nothing = {.kind = SW_EV_ANSWER};
	assert_int_equal(sw_engine_step(rig.engine, rig.now, &nothing, 1, &rig.step, &err), SW_EINPUT);
	rig_close(&rig);
}

/* Aim: a policy that waits for an answer, and would start nothing before it comes, is not thrown
 * out for that; one that waits for nothing is. */
static void test_waits(void **state)
{
	(void)state;
	for (int asks = 0; asks < 2; asks++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 100);
		script = asks ? ask_once : NULL;
		rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &curious, .fallback = &sw_policy_fifo}, NULL);
		rig_submit(&rig, 1, &spec);
		assert_string_equal(sw_engine_policy(rig.engine), asks ? "curious" : "fifo");
		rig_close(&rig);
	}
}

/* Aim: another policy in charge ends what is open; late answers are dropped, and numbers go on. */
static void test_other_policy(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_question asked, none;
	struct sw_err err = {0};
	open_with(&rig, &curious);
	run_script(&rig, 1, ask_once);
	assert_true(sw_engine_next_question(rig.engine, 0, &asked));
	rig_must(sw_engine_set_policy(rig.engine, &curious, NULL, &err), &err);
	assert_false(sw_engine_next_question(rig.engine, 0, &none));
	reply_with(&rig, 2, &asked, SW_SOLVED, "late", 4);
	assert_int_equal(answers, 0);
	run_script(&rig, 3, ask_once);
	assert_int_equal(number, asked.number + 1);
	rig_close(&rig);
}

static struct sw_engine *save_and_load(const struct rig *rig, const struct sw_policy *policy, bool *ret_adopted)
{
	const struct sw_engine_config config = {
		.policy = policy, .placement = &sw_placement_count, .misuse_limit = 1000, .params = rig->params};
	struct sw_pack pack = {0};
	struct sw_engine *loaded = NULL;
	struct sw_err err = {0};
	sw_engine_save(rig->engine, &pack);
	rig_must(sw_engine_load(&config, pack.bytes, pack.size, &loaded, ret_adopted, &err), &err);
	sw_pack_release(&pack);
	return loaded;
}

/* Aim: open questions are saved and loaded with their bytes, and the answer then does the same as
 * it would have; where another policy is loaded, they are gone. */
static void test_saved(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_question asked, again;
	bool adopted = true;
	open_with(&rig, &curious);
	run_script(&rig, 1, ask_many);
	assert_true(sw_engine_next_question(rig.engine, 0, &asked));
	reply_with(&rig, 2, &asked, SW_SOLVED, "one", 3); /* so that slots and places differ */
	run_script(&rig, 3, ask_once);
	struct sw_engine *other = save_and_load(&rig, &deaf, &adopted);
	assert_true(adopted);
	assert_false(sw_engine_next_question(other, 0, &again));
	sw_engine_free(other);
	struct sw_engine *loaded = save_and_load(&rig, &curious, &adopted);
	assert_false(adopted);
	uint64_t last = 0;
	for (uint32_t q = 0; q < SW_QUESTIONS_MAX; q++) {
		assert_true(sw_engine_next_question(rig.engine, last, &asked));
		assert_true(sw_engine_next_question(loaded, last, &again));
		assert_true(asked.number == again.number && asked.print == again.print && asked.asked.limit == again.asked.limit);
		assert_int_equal(asked.asked.size, again.asked.size);
		assert_memory_equal(asked.asked.bytes, again.asked.bytes, asked.asked.size);
		last = asked.number;
	}
	struct rig second = {.engine = loaded};
	reply_with(&second, 4, &again, SW_SOLVED, "two", 3);
	assert_int_equal(heard.tag, 99);
	reply_with(&rig, 4, &asked, SW_SOLVED, "two", 3);
	assert_true(sw_engine_log_hash(rig.engine) == sw_engine_log_hash(loaded));
	sw_engine_free(loaded);
	rig_close(&rig);
}

static uint64_t hash_after(const char *bytes, uint8_t status)
{
	struct rig rig;
	struct sw_engine_question asked;
	open_with(&rig, &curious);
	run_script(&rig, 1, ask_once);
	assert_true(sw_engine_next_question(rig.engine, 0, &asked));
	reply_with(&rig, 2, &asked, status, bytes, 1);
	uint64_t hash = sw_engine_log_hash(rig.engine);
	rig_close(&rig);
	return hash;
}

/* Aim: the fingerprint of a history covers what was answered. */
static void test_hash(void **state)
{
	(void)state;
	assert_true(hash_after("a", SW_SOLVED) == hash_after("a", SW_SOLVED));
	assert_true(hash_after("a", SW_SOLVED) != hash_after("b", SW_SOLVED));
	assert_true(hash_after("a", SW_SOLVED) != hash_after("a", SW_SOLVED_TO_LIMIT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_misuse), cmocka_unit_test(test_bound),
		cmocka_unit_test(test_dropped),	       cmocka_unit_test(test_waits),  cmocka_unit_test(test_other_policy),
		cmocka_unit_test(test_saved),	       cmocka_unit_test(test_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
