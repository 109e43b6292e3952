/* docs/failures.md lists the classes that the table has. When they change, let this
 * test write the list anew:
 *	SHAREWELL_WRITE_DOCS=1 ctest --test-dir build/dev -R unit/failure/page
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "failure/failure.h"

#define PAGE SW_SOURCE_DIR "/docs/failures.md"
#define MARKER "<!-- From here on written from data/failures.yaml; see tests/unit/failure/test_page.c. -->\n"

static char *write_list(void)
{
	struct sw_failure_table *table = NULL;
	char *text = NULL;
	size_t size;
	assert_int_equal(sw_failure_load(NULL, &table, NULL), 0);
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	fputs(MARKER "\n| class | layer | tried again | what it means |\n|---|---|---|---|\n", out);
	for (uint32_t i = 0; i < sw_failure_count(table); i++) {
		const struct sw_failure_class *failure = sw_failure_at(table, i);
		fprintf(out, "| `%s`%s | %s | ", failure->name, failure->symptom ? " *" : "", sw_failure_layer_name(failure->layer));
		if (failure->action == SW_ACTION_NONE)
			fputs("no", out);
		else
			fprintf(out, "%s%u times%s", failure->free ? "at no cost, " : "", failure->budget,
				failure->action == SW_ACTION_ELSEWHERE ? ", elsewhere"
				: failure->action == SW_ACTION_MEMORY  ? ", with more GPU memory"
								       : "");
		fprintf(out, " | %s |\n", failure->says);
	}
	assert_int_equal(fclose(out), 0);
	sw_failure_free(table);
	return text;
}

/* The page says what the table says. */
static void test_page(void **state)
{
	(void)state;
	SW_CLEANUP(sw_freep) char *page = NULL, *list = write_list();
	size_t size;
	assert_int_equal(sw_file_read(PAGE, 1 << 20, &page, &size, NULL), 0);
	const char *marker = strstr(page, MARKER);
	assert_non_null(marker);
	if (getenv("SHAREWELL_WRITE_DOCS") != NULL) {
		FILE *out = fopen(PAGE, "w");
		assert_non_null(out);
		fprintf(out, "%.*s%s", (int)(marker - page), page, list);
		assert_int_equal(fclose(out), 0);
	} else if (strcmp(marker, list) != 0) {
		fail_msg("docs/failures.md is not what the table says; SHAREWELL_WRITE_DOCS=1 and this test write it anew");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
