/* The terms of runs: what they may have of the GPUs that they share, and which gives way to
 * which. Follows from the runs that are active, each time anew, and from what was ordered at the
 * last look (coordinate.c). */
#include "agent/brain/gpu.h"
#include "agent/brain/coordinate.h"
#include "agent/brain/state.h"

void sw_agent_brain_spec(struct sw_agent_brain *brain, struct sw_run_id id, const struct sw_run_spec *spec)
{
	struct sw_agent_run *run = sw_agent_find(brain, id);
	if (run != NULL)
		sw_agent_take_spec(run, spec);
}

void sw_agent_take_spec(struct sw_agent_run *run, const struct sw_run_spec *spec)
{
	run->hears_terms = !spec->bare_gpu && run->gpu_count > 0;
	run->shares = spec->gpu_memory_bytes > 0;
	run->memory_bytes = spec->gpu_memory_bytes;
	run->lease_is_known = true;
	run->lease_length_ns = spec->lease_ms * SW_NS_PER_MS;
	run->asked_opportunistic = run->opportunistic = spec->opportunistic;
}

static bool are_equal(const struct sw_agent_terms *a, const struct sw_agent_terms *b)
{
	bool equal = a->limit_bytes == b->limit_bytes && a->share_milli == b->share_milli && a->watched == b->watched &&
		     a->neighbour_count == b->neighbour_count;
	for (uint32_t i = 0; equal && i < a->neighbour_count; i++)
		equal = sw_run_id_compare(a->neighbours[i], b->neighbours[i]) == 0;
	return equal;
}

bool sw_agent_meet(const struct sw_agent_run *a, const struct sw_agent_run *b)
{
	for (size_t i = 0; i < a->gpu_count; i++)
		for (size_t j = 0; j < b->gpu_count; j++)
			if (a->gpus[i] == b->gpus[j])
				return true;
	return false;
}

/* It has had a process, by what its supervisor said. Before that its page may not be there yet, and
 * one that was named too soon is not named again. */
static bool has_begun(const struct sw_agent_run *run)
{
	return run->said.state != SW_RUN_STARTING;
}

uint64_t sw_agent_asked_bytes(const struct sw_agent_run *run)
{
	uint64_t bytes = run->limit_bytes > 0 ? run->limit_bytes : run->memory_bytes;
	return bytes > 0 ? bytes : SW_COORDINATE_NO_LIMIT;
}

bool sw_agent_is_limited(const struct sw_agent_run *run)
{
	return run->limit_bytes > 0 && run->limit_bytes < run->memory_bytes;
}

/* The guaranteed runs on the GPUs of one that is not: how many there are, and the names of
 * those that can be named. */
static size_t find_neighbours(const struct sw_agent_brain *brain, const struct sw_agent_run *run, struct sw_agent_terms *terms)
{
	size_t found = 0;
	for (size_t i = 0; i < brain->runs.count && terms->neighbour_count < SW_AGENT_NEIGHBOURS; i++) {
		const struct sw_agent_run *other = brain->runs.items[i].run;
		bool counts = other->hears_terms && !other->opportunistic && sw_agent_is_active(other);
		if (other == run || !counts || !sw_agent_meet(run, other))
			continue;
		found++;
		if (has_begun(other))
			terms->neighbours[terms->neighbour_count++] = other->id;
	}
	return found;
}

/* Beside guaranteed ones: it works in their idle times, or as much as was found to leave them
 * alone. Until that is found out, not at all. */
static void give_way(const struct sw_agent_brain *brain, const struct sw_agent_run *run, struct sw_agent_terms *terms)
{
	size_t beside = find_neighbours(brain, run, terms);
	if (brain->throttle->yields)
		return;
	terms->neighbour_count = 0;
	if (beside > 0 && !run->ordered)
		terms->share_milli = SW_AGENT_NO_SHARE;
}

/* Wishes are those of now, orders those of the last look. An order never gives more than is wished,
 * but to a guaranteed run in need. */
static void obey(const struct sw_agent_run *run, struct sw_agent_terms *terms)
{
	const struct sw_coordinate_order *order = &run->order;
	uint64_t asked = sw_agent_asked_bytes(run);
	uint32_t all = run->share_milli > 0 ? run->share_milli : SW_THROTTLE_ALL;
	if (order->limit_bytes < asked || (run->raised && !sw_agent_is_limited(run)))
		terms->limit_bytes = order->limit_bytes;
	if (order->share_milli < all)
		terms->share_milli = order->share_milli > 0 ? order->share_milli : SW_AGENT_NO_SHARE;
}

/* What an agent before this one told it holds until the controller says what is wished now, and
 * until the run was seen. It may have been given more than is wished, and need it still. */
static bool is_unknown(const struct sw_agent_brain *brain, const struct sw_agent_run *run, int64_t now_ns)
{
	bool found = run->want == NULL;
	return run->wish == SW_WISH_UNKNOWN || (found && brain->looked_ns == 0 && !sw_agent_is_blind(brain, now_ns));
}

bool sw_agent_terms_change(const struct sw_agent_brain *brain, struct sw_agent_run *run, int64_t now_ns)
{
	struct sw_agent_terms terms = {.limit_bytes = run->limit_bytes, .share_milli = run->share_milli};
	bool beside_guaranteed = false, shared = false;
	if (!run->hears_terms || is_unknown(brain, run, now_ns))
		return false;
	for (size_t i = 0; i < run->gpu_count; i++) {
		const struct sw_agent_gpu *gpu = &brain->gpus.items[run->gpus[i]];
		shared = shared || gpu->users > 1;
		beside_guaranteed = beside_guaranteed || gpu->users > gpu->opportunistic;
		terms.watched = terms.watched || (!run->opportunistic && gpu->opportunistic > 0 && brain->throttle->yields);
	}
	if (run->ordered && (shared || run->raised))
		obey(run, &terms);
	if (run->opportunistic && beside_guaranteed)
		give_way(brain, run, &terms);
	if (run->paused)
		terms.share_milli = SW_AGENT_NO_SHARE;
	if (run->terms_told && are_equal(&terms, &run->terms))
		return false;
	run->terms = terms;
	run->terms_told = true;
	return true;
}
