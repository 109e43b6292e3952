#include "solve/solve.h"

#include <assert.h>

#include "solve/solvers.h"

/* Of each kind. */
static sw_solver_fn *const solvers[SW_SOLVER_KINDS] = {
	[SW_SOLVE_MATCHING] = sw_solve_matching,
};

int sw_solve(const struct sw_question *question, struct sw_pack *answer, struct sw_solve_outcome *ret_outcome)
{
	*ret_outcome = (struct sw_solve_outcome){.status = SW_SOLVE_NO_PROBLEM};
	if (question->kind >= SW_SOLVER_KINDS || solvers[question->kind] == NULL || question->limit == 0 ||
	    question->size > SW_QUESTION_BYTES_MAX)
		return 0;
	size_t before = answer->size;
	int r = solvers[question->kind](question, answer, ret_outcome);
	if (r == 0 && answer->failed != 0)
		r = answer->failed;
	assert(r < 0 || (answer->size - before <= SW_SOLUTION_BYTES_MAX && ret_outcome->iterations <= question->limit));
	return r;
}
