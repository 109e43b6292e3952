/* Jobs that are off their GPUs and have a home. These are the GPUs to which they would like to come
 * back, or on which their run stands, suspended.
 *
 * Invariants:
 *  1. a job has a home only while it does not run;
 *  2. its run stands at its home, or nowhere. The ledger counts what it holds
 *     there for exactly as long;
 *  3. one whose state is at its home starts nowhere else.
 */
#include <assert.h>

#include "core/state.h"

/* With what it asked for: limits hold while it runs. */
struct sw_share sw_engine_standing_share(const struct sw_core_job *job)
{
	return (struct sw_share){.gpu_memory_bytes = job->asked_memory_bytes,
				 .host_memory_bytes = job->seen.host_memory_bytes,
				 .job = job->seen.id.v,
				 .stands = true,
				 .frees = job->seen.frees_gpus};
}

bool sw_engine_would_stand(const struct sw_engine *engine, const struct sw_core_job *job)
{
	return sw_rule_suspends(&job->seen) && !engine->config.terms.keeps_state && job->keeps == SW_KEEPS_YES && job->prefers_home;
}

void sw_engine_stand(struct sw_engine *engine, struct sw_core_job *job, uint32_t parts)
{
	assert(job->stands == SW_NO_PART);
	sw_ledger_stand(&engine->ledger, parts, sw_engine_standing_share(job), true);
	job->stands = parts;
}

void sw_engine_rise(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->stands == SW_NO_PART)
		return;
	sw_ledger_stand(&engine->ledger, job->stands, sw_engine_standing_share(job), false);
	job->stands = SW_NO_PART;
}

void sw_engine_go_on(struct sw_engine *engine, struct sw_core_job *job)
{
	/* What it measured before was beside others. */
	job->speed_milli = 0;
	if (job->leaves != 0)
		job->told_at = engine->now;
}

void sw_engine_relane(struct sw_engine *engine, struct sw_core_job *job)
{
	int r = sw_order_relane(engine, job);
	assert(r == 0); /* reserved by the step */
	(void)r;
}

void sw_engine_set_home(struct sw_engine *engine, struct sw_core_job *job, uint32_t parts)
{
	job->home = parts;
	sw_ledger_mark_home(&engine->ledger, parts, true);
	if (job->stands == SW_NO_PART && sw_plan_is_homebound(engine, job))
		sw_engine_stand(engine, job, parts);
}

void sw_engine_leave(struct sw_engine *engine, struct sw_core_job *job, uint32_t parts)
{
	assert(job->home == SW_NO_PART);
	bool lost = sw_rule_suspends(&job->seen) && !engine->config.terms.keeps_state && job->keeps != SW_KEEPS_YES;
	/* Parts of a split job are of no use to the whole one. */
	job->stood_at = engine->now;
	if (job->prefers_home && !lost && !sw_ledger_is_split(&engine->ledger, parts))
		sw_engine_set_home(engine, job, parts);
	else
		sw_ledger_drop_parts(&engine->ledger, parts);
	if (job->stands == SW_NO_PART) {
		sw_move_forget_run(engine, job);
		sw_config_drop(job);
	}
	if (job->home == SW_NO_PART)
		sw_engine_forget_work(engine, job);
}

void sw_engine_forget_home(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->home == SW_NO_PART)
		return;
	sw_engine_rise(engine, job);
	sw_ledger_mark_home(&engine->ledger, job->home, false);
	/* Where it lives there again, the parts are what it holds. */
	if (job->home != job->parts)
		sw_ledger_drop_parts(&engine->ledger, job->home);
	job->home = SW_NO_PART;
}

void sw_engine_empty_home(struct sw_engine *engine, struct sw_core_job *job)
{
	bool waits = sw_job_is_waiting(&job->seen), stood = job->stands != SW_NO_PART;
	if (waits)
		sw_order_remove(engine, job);
	sw_engine_forget_home(engine, job);
	sw_move_forget_run(engine, job);
	sw_config_drop(job);
	sw_engine_forget_work(engine, job);
	job->keeps = SW_KEEPS_UNKNOWN;
	sw_engine_relane(engine, job);
	if (waits)
		sw_order_add(engine, job);
	if (stood)
		sw_tell_freed(engine, job);
}

void sw_engine_lose_home(struct sw_engine *engine, struct sw_core_job *job, enum sw_reason reason)
{
	if (job->stands != SW_NO_PART || job->seen.no_restart)
		sw_engine_tell_stop(engine, job, reason);
	if (job->seen.no_restart)
		sw_engine_end_job(engine, job, SW_JOB_FAILED);
	else
		sw_engine_empty_home(engine, job);
}

/* What its run holds, running or standing, with or without its GPU memory from now on. */
void sw_engine_set_frees(struct sw_engine *engine, struct sw_core_job *job, bool frees)
{
	uint32_t parts = job->parts, stands = job->stands;
	if (job->seen.frees_gpus == frees)
		return;
	sw_ledger_give(&engine->ledger, parts, sw_share_of(&job->seen));
	sw_engine_rise(engine, job);
	job->seen.frees_gpus = frees;
	sw_ledger_take(&engine->ledger, parts, sw_share_of(&job->seen));
	if (stands != SW_NO_PART)
		sw_engine_stand(engine, job, stands);
}

/* It cannot have the GPUs that it was given. A run that came back to them stands there again; one
 * that was new has not begun. */
