/* Host memory that the GPU can read through its own addresses. Making it takes far longer than a
 * copy into it. So it is made before it is needed, while the program runs, and a bounded part of
 * what is not needed any more is kept. */
#ifndef SW_RUNTIME_SPARE_H
#define SW_RUNTIME_SPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/driver.h"

/* One that was kept, or a new one. The bytes are charged to the job's host budget before, and given
 * back after sw_spare_put(). */
CUresult sw_spare_get(CUdevice device, size_t bytes, CUmemHandle *ret_handle);
/* It is not needed any more, and mapped nowhere: kept, or given back to the host. */
void sw_spare_put(CUdevice device, size_t bytes, CUmemHandle handle);
/* Makes what is missing for pieces of these sizes to be got; false: the host has no
 * more, or the job's budget. */
bool sw_spare_prepare(CUdevice device, const size_t *sizes, size_t count);
/* Gives one that was got back to the host: mapped nowhere, and not kept. */
CUresult sw_spare_release(size_t bytes, CUmemHandle handle);
/* Gives back what is kept: what the budget has no room for any more, or all if others
 * on the machine need it. */
void sw_spare_trim(void);
/* Gives back one of those that are kept; false: there is none. */
bool sw_spare_drop(void);

#endif
