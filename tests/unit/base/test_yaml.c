/* The strict YAML reader and its decoder: what is understood, and the words in
 * which the rest is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/yaml.h"

static struct sw_yaml *parse(const char *text)
{
	struct sw_err err = {0};
	struct sw_yaml *doc = NULL;
	int r = sw_yaml_parse("test", "t.yaml", text, strlen(text), &doc, &err);
	if (r < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return doc;
}

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' does not contain '%s'", text, part);
}

/* The text must be refused with this code, naming the file, with this in the detail;
 * nothing may be returned. */
static void refused(const char *text, size_t size, int code, const char *detail)
{
	struct sw_err err = {0};
	struct sw_yaml *doc = NULL;
	assert_int_equal(sw_yaml_parse("test", "t.yaml", text, size, &doc, &err), code);
	assert_null(doc);
	assert_string_equal(err.fact, "cannot read test 't.yaml'");
	assert_has(err.detail, detail);
}

/* Maps, lists and scalars become nodes in the order of the file, with the line of each. */
static void test_tree(void **state)
{
	(void)state;
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = parse("# comment\na: 1\nb:\n  - x\n  - {c: \"2\", d: ''}\n");
	const struct sw_yaml_node *root = sw_yaml_root(doc);
	assert_int_equal(root->kind, SW_YAML_IS_MAP);
	assert_int_equal(root->count, 2);
	const struct sw_yaml_node *a = root->first, *b = a->next;
	assert_string_equal(a->key, "a");
	assert_string_equal(a->text, "1");
	assert_int_equal(a->line, 2);
	assert_false(a->quoted);
	assert_int_equal(b->kind, SW_YAML_IS_LIST);
	assert_int_equal(b->line, 3);
	assert_null(b->next);
	const struct sw_yaml_node *x = b->first, *map = x->next;
	assert_null(x->key);
	assert_int_equal(map->line, 5);
	assert_true(map->first->quoted);
	assert_string_equal(map->first->next->text, "");
}

/* What YAML allows and this reader does not is refused with its line. */
static void test_refused_yaml(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int code;
		const char *detail;
	} cases[] = {
		{"", SW_EINPUT, "line 1: there is nothing in it"},
		{"# only a comment\n", SW_EINPUT, "there is nothing in it"},
		{"a: &x 1\n", SW_EINPUT, "line 1: anchors ('&x') are not understood"},
		{"a: &x [1, 2]\nb: *x\n", SW_EINPUT, "line 1: anchors"},
		{"a: 1\nb: *x\n", SW_EINPUT, "line 2: aliases ('*x') are not understood"},
		{"&k a: 1\n", SW_EINPUT, "line 1: anchors"},
		{"a: !!int 3\n", SW_EINPUT, "line 1: tags ('tag:yaml.org,2002:int') are not understood"},
		{"a: !mine {b: 1}\n", SW_EINPUT, "line 1: tags"},
		{"a: 1\n---\nb: 2\n", SW_EINPUT, "line 2: a second document begins"},
		{"a: 1\nb: 2\na: 3\n", SW_EINPUT, "line 3: 'a' is given twice, first in line 1"},
		{"{[1]: 2}\n", SW_EINPUT, "line 1: a key must be a plain word"},
		{"? {a: b}\n: 2\n", SW_EINPUT, "a key must be a plain word"},
		{"a: \"x\\0y\"\n", SW_EINPUT, "line 1: a value contains a NUL byte"},
		{"a: [1, 2\nb: 3\n", SW_EINPUT, "column"},
		{"a: {b: 1\n", SW_EINPUT, "column"},
		{"a: \"unfinished\n", SW_EINPUT, "unexpected end of stream"},
		{"a: b: c\n", SW_EINPUT, "line 1:"},
		{"%YAML 9.9\n---\na: 1\n", SW_EINPUT, "line 1:"},
	};
	for (size_t i = 0; i < SW_YAML_COUNT(cases); i++)
		refused(cases[i].text, strlen(cases[i].text), cases[i].code, cases[i].detail);
}

