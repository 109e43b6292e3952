/* The node's clocks. */
#ifndef SW_AGENT_CLOCK_H
#define SW_AGENT_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME: it counts while the machine sleeps, and no one sets it. Leases are on it. */
int64_t sw_boot_now(void);
/* CLOCK_REALTIME, since 1970. */
int64_t sw_real_now(void);

#endif
