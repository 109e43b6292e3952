/* A heap of ids by (key, id), with a position kept for each id so that one can be moved or removed.
 *
 * Ids are small integers; each is at most once in a heap. The smallest key is on top, equal keys by
 * id: the order of ties is total.
 */
#ifndef SW_BASE_HEAP_H
#define SW_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

struct sw_heap_entry {
	int64_t key;
	uint32_t id;
};

struct sw_heap {
	struct sw_heap_entry *entries;
	SW_TABLE(uint32_t) places; /* of each id that is usable, one above its position; 0: it is not in */
	uint32_t count;
	uint32_t capacity; /* so many may be in at a time */
};

/* Makes ids below `capacity` usable, all of them at a time; 0 or SW_ENOMEM. */
int sw_heap_reserve(struct sw_heap *heap, uint32_t capacity);
/* The same where no more than `members` of them are in at a time. */
int sw_heap_make_room(struct sw_heap *heap, uint32_t ids, uint32_t members);
/* None of the ids from `from` up to `to` is in, and none will be: they need no memory any more. */
void sw_heap_forget(struct sw_heap *heap, uint32_t from, uint32_t to);
void sw_heap_release(struct sw_heap *heap);
/* Inserts, or moves the id to its new key. */
void sw_heap_set(struct sw_heap *heap, uint32_t id, int64_t key);
/* Does nothing if the id is not in. */
void sw_heap_remove(struct sw_heap *heap, uint32_t id);

static inline bool sw_heap_has(const struct sw_heap *heap, uint32_t id)
{
	return id < heap->places.room && heap->places.items[id] != 0;
}

/* Key of the top; INT64_MAX when empty. */
static inline int64_t sw_heap_top_key(const struct sw_heap *heap)
{
	return heap->count > 0 ? heap->entries[0].key : INT64_MAX;
}

static inline int64_t sw_heap_key(const struct sw_heap *heap, uint32_t id)
{
	return heap->entries[heap->places.items[id] - 1].key;
}

#endif