void sw_engine_step_back(struct sw_engine *engine, struct sw_core_job *job)
{
	uint32_t parts = job->parts;
	sw_engine_tell_stop(engine, job, SW_REASON_BOUNCED);
	if (!sw_engine_would_stand(engine, job) || job->split_milli != 0) {
		sw_engine_interrupt(engine, job);
		return;
	}
	sw_ledger_give(&engine->ledger, parts, sw_share_of(&job->seen));
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_engine_set_waiting(engine, job, false);
	sw_engine_leave(engine, job, parts);
	sw_engine_relane(engine, job);
	sw_tell_stopped(engine, job);
	sw_order_add(engine, job);
	sw_engine_hold_if_due(engine, job);
}

bool sw_engine_may_step_back(const struct sw_engine *engine, const struct sw_core_job *job)
{
	if (!job->begun)
		return true;
	return sw_job_may_stop(&engine->view, &job->seen) && (!job->seen.no_restart || sw_engine_would_stand(engine, job));
}

/* Of the residents of a GPU, the one that came last, and not before `since`; NULL: there is
 * none. */
static struct sw_core_job *find_newcomer(struct sw_engine *engine, const struct sw_gpu *gpu, sw_ns since)
{
	struct sw_core_job *last = NULL;
	for (uint32_t r = 0; r < gpu->residents; r++) {
		struct sw_core_job *job = &engine->jobs.items[gpu->who[r]];
		if (job->came_at >= since && (last == NULL || job->came_at >= last->came_at))
			last = job;
	}
	return last;
}

/* Jobs that came to the GPUs of one that stands on this node since it does, and do not fit
 * beside it, wait again. */
static void bounce_newcomers(struct sw_engine *engine, const struct sw_core_job *job, uint32_t node)
{
	const struct sw_ledger *ledger = &engine->ledger;
	for (uint32_t p = job->stands; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].node == node ? ledger->parts[p].mask : 0; rest != 0; rest &= rest - 1) {
			uint32_t g = ledger->nodes[node].first_gpu + (uint32_t)__builtin_ctzll(rest);
			const struct sw_gpu *gpu = &ledger->gpus[g];
			struct sw_core_job *other;
			while (sw_ledger_gpu_is_overdrawn(ledger, g) && (other = find_newcomer(engine, gpu, job->stood_at)) != NULL)
				sw_engine_step_back(engine, other);
		}
	}
}

/* Whether a run has begun on its GPUs of this node since it stands there, and cannot wait again. */
static bool has_begun_beside(struct sw_engine *engine, const struct sw_core_job *job, uint32_t node)
{
	const struct sw_ledger *ledger = &engine->ledger;
	for (uint32_t p = job->stands; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].node == node ? ledger->parts[p].mask : 0; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[ledger->nodes[node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			for (uint32_t r = 0; r < gpu->residents; r++) {
				const struct sw_core_job *other = &engine->jobs.items[gpu->who[r]];
				if (other->came_at >= job->stood_at && !sw_engine_may_step_back(engine, other))
					return true;
			}
		}
	}
	return false;
}

void sw_engine_stay(struct sw_engine *engine, struct sw_core_job *job, uint32_t node)
{
	struct sw_ledger *ledger = &engine->ledger;
	if (job->stands == SW_NO_PART || job->seen.state >= SW_JOB_RUNNING)
		return;
	sw_engine_set_frees(engine, job, false);
	/* Its owner allows a stop only where others get the GPUs by it. */
	if (job->seen.stop_rule == SW_STOP_IF_FREE)
		job->keeps = SW_KEEPS_NOT;
	/* Its memory counts from now on, and no run that may not be stopped is. */
	if (has_begun_beside(engine, job, node))
		return;
	bounce_newcomers(engine, job, node);
	if (job->seen.state == SW_JOB_HELD)
		return;
	uint32_t gpus = sw_ledger_count_gpus(ledger, job->home), parts = job->home;
	sw_engine_rise(engine, job);
	bool shaded = sw_shade_cast(engine, job, SW_TIME_NEVER);
	bool free = sw_plan_home_is_free(engine, job);
	if (shaded)
		sw_shade_lift(engine);
	if (!free || !sw_engine_quota_allows(engine, &job->seen, gpus)) {
		sw_engine_stand(engine, job, parts);
		return;
	}
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	bool resumes = job->seen.state == SW_JOB_SUSPENDED;
	sw_ledger_take(ledger, parts, sw_share_of(&job->seen));
	sw_engine_set_running(engine, job, gpus, parts);
	sw_hold_lose(engine, job);
	sw_engine_forget_home(engine, job);
	sw_engine_relane(engine, job);
	sw_engine_go_on(engine, job);
	job->came_at = engine->now;
	engine->went_on = true;
	sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_START,
						      .resume = resumes,
						      .goes_on = true,
						      .job = job->seen.id.v,
						      .epoch = job->epoch,
						      .gpus = gpus,
						      .parts = parts,
						      .config = job->config});
	sw_tell_started(engine, job);
	sw_order_add(engine, job);
}

void sw_engine_note_keeps(struct sw_engine *engine, struct sw_core_job *job, bool keeps, bool frees)
{
	if (job->seen.state > SW_JOB_RUNNING || engine->config.terms.keeps_state)
		return;
	bool leaves_more = frees && !job->seen.frees_gpus;
	sw_engine_set_frees(engine, job, frees);
	/* One that stands has kept it. */
	if (job->stands == SW_NO_PART) {
		leaves_more |= keeps && job->keeps == SW_KEEPS_NOT;
		job->keeps = keeps ? SW_KEEPS_YES : SW_KEEPS_NOT;
		sw_order_mark(engine, job);
	}
	if (leaves_more)
		sw_tell_freed(engine, job);
}
