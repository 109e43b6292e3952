/* A running job in another place, of another size, or set up otherwise.
 *
 * Its owner may allow no stop, or only that it stands where it is. Then it is moved where its run
 * goes on: to other GPUs of its node. That is seen when it is put there. No later wish of the same
 * plan can change it, since it takes no GPU that another run of this plan has given up.
 */
#include <assert.h>

#include "core/state.h"

/* Where it was, with what it asks for now. */
static bool find_here(struct sw_engine *engine, const struct sw_core_job *job, uint32_t held, uint32_t *ret_parts)
{
	uint32_t parts = sw_config_parts(engine, job, held);
	if (parts == SW_NO_PART)
		return false;
	bool fits = sw_ledger_fits(&engine->ledger, parts, sw_share_of(&job->seen)) && sw_plan_has_asked(&engine->ledger, parts, job);
	if (fits)
		*ret_parts = parts;
	else
		sw_ledger_drop_parts(&engine->ledger, parts);
	return fits;
}

/* Lifts the job and puts it elsewhere, with another size or set up otherwise; back where it was if
 * that fails. `in_its_run`: in no other way. */
static enum sw_answer move(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where,
			   const struct sw_config *config, bool in_its_run)
{
	struct sw_engine *engine = plan->engine;
	struct sw_core_job held = *job;
	uint32_t parts;
	assert(job->seen.state == SW_JOB_RUNNING && job->parts != SW_NO_PART);
	if (job->split_milli != 0)
		return SW_NO_ROOM;
	const struct sw_plan_entry *entry = sw_plan_touch(plan, job);
	sw_ledger_give(&engine->ledger, job->parts, sw_share_of(&job->seen));
	sw_engine_set_waiting(engine, job, engine->config.terms.keeps_state);
	/* It is the same run, with the limits it has. */
	job->seen.gpu_memory_bytes = held.seen.gpu_memory_bytes;
	job->seen.compute_milli = held.seen.compute_milli;
	job->seen.job_class = held.seen.job_class;
	job->seen.until = held.seen.until;
	if (config != NULL)
		sw_config_put(job, config);
	bool allowed = sw_engine_quota_allows(engine, &job->seen, gpus);
	bool found = allowed && (where.here ? find_here(engine, job, held.parts, &parts) : sw_plan_find(plan, job, gpus, where, &parts));
	bool stays = found && config == NULL && sw_ledger_same_parts(&engine->ledger, parts, held.parts);
	if (found && (stays || !sw_plan_could_come_back(engine, job, parts))) {
		sw_plan_let_go(plan, job, parts);
		found = false;
	}
	bool returns = found && sw_ledger_same_parts(&engine->ledger, parts, entry->parts_before);
	bool would_stop = found && in_its_run && !returns && !sw_move_would_go_on(plan, entry, parts);
	if (would_stop) {
		sw_plan_let_go(plan, job, parts);
		found = false;
	}
	if (!found)
		sw_config_put(job, &held.config);
	uint32_t target = found ? parts : held.parts;
	sw_ledger_take(&engine->ledger, target, sw_share_of(&job->seen));
	if (!found) { /* it never left */
		sw_engine_set_running(engine, job, held.seen.gpus_held, target);
		job->seen = held.seen;
		job->clock = held.clock;
		return would_stop ? SW_KEPT : allowed ? SW_NO_ROOM : SW_OVER_QUOTA;
	}
	if (held.parts != entry->parts_before)
		sw_plan_let_go(plan, job, held.parts);
	/* Back where it was before this decision: then it has not moved. */
	if (entry->before.state == SW_JOB_RUNNING && returns) {
		sw_ledger_drop_parts(&engine->ledger, parts);
		target = entry->parts_before;
	}
	sw_engine_set_running(engine, job, gpus, target);
	return SW_YES;
}

/* Whether its run may be able to go, which is not to be stopped. */
static bool may_go_in_its_run(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus)
{
	return engine->config.terms.moves == SW_MOVES_RESTART && job->begun && job->keeps != SW_KEEPS_NOT && gpus == job->seen.gpus_held;
}

enum sw_answer sw_plan_move(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where,
			    const struct sw_config *config)
{
	struct sw_engine *engine = plan->engine;
	if (job->seen.paused)
		return SW_NO_ROOM;
	enum sw_answer answer = sw_plan_may_go(engine, job);
	bool in_its_run = answer == SW_KEPT && config == NULL && may_go_in_its_run(engine, job, gpus);
	if (in_its_run)
		answer = sw_plan_is_protected(engine, job) ? SW_TOO_SOON : SW_YES;
	if (answer != SW_YES)
		return answer;
	return sw_plan_may_move(engine) ? move(plan, job, gpus, where, config, in_its_run) : SW_NO_ROOM;
}
