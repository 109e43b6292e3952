/* Values of a policy's parameters, from text to what the policy reads. Files are read by the
 * caller: the core does no I/O. */
#ifndef SW_CORE_PARAMS_H
#define SW_CORE_PARAMS_H

#include <sharewell/policy.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_PARAM_LIST_MAX 1000000u

struct sw_params {
	const struct sw_policy *policy;
	struct sw_value *values; /* policy->param_count of them; lists are owned */
};

/* All parameters at their presets. A preset file parameter is empty. */
int sw_params_new(const struct sw_policy *policy, struct sw_params **ret_params, struct sw_err *err);
void sw_params_free(struct sw_params *params);
SW_DEFINE_FREEP(struct sw_params, sw_params_free)

/* The parameter's description, or NULL and an error that suggests the nearest name. */
const struct sw_param *sw_params_find(const struct sw_policy *policy, const char *name, struct sw_err *err);
/* Sets one; for SW_PARAM_FILE_OF_NUMBERS `text` is the content of the file. */
int sw_params_set(struct sw_params *params, const struct sw_param *param, const char *text, size_t size, struct sw_err *err);
/* Text that sets parameter `index` of the policy to what it is now. NULL: out of
 * memory. The caller frees. */
char *sw_params_text(const struct sw_params *params, size_t index);

#endif
