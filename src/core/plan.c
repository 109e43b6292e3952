/* The plan: what the jobs were that one decision has touched, and how one of them is lifted and
 * put back.
 *
 * A wish takes effect in the ledger at once, so that the next wish sees what is left. What a job
 * was before its first wish is kept, and at commit only the difference counts. A job that was
 * lifted and put back exactly where it was has not been touched at all.
 *
 * plan_run.c leads from a wish to what makes it so. That is plan_place.c (a place by a rule or on a
 * node), plan_beside.c (exact GPUs, beside others) or split.c (in parts). Else it is plan_over.c
 * (over opportunistic jobs), greedy.c (ahead of those behind it) or plan_move.c (from one place to
 * another). plan_stop.c says what may be stopped, and plan_commit.c turns it all into commands.
 */
#include <assert.h>

#include "core/state.h"

void sw_plan_reset(struct sw_plan *plan)
{
	plan->entries.count = 0;
	plan->walks = false;
	plan->again = false;
	plan->holds_made = plan->hold_parts_made = 0;
	plan->wake_at = SW_TIME_NEVER;
	plan->protected_until = SW_TIME_NEVER;
}

struct sw_view *sw_plan_view(struct sw_plan *plan)
{
	return &plan->engine->view;
}

void sw_plan_again(struct sw_plan *plan)
{
	plan->again = true;
}

void *sw_plan_scratch(struct sw_plan *plan)
{
	return plan->engine->policy->scratch_size > 0 ? plan->engine->scratch : NULL;
}

void sw_plan_by_order(struct sw_plan *plan)
{
	/* After a walk over the order jobs stay in their lanes. */
	if (!plan->walks)
		sw_holds_settle(plan->engine);
	sw_greedy_decide(plan->engine);
}

struct sw_plan_entry *sw_plan_touch(struct sw_plan *plan, struct sw_core_job *job)
{
	if (job->plan_slot == SW_NO_SLOT) {
		struct sw_plan_entry *entry = sw_vec_push(&plan->entries);
		assert(entry != NULL); /* reserved at submit */
		entry->before = job->seen;
		entry->clock_before = job->clock;
		/* A wish may have begun to change what it waits with. */
		if (sw_job_is_waiting(&job->seen)) {
			entry->before.job_class = job->seen.asked_class;
			entry->before.compute_milli = job->asked_compute_milli;
		}
		entry->config_before = job->config;
		if (sw_job_is_waiting(&job->seen) && !sw_plan_is_homebound(plan->engine, job)) {
			entry->before.cpus = job->asked_cpus;
			entry->before.host_memory_bytes = job->asked_host_bytes;
			entry->config_before = (struct sw_config){0};
		}
		entry->parts_before = job->parts;
		entry->split_before = job->split_milli;
		entry->goes_on = false;
		entry->until = job->seen.until;
		entry->was_alone = sw_ledger_is_alone(&plan->engine->ledger, job->parts);
		job->plan_slot = (uint32_t)(plan->entries.count - 1);
	}
	return &plan->entries.items[job->plan_slot];
}

/* Gives back what it holds; the list of parts survives if it is the one from before. */
static void give(struct sw_plan *plan, struct sw_core_job *job)
{
	struct sw_ledger *ledger = &plan->engine->ledger;
	sw_ledger_give(ledger, job->parts, sw_share_of(&job->seen));
	if (job->parts != plan->entries.items[job->plan_slot].parts_before && job->parts != job->home)
		sw_ledger_drop_parts(ledger, job->parts);
}

void sw_plan_lift(struct sw_plan *plan, struct sw_core_job *job)
{
	struct sw_plan_entry *entry = sw_plan_touch(plan, job);
	entry->until = job->seen.until;
	assert(job->seen.state == SW_JOB_RUNNING && job->parts != SW_NO_PART && job->stands == SW_NO_PART);
	give(plan, job);
	sw_engine_set_waiting(plan->engine, job, plan->engine->config.terms.keeps_state);
	sw_config_put(job, &entry->config_before);
	/* Any job that comes there must fit beside its run, if that stands there. */
	if (sw_plan_is_homebound(plan->engine, job))
		sw_engine_stand(plan->engine, job, job->home);
	else if (entry->before.state == SW_JOB_RUNNING && entry->split_before == 0 && sw_engine_would_stand(plan->engine, job))
		sw_engine_stand(plan->engine, job, entry->parts_before);
}

uint32_t sw_plan_rise(struct sw_plan *plan, struct sw_core_job *job)
{
	uint32_t stood = job->stands;
	sw_engine_rise(plan->engine, job);
	return stood;
}

enum sw_answer sw_plan_stand_unless(struct sw_plan *plan, struct sw_core_job *job, uint32_t stood, enum sw_answer answer)
{
	if (answer != SW_YES && stood != SW_NO_PART)
		sw_engine_stand(plan->engine, job, stood);
	return answer;
}

