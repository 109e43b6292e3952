/* What a context takes of the GPU beside the memory that the program asks for. It is found out once
 * for each GPU of a job, when its first context there is made, and charged for every one of them.
 * No process waits for another to find out: a process that cannot uses what another has found.
 *
 * A context cannot be in host memory meanwhile. Where others have filled the GPU the process says
 * what it lacks, and tries again while its coordinator makes room. */
#ifndef SW_RUNTIME_OVERHEAD_H
#define SW_RUNTIME_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "runtime/nvml.h"

struct sw_overhead {
	int gpu; /* in the page; -1: it is not counted */
	bool asked, alone;
	struct sw_nvml_use before;
};

/* Around the call that makes a context of the device. */
void sw_overhead_before(struct sw_overhead *overhead, CUdevice device);
/* 0: not known. */
uint64_t sw_overhead_after(struct sw_overhead *overhead, bool made);

/* Where there was no room: naps outside the gate, and says whether to try again. `waited_ns` starts
 * as 0. No process waits for long, but for its turn. */
bool sw_overhead_may_try_again(const struct sw_overhead *overhead, int64_t *waited_ns);
/* After all that: nothing is lacking any more, or nothing will help. */
void sw_overhead_stop_trying(int64_t waited_ns);

#endif
