/* sharewell share --profile NAME. */
#ifndef SW_CLI_SHARE_PROFILE_H
#define SW_CLI_SHARE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

int sw_cli_share_profile(const char *name, uint64_t seconds, bool as_json, struct sw_err *err);

#endif
