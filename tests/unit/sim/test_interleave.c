/* Interleaving by stages, worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/interleave.h"

#define MS 1000u

/* Aim: each stage of the guest runs while the host is busy with another, and begins in what the
 * stage before left of a gap. */
static void test_rounds(void **state)
{
	(void)state;
	static const struct {
		uint32_t guest[SW_STAGES], host[SW_STAGES];
		int64_t rounds;
	} cases[] = {
		/* One gap of 50 ms is enough, and 20 ms of it are left for the
		 * GPU stage, which fits. */
		{{30 * MS, 20 * MS, 0}, {50 * MS, 25 * MS, 25 * MS}, 1},
		/* 90 ms in gaps of 50: two rounds; 10 ms are left, 30 more need a
		 * round of the gap of 75. */
		{{90 * MS, 40 * MS, 0}, {50 * MS, 25 * MS, 25 * MS}, 3},
		/* The same with a network stage, which begins while the host loads data, and
		 * needs no round of its own. */
		{{90 * MS, 40 * MS, 20 * MS}, {50 * MS, 25 * MS, 25 * MS}, 3},
		/* Two that only compute take turns, and the guest never gets one. */
		{{0, 10 * MS, 0}, {0, 100 * MS, 0}, 1000},
		{{0, 0, 0}, {0, 100 * MS, 0}, 0},
		/* Not known. */
		{{10 * MS, 10 * MS, 10 * MS}, {0, 0, 0}, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(sw_interleave_rounds(cases[i].guest, cases[i].host), cases[i].rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
