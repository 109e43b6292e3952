/* Problems that a policy may have solved outside a decision, and what comes back: see
 * sw_plan_ask() in policy.h. Plain values in fixed layouts, the lowest byte first, so that a
 * question and its answer are the same bytes on every machine.
 *
 * A solver is a function of the question alone. Its limit is on iterations and not on time, so
 * the same question has the same answer everywhere. What it says is a proposal: the plan checks
 * every wish that a policy makes of it.
 */
#ifndef SHAREWELL_SOLVE_H
#define SHAREWELL_SOLVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_QUESTION_BYTES_MAX (UINT32_C(1) << 20)
#define SW_SOLUTION_BYTES_MAX (UINT32_C(256) << 10)

enum sw_solver_kind {
	SW_SOLVE_MATCHING = 1, /* struct sw_matching */
	SW_SOLVER_KINDS,       /* one above the last */
};

struct sw_question {
	uint32_t kind;	/* enum sw_solver_kind */
	uint32_t limit; /* iterations; 1 at least. What one is, each kind says. */
	const void *bytes;
	size_t size;
	uint64_t tag; /* the policy's own: the answer brings it back */
};

enum sw_solved {
	SW_SOLVED = 0,	     /* the best there is */
	SW_SOLVED_TO_LIMIT,  /* the best that was found in so many iterations */
	SW_SOLVE_NO_PROBLEM, /* the bytes are not a problem of this kind; without bytes */
	SW_SOLVE_FAILED,     /* the solver's process ended before its time; without bytes */
};

struct sw_solution {
	uint64_t number; /* of the question */
	uint64_t tag;
	uint32_t kind;
	uint8_t status;	   /* enum sw_solved */
	const void *bytes; /* valid while it is heard */
	size_t size;
};

/* ---- SW_SOLVE_MATCHING: pairs of the greatest total weight. A vertex stays alone where that is
 * better for the sum.
 *
 * Question: the head, then `edges` edges. Vertices have numbers from 0. No edge joins a vertex
 * with itself, and no two join the same vertices. An edge of weight 0 counts for none.
 *
 * An iteration looks at all edges of one vertex, or changes all prices once. At the limit the
 * answer is the heaviest matching of so many pairs as were found by then. */
#define SW_MATCHING_VERTICES_MAX 512u

struct sw_matching {
	uint32_t vertices;
	uint32_t edges;
};
struct sw_matching_edge {
	uint16_t a, b;
	uint32_t weight;
};
/* Answer: the head, then `pairs` pairs with a < b, by a. */
struct sw_matching_found {
	uint64_t weight; /* of all pairs */
	uint32_t pairs;
	uint32_t zero;
};
struct sw_matching_pair {
	uint16_t a, b;
};

#ifdef __cplusplus
}
#endif

#endif
