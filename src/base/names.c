#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define SLOTS_MIN 16u

/* Where the text is, or where it would be; there is always an empty slot. */
static size_t slot_of(const struct sw_name *slots, size_t slot_count, const char *text, uint64_t hash)
{
	size_t at = hash & (slot_count - 1);
	while (slots[at].text != NULL && (slots[at].hash != hash || strcmp(slots[at].text, text) != 0))
		at = (at + 1) & (slot_count - 1);
	return at;
}

static int grow(struct sw_names *names)
{
	size_t wanted = names->slot_count > 0 ? 2 * names->slot_count : SLOTS_MIN;
	struct sw_name *slots = calloc(wanted, sizeof *slots);
	if (slots == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < names->slot_count; i++)
		if (names->slots[i].text != NULL)
			slots[slot_of(slots, wanted, names->slots[i].text, names->slots[i].hash)] = names->slots[i];
	free(names->slots);
	names->slots = slots;
	names->slot_count = wanted;
	return 0;
}

static uint64_t hash_of(const char *text)
{
	uint64_t hash = sw_hash_bytes(SW_HASH_START, text, strlen(text));
	return hash ^ hash >> 32;
}

int sw_names_add(struct sw_names *names, const char *text, uint32_t number)
{
	if (2 * (names->count + 1) > names->slot_count && grow(names) < 0)
		return SW_ENOMEM;
	uint64_t hash = hash_of(text);
	names->slots[slot_of(names->slots, names->slot_count, text, hash)] = (struct sw_name){text, hash, number};
	names->count++;
	return 0;
}

uint32_t sw_names_find(const struct sw_names *names, const char *text)
{
	if (names->count == 0)
		return SW_NAMES_NONE;
	const struct sw_name *slot = &names->slots[slot_of(names->slots, names->slot_count, text, hash_of(text))];
	return slot->text != NULL ? slot->number : SW_NAMES_NONE;
}

void sw_names_release(struct sw_names *names)
{
	free(names->slots);
	*names = (struct sw_names){0};
}
