/* A heap of ids by (key, id), with a position kept for each id so that one can be moved or removed.
 *
 * Ids are small integers; each is at most once in a heap. The smallest key is on top, equal keys by id: the order of ties is total.
 */
#ifndef SW_BASE_HEAP_H
#define SW_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define SW_HEAP_ABSENT UINT32_MAX

struct sw_heap_entry {
	int64_t key;
	uint32_t id;
};

struct sw_heap {
	struct sw_heap_entry *entries;
	uint32_t *positions; /* of each id, SW_HEAP_ABSENT when it is not in */
	uint32_t count;
	uint32_t capacity; /* ids below this are usable */
};

/* Makes ids below `capacity` usable; 0 or SW_ENOMEM. */
int sw_heap_reserve(struct sw_heap *heap, uint32_t capacity);
void sw_heap_release(struct sw_heap *heap);
/* Inserts, or moves the id to its new key. */
void sw_heap_set(struct sw_heap *heap, uint32_t id, int64_t key);
/* Does nothing if the id is not in. */
void sw_heap_remove(struct sw_heap *heap, uint32_t id);

static inline bool sw_heap_has(const struct sw_heap *heap, uint32_t id)
{
	return id < heap->capacity && heap->positions[id] != SW_HEAP_ABSENT;
}

/* Key of the top; INT64_MAX when empty. */
static inline int64_t sw_heap_top_key(const struct sw_heap *heap)
{
	return heap->count > 0 ? heap->entries[0].key : INT64_MAX;
}

static inline int64_t sw_heap_key(const struct sw_heap *heap, uint32_t id)
{
	return heap->entries[heap->positions[id]].key;
}

#endif
