/* Around calls in which the program waits for the GPU. What was freed in stream order before is
 * over then, and pools give back what they hold beyond their thresholds. */
#ifndef SW_RUNTIME_WAITED_H
#define SW_RUNTIME_WAITED_H

#include <stdint.h>

#include "cuda/driver.h"

/* 0: there is nothing to say when it ends. */
uint64_t sw_wait_begins(void);
/* For all work of the context, if the stream is NULL; for something else, if both are NULL.
 * Otherwise for that of the stream, named as freers do. */
void sw_wait_ends(uint64_t begun, CUcontext context, CUstream stream);

#endif
