/* The list of policies, placement rules and worlds, for two commands. */
#ifndef SW_CLI_POLICIES_H
#define SW_CLI_POLICIES_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

int sw_cli_list_policies(FILE *out, bool json, struct sw_err *err);

#endif
