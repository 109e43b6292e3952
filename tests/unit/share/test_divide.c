/* Memory is divided equally, as far as it is wanted, against a naive model that hands
 * out one byte at a time. */
#include "share/divide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

static uint64_t seed = 12345;

static uint64_t random_below(uint64_t end)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % end;
}

static uint64_t goal(const struct sw_divide_part *part, bool all)
{
	uint64_t wanted = all || part->most_bytes < part->want_bytes ? part->most_bytes : part->want_bytes;
	return wanted > part->least_bytes ? wanted : part->least_bytes;
}

/* To the member that has least of those that want more; the first of equals. */
static uint64_t hand_out(struct sw_divide_part *parts, size_t count, bool all, uint64_t left)
{
	for (; left > 0; left--) {
		struct sw_divide_part *next = NULL;
		for (size_t i = 0; i < count; i++)
			if (parts[i].got_bytes < goal(&parts[i], all) && (next == NULL || parts[i].got_bytes < next->got_bytes))
				next = &parts[i];
		if (next == NULL)
			return left;
		next->got_bytes++;
	}
	return 0;
}

static void divide_slowly(struct sw_divide_part *parts, size_t count, uint64_t bytes)
{
	uint64_t left = bytes;
	for (size_t i = 0; i < count; i++) {
		parts[i].got_bytes = parts[i].least_bytes;
		left = left > parts[i].least_bytes ? left - parts[i].least_bytes : 0;
	}
	hand_out(parts, count, true, hand_out(parts, count, false, left));
}

static void test_as_byte_by_byte(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct sw_divide_part parts[6] = {0}, slow[6];
		size_t count = 1 + random_below(6);
		for (size_t i = 0; i < count; i++)
			parts[i] = (struct sw_divide_part){.least_bytes = random_below(3) == 0 ? random_below(40) : 0,
							   .want_bytes = random_below(200),
							   .most_bytes = random_below(4) == 0 ? UINT64_MAX : random_below(250)};
		memcpy(slow, parts, sizeof slow);
		uint64_t bytes = random_below(700);
		sw_divide(parts, count, bytes);
		divide_slowly(slow, count, bytes);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(parts[i].got_bytes, slow[i].got_bytes);
	}
}

/* Figures as large as they can be do not wrap, and it ends. */
static void test_the_largest(void **state)
{
	(void)state;
	struct sw_divide_part parts[3] = {{.want_bytes = UINT64_MAX, .most_bytes = UINT64_MAX},
					  {.want_bytes = 1, .most_bytes = UINT64_MAX},
					  {.least_bytes = 5, .want_bytes = UINT64_MAX, .most_bytes = 7}};
	sw_divide(parts, 3, UINT64_MAX);
	assert_int_equal(parts[2].got_bytes, 7);
	assert_true(parts[0].got_bytes > UINT64_MAX / 2);
	sw_divide(parts, 3, 0);
	assert_int_equal(parts[2].got_bytes, 5);
	assert_int_equal(parts[0].got_bytes, 0);
	sw_divide(NULL, 0, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_byte_by_byte), cmocka_unit_test(test_the_largest)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
