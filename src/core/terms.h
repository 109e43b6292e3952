/* The terms of a world: everything that a driver tells the engine besides events, its policy and
 * its cluster. A world file says them, and the simulator and the live controller hand on the same
 * value. So a decision that was simulated is the one that is made.
 *
 * Invariants of terms that an engine takes: no time is negative, and none is
 * beyond SW_TERMS_TIME_MAX.
 */
#ifndef SW_CORE_TERMS_H
#define SW_CORE_TERMS_H

#include <sharewell/policy.h>

#include "base/error.h"

#define SW_TERMS_TIME_MAX (INT64_C(3650) * 86400 * 1000000000) /* ten years */

/* Whether and how a running job comes to other GPUs. */
enum sw_moves {
	SW_MOVES_FREELY = 0, /* any decision may move or resize it */
	/* Only where the policy itself asks for it. Within its node a run that can goes on
	 * (move.c); else it is stopped, and the next one started there. */
	SW_MOVES_RESTART,
	SW_MOVES_NEVER,
};

/* What tells how much neighbours on a GPU slow a job down. */
enum sw_sharing {
	SW_SHARING_NONE = 0,
	SW_SHARING_BY_PROFILES,
	/* of an iteration, as the trace gives them; guaranteed jobs do not slow down;
	 * memory is always enough */
	SW_SHARING_BY_STAGES,
	SW_SHARING_BY_SLICES, /* of time: jobs that have work for the GPU take turns (no MPS); by how busy the profiles keep it */
};

struct sw_terms {
	sw_ns quantum_ns; /* a running job is not preempted before it ran this long */
	/* What a stop and a start cost a job, roughly; 0: nothing. A job that was preempted often
	 * is protected for longer. Every SW_PREEMPTIONS_PER_STEP preemptions add this time,
	 * SW_PREEMPTION_STEPS_MAX times at most; the quantum is the least. */
	sw_ns preemption_cost_ns;
	/* preempted jobs can be resumed anywhere; otherwise they start anew, or stand where they
	 * ran if their stop rule says so */
	bool keeps_state;
	bool replace_is_free; /* every decision may lay out all running jobs anew */
	bool nodes_switch;    /* the policy may switch nodes off and on */
	bool may_grow;	      /* nodes may join: a job that is too large for those that are here waits instead of being refused */
	bool tells_speed;     /* the world says at once how fast a job runs; one of which it says nothing runs at full speed */
	/* Among equals, keep the places of one list that is sorted stably at every decision. So
	 * also where running jobs do not all advance at full speed. Costs a pass over all jobs at
	 * every decision; without it, only ties between jobs of different speed may fall
	 * differently. */
	bool exact_ties;
	uint8_t moves; /* enum sw_moves */
	/* enum sw_stop_rule of jobs whose owner said nothing. */
	uint8_t guaranteed_stop, opportunistic_stop;
	/* These are for predictor, scaler and splitter, which the driver makes of them. */
	uint8_t sharing; /* enum sw_sharing */
	bool placement;	 /* jobs slow down with the distance between their GPUs */
	/* slowdown of a guaranteed job beside opportunistic ones, which get the rest; 0: no gate,
	 * all neighbours are alike */
	int64_t gate_milli;
	int64_t split_milli; /* step time of a job that is cut in two over GPUs of a node, of that whole; 0: nothing is split */
};

/* One row for each member: from this come the JSON of a record, its fingerprint, what people read,
 * and the comparison of two values. */
enum sw_term_kind {
	SW_TERM_TIME,
	SW_TERM_FLAG,
	SW_TERM_CHOICE,
	SW_TERM_MILLI,
};
struct sw_term_row {
	const char *name;
	size_t offset;
	enum sw_term_kind kind;
	const char *const *choices; /* of a choice: its words by number, NULL at the end */
	const char *about;	    /* a few words for people */
};
extern const struct sw_term_row sw_term_rows[];
extern const size_t sw_term_count;

extern const char *const sw_moves_words[];
extern const char *const sw_sharing_words[];
extern const char *const sw_stop_rule_words[];

int64_t sw_term_get(const struct sw_terms *terms, const struct sw_term_row *row);
/* SW_EINPUT, and the terms are as they were: the number is none that this row takes. */
int sw_term_set(struct sw_terms *terms, const struct sw_term_row *row, int64_t value);

/* The first row in which they differ; NULL: they are equal. */
const struct sw_term_row *sw_terms_differ(const struct sw_terms *a, const struct sw_terms *b);
int sw_terms_check(const struct sw_terms *terms, struct sw_err *err);

/* Those that held in clusters before worlds were in the journal: no quantum, nothing
 * kept, moves by restart. */
extern const struct sw_terms sw_terms_unsaid;

#endif
