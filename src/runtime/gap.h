/* Whether an idle time of one process is long enough for what another wants to do in it. And how
 * long that may take, by how long its last work took. Pure, and in a header of its own so that a
 * test can ask it without a GPU. */
#ifndef SW_RUNTIME_GAP_H
#define SW_RUNTIME_GAP_H

#include <sharewell/runtime.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Shorter ones are of no use: they are not remembered, and nothing begins before an idle
 * time has lasted so long. Between two steps of a program that is never idle there is some
 * time without work too. */
#define SW_GAP_LEAST_NS INT64_C(200000)
#define SW_GAP_MARGIN_NS INT64_C(100000)
#define SW_GAP_FORGET_NS INT64_C(8000000000)
/* What the next work takes as long as nothing is known of it: too long for what may
 * be no idle time at all. */
#define SW_GAP_UNKNOWN_NS INT64_C(10000000)
#define SW_GAP_STUCK_NS INT64_C(1000000000)
#define SW_GAP_STUCK_MOST_NS (10 * SW_GAP_STUCK_NS)

/* Programs repeat themselves. An idle time that has lasted `since_ns` will end like the shortest of
 * the last ones that were longer than it is now. One that is longer than all of them may end at any
 * moment. But the longer it lasts, the longer it is likely to go on. What needs no more than that
 * may begin. */
static inline bool sw_gap_is_short(const _Atomic int64_t gaps_ns[SW_PAGE_GAPS], int64_t since_ns, int64_t needed_ns)
{
	int64_t end = INT64_MAX;
	for (unsigned i = 0; i < SW_PAGE_GAPS; i++) {
		int64_t gap = atomic_load_explicit(&gaps_ns[i], memory_order_relaxed);
		end = gap > since_ns && gap < end ? gap : end;
	}
	if (since_ns < SW_GAP_LEAST_NS)
		return true;
	return end == INT64_MAX ? since_ns < needed_ns : since_ns + needed_ns + SW_GAP_MARGIN_NS > end;
}

/* How long the work may take that comes next, when the last took `took_ns`. About the longest of
 * the last ones, since a program has long kernels and short ones. */
static inline int64_t sw_gap_needed(int64_t needed_ns, int64_t took_ns)
{
	enum { FORGETS = 32 };
	needed_ns -= needed_ns / FORGETS;
	return took_ns > needed_ns ? took_ns : needed_ns;
}

/* After how long without an end of any work it may be the program itself that must let it end. For
 * example, what a host function waits for. What was held up so counts as work too, and would make
 * that longer each time. */
static inline int64_t sw_gap_stuck(int64_t needed_ns)
{
	return needed_ns < (SW_GAP_STUCK_MOST_NS - SW_GAP_STUCK_NS) / 4 ? SW_GAP_STUCK_NS + 4 * needed_ns : SW_GAP_STUCK_MOST_NS;
}

/* Tried again some time: work that was held up on the GPU itself, or is longer than any idle time.
 * That is after `quiet_ns` without work, a small part of a second. */
static inline int64_t sw_gap_forget(int64_t needed_ns, int64_t quiet_ns)
{
	return needed_ns - needed_ns / (SW_GAP_FORGET_NS / quiet_ns);
}

#endif
