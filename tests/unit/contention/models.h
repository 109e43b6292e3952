/* The profiles that come with the program, for a group of tests: cmocka's set-up and tear-down, and
 * models by their names. */
#ifndef TEST_CONTENTION_MODELS_H
#define TEST_CONTENTION_MODELS_H

#include "contention/profile.h"

static struct sw_profiles *profiles;

static inline int load_profiles(void **state)
{
	(void)state;
	struct sw_err err = {0};
	int r = sw_profiles_load_default(&profiles, &err);
	if (r < 0)
		print_error("%s: %s\n", err.fact, err.detail);
	return r;
}

static inline int unload_profiles(void **state)
{
	(void)state;
	sw_profiles_free(profiles);
	return 0;
}

static inline const struct sw_profile *model(const char *name)
{
	const struct sw_profile *profile = sw_profiles_find(profiles, name);
	if (profile->is_default)
		fail_msg("no profile for '%s'", name);
	return profile;
}

#endif
