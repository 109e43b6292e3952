/* Parameters of policies, from text to what the policy reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "core/params.h"

enum { WHOLE, ANY, PART, TIME, LIST, SWITCH, FILE_, WORD, COUNT };

static const struct sw_param params[] = {
	[WHOLE] = {"whole", SW_PARAM_INTEGER, "7", "a whole number", -3, 10},
	[ANY] = {"any", SW_PARAM_INTEGER, "5", "any that is not negative", 0, 0},
	[PART] = {"part", SW_PARAM_MILLI, "0.5", "a decimal", 0, 2000},
	[TIME] = {"time", SW_PARAM_DURATION, "90s", "a duration", 1000000, 3600 * SW_NS_PER_S},
	[LIST] = {"list", SW_PARAM_NUMBERS, "1,20,300", "whole numbers", 1, 1000},
	[SWITCH] = {"switch", SW_PARAM_FLAG, "on", "on or off", 0, 1},
	[WORD] = {"word", SW_PARAM_CHOICE, "left/right/up", "one of three", 0, 0},
	[FILE_] = {"file", SW_PARAM_FILE_OF_NUMBERS, "", "numbers, one per line", 0, 0},
};

static const struct sw_policy policy = {.abi = SW_POLICY_ABI, .name = "tuned", .about = "", .params = params, .param_count = COUNT};

static struct sw_params *make(void)
{
	struct sw_params *values = NULL;
	assert_int_equal(sw_params_new(&policy, &values, NULL), 0);
	return values;
}

static int set(struct sw_params *values, int which, const char *text, struct sw_err *err)
{
	return sw_params_set(values, &params[which], text, strlen(text), err);
}

static void expect_number(int which, const char *text, int64_t number)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
	struct sw_err err = {0};
	if (set(values, which, text, &err) < 0)
		fail_msg("'%s' for %s: %s: %s", text, params[which].name, err.fact, err.detail);
	assert_int_equal(values->values[which].number, number);
}

/* A text that is refused with these words, and leaves the value as it was. */
static void expect_refusal(int which, const char *text, const char *words)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
	SW_CLEANUP(sw_params_freep) struct sw_params *preset = make();
	struct sw_err err = {0};
	char line[1400];
	assert_int_equal(set(values, which, text, &err), SW_EINPUT);
	sw_err_format(&err, line, sizeof line);
	if (strstr(line, words) == NULL || strstr(err.fact, params[which].name) == NULL)
		fail_msg("'%s' for %s gave '%s', which does not say '%s'", text, params[which].name, line, words);
	assert_int_equal(values->values[which].number, preset->values[which].number);
	assert_int_equal(values->values[which].count, preset->values[which].count);
}

/* Aim: every parameter starts with its preset; a file starts empty. */
static void test_presets(void **state)
{
	(void)state;
	SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
	assert_int_equal(values->values[WHOLE].number, 7);
	assert_int_equal(values->values[ANY].number, 5);
	assert_int_equal(values->values[PART].number, 500);
	assert_int_equal(values->values[TIME].number, 90 * SW_NS_PER_S);
	assert_int_equal(values->values[LIST].count, 3);
	assert_int_equal(values->values[LIST].list[2], 300);
	assert_int_equal(values->values[SWITCH].number, 1);
	assert_int_equal(values->values[FILE_].count, 0);
}

/* Aim: numbers, decimals, durations and switches are read as people write
 * them, up to their bounds. */
static void test_numbers(void **state)
{
	(void)state;
	expect_number(WHOLE, "-3", -3);
	expect_number(WHOLE, "10", 10);
	expect_number(ANY, "0", 0);
	expect_number(ANY, "9223372036854775807", INT64_MAX);
	expect_number(PART, "0", 0);
	expect_number(PART, "2", 2000);
	expect_number(PART, "1.2345", 1235);
	expect_number(TIME, "1ms", SW_NS_PER_MS);
	expect_number(TIME, "0.5h", 1800 * SW_NS_PER_S);
	expect_number(TIME, "15m", 900 * SW_NS_PER_S);
	expect_number(SWITCH, "on", 1);
	expect_number(SWITCH, "true", 1);
	expect_number(SWITCH, "1", 1);
	expect_number(SWITCH, "off", 0);
	expect_number(SWITCH, "false", 0);
	expect_number(SWITCH, "0", 0);
	expect_number(WORD, "left", 0);
	expect_number(WORD, "up", 2);
}

