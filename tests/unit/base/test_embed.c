/* The embedded files are those of the source tree, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/embed.h"
#include "base/file.h"

/* Every name in the table leads to the bytes of the file in the source tree,
 * with a zero behind them. */
static void test_same_as_source(void **state)
{
	(void)state;
	size_t count = 0;
	for (const char *name; (name = sw_embedded_name(count)) != NULL; count++) {
		char path[1000];
		snprintf(path, sizeof path, "%s/data/%s", SW_SOURCE_DIR, name);
		if (access(path, F_OK) != 0)
			snprintf(path, sizeof path, "%s/src/%s", SW_SOURCE_DIR, name);
		SW_CLEANUP(sw_freep) char *text = NULL;
		size_t size, embedded_size;
		assert_int_equal(sw_file_read(path, SIZE_MAX, &text, &size, NULL), 0);
		const char *embedded = sw_embedded(name, &embedded_size);
		assert_non_null(embedded);
		assert_int_equal(embedded_size, size);
		assert_memory_equal(embedded, text, size + 1);
	}
	assert_true(count > 0);
	assert_null(sw_embedded_name(count + 1));
	assert_null(sw_embedded_name(SIZE_MAX));
}

/* Names come in ascending order, so that lists of worlds do not depend on the machine
 * that built the program. */
static void test_order(void **state)
{
	(void)state;
	for (size_t i = 1; sw_embedded_name(i) != NULL; i++)
		assert_true(strcmp(sw_embedded_name(i - 1), sw_embedded_name(i)) < 0);
}

/* The worlds are there under their folder's name, and what is not there is not found. */
static void test_lookup(void **state)
{
	(void)state;
	assert_non_null(sw_embedded("worlds/ideal.yaml", NULL));
	size_t size = 77;
	assert_null(sw_embedded("ideal.yaml", &size));
	assert_null(sw_embedded("worlds/", &size));
	assert_null(sw_embedded("", &size));
	assert_int_equal(size, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_source),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_lookup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
