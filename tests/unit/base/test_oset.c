/* Ordered sets that share their links, against plain arrays that are searched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/oset.h"
#include "base/rng.h"

enum { IDS = 150, SETS = 3, NOWHERE = SETS };

struct model {
	int where[IDS]; /* the set that holds the id, or NOWHERE */
	int64_t keys[IDS];
	int64_t stamps[IDS];
	uint32_t marks[IDS];
};

static bool is_before(const struct model *model, uint32_t a, uint32_t b)
{
	if (model->keys[a] != model->keys[b])
		return model->keys[a] < model->keys[b];
	if (model->stamps[a] != model->stamps[b])
		return model->stamps[a] < model->stamps[b];
	return a < b;
}

/* The smallest member of `set` behind `id` (NONE: of all). */
static uint32_t model_next(const struct model *model, int set, uint32_t id)
{
	uint32_t best = SW_OSET_NONE;
	for (uint32_t other = 0; other < IDS; other++) {
		if (model->where[other] != set || (id != SW_OSET_NONE && !is_before(model, id, other)))
			continue;
		if (best == SW_OSET_NONE || is_before(model, other, best))
			best = other;
	}
	return best;
}

/* The same among members with any of these marks. */
static uint32_t model_next_marked(const struct model *model, int set, uint32_t id, uint32_t marks)
{
	do
		id = model_next(model, set, id);
	while (id != SW_OSET_NONE && (model->marks[id] & marks) == 0);
	return id;
}

/* Steps from every member, marked or not, to the next and the last one with any of these marks. */
static void compare_marked(const struct sw_oset *set, const struct sw_oset_links *links, const struct model *model, int which,
			   uint32_t marks)
{
	uint32_t last = SW_OSET_NONE;
	assert_int_equal(sw_oset_first_marked(set, links, marks), model_next_marked(model, which, SW_OSET_NONE, marks));
	for (uint32_t id = set->first; id != SW_OSET_NONE; id = sw_oset_next(links, id)) {
		assert_int_equal(sw_oset_prev_marked(links, id, marks), last);
		assert_int_equal(sw_oset_next_marked(links, id, marks), model_next_marked(model, which, id, marks));
		last = (model->marks[id] & marks) != 0 ? id : last;
	}
	assert_int_equal(sw_oset_last_marked(set, links, marks), last);
}

/* Walks a set in both directions beside the model. */
static void compare(const struct sw_oset *set, const struct sw_oset_links *links, const struct model *model, int which)
{
	uint32_t count = 0, last = SW_OSET_NONE;
	assert_int_equal(set->first, model_next(model, which, SW_OSET_NONE));
	for (uint32_t id = set->first; id != SW_OSET_NONE; id = sw_oset_next(links, id)) {
		assert_int_equal(sw_oset_prev(links, id), last);
		assert_int_equal(sw_oset_next(links, id), model_next(model, which, id));
		last = id;
		count++;
	}
	assert_int_equal(set->last, last);
	assert_int_equal(set->count, count);
}

/* Random insertions, marks and removals in three sets keep every set sound and in the model's
 * order; few keys and stamps make many ties. */
static void test_against_model(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 11);
	struct sw_oset_links links = {0};
	assert_int_equal(sw_oset_links_reserve(&links, IDS), 0);
	struct sw_oset sets[SETS];
	struct model model;
	for (int i = 0; i < SETS; i++)
		sets[i] = sw_oset_empty();
	for (uint32_t id = 0; id < IDS; id++)
		model.where[id] = NOWHERE;
	for (int step = 0; step < 20000; step++) {
		uint32_t id = (uint32_t)sw_rng_below(&rng, IDS);
		int which = model.where[id];
		if (which == NOWHERE) {
			which = (int)sw_rng_below(&rng, SETS);
			model.where[id] = which;
			model.keys[id] = (int64_t)sw_rng_below(&rng, 8) - 4;
			model.stamps[id] = (int64_t)sw_rng_below(&rng, 3);
			model.marks[id] = 0;
			sw_oset_insert(&sets[which], &links, id, model.keys[id], model.stamps[id]);
		} else if (sw_rng_below(&rng, 2) == 0) {
			model.marks[id] = sw_rng_below(&rng, 4) == 0 ? 1u << sw_rng_below(&rng, SW_OSET_MARK_BITS) : 0;
			sw_oset_mark(&links, id, model.marks[id]);
		} else {
			model.where[id] = NOWHERE;
			sw_oset_remove(&sets[which], &links, id);
		}
		assert_true(sw_oset_is_sound(&sets[which], &links));
		for (int i = 0; step % 64 == 0 && i < SETS; i++) {
			compare(&sets[i], &links, &model, i);
			compare_marked(&sets[i], &links, &model, i, 1);
			compare_marked(&sets[i], &links, &model, i, 6);
		}
	}
	sw_oset_links_release(&links);
}

