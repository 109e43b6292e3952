/* Words to values: every kind of option in every way to write it, and what is said
 * about words that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/parse.h"

struct values {
	bool flag, other;
	const char *text, *word, *file;
	struct sw_cli_texts many, rest;
	uint64_t count, milli;
	bool list;
};

static const char *colour(size_t index)
{
	static const char *const words[] = {"red", "green", "blue"};
	return index < 3 ? words[index] : NULL;
}

static const struct sw_cli_words colours = {.at = colour};

#define AT(member) .offset = offsetof(struct values, member)
static const struct sw_cli_option options[] = {
	{"flag", 'f', .about = "a flag", AT(flag)},
	{"other", 'o', .about = "another", AT(other)},
	{"text", 't', .kind = SW_CLI_TEXT, "TEXT", .about = "any text", .required = true, AT(text)},
	{"many", 'm', .kind = SW_CLI_TEXTS, "TEXT", .about = "any texts", AT(many)},
	{"word", 'w', .kind = SW_CLI_WORD, "WORD", "red", "a colour", &colours, AT(word)},
	{"count", 'c', .kind = SW_CLI_COUNT, "N", "7", "a count", .least = 1, .most = 1000, AT(count)},
	{"milli", .kind = SW_CLI_MILLI, .argument = "X", .preset = "0.5", .about = "a share", .most = 1000, AT(milli)},
	{"list", 'l', .about = "instead of all else", .alone = true, AT(list)},
};
static const struct sw_cli_option operands[] = {
	{"FILE", .kind = SW_CLI_TEXT, .required = true, .about = "a file", AT(file)},
	{"REST", .kind = SW_CLI_TEXTS, .about = "more", AT(rest)},
};
static const struct sw_cli_example examples[] = {{"sharewell test --text x y", "try it"}};

static const struct sw_cli_command command = {
	.name = "test",
	.about = "a command for tests",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
};

static struct values values;
static struct sw_err err;
static bool help;

/* The words, NULL behind the last; they outlive the call as a command line does. */
static int parse(const char *const *words)
{
	static char storage[32][64];
	char *argv[33] = {storage[0]};
	int argc = 1;
	strcpy(storage[0], "test");
	for (; words[argc - 1] != NULL; argc++) {
		assert_true(argc < 32 && strlen(words[argc - 1]) < sizeof storage[0]);
		argv[argc] = strcpy(storage[argc], words[argc - 1]);
	}
	err = (struct sw_err){0};
	help = false;
	return sw_cli_parse(&command, argc, argv, &values, &help, &err);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void release(void)
{
	sw_cli_release(&command, &values);
}

/* What is not given has its preset, or nothing. */
static void test_presets(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--text", "x", "file"), 0);
	assert_false(values.flag);
	assert_string_equal(values.text, "x");
	assert_string_equal(values.word, "red");
	assert_string_equal(values.file, "file");
	assert_int_equal(values.count, 7);
	assert_int_equal(values.milli, 500);
	assert_int_equal(values.many.count, 0);
	assert_int_equal(values.rest.count, 0);
	release();
}

/* Long and short, joined and apart, together and shortened, before and behind the
 * operands: all mean the same. */
static void test_ways_to_write(void **state)
{
	(void)state;
	static const char *const ways[][8] = {
		{"--flag", "--other", "--text=a=b", "--count=12", "--word=blue", "file", NULL},
		{"file", "-fo", "-t", "a=b", "-c12", "-wblue", NULL},
		{"-of", "-ta=b", "file", "--cou", "12", "--wo=blue", NULL},
		{"-foc12", "-wblue", "-ta=b", "--", "file", NULL},
	};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		assert_int_equal(parse(ways[i]), 0);
		assert_true(values.flag && values.other);
		assert_string_equal(values.text, "a=b");
		assert_string_equal(values.word, "blue");
		assert_string_equal(values.file, "file");
		assert_int_equal(values.count, 12);
		release();
	}
}

/* A list keeps all its texts in order; of any other option the last counts. */
static void test_repeated(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-m", "a,b", "--many=c", "-t1", "-t2", "file", "r1", "r2", "-m", ""), 0);
	assert_int_equal(values.many.count, 3);
	assert_string_equal(values.many.items[0], "a,b");
	assert_string_equal(values.many.items[1], "c");
	assert_string_equal(values.many.items[2], "");
	assert_string_equal(values.text, "2");
	assert_int_equal(values.rest.count, 2);
	assert_string_equal(values.rest.items[1], "r2");
	release();
}

/* Behind two dashes everything is an operand; one dash alone is one anywhere. */
static void test_dashes(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-tx", "--", "--flag", "-c"), 0);
	assert_string_equal(values.file, "--flag");
	assert_string_equal(values.rest.items[0], "-c");
	assert_false(values.flag);
	release();
	assert_int_equal(PARSE("-", "-tx"), 0);
	assert_string_equal(values.file, "-");
	release();
}

/* Help needs nothing else and hides what is wrong behind it. */
static void test_help(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--help"), 0);
	assert_true(help);
	release();
	assert_int_equal(PARSE("-m", "x", "-h", "--nonsense"), 0);
	assert_true(help);
	release();
}

