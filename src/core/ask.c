/* Questions of the policy in charge: what is open, and what comes back.
 *
 * The driver looks up what is open (sw_engine_next_question()), has it solved, and brings the
 * reply as an event. A reply names its question by number and fingerprint: numbers of a policy
 * that took over may stand for other questions.
 *
 * Invariants:
 *  1. what is open is in ascending order of its numbers, and no two share a slot;
 *  2. a reply that is not to an open question, or makes no sense, changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

static unsigned char *bytes_of(const struct sw_engine *engine, const struct sw_core_question *question)
{
	return engine->asks.bytes + question->slot * engine->policy->question_size;
}

/* In 63 bits: records have it as a number. */
static uint64_t print_of(const struct sw_core_question *question, const void *bytes)
{
	uint64_t hash = sw_hash_u64(sw_hash_u64(SW_HASH_START, question->kind), question->limit);
	return sw_hash_bytes(hash, bytes, question->size) >> 1;
}

static uint32_t free_slot(const struct sw_ask_book *book)
{
	uint32_t used = 0;
	for (uint32_t q = 0; q < book->count; q++)
		used |= UINT32_C(1) << book->open[q].slot;
	return (uint32_t)__builtin_ctz(~used);
}

int sw_ask_begin(struct sw_engine *engine, struct sw_err *err)
{
	struct sw_ask_book *book = &engine->asks;
	size_t each = engine->policy->question_size;
	free(book->bytes);
	book->bytes = NULL;
	book->count = 0;
	if (each > SW_QUESTION_BYTES_MAX)
		return sw_err_set(err, SW_EINPUT, "policy '%s' asks questions of %zu bytes, the most is %u", engine->policy->name, each,
				  SW_QUESTION_BYTES_MAX);
	if (each > 0)
		book->bytes = malloc(SW_QUESTIONS_MAX * each);
	return each == 0 || book->bytes != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory for policy '%s'", engine->policy->name);
}

static bool is_question(const struct sw_engine *engine, const struct sw_question *question)
{
	return question != NULL && question->kind > 0 && question->kind < SW_SOLVER_KINDS && question->limit > 0 &&
	       engine->asks.bytes != NULL && question->size <= engine->policy->question_size &&
	       (question->bytes != NULL || question->size == 0) && engine->policy->answered != NULL;
}

enum sw_answer sw_plan_ask(struct sw_plan *plan, const struct sw_question *question, uint64_t *ret_number)
{
	struct sw_engine *engine = plan->engine;
	struct sw_ask_book *book = &engine->asks;
	if (!is_question(engine, question))
		return sw_plan_misuse(plan);
	if (book->count == SW_QUESTIONS_MAX)
		return SW_NO_ROOM;
	struct sw_core_question own = {.number = book->last + 1,
				       .tag = question->tag,
				       .kind = question->kind,
				       .limit = question->limit,
				       .size = (uint32_t)question->size,
				       .slot = free_slot(book)};
	if (own.size > 0)
		memcpy(bytes_of(engine, &own), question->bytes, own.size);
	own.print = print_of(&own, bytes_of(engine, &own));
	book->open[book->count++] = own;
	book->last = own.number;
	book->asked++;
	sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_ASK, .job = UINT32_MAX, .parts = SW_NO_PART});
	engine->log_hash = sw_hash_u64(engine->log_hash, own.print);
	engine->command_hash = sw_hash_u64(engine->command_hash, own.print);
	if (ret_number != NULL)
		*ret_number = own.number;
	return SW_YES;
}

static bool is_reply(const struct sw_reply *reply)
{
	bool has_bytes = reply->status == SW_SOLVED || reply->status == SW_SOLVED_TO_LIMIT;
	return reply->status <= SW_SOLVE_FAILED && reply->size <= SW_SOLUTION_BYTES_MAX && (reply->bytes != NULL || reply->size == 0) &&
	       (has_bytes || reply->size == 0);
}

void sw_ask_hear(struct sw_engine *engine, const struct sw_reply *reply)
{
	struct sw_ask_book *book = &engine->asks;
	uint32_t q = 0;
	book->heard++;
	while (q < book->count && book->open[q].number != reply->number)
		q++;
	if (q == book->count || book->open[q].print != reply->print || !is_reply(reply))
		return;
	const struct sw_core_question question = book->open[q];
	memmove(&book->open[q], &book->open[q + 1], (--book->count - q) * sizeof book->open[0]);
	sw_tell_answered(engine, &(const struct sw_solution){.number = question.number,
							     .tag = question.tag,
							     .kind = question.kind,
							     .status = reply->status,
							     .bytes = reply->bytes,
							     .size = reply->size});
}

bool sw_engine_next_question(const struct sw_engine *engine, uint64_t after, struct sw_engine_question *ret_question)
{
	const struct sw_ask_book *book = &engine->asks;
	uint32_t q = 0;
	while (q < book->count && book->open[q].number <= after)
		q++;
	if (q == book->count)
		return false;
	const struct sw_core_question *question = &book->open[q];
	*ret_question = (struct sw_engine_question){.number = question->number,
						    .print = question->print,
						    .asked = {.kind = question->kind,
							      .limit = question->limit,
							      .bytes = bytes_of(engine, question),
							      .size = question->size,
							      .tag = question->tag}};
	return true;
}

/* ---- soundness, and bytes */

static bool is_sound(const struct sw_engine *engine, uint32_t q)
{
	const struct sw_ask_book *book = &engine->asks;
	const struct sw_core_question *question = &book->open[q];
	for (uint32_t other = 0; other < q; other++)
		if (book->open[other].slot == question->slot)
			return false;
	return question->number > (q > 0 ? book->open[q - 1].number : 0) && question->number <= book->last && question->kind > 0 &&
	       question->kind < SW_SOLVER_KINDS && question->limit > 0 && question->slot < SW_QUESTIONS_MAX &&
	       engine->policy->answered != NULL && question->size <= engine->policy->question_size &&
	       question->print == print_of(question, bytes_of(engine, question));
}

const struct sw_core_question *sw_ask_find_unsound(const struct sw_engine *engine)
{
	for (uint32_t q = 0; q < engine->asks.count; q++)
		if (!is_sound(engine, q))
			return &engine->asks.open[q];
	return NULL;
}

void sw_ask_pack(struct sw_pack *pack, struct sw_engine *engine)
{
	struct sw_ask_book *book = &engine->asks;
	sw_pack_u64(pack, &book->last);
	sw_pack_u32(pack, &book->count);
	if (pack->reads && book->count > (book->bytes != NULL ? SW_QUESTIONS_MAX : 0)) {
		book->count = 0;
		sw_pack_fail(pack);
	}
	for (uint32_t q = 0; q < book->count; q++) {
		struct sw_core_question *question = &book->open[q];
		sw_pack_u64(pack, &question->number);
		sw_pack_word(pack, &question->tag);
		sw_pack_u32(pack, &question->kind);
		sw_pack_u32(pack, &question->limit);
		sw_pack_u32(pack, &question->size);
		if (pack->reads) {
			question->slot = q;
			if (pack->failed != 0 || question->size > engine->policy->question_size) {
				book->count = 0;
				sw_pack_fail(pack);
				return;
			}
		}
		sw_pack_raw(pack, bytes_of(engine, question), question->size);
		if (pack->reads)
			question->print = print_of(question, bytes_of(engine, question));
	}
}
