/* Memory that the program gets in stream order (cuMemAllocAsync), from pools whose memory is ours
 * and moves like any other (memory.h).
 *
 * A pool is the driver's, and has settings and figures there. What is allocated from it lies in
 * ranges of ours, which are cut into pieces. A piece that was freed is idle: the stream that freed
 * it may have it again at once, others when it is over (freers.h). Neighbours that one stream freed
 * are one piece at once, others when they are needed.
 *
 * Ours are the pools that a device has by itself, and those that the program made for plain memory
 * of a device. Those that other processes may open, and of other kinds, are the driver's alone
 * (charges.c counts them), and so is memory of graphs.
 *
 * Invariants:
 *  1. each byte of a range with pieces is in exactly one of them. An idle one is in the bin of its
 *     size, and refers to the freer that freed it;
 *  2. a pool's memory is given back in three cases. One is that the program waits for the GPU, and
 *     the pool is over its threshold. The others are that it is asked for, and that something would
 *     leave the GPU or fail for want of room;
 *  3. a pool that the program destroyed lasts until its last allocation is freed;
 *  4. under sw_memory_lock.
 */
#ifndef SW_RUNTIME_POOLS_H
#define SW_RUNTIME_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"

struct sw_freer;
struct sw_pool_piece;
struct sw_pool;
struct sw_range;

struct sw_pool_figures {
	uint64_t reserved, reserved_high, used, used_high;
};

/* The pool of this handle, for memory of the device; NULL: it is not ours. */
struct sw_pool *sw_pool_of(CUmemoryPool handle, CUdevice device);
/* One that the program made. */
void sw_pool_made(CUmemoryPool handle, const CUmemPoolProps *props);
void sw_pool_destroyed(CUmemoryPool handle);
/* NULL: it is not ours, or was never used. */
struct sw_pool *sw_pool_known(CUmemoryPool handle);
CUmemoryPool sw_pool_handle(const struct sw_pool_piece *piece);
/* The context of the freer is current. */
CUresult sw_pool_get(struct sw_pool *pool, struct sw_freer *freer, size_t bytes, struct sw_range **ret_range,
		     struct sw_pool_piece **ret_piece, CUdeviceptr *ret_address);
/* In the freer's order; without a freer, at once. */
void sw_pool_put(struct sw_pool_piece *piece, struct sw_freer *freer);
/* Whether it holds memory that is not in use. */
bool sw_pool_has_idle(const struct sw_pool *pool);
struct sw_pool_figures sw_pool_figures(const struct sw_pool *pool);
void sw_pool_forget_high(struct sw_pool *pool, bool reserved, bool used);
void sw_pool_set_threshold(struct sw_pool *pool, uint64_t bytes);
int sw_pool_device(const struct sw_pool *pool);

/* Gives back what is over, down to so many bytes. */
void sw_pool_trim(struct sw_pool *pool, uint64_t keep);
/* Whether a pool holds more than its threshold, and not all of it is in use. */
bool sw_pools_exceed(void);
/* Down to their thresholds. */
void sw_pools_settle(void);
/* What they hold and do not use, over or not. */
size_t sw_pools_idle(void);
/* All that is over on this GPU of the page; whether that was anything. */
bool sw_pools_reclaim(int gpu);
/* What is over need not refer to the freer that freed it: there are too many of them. */
void sw_pools_loosen(void);
/* The range goes, with all that is in it. */
void sw_pool_forget_range(struct sw_range *range);

#endif
