/* Errors as people read them: the first one wins, the text need not be wanted, nothing
 * overflows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

/* Fact, detail and hint read as one line, and parts that are missing leave no punctuation
 * behind. */
static void test_format(void **state)
{
	(void)state;
	char line[200];
	struct sw_err err = {0};
	assert_int_equal(sw_err_set(&err, SW_EINPUT, "cannot read trace '%s'", "x.csv"), SW_EINPUT);
	sw_err_format(&err, line, sizeof line);
	assert_string_equal(line, "cannot read trace 'x.csv'");
	sw_err_hint(&err, "See `sharewell trace --help`.");
	sw_err_format(&err, line, sizeof line);
	assert_string_equal(line, "cannot read trace 'x.csv'. See `sharewell trace --help`.");
	sw_err_detail(&err, "line %d has %d columns, expected %d", 17, 4, 7);
	sw_err_format(&err, line, sizeof line);
	assert_string_equal(line, "cannot read trace 'x.csv': line 17 has 4 columns, expected 7. See `sharewell trace --help`.");
}

/* The first error, the first detail and the first hint stay; each call returns its
 * own code all the same. */
static void test_first_wins(void **state)
{
	(void)state;
	struct sw_err err = {0};
	assert_int_equal(sw_err_set(&err, SW_EIO, "first"), SW_EIO);
	sw_err_detail(&err, "cause");
	assert_int_equal(sw_err_set(&err, SW_ENOMEM, "second"), SW_ENOMEM);
	sw_err_detail(&err, "later");
	assert_int_equal(err.code, SW_EIO);
	assert_string_equal(err.fact, "first");
	assert_string_equal(err.detail, "cause");
	sw_err_clear(&err);
	assert_int_equal(err.code, 0);
	assert_int_equal(sw_err_set(&err, SW_ENOMEM, "second"), SW_ENOMEM);
	assert_string_equal(err.fact, "second");
	assert_string_equal(err.detail, "");
}

/* Detail and hint of an error that was never set are dropped, so that no hint stands alone. */
static void test_nothing_without_fact(void **state)
{
	(void)state;
	struct sw_err err = {0};
	sw_err_detail(&err, "cause");
	sw_err_hint(&err, "advice");
	assert_int_equal(err.code, 0);
	assert_string_equal(err.detail, "");
	assert_string_equal(err.hint, "");
}

/* Every function takes NULL where the text is not wanted. */
static void test_nobody_listens(void **state)
{
	(void)state;
	assert_int_equal(sw_err_set(NULL, SW_EBUG, "%d", 1), SW_EBUG);
	sw_err_detail(NULL, "%d", 1);
	sw_err_hint(NULL, "%d", 1);
	sw_err_clear(NULL);
}

/* Texts longer than their field are cut and terminated, and so is the line. */
static void test_bounds(void **state)
{
	(void)state;
	char text[2000];
	memset(text, 'y', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	struct sw_err err = {0};
	sw_err_set(&err, SW_EINPUT, "%s", text);
	sw_err_detail(&err, "%s", text);
	sw_err_hint(&err, "%s", text);
	assert_int_equal(strlen(err.fact), sizeof err.fact - 1);
	assert_int_equal(strlen(err.detail), sizeof err.detail - 1);
	assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
	char line[12];
	memset(line, '#', sizeof line);
	sw_err_format(&err, line, 10);
	assert_string_equal(line, "yyyyyyyyy");
	assert_int_equal(line[10], '#');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),	       cmocka_unit_test(test_first_wins), cmocka_unit_test(test_nothing_without_fact),
		cmocka_unit_test(test_nobody_listens), cmocka_unit_test(test_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
