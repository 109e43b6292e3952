/* A set of small integers that finds the next member quickly: a bitmap with summary levels
 * above it (64 bits each). Cost of every operation follows the number of levels, at most 5,
 * never the number of members. */
#ifndef SW_BASE_BITMAP_H
#define SW_BASE_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#define SW_BITMAP_LEVELS 5
#define SW_BITMAP_NONE UINT32_MAX

struct sw_bitmap {
	uint64_t *levels[SW_BITMAP_LEVELS]; /* levels[0] holds the members; all levels live in one block */
	uint32_t level_count;
	uint32_t capacity; /* members are below this */
	uint32_t count;
};

/* Holds integers below `capacity` (at most 2^30); keeps the members it has. 0,
 * SW_ENOMEM or SW_ELIMIT. */
int sw_bitmap_reserve(struct sw_bitmap *bitmap, uint32_t capacity);
void sw_bitmap_release(struct sw_bitmap *bitmap);
/* Adding a member or removing a stranger does nothing. */
void sw_bitmap_add(struct sw_bitmap *bitmap, uint32_t value);
void sw_bitmap_remove(struct sw_bitmap *bitmap, uint32_t value);
/* The smallest member that is not below `from`; SW_BITMAP_NONE: there is none. */
uint32_t sw_bitmap_next(const struct sw_bitmap *bitmap, uint32_t from);

/* The largest member that is not above `from`. */
uint32_t sw_bitmap_prev(const struct sw_bitmap *bitmap, uint32_t from);
/* How many members follow each other from this one on. */
uint32_t sw_bitmap_row(const struct sw_bitmap *bitmap, uint32_t from);

static inline bool sw_bitmap_has(const struct sw_bitmap *bitmap, uint32_t value)
{
	return value < bitmap->capacity && (bitmap->levels[0][value / 64] >> (value % 64) & 1) != 0;
}

#endif
