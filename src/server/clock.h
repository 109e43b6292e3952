/* The controller's clock: real time at the start, then as steady as the machine's uptime.
 *
 * A wall clock that is set while the controller runs moves nothing here, so no lease ends early and
 * no job runs backwards. After a restart the clock goes on from the real time again, but never
 * behind the last record of the journal. A real time that cannot be is not believed: the clock goes
 * on from that record. */
#ifndef SW_SERVER_CLOCK_H
#define SW_SERVER_CLOCK_H

#include <stdint.h>

/* In 2100. */
#define SW_CLOCK_SENSIBLE_NS INT64_C(4102444800000000000)

struct sw_clock {
	int64_t offset_ns; /* from uptime (CLOCK_BOOTTIME) to ours */
	int64_t last_ns;   /* never less than this again */
};

/* `floor_ns` is the moment of the last record; 0: none. */
void sw_clock_start(struct sw_clock *clock, int64_t boot_ns, int64_t real_ns, int64_t floor_ns);
/* What it shows at `boot_ns`; never less than before. */
int64_t sw_clock_read(struct sw_clock *clock, int64_t boot_ns);

#endif
