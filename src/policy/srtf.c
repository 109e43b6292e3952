/* Shortest remaining time first, preemptive. An oracle on traces; live it is as good as the
 * prediction. Jobs whose remaining time is not known come last. */
#include <sharewell/policy.h>

static const struct sw_order order = {
	.preemptive = true,
	.key_counts_down = true,
	.ties = SW_TIES_WAITING_FIRST,
};

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	return sw_job_remaining(view, job);
}

const struct sw_policy sw_policy_srtf = {
	.abi = SW_POLICY_ABI,
	.name = "srtf",
	.about = "shortest remaining time first, preemptive; needs to know durations",
	.order = &order,
	.key = key,
};
