/* Jobs in parts: the splitter's answers, checked, and the start of a job by one.
 *
 * A split run is an ordinary run whose parts are one GPU each and say how much memory they hold
 * there (ledger.h). What it cannot do, the other wishes refuse: its parts fit only this job,
 * split in this way.
 */
#include "core/state.h"

#define SLOWEST_MILLI 1000000u

bool sw_split_is_sensible(uint32_t alone_milli, uint32_t parts)
{
	return parts >= 2 && parts <= SW_SPLIT_PARTS_MAX && alone_milli > 0 && alone_milli <= SLOWEST_MILLI;
}

uint32_t sw_job_split_milli(const struct sw_view *view, const struct sw_job *seen)
{
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	return job != NULL ? job->split_milli : 0;
}

/* Of the devices that were offered, and no more than they have. */
static bool is_offered(const struct sw_split_part *part, const struct sw_split_device *devices, size_t count)
{
	for (size_t d = 0; d < count; d++)
		if (devices[d].node.v == part->node.v && devices[d].gpu == part->gpu)
			return part->memory_bytes > 0 && part->memory_bytes <= devices[d].memory_bytes;
	return false;
}

bool sw_view_split(const struct sw_view *view, const struct sw_job *seen, const struct sw_split_device *devices, size_t count,
		   struct sw_split *ret_split)
{
	const struct sw_splitter *splitter = view->engine->config.splitter;
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	struct sw_split split = {0};
	if (splitter == NULL || job == NULL || seen->gpus != 1 || job->asked_memory_bytes == 0 ||
	    !splitter->split(splitter, seen, devices, count, &split) || !sw_split_is_sensible(split.alone_milli, split.count) ||
	    split.step_milli == 0)
		return false;
	for (uint32_t p = 0; p < split.count; p++)
		if (!is_offered(&split.parts[p], devices, count))
			return false;
	*ret_split = split;
	return true;
}

bool sw_split_gather(const struct sw_engine *engine, const struct sw_split *split, struct sw_spot *spot)
{
	for (uint32_t p = 0; p < split->count && !spot->failed; p++) {
		const struct sw_split_part *part = &split->parts[p];
		if (part->node.v >= engine->topology->node_count || part->gpu >= engine->topology->nodes[part->node.v].gpus ||
		    part->memory_bytes == 0)
			return false;
		if (!sw_spot_put(
			    spot,
			    &(struct sw_part){.mask = UINT64_C(1) << part->gpu, .split_bytes = part->memory_bytes, .node = part->node.v}) &&
		    !spot->failed)
			return false;
	}
	return true;
}

static bool is_open(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts)
{
	return !sw_ledger_touches_closed(&engine->ledger, parts) && !sw_ledger_touches(&engine->ledger, parts, job->avoid);
}

enum sw_answer sw_plan_put_parts(struct sw_plan *plan, struct sw_core_job *job, const struct sw_split *split)
{
	struct sw_engine *engine = plan->engine;
	struct sw_spot spot;
	if (job->seen.gpus != 1 || !sw_split_is_sensible(split->alone_milli, split->count))
		return sw_plan_misuse(plan);
	sw_spot_begin(&spot, &engine->ledger, sw_share_of(&job->seen));
	enum sw_answer answer = SW_YES;
	if (!sw_split_gather(engine, split, &spot))
		answer = sw_plan_misuse(plan);
	else if (!sw_engine_quota_allows(engine, &job->seen, spot.gpus))
		answer = SW_OVER_QUOTA;
	else if (engine->config.splitter == NULL || spot.failed || !is_open(engine, job, spot.head) ||
		 !sw_ledger_fits(&engine->ledger, spot.head, spot.share))
		answer = SW_NO_ROOM;
	if (answer == SW_YES) {
		job->split_milli = split->alone_milli;
		answer = sw_plan_settle(plan, job, spot.gpus, spot.head);
	} else {
		sw_spot_discard(&spot);
	}
	if (answer != SW_YES)
		job->split_milli = 0;
	return answer;
}
