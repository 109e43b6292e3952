/* Questions: does a share fit there, beside which residents, or once they were
 * stopped? Nothing changes here. */
#include "core/ledger_own.h"

/* ---- on one GPU */

bool sw_ledger_gpu_is_overdrawn(const struct sw_ledger *ledger, uint32_t gpu)
{
	const struct sw_gpu *at = &ledger->gpus[gpu];
	return at->residents > 0 && at->standing_held > 0 &&
	       (at->whole || at->standing_bytes > ledger->topology->nodes[at->node].gpu_memory_bytes - at->memory_held_bytes);
}

uint64_t sw_ledger_gpu_memory_free(const struct sw_ledger *ledger, uint32_t gpu)
{
	return sw_gpu_free_bytes(&ledger->gpus[gpu], &ledger->topology->nodes[ledger->gpus[gpu].node]);
}

/* Beside those that are there, if any. */
bool sw_gpu_fits(const struct sw_gpu *gpu, const struct sw_topology_node *shape, struct sw_share share)
{
	if (gpu->residents == 0 && gpu->standing_held == 0)
		return sw_share_held_bytes(shape, share) <= shape->gpu_memory_bytes;
	if (share.gpu_memory_bytes == 0 || gpu->residents >= SW_GPU_RESIDENTS_MAX)
		return false;
	if (gpu->whole || (share.guaranteed && gpu->compute_held_milli + share.compute_milli > SW_COMPUTE_WHOLE))
		return false;
	return share.gpu_memory_bytes <= sw_gpu_free_bytes(gpu, shape);
}

/* The same once all residents have been stopped. */
bool sw_gpu_would_fit(const struct sw_gpu *gpu, const struct sw_topology_node *shape, struct sw_share share)
{
	uint64_t left = gpu->standing_bytes + gpu->rest_bytes;
	if (share.gpu_memory_bytes == 0 || gpu->standing_held + gpu->rest_held == 0)
		return gpu->standing_held + gpu->rest_held == 0;
	return left <= shape->gpu_memory_bytes && share.gpu_memory_bytes <= shape->gpu_memory_bytes - left;
}

bool sw_ledger_gpu_fits(const struct sw_ledger *ledger, uint32_t gpu, struct sw_share share)
{
	return sw_gpu_fits(&ledger->gpus[gpu], &ledger->topology->nodes[ledger->gpus[gpu].node], share);
}

/* ---- host memory */

bool sw_ledger_has_asked(const struct sw_ledger *ledger, const struct sw_part *part, struct sw_share share)
{
	const struct sw_ledger_node *n = &ledger->nodes[part->node];
	uint32_t gpus = (uint32_t)__builtin_popcountll(part->mask);
	return n->standing == 0 ||
	       sw_share_host_bytes(&ledger->topology->nodes[part->node], part->memory_bytes, gpus, share) <= sw_ledger_unasked_bytes(n);
}

static bool host_fits(const struct sw_ledger_node *node, const struct sw_part *part)
{
	return node->up && node->cpus_free >= part->cpus && node->memory_free_bytes >= part->memory_bytes;
}

bool sw_ledger_host_fits(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if (!host_fits(&ledger->nodes[ledger->parts[p].node], &ledger->parts[p]))
			return false;
	return true;
}

/* ---- all of it */

/* Whether a newcomer would have host memory for up to so many of the part's GPUs. The part is that
 * of the leaver, once it has left them. */
static bool host_would_fit(const struct sw_ledger *ledger, const struct sw_part *part, struct sw_share leaver, struct sw_share share,
			   uint32_t gpus)
{
	const struct sw_ledger_node *n = &ledger->nodes[part->node];
	const struct sw_topology_node *shape = &ledger->topology->nodes[part->node];
	uint32_t of_part = (uint32_t)__builtin_popcountll(part->mask);
	uint64_t left = leaver.stands ? 0 : sw_share_host_bytes(shape, part->memory_bytes, of_part, leaver);
	/* Jobs may ask for more than there is: what the leaver gives back counts
	 * before that is cut off. */
	uint64_t there = n->memory_free_bytes + left;
	uint64_t unasked = there > n->asked_bytes ? there - n->asked_bytes : 0;
	return (n->standing == 0 && !leaver.stands) || sw_share_host_bytes(shape, 0, gpus < of_part ? gpus : of_part, share) <= unasked;
}

bool sw_ledger_would_fit(const struct sw_ledger *ledger, uint32_t parts, struct sw_share leaver, struct sw_share share, uint32_t gpus)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		if (!host_would_fit(ledger, &ledger->parts[p], leaver, share, gpus))
			return false;
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			if (!sw_gpu_would_fit(&ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)],
					      &ledger->topology->nodes[ledger->parts[p].node], share))
				return false;
	}
	return true;
}

bool sw_ledger_could_guarantee(const struct sw_ledger *ledger, uint32_t parts, uint32_t compute_milli)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			if (ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)]
					    .compute_held_milli +
				    compute_milli >
			    SW_COMPUTE_WHOLE)
				return false;
	return true;
}

bool sw_ledger_fits(const struct sw_ledger *ledger, uint32_t parts, struct sw_share of_job)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_part *part = &ledger->parts[p];
		struct sw_share share = sw_share_on_part(part, of_job);
		const struct sw_ledger_node *n = &ledger->nodes[part->node];
		const struct sw_topology_node *shape = &ledger->topology->nodes[part->node];
		if (!host_fits(n, part))
			return false;
		if ((part->mask & (~n->free | n->standing)) == 0 && sw_share_held_bytes(shape, share) <= shape->gpu_memory_bytes)
			continue;
		for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			/* One that is free and has residents is seen through. */
			bool through = gpu->residents > 0 && (n->free & rest & (~rest + 1)) != 0;
			if (!(through ? sw_gpu_would_fit : sw_gpu_fits)(gpu, shape, share))
				return false;
		}
	}
	return true;
}
