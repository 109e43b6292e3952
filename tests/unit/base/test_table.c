/* A table is an array by number in which stretches of forgotten numbers cost nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/table.h"

struct thing {
	uint64_t number, twice;
	char more[40];
};
typedef SW_TABLE(struct thing) things;

#define MANY 50000u

static void fill(things *table, size_t count)
{
	while (table->count < count) {
		assert_int_equal(sw_table_reserve(table, table->count + 1), 0);
		struct thing *thing = &table->items[table->count];
		assert_int_equal(thing->number, 0);
		thing->number = table->count + 1;
		thing->twice = 2 * thing->number;
		table->count++;
	}
}

static size_t resident_pages(const things *table)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (table->room * sizeof table->items[0] + page - 1) / page, resident = 0;
	unsigned char *marks = malloc(pages);
	assert_non_null(marks);
	assert_int_equal(mincore(table->items, table->room * sizeof table->items[0], marks), 0);
	for (size_t i = 0; i < pages; i++)
		resident += marks[i] & 1;
	free(marks);
	return resident;
}

/* Numbers around a stretch that was cleared keep what they hold, also when the table grows; what
 * was cleared is zero and takes no memory. */
static void test_clears(void **state)
{
	(void)state;
	things table = {0};
	fill(&table, MANY);
	size_t before = resident_pages(&table);
	sw_table_clear(&table, 1001, MANY - 7);
	assert_true(resident_pages(&table) < before / 10);
	fill(&table, 2 * MANY);
	for (size_t i = 0; i < table.count; i++) {
		bool gone = i >= 1001 && i < MANY - 7;
		assert_int_equal(table.items[i].number, gone ? 0 : i + 1);
		assert_int_equal(table.items[i].twice, gone ? 0 : 2 * (i + 1));
	}
	sw_table_clear(&table, 2 * MANY - 1, 9 * MANY);
	assert_int_equal(table.items[2 * MANY - 2].number, 2 * MANY - 1);
	assert_int_equal(table.items[2 * MANY - 1].number, 0);
	sw_table_free(&table);
	assert_null(table.items);
	assert_int_equal(table.room, 0);
}

/* Small ones behave in the same way. */
static void test_small(void **state)
{
	(void)state;
	things table = {0};
	fill(&table, 20);
	sw_table_clear(&table, 3, 5);
	sw_table_clear(&table, 7, 7);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(table.items[i].number, i == 3 || i == 4 ? 0 : i + 1);
	sw_table_free(&table);
}

/* More than can be counted is refused and changes nothing. */
static void test_too_much(void **state)
{
	(void)state;
	things table = {0};
	fill(&table, 3);
	assert_int_equal(sw_table_reserve(&table, SIZE_MAX / 2), SW_ENOMEM);
	assert_int_equal(table.items[2].number, 3);
	sw_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clears),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_too_much),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
