/* Shortest remaining time first: an oracle on traces, live as good as the prediction. */
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
