/* Fit job first: first in, first out, but a job that does not fit holds up no others. */
#include <sharewell/policy.h>

static const struct sw_order order = {0};

const struct sw_policy sw_policy_fjf = {
	.abi = SW_POLICY_ABI,
	.name = "fjf",
	.about = "first in, first out, skipping what does not fit now",
	.order = &order,
};
