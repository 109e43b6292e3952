#include "sim/questions.h"

#include <stdlib.h>
#include <string.h>

#include "solve/solve.h"

struct sw_sim_question {
	sw_ns at;
	unsigned char *bytes; /* owned */
	struct sw_reply reply;
};

static void drop_first(struct sw_sim_questions *questions, size_t count)
{
	for (size_t q = 0; q < count; q++)
		free(questions->coming.items[q].bytes);
	questions->coming.count -= count;
	if (count > 0)
		memmove(questions->coming.items, questions->coming.items + count,
			questions->coming.count * sizeof *questions->coming.items);
}

void sw_sim_questions_release(struct sw_sim_questions *questions)
{
	drop_first(questions, questions->coming.count);
	sw_vec_free(&questions->coming);
}

/* Behind all that come as early. */
static int add(struct sw_sim_questions *questions, const struct sw_sim_question *question)
{
	struct sw_sim_question *slot = sw_vec_push(&questions->coming);
	if (slot == NULL)
		return SW_ENOMEM;
	for (; slot > questions->coming.items && slot[-1].at > question->at; slot--)
		*slot = slot[-1];
	*slot = *question;
	return 0;
}

static int solve(struct sw_sim_questions *questions, const struct sw_engine_question *asked, sw_ns now)
{
	struct sw_pack answer = {0};
	struct sw_solve_outcome outcome;
	size_t size = 0;
	int r = sw_solve(&asked->asked, &answer, &outcome);
	/* Some have no bytes. */
	unsigned char *bytes = r == 0 && answer.size > 0 ? sw_pack_take(&answer, &size) : NULL;
	const struct sw_sim_question question = {
		.at = now + sw_world_solve_ns(questions->world, outcome.iterations),
		.bytes = bytes,
		.reply = {.number = asked->number, .print = asked->print, .status = outcome.status, .bytes = bytes, .size = size}};
	if (r == 0)
		r = add(questions, &question);
	sw_pack_release(&answer);
	if (r < 0)
		free(bytes);
	return r;
}

int sw_sim_questions_solve(struct sw_sim_questions *questions, const struct sw_engine *engine, sw_ns now)
{
	struct sw_engine_question asked;
	int r = 0;
	drop_first(questions, questions->told);
	questions->told = 0;
	while (r == 0 && sw_engine_next_question(engine, questions->asked, &asked)) {
		questions->asked = asked.number;
		r = solve(questions, &asked, now);
	}
	return r;
}

sw_ns sw_sim_questions_next(const struct sw_sim_questions *questions)
{
	return questions->coming.count > 0 ? questions->coming.items[0].at : SW_TIME_NEVER;
}

int sw_sim_questions_collect(struct sw_sim_questions *questions, sw_ns now, sw_events *events)
{
	for (; questions->told < questions->coming.count && questions->coming.items[questions->told].at <= now; questions->told++) {
		struct sw_event *event = sw_vec_push(events);
		if (event == NULL)
			return SW_ENOMEM;
		*event = (struct sw_event){.kind = SW_EV_ANSWER, .reply = &questions->coming.items[questions->told].reply};
	}
	return 0;
}
