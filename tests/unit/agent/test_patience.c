/* What follows when samplers hang, fail or look: the pauses, the GPUs that are left out, and when
 * the driver as a whole counts as silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/patience.h"
#include "base/number.h"

#define MINUTE_NS (60 * SW_NS_PER_S)

/* A GPU in whose call a sampler hangs is left out at once, asked again after a minute, and then
 * after twice the time; the driver is not silent for it. */
static void test_one_gpu_hangs(void **state)
{
	(void)state;
	struct sw_patience patience = {0};
	int64_t now = MINUTE_NS;
	for (int64_t minutes = 1; minutes <= 4; minutes *= 2) {
		struct sw_patience_step step = sw_patience_hangs(&patience, now, 3);
		assert_int_equal(step.after_ms, 0);
		assert_null(step.silent);
		assert_true(patience.skip == 1 << 2);
		assert_false(sw_patience_looks(&patience, now + minutes * MINUTE_NS - 1, false, 0));
		now += minutes * MINUTE_NS;
		assert_true(sw_patience_looks(&patience, now, false, 0));
		assert_true(patience.skip == 0);
		/* Its inventory says nothing of how it gets on. */
		assert_false(sw_patience_looks(&patience, now, true, 0));
	}
	/* A look of all GPUs ends it: the next time begins with a minute. */
	assert_false(sw_patience_looks(&patience, now, false, 0));
	sw_patience_hangs(&patience, now, 3);
	assert_true(patience.skip_until_ns == now + MINUTE_NS);
}

/* A driver that hangs in no GPU's call, or in one that was left out, is silent as a whole; it is
 * tried again after growing pauses, of ten minutes at most. */
static void test_driver_hangs(void **state)
{
	(void)state;
	struct sw_patience patience = {0};
	struct sw_patience_step step = sw_patience_hangs(&patience, 0, 0);
	assert_non_null(step.silent);
	assert_int_equal(step.after_ms, 10000);
	assert_int_equal(sw_patience_hangs(&patience, 0, 0).after_ms, 20000);
	for (int i = 0; i < 10; i++)
		step = sw_patience_hangs(&patience, 0, 0);
	assert_int_equal(step.after_ms, 600000);
	assert_null(sw_patience_hangs(&patience, 0, 1).silent);
	assert_non_null(sw_patience_hangs(&patience, 0, 1).silent);
}

/* A GPU that no sampler comes back from is asked again only while a sampler can still be started
 * after that: the other GPUs are looked at for ever. */
static void test_gpu_never_returns(void **state)
{
	(void)state;
	struct sw_patience patience = {0};
	int64_t now = 0;
	uint32_t hung = 0;
	for (int days = 0; days < 100; days++, now += 24 * 60 * MINUTE_NS)
		if (patience.skip == 0 || sw_patience_looks(&patience, now, false, hung)) {
			assert_null(sw_patience_hangs(&patience, now, 1).silent);
			hung++;
		}
	assert_int_equal(hung, SW_PATIENCE_HUNG_MAX - 1);
	/* One of them has come back: so may the GPU. */
	assert_true(sw_patience_looks(&patience, now, false, hung - 1));
}

/* The same of two: each is asked again while there is room, and one sampler
 * more may start afterwards. */
static void test_gpus_never_return(void **state)
{
	(void)state;
	struct sw_patience patience = {0};
	assert_null(sw_patience_hangs(&patience, 0, 1).silent);
	assert_null(sw_patience_hangs(&patience, 0, 2).silent);
	assert_true(sw_patience_looks(&patience, 60 * MINUTE_NS, false, 2));
	assert_true(patience.skip == 2);
	assert_null(sw_patience_hangs(&patience, 60 * MINUTE_NS, 1).silent);
	assert_false(sw_patience_looks(&patience, 300 * MINUTE_NS, false, 3));
	assert_false(sw_patience_looks(&patience, 300 * MINUTE_NS, false, 4));
	assert_true(patience.skip == 3);
	/* One process has gone. It is the turn of the other GPU. */
	assert_true(sw_patience_looks(&patience, 300 * MINUTE_NS, false, 2));
	assert_true(patience.skip == 1);
}

/* GPUs that hung once are all asked again when the driver has recovered, three at
 * a time, a minute apart. */
static void test_stalled_gpus_return(void **state)
{
	(void)state;
	for (int gpus = 4; gpus <= 8; gpus += 4) {
		struct sw_patience patience = {0};
		for (int gpu = 1; gpu <= gpus; gpu++)
			assert_null(sw_patience_hangs(&patience, 0, gpu).silent);
		int64_t now = 60 * MINUTE_NS;
		for (int left = gpus; left > 0; now += MINUTE_NS) {
			assert_false(sw_patience_looks(&patience, now, true, 0));
			assert_true(sw_patience_looks(&patience, now, false, 0));
			left = left > 3 ? left - 3 : 0;
			assert_int_equal(__builtin_popcountll(patience.skip), left);
			assert_false(sw_patience_looks(&patience, now + MINUTE_NS - 1, false, 0));
		}
		assert_true(patience.skip == 0);
	}
}

/* A dead GPU keeps one sampler for good. The two GPUs that stalled beside it return all the
 * same. */
static void test_stalled_beside_dead(void **state)
{
	(void)state;
	struct sw_patience patience = {0};
	uint32_t hung = 1;
	for (int gpu = 1; gpu <= 3; gpu++)
		assert_null(sw_patience_hangs(&patience, 0, gpu).silent);
	int64_t now = 0;
	for (int hours = 0; hours < 100; hours++, now += 60 * MINUTE_NS)
		if (sw_patience_looks(&patience, now, false, hung) && (patience.skip & 1) == 0) {
			assert_null(sw_patience_hangs(&patience, now, 1).silent);
			hung++;
		}
	assert_true(patience.skip == 1);
	assert_int_equal(hung, SW_PATIENCE_HUNG_MAX - 1);
}

/* Where no sampler can be started any more, the driver as a whole is silent. */
static void test_too_many_hang(void **state)
{
	(void)state;
	struct sw_patience patience = {0};
	struct sw_patience_step step = sw_patience_is_full(&patience);
	assert_non_null(step.silent);
	assert_int_equal(step.after_ms, 10000);
}

/* A sampler that ends may have had an accident; two in a row mean that the GPUs cannot be looked
 * at. One that looked twice was well. */
static void test_samplers_end(void **state)
{
	(void)state;
	struct sw_patience patience = {0};
	struct sw_patience_step step = sw_patience_fails(&patience);
	assert_null(step.silent);
	assert_int_equal(step.after_ms, 10000);
	assert_false(sw_patience_looks(&patience, 0, true, 0));
	step = sw_patience_fails(&patience);
	assert_non_null(step.silent);
	assert_int_equal(step.after_ms, 20000);
	assert_false(sw_patience_looks(&patience, 0, true, 0));
	assert_false(sw_patience_looks(&patience, 0, false, 0));
	step = sw_patience_fails(&patience);
	assert_null(step.silent);
	assert_int_equal(step.after_ms, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_gpu_hangs),	    cmocka_unit_test(test_driver_hangs),
		cmocka_unit_test(test_gpu_never_returns),   cmocka_unit_test(test_gpus_never_return),
		cmocka_unit_test(test_stalled_gpus_return), cmocka_unit_test(test_stalled_beside_dead),
		cmocka_unit_test(test_too_many_hang),	    cmocka_unit_test(test_samplers_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
