#include "base/heap.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

/* Four children a node: shallower than two, and the four sit on one or two cache lines. */
#define ARITY 4u

int sw_heap_make_room(struct sw_heap *heap, uint32_t ids, uint32_t members)
{
	if (sw_table_reserve(&heap->places, ids) < 0)
		return SW_ENOMEM;
	if (members <= heap->capacity)
		return 0;
	uint32_t wanted = heap->capacity + heap->capacity / 2 + 64;
	if (wanted < members)
		wanted = members;
	struct sw_heap_entry *entries = realloc(heap->entries, (size_t)wanted * sizeof *entries);
	if (entries == NULL)
		return SW_ENOMEM;
	heap->entries = entries;
	heap->capacity = wanted;
	return 0;
}

int sw_heap_reserve(struct sw_heap *heap, uint32_t capacity)
{
	return sw_heap_make_room(heap, capacity, capacity);
}

void sw_heap_forget(struct sw_heap *heap, uint32_t from, uint32_t to)
{
	sw_table_clear(&heap->places, from, to);
}

void sw_heap_release(struct sw_heap *heap)
{
	free(heap->entries);
	sw_table_free(&heap->places);
	*heap = (struct sw_heap){0};
}

static bool is_before(struct sw_heap_entry a, struct sw_heap_entry b)
{
	return a.key != b.key ? a.key < b.key : a.id < b.id;
}

static void put(struct sw_heap *heap, uint32_t at, struct sw_heap_entry entry)
{
	heap->entries[at] = entry;
	heap->places.items[entry.id] = at + 1;
}

static void sift_up(struct sw_heap *heap, uint32_t at, struct sw_heap_entry entry)
{
	while (at > 0) {
		uint32_t parent = (at - 1) / ARITY;
		if (!is_before(entry, heap->entries[parent]))
			break;
		put(heap, at, heap->entries[parent]);
		at = parent;
	}
	put(heap, at, entry);
}

static void sift_down(struct sw_heap *heap, uint32_t at, struct sw_heap_entry entry)
{
	for (;;) {
		uint32_t child = at * ARITY + 1;
		if (child >= heap->count)
			break;
		uint32_t end = child + ARITY < heap->count ? child + ARITY : heap->count;
		uint32_t best = child;
		for (uint32_t other = child + 1; other < end; other++)
			if (is_before(heap->entries[other], heap->entries[best]))
				best = other;
		if (!is_before(heap->entries[best], entry))
			break;
		put(heap, at, heap->entries[best]);
		at = best;
	}
	put(heap, at, entry);
}

static void settle(struct sw_heap *heap, uint32_t at, struct sw_heap_entry entry)
{
	if (at > 0 && is_before(entry, heap->entries[(at - 1) / ARITY]))
		sift_up(heap, at, entry);
	else
		sift_down(heap, at, entry);
}

void sw_heap_set(struct sw_heap *heap, uint32_t id, int64_t key)
{
	assert(id < heap->places.room);
	struct sw_heap_entry entry = {key, id};
	if (heap->places.items[id] != 0) {
		settle(heap, heap->places.items[id] - 1, entry);
		return;
	}
	assert(heap->count < heap->capacity);
	sift_up(heap, heap->count++, entry);
}

void sw_heap_remove(struct sw_heap *heap, uint32_t id)
{
	if (!sw_heap_has(heap, id))
		return;
	uint32_t at = heap->places.items[id] - 1;
	heap->places.items[id] = 0;
	struct sw_heap_entry last = heap->entries[--heap->count];
	if (at < heap->count)
		settle(heap, at, last);
}
