/* Which runs there were after their folders are gone, so that none is ever started again. It is a
 * file of lines "job epoch", and the one before it. */
#ifndef SW_AGENT_EPOCHS_H
#define SW_AGENT_EPOCHS_H

#include <stdint.h>

#include "api/sync.h"

/* A file of this size is put aside, and the one that was aside before is deleted: about 100,000
 * runs are remembered at least. */
#define SW_EPOCHS_BYTES_MAX (1u << 20)

struct sw_epochs {
	int state; /* folder */
	int fd;	   /* of the current file; -1 */
	uint64_t bytes;
};

/* Opens it in the agent's folder and calls `seen` for every run in it. 0,
 * SW_EIO, or what `seen` gave. */
typedef int sw_epochs_seen(void *context, struct sw_run_id id);
int sw_epochs_open(struct sw_epochs *epochs, int state, sw_epochs_seen *seen, void *context);
/* To be called before the folder is deleted. 0 or SW_EIO. */
int sw_epochs_add(struct sw_epochs *epochs, struct sw_run_id id);
void sw_epochs_close(struct sw_epochs *epochs);

#endif
