/* What policies can see of GPUs on which one more job would fit: the free ones, and those that
 * are used least. */
#include "core/state.h"

static size_t add_gpus(struct sw_gpus *where, size_t count, size_t max, uint32_t node, uint64_t mask)
{
	for (size_t i = 0; i < count; i++) {
		if (where[i].node.v == node) {
			where[i].mask |= mask;
			return count;
		}
	}
	if (count < max)
		where[count] = (struct sw_gpus){{node}, mask};
	return count + 1;
}

/* The lowest `count` of the mask, or all of it. */
static uint64_t lowest(uint64_t mask, uint32_t count)
{
	uint64_t rest = mask;
	for (; count > 0 && rest != 0; count--)
		rest &= rest - 1;
	return mask & ~rest;
}

/* The free GPUs of a node on which the share fits beside runs that stand there. */
static uint64_t free_for(const struct sw_ledger *ledger, uint32_t node, struct sw_share share)
{
	const struct sw_ledger_node *n = &ledger->nodes[node];
	uint64_t mask = n->free;
	for (uint64_t rest = n->free & n->standing; rest != 0; rest &= rest - 1)
		if (!sw_ledger_gpu_fits(ledger, n->first_gpu + (uint32_t)__builtin_ctzll(rest), share))
			mask &= ~(rest & (~rest + 1));
	return mask;
}

/* How many of them it may have at once: there is host memory for no more. */
static uint32_t count_free_for(const struct sw_ledger *ledger, uint32_t node, struct sw_share share)
{
	struct sw_part part = {.mask = free_for(ledger, node, share), .node = node};
	while (part.mask != 0 && !sw_ledger_has_asked(ledger, &part, share))
		part.mask &= part.mask - 1;
	return (uint32_t)__builtin_popcountll(part.mask);
}

/* In the ledger as the job may see it. */
static uint32_t gpus_free_for(const struct sw_view *view, const struct sw_job *seen, const struct sw_core_job *job)
{
	const struct sw_ledger *ledger = view->ledger;
	uint32_t free = ledger->gpus_free, at_home = 0;
	if (job != NULL && sw_plan_is_homebound(view->engine, job)) {
		for (uint32_t p = job->home; p != SW_NO_PART; p = ledger->parts[p].next)
			at_home += (uint32_t)__builtin_popcountll(ledger->parts[p].mask & ledger->nodes[ledger->parts[p].node].free);
		return at_home;
	}
	for (uint32_t node = ledger->standing.count > 0 ? sw_bitmap_next(&ledger->standing, 0) : SW_BITMAP_NONE; node != SW_BITMAP_NONE;
	     node = sw_bitmap_next(&ledger->standing, node + 1))
		if (ledger->nodes[node].up && !ledger->nodes[node].closed)
			free -= (uint32_t)__builtin_popcountll(ledger->nodes[node].free) - count_free_for(ledger, node, sw_share_of(seen));
	return free;
}

uint32_t sw_view_gpus_free_for(const struct sw_view *view, const struct sw_job *seen)
{
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	bool shaded = sw_shade_cast(view->engine, job, SW_TIME_NEVER);
	uint32_t free = gpus_free_for(view, seen, job);
	if (shaded)
		sw_shade_lift(view->engine);
	return free;
}

/* Those on which its run stands, if they are used so little. Whether it fits there is for the
 * plan to say: it holds some of their memory itself. */
static size_t home_of(const struct sw_ledger *ledger, const struct sw_core_job *job, uint32_t below_milli, struct sw_gpus *ret_where,
		      size_t max)
{
	size_t count = 0;
	for (uint32_t p = job->home; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_part *part = &ledger->parts[p];
		if (count == max || !sw_plan_is_open(ledger, part->node, part->mask, job))
			return 0;
		for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[ledger->nodes[part->node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			if (gpu->residents > 0 && gpu->use_milli >= below_milli)
				return 0;
		}
		ret_where[count++] = (struct sw_gpus){{part->node}, part->mask};
	}
	return count;
}

static size_t least_used(const struct sw_view *view, const struct sw_core_job *job, uint32_t below_milli, struct sw_gpus *ret_where,
			 size_t max)
{
	const struct sw_ledger *ledger = view->ledger;
	const struct sw_job *seen = &job->seen;
	uint32_t end = ledger->topology->node_count, missing = seen->gpus;
	struct sw_share share = sw_share_of(seen);
	size_t count = 0;
	share.guaranteed = false;
	if (sw_plan_is_homebound(view->engine, job))
		return home_of(ledger, job, below_milli, ret_where, max);
	for (uint32_t node = sw_ledger_first(ledger, 1, 0, end); node != UINT32_MAX && missing > 0 && count <= max;
	     node = sw_ledger_first(ledger, 1, node + 1, end)) {
		if (!sw_plan_is_open(ledger, node, 0, job) || ledger->topology->nodes[node].gpu_memory_bytes < share.gpu_memory_bytes)
			continue;
		uint64_t mask = lowest(free_for(ledger, node, share), missing);
		if (mask == 0)
			continue;
		missing -= (uint32_t)__builtin_popcountll(mask);
		count = add_gpus(ret_where, count, max, node, mask);
	}
	if (share.gpu_memory_bytes == 0)
		return missing == 0 && count <= max ? count : 0;
	for (uint32_t step = 0, gpu = 0; missing > 0 && count <= max && sw_ledger_next_used(ledger, below_milli, &step, &gpu); gpu++) {
		uint32_t node = ledger->gpus[gpu].node;
		if (!sw_plan_is_open(ledger, node, 0, job) || !sw_ledger_gpu_fits(ledger, gpu, share))
			continue;
		missing--;
		count = add_gpus(ret_where, count, max, node, UINT64_C(1) << (gpu - ledger->nodes[node].first_gpu));
	}
	return missing == 0 && count <= max ? count : 0;
}

size_t sw_gpus_least_used(const struct sw_view *view, const struct sw_job *seen, uint32_t below_milli, struct sw_gpus *ret_where,
			  size_t max)
{
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	if (job == NULL)
		return 0;
	bool shaded = sw_shade_cast(view->engine, job, SW_TIME_NEVER);
	size_t count = least_used(view, job, below_milli, ret_where, max);
	if (shaded)
		sw_shade_lift(view->engine);
	return count;
}
