/* Answers to the questions of policies: <sharewell/solve.h> has the problems and their layouts.
 *
 * Pure: an answer depends on the question alone. Memory is bounded by the bounds of a question,
 * and everything in it is checked before it is used.
 */
#ifndef SW_SOLVE_SOLVE_H
#define SW_SOLVE_SOLVE_H

#include <sharewell/solve.h>

#include "base/pack.h"

struct sw_solve_outcome {
	uint8_t status;	     /* enum sw_solved; never SW_SOLVE_FAILED */
	uint32_t iterations; /* up to the limit */
};

/* Writes the answer at the end of `answer`, where the status says that there is one: at most
 * SW_SOLUTION_BYTES_MAX. SW_ENOMEM. */
int sw_solve(const struct sw_question *question, struct sw_pack *answer, struct sw_solve_outcome *ret_outcome);

/* Whether these bytes have the layout of an answer to this question, and name nothing that it does
 * not have. A policy may then read them without care. It is not whether they are the best. */
bool sw_solve_fits(const struct sw_question *question, uint8_t status, const void *bytes, size_t size);

#endif
