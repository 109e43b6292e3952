/* A run goes to other GPUs of its node. */
#ifndef SW_AGENT_SUPERVISOR_MOVE_H
#define SW_AGENT_SUPERVISOR_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/device_group.h"
#include "api/sync.h"
#include "base/error.h"
#include "gpu/gpu.h"
#include "share/checkpoint.h"
#include "share/page.h"

struct sw_supervisor;

/* How it goes to other GPUs. */
struct sw_supervisor_move {
	bool leaving;	    /* its memory is on its way out, or about to be, so that the rest can be moved */
	bool shut;	    /* no other process of it comes to its GPUs meanwhile */
	int64_t until_ns;   /* that is waited for */
	uint32_t count;	    /* of its GPUs */
	int64_t look_at_ns; /* SW_NEVER: nothing to look for */
	int64_t look_step_ns;
	char from[SW_PAGE_GPUS][SW_GPU_UUID_MAX], to[SW_PAGE_GPUS][SW_GPU_UUID_MAX]; /* by their places in the page */
	char gpus[SW_SYNC_PLACES_MAX], moving[SW_SYNC_PLACES_MAX];		     /* the account's */
	char why[256];
};

/* Its processes can open the device files of its GPUs, and of those that it is on its way to. Where
 * the system lets us, they can open those of no others. */
void sw_supervisor_keep_gpus(struct sw_supervisor *supervisor);
/* The numbers of these files, as the driver's folder `proc` has them; one may be there twice.
 * False: of one it is not known. */
bool sw_supervisor_minors(const struct sw_supervisor *supervisor, const char *proc, uint32_t minors[SW_DEVICE_GPUS_MAX], size_t *ret_count);
/* "UUID,UUID...": its GPUs from now on, if that can be; else `unmoved` says why it stays, and
 * it goes on where it was. */
void sw_supervisor_move(struct sw_supervisor *supervisor, const char *words);
void sw_supervisor_move_tick(struct sw_supervisor *supervisor, int64_t now_ns);
/* It is there (NULL), or is not and why. The caller sees to it that
 * its memory comes back. */
void sw_supervisor_move_end(struct sw_supervisor *supervisor, const char *why);
/* All GPUs of the node, and what takes their places: those that it leaves change places with
 * those that it goes to. */
int sw_supervisor_move_pairs(const struct sw_supervisor *supervisor, struct sw_checkpoint_pair *pairs, size_t *ret_count,
			     struct sw_err *err);
/* A move that has not come to the driver yet is not continued. */
void sw_supervisor_move_cancel(struct sw_supervisor *supervisor, const char *why);

#endif
