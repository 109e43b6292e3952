/* The end of a plan: what became of each job that it touched turns into commands, and the policy
 * hears of it. */
#include <assert.h>

#include "core/state.h"

/* The job is where it was: forget that it was lifted. */
static void undo(struct sw_engine *engine, struct sw_core_job *job, const struct sw_plan_entry *entry)
{
	struct sw_job now = job->seen;
	engine->paused += (uint32_t)entry->before.paused - (uint32_t)now.paused;
	job->seen = entry->before;
	job->clock = entry->clock_before;
	job->seen.gpu_memory_bytes = now.gpu_memory_bytes;
	job->seen.compute_milli = now.compute_milli;
	job->seen.fresh = now.fresh;
	job->seen.promotions = now.promotions;
	if (now.state == SW_JOB_RUNNING) {
		job->seen.until = now.until;
		job->seen.job_class = now.job_class;
		if (now.paused != entry->before.paused)
			sw_engine_set_paused(engine, job, now.paused);
	} else { /* a start that was taken back kept nothing */
		job->can_resume = entry->before.state == SW_JOB_SUSPENDED;
	}
}

/* Whether a job that ran and runs is in another place than before, or set up otherwise. */
static bool is_moved(const struct sw_core_job *job, const struct sw_plan_entry *entry)
{
	return job->parts != entry->parts_before || !sw_config_is_same(&job->config, &entry->config_before);
}

static void tell_stop(struct sw_engine *engine, const struct sw_core_job *job, const struct sw_plan_entry *entry, enum sw_reason reason)
{
	sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_STOP,
						      .reason = (uint8_t)reason,
						      .stands = job->stands != SW_NO_PART,
						      .job = job->seen.id.v,
						      .epoch = job->epoch,
						      .gpus = entry->before.gpus_held,
						      .parts = SW_NO_PART});
}

static void commit_stop(struct sw_engine *engine, struct sw_core_job *job, const struct sw_plan_entry *entry)
{
	sw_engine_leave(engine, job, entry->parts_before);
	job->seen.preemptions++;
	tell_stop(engine, job, entry, SW_REASON_PREEMPTED);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_tell_stopped(engine, job);
}

/* At home it is the run that it was, where it stood there; else another one begins. */
static void begin_run(struct sw_engine *engine, struct sw_core_job *job, bool ran, struct sw_command *command)
{
	command->kind = SW_CMD_START;
	command->goes_on = sw_plan_is_homebound(engine, job);
	bool keeps = job->home != SW_NO_PART && sw_ledger_same_gpus(&engine->ledger, job->parts, job->home);
	assert(keeps || !command->goes_on);
	if (command->goes_on) {
		sw_engine_go_on(engine, job);
	} else {
		job->epoch++;
		sw_move_forget_run(engine, job);
	}
	/* What was told of the work since a run was over holds. */
	if (!keeps && (ran || job->home != SW_NO_PART))
		sw_engine_forget_work(engine, job);
	if (!keeps) {
		job->keeps = SW_KEEPS_UNKNOWN;
		sw_engine_set_frees(engine, job, engine->config.terms.keeps_state);
	}
	sw_engine_forget_home(engine, job);
	if (job->seen.first_start_at == SW_TIME_NEVER)
		job->seen.first_start_at = engine->now;
}

static void commit_run(struct sw_engine *engine, struct sw_core_job *job, const struct sw_plan_entry *entry)
{
	bool ran = entry->before.state == SW_JOB_RUNNING, goes = entry->goes_on;
	uint64_t from = goes ? engine->ledger.parts[entry->parts_before].mask : 0;
	struct sw_command command = {
		.kind = SW_CMD_MOVE, .job = job->seen.id.v, .gpus = job->seen.gpus_held, .parts = job->parts, .config = job->config};
	if (ran) {
		if (job->parts != entry->parts_before)
			sw_ledger_drop_parts(&engine->ledger, entry->parts_before);
		job->seen.migrations++;
	}
	if (!goes && (!ran || engine->config.terms.moves != SW_MOVES_FREELY)) {
		command.resume = entry->before.state == SW_JOB_SUSPENDED;
		begin_run(engine, job, ran, &command);
	} else if (!goes) { /* anywhere, from wherever it was */
		sw_move_arrive(engine, job);
	}
	command.epoch = job->epoch;
	job->came_at = engine->now;
	if (goes)
		sw_move_begin(engine, job, from, SW_REASON_NONE);
	else
		sw_engine_command(engine, command);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_tell_started(engine, job);
}

/* A running job that is put elsewhere comes there in one run, or is stopped and started. */
static void commit_leave(struct sw_plan *plan, struct sw_plan_entry *entry)
{
	struct sw_engine *engine = plan->engine;
	const struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
	if (!is_moved(job, entry) || engine->config.terms.moves == SW_MOVES_FREELY)
		return;
	entry->goes_on = sw_move_goes_on(plan, entry);
	if (!entry->goes_on)
		tell_stop(engine, job, entry, SW_REASON_MOVED);
}

void sw_plan_commit(struct sw_plan *plan)
{
	struct sw_engine *engine = plan->engine;
	for (size_t e = 0; e < plan->entries.count; e++) {
		struct sw_plan_entry *entry = &plan->entries.items[e];
		struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
		if (entry->before.state != SW_JOB_RUNNING)
			continue;
		if (job->seen.state != SW_JOB_RUNNING)
			commit_stop(engine, job, entry);
		else
			commit_leave(plan, entry);
	}
	for (size_t e = 0; e < plan->entries.count; e++) {
		struct sw_plan_entry *entry = &plan->entries.items[e];
		struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
		bool ran = entry->before.state == SW_JOB_RUNNING, runs = job->seen.state == SW_JOB_RUNNING;
		if (runs && (!ran || is_moved(job, entry)))
			commit_run(engine, job, entry);
		else if (ran == runs)
			undo(engine, job, entry);
		/* One that was lifted and put back where it was may be of another class now. */
		bool reclassed = job->parts == entry->parts_before && job->seen.job_class != entry->before.job_class;
		bool limited = entry->limits_changed || (ran && (reclassed || job->seen.paused != entry->before.paused ||
								 job->seen.gpu_memory_bytes != entry->before.gpu_memory_bytes ||
								 job->seen.compute_milli != entry->before.compute_milli));
		if (runs && limited)
			sw_engine_command(
				engine,
				(struct sw_command){.kind = SW_CMD_LIMIT, .job = job->seen.id.v, .epoch = job->epoch, .parts = job->parts});
	}
	sw_order_settle(engine);
	sw_holds_settle(engine);
	for (size_t e = 0; e < plan->entries.count; e++) {
		struct sw_core_job *job = &engine->jobs.items[plan->entries.items[e].before.id.v];
		assert(job->seen.state != SW_JOB_RUNNING ||
		       (job->parts != SW_NO_PART && job->home == SW_NO_PART && job->stands == SW_NO_PART));
		job->plan_slot = SW_NO_SLOT;
		sw_lease_settle(engine, job);
		sw_engine_hold_if_due(engine, job);
	}
}
