/* The heap of ids, against a plain array that is searched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/rng.h"

enum { IDS = 200 };

struct model {
	bool in[IDS];
	int64_t keys[IDS];
	uint32_t count;
};

/* The id that must be on top: smallest key, then smallest id. */
static uint32_t model_top(const struct model *model)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t id = 0; id < IDS; id++)
		if (model->in[id] && (best == UINT32_MAX || model->keys[id] < model->keys[best]))
			best = id;
	return best;
}

static void compare(const struct sw_heap *heap, const struct model *model)
{
	assert_int_equal(heap->count, model->count);
	uint32_t top = model_top(model);
	if (top == UINT32_MAX) {
		assert_true(sw_heap_top_key(heap) == INT64_MAX);
		return;
	}
	assert_int_equal(heap->entries[0].id, top);
	assert_true(sw_heap_top_key(heap) == model->keys[top]);
}

/* After every random insertion, move and removal the top and the count are those of the model; few
 * different keys make many ties. */
static void test_against_model(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 1);
	struct sw_heap heap = {0};
	struct model model = {0};
	assert_int_equal(sw_heap_reserve(&heap, IDS), 0);
	for (int step = 0; step < 50000; step++) {
		uint32_t id = (uint32_t)sw_rng_below(&rng, IDS);
		/* Phases that grow and phases that shrink, so that both an empty
		 * and a full heap come by. */
		bool grows = step / 1000 % 2 == 0;
		if (sw_rng_below(&rng, 4) < (grows ? 3 : 1)) {
			model.keys[id] = (int64_t)sw_rng_below(&rng, 30) - 15;
			model.count += !model.in[id];
			model.in[id] = true;
			sw_heap_set(&heap, id, model.keys[id]);
			assert_true(sw_heap_key(&heap, id) == model.keys[id]);
		} else {
			model.count -= model.in[id];
			model.in[id] = false;
			sw_heap_remove(&heap, id);
		}
		assert_int_equal(sw_heap_has(&heap, id), model.in[id]);
		compare(&heap, &model);
	}
	sw_heap_release(&heap);
}

/* Taking the top again and again gives ids by key and, where keys are equal, by id. */
static void test_order(void **state)
{
	(void)state;
	static const int64_t keys[] = {5, INT64_MIN, 5, 7, INT64_MAX, 5, -1};
	static const uint32_t order[] = {1, 6, 0, 2, 5, 3, 4};
	struct sw_heap heap = {0};
	assert_int_equal(sw_heap_reserve(&heap, 7), 0);
	for (uint32_t id = 7; id-- > 0;)
		sw_heap_set(&heap, id, keys[id]);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(heap.entries[0].id, order[i]);
		sw_heap_remove(&heap, order[i]);
	}
	assert_int_equal(heap.count, 0);
	sw_heap_release(&heap);
}

/* More room keeps what is in; ids that were never in reach are not in, and
 * removing them does nothing. */
static void test_growth(void **state)
{
	(void)state;
	struct sw_heap heap = {0};
	assert_false(sw_heap_has(&heap, 0));
	sw_heap_remove(&heap, 3);
	for (uint32_t id = 0; id < 3000; id++) {
		assert_int_equal(sw_heap_reserve(&heap, id + 1), 0);
		sw_heap_set(&heap, id, -(int64_t)id);
	}
	for (uint32_t id = 3000; id-- > 0;) {
		assert_int_equal(heap.entries[0].id, id);
		sw_heap_remove(&heap, id);
	}
	assert_false(sw_heap_has(&heap, UINT32_MAX - 1));
	sw_heap_release(&heap);
	assert_int_equal(heap.capacity, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_growth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
