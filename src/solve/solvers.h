/* The solvers, each in a file of its own; for this folder alone. A new one is a kind and a layout
 * in <sharewell/solve.h>, a function here, and a row in solve.c. */
#ifndef SW_SOLVE_SOLVERS_H
#define SW_SOLVE_SOLVERS_H

#include "solve/solve.h"

/* As sw_solve(), for a question of its kind with a limit above 0 and a size within the bound. What
 * is not a problem of its kind it leaves as it is: *ret_outcome says so when it is called. */
typedef int sw_solver_fn(const struct sw_question *question, struct sw_pack *answer, struct sw_solve_outcome *ret_outcome);

/* As sw_solve_fits(), of a solver that says that it has an answer. */
typedef bool sw_solver_fits_fn(const struct sw_question *question, const void *bytes, size_t size);

sw_solver_fn sw_solve_matching;
sw_solver_fits_fn sw_solve_matching_fits;

#endif
