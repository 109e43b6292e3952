/* What a context takes of the GPU beside the memory that the program asks for: found out once for each GPU of a job, when its first context there is made, and charged
 * for every one of them. Nobody waits for anybody: a process that cannot find out uses what another has found. */
#ifndef SW_RUNTIME_OVERHEAD_H
#define SW_RUNTIME_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "runtime/nvml.h"

struct sw_overhead {
	int gpu; /* in the page; -1: nobody counts */
	bool asked, alone;
	struct sw_nvml_use before;
};

/* Around the call that makes a context of the device. */
void sw_overhead_before(struct sw_overhead *overhead, CUdevice device);
/* 0: not known. */
uint64_t sw_overhead_after(struct sw_overhead *overhead, bool made);

#endif
