#include "base/oset.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define NONE SW_OSET_NONE

/* Links are saved with the rest of the state: what is in none of the sets yet must not differ from
 * run to run. A table's are zero. */
int sw_oset_links_reserve(struct sw_oset_links *links, uint32_t capacity)
{
	int r = sw_table_reserve(&links->table, capacity);
	links->items = links->table.items;
	return r;
}

void sw_oset_links_forget(struct sw_oset_links *links, uint32_t from, uint32_t to)
{
	sw_table_clear(&links->table, from, to);
}

void sw_oset_links_release(struct sw_oset_links *links)
{
	sw_table_free(&links->table);
	*links = (struct sw_oset_links){0};
}

static uint32_t priority_of(uint32_t id)
{
	uint64_t x = (id + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
	x ^= x >> 31;
	x *= UINT64_C(0xD6E8FEB86659FD93);
	return (uint32_t)(x >> (32 + 2 * SW_OSET_MARK_BITS));
}

static bool is_before(const struct sw_oset_link *a, uint32_t a_id, const struct sw_oset_link *b, uint32_t b_id)
{
	if (a->key != b->key)
		return a->key < b->key;
	if (a->stamp != b->stamp)
		return a->stamp < b->stamp;
	return a_id < b_id;
}

/* Puts `heir` where `id` hangs below its parent. */
static void replace_child(struct sw_oset *set, struct sw_oset_link *items, uint32_t id, uint32_t heir)
{
	uint32_t parent = items[id].parent;
	if (parent == NONE)
		set->root = heir;
	else if (items[parent].left == id)
		items[parent].left = heir;
	else
		items[parent].right = heir;
	if (heir != NONE)
		items[heir].parent = parent;
}

/* ---- marks */

static uint32_t below(const struct sw_oset_link *items, uint32_t id)
{
	return id == NONE ? 0 : items[id].below;
}

static uint32_t gather(const struct sw_oset_link *items, uint32_t id)
{
	return items[id].marks | below(items, items[id].left) | below(items, items[id].right);
}

void sw_oset_mark(struct sw_oset_links *links, uint32_t id, uint32_t marks)
{
	struct sw_oset_link *items = links->items;
	if (items[id].marks == marks)
		return;
	items[id].marks = marks;
	for (uint32_t found; id != NONE && (found = gather(items, id)) != items[id].below; id = items[id].parent)
		items[id].below = found;
}

static uint32_t child(const struct sw_oset_link *items, uint32_t id, bool left)
{
	return left ? items[id].left : items[id].right;
}

/* The outermost on one side of a subtree that has any of these marks. */
static uint32_t outermost(const struct sw_oset_link *items, uint32_t at, bool left, uint32_t marks)
{
	while ((below(items, at) & marks) != 0) {
		bool further = (below(items, child(items, at, left)) & marks) != 0;
		if (!further && (items[at].marks & marks) != 0)
			return at;
		at = child(items, at, further ? left : !left);
	}
	return NONE;
}

/* The nearest on one side of a member that has any of these marks. */
static uint32_t nearest(const struct sw_oset_link *items, uint32_t id, bool left, uint32_t marks)
{
	uint32_t found = outermost(items, child(items, id, left), !left, marks);
	for (uint32_t parent = items[id].parent; found == NONE && parent != NONE; id = parent, parent = items[id].parent) {
		if (child(items, parent, left) == id)
			continue; /* it lies on the other side */
		found = (items[parent].marks & marks) != 0 ? parent : outermost(items, child(items, parent, left), !left, marks);
	}
	return found;
}

uint32_t sw_oset_first_marked(const struct sw_oset *set, const struct sw_oset_links *links, uint32_t marks)
{
	return outermost(links->items, set->root, true, marks);
}

uint32_t sw_oset_last_marked(const struct sw_oset *set, const struct sw_oset_links *links, uint32_t marks)
{
	return outermost(links->items, set->root, false, marks);
}

uint32_t sw_oset_next_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks)
{
	return nearest(links->items, id, false, marks);
}

uint32_t sw_oset_prev_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks)
{
	return nearest(links->items, id, true, marks);
}

/* ---- order */

