/* When the runtime begins to act in this process: at the first successful
 * cuInit(), if there is a page. */
#ifndef SW_RUNTIME_START_H
#define SW_RUNTIME_START_H

#include <stdbool.h>

#include "cuda/driver.h"

/* Whether cuMemAlloc() is ours. */
extern bool sw_moves;
/* Whether it is, and yet counts only: the program gets the driver's own memory
 * (SHAREWELL_GPU_MOVES=no). */
extern bool sw_stays;

/* attendant.c */
bool sw_attendant_start(void);
/* Gets all memory that can move anew, so that it can be given to other processes: once, and
 * it takes as long as a suspension. By a thread outside the gate, which waits for it;
 * false: nothing came of it. */
bool sw_attendant_renew(void);
/* The context goes. */
void sw_attendant_forget_context(CUcontext context);
/* imports.c: the context goes. */
void sw_import_forget_context(CUcontext context);
/* exports.c: after fork(), no thread listens here. */
void sw_export_forget(void);

#endif