static uint32_t depth_of(const struct sw_oset_links *links, uint32_t id)
{
	uint32_t depth = 0;
	for (; id != SW_OSET_NONE; id = links->items[id].parent)
		depth++;
	return depth;
}

/* Ids that come in ascending, descending or equal keys do not make a list of the tree. */
static void test_depth(void **state)
{
	(void)state;
	enum { MANY = 20000 };
	for (int direction = -1; direction <= 1; direction++) {
		struct sw_oset_links links = {0};
		struct sw_oset set = sw_oset_empty();
		for (uint32_t id = 0; id < MANY; id++) {
			assert_int_equal(sw_oset_links_reserve(&links, id + 1), 0);
			sw_oset_insert(&set, &links, id, direction * (int64_t)id, 0);
		}
		assert_true(sw_oset_is_sound(&set, &links));
		uint32_t deepest = 0;
		for (uint32_t id = 0; id < MANY; id++) {
			uint32_t depth = depth_of(&links, id);
			deepest = depth > deepest ? depth : deepest;
		}
		/* Half a dozen times the logarithm. */
		assert_in_range(deepest, 15, 80);
		sw_oset_links_release(&links);
	}
}

/* An empty set is sound and has no ends, again after its last member left. */
static void test_empty(void **state)
{
	(void)state;
	struct sw_oset_links links = {0};
	struct sw_oset set = sw_oset_empty();
	assert_true(sw_oset_is_sound(&set, &links));
	assert_int_equal(sw_oset_links_reserve(&links, 1), 0);
	sw_oset_insert(&set, &links, 0, INT64_MIN, INT64_MAX);
	assert_int_equal(set.first, 0);
	assert_int_equal(set.last, 0);
	sw_oset_remove(&set, &links, 0);
	assert_int_equal(set.first, SW_OSET_NONE);
	assert_int_equal(set.last, SW_OSET_NONE);
	assert_int_equal(set.count, 0);
	assert_true(sw_oset_is_sound(&set, &links));
	sw_oset_links_release(&links);
}

/* The check of the invariants sees a wrong order, a wrong end, a wrong count, a child above its
 * parent, and marks that no member has. */
static void test_is_sound_finds_faults(void **state)
{
	(void)state;
	struct sw_oset_links links = {0};
	assert_int_equal(sw_oset_links_reserve(&links, 8), 0);
	struct sw_oset set = sw_oset_empty();
	for (uint32_t id = 0; id < 8; id++)
		sw_oset_insert(&set, &links, id, id * 10, 0);
	assert_true(sw_oset_is_sound(&set, &links));
	links.items[3].key = 45;
	assert_false(sw_oset_is_sound(&set, &links));
	links.items[3].key = 30;
	set.last = 6;
	assert_false(sw_oset_is_sound(&set, &links));
	set.last = 7;
	set.count = 7;
	assert_false(sw_oset_is_sound(&set, &links));
	set.count = 8;
	uint32_t priority = links.items[set.root].priority;
	links.items[set.root].priority = 0;
	assert_false(sw_oset_is_sound(&set, &links));
	links.items[set.root].priority = priority;
	links.items[set.root].below = 1;
	assert_false(sw_oset_is_sound(&set, &links));
	links.items[set.root].below = 0;
	links.items[set.first].marks = 1;
	assert_false(sw_oset_is_sound(&set, &links));
	links.items[set.first].marks = 0;
	assert_true(sw_oset_is_sound(&set, &links));
	sw_oset_links_release(&links);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_is_sound_finds_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
