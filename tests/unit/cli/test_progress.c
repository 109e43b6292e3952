/* The progress bar fits its terminal and tells the truth, whatever the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "cli/progress.h"

static char text[2000];

static const char *format(unsigned width, bool utf8, uint64_t total, uint64_t done, int64_t elapsed_ns, const char *label)
{
	struct sw_cli_progress progress = {.width = width, .utf8 = utf8, .total = total};
	memset(text, '#', sizeof text);
	sw_cli_progress_format(&progress, done, elapsed_ns, label, text, sizeof text);
	return text;
}

/* Half done in two seconds is two seconds more. */
static void test_figures(void **state)
{
	(void)state;
	format(120, false, 2000, 1000, 2000000000, "las; 1 of 2 done");
	assert_non_null(strstr(text, " 50 %  1,000 of 2,000 jobs  500/s  2 s left"));
	assert_non_null(strstr(text, "[####################....................]"));
	assert_non_null(strstr(text, "  las; 1 of 2 done"));
}

/* Never wider than the terminal less one column, in bytes of ASCII and in characters of UTF-8;
 * never a control character. */
static void test_width(void **state)
{
	(void)state;
	for (unsigned width = 1; width <= 200; width++) {
		for (int utf8 = 0; utf8 < 2; utf8++) {
			format(width, utf8, 123456789, width * 600000, 5000000000, "a label of some length, or two");
			assert_true(sw_text_columns(text) < width || text[0] == '\0');
			assert_null(strpbrk(text, "\r\n\033"));
		}
	}
}

/* Nothing to do, more done than there was, no time passed: no division by
 * nothing, no more than all. */
static void test_edges(void **state)
{
	(void)state;
	assert_non_null(strstr(format(80, true, 0, 0, 0, NULL), "100 %"));
	assert_non_null(strstr(format(80, true, 10, 11, 1000000000, ""), "100 %  10 of 10 jobs"));
	assert_null(strstr(format(80, true, 10, 0, 0, ""), "left"));
	assert_non_null(strstr(format(80, false, UINT64_MAX, UINT64_MAX / 2, INT64_MAX, ""), " %"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_figures), cmocka_unit_test(test_width), cmocka_unit_test(test_edges)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
