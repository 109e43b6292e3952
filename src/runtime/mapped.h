/* Memory that the program creates and maps by hand (cuMemCreate, cuMemMap): it counts, and
 * moves where that is simple.
 *
 * It moves while one mapping shows all of it, and its own GPU may write there. The context in which
 * it was mapped must live, and no other process may know it. Then the mapping is a range (memory.h)
 * of one chunk, and leaves and comes back like any other. Everything else stays where it is. That
 * is what was exported or bound to a multicast group, and handles that are mapped twice or in part
 * or not at all. So do memory of special kinds, and what is larger than a piece of the store.
 *
 * Invariants:
 *  1. the driver holds such memory by one handle of ours and by its mappings; how often the program
 *     holds it is counted here alone;
 *  2. the program's handle is the driver's until the memory has moved, and keeps its value then. No
 *     other handle that the program gets has that value;
 *  3. all of this is under sw_memory_lock, but not calls of the driver that may take as long as
 *     they like. What one of them is under way with stays, and where it is.
 */
#ifndef SW_RUNTIME_MAPPED_H
#define SW_RUNTIME_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"

struct sw_mapping;

/* Memory with the properties of what the program mapped there. */
CUresult sw_mapped_create(const struct sw_mapping *mapping, CUmemHandle *ret_handle);
/* Lets those use it that the program said. */
CUresult sw_mapped_open(const struct sw_mapping *mapping);
/* What lies there is known to others from now on; under the lock. */
void sw_mapped_pin(CUdeviceptr address, size_t bytes);
/* The context is gone; under the lock. Its memory is not, but it cannot be copied. */
void sw_mapped_forget_context(CUcontext context);
/* A handle that the driver gave to the program: gets another value where the
 * program has that one already. */
CUmemHandle sw_mapped_name(CUmemHandle handle);

#endif
