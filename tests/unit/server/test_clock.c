/* The controller's clock under machines whose clocks jump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/clock.h"

/* It starts at the real time, and then follows the uptime alone. */
static void test_follows_uptime(void **state)
{
	(void)state;
	struct sw_clock clock;
	sw_clock_start(&clock, 100, 5000, 0);
	assert_int_equal(sw_clock_read(&clock, 100), 5000);
	assert_int_equal(sw_clock_read(&clock, 350), 5250);
	/* An uptime that goes back, as no kernel should show it, stands still instead. */
	assert_int_equal(sw_clock_read(&clock, 200), 5250);
	assert_int_equal(sw_clock_read(&clock, 351), 5251);
}

/* A wall clock that was set back before a restart does not bring the clock behind the journal. */
static void test_floor(void **state)
{
	(void)state;
	struct sw_clock clock;
	sw_clock_start(&clock, 100, 5000, 9000);
	assert_int_equal(sw_clock_read(&clock, 100), 9000);
	assert_int_equal(sw_clock_read(&clock, 101), 9001);
}

/* A wall clock that is wrong by centuries is not believed, so that the records that follow can be
 * read again, and the clock is right again once the machine's is. */
static void test_nonsense(void **state)
{
	(void)state;
	struct sw_clock clock;
	const int64_t year_ns = INT64_C(365) * 86400 * 1000000000;
	sw_clock_start(&clock, 100, 150 * year_ns, 5000);
	assert_int_equal(sw_clock_read(&clock, 101), 5001);
	sw_clock_start(&clock, 100, INT64_MAX, 0);
	assert_int_equal(sw_clock_read(&clock, 101), 1);
	sw_clock_start(&clock, 100, -year_ns, 5000);
	assert_int_equal(sw_clock_read(&clock, 101), 5001);
	sw_clock_start(&clock, 100, 57 * year_ns, 5001);
	assert_true(sw_clock_read(&clock, 100) == 57 * year_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_follows_uptime), cmocka_unit_test(test_floor),
					   cmocka_unit_test(test_nonsense)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
