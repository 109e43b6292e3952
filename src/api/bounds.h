/* The bounds of what a request for a job may say, field by field, and which field of a run's order (sync.h) carries it.
 *
 * One table for both: a request is checked by it (job.c), and the bounds of an order are made from the same numbers (below), so whatever a request may
 * say, an order can carry. A test goes over the table, makes an order at each bound, and tries one beyond.
 */
#ifndef SW_API_BOUNDS_H
#define SW_API_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "api/job.h"

/* ---- an order: what a request may say, and what is added to it on the way */

/* Variables that are added to a job's environment: its place in an array, twice, and that it is a pre-run. */
#define SW_SPEC_ENV_ADDED 3u
#define SW_SPEC_ENV_MAX (SW_JOB_ENV_MAX + SW_SPEC_ENV_ADDED)
/* What is asked for each GPU is given for all that the run has on a node. */
#define SW_SPEC_GPUS_MAX 64u
#define SW_SPEC_CPUS_MAX (SW_JOB_CPUS_MAX * SW_SPEC_GPUS_MAX)
/* Parts of a millisecond count as a whole one: nothing that was asked for becomes nothing. */
#define SW_SPEC_DURATION_MAX_MS ((SW_JOB_DURATION_MAX_NS + INT64_C(999999)) / INT64_C(1000000))
#define SW_SPEC_SIGNAL_MAX SW_JOB_SIGNAL_MAX

/* ---- a request */

enum sw_bound_kind {
	SW_BOUND_LINE,	/* char *, without control characters; NULL is allowed. `most` bytes */
	SW_BOUND_TEXT,	/* char *, likewise, with any characters */
	SW_BOUND_TEXTS, /* char **, as many as the size_t at `count_offset` says, at most `count`, of `most` bytes each */
	SW_BOUND_U32,
	SW_BOUND_U64,
	SW_BOUND_I64,
	SW_BOUND_WORD, /* an enum */
};

struct sw_bound {
	const char *field; /* of the request */
	enum sw_bound_kind kind;
	size_t offset; /* in struct sw_job_request */
	uint64_t least, most;
	size_t count, count_offset;
	const char *order; /* the field of the order that carries it; NULL: no order does */
};
extern const struct sw_bound sw_job_bounds[];
extern const size_t sw_job_bound_count;

#endif
