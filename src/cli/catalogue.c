#include "cli/catalogue.h"

#include <stdio.h>
#include <string.h>

#include "cli/parse.h"
#include "cli/plugin.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/trace/formats.h"
#include "sim/trace/write.h"
#include "world/world.h"

static const char *policy_word(size_t index)
{
	size_t count = 0;
	for (; sw_policies[count] != NULL; count++)
		if (count == index)
			return sw_policies[index]->name;
	if (index == count)
		return "all";
	const struct sw_policy *packed = sw_policies_packed(index - count - 1);
	return packed != NULL ? packed->name : NULL;
}

static const char *placement_word(size_t index)
{
	for (size_t i = 0; sw_placements[i] != NULL; i++)
		if (i == index)
			return sw_placements[i]->name;
	return NULL;
}

/* The simulator tells the names in one line, which is taken apart once. */
static const char *world_word(size_t index)
{
	static char names[256];
	static const char *words[SW_CLI_WORDS_MAX];
	if (words[0] == NULL) {
		sw_world_names(names, sizeof names);
		char *rest = NULL;
		size_t count = 0;
		for (char *name = strtok_r(names, ", ", &rest); name != NULL && count < SW_CLI_WORDS_MAX - 1;
		     name = strtok_r(NULL, ", ", &rest))
			words[count++] = name;
	}
	return index < SW_CLI_WORDS_MAX ? words[index] : NULL;
}

static const char *format_word(size_t index)
{
	if (index == 0)
		return "auto";
	const struct sw_trace_format_info *format = sw_trace_formats(index - 1);
	return format != NULL ? format->name : NULL;
}

const struct sw_cli_words sw_cli_policy_words = {.at = policy_word, .list = true};
const struct sw_cli_words sw_cli_placement_words = {.at = placement_word};
const struct sw_cli_words sw_cli_world_words = {.at = world_word};
const struct sw_cli_words sw_cli_format_words = {.at = format_word};
const struct sw_cli_words sw_cli_write_format_words = {.at = sw_trace_write_formats};

bool sw_cli_policy_in_all(const struct sw_policy *policy)
{
	return policy != &sw_policy_chaos;
}

static bool is_shared_object(const char *name)
{
	size_t size = strlen(name);
	return strchr(name, '/') != NULL || (size > 3 && strcmp(name + size - 3, ".so") == 0);
}

int sw_cli_find_policy(const char *name_or_path, const struct sw_policy **ret_policy, struct sw_err *err)
{
	if (is_shared_object(name_or_path))
		return sw_cli_load_policy(name_or_path, ret_policy, err);
	*ret_policy = sw_policy_find(name_or_path);
	if (*ret_policy != NULL)
		return 0;
	return sw_cli_unknown_word("policy", name_or_path, &sw_cli_policy_words, err);
}

int sw_cli_find_placement(const char *name_or_path, const struct sw_placement **ret_placement, struct sw_err *err)
{
	if (is_shared_object(name_or_path))
		return sw_cli_load_placement(name_or_path, ret_placement, err);
	for (size_t i = 0; sw_placements[i] != NULL; i++)
		if (strcmp(sw_placements[i]->name, name_or_path) == 0) {
			*ret_placement = sw_placements[i];
			return 0;
		}
	return sw_cli_unknown_word("placement rule", name_or_path, &sw_cli_placement_words, err);
}
