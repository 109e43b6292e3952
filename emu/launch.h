/* A launch as work; also for graphs. */
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include "work.h"

/* The work of a launch: checks the shape, copies the arguments. Holds the function. */
CUresult emu_launch_work(const CUkernelNode *launch, struct emu_work **ret_work);

#endif
