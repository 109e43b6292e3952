/* A job beside others: on the GPUs of another, or on exactly those that a policy names. */
#include "core/state.h"

static enum sw_answer join(struct sw_plan *plan, struct sw_core_job *job, struct sw_core_job *host)
{
	struct sw_engine *engine = plan->engine;
	uint32_t gpus = host->seen.gpus_held;
	if (job->seen.gpu_memory_bytes == 0 || host->seen.gpu_memory_bytes == 0 || gpus < job->seen.min_gpus || gpus > job->seen.max_gpus)
		return sw_plan_misuse(plan);
	if (!sw_engine_quota_allows(engine, &job->seen, gpus))
		return SW_OVER_QUOTA;
	struct sw_share wanted = sw_share_of(&job->seen);
	if (!sw_ledger_fits(&engine->ledger, host->parts, wanted) || sw_ledger_touches_closed(&engine->ledger, host->parts) ||
	    sw_ledger_touches(&engine->ledger, host->parts, job->avoid))
		return SW_NO_ROOM;
	/* Its parts are of no use to a neighbour. */
	if (host->split_milli != 0)
		return SW_NO_ROOM;
	/* Lifted and put beside another in one decision would be a move, even to where it was. */
	if (sw_plan_touch(plan, job)->before.state == SW_JOB_RUNNING && !sw_plan_may_move(engine))
		return SW_NO_ROOM;
	/* As a guest it takes what it asks for, not what the rule gave its host. */
	uint32_t parts = sw_ledger_copy_parts(&engine->ledger, host->parts);
	if (parts == SW_NO_PART)
		return SW_NO_ROOM;
	if (!sw_plan_may_be_at(plan, job, parts)) {
		sw_ledger_drop_parts(&engine->ledger, parts);
		return SW_NO_ROOM;
	}
	sw_plan_keep_host_memory(engine, job, parts);
	sw_ledger_take(&engine->ledger, parts, wanted);
	sw_engine_set_running(engine, job, gpus, parts);
	/* Should it be lifted and put back, the guest is no reason to stay away. */
	if (host->plan_slot != SW_NO_SLOT)
		plan->entries.items[host->plan_slot].was_alone = false;
	return SW_YES;
}

enum sw_answer sw_plan_join(struct sw_plan *plan, struct sw_core_job *job, const struct sw_job *with)
{
	struct sw_core_job *host = sw_engine_own(plan->engine, with);
	if (host == NULL || job == host || host->seen.state != SW_JOB_RUNNING)
		return sw_plan_misuse(plan);
	uint32_t stood = sw_plan_rise(plan, job);
	return sw_plan_stand_unless(plan, job, stood, join(plan, job, host));
}

/* ---- on GPUs of the policy's choice */

bool sw_plan_is_mask(const struct sw_topology *topology, const struct sw_gpus *gpus)
{
	if (gpus->node.v >= topology->node_count || gpus->mask == 0)
		return false;
	uint32_t count = topology->nodes[gpus->node.v].gpus;
	return count == 64 || gpus->mask >> count == 0;
}

bool sw_plan_is_open(const struct sw_ledger *ledger, uint32_t node, uint64_t mask, const struct sw_core_job *job)
{
	const struct sw_ledger_node *n = &ledger->nodes[node];
	return n->up && !n->closed && ((n->shut | n->kept) & mask) == 0 && node != job->avoid;
}

bool sw_plan_gather_at(struct sw_engine *engine, const struct sw_core_job *job, const struct sw_gpus *where, size_t count,
		       struct sw_spot *spot, bool *ret_open)
{
	bool sensible = true, open = true;
	sw_spot_begin(spot, &engine->ledger, sw_share_of(&job->seen));
	for (size_t i = 0; i < count && sensible; i++) {
		sensible = sw_plan_is_mask(engine->topology, &where[i]) &&
			   (sw_spot_put(spot, &(struct sw_part){.mask = where[i].mask, .node = where[i].node.v}) || spot->failed);
		open = sensible && open && sw_plan_is_open(&engine->ledger, where[i].node.v, where[i].mask, job);
	}
	*ret_open = open;
	return sensible && (spot->failed || (spot->gpus >= job->seen.min_gpus && spot->gpus <= job->seen.max_gpus));
}

enum sw_answer sw_plan_settle_at(struct sw_plan *plan, struct sw_core_job *job, const struct sw_gpus *where, size_t count)
{
	struct sw_engine *engine = plan->engine;
	struct sw_spot spot;
	bool open;
	uint32_t stood = sw_plan_rise(plan, job);
	enum sw_answer answer = SW_YES;
	if (!sw_plan_gather_at(engine, job, where, count, &spot, &open))
		answer = sw_plan_misuse(plan);
	else if (!sw_engine_quota_allows(engine, &job->seen, spot.gpus))
		answer = SW_OVER_QUOTA;
	else if (spot.failed || !open || !sw_ledger_fits(&engine->ledger, spot.head, spot.share))
		answer = SW_NO_ROOM;
	if (answer == SW_YES)
		answer = sw_plan_settle(plan, job, spot.gpus, spot.head);
	else
		sw_spot_discard(&spot);
	return sw_plan_stand_unless(plan, job, stood, answer);
}
