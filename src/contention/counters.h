/* What the hardware counters of a GPU say about a program's kernels. It is read from what Nsight
 * Compute prints (`ncu --csv`, a line for each metric of each kernel).
 *
 * The use of each part is that of the kernels, weighed by how long they took. It is part of what
 * the GPU could do at most. So it is of the time in which kernels run. The part of the time in
 * which they do (busy) is another matter. The columns are found by their names, and units are read,
 * not assumed: versions differ in both. What a kernel has no figure of ("n/a") does not count for
 * that part.
 */
#ifndef SW_CONTENTION_COUNTERS_H
#define SW_CONTENTION_COUNTERS_H

#include "contention/profile.h"

/* What to ask for, for `--metrics`. */
extern const char sw_counters_metrics[];

#define SW_COUNTERS_KERNELS_MAX 100000u

struct sw_counters {
	uint32_t kernels;
	int64_t time_ns; /* of all of them */
	uint16_t use_milli[SW_USE_DRAM_WRITE +
			   /* by enum sw_profile_use, from SW_USE_SM on; >= 1, since 0 says
			    * elsewhere that nothing was measured */
			   1];
};

/* Refused: SW_EDENIED where the driver lets only administrators see counters, and SW_ENOTFOUND
 * where no kernel was measured. SW_EINPUT for a figure that cannot be read or a part of which there
 * is none. */
int sw_counters_read(const char *text, size_t size, struct sw_counters *ret_counters, struct sw_err *err);

#endif
