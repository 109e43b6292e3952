#include "solve/solve.h"

#include <assert.h>

#include "solve/solvers.h"

/* Of each kind. */
static const struct solver {
	sw_solver_fn *solve;
	sw_solver_fits_fn *fits;
} solvers[SW_SOLVER_KINDS] = {
	[SW_SOLVE_MATCHING] = {sw_solve_matching, sw_solve_matching_fits},
};

static bool is_known(const struct sw_question *question)
{
	return question->kind < SW_SOLVER_KINDS && solvers[question->kind].solve != NULL;
}

int sw_solve(const struct sw_question *question, struct sw_pack *answer, struct sw_solve_outcome *ret_outcome)
{
	*ret_outcome = (struct sw_solve_outcome){.status = SW_SOLVE_NO_PROBLEM};
	if (!is_known(question) || question->limit == 0 || question->size > SW_QUESTION_BYTES_MAX)
		return 0;
	size_t before = answer->size;
	int r = solvers[question->kind].solve(question, answer, ret_outcome);
	if (r == 0 && answer->failed != 0)
		r = answer->failed;
	assert(r < 0 || (answer->size - before <= SW_SOLUTION_BYTES_MAX && ret_outcome->iterations <= question->limit));
	return r;
}

bool sw_solve_fits(const struct sw_question *question, uint8_t status, const void *bytes, size_t size)
{
	if (status != SW_SOLVED && status != SW_SOLVED_TO_LIMIT)
		return status <= SW_SOLVE_FAILED && size == 0;
	return is_known(question) && size <= SW_SOLUTION_BYTES_MAX && solvers[question->kind].fits(question, bytes, size);
}
