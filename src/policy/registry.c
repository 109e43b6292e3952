#include "policy/registry.h"

#include <stddef.h>
#include <string.h>

#include "policy/pack.h"

/* One on a line. */
/* clang-format off */
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
/* clang-format on */

#define PACKED_MAX 32u

/* Made before main() and not changed after it. */
static struct sw_packed packed[PACKED_MAX];
static size_t packed_count;

__attribute__((constructor)) static void make_packed(void)
{
	for (size_t p = 0; sw_policies[p] != NULL && packed_count < PACKED_MAX; p++)
		packed_count += sw_packed_onto(sw_policies[p], &packed[packed_count]);
}

const struct sw_policy *sw_policies_packed(size_t index)
{
	return index < packed_count ? &packed[index].policy : NULL;
}

const struct sw_policy *sw_policy_find(const char *name)
{
	for (size_t p = 0; sw_policies[p] != NULL; p++)
		if (strcmp(sw_policies[p]->name, name) == 0)
			return sw_policies[p];
	for (size_t p = 0; p < packed_count; p++)
		if (strcmp(packed[p].name, name) == 0)
			return &packed[p].policy;
	return NULL;
}
