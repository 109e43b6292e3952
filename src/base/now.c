#include "base/now.h"

#include <time.h>

#include "base/number.h"

static int64_t read_clock(clockid_t id)
{
	struct timespec time = {0};
	clock_gettime(id, &time);
	return (int64_t)time.tv_sec * SW_NS_PER_S + time.tv_nsec;
}

int64_t sw_now_real_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t sw_now_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t sw_now_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t sw_now_monotonic_ms(void)
{
	return sw_now_monotonic_ns() / SW_NS_PER_MS;
}

int64_t sw_now_thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
