/* First in, first out: no job overtakes. The policy that takes over when another misbehaves. */
#include <sharewell/policy.h>

static const struct sw_order order = {
	.head_blocks = true,
};

const struct sw_policy sw_policy_fifo = {
	.abi = SW_POLICY_ABI,
	.name = "fifo",
	.about = "first in, first out; the first job that does not fit holds up the rest",
	.order = &order,
};
