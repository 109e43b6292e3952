/* A growing array for numbers that are given out once and in order, of which most are forgotten
 * later: `SW_TABLE(struct sw_live) jobs`.
 *
 * items[number] is as quick as in a plain array. A stretch of numbers that are forgotten gives its
 * memory back to the system, page by page. The numbers around it stay where they are. The machine's
 * own page table does the rest.
 *
 *	SW_TABLE(struct sw_live) jobs = {0};
 *	sw_table_reserve(&jobs, jobs.count + 1);	0 or SW_ENOMEM; what is new is zeroed
 *	struct sw_live *live = &jobs.items[jobs.count++];
 *	sw_table_clear(&jobs, 3, 5);			items 3 and 4 are zeroed; whole pages
 *							of them take no memory any more
 *	sw_table_free(&jobs);
 *
 * Invariants:
 *  1. whatever has not been written since it was reserved or cleared is zero;
 *  2. pointers into `items` are valid until the next reserve.
 */
#ifndef SW_BASE_TABLE_H
#define SW_BASE_TABLE_H

#include <stddef.h>

#define SW_TABLE(type)        \
	struct {              \
		type *items;  \
		size_t count; \
		size_t room;  \
	}

/* `items` is the address of the typed pointer. */
int sw_table_grow(void *items, size_t *room, size_t size, size_t wanted);
static inline int sw_table_make_room(void *items, size_t *room, size_t size, size_t wanted)
{
	return wanted <= *room ? 0 : sw_table_grow(items, room, size, wanted);
}
void sw_table_wipe(void *items, size_t room, size_t size, size_t from, size_t to);
void sw_table_release(void *items, size_t *room, size_t size);

#define sw_table_reserve(table, wanted) sw_table_make_room(&(table)->items, &(table)->room, sizeof *(table)->items, (wanted))
#define sw_table_clear(table, from, to) sw_table_wipe(&(table)->items, (table)->room, sizeof *(table)->items, (from), (to))
#define sw_table_free(table) (sw_table_release(&(table)->items, &(table)->room, sizeof *(table)->items), (table)->count = 0)

#endif
