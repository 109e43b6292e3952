/* A policy that asks a solver which of the jobs that wait go together on a GPU, waits for the
 * answer, and places them so; without an answer each job starts by itself. For the tests of its
 * drivers. With `vertices`, the question has so many more vertices that no job stands for: it
 * takes the solver long. */
#ifndef SW_TESTS_UNIT_SOLVE_PAIRS_H
#define SW_TESTS_UNIT_SOLVE_PAIRS_H

#include <stdio.h>
#include <string.h>

#include <sharewell/policy.h>

#define PAIRS_JOBS 16u

struct pairs_state {
	uint32_t jobs[PAIRS_JOBS], count; /* that the question is about */
	struct sw_matching_pair pairs[PAIRS_JOBS / 2];
	uint32_t pair_count;
	bool waits, answered;
	uint8_t status; /* of the last answer */
	uint32_t questions, answers;
};

static const struct sw_param pairs_params[] = {{"vertices", SW_PARAM_INTEGER, "0", "more of them", 0, 490}};
static const char *const pairs_words[] = {"solved", "solved to the limit", "no problem", "failed"};

static void pairs_ask(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct pairs_state *state = sw_view_state(view);
	char *bytes = sw_plan_scratch(plan);
	struct sw_matching head = {0};
	size_t size = sizeof head;
	state->count = 0;
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL && state->count < PAIRS_JOBS;
	     job = sw_view_next_waiting(view, job))
		state->jobs[state->count++] = job->id.v;
	head.vertices = state->count + (uint32_t)sw_view_param(view, 0)->number;
	for (uint32_t a = 0; a < head.vertices; a++)
		for (uint32_t b = 0; b < a; b++) {
			uint32_t weight = a + b + 1 == state->count ? 9 : 1; /* the last goes with the first, and so on */
			if (a >= state->count)
				weight = 1000 + a * 7919 % 997 * (b * 104729 % 991) % 1009;
			const struct sw_matching_edge edge = {(uint16_t)a, (uint16_t)b, weight};
			if (a >= state->count && b < state->count)
				continue;
			memcpy(bytes + size, &edge, sizeof edge);
			size += sizeof edge;
			head.edges++;
		}
	memcpy(bytes, &head, sizeof head);
	const struct sw_question question = {
		.kind = SW_SOLVE_MATCHING, .limit = UINT32_MAX, .bytes = bytes, .size = size, .tag = ++state->questions};
	state->waits = sw_plan_ask(plan, &question, NULL) == SW_YES;
}

static void pairs_hear(struct sw_view *view, const struct sw_solution *solution)
{
	struct pairs_state *state = sw_view_state(view);
	struct sw_matching_found found = {0};
	const char *bytes = solution->bytes;
	if (!state->waits || solution->tag != state->questions)
		return;
	if (solution->size >= sizeof found)
		memcpy(&found, bytes, sizeof found);
	state->waits = false;
	state->answered = true;
	state->answers++;
	state->status = solution->status;
	state->pair_count = 0;
	for (uint32_t p = 0; p < found.pairs && state->pair_count < PAIRS_JOBS / 2; p++) {
		struct sw_matching_pair *pair = &state->pairs[state->pair_count];
		memcpy(pair, bytes + sizeof found + p * sizeof *pair, sizeof *pair);
		state->pair_count += pair->b < state->count;
	}
}

static void pairs_place(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct pairs_state *state = sw_view_state(view);
	for (uint32_t p = 0; p < state->pair_count; p++) {
		const struct sw_job *a = sw_view_job(view, (struct sw_job_id){state->jobs[state->pairs[p].a]});
		const struct sw_job *b = sw_view_job(view, (struct sw_job_id){state->jobs[state->pairs[p].b]});
		if (a != NULL && b != NULL && sw_job_is_waiting(a) && sw_job_is_waiting(b) && sw_plan_run(plan, a, NULL) == SW_YES)
			(void)sw_plan_run(plan, b, SW_WISH(.promise = SW_REST, .where = sw_beside(a)));
	}
	for (uint32_t j = 0; j < state->count; j++) {
		const struct sw_job *job = sw_view_job(view, (struct sw_job_id){state->jobs[j]});
		if (job != NULL && sw_job_is_waiting(job))
			(void)sw_plan_run(plan, job, NULL);
	}
	state->answered = false;
}

static sw_ns pairs_decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct pairs_state *state = sw_view_state(view);
	if (state->answered)
		pairs_place(plan);
	if (!state->waits && sw_view_waiting(view) > 0 && sw_view_gpus_free(view) > 0)
		pairs_ask(plan);
	return SW_TIME_NEVER;
}

static void pairs_explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	const struct pairs_state *state = sw_view_state(view);
	(void)job;
	snprintf(text, size, "%u questions, %u answers, the last %s", state->questions, state->answers, pairs_words[state->status]);
}

static const struct sw_policy pairs = {
	.abi = SW_POLICY_ABI,
	.name = "pairs",
	.about = "jobs that wait, two by two, as a solver says",
	.params = pairs_params,
	.param_count = 1,
	.state_size = sizeof(struct pairs_state),
	.scratch_size = SW_QUESTION_BYTES_MAX,
	.question_size = SW_QUESTION_BYTES_MAX,
	.answered = pairs_hear,
	.decide = pairs_decide,
	.explain = pairs_explain,
};

#endif
