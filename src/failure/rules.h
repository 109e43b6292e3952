/* A table of classes with its signatures; private to src/failure. */
#ifndef SW_FAILURE_RULES_H
#define SW_FAILURE_RULES_H

#include <regex.h>

#include "base/vec.h"
#include "base/yaml.h"
#include "failure/failure.h"

struct sw_failure_pattern {
	regex_t regex;
	char *plain; /* text that every match holds */
	size_t plain_size;
	uint32_t rule;
};

struct sw_failure_rule {
	struct sw_failure_class failure;
	const struct sw_yaml_node *reasons; /* lists of words; NULL */
	uint64_t signals[2];		    /* bit sets */
	uint64_t codes[4];
};

struct sw_failure_table {
	struct sw_yaml *docs[2]; /* own the strings */
	SW_VEC(struct sw_failure_rule) rules;
	SW_VEC(struct sw_failure_pattern) patterns; /* in the order of the rules */
	uint32_t unknown;			    /* the rule without signatures */
};

#endif
