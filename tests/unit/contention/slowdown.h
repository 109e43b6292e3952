/* The slowdown of one job beside others under MPS, as tests of predictions ask for it. */
#ifndef SW_TEST_CONTENTION_SLOWDOWN_H
#define SW_TEST_CONTENTION_SLOWDOWN_H

#include <assert.h>
#include <string.h>

#include "contention/predict.h"

/* Run time of `job` relative to its run time alone, in thousandths; `others` do not include it. */
static inline uint32_t slowdown_milli(const struct sw_predict_model *model, const struct sw_profile *job,
				      const struct sw_profile *const *others, size_t count)
{
	enum { MOST = 512 };
	const struct sw_profile *jobs[MOST] = {job};
	struct sw_prediction found[MOST];
	assert(count < MOST);
	if (count > 0)
		memcpy(jobs + 1, others, count * sizeof(void *));
	sw_predict_set(model, SW_WAY_MPS, jobs, count + 1, found);
	return found[0].slow_milli;
}

#endif
