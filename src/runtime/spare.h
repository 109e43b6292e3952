/* Host memory that the GPU can read through its own addresses. Making it takes far longer than a copy into it, so it is made before it is needed, while the program runs,
 * and a bounded part of what is not needed any more is kept. */
#ifndef SW_RUNTIME_SPARE_H
#define SW_RUNTIME_SPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/driver.h"

/* One that was kept, or a new one. */
CUresult sw_spare_get(CUdevice device, size_t bytes, CUmemHandle *ret_handle);
/* It is not needed any more, and mapped nowhere: kept, or given back to the host. */
void sw_spare_put(CUdevice device, size_t bytes, CUmemHandle handle);
/* Makes what is missing for pieces of these sizes to be got; false: the host has no more. */
bool sw_spare_prepare(CUdevice device, const size_t *sizes, size_t count);

#endif