/* Bytes that are no UTF-8 text are refused, not passed on. */
static void test_binary(void **state)
{
	(void)state;
	refused("a: \xff\xfe\n", 6, SW_EINPUT, "not text in UTF-8");
	refused("a: \0b\n", 6, SW_EINPUT, "not text in UTF-8");
	refused("\xfd\x37\x7a\x58\x5a\x00\x00\x04", 8, SW_EINPUT, "not text in UTF-8");
}

/* A tab in the indentation is named as such, since editors do not show it. */
static void test_tab(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct sw_yaml *doc = NULL;
	const char *text = "a:\n  b: 1\n\tc: 2\n";
	assert_int_equal(sw_yaml_parse("test", "t.yaml", text, strlen(text), &doc, &err), SW_EINPUT);
	assert_has(err.detail, "line 3:");
	assert_has(err.hint, "tabs");
}

/* Depth, keys, values and bytes are bounded, just beyond what is allowed and not before. */
static void test_bounds(void **state)
{
	(void)state;
	char text[8192] = "";
	memset(text, '[', SW_YAML_MAX_DEPTH);
	memset(text + SW_YAML_MAX_DEPTH, ']', SW_YAML_MAX_DEPTH);
	sw_yaml_free(parse(text));
	memset(text, '[', 5000);
	refused(text, 5000, SW_ELIMIT, "nested deeper than 16 levels");

	SW_CLEANUP(sw_freep) char *many = malloc(SW_YAML_MAX_BYTES + 1);
	size_t used = 0;
	for (int i = 0; i < SW_YAML_MAX_KEYS; i++)
		used += (size_t)sprintf(many + used, "k%d: 1\n", i);
	many[used] = '\0';
	sw_yaml_free(parse(many));
	used += (size_t)sprintf(many + used, "last: 1\n");
	refused(many, used, SW_ELIMIT, "line 513: more than 512 keys in one map");

	used = 0;
	for (int i = 0; i < SW_YAML_MAX_NODES; i++)
		used += (size_t)sprintf(many + used, "- 1\n");
	refused(many, used, SW_ELIMIT, "more than 200000 values");
	refused(many, SW_YAML_MAX_BYTES + 1, SW_ELIMIT, "4194305 bytes; at most 4194304");
}

/* One field of each type, as a user of the decoder has them. */
struct target {
	int64_t duration, integer, milli, ppm;
	uint64_t bytes, rate;
	bool truth;
	const char *word;
	int choice;
	const struct sw_yaml_node *list, *map;
};

static const char *const choices[] = {"free", "suspend", NULL};
#define AT(member) .offset = offsetof(struct target, member)
static const struct sw_yaml_field fields[] = {
	{"duration", SW_YAML_DURATION, AT(duration)},
	{"integer", SW_YAML_INTEGER, AT(integer), .min = 1, .max = 64},
	{"milli", SW_YAML_MILLI, AT(milli), .min = 1000},
	{"ppm", SW_YAML_PPM, AT(ppm), .max = 1000000},
	{"bytes", SW_YAML_BYTES, AT(bytes), .max = INT64_C(1) << 40},
	{"rate", SW_YAML_RATE, AT(rate), .min = 1},
	{"truth", SW_YAML_BOOL, AT(truth)},
	{"word", SW_YAML_STRING, AT(word), .max = 5},
	{"choice", SW_YAML_CHOICE, AT(choice), .choices = choices},
	{"list", SW_YAML_LIST, AT(list), .max = 2},
	{"map", SW_YAML_MAP, AT(map)},
};
#undef AT

/* Every type is decoded into its C type; what the text does not mention stays as it was. */
static void test_decode(void **state)
{
	(void)state;
	SW_CLEANUP(sw_yaml_freep)
	struct sw_yaml *doc = parse("duration: 1.5h\ninteger: 64\nmilli: 1.2345\nppm: 0.5\nbytes: 2G\nrate: 1.5 GB/s\ntruth: true\nword: "
				    "'null'\nchoice: suspend\n"
				    "list: [a, b]\nmap: {c: d}\n");
	struct target target = {.choice = 9};
	struct sw_err err = {0};
	assert_int_equal(sw_yaml_decode(sw_yaml_root(doc), "a target", fields, SW_YAML_COUNT(fields), &target, &err), 0);
	assert_int_equal(target.duration, 5400 * SW_NS_PER_S);
	assert_int_equal(target.integer, 64);
	assert_int_equal(target.milli, 1235);
	assert_int_equal(target.ppm, 500000);
	assert_int_equal(target.bytes, UINT64_C(2) << 30);
	assert_int_equal(target.rate, 1500000000);
	assert_true(target.truth);
	assert_string_equal(target.word, "null");
	assert_int_equal(target.choice, 1);
	assert_int_equal(target.list->count, 2);
	assert_string_equal(target.map->first->key, "c");

	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *little = parse("integer: 1\n");
	struct target kept = {.milli = 77};
	assert_int_equal(sw_yaml_decode(sw_yaml_root(little), "a target", fields, SW_YAML_COUNT(fields), &kept, &err), 0);
	assert_int_equal(kept.milli, 77);
	assert_int_equal(kept.integer, 1);
}

