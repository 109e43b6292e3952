#include "brain/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

static size_t chain_of(const struct sw_keys *keys, uint32_t uid, const char *text)
{
	uint64_t hash = sw_hash_bytes(sw_hash_u64(SW_HASH_START, uid), text, strlen(text));
	return (size_t)(hash ^ hash >> 32) & (keys->chain_count - 1);
}

/* The newest key is put in front of its chain. */
static void link_last(struct sw_keys *keys)
{
	struct sw_key *key = &keys->items.items[keys->items.count - 1];
	uint64_t *chain = &keys->chains[chain_of(keys, key->uid, key->text)];
	key->older = *chain;
	*chain = keys->gone + keys->items.count;
}

/* Twice as many chains, before they get long. */
static int spread(struct sw_keys *keys)
{
	size_t wanted = keys->chain_count > 0 ? 2 * keys->chain_count : 64, count = keys->items.count;
	uint64_t *chains = calloc(wanted, sizeof *chains);
	if (chains == NULL)
		return SW_ENOMEM;
	free(keys->chains);
	keys->chains = chains;
	keys->chain_count = wanted;
	for (keys->items.count = keys->start + 1; keys->items.count <= count; keys->items.count++)
		link_last(keys);
	keys->items.count = count;
	return 0;
}

static void forget_old(struct sw_keys *keys, sw_ns now)
{
	struct sw_key *items = keys->items.items;
	while (keys->start < keys->items.count &&
	       (keys->items.count - keys->start >= SW_KEYS_MAX || now - items[keys->start].at >= SW_KEY_LIFE_NS))
		free(items[keys->start++].text);
	/* Moved together only once as much is gone as is left: that costs each key one move. */
	if (keys->start == 0 || keys->start < keys->items.count - keys->start)
		return;
	memmove(items, items + keys->start, (keys->items.count - keys->start) * sizeof *items);
	keys->items.count -= keys->start;
	keys->gone += keys->start;
	keys->start = 0;
}

int sw_keys_add(struct sw_keys *keys, const char *text, const struct sw_key *key)
{
	char *copy = strdup(text);
	if (copy == NULL || sw_vec_reserve(&keys->items, keys->items.count + 1) < 0 ||
	    (keys->items.count - keys->start >= keys->chain_count && spread(keys) < 0)) {
		free(copy);
		return SW_ENOMEM;
	}
	forget_old(keys, key->at);
	struct sw_key *slot = sw_vec_push(&keys->items);
	*slot = *key;
	slot->text = copy;
	link_last(keys);
	return 0;
}

const struct sw_key *sw_keys_find(const struct sw_keys *keys, sw_ns now, uint32_t uid, const char *text)
{
	if (keys->chain_count == 0)
		return NULL;
	for (uint64_t number = keys->chains[chain_of(keys, uid, text)]; number > keys->gone + keys->start;) {
		const struct sw_key *key = &keys->items.items[number - keys->gone - 1];
		if (key->uid == uid && strcmp(key->text, text) == 0)
			return now - key->at < SW_KEY_LIFE_NS ? key : NULL;
		number = key->older;
	}
	return NULL;
}

void sw_keys_release(struct sw_keys *keys)
{
	for (size_t i = keys->start; i < keys->items.count; i++)
		free(keys->items.items[i].text);
	sw_vec_free(&keys->items);
	free(keys->chains);
	*keys = (struct sw_keys){0};
}
