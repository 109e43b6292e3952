/* A spot: a place for a job, put together node by node. Nothing is taken
 * before sw_ledger_take(). */
#include "core/ledger_own.h"

void sw_spot_begin(struct sw_spot *spot, struct sw_ledger *ledger, struct sw_share share)
{
	*spot = (struct sw_spot){.ledger = ledger, .share = share, .serial = ++ledger->spot_serial, .head = SW_NO_PART, .tail = SW_NO_PART};
}

void sw_spot_discard(struct sw_spot *spot)
{
	sw_ledger_drop_parts(spot->ledger, spot->head);
	spot->head = spot->tail = SW_NO_PART;
	spot->gpus = 0;
}

void sw_spot_clear(struct sw_spot *spot)
{
	sw_spot_discard(spot);
	spot->serial = ++spot->ledger->spot_serial;
}

/* Picks `count` of the free GPUs: those that are no home, if they are enough. They are from the
 * link group that fits tightest if one is enough, else the lowest ones. As few homes as there must
 * be. */
static uint64_t pick_gpus(const struct sw_topology_node *shape, uint64_t free, uint64_t homes, uint32_t count)
{
	uint32_t group = shape->link_group;
	if ((uint32_t)__builtin_popcountll(free & ~homes) >= count)
		free &= ~homes;
	if (group != 0 && group < shape->gpus && count <= group) {
		uint64_t best = 0;
		uint32_t best_free = UINT32_MAX;
		for (uint32_t first = 0; first < shape->gpus; first += group) {
			uint64_t members = free & (((UINT64_C(1) << group) - 1) << first);
			uint32_t available = (uint32_t)__builtin_popcountll(members);
			if (available >= count && available < best_free) {
				best = members;
				best_free = available;
			}
		}
		if (best != 0)
			free = best;
	}
	uint64_t picked = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t first = (free & ~homes) != 0 ? free & ~homes : free, lowest = first & (~first + 1);
		picked |= lowest;
		free ^= lowest;
	}
	return picked;
}

/* Whether the spot has a part there: on the node, or where both are split on the very GPU. */
static bool is_in_spot(const struct sw_spot *spot, const struct sw_part *wanted)
{
	if (spot->ledger->nodes[wanted->node].in_spot != spot->serial)
		return false;
	for (uint32_t p = spot->head; p != SW_NO_PART; p = spot->ledger->parts[p].next) {
		const struct sw_part *part = &spot->ledger->parts[p];
		if (part->node == wanted->node && (part->split_bytes == 0 || wanted->split_bytes == 0 || (part->mask & wanted->mask) != 0))
			return true;
	}
	return false;
}

bool sw_spot_put(struct sw_spot *spot, const struct sw_part *wanted)
{
	struct sw_ledger *ledger = spot->ledger;
	struct sw_ledger_node *n = &ledger->nodes[wanted->node];
	if (is_in_spot(spot, wanted))
		return false;
	uint32_t part = sw_ledger_new_part(ledger);
	if (part == SW_NO_PART) {
		spot->failed = true;
		return false;
	}
	ledger->parts[part] = *wanted;
	ledger->parts[part].next = SW_NO_PART;
	if (spot->tail == SW_NO_PART)
		spot->head = part;
	else
		ledger->parts[spot->tail].next = part;
	spot->tail = part;
	spot->gpus += (uint32_t)__builtin_popcountll(wanted->mask);
	n->in_spot = spot->serial;
	return true;
}

bool sw_spot_add(struct sw_spot *spot, struct sw_node_id node, uint32_t gpus, uint32_t cpus, uint64_t memory_bytes)
{
	struct sw_ledger *ledger = spot->ledger;
	if (node.v >= ledger->topology->node_count || gpus == 0)
		return false;
	const struct sw_ledger_node *n = &ledger->nodes[node.v];
	const struct sw_topology_node *shape = &ledger->topology->nodes[node.v];
	if (!n->up || n->closed || n->in_spot == spot->serial || (uint32_t)__builtin_popcountll(n->free) < gpus)
		return false;
	if (n->cpus_free < cpus || n->memory_free_bytes < memory_bytes || shape->gpu_memory_bytes < spot->share.gpu_memory_bytes)
		return false;
	if (n->standing != 0 && sw_share_host_bytes(shape, memory_bytes, gpus, spot->share) > sw_ledger_unasked_bytes(n))
		return false;
	return sw_spot_put(spot, &(struct sw_part){
					 .mask = pick_gpus(shape, n->free, n->homes, gpus),
					 .memory_bytes = memory_bytes,
					 .cpus = cpus,
					 .node = node.v,
				 });
}

uint32_t sw_spot_gpus(const struct sw_spot *spot)
{
	return spot->gpus;
}
