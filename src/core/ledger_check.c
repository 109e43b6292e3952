/* Whether a ledger equals one into which all holdings were taken anew. The numbers
 * are those of ledger.h. */
#include <string.h>

#include "core/ledger_own.h"

/* By its use, and only there. */
static bool is_found(const struct sw_ledger *ledger, uint32_t g)
{
	const struct sw_gpu *gpu = &ledger->gpus[g];
	for (uint32_t step = 0; step < SW_USE_STEPS; step++)
		if (sw_bitmap_has(&ledger->by_use[step], g) != (sw_gpu_takes_more(gpu) && step == sw_gpu_use_step(gpu)))
			return false;
	return true;
}

static int compare_node(const struct sw_ledger *ledger, const struct sw_ledger *derived, uint32_t n, struct sw_err *err)
{
	const struct sw_ledger_node *a = &ledger->nodes[n], *b = &derived->nodes[n];
	const struct sw_topology_node *shape = &ledger->topology->nodes[n];
	if (a->free != b->free || a->cpus_free != b->cpus_free || a->memory_free_bytes != b->memory_free_bytes || a->up != b->up ||
	    a->closed != b->closed || a->shut != b->shut || a->kept != b->kept || a->yielding != b->yielding ||
	    a->cpus_yielding != b->cpus_yielding || a->memory_yielding_bytes != b->memory_yielding_bytes ||
	    a->asked_bytes != b->asked_bytes || a->asked_yielding_bytes != b->asked_yielding_bytes ||
	    sw_bitmap_has(&ledger->yielding, n) != (a->yielding != 0))
		return sw_err_set(err, SW_EBUG, "ledger invariant 4: node %u does not match its holdings", n);
	if (a->cpus_free > shape->cpus || a->memory_free_bytes > shape->memory_bytes)
		return sw_err_set(err, SW_EBUG, "ledger invariant 3: node %u gave away more CPUs or memory than it has", n);
	for (uint32_t bucket = 0; bucket <= ledger->topology->node_gpus_max; bucket++)
		if (sw_bitmap_has(&ledger->buckets[bucket], n) !=
		    (a->up && !a->closed && bucket == (uint32_t)__builtin_popcountll(a->free)))
			return sw_err_set(err, SW_EBUG, "ledger invariant 4: node %u is in the wrong bucket", n);
	if ((a->free & ~sw_ledger_all_gpus(shape)) != 0)
		return sw_err_set(err, SW_EBUG, "ledger invariant 5: node %u counts GPUs it does not have", n);
	for (uint32_t g = 0; g < shape->gpus; g++) {
		const struct sw_gpu *x = &ledger->gpus[a->first_gpu + g], *y = &derived->gpus[b->first_gpu + g];
		if (x->memory_held_bytes != y->memory_held_bytes || x->compute_held_milli != y->compute_held_milli ||
		    x->residents != y->residents || x->standing_bytes != y->standing_bytes || x->rest_bytes != y->rest_bytes ||
		    x->standing != y->standing || x->standing_held != y->standing_held || x->rest_held != y->rest_held ||
		    x->kept != y->kept)
			return sw_err_set(err, SW_EBUG, "ledger: GPU %u of node %u does not match its holdings", g, n);
		if (x->use_milli != y->use_milli || x->guaranteed != y->guaranteed ||
		    memcmp(x->who, y->who, x->residents * sizeof x->who[0]) != 0 || !is_found(ledger, a->first_gpu + g))
			return sw_err_set(err, SW_EBUG, "ledger invariant 6: GPU %u of node %u has others on it than it lists", g, n);
		if (x->homes != y->homes || (a->homes >> g & 1) != (y->homes > 0) || sw_bitmap_has(&ledger->homely, n) != (a->homes != 0))
			return sw_err_set(err, SW_EBUG, "ledger: GPU %u of node %u is the home of others than is marked", g, n);
		if ((a->standing >> g & 1) != (y->standing > 0) || sw_bitmap_has(&ledger->standing, n) != (a->standing != 0))
			return sw_err_set(err, SW_EBUG, "ledger: runs that stand on GPU %u of node %u are not marked", g, n);
		if (x->memory_held_bytes > shape->gpu_memory_bytes)
			return sw_err_set(err, SW_EBUG, "ledger invariant 1: GPU %u of node %u is over-committed", g, n);
		if (x->compute_held_milli > SW_COMPUTE_WHOLE || x->residents > SW_GPU_RESIDENTS_MAX)
			return sw_err_set(err, SW_EBUG, "ledger invariant 2: GPU %u of node %u has too many residents", g, n);
	}
	return 0;
}

int sw_ledger_matches(const struct sw_ledger *ledger, const struct sw_ledger *derived, struct sw_err *err)
{
	for (uint32_t n = 0; n < ledger->topology->node_count; n++) {
		int r = compare_node(ledger, derived, n, err);
		if (r < 0)
			return r;
	}
	if (ledger->gpus_free != derived->gpus_free || ledger->gpus_up != derived->gpus_up ||
	    ledger->nodes_closed != derived->nodes_closed || ledger->gpus_shut != derived->gpus_shut ||
	    ledger->gpus_kept != derived->gpus_kept || ledger->gpus_yielding != derived->gpus_yielding ||
	    ledger->gpus_shared != derived->gpus_shared)
		return sw_err_set(err, SW_EBUG, "ledger: totals do not match the nodes");
	return 0;
}
