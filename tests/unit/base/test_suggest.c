/* "Did you mean": slips are mended, other words are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/suggest.h"

static const char *const policies[] = {"fifo", "fjf", "sjf", "srtf", "srsf", "las", "gittins", "chaos"};

static const char *suggest(const char *word)
{
	return sw_suggest(word, policies, sizeof policies / sizeof policies[0], sizeof policies[0]);
}

/* A letter missing, doubled, wrong, swapped with its neighbour or in the other case leads to
 * the word that was meant. */
static void test_slips(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"fif", "fifo"},    {"fiffo", "fifo"}, {"fivo", "fifo"},      {"ffio", "fifo"},	      {"FIFO", "fifo"},
		{"lsa", "las"},	    {"Lass", "las"},   {"gitins", "gittins"}, {"gittens", "gittins"}, {"gtitins", "gittins"},
		{"chaso", "chaos"}, {"srft", "srtf"},  {"fifo", "fifo"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *found = suggest(cases[i][0]);
		assert_non_null(found);
		assert_string_equal(found, cases[i][1]);
	}
}

/* Words that are no slip of any name get no suggestion, and neither does a word of which
 * nothing would be left. */
static void test_strangers(void **state)
{
	(void)state;
	static const char *const cases[] = {"", "x", "f", "xy", "tetris", "round-robin", "gandiva", "--help"};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_null(suggest(cases[i]));
	static const char *const letters[] = {"a", "b"};
	assert_null(sw_suggest("x", letters, 2, sizeof letters[0]));
	static const char *const commands[] = {"top", "ps", "show"};
	assert_null(sw_suggest("nope", commands, 3, sizeof commands[0]));
	assert_string_equal(sw_suggest("pps", commands, 3, sizeof commands[0]), "ps");
	assert_string_equal(sw_suggest("pd", commands, 3, sizeof commands[0]), "ps");
}

/* Of several names the nearest wins; of equally near ones the first. */
static void test_nearest_wins(void **state)
{
	(void)state;
	static const char *const names[] = {"measures", "measured", "measure"};
	assert_string_equal(sw_suggest("measured", names, 3, sizeof names[0]), "measured");
	assert_string_equal(sw_suggest("measurex", names, 3, sizeof names[0]), "measures");
}

/* The stride lets the names be members of an array of structs; NULL and empty
 * names are passed over. */
static void test_stride(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int other[5];
	} entries[] = {{NULL, {0}}, {"", {1}}, {"quantum", {2}}, {"seed", {3}}};
	assert_string_equal(sw_suggest("sede", entries, 4, sizeof entries[0]), "seed");
	assert_null(sw_suggest("sede", entries, 3, sizeof entries[0]));
	assert_null(sw_suggest("sede", NULL, 0, 8));
}

/* Words and names beyond what is compared are left out instead of being cut. */
static void test_long_words(void **state)
{
	(void)state;
	char word[65], name[65];
	memset(word, 'a', 64);
	word[64] = '\0';
	memcpy(name, word, sizeof name);
	const char *names[] = {name};
	assert_null(sw_suggest(word, names, 1, sizeof names[0]));
	word[63] = '\0';
	assert_null(sw_suggest(word, names, 1, sizeof names[0]));
	name[63] = '\0';
	name[0] = 'b';
	assert_ptr_equal(sw_suggest(word, names, 1, sizeof names[0]), name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips),  cmocka_unit_test(test_strangers),  cmocka_unit_test(test_nearest_wins),
		cmocka_unit_test(test_stride), cmocka_unit_test(test_long_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
