/* A share of the GPU's time is what a program gets of its own speed: on a stub that computes when
 * it may and waits when it must. */
#include "runtime/credit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

/* Steps of a program within `for_ns`, each a kernel of `kernel_ns`; `ahead` of them are in
 * flight before it looks. */
static int64_t count_steps(uint32_t share_milli, int64_t kernel_ns, unsigned ahead, int64_t from_ns, int64_t for_ns)
{
	struct sw_credit credit;
	int64_t now = SECOND, steps = 0, begin = now + from_ns, end = begin + for_ns;
	sw_credit_start(&credit, share_milli, now);
	while (now < end) {
		if (share_milli > 0 && sw_credit_give(&credit, now)) {
			int64_t rest = sw_credit_rest_ns(&credit);
			assert_true(rest > 0);
			now += rest < 2 * MS ? rest : 2 * MS;
			continue;
		}
		for (unsigned i = 0; i < ahead; i++) {
			now += kernel_ns;
			sw_credit_take(&credit, kernel_ns);
			steps += now > begin && now <= end;
		}
	}
	return steps;
}

static void check(uint32_t percent, int64_t kernel_ns, unsigned ahead)
{
	int64_t alone = count_steps(0, kernel_ns, ahead, SECOND, 10 * SECOND),
		got = count_steps(percent * 10, kernel_ns, ahead, SECOND, 10 * SECOND);
	double speed = 100.0 * (double)got / (double)alone;
	print_message("%u %%: %.2f %% of the speed alone, kernels of %.2f ms, %u ahead\n", percent, speed, (double)kernel_ns / 1e6, ahead);
	assert_true(speed > 0.95 * percent && speed < 1.05 * percent);
}

/* 20, 50 and 80 % give that much of the speed alone, within 5 % of it, for short kernels and for
 * long ones, one by one and in crowds. */
static void test_shares(void **state)
{
	(void)state;
	const uint32_t percents[] = {20, 50, 80};
	for (unsigned i = 0; i < 3; i++) {
		check(percents[i], MS / 10, 1);
		check(percents[i], MS / 10, 64);
		check(percents[i], 2 * MS, 4);
		check(percents[i], 40 * MS, 1);
	}
}

/* Time in which it had nothing to do is not saved up beyond one burst and a little. */
static void test_idle_time_is_not_saved(void **state)
{
	(void)state;
	struct sw_credit credit;
	sw_credit_start(&credit, 500, 0);
	assert_false(sw_credit_give(&credit, 3600 * SECOND));
	assert_true(credit.left_ns == SW_CREDIT_MOST_NS);
	sw_credit_take(&credit, SW_CREDIT_MOST_NS + MS);
	assert_true(sw_credit_give(&credit, 3600 * SECOND));
	assert_true(sw_credit_rest_ns(&credit) == 2 * (SW_CREDIT_BURST_NS + MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares), cmocka_unit_test(test_idle_time_is_not_saved)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
