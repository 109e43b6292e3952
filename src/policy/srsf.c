/* Shortest remaining service first: remaining time times GPUs, preemptive. An oracle on traces. */
#include <sharewell/policy.h>

static const struct sw_order order = {
	.preemptive = true,
	.key_counts_down = true,
	.key_times_gpus = true,
	.ties = SW_TIES_WAITING_FIRST,
};

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	return sw_job_remaining(view, job);
}

const struct sw_policy sw_policy_srsf = {
	.abi = SW_POLICY_ABI,
	.name = "srsf",
	.about = "shortest remaining GPU time first, preemptive; needs to know durations",
	.order = &order,
	.key = key,
};
