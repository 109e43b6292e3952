/* Slowdowns learned from measurement, on top of what profiles predict (predict.h).
 *
 * Every measurement is "in this set of jobs, under this way of sharing, this one took so many times
 * as long as alone". It also says over how many steps. Measurements of the same job in the same set
 * are one observation; its value is the median of the latest SW_LEARN_REPEATS_MAX of them. The
 * logarithm of value / prediction is explained by a ridge regression (learn_fit.c). Its terms are
 * what sharing costs under this way, how far off the prediction's scale is, and each resource that
 * both sides use. Each model is a term, too, as the one that suffers and as a neighbour. So a pair
 * that was not measured profits from pairs with the same models. The further it is from any data,
 * the closer the answer is to the prediction.
 *
 * Invariants:
 *  1. Without an observation of this way of sharing the answer is
 *     sw_predict_set()'s, to the last digit.
 *  2. A set measured once moves the answer for it by no more than SW_LEARN_STRAY_MILLI of what all
 *     others say. Measured twice with outcomes as close as that, or three times, it is believed;
 *     what it says about other sets stays within twice that.
 *  3. The same measurements give the same answers, whatever the order of the sets, on every
 *     compiler and machine. They are IEEE doubles in a fixed order, and no function of libm is
 *     used.
 *  4. Bounded: at most SW_LEARN_SETS_MAX observations; beyond that the one not
 *     measured for longest goes.
 */
#ifndef SW_CONTENTION_LEARN_H
#define SW_CONTENTION_LEARN_H

#include "base/pack.h"
#include "contention/predict.h"

#define SW_LEARN_SETS_MAX 512u
#define SW_LEARN_REPEATS_MAX 8u
#define SW_LEARN_JOBS_MAX 8u
#define SW_LEARN_NAME_MAX 80u
#define SW_LEARN_STRAY_MILLI 221u /* e^0.2 - 1 */

/* Jobs together on one GPU, by the names of their models, and the one that is meant. Under
 * SW_WAY_GATE the first is guaranteed. */
struct sw_learn_case {
	enum sw_predict_way way;
	const char *const *models;
	size_t count;
	size_t which;
};

struct sw_learn_answer {
	uint32_t slow_milli;  /* >= 1000 */
	uint32_t prior_milli; /* what the profiles alone say */
	int bound;	      /* as in struct sw_prediction */
	uint32_t times;	      /* how often this very job was measured in this very set */
	uint64_t samples;     /* the steps of those measurements that are kept */
	uint32_t known;	      /* observations that the answer learned from, of all sets under this way */
};

/* How wrong the model is about what it has seen: each observation predicted from all others.
 * Thousandths: 100 is 10 %. */
struct sw_learn_error {
	uint32_t count;
	uint32_t median_milli, worst_milli;
	uint32_t prior_median_milli, prior_worst_milli; /* the same for the profiles alone */
	char worst[256];				/* "dlrm beside deepfm (mps)" */
};

struct sw_learn;

/* `profiles` must outlive it. A model without a profile has the default's and is
 * learned under its own name. */
int sw_learn_new(const struct sw_profiles *profiles, const struct sw_predict_model *model, struct sw_learn **ret_learn, struct sw_err *err);
void sw_learn_free(struct sw_learn *learn);
SW_DEFINE_FREEP(struct sw_learn, sw_learn_free)

/* One measurement. Refused (SW_EINPUT, and nothing is kept): no samples, fewer than two jobs, or
 * more than SW_LEARN_JOBS_MAX. Refused is also a slowdown below 0.5, which says that the time alone
 * was wrong, or above 1000, which is standing still. So are names that are empty, long or odd. */
int sw_learn_add(struct sw_learn *learn, const struct sw_learn_case *about, int64_t slow_milli, uint32_t samples, struct sw_err *err);

/* What to expect. Fits first where something was added since: keep additions together. A set that
 * cannot be learned (too many jobs) is answered by the profiles alone. */
void sw_learn_ask(struct sw_learn *learn, const struct sw_learn_case *about, struct sw_learn_answer *ret_answer);

/* The profiles that it predicts from are others now. */
void sw_learn_refresh(struct sw_learn *learn);
/* Predictions are made by this model from now on; what was measured stays. */
void sw_learn_set_model(struct sw_learn *learn, const struct sw_predict_model *model);

/* How many measurements it was given, ever. */
uint64_t sw_learn_total(const struct sw_learn *learn);

/* Over all ways, or over one. */
void sw_learn_error(struct sw_learn *learn, struct sw_learn_error *ret_error);
void sw_learn_error_of(struct sw_learn *learn, enum sw_predict_way way, struct sw_learn_error *ret_error);

/* All that was measured, as JSON, and back. The caller frees *ret_text. Reading replaces what is
 * there, or fails and changes nothing. */
int sw_learn_write(const struct sw_learn *learn, char **ret_text, struct sw_err *err);
int sw_learn_read(struct sw_learn *learn, const char *name, const char *text, size_t size, struct sw_err *err);

/* All that it is, as bytes and back: a learner that was read answers as the one that was written,
 * and goes on like it. It is new when it reads; what no learner wrote fails the pack. */
void sw_learn_pack(struct sw_pack *pack, struct sw_learn *learn);

#endif
