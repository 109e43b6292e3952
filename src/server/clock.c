#include "server/clock.h"

#include <stdbool.h>

void sw_clock_start(struct sw_clock *clock, int64_t boot_ns, int64_t real_ns, int64_t floor_ns)
{
	bool is_sensible = real_ns >= 0 && real_ns <= SW_CLOCK_SENSIBLE_NS;
	int64_t start_ns = is_sensible && real_ns > floor_ns ? real_ns : floor_ns;
	*clock = (struct sw_clock){.offset_ns = start_ns - boot_ns, .last_ns = start_ns};
}

int64_t sw_clock_read(struct sw_clock *clock, int64_t boot_ns)
{
	int64_t now_ns = boot_ns + clock->offset_ns;
	if (now_ns > clock->last_ns)
		clock->last_ns = now_ns;
	return clock->last_ns;
}
