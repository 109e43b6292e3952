/* What learn.c, learn_fit.c, learn_text.c and learn_save.c share. */
#ifndef SW_CONTENTION_LEARN_STATE_H
#define SW_CONTENTION_LEARN_STATE_H

#include "contention/learn.h"

#define SW_LEARN_LEAST_MILLI 500

/* Sets of one kind are learned together: a way of sharing, and under the gate either side of it. */
enum kind {
	KIND_SLICES,
	KIND_MPS,
	KIND_GUARANTEED,
	KIND_GIVES_WAY,
	KIND_COUNT,
};

/* A case in its one spelling: the job that is meant first, the others in the order of their names.
 * But the guaranteed job follows at once where it is another. */
struct sw_learn_set {
	enum kind kind;
	uint32_t count;
	char names[SW_LEARN_JOBS_MAX][SW_LEARN_NAME_MAX + 1];
};

struct sw_learn_observation {
	struct sw_learn_set set;
	uint32_t kept; /* of these, the oldest is at times % SW_LEARN_REPEATS_MAX once all are taken */
	uint32_t slow_milli[SW_LEARN_REPEATS_MAX];
	uint32_t samples[SW_LEARN_REPEATS_MAX];
	uint32_t times;	    /* ever measured */
	uint64_t last;	    /* when, in measurements of this learner */
	double believed;    /* ln(value / prediction), as far as it is believed of this set */
	double lesson;	    /* the same, as far as other sets learn from it */
	double from_others; /* the same as all other observations predict it */
};

#define SHARED_COLUMNS (3u + SW_USE_COUNT)
#define NAMED_MAX 64u /* models with columns of their own; of more, the last in order have none */
#define COLUMNS_MAX (SHARED_COLUMNS + 2 * NAMED_MAX)

/* The regression of one kind. */
struct sw_learn_fit {
	bool stale;
	uint32_t known; /* observations */
	uint32_t named;
	char names[NAMED_MAX][SW_LEARN_NAME_MAX + 1]; /* ascending */
	double coefficients[COLUMNS_MAX];
};

struct sw_learn {
	const struct sw_profiles *profiles;
	struct sw_predict_model model;
	uint64_t clock; /* counts measurements */
	uint32_t count;
	struct sw_learn_observation seen[SW_LEARN_SETS_MAX]; /* ascending by set */
	struct sw_learn_fit fits[KIND_COUNT];
	/* of the fit that is being made */
	double rows[SW_LEARN_SETS_MAX][COLUMNS_MAX];
	double matrix[COLUMNS_MAX][COLUMNS_MAX];
};

int sw_learn_compare(const struct sw_learn_set *a, const struct sw_learn_set *b);
/* Whether no model may be called so here. */
bool sw_learn_is_odd(const char *name);
enum sw_predict_way sw_learn_way(enum kind kind);
/* The set as sw_predict_set() wants it; returns where the job that is meant stands. */
size_t sw_learn_order(const struct sw_learn_set *set, const char *ret_names[SW_LEARN_JOBS_MAX]);
struct sw_prediction sw_learn_prior(const struct sw_learn *learn, const struct sw_learn_set *set);

/* The median of what was measured, and how much that is worth: every measurement up to 1, the more
 * the more steps it has. */
uint32_t sw_learn_median(const struct sw_learn_observation *seen);
double sw_learn_worth(const struct sw_learn_observation *seen);

void sw_learn_refit(struct sw_learn *learn, enum kind kind);
/* ln(slowdown / prediction) by the regression. */
double sw_learn_correction(const struct sw_learn *learn, const struct sw_learn_set *set, uint32_t prior_milli);

double sw_learn_exp(double value);

#endif
