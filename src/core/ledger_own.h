/* What the files of the ledger share: small sums over nodes, GPUs and shares. For ledger*.c
 * alone. */
#ifndef SW_CORE_LEDGER_OWN_H
#define SW_CORE_LEDGER_OWN_H

#include "core/ledger.h"

static inline uint64_t sw_ledger_all_gpus(const struct sw_topology_node *node)
{
	return node->gpus == 64 ? UINT64_MAX : (UINT64_C(1) << node->gpus) - 1;
}

/* What a run on so many GPUs of a node takes of its host memory. That is what its placement rule
 * says, or else what it asks for, at most what there is. */
static inline uint64_t sw_share_host_bytes(const struct sw_topology_node *shape, uint64_t said_bytes, uint32_t gpus, struct sw_share share)
{
	uint64_t asked;
	if (said_bytes != 0 || share.host_memory_bytes == 0)
		return said_bytes;
	if (__builtin_mul_overflow(share.host_memory_bytes, gpus, &asked) || asked > shape->memory_bytes)
		return shape->memory_bytes;
	return asked;
}

/* Of that, what the part does not say: mostly nothing. */
static inline uint64_t sw_share_asked_bytes(const struct sw_topology_node *shape, const struct sw_part *part, struct sw_share share)
{
	if (part->memory_bytes != 0 || share.host_memory_bytes == 0)
		return 0;
	return sw_share_host_bytes(shape, 0, (uint32_t)__builtin_popcountll(part->mask), share);
}

static inline uint64_t sw_ledger_unasked_bytes(const struct sw_ledger_node *node)
{
	return node->memory_free_bytes > node->asked_bytes ? node->memory_free_bytes - node->asked_bytes : 0;
}

/* What the share is on this part. */
static inline struct sw_share sw_share_on_part(const struct sw_part *part, struct sw_share share)
{
	if (part->split_bytes != 0)
		share.gpu_memory_bytes = part->split_bytes;
	return share;
}

static inline uint64_t sw_share_held_bytes(const struct sw_topology_node *shape, struct sw_share share)
{
	return share.gpu_memory_bytes == 0 ? shape->gpu_memory_bytes : share.gpu_memory_bytes;
}

static inline uint64_t sw_gpu_free_bytes(const struct sw_gpu *gpu, const struct sw_topology_node *shape)
{
	uint64_t rest = shape->gpu_memory_bytes - gpu->memory_held_bytes;
	return rest > gpu->standing_bytes ? rest - gpu->standing_bytes : 0;
}

static inline uint32_t sw_gpu_use_step(const struct sw_gpu *gpu)
{
	uint32_t step = (uint32_t)gpu->use_milli * SW_USE_STEPS / SW_COMPUTE_WHOLE;
	return step < SW_USE_STEPS ? step : SW_USE_STEPS - 1;
}

static inline bool sw_gpu_takes_more(const struct sw_gpu *gpu)
{
	return gpu->residents > 0 && gpu->residents < SW_GPU_RESIDENTS_MAX && !gpu->whole && !gpu->shut && gpu->kept == 0;
}

static inline bool sw_gpu_is_free(const struct sw_gpu *gpu)
{
	return gpu->residents == 0 && !gpu->shut && gpu->kept == 0;
}

/* One of the free parts, with no next; SW_NO_PART: out of memory (ledger_parts.c). */
uint32_t sw_ledger_new_part(struct sw_ledger *ledger);
/* The node's free GPUs were these before: into the bucket of those that it has now (ledger.c). */
void sw_ledger_move_bucket(struct sw_ledger *ledger, uint32_t node, uint64_t free_before);
/* Whether the share fits on the GPU beside its residents, if any; and once all of them have been
 * stopped (ledger_fit.c). */
bool sw_gpu_fits(const struct sw_gpu *gpu, const struct sw_topology_node *shape, struct sw_share share);
bool sw_gpu_would_fit(const struct sw_gpu *gpu, const struct sw_topology_node *shape, struct sw_share share);

#endif
