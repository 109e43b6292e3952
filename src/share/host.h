/* How much host memory the contents of a job's GPU memory may take, if nobody says. */
#ifndef SW_SHARE_HOST_H
#define SW_SHARE_HOST_H

#include <stdint.h>

/* Half of what the machine has to spare now, caches that it can drop included: the other half stays for everybody else, and for the next job half of that. */
uint64_t sw_share_host_budget(void);

#endif
