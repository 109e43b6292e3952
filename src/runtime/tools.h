/* Small things that the runtime needs of the kernel. */
#ifndef SW_RUNTIME_TOOLS_H
#define SW_RUNTIME_TOOLS_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline int64_t sw_monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Until the word changes, another thread wakes us, or the time is over (negative: never). Works
 * between processes too. */
static inline void sw_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns)
{
	struct timespec limit = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
	syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout_ns < 0 ? NULL : &limit, NULL, 0);
}

static inline void sw_futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline size_t sw_round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

#endif
