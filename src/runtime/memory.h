/* Universal memory: what the program gets from cuMemAlloc(), or maps by hand (mapped.h), is a range
 * of addresses that stays. Below it are chunks of physical memory that come and go.
 *
 * A chunk is on the GPU, in host memory that the GPU reads through the same addresses, or stored
 * away while the process is suspended. The second is called spilled: slow, but the program goes on.
 * Small requests share ranges (slabs.c).
 *
 * Invariants:
 *  1. addresses of a range never change while it lives, and only this folder maps there;
 *  2. while the gate is open, every chunk of every range is on the GPU or spilled, never stored.
 *     But where the GPU is lost (attendant.c) nothing moves any more;
 *  3. bytes on the GPU are charged to the account of its GPU, spilled and stored bytes to the host
 *     budget; nothing else is;
 *  4. a pinned range does not move: another process, or the driver itself,
 *     knows its physical memory.
 *
 * Callers are inside the gate, or have closed it (move.c); `sw_memory_lock`
 * keeps those inside apart.
 */
#ifndef SW_RUNTIME_MEMORY_H
#define SW_RUNTIME_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"

#define SW_CHUNK_BYTES ((size_t)64 << 20)
#define SW_UNIT_BYTES ((size_t)2 << 20) /* what the driver maps at least */

enum sw_memory_place { SW_ON_GPU = 0, SW_SPILLED, SW_STORED };

struct sw_chunk {
	CUmemHandle handle; /* 0 while it is stored */
	void *stored;	    /* in the store */
	uint32_t bytes;
	uint8_t place; /* enum sw_memory_place */
};

struct sw_freer;
struct sw_pool;

struct sw_range {
	CUdeviceptr address;
	size_t bytes; /* of the chunks: whole units */
	CUcontext context;
	CUdevice device;
	int gpu; /* in the page */
	bool pinned;
	uint64_t exported;		  /* its number among those that other processes may open; 0: none */
	struct sw_slab *slab;		  /* small ones share it */
	struct sw_pool_piece *pieces;	  /* it is of a pool (pools.h): the first of them. Neither: one allocation takes it all */
	const struct sw_mapping *mapping; /* the program mapped it by hand (mapped.h); NULL: it is one of ours */
	struct sw_range *next, *previous;
	uint32_t chunk_count;
	struct sw_chunk chunks[];
};

extern pthread_mutex_t sw_memory_lock;
extern struct sw_range *sw_ranges; /* all, newest first */

/* For the current context. */
CUresult sw_memory_get(size_t bytes, CUdeviceptr *ret_address);
/* From the pool, in the order of the freer, whose context is current; under the lock. */
CUresult sw_memory_get_pooled(struct sw_pool *pool, struct sw_freer *freer, size_t bytes, CUdeviceptr *ret_address);
/* All work with it is over. False: it is none of ours. */
bool sw_memory_put(CUdeviceptr address);
/* The same when the work is over that was given to the stream before (freers.h). */
bool sw_memory_put_later(CUdeviceptr address, CUstream stream, CUresult *ret_result);
/* Gives back what was put for later and is over now; takes the lock. */
void sw_memory_settle(void);
/* Memory is short: waits, outside the gate, for what was put for later, and gives it
 * back; not during a capture. Whether there was anything; takes the lock, and the
 * caller is inside the gate. */
bool sw_memory_await_leaving(void);
/* Gives back what pools hold on this GPU and do not use: it is needed. Whether that was
 * anything; takes the lock. */
bool sw_memory_reclaim(int gpu);
extern _Atomic unsigned sw_memory_leaving; /* how many wait for that */
/* How much memory they are; under the lock. */
size_t sw_memory_leaving_bytes(void);
/* The allocation that holds this address. */
bool sw_memory_find(CUdeviceptr address, CUdeviceptr *ret_base, size_t *ret_bytes, CUcontext *ret_context);
/* The pool that it is from; NULL: none of ours. */
CUmemoryPool sw_memory_pool(CUdeviceptr address);
/* From now on what lies there does not move. */
void sw_memory_pin(CUdeviceptr address, size_t bytes);
/* The context is gone, and what it allocated with it. */
void sw_memory_drop_context(CUcontext context);
/* `peer` may use what `device` holds, now and later. */
void sw_memory_let(CUdevice device, CUdevice peer);

/* ---- for move.c, limits.c, slabs.c, mapped.c, exports.c, attendant.c */
CUresult sw_range_new(size_t bytes, struct sw_range **ret_range);
void sw_range_free(struct sw_range *range);
void sw_range_link(struct sw_range *range);
void sw_range_unlink(struct sw_range *range);
extern _Atomic bool sw_exportable; /* what is got from now on can be given to other processes */
/* Under the lock. */
void sw_range_pin(struct sw_range *range);
CUresult sw_chunk_on_gpu(const struct sw_range *range, size_t bytes, CUmemHandle *ret_handle);
/* By a thread that changed ranges with the gate closed, before it is opened: those that take the
 * lock after it see what was done. */
void sw_memory_publish(void);
CUresult sw_range_open(const struct sw_range *range, CUdeviceptr address, size_t bytes);
CUdeviceptr sw_chunk_address(const struct sw_range *range, uint32_t index);

/* The driver must not take our own calls for part of a capture that this thread is in. */
int sw_capture_relax(void);
void sw_capture_restore(int mode);

#endif
