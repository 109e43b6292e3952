/* Nodes of the ledger: they come, go up and down, are closed and opened, or have other GPUs than
 * before. And the searches over them.
 *
 * Invariants: numbered in ledger.h; here 4 is kept: a node is in the bucket of its free GPUs
 * while it is up and open.
 */
#include "core/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger_own.h"

/* Arrays for this many nodes and GPUs, and a bucket for each number of free
 * GPUs up to `node_gpus`. */
static int make_room(struct sw_ledger *ledger, uint32_t nodes, uint32_t gpus, uint32_t node_gpus)
{
	if (nodes > ledger->node_capacity || ledger->nodes == NULL) {
		uint32_t wanted = nodes + nodes / 2 + 8;
		struct sw_ledger_node *more = realloc(ledger->nodes, wanted * sizeof *more);
		if (more == NULL)
			return SW_ENOMEM;
		ledger->nodes = more;
		ledger->node_capacity = wanted;
	}
	if (gpus > ledger->gpu_capacity || ledger->gpus == NULL) {
		uint32_t wanted = gpus + gpus / 4 + 64;
		struct sw_gpu *more = realloc(ledger->gpus, wanted * sizeof *more);
		if (more == NULL)
			return SW_ENOMEM;
		ledger->gpus = more;
		ledger->gpu_capacity = wanted;
	}
	if (node_gpus + 1 > ledger->bucket_count) {
		struct sw_bitmap *more_buckets = realloc(ledger->buckets, (node_gpus + 1) * sizeof *more_buckets);
		if (more_buckets == NULL)
			return SW_ENOMEM;
		ledger->buckets = more_buckets;
		for (; ledger->bucket_count < node_gpus + 1; ledger->bucket_count++)
			ledger->buckets[ledger->bucket_count] = (struct sw_bitmap){0};
	}
	int r = sw_bitmap_reserve(&ledger->yielding, nodes);
	r = r < 0 ? r : sw_bitmap_reserve(&ledger->homely, nodes);
	r = r < 0 ? r : sw_bitmap_reserve(&ledger->standing, nodes);
	for (uint32_t free = 0; r == 0 && free < ledger->bucket_count; free++)
		r = sw_bitmap_reserve(&ledger->buckets[free], nodes);
	for (uint32_t step = 0; r == 0 && step < SW_USE_STEPS; step++)
		r = sw_bitmap_reserve(&ledger->by_use[step], gpus);
	return r;
}

static void add_node(struct sw_ledger *ledger, uint32_t n, uint32_t first_gpu)
{
	const struct sw_topology_node *shape = &ledger->topology->nodes[n];
	ledger->nodes[n] = (struct sw_ledger_node){
		.memory_free_bytes = shape->memory_bytes,
		.cpus_free = shape->cpus,
		.first_gpu = first_gpu,
	};
	for (uint32_t g = 0; g < shape->gpus; g++)
		ledger->gpus[first_gpu + g] = (struct sw_gpu){.node = n};
	sw_ledger_set_up(ledger, n, true);
}

int sw_ledger_init(struct sw_ledger *ledger, const struct sw_topology *topology)
{
	*ledger = (struct sw_ledger){.topology = topology, .part_free = SW_NO_PART};
	int r = make_room(ledger, topology->node_count, topology->gpu_count, topology->node_gpus_max);
	if (r < 0)
		return r;
	uint32_t gpu = 0;
	for (uint32_t n = 0; n < topology->node_count; n++) {
		add_node(ledger, n, gpu);
		gpu += topology->nodes[n].gpus;
	}
	return 0;
}

int sw_ledger_reserve_node(struct sw_ledger *ledger, const struct sw_topology_node *shape)
{
	const struct sw_topology *topology = ledger->topology;
	uint32_t node_gpus = shape->gpus > topology->node_gpus_max ? shape->gpus : topology->node_gpus_max;
	return make_room(ledger, topology->node_count + 1, topology->gpu_count + shape->gpus, node_gpus);
}

void sw_ledger_add_node(struct sw_ledger *ledger)
{
	uint32_t n = ledger->topology->node_count - 1;
	add_node(ledger, n, ledger->topology->gpu_count - ledger->topology->nodes[n].gpus);
}

