/* Of the policy gandiva: what a look at running jobs leads to. Moves, pairs on trial, growth. */
#include "policy/gandiva.h"

/* ---- moving */

/* One that waits for its turn on the most crowded node takes free GPUs of another. */
static bool relieve(struct sw_plan *plan, struct sw_node_id to)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node free = node_of(view, to.v);
	const struct sw_job *best = NULL;
	uint32_t best_gpus = 1;
	for (uint32_t n = 0; n < sw_view_nodes(view); n++) {
		if (n == to.v || sw_list_length(view, waits_of(n)) == 0)
			continue;
		const struct room *room = room_of(view, n);
		struct sw_node node = node_of(view, n);
		if (best != NULL && !sw_gandiva_is_lower(room_of(view, of(view, best)->node), best_gpus, room, node.gpus))
			continue;
		const struct sw_job *job = sw_list_next(view, waits_of(n), NULL);
		while (job != NULL && (job->gpus > free.gpus_free || !sw_gandiva_suits(&free, job) || sw_gandiva_stands_here(view, job) ||
				       sw_gandiva_over_quota(view, job)))
			job = sw_list_next(view, waits_of(n), job);
		if (job != NULL) {
			best = job;
			best_gpus = node.gpus;
		}
	}
	if (best == NULL)
		return false;
	uint32_t from = of(view, best)->node;
	const struct sw_job *guest = linked(view, of(view, best)->partner);
	if (guest != NULL)
		of(view, guest)->node = to.v;
	if (sw_gandiva_house(plan, best, to.v))
		return true;
	if (guest != NULL)
		of(view, guest)->node = from;
	sw_gandiva_enter(view, best, RESIDENT, from);
	return false;
}

void sw_gandiva_relieve_all(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node_id end = {sw_view_nodes(view)}, node = sw_nodes_first(view, 1, (struct sw_node_id){0}, end);
	while (node.v != SW_NO_NODE.v && mind_of(view)->crowded > 0) {
		if (sw_list_length(view, waits_of(node.v)) > 0 || !relieve(plan, node))
			node = sw_nodes_first(view, 1, (struct sw_node_id){node.v + 1}, end);
		else
			node = sw_nodes_first(view, 1, node, end);
	}
}

/* Makes room on the node by moving one of its jobs to the tightest gap elsewhere. */
static void empty(struct sw_plan *plan, uint32_t n)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node_id end = {sw_view_nodes(view)};
	for (const struct sw_job *job = NULL; (job = sw_list_next(view, runs_of(n), job)) != NULL;) {
		struct sw_node_id to = sw_nodes_tightest(view, job->gpus_held, (struct sw_node_id){0}, end);
		if (to.v == n)
			to = sw_nodes_tightest(view, job->gpus_held, (struct sw_node_id){n + 1}, end);
		if (to.v == SW_NO_NODE.v || of(view, job)->partner != 0 || sw_job_keeps(view, job) != SW_KEEPS_ANYWHERE ||
		    sw_plan_run(plan, job, SW_WISH(.where = sw_on(to))) != SW_YES)
			continue;
		sw_gandiva_enter(view, job, RESIDENT, to.v);
		return;
	}
}

/* Brings a job that is spread over nodes together on one; `clears`: and if
 * none has room, makes some. */
static void gather(struct sw_plan *plan, const struct sw_job *job, bool clears)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node_id node, best = SW_NO_NODE;
	uint32_t here, most = 0;
	for (uint32_t i = 0; (node = sw_job_node(view, job, i, &here)).v != SW_NO_NODE.v; i++) {
		struct sw_node seen = node_of(view, node.v);
		if (seen.gpus_free + here > most && seen.gpus >= job->gpus_held && sw_list_length(view, waits_of(node.v)) == 0) {
			most = seen.gpus_free + here;
			best = node;
		}
	}
	if (most < job->gpus_held) {
		node = sw_nodes_tightest(view, job->gpus_held, (struct sw_node_id){0}, (struct sw_node_id){sw_view_nodes(view)});
		if (node.v == SW_NO_NODE.v && best.v != SW_NO_NODE.v && clears)
			empty(plan, best.v);
		best = node;
	}
	if (best.v != SW_NO_NODE.v && sw_plan_run(plan, job, SW_WISH(.where = sw_on(best))) == SW_YES)
		sw_gandiva_enter(view, job, RESIDENT, best.v);
}

