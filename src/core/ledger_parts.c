/* Lists of parts, one per node: which GPUs a job has, had, or would like to come back to. Nothing
 * is taken or given here.
 *
 * Invariant: every part of the pool is in exactly one list, that of an owner or
 * that of the free ones.
 */
#include <assert.h>
#include <stdlib.h>

#include "core/ledger_own.h"

int sw_ledger_reserve_parts(struct sw_ledger *ledger, uint32_t wanted)
{
	if (wanted <= ledger->part_capacity)
		return 0;
	struct sw_part *grown = realloc(ledger->parts, wanted * sizeof *grown);
	if (grown == NULL)
		return SW_ENOMEM;
	ledger->parts = grown;
	for (uint32_t p = wanted; p-- > ledger->part_capacity;) {
		grown[p].next = ledger->part_free;
		ledger->part_free = p;
	}
	ledger->part_capacity = wanted;
	return 0;
}

uint32_t sw_ledger_new_part(struct sw_ledger *ledger)
{
	if (ledger->part_free == SW_NO_PART && sw_ledger_reserve_parts(ledger, ledger->part_capacity + ledger->part_capacity / 2 + 256) < 0)
		return SW_NO_PART;
	uint32_t part = ledger->part_free;
	ledger->part_free = ledger->parts[part].next;
	ledger->parts[part].next = SW_NO_PART;
	return part;
}

void sw_ledger_drop_parts(struct sw_ledger *ledger, uint32_t parts)
{
	while (parts != SW_NO_PART) {
		assert(parts < ledger->part_capacity);
		uint32_t next = ledger->parts[parts].next;
		ledger->parts[parts].next = ledger->part_free;
		ledger->part_free = parts;
		parts = next;
	}
}

uint32_t sw_ledger_copy_parts(struct sw_ledger *ledger, uint32_t parts)
{
	uint32_t head = SW_NO_PART, tail = SW_NO_PART;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		uint32_t copy = sw_ledger_new_part(ledger);
		if (copy == SW_NO_PART) {
			sw_ledger_drop_parts(ledger, head);
			return SW_NO_PART;
		}
		ledger->parts[copy] = (struct sw_part){.mask = ledger->parts[p].mask, .node = ledger->parts[p].node, .next = SW_NO_PART};
		if (tail == SW_NO_PART)
			head = copy;
		else
			ledger->parts[tail].next = copy;
		tail = copy;
	}
	return head;
}

bool sw_ledger_same_parts(const struct sw_ledger *ledger, uint32_t a, uint32_t b)
{
	while (a != SW_NO_PART && b != SW_NO_PART) {
		const struct sw_part *x = &ledger->parts[a], *y = &ledger->parts[b];
		if (x->node != y->node || x->mask != y->mask || x->cpus != y->cpus || x->memory_bytes != y->memory_bytes ||
		    x->split_bytes != y->split_bytes)
			return false;
		a = x->next;
		b = y->next;
	}
	return a == b;
}

bool sw_ledger_same_gpus(const struct sw_ledger *ledger, uint32_t a, uint32_t b)
{
	while (a != SW_NO_PART && b != SW_NO_PART) {
		const struct sw_part *x = &ledger->parts[a], *y = &ledger->parts[b];
		if (x->node != y->node || x->mask != y->mask)
			return false;
		a = x->next;
		b = y->next;
	}
	return a == b;
}

uint32_t sw_ledger_count_gpus(const struct sw_ledger *ledger, uint32_t parts)
{
	uint32_t gpus = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		gpus += (uint32_t)__builtin_popcountll(ledger->parts[p].mask);
	return gpus;
}

bool sw_ledger_is_free(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		/* One that is shut or kept may have no resident either. */
		for (uint64_t rest = ledger->parts[p].mask & ~n->free; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			if ((!gpu->shut && gpu->kept == 0) || gpu->residents > 0)
				return false;
		}
	}
	return true;
}

bool sw_ledger_is_alone(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			if (ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)].residents != 1)
				return false;
	return true;
}

bool sw_ledger_touches(const struct sw_ledger *ledger, uint32_t parts, uint32_t node)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if (ledger->parts[p].node == node)
			return true;
	return false;
}

bool sw_ledger_is_split(const struct sw_ledger *ledger, uint32_t parts)
{
	return parts != SW_NO_PART && ledger->parts[parts].split_bytes != 0;
}

enum sw_distance sw_ledger_distance(const struct sw_ledger *ledger, uint32_t parts)
{
	if (parts == SW_NO_PART)
		return SW_WITHIN_GROUP;
	const struct sw_part *first = &ledger->parts[parts];
	const struct sw_topology_node *shape = &ledger->topology->nodes[first->node];
	uint64_t mask = first->mask;
	bool one_node = true;
	for (uint32_t p = first->next; p != SW_NO_PART; p = ledger->parts[p].next) {
		if (ledger->topology->nodes[ledger->parts[p].node].rack != shape->rack)
			return SW_ACROSS_RACKS;
		one_node &= ledger->parts[p].node == first->node;
		mask |= ledger->parts[p].mask;
	}
	if (!one_node)
		return SW_WITHIN_RACK;
	uint32_t group = shape->link_group == 0 ? shape->gpus : shape->link_group;
	uint32_t low = (uint32_t)__builtin_ctzll(mask);
	uint32_t high = 63u - (uint32_t)__builtin_clzll(mask);
	return low / group == high / group ? SW_WITHIN_GROUP : SW_WITHIN_NODE;
}

/* ---- homes */

void sw_ledger_mark_home(struct sw_ledger *ledger, uint32_t parts, bool is_home)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			uint32_t g = (uint32_t)__builtin_ctzll(rest);
			assert(is_home || ledger->gpus[n->first_gpu + g].homes > 0);
			uint32_t homes = ledger->gpus[n->first_gpu + g].homes += is_home ? 1 : UINT32_MAX;
			n->homes = homes > 0 ? n->homes | UINT64_C(1) << g : n->homes & ~(UINT64_C(1) << g);
		}
		(n->homes != 0 ? sw_bitmap_add : sw_bitmap_remove)(&ledger->homely, ledger->parts[p].node);
	}
}

bool sw_ledger_has_homes(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if ((ledger->parts[p].mask & ledger->nodes[ledger->parts[p].node].homes) != 0)
			return true;
	return false;
}
