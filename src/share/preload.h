/* What a program must find in its environment to run under the GPU runtime. */
#ifndef SW_SHARE_PRELOAD_H
#define SW_SHARE_PRELOAD_H

#include <stddef.h>

#include "base/error.h"

/* The path of libsharewell-gpu.so: $SHAREWELL_GPU_LIBRARY, beside this program, or
 * where it was installed. */
int sw_share_find_library(char *path, size_t size, struct sw_err *err);
/* The value of LD_PRELOAD that puts `library` before whatever `before` (NULL: nothing) names. */
int sw_share_preload_value(const char *library, const char *before, char *value, size_t size, struct sw_err *err);
/* Takes our library, wherever it lies, out of a value of LD_PRELOAD, in place. A program may have
 * its environment from one that ran under the runtime. */
void sw_share_preload_strip(char *value);

#endif