void sw_gandiva_gather_all(struct sw_plan *plan, bool clears)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *next;
	for (const struct sw_job *job = sw_list_next(view, SPREAD, NULL); job != NULL; job = next) {
		next = sw_list_next(view, SPREAD, job);
		if (job->state == SW_JOB_RUNNING && job->since < sw_view_now(view) && job->gpus_held <= sw_view_node_gpus_max(view) &&
		    sw_job_keeps(view, job) == SW_KEEPS_ANYWHERE)
			gather(plan, job, clears);
	}
}

/* ---- introspection */

static bool is_bad(struct sw_view *view, const struct sw_job *job, const struct sw_job *other)
{
	const struct member *member = of(view, job);
	for (uint32_t i = 0; i < member->bads; i++)
		if (member->bad[i] == other->id.v + 1)
			return true;
	return false;
}

static bool could_pack(struct sw_view *view, const struct sw_job *job)
{
	const struct member *member = of(view, job);
	return member->partner == 0 && member->bads < BAD_MAX && job->gpu_memory_bytes > 0 &&
	       job->use_milli <= sw_view_param(view, BUSY)->number && sw_job_keeps(view, job) == SW_KEEPS_ANYWHERE;
}

/* Puts one that waits beside one that runs, for a trial. */
static bool try_pair(struct sw_plan *plan, const struct sw_job *job, const struct sw_job *with)
{
	struct sw_view *view = sw_plan_view(plan);
	struct member *guest = of(view, job), *host = of(view, with);
	uint32_t speed = sw_job_speed_milli(view, with);
	if (job->gpus != with->gpus_held || speed == 0 || is_bad(view, job, with) || with->since == sw_view_now(view) ||
	    sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(with))) != SW_YES)
		return false;
	sw_gandiva_leave(view, job);
	guest->place = GUEST;
	guest->node = host->node;
	guest->partner = with->id.v + 1;
	host->partner = job->id.v + 1;
	host->alone_milli = speed;
	guest->on_trial = host->on_trial = true;
	guest->trial_ends = host->trial_ends = sw_view_now(view) + quantum(view);
	sw_gandiva_set_waits(view, job, false);
	return true;
}

static void pack(struct sw_plan *plan, uint32_t n)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t left = PAIRS_PER_LOOK;
	for (const struct sw_job *job = NULL; (job = sw_list_next(view, waits_of(n), job)) != NULL;) {
		if (!could_pack(view, job) || of(view, job)->alone_milli == 0 || sw_gandiva_over_quota(view, job))
			continue;
		for (const struct sw_job *with = NULL; (with = sw_list_next(view, runs_of(n), with)) != NULL;)
			if (left-- == 0 || (could_pack(view, with) && try_pair(plan, job, with)))
				return;
	}
}

static void grow(struct sw_plan *plan, uint32_t n)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct room *room = room_of(view, n);
	uint32_t free = node_of(view, n).gpus_free;
	if (free == 0 || sw_view_now(view) - room->changed_at < sw_view_param(view, IDLE)->number)
		return;
	for (const struct sw_job *job = NULL; (job = sw_list_next(view, runs_of(n), job)) != NULL;) {
		if (job->gpus_held >= job->max_gpus || of(view, job)->partner != 0)
			continue;
		uint32_t gpus = job->max_gpus - job->gpus_held < free ? job->max_gpus : job->gpus_held + free;
		if (sw_plan_run(plan, job, SW_WISH(.gpus = gpus, .where = sw_on((struct sw_node_id){n}))) == SW_YES) {
			sw_gandiva_set_held(view, job, gpus);
			return;
		}
	}
}

void sw_gandiva_pack_all(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (uint32_t n = 0; n < sw_view_nodes(view) && sw_view_param(view, PACK)->number; n++)
		if (sw_list_length(view, waits_of(n)) > 0)
			pack(plan, n);
}

void sw_gandiva_grow_all(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct mind *mind = mind_of(view);
	for (uint32_t n = 0; n < sw_view_nodes(view) && mind->small > 0 && mind->crowded == 0 && sw_list_length(view, QUEUED) == 0; n++)
		grow(plan, n);
}
