/* The growing array: contents survive growth, and what cannot be had is refused without harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/vec.h"

/* The sanitizers would end the program on an absurd request; here the request is the point. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* New elements are zeroed and old ones keep their value over many growths. */
static void test_push(void **state)
{
	(void)state;
	SW_VEC(uint32_t) numbers = {0};
	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t *slot = sw_vec_push(&numbers);
		assert_non_null(slot);
		assert_int_equal(*slot, 0);
		*slot = i * 3 + 1;
	}
	assert_int_equal(numbers.count, 10000);
	assert_true(numbers.capacity >= numbers.count);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(numbers.items[i], i * 3 + 1);
	sw_vec_free(&numbers);
	assert_null(numbers.items);
	assert_int_equal(numbers.count + numbers.capacity, 0);
}

/* Elements that were given up by lowering the count come back zeroed. */
static void test_reused_is_zeroed(void **state)
{
	(void)state;
	SW_VEC(int) numbers = {0};
	for (int i = 0; i < 5; i++)
		*sw_vec_push(&numbers) = 7;
	numbers.count = 2;
	assert_int_equal(*sw_vec_push(&numbers), 0);
	assert_int_equal(numbers.items[1], 7);
	sw_vec_free(&numbers);
}

/* Several elements come at once and side by side; none at all is no failure. */
static void test_push_n(void **state)
{
	(void)state;
	SW_VEC(int64_t) numbers = {0};
	assert_non_null(sw_vec_push_n(&numbers, 0));
	assert_int_equal(numbers.count, 0);
	int64_t *first = sw_vec_push_n(&numbers, 100);
	assert_ptr_equal(first, numbers.items);
	assert_int_equal(numbers.count, 100);
	int64_t *more = sw_vec_push_n(&numbers, 1000);
	assert_ptr_equal(more, numbers.items + 100);
	sw_vec_free(&numbers);
}

/* A count whose bytes overflow is refused, and so is one that no machine has;
 * the array is as it was. */
static void test_overflow(void **state)
{
	(void)state;
	static const size_t absurd[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / sizeof(int64_t), SIZE_MAX / sizeof(int64_t) + 1, SIZE_MAX / 32};
	SW_VEC(int64_t) numbers = {0};
	int64_t *slot = sw_vec_push(&numbers);
	assert_non_null(slot);
	*slot = 42;
	size_t capacity = numbers.capacity;
	for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
		assert_null(sw_vec_push_n(&numbers, absurd[i]));
		assert_int_equal(numbers.count, 1);
		assert_int_equal(numbers.capacity, capacity);
		assert_int_equal(numbers.items[0], 42);
	}
	sw_vec_free(&numbers);
}

/* Room made in advance adds nothing, keeps what is there, and lets later elements
 * come without moving it. */
static void test_reserve(void **state)
{
	(void)state;
	SW_VEC(int) numbers = {0};
	*sw_vec_push(&numbers) = 5;
	assert_int_equal(sw_vec_reserve(&numbers, 1000), 0);
	assert_int_equal(numbers.count, 1);
	assert_int_equal(numbers.items[0], 5);
	assert_true(numbers.capacity >= 1000);
	const int *place = numbers.items;
	while (numbers.count < 1000)
		assert_int_equal(*sw_vec_push(&numbers), 0);
	assert_ptr_equal(numbers.items, place);
	size_t capacity = numbers.capacity;
	assert_int_equal(sw_vec_reserve(&numbers, 10), 0);
	assert_int_equal(numbers.capacity, capacity);
	assert_int_equal(sw_vec_reserve(&numbers, SIZE_MAX), SW_ENOMEM);
	assert_int_equal(sw_vec_reserve(&numbers, SIZE_MAX / 16), SW_ENOMEM);
	assert_int_equal(sw_vec_reserve(&numbers, SIZE_MAX / sizeof(int) + 2), SW_ENOMEM);
	assert_int_equal(numbers.count, 1000);
	sw_vec_free(&numbers);
}

/* An array may be freed twice, and before anything was put in. */
static void test_free_empty(void **state)
{
	(void)state;
	SW_VEC(char) text = {0};
	sw_vec_free(&text);
	assert_non_null(sw_vec_push(&text));
	sw_vec_free(&text);
	sw_vec_free(&text);
	assert_null(text.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push),	 cmocka_unit_test(test_reused_is_zeroed), cmocka_unit_test(test_push_n),
		cmocka_unit_test(test_overflow), cmocka_unit_test(test_free_empty),	  cmocka_unit_test(test_reserve),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
