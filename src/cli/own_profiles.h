/* The profiles that were measured here (contention/store.h): where they are, and the built-in
 * ones with them laid over. */
#ifndef SW_CLI_OWN_PROFILES_H
#define SW_CLI_OWN_PROFILES_H

#include <limits.h>
#include <stdbool.h>

#include "contention/store.h"

/* profiles.yaml in the state folder (cli/places.h); there may be none yet. */
int sw_cli_own_profiles_path(const char *state, bool for_all, char path[PATH_MAX], struct sw_err *err);
/* The built-in profiles, with those of `path` over them; NULL: none. A file that
 * was named must be there. */
int sw_cli_own_profiles_load(const char *path, bool is_named, struct sw_profiles **ret_profiles, struct sw_err *err);

/* Changes the store while no other process does: read, changed by `change`, written. */
typedef int sw_cli_own_profiles_fn(void *user, struct sw_store *store, struct sw_err *err);
int sw_cli_own_profiles_change(const char *path, sw_cli_own_profiles_fn *change, void *user, struct sw_err *err);

#endif
