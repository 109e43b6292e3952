/* A reserve of disk space: a file that holds room, beside the journal. When the disk is full
 * some of it is given back, for records that must get through.
 *
 *  1. Its space is taken when it is made, not when it is needed.
 *  2. It is given back in small pieces: whatever else writes to the same disk may take a piece,
 *     not all of them.
 */
#ifndef SW_STORE_RESERVE_H
#define SW_STORE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct sw_reserve;
/* Opens or makes the file (mode 0600) and takes as much of `full` bytes as there is. */
int sw_reserve_open(const char *path, size_t full, struct sw_reserve **ret_reserve, struct sw_err *err);
void sw_reserve_close(struct sw_reserve *reserve);
SW_DEFINE_FREEP(struct sw_reserve, sw_reserve_close)

/* Bytes that it holds now. */
size_t sw_reserve_left(const struct sw_reserve *reserve);
/* Gives back so many bytes, or what is left of it; false: it is empty. */
bool sw_reserve_give(struct sw_reserve *reserve, size_t bytes);
/* Takes back what was given; true: it is full again. Otherwise it holds what it held. */
bool sw_reserve_refill(struct sw_reserve *reserve);

#endif
