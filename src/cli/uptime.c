#include "cli/uptime.h"

#include <time.h>

#include "base/number.h"

int64_t sw_cli_uptime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SW_NS_PER_S + now.tv_nsec;
}

int64_t sw_cli_uptime_ms(void)
{
	return sw_cli_uptime_ns() / SW_NS_PER_MS;
}
