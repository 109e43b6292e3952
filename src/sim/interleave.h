/* How two jobs on one GPU interleave by the stages of their iterations, as Muri's simulator has it
 * for AntMan. The opportunistic job works on a resource only while the guaranteed one is busy with
 * another. */
#ifndef SW_SIM_INTERLEAVE_H
#define SW_SIM_INTERLEAVE_H

#include <stdint.h>

enum { SW_STAGE_DATA, SW_STAGE_GPU, SW_STAGE_NETWORK, SW_STAGES };

/* How many iterations of the guaranteed job `host` go by while the opportunistic `guest` gets
 * through one of its own. 0 where the stages are not known. */
int64_t sw_interleave_rounds(const uint32_t guest_us[SW_STAGES], const uint32_t host_us[SW_STAGES]);

#endif
