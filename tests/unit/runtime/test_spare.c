/* Host memory that is kept for later: together with what is charged it is never more than the job's
 * budget, as long as that stays what it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/node.h"
#include "runtime/pace.h"
#include "runtime/spare.h"

enum { HANDLES = 10000, UNIT = 1 << 21 };

static uint64_t made_bytes, charged_bytes, budget_bytes, node_bytes, node_most_bytes = UINT64_MAX;
static bool node_is_short;
static size_t bytes_of[HANDLES];
static unsigned handles;

/* ---- what the rest of the runtime is to it */

struct sw_driver sw_driver;

uint64_t sw_account_host_room(void)
{
	return charged_bytes < budget_bytes ? budget_bytes - charged_bytes : 0;
}

bool sw_node_take(size_t bytes, bool ahead)
{
	(void)ahead;
	if (node_bytes + bytes > node_most_bytes)
		return false;
	node_bytes += bytes;
	return true;
}

void sw_node_give(size_t bytes)
{
	assert_true(bytes <= node_bytes);
	node_bytes -= bytes;
}

static unsigned makers;

void sw_node_begin_making(void)
{
	makers++;
}

void sw_node_end_making(void)
{
	makers--;
}

bool sw_node_is_short(void)
{
	return node_is_short;
}

static unsigned spilled;

void sw_pace_forget_lengths(void)
{
	spilled++;
}

static CUresult attribute(int *ret, int which, CUdevice device)
{
	(void)which;
	(void)device;
	*ret = 0;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemHandle *ret, size_t bytes, const CUmemAllocationProp *prop, uint64_t flags)
{
	(void)prop;
	(void)flags;
	assert_true(makers > 0);
	assert_true(handles < HANDLES);
	bytes_of[handles] = bytes;
	made_bytes += bytes;
	*ret = ++handles;
	return CUDA_SUCCESS;
}

static CUresult release(CUmemHandle handle)
{
	assert_true(handle > 0 && bytes_of[handle - 1] > 0);
	made_bytes -= bytes_of[handle - 1];
	bytes_of[handle - 1] = 0;
	return CUDA_SUCCESS;
}

/* ---- as its users call it */

static CUmemHandle take(size_t bytes)
{
	CUmemHandle handle = 0;
	unsigned before = spilled;
	charged_bytes += bytes;
	assert_int_equal(sw_spare_get(0, bytes, &handle), CUDA_SUCCESS);
	/* A stream that works with that is slower from now on, whether it was kept or is new. */
	assert_true(spilled > before);
	return handle;
}

static void give(size_t bytes, CUmemHandle handle)
{
	sw_spare_put(0, bytes, handle);
	charged_bytes -= bytes;
}

static int set_up(void **state)
{
	(void)state;
	sw_driver.device_attribute = attribute;
	sw_driver.create = create;
	sw_driver.release = release;
	budget_bytes = 10 * UNIT;
	return 0;
}

/* So that the next case starts with nothing kept. */
static int tear_down(void **state)
{
	(void)state;
	budget_bytes = charged_bytes = 0;
	sw_spare_trim();
	assert_true(made_bytes == 0);
	return 0;
}

/* What was given back is kept and serves again; pieces of another size take its place where the
 * budget has no room for both. */
static void test_kept_within_the_budget(void **state)
{
	(void)state;
	CUmemHandle first[8], second[3];
	for (int i = 0; i < 8; i++)
		first[i] = take(UNIT);
	for (int i = 0; i < 8; i++)
		give(UNIT, first[i]);
	assert_true(made_bytes == 8 * UNIT);
	unsigned before = handles;
	first[0] = take(UNIT);
	assert_int_equal(handles, before);
	for (int i = 0; i < 3; i++) {
		second[i] = take((size_t)3 * UNIT);
		assert_true(made_bytes <= budget_bytes);
	}
	assert_true(made_bytes == 10 * UNIT);
	for (int i = 0; i < 3; i++)
		give((size_t)3 * UNIT, second[i]);
	give(UNIT, first[0]);
	assert_true(made_bytes == 10 * UNIT);
}

/* What is made ahead has room in the budget too, and what the budget loses is given back. */
static void test_made_ahead(void **state)
{
	(void)state;
	const size_t sizes[] = {UNIT, UNIT, UNIT, UNIT};
	charged_bytes = 7 * UNIT;
	assert_false(sw_spare_prepare(0, sizes, 4));
	assert_true(made_bytes == 3 * UNIT);
	charged_bytes = 6 * UNIT;
	assert_true(sw_spare_prepare(0, sizes, 4));
	assert_true(made_bytes == 4 * UNIT);
	budget_bytes = 8 * UNIT;
	sw_spare_trim();
	assert_true(made_bytes == 2 * UNIT);
}

/* The machine's bound counts from before memory is made until it is gone. What is kept goes before
 * anything is refused, or when others need it. */
static void test_bound_of_the_machine(void **state)
{
	(void)state;
	CUmemHandle handle = take(UNIT), other = take(UNIT), more = 0;
	give(UNIT, handle);
	assert_int_equal(node_bytes, made_bytes);
	node_most_bytes = 5 * UNIT;
	CUmemHandle large = take((size_t)4 * UNIT);
	assert_int_equal(made_bytes, 5 * UNIT);
	assert_int_equal(sw_spare_get(0, UNIT, &more), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(node_bytes, made_bytes);
	give((size_t)4 * UNIT, large);
	assert_int_equal(made_bytes, 5 * UNIT);
	node_is_short = true;
	sw_spare_trim();
	assert_int_equal(made_bytes, UNIT);
	assert_int_equal(sw_spare_release(UNIT, other), CUDA_SUCCESS);
	assert_int_equal(node_bytes, 0);
	node_is_short = false;
	node_most_bytes = UINT64_MAX;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_kept_within_the_budget), TEST(test_made_ahead), TEST(test_bound_of_the_machine)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
