/* Policies and placement rules from shared objects. They stay loaded as long as the process. */
#ifndef SW_CLI_PLUGIN_H
#define SW_CLI_PLUGIN_H

#include <sharewell/policy.h>

#include "base/error.h"

int sw_cli_load_policy(const char *path, const struct sw_policy **ret_policy, struct sw_err *err);
/* For a live cluster, whose journal knows policies by their names: they must not be
 * those of built-in ones. */
int sw_cli_load_live_policy(const char *path, const struct sw_policy **ret_policy, struct sw_err *err);
int sw_cli_load_placement(const char *path, const struct sw_placement **ret_placement, struct sw_err *err);

#endif
