/* How long jobs run: by what their owners said, else by what earlier jobs did.
 *
 * Invariants:
 *  1. a length names its basis, or is SW_TIME_NEVER: not known;
 *  2. of earlier jobs only those count that ran longer than this one has already.
 */
#ifndef SW_BRAIN_LENGTHS_H
#define SW_BRAIN_LENGTHS_H

#include <sharewell/policy.h>

#include "base/vec.h"

struct sw_brain;

/* What a length rests on, the best first. */
enum sw_basis {
	SW_BASIS_EXPECTED = 0, /* its owner said so */
	SW_BASIS_LIMIT,	       /* its time limit: it may well end sooner */
	SW_BASIS_ALIKE,	       /* the median of earlier jobs of the same user and name */
	SW_BASIS_ALL,	       /* the median of all earlier jobs */
	SW_BASIS_AGAIN,	       /* it runs longer than any of them did: as long again as until now */
	SW_BASES,
};

/* Of a job that has ended well, or at its time limit. */
struct sw_length {
	uint64_t job;
	uint64_t kind; /* equal for jobs of the same user and name */
	sw_ns ran_ns;
};
struct sw_lengths {
	SW_VEC(struct sw_length) alike; /* by kind and length */
	SW_VEC(sw_ns) all;
};

uint64_t sw_length_kind(uint32_t uid, const char *name);
/* 0 or SW_ENOMEM. A job that is noted twice counts once. */
int sw_lengths_note(struct sw_lengths *lengths, const struct sw_length *length);
/* After the last note, before the first question. 0 or SW_ENOMEM. */
int sw_lengths_sort(struct sw_lengths *lengths);
void sw_lengths_release(struct sw_lengths *lengths);

struct sw_length_question {
	uint64_t kind;
	sw_ns expected_ns, limit_ns; /* 0: its owner did not say */
	sw_ns ran_ns;
};
/* How long the job will still run. *ret_basis is not written where that is SW_TIME_NEVER. */
sw_ns sw_lengths_left(const struct sw_lengths *lengths, const struct sw_length_question *question, enum sw_basis *ret_basis);

/* ---- of a cluster */

/* The brain knows the jobs that ended lately. Of those that have left it keeps the lengths of the
 * last ones. They are volatile. After a start the driver tells them again, from its rows. */
#define SW_LENGTHS_KEPT 5000u
int sw_brain_recall_length(struct sw_brain *brain, const struct sw_length *length);
/* Of a job that is known, as people count; false: it says nothing about lengths. */
bool sw_brain_length(const struct sw_brain *brain, uint32_t job, struct sw_length *ret_length);
/* All that is known, sorted. 0 or SW_ENOMEM. */
int sw_brain_lengths(const struct sw_brain *brain, struct sw_lengths *ret_lengths);

#endif