/* Aim: what is out of range or no number is refused with the bounds or an
 * example, and changes nothing. */
static void test_refused_numbers(void **state)
{
	(void)state;
	expect_refusal(WHOLE, "11", "from -3 to 10");
	expect_refusal(WHOLE, "-4", "from -3 to 10");
	expect_refusal(WHOLE, "", "a whole number");
	expect_refusal(WHOLE, "7x", "a whole number");
	expect_refusal(WHOLE, "7.5", "preset is 7");
	expect_refusal(WHOLE, "99999999999999999999", "a whole number");
	expect_refusal(ANY, "-1", "must not be negative");
	expect_refusal(PART, "2.001", "it goes from");
	expect_refusal(PART, "nan", "a number");
	expect_refusal(TIME, "soon", "90s, 15m or 2h");
	expect_refusal(TIME, "2h", "it goes from");
	expect_refusal(TIME, "-5s", "a duration");
	expect_refusal(SWITCH, "maybe", "on or off");
	expect_refusal(SWITCH, "ON ", "on or off");
	expect_refusal(SWITCH, "", "on or off");
	expect_refusal(WORD, "down", "one of these words: left/right/up");
	expect_refusal(WORD, "left/right", "one of these words");
	expect_refusal(WORD, "", "one of these words");
}

/* Aim: bounds of decimals and durations are told in the units in which people write them. */
static void test_bounds_in_the_users_units(void **state)
{
	(void)state;
	expect_refusal(PART, "2.001", "from 0 to 2");
	SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
	struct sw_err err = {0};
	assert_int_equal(set(values, PART, "2.5", &err), SW_EINPUT);
	assert_null(strstr(err.fact, "2500"));
	assert_null(strstr(err.detail, "2000"));
	sw_err_clear(&err);
	assert_int_equal(set(values, TIME, "2h", &err), SW_EINPUT);
	assert_null(strstr(err.fact, "7200000000000"));
	assert_null(strstr(err.detail, "3600000000000"));
}

/* Aim: a list is whole numbers with commas between them; it may be empty, and it
 * replaces the one before. */
static void test_lists(void **state)
{
	(void)state;
	SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
	assert_int_equal(set(values, LIST, "5", NULL), 0);
	assert_int_equal(values->values[LIST].count, 1);
	assert_int_equal(values->values[LIST].list[0], 5);
	assert_int_equal(set(values, LIST, "1000,1,7", NULL), 0);
	assert_int_equal(values->values[LIST].count, 3);
	assert_int_equal(values->values[LIST].list[0], 1000); /* as given: order may mean something */
	assert_int_equal(set(values, LIST, "", NULL), 0);
	assert_int_equal(values->values[LIST].count, 0);
	expect_refusal(LIST, "1,0", "it goes from 1 to 1000");
	expect_refusal(LIST, "1,1001", "it goes from 1 to 1000");
	expect_refusal(LIST, "1,,2", "commas between them");
	expect_refusal(LIST, ",1", "commas between them");
	expect_refusal(LIST, "1 2", "commas between them");
	expect_refusal(LIST, "1,x", "commas between them");
	expect_refusal(LIST, "1,2,", "commas between them");
}

/* Aim: a file of numbers may have a header, further columns, empty lines and either line ending;
 * the numbers come out sorted. */
static void test_files(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"30\n10\n20\n",
		"30\n10\n20",
		"gpu_time\n30\n10\n20\n",
		"30,a,b\n10\n20,\n",
		"gpu_time,x\r\n30,1\r\n\r\n10,2\r\n20,3\r\n",
		"\n30\n\n10\n20\n",
	};
	for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
		SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
		struct sw_err err = {0};
		if (set(values, FILE_, texts[t], &err) < 0)
			fail_msg("text %zu: %s", t, err.fact);
		assert_int_equal(values->values[FILE_].count, 3);
		for (int i = 0; i < 3; i++)
			assert_int_equal(values->values[FILE_].list[i], 10 * (i + 1));
	}
	expect_refusal(FILE_, "1\ntwo\n3\n", "line 2");
	expect_refusal(FILE_, "1\n2\n-3\n", "line 3");
	expect_refusal(FILE_, "head\nhead\n", "line 2");
}