/* Lifts `id` above its parent, keeping the order. */
static void rotate_up(struct sw_oset *set, struct sw_oset_link *items, uint32_t id)
{
	uint32_t parent = items[id].parent;
	replace_child(set, items, parent, id);
	if (items[parent].left == id) {
		uint32_t middle = items[id].right;
		items[parent].left = middle;
		if (middle != NONE)
			items[middle].parent = parent;
		items[id].right = parent;
	} else {
		uint32_t middle = items[id].left;
		items[parent].right = middle;
		if (middle != NONE)
			items[middle].parent = parent;
		items[id].left = parent;
	}
	items[parent].parent = id;
	items[id].below = items[parent].below;
	if (items[id].below != 0)
		items[parent].below = gather(items, parent);
}

void sw_oset_insert(struct sw_oset *set, struct sw_oset_links *links, uint32_t id, int64_t key, int64_t stamp)
{
	assert(id < links->table.room);
	struct sw_oset_link *items = links->items;
	items[id] =
		(struct sw_oset_link){.key = key, .stamp = stamp, .left = NONE, .right = NONE, .parent = NONE, .priority = priority_of(id)};
	set->count++;
	if (set->root == NONE) {
		set->root = set->first = set->last = id;
		return;
	}
	/* Ends are where most insertions go: hang there at once. */
	if (is_before(&items[set->last], set->last, &items[id], id)) {
		items[set->last].right = id;
		items[id].parent = set->last;
		set->last = id;
	} else if (is_before(&items[id], id, &items[set->first], set->first)) {
		items[set->first].left = id;
		items[id].parent = set->first;
		set->first = id;
	} else {
		uint32_t at = set->root;
		for (;;) {
			bool left = is_before(&items[id], id, &items[at], at);
			uint32_t below = left ? items[at].left : items[at].right;
			if (below == NONE) {
				if (left)
					items[at].left = id;
				else
					items[at].right = id;
				items[id].parent = at;
				break;
			}
			at = below;
		}
	}
	while (items[id].parent != NONE && items[items[id].parent].priority < items[id].priority)
		rotate_up(set, items, id);
}

void sw_oset_remove(struct sw_oset *set, struct sw_oset_links *links, uint32_t id)
{
	struct sw_oset_link *items = links->items;
	assert(set->count > 0);
	sw_oset_mark(links, id, 0);
	if (set->first == id)
		set->first = sw_oset_next(links, id);
	if (set->last == id)
		set->last = sw_oset_prev(links, id);
	while (items[id].left != NONE && items[id].right != NONE) {
		uint32_t left = items[id].left, right = items[id].right;
		rotate_up(set, items, items[left].priority >= items[right].priority ? left : right);
	}
	replace_child(set, items, id, items[id].left != NONE ? items[id].left : items[id].right);
	set->count--;
}

uint32_t sw_oset_next(const struct sw_oset_links *links, uint32_t id)
{
	const struct sw_oset_link *items = links->items;
	if (items[id].right != NONE) {
		for (id = items[id].right; items[id].left != NONE;)
			id = items[id].left;
		return id;
	}
	uint32_t parent = items[id].parent;
	while (parent != NONE && items[parent].right == id) {
		id = parent;
		parent = items[id].parent;
	}
	return parent;
}

uint32_t sw_oset_prev(const struct sw_oset_links *links, uint32_t id)
{
	const struct sw_oset_link *items = links->items;
	if (items[id].left != NONE) {
		for (id = items[id].left; items[id].right != NONE;)
			id = items[id].right;
		return id;
	}
	uint32_t parent = items[id].parent;
	while (parent != NONE && items[parent].left == id) {
		id = parent;
		parent = items[id].parent;
	}
	return parent;
}

bool sw_oset_is_sound(const struct sw_oset *set, const struct sw_oset_links *links)
{
	const struct sw_oset_link *items = links->items;
	uint32_t seen = 0, last = NONE;
	for (uint32_t id = set->first; id != NONE; id = sw_oset_next(links, id)) {
		if (last != NONE && !is_before(&items[last], last, &items[id], id))
			return false;
		uint32_t parent = items[id].parent;
		if (parent == NONE ? set->root != id : items[parent].priority < items[id].priority)
			return false;
		if (items[id].below != gather(items, id))
			return false;
		last = id;
		if (++seen > set->count)
			return false;
	}
	return seen == set->count && last == set->last && (set->count > 0 || set->root == NONE);
}
