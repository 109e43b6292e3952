/* What the files of `bigbrain` share: how it looks at GPUs, and what it predicts.
 *
 * The prediction is the plainest that sharing without MPS allows: the GPU goes round. So a job
 * takes 1 + the sum of what the others use of the GPU times as long as alone. For jobs that are
 * alike it is a line in their number. For jobs that are never idle the speed on a GPU is 1 / (1 +
 * residents).
 */
#ifndef SW_POLICY_BIGBRAIN_H
#define SW_POLICY_BIGBRAIN_H

#include <sharewell/policy.h>

enum {
	SW_BIGBRAIN_K,
	SW_BIGBRAIN_CONTEXT,
	SW_BIGBRAIN_RESERVE,
	SW_BIGBRAIN_SKIP,
	SW_BIGBRAIN_SLOTS,
	SW_BIGBRAIN_RESTART,
	SW_BIGBRAIN_GAIN,
};

/* GPUs of one node for a whole job. */
struct sw_bigbrain_place {
	struct sw_gpus where;
	uint32_t residents;  /* of all of them */
	uint32_t use_milli;  /* what these use of a GPU, of the fullest */
	uint64_t room_bytes; /* on all of them */
};

/* How much work is left: where it is not known, as much as it has done. */
sw_ns sw_bigbrain_left(const struct sw_view *view, const struct sw_job *job);
/* `left` of work at this step time (thousandths of that alone); stops at SW_TIME_NEVER. */
sw_ns sw_bigbrain_takes(sw_ns left, uint64_t step_milli);

/* Where one more whole job goes: fewest residents, then most room, then the first; as if `job`
 * itself were nowhere. False: no node takes it. */
bool sw_bigbrain_find_whole(const struct sw_view *view, const struct sw_job *job, struct sw_bigbrain_place *ret_place);
/* How to split it over what is left; the shortest step of all nodes. */
bool sw_bigbrain_find_split(const struct sw_view *view, const struct sw_job *job, struct sw_split *ret_split);
/* When it would be done if it waited for the end of a whole job in whose place it can go, counted
 * from now. SW_TIME_NEVER: there is none whose end is known. */
sw_ns sw_bigbrain_if_it_waits(const struct sw_view *view, const struct sw_job *job, sw_ns *ret_wait);

#endif
