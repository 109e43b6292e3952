/* The budget of host memory that a job has unless somebody says otherwise. */
#include "share/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* It is something, and not more than half of the machine: two jobs that start one after the other cannot be promised all of it. */
static void test_budget(void **state)
{
	(void)state;
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	assert_in_range(sw_share_host_budget(), 1 << 20, machine / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_budget)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
