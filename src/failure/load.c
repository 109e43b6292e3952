/* Tables of failure classes, read from YAML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "failure/rules.h"

#define RULES_MAX 256
#define PATTERNS_MAX 64	   /* of one class */
#define PATTERN_LENGTH 300 /* bytes */
#define PLAIN_LENGTH_MIN 4 /* shorter plain text is found everywhere */

static const char *const layer_names[] = {"user", "framework", "infrastructure", "unknown", NULL};
static const char *const action_names[] = {"none", "retry", "retry elsewhere", "retry with more GPU memory", NULL};

const char *sw_failure_layer_name(enum sw_failure_layer layer)
{
	return layer_names[layer];
}

const char *sw_failure_action_name(enum sw_failure_action action)
{
	return action_names[action];
}

static bool find_word(const char *const *words, const char *word, int *ret_index)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], word) == 0) {
			*ret_index = i;
			return true;
		}
	return false;
}

bool sw_failure_layer_find(const char *name, enum sw_failure_layer *ret_layer)
{
	int index;
	bool found = find_word(layer_names, name, &index);
	if (found)
		*ret_layer = (enum sw_failure_layer)index;
	return found;
}

bool sw_failure_action_find(const char *name, enum sw_failure_action *ret_action)
{
	int index;
	bool found = find_word(action_names, name, &index);
	if (found)
		*ret_action = (enum sw_failure_action)index;
	return found;
}

/* ---- plain text in expressions */

/* The end of the bracket expression at `at`. */
static const char *skip_bracket(const char *at)
{
	at++;
	if (*at == '^')
		at++;
	if (*at == ']')
		at++;
	while (*at != '\0' && *at != ']') {
		if (at[0] == '[' && (at[1] == ':' || at[1] == '.' || at[1] == '=')) {
			const char kind = at[1];
			for (at += 2; *at != '\0' && !(at[0] == kind && at[1] == ']'); at++)
				;
			at += *at != '\0';
		}
		at += *at != '\0';
	}
	return *at == ']' ? at + 1 : at;
}

/* The end of the group at `at`. */
static const char *skip_group(const char *at)
{
	int depth = 0;
	do {
		if (*at == '\\' && at[1] != '\0') {
			at += 2;
			continue;
		}
		if (*at == '[') {
			at = skip_bracket(at);
			continue;
		}
		depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
		at++;
	} while (*at != '\0' && depth > 0);
	return at;
}

struct plain {
	char run[PATTERN_LENGTH + 1], best[PATTERN_LENGTH + 1];
	size_t length, best_length;
};

static void end_run(struct plain *plain)
{
	if (plain->length > plain->best_length) {
		memcpy(plain->best, plain->run, plain->length);
		plain->best_length = plain->length;
	}
	plain->length = 0;
}

/* The longest run of plain characters that every match of the extended expression holds; "" if
 * there is none. `size` bytes at most. */
static void find_plain(const char *expression, char *ret_plain, size_t size)
{
	struct plain plain = {.length = 0};
	const char *at = expression;
	ret_plain[0] = '\0';
	while (*at != '\0') {
		char c = *at;
		if (c == '|') /* either side will do: nothing must be there */
			return;
		if (c == '[' || c == '(' || c == '.' || c == '^' || c == '$') {
			end_run(&plain);
			at = c == '[' ? skip_bracket(at) : c == '(' ? skip_group(at) : at + 1;
			continue;
		}
		if (c == '*' || c == '?' || c == '{' || c == '+') {
			if (c != '+' && plain.length > 0 && at > expression && at[-1] != ')' && at[-1] != ']')
				plain.length--; /* what was before it may be missing */
			end_run(&plain);
			for (at++; c == '{' && *at != '\0' && at[-1] != '}'; at++)
				;
			continue;
		}
		if (c == '\\' && at[1] != '\0') {
			at++;
			if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '<' || *at == '>') {
				end_run(&plain); /* \s, \w, \b */
				at++;
				continue;
			}
		}
		if (plain.length < PATTERN_LENGTH)
			plain.run[plain.length++] = *at;
		at++;
	}
	end_run(&plain);
	snprintf(ret_plain, size, "%.*s", (int)plain.best_length, plain.best);
}

/* ---- one rule */

struct entry {
	const char *name, *says, *hint;
	int layer, action;
	int64_t budget;
	bool free, symptom;
	const struct sw_yaml_node *log, *codes, *signals, *reasons;
};

