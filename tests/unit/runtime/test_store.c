/* Pinned memory for contents that leave the GPU: a process that pins it finds it touched already,
 * and what is given back is gone. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/driver.h"
#include "runtime/node.h"
#include "runtime/store.h"

enum { UNIT = 1 << 21 };

static size_t pinned_bytes, node_bytes;

/* ---- what the rest of the runtime is to it */

struct sw_driver sw_driver;

bool sw_node_take(size_t bytes, bool ahead)
{
	(void)ahead;
	node_bytes += bytes;
	return true;
}

void sw_node_give(size_t bytes)
{
	node_bytes -= bytes;
}

static unsigned makers, looks, quiet_looks = UINT_MAX; /* others begin to make some after so many looks */

void sw_node_begin_making(void)
{
	makers++;
}

void sw_node_end_making(void)
{
	makers--;
}

bool sw_node_others_make(void)
{
	return looks++ >= quiet_looks;
}

/* As the driver does it with its locks held: pages that are not there yet
 * would have to be made now. */
static CUresult pin(void *start, size_t bytes, unsigned flags)
{
	(void)flags;
	assert_int_equal(makers, 1);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), there = 0;
	unsigned char *found = calloc(bytes / page, 1);
	assert_non_null(found);
	assert_int_equal(mincore(start, bytes, found), 0);
	for (size_t i = 0; i < bytes / page; i++)
		there += found[i] & 1u;
	free(found);
	assert_int_equal(there, bytes / page);
	pinned_bytes += bytes;
	return CUDA_SUCCESS;
}

static CUresult unpin(void *start)
{
	(void)start;
	pinned_bytes = 0;
	return CUDA_SUCCESS;
}

/* Made ahead, it is touched before it is pinned; a piece of it is there at once;
 * unused, it all goes back. */
static void test_touched_before_it_is_pinned(void **state)
{
	(void)state;
	sw_driver.host_register = pin;
	sw_driver.host_unregister = unpin;
	assert_int_equal(sw_store_prepare((size_t)8 * UNIT, UNIT), SW_STORE_MADE);
	assert_int_equal(sw_store_prepare((size_t)8 * UNIT, UNIT), SW_STORE_ENOUGH);
	assert_int_equal(pinned_bytes, 8 * UNIT);
	assert_int_equal(node_bytes, 8 * UNIT);
	char *piece = sw_store_get((size_t)3 * UNIT);
	assert_non_null(piece);
	assert_int_equal(sw_store_unused(), 5 * UNIT);
	assert_false(sw_store_trim());
	sw_store_put(piece, (size_t)3 * UNIT);
	assert_true(sw_store_trim());
	assert_int_equal(pinned_bytes, 0);
	assert_int_equal(node_bytes, 0);
	assert_false(sw_store_trim());
}

/* Ahead of need nothing is pinned while others make some, also if they began meanwhile; what is
 * needed is, and small pieces ahead. */
static void test_others_make_some(void **state)
{
	(void)state;
	sw_driver.host_register = pin;
	sw_driver.host_unregister = unpin;
	for (unsigned quiet = 0; quiet < 2; quiet++) {
		looks = 0;
		quiet_looks = quiet;
		assert_int_equal(sw_store_prepare((size_t)8 * UNIT, UNIT), SW_STORE_NO_ROOM);
		assert_int_equal(pinned_bytes + node_bytes + sw_store_unused(), 0);
	}
	char *piece = sw_store_get((size_t)3 * UNIT);
	assert_non_null(piece);
	sw_store_put(piece, (size_t)3 * UNIT);
	assert_true(sw_store_trim());
	quiet_looks = UINT_MAX;
	assert_int_equal(sw_store_prepare((size_t)100 * UNIT, UNIT), SW_STORE_MADE);
	assert_int_equal(pinned_bytes, 32 * UNIT);
	assert_true(sw_store_trim());
	/* Large pieces need large ones. */
	assert_int_equal(sw_store_prepare((size_t)100 * UNIT, (size_t)40 * UNIT), SW_STORE_MADE);
	assert_int_equal(pinned_bytes, 100 * UNIT);
	piece = sw_store_get((size_t)40 * UNIT);
	assert_non_null(piece);
	assert_int_equal(pinned_bytes, 100 * UNIT);
	sw_store_put(piece, (size_t)40 * UNIT);
	assert_true(sw_store_trim());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_touched_before_it_is_pinned),
		cmocka_unit_test(test_others_make_some),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
