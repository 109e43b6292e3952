/* The fields of a job as the engine is asked for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "core/spec.h"

/* Aim: a member that is new has a row, or is named here: tenant and model are numbers of one
 * program, the deadline is a moment. */
static void test_all_are_there(void **state)
{
	(void)state;
	size_t bytes = 0;
	struct sides {
		uint32_t gpus, min_gpus, max_gpus, tenant, weight_milli, compute_milli;
		uint64_t gpu_memory_bytes, gpu_floor_bytes, host_memory_bytes;
		uint32_t cpus, model;
		uint16_t skew_milli, use_milli, retries;
		uint8_t job_class, knowledge;
		bool is_auto, held, cannot_pause, prefers_home;
		uint8_t stop_rule;
		bool no_restart;
		sw_ns work_ns, deadline_at;
	};
	assert_int_equal(sizeof(struct sw_job_spec), sizeof(struct sides));
	for (size_t r = 0; r < sw_spec_row_count; r++)
		bytes += sw_spec_rows[r].size;
	assert_int_equal(bytes, 6 * 4 + 3 * 8 + 3 * 2 + 8 + 8);
}

/* Aim: what is read is what was written, in this field and no other; what a field cannot hold is
 * refused. */
static void test_fields(void **state)
{
	(void)state;
	for (size_t r = 0; r < sw_spec_row_count; r++) {
		const struct sw_spec_row *row = &sw_spec_rows[r];
		struct sw_job_spec spec = {0};
		uint64_t most = row->is_flag ? 1 : row->size == 8 ? INT64_MAX : (UINT64_C(1) << 8 * row->size) - 1;
		assert_int_equal(sw_spec_set(&spec, row, most), 0);
		for (size_t other = 0; other < sw_spec_row_count; other++)
			assert_int_equal(sw_spec_get(&spec, &sw_spec_rows[other]), other == r ? most : 0);
		assert_int_equal(sw_spec_set(&spec, row, most + 1), SW_EINPUT);
		assert_int_equal(sw_spec_get(&spec, row), most);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_are_there), cmocka_unit_test(test_fields)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