/* Rates count in powers of 1000, with or without a space before the unit. */
static void test_rates(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t rate;
	} cases[] = {{"rate: 7\n", 7},
		     {"rate: 7 B/s\n", 7},
		     {"rate: 2kB/s\n", 2000},
		     {"rate: 0.5 MB/s\n", 500000},
		     {"rate: 55 GB/s\n", 55000000000},
		     {"rate: 1TB/s\n", 1000000000000}};
	for (size_t i = 0; i < SW_YAML_COUNT(cases); i++) {
		SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = parse(cases[i].text);
		struct target target = {0};
		assert_int_equal(sw_yaml_decode(sw_yaml_root(doc), "a target", fields, SW_YAML_COUNT(fields), &target, NULL), 0);
		assert_int_equal(target.rate, cases[i].rate);
	}
}

/* Powers are whole watts, with or without a unit. */
static void test_watts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t watts;
	} cases[] = {{"a: 300\n", 300}, {"a: 300W\n", 300}, {"a: 300 W\n", 300}, {"a: 1.25 kW\n", 1250}, {"a: 0.9\n", 0}};
	static const struct sw_yaml_field field = {"a", SW_YAML_WATTS, .max = 2000};
	for (size_t i = 0; i < SW_YAML_COUNT(cases); i++) {
		SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = parse(cases[i].text);
		int64_t watts = -1;
		assert_int_equal(sw_yaml_decode(sw_yaml_root(doc), "a target", &field, 1, &watts, NULL), 0);
		assert_int_equal(watts, cases[i].watts);
	}
	static const char *const wrong[] = {"a: 300 J\n", "a: -1 W\n", "a: 3 kW\n", "a: W\n"};
	for (size_t i = 0; i < SW_YAML_COUNT(wrong); i++) {
		SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = parse(wrong[i]);
		int64_t watts = -1;
		assert_int_equal(sw_yaml_decode(sw_yaml_root(doc), "a target", &field, 1, &watts, NULL), SW_EINPUT);
	}
}

