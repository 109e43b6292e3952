/* The profile of a job, as its processes measured it (src/runtime/profile.h): asked for in the
 * page, read from the files beside it. */
#ifndef SW_SHARE_PROFILE_H
#define SW_SHARE_PROFILE_H

#include "share/page.h"

#define SW_PROFILE_FUNCTIONS 64u
#define SW_PROFILE_NAME 128u

enum sw_profile_way { SW_COPIED_TO_GPU, SW_COPIED_FROM_GPU, SW_COPIED_WITHIN, SW_COPIED_UNKNOWN, SW_COPIED_WAYS };

/* Of one process. */
struct sw_share_profile {
	int32_t pid;
	int64_t window_ns;   /* how long it was measured */
	uint64_t iterations; /* since it began; 0: none is found, and what is of one is 0 too */
	int64_t iteration_ns, iteration_jitter_ns;
	uint64_t iteration_launches, peak_bytes, floor_bytes;
	uint64_t launches, timed; /* in the window; how many of them have a time */
	int64_t busy_ns;	  /* of all of them: those without a time as long as the others of their function */
	struct {
		uint64_t copies, bytes;
	} copied[SW_COPIED_WAYS];
	size_t function_count;
	/* By time, longest first. */
	struct sw_share_function {
		uint64_t launches, timed;
		int64_t ns; /* of those with a time */
		char name[SW_PROFILE_NAME];
	} functions[SW_PROFILE_FUNCTIONS];
};

/* Whether its processes measure; a wish, whose number is returned. When one to end is
 * met, the files are there. */
uint32_t sw_share_profile_want(struct sw_share_page *page, bool on);
/* What the processes of the page at `path` measured last, at most `room` of them; the files are all
 * gone then. Nothing in them is trusted. */
size_t sw_share_profile_take(const char *path, struct sw_share_profile *profiles, size_t room);
/* Of all its launches: those without a time as long as the others. */
int64_t sw_share_function_ns(const struct sw_share_function *function);
/* What comes to one iteration of what was measured; 0: none is known. */
int64_t sw_share_profile_per_iteration(const struct sw_share_profile *profile, uint64_t amount);

#endif
