/* A log line that could come thousands of times a second is said once in a while, with how often
 * it was held back since.
 *
 *	static struct sw_often often;
 *	if (sw_often_may(&often, now_ns, 10 * SW_NS_PER_S, &missed))
 *		say("cannot accept: %s (%llu times more since the last word)", reason, missed);
 */
#ifndef SW_BASE_OFTEN_H
#define SW_BASE_OFTEN_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing was said yet. */
struct sw_often {
	bool said;
	int64_t said_ns;
	uint64_t missed;
};

/* Whether the line may be said now: the first time, and when `every_ns` have passed since the
 * last one. *ret_missed: how often the answer was no since then. */
bool sw_often_may(struct sw_often *often, int64_t now_ns, int64_t every_ns, uint64_t *ret_missed);

#endif
