/* What can be named on a command line: policies, placement rules, worlds, trace formats. Ask here;
 * the registries stay where they are. */
#ifndef SW_CLI_CATALOGUE_H
#define SW_CLI_CATALOGUE_H

#include <sharewell/policy.h>

#include "base/error.h"
#include "cli/command.h"

extern const struct sw_cli_words sw_cli_policy_words; /* and "all" */
extern const struct sw_cli_words sw_cli_placement_words;
extern const struct sw_cli_words sw_cli_world_words;
extern const struct sw_cli_words sw_cli_format_words;	    /* that can be read; and "auto" */
extern const struct sw_cli_words sw_cli_write_format_words; /* that can be written */

/* Whether "all" means this policy too: one that misbehaves on purpose is run
 * only when it is named. */
bool sw_cli_policy_in_all(const struct sw_policy *policy);

/* By its name, or from a shared object: anything with a slash, or that ends in .so. */
int sw_cli_find_policy(const char *name_or_path, const struct sw_policy **ret_policy, struct sw_err *err);
int sw_cli_find_placement(const char *name_or_path, const struct sw_placement **ret_placement, struct sw_err *err);

#endif
