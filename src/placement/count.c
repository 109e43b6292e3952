/* Any free GPUs anywhere. Distance does not matter; only the number does. */
#include <sharewell/policy.h>

static bool place(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot)
{
	(void)job;
	return sw_spot_fill(view, spot, gpus);
}

const struct sw_placement sw_placement_count = {
	.abi = SW_POLICY_ABI,
	.name = "count",
	.about = "any free GPUs, wherever they are",
	.counts_only = true,
	.place = place,
};
