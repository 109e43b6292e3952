#include "sim/trace/seen.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"

static struct sw_seen_entry *find(struct sw_seen_entry *slots, size_t width, int64_t key)
{
	uint64_t hash = sw_hash_u64(SW_HASH_START, (uint64_t)key);
	size_t at = (hash ^ (hash >> 32)) & (width - 1);
	while (slots[at].place != 0 && slots[at].key != key)
		at = (at + 1) & (width - 1);
	return &slots[at];
}

static int widen(struct sw_seen *seen)
{
	size_t width = seen->width == 0 ? 1024 : seen->width * 2;
	struct sw_seen_entry *slots = calloc(width, sizeof *slots);
	if (slots == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < seen->width; i++)
		if (seen->slots[i].place != 0)
			*find(slots, width, seen->slots[i].key) = seen->slots[i];
	free(seen->slots);
	seen->slots = slots;
	seen->width = width;
	return 0;
}

int sw_seen_add(struct sw_seen *seen, int64_t key, uint64_t place, uint64_t *ret_earlier)
{
	if (seen->count * 2 >= seen->width && widen(seen) < 0)
		return SW_ENOMEM;
	struct sw_seen_entry *slot = find(seen->slots, seen->width, key);
	*ret_earlier = slot->place;
	if (slot->place == 0) {
		*slot = (struct sw_seen_entry){key, place};
		seen->count++;
	}
	return 0;
}

void sw_seen_release(struct sw_seen *seen)
{
	free(seen->slots);
	*seen = (struct sw_seen){0};
}
