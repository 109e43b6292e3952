/* Small allocations share ranges of one unit. Under sw_memory_lock. */
#ifndef SW_RUNTIME_SLABS_H
#define SW_RUNTIME_SLABS_H

#include "runtime/memory.h"

#define SW_SLAB_MOST ((size_t)1 << 20) /* larger requests get a range of their own */

CUresult sw_slab_get(size_t bytes, CUdeviceptr *ret_address, struct sw_range **ret_range);
void sw_slab_put(struct sw_range *range, CUdeviceptr address);
/* The range goes, with all that is in it. */
void sw_slab_forget(struct sw_range *range);

#endif
