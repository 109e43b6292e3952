#include "runtime/visits.h"

#include <stdatomic.h>

#include "runtime/start.h"
#include "runtime/tools.h"

#define OUT_NS INT64_C(2000000000) /* one step in a context takes far less; at the program's end the driver may hold it up */
#define LOOK_NS INT64_C(100000000)

static _Atomic uint32_t inside; /* visitors; a futex */
static _Atomic unsigned going;	/* contexts */

void sw_visits_keep_out(void)
{
	uint32_t seen;
	int64_t until = sw_monotonic_ns() + OUT_NS;
	atomic_fetch_add(&going, 1);
	/* In a child of fork() there are no such threads. */
	while (sw_moves && (seen = atomic_load(&inside)) != 0 && sw_monotonic_ns() < until)
		sw_futex_wait(&inside, seen, LOOK_NS);
}

void sw_visits_let_in(void)
{
	atomic_fetch_sub(&going, 1);
}

bool sw_visit_begin(void)
{
	/* In this order, which is the opposite of sw_visits_keep_out()'s: one of
	 * the two sees the other. */
	atomic_fetch_add(&inside, 1);
	if (!sw_visits_are_over())
		return true;
	sw_visit_end();
	return false;
}

void sw_visit_end(void)
{
	atomic_fetch_sub(&inside, 1);
	if (sw_visits_are_over())
		sw_futex_wake(&inside);
}

bool sw_visits_are_over(void)
{
	return atomic_load(&going) != 0;
}