/* Wrong values are refused in words that name line, key, what was found and what was expected. */
static void test_refused_values(void **state)
{
	(void)state;
	static const struct {
		const char *text, *detail;
	} cases[] = {
		{"duration: soon\n", "line 1: 'duration' is 'soon', expected a duration such as"},
		{"duration: -5s\n", "'duration' is '-5s', expected a duration"},
		{"duration: 4000d\n", "'duration' is 4000d, expected 0 s to 3650d 00:00:00"},
		{"duration: 1e300\n", "'duration' is '1e300', expected a duration"},
		{"duration: [1s]\n", "'duration' is a list, expected a duration"},
		{"duration:\n", "'duration' has no value, expected a duration"},
		{"duration: ~\n", "'duration' has no value"},
		{"integer: 65\n", "'integer' is 65, expected 1 to 64"},
		{"integer: 0\n", "'integer' is 0, expected 1 to 64"},
		{"integer: -1\n", "'integer' is -1, expected 1 to 64"},
		{"integer: 1.5\n", "'integer' is '1.5', expected a whole number"},
		{"integer: 0x10\n", "'integer' is '0x10', expected a whole number"},
		{"integer: 99999999999999999999\n", "'integer' is '99999999999999999999', expected a whole number"},
		{"milli: 0.999\n", "'milli' is 0.999, expected at least 1.000"},
		{"milli: .nan\n", "'milli' is '.nan', expected a decimal number"},
		{"milli: .inf\n", "'milli' is '.inf', expected a decimal number"},
		{"milli: nan\n", "'milli' is 'nan', expected a decimal number"},
		{"ppm: 1.5\n", "'ppm' is 1.5, expected 0.000000 to 1.000000"},
		{"bytes: 2T\n", "'bytes' is 2T, expected 0 B to 1.0 TiB"},
		{"bytes: 80 apples\n", "'bytes' is '80 apples', expected a size such as"},
		{"bytes: 16000000T\n", "'bytes' is '16000000T', expected a size"},
		{"rate: 0\n", "'rate' is 0, expected at least 1"},
		{"rate: fast\n", "'rate' is 'fast', expected a rate such as 55 GB/s"},
		{"truth: yes\n", "'truth' is 'yes', expected true or false"},
		{"truth: {a: b}\n", "'truth' is a map, expected true or false"},
		{"word: toolong\n", "'word' has 7 bytes, expected 1 to 5"},
		{"word: ''\n", "'word' has 0 bytes"},
		{"word: \"a\\nb\"\n", "'word' must be one line"},
		{"choice: suspnd\n", "'choice' is 'suspnd', expected one of free, suspend"},
		{"list: [1, 2, 3]\n", "'list' has 3 members, expected at most 2"},
		{"list: []\n", "'list' is empty"},
		{"list: word\n", "'list' is 'word', expected a list"},
		{"map: [1]\n", "'map' is a list, expected a map"},
		{"- 1\n", "expected a target, that is, a map of keys and values"},
	};
	for (size_t i = 0; i < SW_YAML_COUNT(cases); i++) {
		SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = parse(cases[i].text);
		struct sw_err err = {0};
		struct target target = {0};
		int r = sw_yaml_decode(sw_yaml_root(doc), "a target", fields, SW_YAML_COUNT(fields), &target, &err);
		if (r != SW_EINPUT)
			fail_msg("accepted: %s", cases[i].text);
		assert_has(err.detail, cases[i].detail);
	}
}

/* An unknown key names itself, its line, the nearest known key and all known keys; a
 * missing one is named too. */
static void test_keys(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct target target = {0};
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = parse("integer: 3\nduratoin: 3s\n");
	assert_int_equal(sw_yaml_decode(sw_yaml_root(doc), "a target", fields, SW_YAML_COUNT(fields), &target, &err), SW_EINPUT);
	assert_string_equal(err.detail, "line 2: 'duratoin' is not a key of a target; did you mean 'duration'?");
	assert_has(err.hint, "Known keys: duration, integer, milli");

	static const struct sw_yaml_field needed[] = {{"integer", SW_YAML_INTEGER, .required = false},
						      {"seed", SW_YAML_INTEGER, .required = true}};
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *lacking = parse("integer: 3\n");
	int64_t number = 0;
	sw_err_clear(&err);
	assert_int_equal(sw_yaml_decode(sw_yaml_root(lacking), "a run", needed, 2, &number, &err), SW_EINPUT);
	assert_string_equal(err.detail, "line 1: a run needs 'seed'");
}

/* A choice that is nearly right is suggested. */
static void test_choice_hint(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct target target = {0};
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = parse("choice: suspnd\n");
	assert_int_equal(sw_yaml_decode(sw_yaml_root(doc), "a target", fields, SW_YAML_COUNT(fields), &target, &err), SW_EINPUT);
	assert_string_equal(err.hint, "Did you mean 'suspend'?");
}

/* A file that is not there is an error about that file. */
static void test_missing_file(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct sw_yaml *doc = NULL;
	assert_int_equal(sw_yaml_load("test", "/nonexistent/x.yaml", &doc, &err), SW_ENOTFOUND);
	assert_has(err.fact, "/nonexistent/x.yaml");
	assert_null(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),  cmocka_unit_test(test_refused_yaml), cmocka_unit_test(test_binary),
		cmocka_unit_test(test_tab),   cmocka_unit_test(test_bounds),	   cmocka_unit_test(test_decode),
		cmocka_unit_test(test_rates), cmocka_unit_test(test_watts),	   cmocka_unit_test(test_refused_values),
		cmocka_unit_test(test_keys),  cmocka_unit_test(test_choice_hint),  cmocka_unit_test(test_missing_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
