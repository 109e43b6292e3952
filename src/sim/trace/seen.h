/* A set of job numbers that remembers where each was met first. Private to this folder. */
#ifndef SW_SIM_TRACE_SEEN_H
#define SW_SIM_TRACE_SEEN_H

#include <stddef.h>
#include <stdint.h>

struct sw_seen_entry {
	int64_t key;
	uint64_t place; /* 0 marks a free slot */
};

struct sw_seen {
	struct sw_seen_entry *slots;
	size_t count, width;
};

/* Puts `key` in with its place (> 0), unless it is in; *ret_earlier is then where it was met,
 * else 0. 0 or SW_ENOMEM. */
int sw_seen_add(struct sw_seen *seen, int64_t key, uint64_t place, uint64_t *ret_earlier);
void sw_seen_release(struct sw_seen *seen);

#endif
