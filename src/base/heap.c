#include "base/heap.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

/* Four children a node: shallower than two, and the four sit on one or two cache lines. */
#define ARITY 4u

int sw_heap_reserve(struct sw_heap *heap, uint32_t capacity)
{
	if (capacity <= heap->capacity)
		return 0;
	uint32_t wanted = heap->capacity + heap->capacity / 2 + 64;
	if (wanted < capacity)
		wanted = capacity;
	struct sw_heap_entry *entries = realloc(heap->entries, (size_t)wanted * sizeof *entries);
	if (entries == NULL)
		return SW_ENOMEM;
	heap->entries = entries;
	uint32_t *positions = realloc(heap->positions, (size_t)wanted * sizeof *positions);
	if (positions == NULL)
		return SW_ENOMEM;
	heap->positions = positions;
	for (uint32_t id = heap->capacity; id < wanted; id++)
		positions[id] = SW_HEAP_ABSENT;
	heap->capacity = wanted;
	return 0;
}

void sw_heap_release(struct sw_heap *heap)
{
	free(heap->entries);
	free(heap->positions);
	*heap = (struct sw_heap){0};
}

static bool is_before(struct sw_heap_entry a, struct sw_heap_entry b)
{
	return a.key != b.key ? a.key < b.key : a.id < b.id;
}

static void put(struct sw_heap *heap, uint32_t at, struct sw_heap_entry entry)
{
	heap->entries[at] = entry;
	heap->positions[entry.id] = at;
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
	assert(id < heap->capacity);
	struct sw_heap_entry entry = {key, id};
	if (heap->positions[id] == SW_HEAP_ABSENT)
		sift_up(heap, heap->count++, entry);
	else
		settle(heap, heap->positions[id], entry);
}

void sw_heap_remove(struct sw_heap *heap, uint32_t id)
{
	if (!sw_heap_has(heap, id))
		return;
	uint32_t at = heap->positions[id];
	heap->positions[id] = SW_HEAP_ABSENT;
	struct sw_heap_entry last = heap->entries[--heap->count];
	if (at < heap->count)
		settle(heap, at, last);
}
