/* Which idle times of a guaranteed program are used, by how long its last ones were and how
 * long the work would take. */
#include "runtime/gap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US INT64_C(1000)
#define MS (1000 * US)

static void remember(_Atomic int64_t gaps_ns[SW_PAGE_GAPS], int64_t even_ns, int64_t odd_ns)
{
	for (unsigned i = 0; i < SW_PAGE_GAPS; i++)
		gaps_ns[i] = i % 2 == 0 ? even_ns : odd_ns;
}

/* Whatever is known, and however little is needed: in the first moment nothing begins. */
static void test_a_moment(void **state)
{
	(void)state;
	_Atomic int64_t gaps_ns[SW_PAGE_GAPS] = {0};
	assert_true(sw_gap_is_short(gaps_ns, 0, 0));
	assert_true(sw_gap_is_short(gaps_ns, SW_GAP_LEAST_NS - 1, 0));
	assert_true(sw_gap_is_short(gaps_ns, -MS, 0));
	assert_false(sw_gap_is_short(gaps_ns, SW_GAP_LEAST_NS, 0));
	remember(gaps_ns, 20 * MS, 20 * MS);
	assert_true(sw_gap_is_short(gaps_ns, SW_GAP_LEAST_NS - 1, 0));
	assert_false(sw_gap_is_short(gaps_ns, SW_GAP_LEAST_NS, MS));
}

/* What would not be over when the program goes on does not begin, up to a margin. */
static void test_what_is_known(void **state)
{
	(void)state;
	_Atomic int64_t gaps_ns[SW_PAGE_GAPS];
	remember(gaps_ns, 20 * MS, 20 * MS);
	assert_false(sw_gap_is_short(gaps_ns, MS, 19 * MS - SW_GAP_MARGIN_NS));
	assert_true(sw_gap_is_short(gaps_ns, MS, 19 * MS - SW_GAP_MARGIN_NS + 1));
	assert_true(sw_gap_is_short(gaps_ns, 20 * MS - US, US));
	/* Of two kinds, the shorter counts until it would be over. */
	remember(gaps_ns, 20 * MS, 2 * MS);
	assert_true(sw_gap_is_short(gaps_ns, MS, 2 * MS));
	assert_false(sw_gap_is_short(gaps_ns, 3 * MS, 2 * MS));
}

/* One that is longer than any before is trusted for as long as it has lasted. */
static void test_what_is_unknown(void **state)
{
	(void)state;
	_Atomic int64_t gaps_ns[SW_PAGE_GAPS] = {0};
	assert_true(sw_gap_is_short(gaps_ns, 10 * MS, 28 * MS));
	assert_false(sw_gap_is_short(gaps_ns, 28 * MS, 28 * MS));
	remember(gaps_ns, MS, 2 * MS);
	assert_true(sw_gap_is_short(gaps_ns, 10 * MS, 28 * MS));
	assert_false(sw_gap_is_short(gaps_ns, 10 * MS, 9 * MS));
}

/* A long kernel among short ones is not forgotten before the next one of its kind, and is in
 * time. */
static void test_long_ones_among_short_ones(void **state)
{
	(void)state;
	int64_t needed = sw_gap_needed(0, 28 * MS);
	assert_int_equal(needed, 28 * MS);
	for (unsigned i = 0; i < 10; i++)
		needed = sw_gap_needed(needed, 300 * US);
	assert_true(needed > 20 * MS);
	assert_int_equal(sw_gap_needed(needed, 28 * MS), 28 * MS);
	for (unsigned i = 0; i < 200; i++)
		needed = sw_gap_needed(needed, 300 * US);
	assert_int_equal(needed, 300 * US);
}

/* A process that waits is not held for ever by what was once measured, nor tries again so soon
 * that others would feel it. */
static void test_waiting_forgets(void **state)
{
	(void)state;
	int64_t needed = 28 * MS;
	for (unsigned i = 0; i < 200; i++)
		needed = sw_gap_forget(needed, 5 * MS);
	assert_true(needed > 24 * MS);
	for (unsigned i = 0; i < 800; i++)
		needed = sw_gap_forget(needed, 5 * MS);
	assert_true(needed < 17 * MS);
	for (unsigned i = 0; i < 20000; i++)
		needed = sw_gap_forget(needed, 5 * MS);
	assert_true(needed < 10 * US);
}

/* Long kernels are not taken to be held up by the program, and what was held up is not waited
 * for longer and longer. */
static void test_stuck(void **state)
{
	(void)state;
	assert_int_equal(sw_gap_stuck(0), SW_GAP_STUCK_NS);
	assert_int_equal(sw_gap_stuck(1500 * MS), 7000 * MS);
	assert_int_equal(sw_gap_stuck(2250 * MS), SW_GAP_STUCK_MOST_NS);
	assert_int_equal(sw_gap_stuck(3600 * 1000 * MS), SW_GAP_STUCK_MOST_NS);
	assert_int_equal(sw_gap_stuck(INT64_MAX), SW_GAP_STUCK_MOST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_moment),	cmocka_unit_test(test_what_is_known),
		cmocka_unit_test(test_what_is_unknown), cmocka_unit_test(test_long_ones_among_short_ones),
		cmocka_unit_test(test_waiting_forgets), cmocka_unit_test(test_stuck),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
