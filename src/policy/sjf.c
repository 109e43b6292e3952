/* Smallest job first: fewest GPUs, preemptive. Knows nothing about durations. */
#include <sharewell/policy.h>

static const struct sw_order order = {
	.preemptive = true,
};

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->gpus;
}

const struct sw_policy sw_policy_sjf = {
	.abi = SW_POLICY_ABI,
	.name = "sjf",
	.about = "fewest GPUs first, preemptive",
	.order = &order,
	.key = key,
};
