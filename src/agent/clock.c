#include "agent/clock.h"

#include <time.h>

#include "base/number.h"

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * SW_NS_PER_S + now.tv_nsec;
}

int64_t sw_boot_now(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

int64_t sw_real_now(void)
{
	return clock_ns(CLOCK_REALTIME);
}
