/* Values of policy parameters from any bytes: the first byte picks the
 * parameter, the rest is its text. */
#include <stdlib.h>

#include "core/params.h"
#include "policy/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	size_t pick = data[0];
	for (size_t p = 0; sw_policies[p] != NULL; p++) {
		const struct sw_policy *policy = sw_policies[p];
		if (pick >= policy->param_count) {
			pick -= policy->param_count;
			continue;
		}
		struct sw_params *params;
		struct sw_err err = {0};
		if (sw_params_new(policy, &params, &err) < 0)
			abort();
		if (sw_params_set(params, &policy->params[pick], (const char *)data + 1, size - 1, &err) < 0 && err.fact[0] == '\0')
			abort(); /* an error that says nothing */
		sw_params_free(params);
		return 0;
	}
	return 0;
}
