/* Of the policy gandiva: where a job goes that has no place. */
#include "policy/gandiva.h"

/* ---- where a job goes */

bool sw_gandiva_stands_on(const struct sw_view *view, const struct sw_job *job, uint32_t node)
{
	return sw_job_keeps(view, job) == SW_KEEPS_IN_PLACE && sw_job_node(view, job, 0, NULL).v == node;
}

bool sw_gandiva_suits(const struct sw_node *node, const struct sw_job *job)
{
	return node->open && node->gpus >= job->gpus && node->gpu_memory_bytes >= job->gpu_memory_bytes;
}

/* GPUs that residents of the node have or could have. */
static uint32_t pool(const struct sw_node *node, const struct room *room)
{
	uint32_t gpus = node->gpus_free + room->held;
	return gpus < node->gpus ? gpus : node->gpus;
}

/* Whether the first has less asked of it, for its size. */
bool sw_gandiva_is_lower(const struct room *a, uint32_t a_gpus, const struct room *b, uint32_t b_gpus)
{
	return (uint64_t)a->load * b_gpus < (uint64_t)b->load * a_gpus;
}

/* A node on which the job can run beside all residents, or (crowd) take turns with them: that on
 * which it stands still comes first. SW_NO_NODE. */
static struct sw_node_id choose(struct sw_view *view, const struct sw_job *job, bool crowd)
{
	struct sw_node_id best = SW_NO_NODE;
	uint32_t best_tier = UINT32_MAX, best_gpus = 1, size = sw_gandiva_size_class(job->gpus);
	uint64_t height = (uint64_t)sw_view_param(view, HEIGHT)->number;
	for (uint32_t n = 0; n < sw_view_nodes(view); n++) {
		struct sw_node node = node_of(view, n);
		const struct room *room = room_of(view, n);
		if (!sw_gandiva_suits(&node, job) || of(view, job)->shuns == n + 1)
			continue;
		if (crowd ? room->fixed + job->gpus > node.gpus || room->load + job->gpus > height * node.gpus
			  : room->load + job->gpus > pool(&node, room))
			continue;
		uint32_t tier = sw_gandiva_stands_on(view, job, n) ? 0 : room->affinity == size ? 1 : room->affinity == 0 ? 2 : 3;
		if (tier < best_tier || (tier == best_tier && sw_gandiva_is_lower(room, node.gpus, room_of(view, best.v), best_gpus))) {
			best.v = n;
			best_tier = tier;
			best_gpus = node.gpus;
		}
	}
	return best;
}

/* Makes it a resident there, running if it can at once. */
bool sw_gandiva_house(struct sw_plan *plan, const struct sw_job *job, uint32_t node)
{
	struct sw_view *view = sw_plan_view(plan);
	sw_gandiva_enter(view, job, RESIDENT, node);
	sw_gandiva_shrink(plan, node, job->gpus);
	return sw_gandiva_begin(plan, job);
}

/* Any free GPUs, by the placement rule. */
bool sw_gandiva_start_spread(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	if (job->gpus > sw_view_gpus_free(view))
		for (uint32_t n = 0; n < sw_view_nodes(view) && mind_of(view)->grown > 0; n++)
			sw_gandiva_shrink(plan, n, UINT32_MAX);
	if (job->gpus > sw_view_gpus_free(view) || sw_plan_run(plan, job, NULL) != SW_YES)
		return false;
	sw_gandiva_enter(view, job, SPREAD, 0); /* once it has started we see whether it is */
	sw_gandiva_set_waits(view, job, false);
	return true;
}

/* Finds a place for a job that has none. */
static bool settle(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node_id node = SW_NO_NODE;
	if (sw_gandiva_over_quota(view, job))
		return false;
	bool fits_a_node = job->gpus <= sw_view_node_gpus_max(view);
	if (fits_a_node)
		node = choose(view, job, false);
	if (node.v != SW_NO_NODE.v) {
		if (sw_gandiva_house(plan, job, node.v) || mind_of(view)->too_soon)
			return true;
		of(view, job)->shuns = node.v + 1;
		sw_gandiva_enter(view, job, QUEUED, 0);
	}
	if (sw_gandiva_start_spread(plan, job))
		return true;
	if (fits_a_node && sw_gandiva_takes_turns(view, job))
		node = choose(view, job, true);
	else
		node = SW_NO_NODE;
	if (node.v != SW_NO_NODE.v)
		sw_gandiva_enter(view, job, RESIDENT, node.v);
	return node.v != SW_NO_NODE.v;
}

/* In order of arrival; where one finds no place, others that ask for as much need not look. */
void sw_gandiva_settle_all(struct sw_plan *plan, uint32_t shelf)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t too_many = UINT32_MAX;
	const struct sw_job *next = sw_list_next(view, shelf, NULL);
	for (uint32_t left = sw_list_length(view, shelf); left > 0 && next != NULL; left--) {
		const struct sw_job *job = next;
		next = sw_list_next(view, shelf, job);
		if (job->gpus < too_many && settle(plan, job))
			continue;
		if (job->gpus < too_many && !sw_gandiva_over_quota(view, job))
			too_many = job->gpus;
		if (of(view, job)->place != QUEUED)
			sw_gandiva_enter(view, job, QUEUED, 0);
	}
}
