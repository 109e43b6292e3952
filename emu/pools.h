/* Memory in stream order: pools, and the calls on them. */
#ifndef EMU_POOLS_H
#define EMU_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"

struct emu_pool;

/* At every point where the host waits: pools give back what they hold unused
 * beyond their threshold. */
void emu_pools_trim(void);

/* Of work in a stream: the memory at `address` may be used again. */
void emu_pool_freed(struct emu_pool *pool, uint64_t address, uint64_t ticket);

/* Memory of a pool that the program frees without a stream. */
void emu_pool_free_now(struct emu_pool *pool, uint64_t address);

#endif