bool sw_plan_has_newcomer(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_ledger *ledger = &engine->ledger;
	if (job->plan_slot == SW_NO_SLOT)
		return false; /* it was not lifted: it stopped by itself */
	const struct sw_plan_entry *entry = &engine->plan.entries.items[job->plan_slot];
	if (entry->was_alone)
		return false; /* it goes back only where no job is */
	for (uint32_t p = entry->parts_before; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu =
				&ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			for (uint32_t r = 0; r < gpu->residents; r++)
				if (!engine->jobs.items[gpu->who[r]].ranks_as_running)
					return true;
		}
	}
	return false;
}

bool sw_plan_has_asked(const struct sw_ledger *ledger, uint32_t parts, const struct sw_core_job *job)
{
	for (uint32_t p = ledger->standing.count > 0 ? parts : SW_NO_PART; p != SW_NO_PART; p = ledger->parts[p].next)
		if (!sw_ledger_has_asked(ledger, &ledger->parts[p], sw_share_of(&job->seen)))
			return false;
	return true;
}

/* Whether this decision has put a job on a node of these parts that takes host memory there. */
static bool has_put_beside(const struct sw_plan *plan, uint32_t parts)
{
	const struct sw_engine *engine = plan->engine;
	for (size_t e = 0; e < plan->entries.count; e++) {
		const struct sw_plan_entry *entry = &plan->entries.items[e];
		const struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
		const struct sw_part *all = engine->ledger.parts;
		for (uint32_t p = job->parts != entry->parts_before ? job->parts : SW_NO_PART; p != SW_NO_PART; p = all[p].next) {
			bool takes = job->seen.host_memory_bytes > 0 || all[p].memory_bytes > 0;
			if (takes && sw_ledger_touches(&engine->ledger, parts, all[p].node))
				return true;
		}
	}
	return false;
}

bool sw_plan_put_back(struct sw_plan *plan, struct sw_core_job *job)
{
	struct sw_plan_entry *entry = sw_plan_touch(plan, job);
	struct sw_ledger *ledger = &plan->engine->ledger;
	if (entry->before.state != SW_JOB_RUNNING)
		return false;
	uint32_t stood = sw_plan_rise(plan, job);
	struct sw_config lifted = job->config;
	/* It is the same run, as it was set up and with the limits it has. */
	sw_config_put(job, &entry->config_before);
	job->seen.job_class = entry->before.job_class;
	job->seen.gpu_memory_bytes = entry->before.gpu_memory_bytes;
	job->seen.compute_milli = entry->before.compute_milli;
	/* Another job may have taken its place in the quota, or its host memory; and no
	 * wish asked it to share. */
	if (!sw_ledger_fits(ledger, entry->parts_before, sw_share_of(&job->seen)) ||
	    !sw_engine_quota_allows(plan->engine, &job->seen, entry->before.gpus_held) ||
	    (entry->was_alone && !sw_ledger_is_free(ledger, entry->parts_before)) ||
	    (!sw_plan_has_asked(ledger, entry->parts_before, job) && has_put_beside(plan, entry->parts_before))) {
		job->seen.job_class = job->seen.asked_class;
		job->seen.gpu_memory_bytes = job->asked_memory_bytes;
		job->seen.compute_milli = job->asked_compute_milli;
		sw_config_put(job, &lifted);
		(void)sw_plan_stand_unless(plan, job, stood, SW_NO_ROOM);
		return false;
	}
	sw_ledger_take(ledger, entry->parts_before, sw_share_of(&job->seen));
	job->split_milli = entry->split_before;
	sw_engine_set_running(plan->engine, job, entry->before.gpus_held, entry->parts_before);
	/* It has run all the time, at the speed that it had. Later wishes of this plan must see
	 * that. */
	job->seen.since = entry->before.since;
	job->seen.until = entry->until;
	job->clock = entry->clock_before;
	return true;
}

/* ---- verbs that change no place */

enum sw_answer sw_plan_misuse(struct sw_plan *plan)
{
	plan->misuses++;
	return SW_MISUSE;
}

enum sw_answer sw_plan_limit(struct sw_plan *plan, const struct sw_job *seen, uint64_t gpu_memory_bytes, uint32_t compute_milli)
{
	struct sw_engine *engine = plan->engine;
	struct sw_core_job *job = sw_engine_own(plan->engine, seen);
	if (job == NULL || job->seen.state != SW_JOB_RUNNING || gpu_memory_bytes == 0 || compute_milli == 0 ||
	    compute_milli > SW_COMPUTE_WHOLE)
		return sw_plan_misuse(plan);
	if (job->split_milli != 0 || job->seen.paused)
		return SW_NO_ROOM;
	struct sw_share old = sw_share_of(&job->seen);
	struct sw_job limited = job->seen;
	limited.gpu_memory_bytes = gpu_memory_bytes;
	limited.compute_milli = compute_milli;
	struct sw_share wanted = sw_share_of(&limited);
	sw_plan_touch(plan, job);
	sw_ledger_give(&engine->ledger, job->parts, old);
	bool fits = sw_ledger_fits(&engine->ledger, job->parts, wanted);
	sw_ledger_take(&engine->ledger, job->parts, fits ? wanted : old);
	if (!fits)
		return SW_NO_ROOM;
	job->seen.gpu_memory_bytes = gpu_memory_bytes;
	job->seen.compute_milli = compute_milli;
	plan->entries.items[job->plan_slot].limits_changed = true;
	return SW_YES;
}
