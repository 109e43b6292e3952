/* How much host memory there is, and how much of it the contents of a job's GPU
 * memory may take, by default. */
#ifndef SW_SHARE_HOST_H
#define SW_SHARE_HOST_H

#include <stdint.h>

/* Half of what the machine, and the control groups that the caller is in, have to spare now, caches
 * that can be dropped included. The other half stays for other programs, and for the next job half
 * of that. */
uint64_t sw_share_host_budget(void);
/* What the group `own` and those above it may still take, in a tree of the second version;
 * UINT64_MAX: they have no limit. */
uint64_t sw_share_host_room(const char *groups, const char *own);
/* What the machine has in all, or the container that is one to the caller. */
uint64_t sw_share_host_total(void);

#endif
