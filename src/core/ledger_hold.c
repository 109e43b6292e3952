/* Taking and giving back, by jobs that run and by runs that stand suspended. Also looking at the
 * cluster as if some of them held nothing.
 *
 * Invariants: numbered in ledger.h. What is taken for a share is given back for the same share.
 */
#include <assert.h>
#include <string.h>

#include "core/ledger_own.h"

/* One more resident on a GPU, or one less. */
static void seat(struct sw_ledger *ledger, uint32_t g, struct sw_share share, uint64_t bytes, bool in)
{
	struct sw_gpu *gpu = &ledger->gpus[g];
	uint32_t at = 0;
	if (sw_gpu_takes_more(gpu))
		sw_bitmap_remove(&ledger->by_use[sw_gpu_use_step(gpu)], g);
	assert(in || (gpu->residents > 0 && gpu->memory_held_bytes >= bytes));
	while (at < gpu->residents && gpu->who[at] < share.job)
		at++;
	if (in) {
		assert(gpu->residents < SW_GPU_RESIDENTS_MAX);
		memmove(&gpu->who[at + 1], &gpu->who[at], (gpu->residents - at) * sizeof gpu->who[0]);
		gpu->who[at] = share.job;
		ledger->gpus_shared += ++gpu->residents == 2;
	} else {
		assert(gpu->who[at] == share.job);
		ledger->gpus_shared -= gpu->residents-- == 2;
		memmove(&gpu->who[at], &gpu->who[at + 1], (gpu->residents - at) * sizeof gpu->who[0]);
	}
	gpu->memory_held_bytes += in ? bytes : -bytes;
	if (share.stands && !share.frees) {
		gpu->rest_bytes += in ? bytes : -bytes;
		gpu->rest_held = (uint8_t)(in ? gpu->rest_held + 1 : gpu->rest_held - 1);
	}
	gpu->use_milli = (uint16_t)(in ? gpu->use_milli + share.use_milli : gpu->use_milli - share.use_milli);
	gpu->whole = in && share.gpu_memory_bytes == 0;
	if (share.guaranteed) {
		gpu->compute_held_milli =
			(uint16_t)(in ? gpu->compute_held_milli + share.compute_milli : gpu->compute_held_milli - share.compute_milli);
		gpu->guaranteed = (uint8_t)(in ? gpu->guaranteed + 1 : gpu->guaranteed - 1);
	}
	/* Invariants 1 and 2, of what is taken: what is given back only makes them truer. */
	assert(!in || (gpu->memory_held_bytes <= ledger->topology->nodes[gpu->node].gpu_memory_bytes &&
		       gpu->compute_held_milli <= SW_COMPUTE_WHOLE));
	if (sw_gpu_takes_more(gpu))
		sw_bitmap_add(&ledger->by_use[sw_gpu_use_step(gpu)], g);
}

/* Takes or gives back one part. */
static void hold_part(struct sw_ledger *ledger, const struct sw_part *part, struct sw_share of_job, bool in)
{
	struct sw_share share = sw_share_on_part(part, of_job);
	struct sw_ledger_node *n = &ledger->nodes[part->node];
	const struct sw_topology_node *shape = &ledger->topology->nodes[part->node];
	uint64_t bytes = sw_share_held_bytes(shape, share), asked = sw_share_asked_bytes(shape, part, share), before = n->free,
		 yielded = n->yielding;
	assert(part->mask != 0 && (part->mask & ~sw_ledger_all_gpus(shape)) == 0);
	assert(!in || (n->cpus_free >= part->cpus && n->memory_free_bytes >= part->memory_bytes));
	for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
		uint32_t g = (uint32_t)__builtin_ctzll(rest);
		const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + g];
		uint64_t bit = UINT64_C(1) << g;
		seat(ledger, n->first_gpu + g, share, bytes, in);
		n->free = sw_gpu_is_free(gpu) ? n->free | bit : n->free & ~bit;
		n->yielding = gpu->residents > 0 && gpu->guaranteed == 0 ? n->yielding | bit : n->yielding & ~bit;
	}
	ledger->gpus_yielding += (uint32_t)__builtin_popcountll(n->yielding) - (uint32_t)__builtin_popcountll(yielded);
	n->cpus_free += in ? -part->cpus : part->cpus;
	n->memory_free_bytes += in ? -part->memory_bytes : part->memory_bytes;
	n->asked_bytes += in ? asked : -asked;
	assert(n->cpus_free <= shape->cpus && n->memory_free_bytes <= shape->memory_bytes);
	if (!share.guaranteed) {
		n->cpus_yielding += in ? part->cpus : -part->cpus;
		if (!share.stands) {
			n->memory_yielding_bytes += in ? part->memory_bytes : -part->memory_bytes;
			n->asked_yielding_bytes += in ? asked : -asked;
		}
	}
	if ((yielded != 0) != (n->yielding != 0))
		(n->yielding != 0 ? sw_bitmap_add : sw_bitmap_remove)(&ledger->yielding, part->node);
	sw_ledger_move_bucket(ledger, part->node, before);
}

