/* What follows when samplers hang, fail or look: the pauses, the GPUs that are left out, and when the driver as a whole counts as silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/patience.h"
#include "base/number.h"

#define MINUTE_NS (60 * SW_NS_PER_S)

/* A GPU in whose call a sampler hangs is left out at once, asked again after a minute, and then after twice the time; the driver is not silent for it. */
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
		assert_false(sw_patience_looks(&patience, now + minutes * MINUTE_NS - 1, false));
		now += minutes * MINUTE_NS;
		assert_true(sw_patience_looks(&patience, now, false));
		assert_true(patience.skip == 0);
		/* Its inventory says nothing of how it gets on. */
		assert_false(sw_patience_looks(&patience, now, true));
	}
	/* A look of all GPUs ends it: the next time begins with a minute. */
	assert_false(sw_patience_looks(&patience, now, false));
	sw_patience_hangs(&patience, now, 3);
	assert_true(patience.skip_until_ns == now + MINUTE_NS);
}

/* A driver that hangs in no GPU's call, or in one that was left out, is silent as a whole; it is tried again after growing pauses, of ten minutes at most. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_gpu_hangs),
		cmocka_unit_test(test_driver_hangs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
