#include "policy/registry.h"

#include <stddef.h>

/* clang-format off: one on a line */
const struct sw_policy *const sw_policies[] = {
	&sw_policy_sharewell,
	&sw_policy_fifo,
	&sw_policy_fjf,
	&sw_policy_sjf,
	&sw_policy_srtf,
	&sw_policy_srsf,
	&sw_policy_las,
	&sw_policy_gittins,
	&sw_policy_philly,
	&sw_policy_gandiva,
	&sw_policy_antman,
	&sw_policy_bigbrain,
	&sw_policy_salus,
	&sw_policy_chaos,
	NULL,
};
