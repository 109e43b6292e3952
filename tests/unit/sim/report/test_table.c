/* The table for the terminal: aligned, within its width, the best marked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "sim/report/table.h"
#include "unit/sim/report/fixture.h"

struct set {
	const struct sw_result *results[3];
	size_t count;
	struct sw_table_style style;
};

static int write_table(FILE *out, const void *context)
{
	const struct set *set = context;
	struct sw_err err = {0};
	return sw_results_table(out, set->results, set->count, &set->style, &err);
}

/* All lines of the box are equally wide, and no wider than allowed. Returns that width. */
static size_t check_box(const char *text, size_t limit)
{
	size_t width = 0;
	for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
		size_t length = strcspn(line, "\n");
		char *copy = strndup(line, length);
		size_t columns = sw_text_columns(copy);
		bool box = strncmp(copy, "\xE2\x94", 2) == 0 || copy[0] == '|' || copy[0] == '+';
		free(copy);
		if (!box)
			continue;
		if (width == 0)
			width = columns;
		assert_int_equal(columns, width);
	}
	assert_in_range(width, 1, limit);
	return width;
}

/* The whole of a small table. */
static void test_whole(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *fifo = fixture_empty("fifo");
	SW_CLEANUP(sw_result_freep) struct sw_result *las = fixture_empty("las");
	fixture_job(fifo, 0, 0, 10, 16);
	fixture_job(fifo, 0, 10, 10, 16);
	fixture_job(las, 0, 0, 10, 16);
	fixture_job(las, 0, 5, 10, 4)->preemptions = 1;
	sw_result_summarise(fifo);
	sw_result_summarise(las);
	const struct set set = {{fifo, las}, 2, {.plain = true}};
	char *text = fixture_text(write_table, &set);
	assert_string_equal(text,
			    "+--------------------------------------------------------------------------------------------------------+\n"
			    "| policy  avg JCT  median    p95    p99  avg queue  makespan  preempt  migrate     util  finished  cpu s |\n"
			    "+--------------------------------------------------------------------------------------------------------+\n"
			    "| fifo      15.00   15.00  19.50  19.90       5.00     20.00        0        0  100.0 %*      2/2   0.25 |\n"
			    "| las       12.50*  12.50* 14.75* 14.95*      2.50*    15.00*       1        0   83.3 %       2/2   0.25 |\n"
			    "+--------------------------------------------------------------------------------------------------------+\n"
			    "Times in seconds. JCT: from submit to end, of finished jobs. *: best.\n");
	free(text);
}

/* At every width the box fits, down to the columns that always stay. */
static void test_widths(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *fifo = fixture_busy("fifo", 3000, 90, 0);
	SW_CLEANUP(sw_result_freep) struct sw_result *las = fixture_busy("las with a very long name indeed", 3000, 1, 0);
	SW_CLEANUP(sw_result_freep)
	struct sw_result *umlaut = fixture_busy("gr\xC3\xB6\xC3\x9F"
						"er",
						3000, 2, 0);
	for (unsigned width = 50; width <= 200; width += 5) {
		for (int kind = 0; kind < 4; kind++) {
			struct set set = {{fifo, las, umlaut}, 3, {.width = width, .plain = kind & 1, .human = kind & 2}};
			char *text = fixture_text(write_table, &set);
			check_box(text, width);
			assert_non_null(strstr(text, "avg JCT"));
			/* What goes first is either in the head or named below. */
			char *head = strstr(text, "avg JCT"), *migrate = strstr(text, "migrate"), *left_out = strstr(text, "Left out");
			assert_non_null(migrate);
			assert_true(left_out == NULL ? migrate < strchr(head, '\n') : migrate > left_out);
			free(text);
		}
	}
	struct set standard = {{fifo, las, umlaut}, 3, {.width = 0}};
	char *text = fixture_text(write_table, &standard);
	assert_true(check_box(text, 120) > 100);
	free(text);
}

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;
	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
		count++;
	return count;
}

/* Equal rows have no best; a row that finished fewer jobs is not best, however short its
 * average. */
static void test_best(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *one = fixture_busy("one", 100, 1, 0);
	SW_CLEANUP(sw_result_freep) struct sw_result *same = fixture_busy("same", 100, 1, 0);
	struct set equal = {{one, same}, 2, {.plain = true, .width = 200}};
	char *text = fixture_text(write_table, &equal);
	assert_null(strchr(text, '*'));
	free(text);

	SW_CLEANUP(sw_result_freep) struct sw_result *few = fixture_empty("few");
	fixture_job(few, 0, 0, 1, 1);
	fixture_job(few, 0, 0, 1, 1)->state = SW_OUTCOME_FAILED;
	sw_result_summarise(few);
	struct set unfair = {{few, one}, 2, {.plain = true, .width = 200}};
	text = fixture_text(write_table, &unfair);
	char *row = strstr(text, "| few");
	assert_non_null(row);
	*strchr(row, '\n') = '\0';
	assert_null(strchr(row, '*'));
	assert_non_null(strchr(row + strlen(row) + 1, '*'));
	free(text);
}

/* Colours appear only when asked for, and then instead of asterisks. */
static void test_colour(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *slow = fixture_busy("slow", 100, 5, 0);
	SW_CLEANUP(sw_result_freep) struct sw_result *fast = fixture_busy("fast", 100, 1, 0);
	struct set set = {{slow, fast}, 2, {.colour = true}};
	char *text = fixture_text(write_table, &set);
	assert_true(count_of(text, "\033[1;32m") >= 4);
	assert_int_equal(count_of(text, "\033[1;32m"), count_of(text, "\033[0m"));
	assert_null(strchr(text, '*'));
	free(text);
	set.style.colour = false;
	text = fixture_text(write_table, &set);
	assert_null(strchr(text, '\033'));
	assert_non_null(strchr(text, '*'));
	free(text);
}

/* A name cannot send commands to the terminal or break the box. */
static void test_hostile(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_busy("a\033[2J\nb\xFF", 10, 1, 0);
	struct set set = {{result}, 1, {.plain = false}};
	char *text = fixture_text(write_table, &set);
	assert_null(strchr(text, '\033'));
	check_box(text, 120);
	free(text);
}

/* No results, no jobs, no finished jobs: a table without "nan". */
static void test_nothing(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *empty = fixture_empty("empty");
	SW_CLEANUP(sw_result_freep) struct sw_result *failed = fixture_empty("failed");
	fixture_job(failed, 0, 0, 1, 1)->state = SW_OUTCOME_FAILED;
	sw_result_summarise(empty);
	sw_result_summarise(failed);
	for (size_t count = 0; count <= 2; count++) {
		struct set set = {{empty, failed}, count, {.human = count & 1}};
		char *text = fixture_text(write_table, &set);
		check_box(text, 120);
		assert_null(strstr(text, "nan"));
		assert_null(strstr(text, "inf"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),  cmocka_unit_test(test_widths),  cmocka_unit_test(test_best),
		cmocka_unit_test(test_colour), cmocka_unit_test(test_hostile), cmocka_unit_test(test_nothing),
	};
	return cmocka_run_group_tests_name("sim/report/table", tests, NULL, NULL);
}
