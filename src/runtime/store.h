/* Pinned host memory where contents wait while the process is suspended. Made in slices, ahead
 * of time where possible: touching and pinning memory takes longer than the copy itself. Used
 * by the attendant only. */
#ifndef SW_RUNTIME_STORE_H
#define SW_RUNTIME_STORE_H

#include <stdbool.h>
#include <stddef.h>

#define SW_STORE_PIECE_MOST ((size_t)256 << 20)

/* A piece of up to SW_STORE_PIECE_MOST in whole units; NULL: the host has no more. A
 * context must be current. */
void *sw_store_get(size_t bytes);
void sw_store_put(void *piece, size_t bytes);
/* Makes one more slice, if the store holds less than `bytes` in all, for pieces of up to `piece`. A
 * context must be current. */
enum sw_store_more { SW_STORE_ENOUGH, SW_STORE_MADE, SW_STORE_NO_ROOM /* for now */, SW_STORE_CANNOT };
enum sw_store_more sw_store_prepare(size_t bytes, size_t piece);
/* Bytes where nothing lies. */
size_t sw_store_unused(void);
/* Gives one slice back to the host in which nothing lies; false: there is none. A
 * context must be current. */
bool sw_store_trim(void);

#endif
