/* The driver's checkpoints of other processes. What a process that stands still has on its GPUs,
 * context and all, goes to host memory, and comes back, maybe on other GPUs.
 *
 * The driver is called in a short-lived child, so that the caller never has it loaded and no call
 * can keep the caller. After a bounded time the child is given up.
 *
 * Invariants:
 *  1. of several processes all are taken off or none; what had to be undone and
 *     could not says so in `off`;
 *  2. a process that ends meanwhile is no trouble;
 *  3. where the child was given up or killed while it took processes off,
 *     another one lets them go on.
 */
#ifndef SW_SHARE_CHECKPOINT_H
#define SW_SHARE_CHECKPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define SW_CHECKPOINT_PROCESSES 1024u
#define SW_CHECKPOINT_PAIRS 16u

struct sw_checkpoint_process {
	pid_t pid;
	bool off; /* as it is, and as it is afterwards */
};

/* A GPU by its UUID, and the one that takes its place. */
struct sw_checkpoint_pair {
	uint8_t from[16], to[16];
};

/* From here on the number of the child is in *place while there is one. Should its parent be
 * killed, the child goes on, and others may have to know it. NULL: nowhere. */
void sw_checkpoint_show(_Atomic pid_t *place);

int sw_checkpoint_out(struct sw_checkpoint_process *processes, size_t count, struct sw_err *err);
/* With pairs, every GPU that the processes know must be in one. */
int sw_checkpoint_back(struct sw_checkpoint_process *processes, size_t count, const struct sw_checkpoint_pair *pairs, size_t pair_count,
		       struct sw_err *err);

#endif
