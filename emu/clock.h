/* Modelled time: nanoseconds of the monotonic clock, the same in every process of the machine. */
#ifndef EMU_CLOCK_H
#define EMU_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t emu_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* Shorter waits than this cost more than they are worth: the model runs ahead of the
 * wall clock by so much. */
enum { EMU_AHEAD_NS = 20000 };

static inline void emu_sleep_until(uint64_t at_ns)
{
	if (at_ns <= emu_now() + EMU_AHEAD_NS)
		return;
	struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000ULL), .tv_nsec = (long)(at_ns % 1000000000ULL)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		continue;
}

#endif
