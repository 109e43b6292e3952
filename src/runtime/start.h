/* When the runtime begins to act in this process: at the first successful cuInit(), if there is a page. */
#ifndef SW_RUNTIME_START_H
#define SW_RUNTIME_START_H

#include <stdbool.h>

void sw_start(void);
/* Whether cuMemAlloc() is ours. */
extern bool sw_moves;

/* attendant.c */
bool sw_attendant_start(void);

#endif
