/* Rules by which an opportunistic job keeps out of the way of the guaranteed ones on its GPU. One
 * file each; chosen by name.
 *
 * A rule sees how the guaranteed jobs fare and says which part of the GPU's time the opportunistic
 * one may take. Pure: what it keeps is in its `kept`, the clock is the caller's.
 */
#ifndef SW_SHARE_THROTTLE_H
#define SW_SHARE_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_THROTTLE_ALL 1000u /* thousandths */

/* How the guaranteed jobs on the GPU fare: the worst of them. */
struct sw_throttle_view {
	int64_t now_ns;
	/* Baselines are being measured: whatever the rule says, opportunistic jobs that do
	 * not yield stand still. */
	bool measuring;
	uint32_t time_milli; /* time of an iteration against that alone, 1000: the same; 0: none works now */
	uint32_t rate_milli; /* launches in the last whole window against those alone; 0: none works now */
	uint32_t windows;    /* how many were whole */
};

/* Of one opportunistic job; starts as all zeroes. */
struct sw_throttle_kept {
	bool started;
	uint32_t share_milli; /* what it may take now */
	uint32_t good;	      /* looks in a row at which no job was slowed down */
	uint32_t phase, window;
	int64_t next_ns;
};

struct sw_throttle {
	const char *name;
	const char *about;
	bool yields;	      /* the runtime itself waits for idle times of the guaranteed jobs; no baseline is needed */
	uint32_t start_milli; /* after every measurement of baselines */
	void (*look)(struct sw_throttle_kept *kept, const struct sw_throttle_view *view);
};

/* NULL: there is none of that name. Numbers go from 0, which is the default, to
 * below sw_throttle_count(). */
const struct sw_throttle *sw_throttle_find(const char *name);
const struct sw_throttle *sw_throttle_at(size_t number);
size_t sw_throttle_count(void);

extern const struct sw_throttle sw_throttle_yield, sw_throttle_antman, sw_throttle_tgs;

#endif