void sw_ledger_release(struct sw_ledger *ledger)
{
	for (uint32_t free = 0; free < ledger->bucket_count; free++)
		sw_bitmap_release(&ledger->buckets[free]);
	for (uint32_t step = 0; step < SW_USE_STEPS; step++)
		sw_bitmap_release(&ledger->by_use[step]);
	sw_bitmap_release(&ledger->yielding);
	sw_bitmap_release(&ledger->homely);
	sw_bitmap_release(&ledger->standing);
	free(ledger->nodes);
	free(ledger->gpus);
	free(ledger->buckets);
	free(ledger->parts);
	*ledger = (struct sw_ledger){0};
}

/* Into the bucket of its free GPUs and the total, or out of both. */
static void list(struct sw_ledger *ledger, uint32_t node, bool in)
{
	uint32_t free = (uint32_t)__builtin_popcountll(ledger->nodes[node].free);
	if (in)
		sw_bitmap_add(&ledger->buckets[free], node);
	else
		sw_bitmap_remove(&ledger->buckets[free], node);
	assert(in || ledger->gpus_free >= free);
	ledger->gpus_free += in ? free : -free;
}

void sw_ledger_set_up(struct sw_ledger *ledger, uint32_t node, bool up)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	const struct sw_topology_node *shape = &ledger->topology->nodes[node];
	if (n->up == up)
		return;
	if (up) {
		n->free = 0;
		for (uint32_t g = 0; g < shape->gpus; g++)
			if (sw_gpu_is_free(&ledger->gpus[n->first_gpu + g]))
				n->free |= UINT64_C(1) << g;
		ledger->gpus_up += shape->gpus;
	} else {
		ledger->gpus_up -= shape->gpus;
	}
	if (!n->closed)
		list(ledger, node, up);
	n->up = up;
}

void sw_ledger_set_closed(struct sw_ledger *ledger, uint32_t node, bool closed)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	if (n->closed == closed)
		return;
	if (n->up)
		list(ledger, node, !closed);
	n->closed = closed;
	ledger->nodes_closed += closed ? 1 : -1u;
}

bool sw_ledger_touches_shut(const struct sw_ledger *ledger, uint32_t parts)
{
	if (ledger->nodes_closed == 0 && ledger->gpus_shut == 0)
		return false;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		if (n->closed || (n->shut & ledger->parts[p].mask) != 0)
			return true;
	}
	return false;
}

bool sw_ledger_touches_closed(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = ledger->gpus_kept > 0 ? parts : SW_NO_PART; p != SW_NO_PART; p = ledger->parts[p].next)
		if ((ledger->nodes[ledger->parts[p].node].kept & ledger->parts[p].mask) != 0)
			return true;
	return sw_ledger_touches_shut(ledger, parts);
}

void sw_ledger_move_bucket(struct sw_ledger *ledger, uint32_t node, uint64_t free_before)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	uint32_t before = (uint32_t)__builtin_popcountll(free_before), after = (uint32_t)__builtin_popcountll(n->free);
	if (!n->up || n->closed || before == after)
		return;
	sw_bitmap_remove(&ledger->buckets[before], node);
	sw_bitmap_add(&ledger->buckets[after], node);
	ledger->gpus_free += after - before;
}

/* ---- GPUs that are shut */

void sw_ledger_set_shut(struct sw_ledger *ledger, uint32_t node, uint64_t mask)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	uint64_t before = n->free, other = (mask & sw_ledger_all_gpus(&ledger->topology->nodes[node])) ^ n->shut;
	for (uint64_t rest = other; rest != 0; rest &= rest - 1) {
		uint32_t g = n->first_gpu + (uint32_t)__builtin_ctzll(rest);
		struct sw_gpu *gpu = &ledger->gpus[g];
		uint64_t bit = rest & (~rest + 1);
		if (sw_gpu_takes_more(gpu))
			sw_bitmap_remove(&ledger->by_use[sw_gpu_use_step(gpu)], g);
		gpu->shut = !gpu->shut;
		if (sw_gpu_takes_more(gpu))
			sw_bitmap_add(&ledger->by_use[sw_gpu_use_step(gpu)], g);
		n->free = sw_gpu_is_free(gpu) ? n->free | bit : n->free & ~bit;
		ledger->gpus_shut += gpu->shut ? 1 : -1u;
	}
	n->shut ^= other;
	sw_ledger_move_bucket(ledger, node, before);
}

/* ---- GPUs that are kept */

