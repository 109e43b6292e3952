/* Keys of submits: which request made which jobs, so that a client that lost the answer may ask
 * again and makes no second job.
 *
 *  1. Part of the brain's state: what is kept is a function of the records alone.
 *  2. A key is kept for a day, and the last SW_KEYS_MAX of all users; a key is its user's own.
 */
#ifndef SW_BRAIN_KEYS_H
#define SW_BRAIN_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sharewell/policy.h>

#include "base/vec.h"

#define SW_KEYS_MAX 100000u
#define SW_KEY_LIFE_NS (INT64_C(86400) * 1000000000)

struct sw_key {
	char *text;	 /* owned */
	uint64_t digest; /* of the body that came with it */
	uint64_t first;	 /* of the jobs that it made, which follow each other */
	sw_ns at;
	uint64_t older; /* the number of the next in its chain */
	uint32_t uid, count;
};

/* All zero is empty. Each key has a number, counted from 1. A chain goes from the newest to the
 * oldest, so it ends where the forgotten ones begin, and forgetting touches no chain. */
struct sw_keys {
	SW_VEC(struct sw_key) items; /* the oldest first; before `start` they are forgotten */
	size_t start;
	uint64_t gone; /* how many came before items[0] */
	uint64_t *chains;
	size_t chain_count; /* a power of two */
};

/* Copies the text; `key` has the rest. Times must not go back. 0 or SW_ENOMEM, which leaves
 * the keys as they were. */
int sw_keys_add(struct sw_keys *keys, const char *text, const struct sw_key *key);
/* NULL: not known, or too long ago. Valid until the next call of sw_keys_add(). */
const struct sw_key *sw_keys_find(const struct sw_keys *keys, sw_ns now, uint32_t uid, const char *text);
void sw_keys_release(struct sw_keys *keys);

#endif
