#include "base/bitmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define BITS 64u
#define CAPACITY_MAX (UINT32_C(1) << 30)

/* Word by word: each level means the same in both, and those that are new above have
 * one bit at most to tell. */
static void copy(struct sw_bitmap *to, const struct sw_bitmap *from)
{
	assert(from->level_count <= to->level_count);
	to->count = from->count;
	uint32_t count = from->capacity;
	for (uint32_t level = 0; level < from->level_count; level++) {
		count = (count + BITS - 1) / BITS;
		memcpy(to->levels[level], from->levels[level], count * sizeof *from->levels[level]);
	}
	for (uint32_t level = from->level_count; level > 0 && level < to->level_count; level++)
		to->levels[level][0] = to->levels[level - 1][0] != 0;
}

int sw_bitmap_reserve(struct sw_bitmap *bitmap, uint32_t capacity)
{
	if (capacity <= bitmap->capacity)
		return 0;
	if (capacity > CAPACITY_MAX)
		return SW_ELIMIT;
	uint64_t wanted = bitmap->capacity + (uint64_t)bitmap->capacity / 2 + 1024;
	if (wanted < capacity)
		wanted = capacity;
	if (wanted > CAPACITY_MAX)
		wanted = CAPACITY_MAX;
	uint32_t words[SW_BITMAP_LEVELS], levels = 0, total = 0;
	uint32_t count = (uint32_t)wanted;
	do {
		count = (count + BITS - 1) / BITS;
		words[levels++] = count;
		total += count;
	} while (count > 1);
	uint64_t *block = calloc(total, sizeof *block);
	if (block == NULL)
		return SW_ENOMEM;
	struct sw_bitmap grown = {.level_count = levels, .capacity = (uint32_t)wanted};
	uint64_t *at = block;
	for (uint32_t level = 0; level < levels; level++) {
		grown.levels[level] = at;
		at += words[level];
	}
	copy(&grown, bitmap);
	sw_bitmap_release(bitmap);
	*bitmap = grown;
	return 0;
}

void sw_bitmap_release(struct sw_bitmap *bitmap)
{
	free(bitmap->levels[0]);
	*bitmap = (struct sw_bitmap){0};
}

void sw_bitmap_add(struct sw_bitmap *bitmap, uint32_t value)
{
	assert(value < bitmap->capacity);
	if (sw_bitmap_has(bitmap, value))
		return;
	bitmap->count++;
	for (uint32_t level = 0; level < bitmap->level_count; level++) {
		uint64_t *word = &bitmap->levels[level][value / BITS];
		uint64_t before = *word;
		*word |= UINT64_C(1) << (value % BITS);
		if (before != 0)
			return; /* the levels above know already */
		value /= BITS;
	}
}

void sw_bitmap_remove(struct sw_bitmap *bitmap, uint32_t value)
{
	if (!sw_bitmap_has(bitmap, value))
		return;
	bitmap->count--;
	for (uint32_t level = 0; level < bitmap->level_count; level++) {
		uint64_t *word = &bitmap->levels[level][value / BITS];
		*word &= ~(UINT64_C(1) << (value % BITS));
		if (*word != 0)
			return;
		value /= BITS;
	}
}

uint32_t sw_bitmap_next(const struct sw_bitmap *bitmap, uint32_t from)
{
	if (from >= bitmap->capacity || bitmap->count == 0)
		return SW_BITMAP_NONE;
	uint32_t level = 0;
	for (;;) {
		uint64_t rest = bitmap->levels[level][from / BITS] >> (from % BITS);
		if (rest != 0) {
			from += (uint32_t)__builtin_ctzll(rest);
			break;
		}
		/* Nothing left in this word: look one level up, behind the word's own bit. */
		from = from / BITS + 1;
		level++;
		uint32_t bits = bitmap->capacity;
		for (uint32_t below = 0; below < level; below++)
			bits = (bits + BITS - 1) / BITS;
		if (level >= bitmap->level_count || from >= bits)
			return SW_BITMAP_NONE;
	}
	while (level > 0) {
		level--;
		from = from * BITS + (uint32_t)__builtin_ctzll(bitmap->levels[level][from]);
	}
	return from;
}

uint32_t sw_bitmap_row(const struct sw_bitmap *bitmap, uint32_t from)
{
	uint32_t at = from;
	while (at < bitmap->capacity) {
		uint64_t gaps = ~bitmap->levels[0][at / BITS] >> (at % BITS);
		uint32_t rest = BITS - at % BITS;
		uint32_t row = gaps == 0 ? rest : (uint32_t)__builtin_ctzll(gaps);
		at += row < rest ? row : rest;
		if (row < rest)
			break;
	}
	return at - from;
}

uint32_t sw_bitmap_prev(const struct sw_bitmap *bitmap, uint32_t from)
{
	if (bitmap->count == 0)
		return SW_BITMAP_NONE;
	if (from >= bitmap->capacity)
		from = bitmap->capacity - 1;
	uint32_t level = 0;
	for (;;) {
		uint64_t rest = bitmap->levels[level][from / BITS] << (BITS - 1 - from % BITS);
		if (rest != 0) {
			from -= (uint32_t)__builtin_clzll(rest);
			break;
		}
		/* Nothing before it in this word: look one level up, before the word's own bit. */
		if (from < BITS || ++level >= bitmap->level_count)
			return SW_BITMAP_NONE;
		from = from / BITS - 1;
	}
	while (level > 0) {
		level--;
		from = from * BITS + BITS - 1 - (uint32_t)__builtin_clzll(bitmap->levels[level][from]);
	}
	return from;
}