void sw_ledger_take(struct sw_ledger *ledger, uint32_t parts, struct sw_share share)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		hold_part(ledger, &ledger->parts[p], share, true);
}

void sw_ledger_give(struct sw_ledger *ledger, uint32_t parts, struct sw_share share)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		hold_part(ledger, &ledger->parts[p], share, false);
}

/* ---- runs that stand */

/* What a run that stands holds of each GPU. */
static uint64_t standing_bytes(const struct sw_topology_node *shape, struct sw_share share)
{
	uint64_t bytes = sw_share_held_bytes(shape, share);
	return share.frees ? 0 : bytes < shape->gpu_memory_bytes ? bytes : shape->gpu_memory_bytes;
}

void sw_ledger_stand(struct sw_ledger *ledger, uint32_t parts, struct sw_share share, bool in)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_part *part = &ledger->parts[p];
		struct sw_ledger_node *n = &ledger->nodes[part->node];
		uint64_t bytes = standing_bytes(&ledger->topology->nodes[part->node], share);
		for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
			struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			assert(in || (gpu->standing > 0 && gpu->standing_bytes >= bytes));
			gpu->standing += in ? 1 : UINT32_MAX;
			gpu->standing_held += share.frees ? 0 : in ? 1 : UINT32_MAX;
			gpu->standing_bytes += in ? bytes : -bytes;
			n->standing = gpu->standing > 0 ? n->standing | (rest & (~rest + 1)) : n->standing & ~(rest & (~rest + 1));
		}
		(n->standing != 0 ? sw_bitmap_add : sw_bitmap_remove)(&ledger->standing, part->node);
		assert(!in || n->memory_free_bytes >= part->memory_bytes);
		n->memory_free_bytes += in ? -part->memory_bytes : part->memory_bytes;
		uint64_t asked = sw_share_asked_bytes(&ledger->topology->nodes[part->node], part, share);
		n->asked_bytes += in ? asked : -asked;
	}
}

/* ---- as if they held nothing */

/* Of the GPUs that opportunistic jobs have, those that the share could have instead. */
static uint64_t could_have(const struct sw_ledger *ledger, uint32_t node, struct sw_share share)
{
	const struct sw_ledger_node *n = &ledger->nodes[node];
	uint64_t mask = 0;
	for (uint64_t rest = n->yielding & ~n->shut & ~n->kept; rest != 0; rest &= rest - 1)
		if (sw_gpu_would_fit(&ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)], &ledger->topology->nodes[node], share))
			mask |= rest & (~rest + 1);
	return mask;
}

void sw_ledger_see_through(struct sw_ledger *ledger, struct sw_share share, bool on)
{
	for (uint32_t node = sw_bitmap_next(&ledger->yielding, 0); node != SW_BITMAP_NONE;
	     node = sw_bitmap_next(&ledger->yielding, node + 1)) {
		struct sw_ledger_node *n = &ledger->nodes[node];
		uint64_t before = n->free;
		n->free = on ? n->free | could_have(ledger, node, share) : n->free & ~n->yielding;
		n->cpus_free += on ? n->cpus_yielding : -n->cpus_yielding;
		n->memory_free_bytes += on ? n->memory_yielding_bytes : -n->memory_yielding_bytes;
		n->asked_bytes -= on ? n->asked_yielding_bytes : -n->asked_yielding_bytes;
		sw_ledger_move_bucket(ledger, node, before);
	}
}

void sw_ledger_hide_homes(struct sw_ledger *ledger, bool on)
{
	for (uint32_t node = sw_bitmap_next(&ledger->homely, 0); node != SW_BITMAP_NONE; node = sw_bitmap_next(&ledger->homely, node + 1)) {
		struct sw_ledger_node *n = &ledger->nodes[node];
		uint64_t before = n->free;
		n->free = on ? n->free & ~n->homes : n->free | n->hidden;
		n->hidden = on ? before & n->homes : 0;
		sw_ledger_move_bucket(ledger, node, before);
	}
}

void sw_ledger_hide_crowded(struct sw_ledger *ledger, struct sw_share share, bool on)
{
	for (uint32_t node = sw_bitmap_next(&ledger->standing, 0); node != SW_BITMAP_NONE;
	     node = sw_bitmap_next(&ledger->standing, node + 1)) {
		struct sw_ledger_node *n = &ledger->nodes[node];
		uint64_t before = n->free, crowded = 0;
		for (uint64_t rest = on ? n->free & n->standing : 0; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			/* With residents it is seen through, and was looked at then. */
			if (gpu->residents == 0 && !sw_gpu_fits(gpu, &ledger->topology->nodes[node], share))
				crowded |= rest & (~rest + 1);
		}
		n->free = on ? n->free & ~crowded : n->free | n->crowded;
		n->crowded = crowded;
		sw_ledger_move_bucket(ledger, node, before);
	}
}