#define AT(member) .offset = offsetof(struct entry, member)
static const struct sw_yaml_field entry_fields[] = {
	{"class", SW_YAML_STRING, true, AT(name), .max = SW_FAILURE_NAME_MAX},
	{"layer", SW_YAML_CHOICE, true, AT(layer), .choices = layer_names},
	{"action", SW_YAML_CHOICE, true, AT(action), .choices = action_names},
	{"budget", SW_YAML_INTEGER, AT(budget), .max = 1000},
	{"free", SW_YAML_BOOL, AT(free)},
	{"symptom", SW_YAML_BOOL, AT(symptom)},
	{"says", SW_YAML_STRING, true, AT(says), .max = 200},
	{"hint", SW_YAML_STRING, AT(hint), .max = 300},
	{"log", SW_YAML_LIST, AT(log), .min = 1, .max = PATTERNS_MAX},
	{"codes", SW_YAML_LIST, AT(codes), .min = 1, .max = 255},
	{"signals", SW_YAML_LIST, AT(signals), .min = 1, .max = 64},
	{"reasons", SW_YAML_LIST, AT(reasons), .min = 1, .max = 32},
};
#undef AT

static int add_pattern(struct sw_failure_table *table, const struct sw_yaml_node *node, struct sw_err *err)
{
	static const struct sw_yaml_field field = {NULL, SW_YAML_STRING, .max = PATTERN_LENGTH};
	const char *expression = NULL;
	char plain[PATTERN_LENGTH + 1], problem[200];
	int r = sw_yaml_value(node, &field, &expression, err);
	if (r < 0)
		return r;
	find_plain(expression, plain, sizeof plain);
	if (strlen(plain) < PLAIN_LENGTH_MIN)
		return sw_yaml_fail(
			node, err,
			"'%.80s' needs %d plain characters in a row that every match holds; write alternatives as patterns of their own",
			expression, PLAIN_LENGTH_MIN);
	struct sw_failure_pattern *pattern = sw_vec_push(&table->patterns);
	if (pattern == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*pattern = (struct sw_failure_pattern){.rule = (uint32_t)table->rules.count - 1, .plain_size = strlen(plain)};
	int problem_code = regcomp(&pattern->regex, expression, REG_EXTENDED);
	if (problem_code != 0) {
		regerror(problem_code, &pattern->regex, problem, sizeof problem);
		table->patterns.count--;
		return sw_yaml_fail(node, err, "'%.80s' is not an extended regular expression: %s", expression, problem);
	}
	pattern->plain = strdup(plain);
	return pattern->plain != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int read_numbers(const struct sw_yaml_node *list, int64_t most, uint64_t *bits, uint32_t *count, struct sw_err *err)
{
	const struct sw_yaml_field field = {NULL, SW_YAML_INTEGER, .min = 1, .max = most};
	for (const struct sw_yaml_node *node = list != NULL ? list->first : NULL; node != NULL; node = node->next) {
		int64_t number = 0;
		int r = sw_yaml_value(node, &field, &number, err);
		if (r < 0)
			return r;
		bits[number / 64] |= UINT64_C(1) << number % 64;
		(*count)++;
	}
	return 0;
}

static int check_rule(const struct sw_failure_table *table, const struct sw_yaml_node *node, const struct entry *entry, struct sw_err *err)
{
	if (strspn(entry->name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(entry->name))
		return sw_yaml_fail(node, err, "the class '%s' may hold small letters, digits and hyphens only", entry->name);
	if (sw_failure_find(table, entry->name) != NULL)
		return sw_yaml_fail(node, err, "the class '%s' is there already, above", entry->name);
	if (entry->action == SW_ACTION_NONE && (entry->budget > 0 || entry->free))
		return sw_yaml_fail(node, err, "the class '%s' is not tried again, so it has no budget", entry->name);
	if (entry->action != SW_ACTION_NONE && entry->budget == 0)
		return sw_yaml_fail(node, err, "the class '%s' is tried again and needs a 'budget' of at least 1", entry->name);
	return 0;
}

static int add_rule(struct sw_failure_table *table, const struct sw_yaml_node *node, struct sw_err *err)
{
	static const struct sw_yaml_field word = {NULL, SW_YAML_STRING, .max = 32};
	struct entry entry = {.hint = ""};
	int r = sw_yaml_decode(node, "a class of failures", entry_fields, SW_YAML_COUNT(entry_fields), &entry, err);
	if (r == 0)
		r = check_rule(table, node, &entry, err);
	if (r < 0)
		return r;
	struct sw_failure_rule *rule = sw_vec_push(&table->rules);
	if (rule == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*rule = (struct sw_failure_rule){
		.failure = {.name = entry.name,
			    .says = entry.says,
			    .hint = entry.hint,
			    .layer = (enum sw_failure_layer)entry.layer,
			    .action = (enum sw_failure_action)entry.action,
			    .budget = (uint32_t)entry.budget,
			    .free = entry.free,
			    .symptom = entry.symptom,
			    .rank = (uint32_t)table->rules.count - 1},
		.reasons = entry.reasons,
	};
	uint32_t *count = &rule->failure.signatures;
	r = read_numbers(entry.codes, 255, rule->codes, count, err);
	if (r == 0)
		r = read_numbers(entry.signals, 64, rule->signals, count, err);
	for (const struct sw_yaml_node *item = entry.reasons != NULL ? entry.reasons->first : NULL; r == 0 && item != NULL;
	     item = item->next) {
		const char *text;
		r = sw_yaml_value(item, &word, &text, err);
		(*count)++;
	}
	for (const struct sw_yaml_node *item = entry.log != NULL ? entry.log->first : NULL; r == 0 && item != NULL; item = item->next) {
		r = add_pattern(table, item, err);
		(*count)++;
	}
	return r;
}

/* ---- tables */

static int add_rules(struct sw_failure_table *table, const struct sw_yaml *doc, struct sw_err *err)
{
	struct top {
		const struct sw_yaml_node *failures;
	} top = {0};
	static const struct sw_yaml_field fields[] = {
		{"failures", SW_YAML_LIST, true, .offset = offsetof(struct top, failures), .min = 1, .max = RULES_MAX},
	};
	const struct sw_yaml_node *root = sw_yaml_root(doc);
	int r = sw_yaml_decode(root, "a table of failures", fields, SW_YAML_COUNT(fields), &top, err);
	for (const struct sw_yaml_node *node = r == 0 ? top.failures->first : NULL; r == 0 && node != NULL; node = node->next)
		r = add_rule(table, node, err);
	return r;
}

/* A failure that no class recognises needs an answer, too. */
static int no_signatures(const struct sw_failure_table *table, const struct sw_yaml *doc, size_t rule, struct sw_err *err)
{
	return sw_yaml_fail(sw_yaml_root(doc), err, "the class '%s' has no signature; only the last one of the table may lack them",
			    table->rules.items[rule].failure.name);
}

/* Only the last class of all may lack signatures: it is what nothing else recognises. */
static int find_unknown(struct sw_failure_table *table, struct sw_err *err)
{
	const struct sw_yaml *doc = table->docs[0];
	for (size_t i = 0; i + 1 < table->rules.count; i++)
		if (table->rules.items[i].failure.signatures == 0)
			return no_signatures(table, doc, i, err);
	table->unknown = (uint32_t)table->rules.count - 1;
	if (table->rules.items[table->unknown].failure.signatures > 0)
		return sw_yaml_fail(sw_yaml_root(doc), err,
				    "the last class must be one without signatures, for what nothing else recognises");
	return 0;
}

static struct sw_failure_table *new_table(struct sw_err *err)
{
	struct sw_failure_table *table = calloc(1, sizeof *table);
	if (table == NULL)
		sw_err_set(err, SW_ENOMEM, "out of memory");
	return table;
}

int sw_failure_load(const char *more, struct sw_failure_table **ret_table, struct sw_err *err)
{
	SW_CLEANUP(sw_failure_freep) struct sw_failure_table *table = new_table(err);
	if (table == NULL)
		return SW_ENOMEM;
	int r = 0;
	if (more != NULL) {
		r = sw_yaml_load("the failures", more, &table->docs[1], err);
		if (r == 0)
			r = add_rules(table, table->docs[1], err);
		for (size_t i = 0; r == 0 && i < table->rules.count; i++)
			if (table->rules.items[i].failure.signatures == 0)
				r = no_signatures(table, table->docs[1], i, err);
	}
	size_t size = 0;
	const char *text = sw_embedded("failures.yaml", &size);
	if (r == 0)
		r = text == NULL ? sw_err_set(err, SW_EBUG, "the table of failures is not in this program")
				 : sw_yaml_parse("the failures", "failures.yaml", text, size, &table->docs[0], err);
	if (r == 0)
		r = add_rules(table, table->docs[0], err);
	if (r == 0)
		r = find_unknown(table, err);
	if (r < 0)
		return r;
	*ret_table = SW_TAKE(table);
	return 0;
}

void sw_failure_free(struct sw_failure_table *table)
{
	if (table == NULL)
		return;
	for (size_t p = 0; p < table->patterns.count; p++) {
		regfree(&table->patterns.items[p].regex);
		free(table->patterns.items[p].plain);
	}
	sw_vec_free(&table->patterns);
	sw_vec_free(&table->rules);
	for (int d = 0; d < 2; d++)
		if (table->docs[d] != NULL)
			sw_yaml_free(table->docs[d]);
	free(table);
}

uint32_t sw_failure_count(const struct sw_failure_table *table)
{
	return (uint32_t)table->rules.count;
}

const struct sw_failure_class *sw_failure_at(const struct sw_failure_table *table, uint32_t index)
{
	return &table->rules.items[index].failure;
}

const struct sw_failure_class *sw_failure_find(const struct sw_failure_table *table, const char *name)
{
	for (size_t i = 0; i < table->rules.count; i++)
		if (strcmp(table->rules.items[i].failure.name, name) == 0)
			return &table->rules.items[i].failure;
	return NULL;
}