/* Aim: bytes that are no text do not harm: they are refused or read as a header. */
static void test_binary_files(void **state)
{
	(void)state;
	SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
	const char bytes[] = {'1', '\0', '\n', (char)0xff, (char)0xfe, '\n', '2'};
	assert_int_equal(sw_params_set(values, &params[FILE_], bytes, sizeof bytes, NULL), SW_EINPUT);
	assert_int_equal(sw_params_set(values, &params[FILE_], NULL, 0, NULL), 0);
	assert_int_equal(values->values[FILE_].count, 0);
}

/* Aim: there is a bound on how many numbers a parameter takes. */
static void test_too_many_numbers(void **state)
{
	(void)state;
	SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
	size_t size = 2 * (size_t)(SW_PARAM_LIST_MAX + 1);
	SW_CLEANUP(sw_freep) char *text = malloc(size);
	assert_non_null(text);
	for (int which = LIST; which <= FILE_; which += FILE_ - LIST) {
		for (size_t i = 0; i < size; i += 2) {
			text[i] = '1';
			text[i + 1] = which == LIST ? ',' : '\n';
		}
		assert_true(sw_params_set(values, &params[which], text, size - 1, NULL) < 0);
		assert_int_equal(sw_params_set(values, &params[which], text, size - 3, NULL), 0);
		assert_int_equal(values->values[which].count, SW_PARAM_LIST_MAX);
	}
}

/* Aim: an unknown name is refused with the nearest one that exists. */
static void test_names(void **state)
{
	(void)state;
	struct sw_err err = {0};
	assert_ptr_equal(sw_params_find(&policy, "switch", &err), &params[SWITCH]);
	assert_int_equal(err.code, 0);
	assert_null(sw_params_find(&policy, "swich", &err));
	assert_int_equal(err.code, SW_EINPUT);
	assert_non_null(strstr(err.fact, "'tuned' has no parameter 'swich'"));
	assert_non_null(strstr(err.hint, "'tuned.switch'"));
	sw_err_clear(&err);
	assert_null(sw_params_find(&policy, "qqqqqqqqqqqqqqqq", &err));
	assert_null(strstr(err.hint, "Did you mean"));
	sw_err_clear(&err);
	const struct sw_policy plain = {.abi = SW_POLICY_ABI, .name = "plain", .about = ""};
	assert_null(sw_params_find(&plain, "x", &err));
	assert_non_null(strstr(err.hint, "no parameters"));
	assert_null(sw_params_find(&policy, "", NULL));
}

/* Aim: a policy whose own preset makes no sense does not get values; that is its
 * author's mistake, not a crash. */
static void test_bad_preset(void **state)
{
	(void)state;
	static const struct sw_param wrong[] = {{"odd", SW_PARAM_INTEGER, "x", "", 0, 0}};
	const struct sw_policy broken = {.abi = SW_POLICY_ABI, .name = "broken", .about = "", .params = wrong, .param_count = 1};
	struct sw_params *values = NULL;
	assert_int_equal(sw_params_new(&broken, &values, NULL), SW_EINPUT);
	assert_null(values);
}

/* The text of a value sets the same value again. */
static void test_text(void **state)
{
	(void)state;
	static const struct {
		int which;
		const char *text;
	} cases[] = {{WHOLE, "-3"}, {PART, "1.25"},  {TIME, "90s"},   {TIME, "1500ms"},	   {LIST, "1,1000,7"},
		     {LIST, ""},    {SWITCH, "off"}, {WORD, "right"}, {FILE_, "3\n1\n2\n"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		SW_CLEANUP(sw_params_freep) struct sw_params *values = make();
		SW_CLEANUP(sw_params_freep) struct sw_params *again = make();
		assert_int_equal(set(values, cases[i].which, cases[i].text, NULL), 0);
		SW_CLEANUP(sw_freep) char *text = sw_params_text(values, (size_t)cases[i].which);
		assert_int_equal(set(again, cases[i].which, text, NULL), 0);
		const struct sw_value *x = &values->values[cases[i].which], *y = &again->values[cases[i].which];
		assert_int_equal(x->number, y->number);
		assert_int_equal(x->count, y->count);
		if (x->count > 0)
			assert_memory_equal(x->list, y->list, x->count * sizeof *x->list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_refused_numbers),
		cmocka_unit_test(test_bounds_in_the_users_units),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_binary_files),
		cmocka_unit_test(test_too_many_numbers),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bad_preset),
		cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
