/* What follows from a failure: whether a job is tried again, where, and with what. A pure function,
 * so that the controller, its tests and models of a cluster decide alike.
 *
 * 1. A class is never tried again beyond its budget, and a job never more often than it may.
 * 2. The same failure on two nodes is the job's own: it is not tried again.
 * 3. A class that has ended another job of this user with this command is not tried again either.
 * 4. Failures that cost nothing (the node was lost, another job needed the place) keep to 1 by
 *    their class's budget alone.
 */
#ifndef SW_FAILURE_DECIDE_H
#define SW_FAILURE_DECIDE_H

#include "failure/failure.h"

/* For jobs that do not say: failures of framework and infrastructure only. */
#define SW_FAILURE_RETRIES 3u

struct sw_failure_case {
	enum sw_failure_layer layer;
	enum sw_failure_action action;
	uint32_t budget;
	bool free;
	uint32_t tried;		   /* again before, for this class */
	uint32_t retries_left;	   /* of the job */
	bool asked;		   /* the user said how often */
	bool same_elsewhere;	   /* the very same failure was seen on another node */
	bool ended_others;	   /* other jobs of the same user and command */
	bool can_have_more_memory; /* the job named a figure below a whole GPU */
};

enum sw_failure_verdict {
	SW_VERDICT_STOP = 0,
	SW_VERDICT_RETRY,
	SW_VERDICT_RETRY_FREE, /* costs the job none of its retries */
};

struct sw_failure_decision {
	enum sw_failure_verdict verdict;
	bool elsewhere;
	bool more_memory;
	const char *why; /* in words, of a stop; "" */
};

struct sw_failure_decision sw_failure_decide(const struct sw_failure_case *failure);

/* Before try `n` again, counted from 0: base * 2^n, with a bound. */
int64_t sw_failure_backoff_ns(int64_t base_ns, uint32_t n);

/* The same for failures that differ in numbers, addresses and times only. */
uint64_t sw_failure_signature(const char *name, const char *line);

#endif
