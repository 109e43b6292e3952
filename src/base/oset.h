/* Ordered sets over small integer ids: many sets share one array of links, and each id is
 * in at most one of them.
 *
 * Order is ascending by (key, stamp, id). A treap whose priorities are a hash of the id. Expected
 * depth is logarithmic whatever the order of insertion, and the shape is the same in every run.
 * Nothing here allocates except sw_oset_links_reserve().
 *
 * Members may have marks, and each node knows all marks that are in its subtree. A walk over those
 * with a mark costs nothing for those without.
 *
 * Invariants:
 *  1. in-order walk of a set is strictly ascending by (key, stamp, id);
 *  2. a parent's priority is not below its children's;
 *  3. first and last of a set are its smallest and largest member, SW_OSET_NONE when it is empty;
 *  4. what a node knows of the marks in its subtree is true.
 */
#ifndef SW_BASE_OSET_H
#define SW_BASE_OSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

#define SW_OSET_NONE UINT32_MAX
#define SW_OSET_MARK_BITS 4

struct sw_oset_link {
	int64_t key;
	int64_t stamp;
	uint32_t left, right, parent;
	uint32_t priority : 32 - 2 * SW_OSET_MARK_BITS;
	uint32_t marks : SW_OSET_MARK_BITS; /* its own */
	uint32_t below : SW_OSET_MARK_BITS; /* and all in its subtree */
};

struct sw_oset_links {
	SW_TABLE(struct sw_oset_link) table;
	struct sw_oset_link *items; /* of the table */
};

struct sw_oset {
	uint32_t root, first, last;
	uint32_t count;
};

static inline struct sw_oset sw_oset_empty(void)
{
	return (struct sw_oset){SW_OSET_NONE, SW_OSET_NONE, SW_OSET_NONE, 0};
}

/* Makes ids below `capacity` usable; 0 or SW_ENOMEM. */
int sw_oset_links_reserve(struct sw_oset_links *links, uint32_t capacity);
void sw_oset_links_release(struct sw_oset_links *links);
/* None of the ids from `from` up to `to` is in a set, and none will be: they
 * need no memory any more. */
void sw_oset_links_forget(struct sw_oset_links *links, uint32_t from, uint32_t to);

/* The id must be in no set; it has no marks. */
void sw_oset_insert(struct sw_oset *set, struct sw_oset_links *links, uint32_t id, int64_t key, int64_t stamp);
/* The id must be in this set. */
void sw_oset_remove(struct sw_oset *set, struct sw_oset_links *links, uint32_t id);
/* Neighbours of a member; SW_OSET_NONE past the ends. */
uint32_t sw_oset_next(const struct sw_oset_links *links, uint32_t id);
uint32_t sw_oset_prev(const struct sw_oset_links *links, uint32_t id);
/* Gives a member these marks and no others. */
void sw_oset_mark(struct sw_oset_links *links, uint32_t id, uint32_t marks);
/* The same among members that have any of these marks; the id itself need not. */
uint32_t sw_oset_first_marked(const struct sw_oset *set, const struct sw_oset_links *links, uint32_t marks);
uint32_t sw_oset_last_marked(const struct sw_oset *set, const struct sw_oset_links *links, uint32_t marks);
uint32_t sw_oset_next_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks);
uint32_t sw_oset_prev_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks);
/* Checks the invariants; for tests. */
bool sw_oset_is_sound(const struct sw_oset *set, const struct sw_oset_links *links);

#endif
