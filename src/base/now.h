/* The machine's clocks, for the folders that have one: tools/check-layers refuses this header to
 * those whose time comes in with their inputs. */
#ifndef SW_BASE_NOW_H
#define SW_BASE_NOW_H

#include <stdint.h>

/* CLOCK_REALTIME: since 1970. A person may set it. */
int64_t sw_now_real_ns(void);
/* CLOCK_BOOTTIME: it counts while the machine sleeps. Leases are on it. */
int64_t sw_now_boot_ns(void);
/* CLOCK_MONOTONIC: for spans and deadlines, whatever is done to the clock on the wall. */
int64_t sw_now_monotonic_ns(void);
int64_t sw_now_monotonic_ms(void);
/* What this thread has used of a processor. */
int64_t sw_now_thread_ns(void);

#endif
