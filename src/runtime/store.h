/* Pinned host memory where contents wait while the process is suspended. Made in slices, ahead of time where possible: touching and pinning memory
 * takes longer than the copy itself. Used by the attendant only. */
#ifndef SW_RUNTIME_STORE_H
#define SW_RUNTIME_STORE_H

#include <stdbool.h>
#include <stddef.h>

#define SW_STORE_PIECE_MOST ((size_t)256 << 20)

/* A piece of up to SW_STORE_PIECE_MOST in whole units; NULL: the host has no more. A context must be current. */
void *sw_store_get(size_t bytes);
void sw_store_put(void *piece, size_t bytes);
/* Makes one more slice if the store holds less than `bytes` in all; false: there was nothing to do, or no way to. */
bool sw_store_prepare(size_t bytes, bool *ret_enough);
size_t sw_store_size(void);

#endif
