/* Which handles that are launched are kernels of libraries and which are functions of modules. A
 * launch takes either in one place, but the driver is asked for their names by different calls.
 * What it does with a handle of the other kind is not documented. */
#ifndef SW_RUNTIME_KERNELS_H
#define SW_RUNTIME_KERNELS_H

#include <stdbool.h>

bool sw_kernels_have(const void *handle);

#endif
