/* Log lines that come too often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/often.h"

/* A line that comes a thousand times in its time is said once, and the next
 * word counts the others. */
static void test_once_in_a_while(void **state)
{
	(void)state;
	struct sw_often often = {0};
	uint64_t missed = 77;
	int said = 0;
	for (int64_t now = 0; now < 1000; now++)
		said += sw_often_may(&often, now, 1000, &missed);
	assert_int_equal(said, 1);
	assert_int_equal(missed, 0);
	assert_true(sw_often_may(&often, 1000, 1000, &missed));
	assert_int_equal(missed, 999);
	assert_false(sw_often_may(&often, 1001, 1000, &missed));
	assert_true(sw_often_may(&often, 9000, 1000, &missed));
	assert_int_equal(missed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_once_in_a_while)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