static void keep_gpu(struct sw_ledger *ledger, struct sw_ledger_node *n, uint32_t g, bool in)
{
	struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + g];
	uint64_t bit = UINT64_C(1) << g;
	assert(in || gpu->kept > 0);
	if (sw_gpu_takes_more(gpu))
		sw_bitmap_remove(&ledger->by_use[sw_gpu_use_step(gpu)], n->first_gpu + g);
	ledger->gpus_kept -= gpu->kept > 0;
	gpu->kept += in ? 1 : UINT32_MAX;
	ledger->gpus_kept += gpu->kept > 0;
	if (sw_gpu_takes_more(gpu))
		sw_bitmap_add(&ledger->by_use[sw_gpu_use_step(gpu)], n->first_gpu + g);
	n->kept = gpu->kept > 0 ? n->kept | bit : n->kept & ~bit;
	n->free = sw_gpu_is_free(gpu) ? n->free | bit : n->free & ~bit;
}

void sw_ledger_keep(struct sw_ledger *ledger, uint32_t parts, bool in)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		uint64_t before = n->free;
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			keep_gpu(ledger, n, (uint32_t)__builtin_ctzll(rest), in);
		sw_ledger_move_bucket(ledger, ledger->parts[p].node, before);
	}
}

/* ---- nodes that change */

/* Puts all GPUs from this one on where their use lets them be found, or takes them out. */
static void list_by_use(struct sw_ledger *ledger, uint32_t from, uint32_t end, bool in)
{
	for (uint32_t g = from; g < end; g++)
		if (sw_gpu_takes_more(&ledger->gpus[g]))
			(in ? sw_bitmap_add : sw_bitmap_remove)(&ledger->by_use[sw_gpu_use_step(&ledger->gpus[g])], g);
}

void sw_ledger_change_node(struct sw_ledger *ledger, uint32_t node, uint32_t gpus_before)
{
	const struct sw_topology_node *shape = &ledger->topology->nodes[node];
	struct sw_ledger_node *n = &ledger->nodes[node];
	assert(!n->up && n->homes == 0 && n->standing == 0 && n->yielding == 0 && n->shut == 0 && n->kept == 0);
	/* Those of the nodes behind it stay next to it. */
	uint32_t end = ledger->topology->gpu_count, before = n->first_gpu + gpus_before, after = n->first_gpu + shape->gpus;
	uint32_t end_before = end + gpus_before - shape->gpus;
	list_by_use(ledger, before, end_before, false);
	memmove(&ledger->gpus[after], &ledger->gpus[before], (end_before - before) * sizeof *ledger->gpus);
	list_by_use(ledger, after, end, true);
	for (uint32_t g = n->first_gpu; g < after; g++)
		ledger->gpus[g] = (struct sw_gpu){.node = node};
	for (uint32_t later = node + 1; later < ledger->topology->node_count; later++)
		ledger->nodes[later].first_gpu += shape->gpus - gpus_before;
	n->free = 0;
	n->memory_free_bytes = shape->memory_bytes;
	n->cpus_free = shape->cpus;
}

/* ---- searching */

uint32_t sw_ledger_first(const struct sw_ledger *ledger, uint32_t free, uint32_t from, uint32_t end)
{
	uint32_t best = end;
	for (uint32_t bucket = free; bucket <= ledger->topology->node_gpus_max; bucket++) {
		uint32_t node = sw_bitmap_next(&ledger->buckets[bucket], from);
		if (node < best)
			best = node;
	}
	return best < end ? best : UINT32_MAX;
}

uint32_t sw_ledger_tightest(const struct sw_ledger *ledger, uint32_t free, uint32_t from, uint32_t end)
{
	for (uint32_t bucket = free; bucket <= ledger->topology->node_gpus_max; bucket++) {
		uint32_t node = sw_bitmap_next(&ledger->buckets[bucket], from);
		if (node < end)
			return node;
	}
	return UINT32_MAX;
}

bool sw_ledger_next_used(const struct sw_ledger *ledger, uint32_t below_milli, uint32_t *step, uint32_t *gpu)
{
	for (; *step < SW_USE_STEPS && *step * SW_COMPUTE_WHOLE < below_milli * SW_USE_STEPS; ++*step, *gpu = 0) {
		uint32_t found = sw_bitmap_next(&ledger->by_use[*step], *gpu);
		/* The last step has GPUs on both sides of the line. */
		while (found != SW_BITMAP_NONE && ledger->gpus[found].use_milli >= below_milli)
			found = sw_bitmap_next(&ledger->by_use[*step], found + 1);
		if (found == SW_BITMAP_NONE)
			continue;
		*gpu = found;
		return true;
	}
	return false;
}
