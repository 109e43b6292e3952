#include "cli/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "policy/registry.h"

/* dlopen() looks into the system's folders for a name without a slash; here it means a file. */
static void *open_object(const char *path, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *here = NULL;
	if (strchr(path, '/') == NULL && asprintf(&here, "./%s", path) < 0) {
		sw_err_set(err, SW_ENOMEM, "cannot load '%s': out of memory", path);
		return NULL;
	}
	const char *file = here != NULL ? here : path;
	if (access(file, R_OK) != 0) {
		sw_err_set(err, SW_EINPUT, "cannot load '%s'", path);
		sw_err_detail(err, "%m");
		sw_err_hint(err, "It is taken as a file because of its slash or its .so; 'sharewell policies' lists the names.");
		return NULL;
	}
	void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (object == NULL) {
		const char *why = dlerror();
		sw_err_set(err, SW_EINPUT, "cannot load '%s'", path);
		sw_err_detail(err, "%s", why != NULL ? why : "unknown reason");
		sw_err_hint(err, "Build it with: cc -shared -fPIC -o mine.so mine.c");
	}
	return object;
}

/* What the object's variable `symbol` points to, or NULL and an error that
 * says what it should be. */
static const void *exported(const char *path, const char *symbol, const char *macro, const char *other_symbol, const char *other_option,
			    struct sw_err *err)
{
	void *object = open_object(path, err);
	if (object == NULL)
		return NULL;
	const void *const *slot = (const void *const *)dlsym(object, symbol);
	if (slot != NULL && *slot != NULL)
		return *slot;
	sw_err_set(err, SW_EINPUT, "cannot use '%s'", path);
	sw_err_detail(err, slot == NULL ? "it has no symbol '%s'" : "its symbol '%s' is NULL", symbol);
	if (dlsym(object, other_symbol) != NULL)
		sw_err_hint(err, "It has '%s': use it with %s.", other_symbol, other_option);
	else
		sw_err_hint(err, "Let it end with %s(...); see <sharewell/policy.h>.", macro);
	return NULL;
}

static int refuse(const char *path, const char *what, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot use '%s'", path);
	sw_err_detail(err, "%s", what);
	sw_err_hint(err, "See <sharewell/policy.h>.");
	return SW_EINPUT;
}

static int check_abi(const char *path, uint32_t abi, struct sw_err *err)
{
	if (abi == SW_POLICY_ABI)
		return 0;
	sw_err_set(err, SW_EINPUT, "cannot use '%s'", path);
	sw_err_detail(err, "it was built for version %u of the policy interface, this program has version %u", abi, SW_POLICY_ABI);
	sw_err_hint(err, "Build it again with this program's <sharewell/policy.h>; docs/write-a-policy.md lists old verbs and new ones.");
	return SW_EINPUT;
}

/* Names are typed in --policy and --set, so they have no dots, commas or spaces. */
static bool good_name(const char *name)
{
	return name != NULL && name[0] != '\0' && strlen(name) < 60 &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_")] == '\0' && strcmp(name, "world") != 0 &&
	       strcmp(name, "core") != 0 && strcmp(name, "all") != 0;
}

int sw_cli_load_policy(const char *path, const struct sw_policy **ret_policy, struct sw_err *err)
{
	const struct sw_policy *policy = exported(path, SW_POLICY_SYMBOL, "SW_EXPORT_POLICY", SW_PLACEMENT_SYMBOL, "--placement", err);
	if (policy == NULL)
		return SW_EINPUT;
	int r = check_abi(path, policy->abi, err);
	if (r < 0)
		return r;
	if (!good_name(policy->name))
		return refuse(path, "its name must be lower-case letters, digits and dashes, and not 'world', 'core' or 'all'", err);
	if (policy->decide == NULL && policy->order == NULL)
		return refuse(path, "it has neither 'decide' nor 'order', so it cannot schedule", err);
	if (policy->param_count > 0 && policy->params == NULL)
		return refuse(path, "it counts parameters but has none", err);
	*ret_policy = policy;
	return 0;
}

int sw_cli_load_live_policy(const char *path, const struct sw_policy **ret_policy, struct sw_err *err)
{
	const struct sw_policy *policy = NULL;
	int r = sw_cli_load_policy(path, &policy, err);
	for (size_t i = 0; r == 0 && sw_policies[i] != NULL; i++)
		if (strcmp(sw_policies[i]->name, policy->name) == 0)
			r = refuse(path, "its name is that of a policy that is built in: the journal could not tell them apart", err);
	if (r < 0)
		return r;
	*ret_policy = policy;
	return 0;
}

int sw_cli_load_placement(const char *path, const struct sw_placement **ret_placement, struct sw_err *err)
{
	const struct sw_placement *placement =
		exported(path, SW_PLACEMENT_SYMBOL, "SW_EXPORT_PLACEMENT", SW_POLICY_SYMBOL, "--policy", err);
	if (placement == NULL)
		return SW_EINPUT;
	int r = check_abi(path, placement->abi, err);
	if (r < 0)
		return r;
	if (!good_name(placement->name))
		return refuse(path, "its name must be lower-case letters, digits and dashes", err);
	if (placement->place == NULL)
		return refuse(path, "it has no 'place'", err);
	*ret_placement = placement;
	return 0;
}