/* An option that stands alone needs neither the required options nor the operands. */
static void test_alone(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--list"), 0);
	assert_true(values.list);
	release();
}

/* Each mistake is told by name, and by the nearest right one where there is one. Nothing is leaked:
 * the sanitizer watches. */
static void test_mistakes(void **state)
{
	(void)state;
	static const struct {
		const char *words[5];
		const char *fact, *hint;
	} cases[] = {
		{{"--txet", "x"}, "unknown option '--txet'", "Did you mean '--text'?"},
		{{"--txet=x"}, "unknown option '--txet'", "Did you mean '--text'?"},
		{{"--quite-different"}, "unknown option '--quite-different'", "See 'sharewell test --help'."},
		{{"-m", "x", "-fz"}, "unknown option '-z'", "See 'sharewell test --help'."},
		{{"--text"}, "option '--text' needs a value", "See 'sharewell test --help'."},
		{{"-ft"}, "option '-ft' needs a value", "See 'sharewell test --help'."},
		{{"--flag=1"}, "option '--flag' takes no value", "See 'sharewell test --help'."},
		{{"file"}, "'sharewell test' needs --text TEXT", "For example: sharewell test --text x y"},
		{{"-tx"}, "'sharewell test' needs FILE", "For example: sharewell test --text x y"},
		{{"--word", "gren"}, "unknown value of --word 'gren'", "Did you mean 'green'?"},
		{{"--word", "mauve"}, "unknown value of --word 'mauve'", "There are: red, green, blue."},
		{{"--count", "0"}, "--count cannot be '0'", "See 'sharewell test --help'."},
		{{"--count", "1001"}, "--count cannot be '1001'", "See 'sharewell test --help'."},
		{{"--count", "-5"}, "--count cannot be '-5'", "See 'sharewell test --help'."},
		{{"--count", "1e2"}, "--count cannot be '1e2'", "See 'sharewell test --help'."},
		{{"--count", ""}, "--count cannot be ''", "See 'sharewell test --help'."},
		{{"--count", "99999999999999999999"}, "--count cannot be '99999999999999999999'", "See 'sharewell test --help'."},
		{{"--milli", "1.001"}, "--milli cannot be '1.001'", "See 'sharewell test --help'."},
		{{"--milli", "-0.1"}, "--milli cannot be '-0.1'", "See 'sharewell test --help'."},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(parse(cases[i].words), SW_EINPUT);
		assert_string_equal(err.fact, cases[i].fact);
		assert_string_equal(err.hint, cases[i].hint);
	}
}

/* A long word in a message is cut, not overrun, and a prefix that two options
 * share is told as that. */
static void test_ambiguous(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--m", "x"), SW_EINPUT);
	assert_string_equal(err.fact, "option '--m' is ambiguous");
	assert_string_equal(err.hint, "Did you mean '--many' or '--milli'?");
	assert_int_equal(PARSE("--xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), SW_EINPUT);
}

/* A list has a bound, and reaching it is an error like any other. */
static void test_bound(void **state)
{
	(void)state;
	static char *argv[SW_CLI_TEXTS_MAX + 2];
	static char name[] = "test", word[] = "-mx";
	argv[0] = name;
	for (size_t i = 1; i <= SW_CLI_TEXTS_MAX + 1; i++)
		argv[i] = word;
	err = (struct sw_err){0};
	assert_int_equal(sw_cli_parse(&command, SW_CLI_TEXTS_MAX + 2, argv, &values, &help, &err), SW_ELIMIT);
}

struct followed {
	struct sw_cli_texts words;
	bool noheader;
};
static const struct sw_cli_option followed_options[] = {
	{"noheader", 'h', .about = "x", .offset = offsetof(struct followed, noheader)},
};
static const struct sw_cli_option followed_operands[] = {
	{"WORDS", .kind = SW_CLI_TEXTS, .about = "x", .offset = offsetof(struct followed, words)},
};

/* Where a command line of another program follows, options end at its first word; a letter h of
 * one's own is not help. */
static void test_words_follow(void **state)
{
	(void)state;
	const struct sw_cli_command follows = {.name = "x",
					       .words_follow = true,
					       SW_CLI_OPTIONS(followed_options),
					       SW_CLI_OPERANDS(followed_operands),
					       .values_size = sizeof(struct followed)};
	char words[][12] = {"x", "-h", "python", "--help", "-h"};
	char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};
	struct followed taken;
	struct sw_err problem = {0};
	bool asked = true;
	assert_int_equal(sw_cli_parse(&follows, 5, argv, &taken, &asked, &problem), 0);
	assert_false(asked);
	assert_true(taken.noheader);
	assert_int_equal(taken.words.count, 3);
	assert_string_equal(taken.words.items[1], "--help");
	sw_cli_release(&follows, &taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_presets),	     cmocka_unit_test(test_ways_to_write), cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_dashes),	     cmocka_unit_test(test_help),	   cmocka_unit_test(test_alone),
		cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_ambiguous),	   cmocka_unit_test(test_bound),
		cmocka_unit_test(test_words_follow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
