/* What a job is to the engine while it lives: its share of a GPU, its state, its tenant's count,
 * the end of its run. And commands, which are hashed as they are made.
 *
 * Invariants:
 *  1. a job is in `waiting` exactly while it waits, and in `running` exactly while it runs;
 *  2. a tenant's counts are those of its jobs that run;
 *  3. a job's run time is brought up to now before its state changes.
 */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

struct sw_share sw_share_of(const struct sw_job *job)
{
	struct sw_share share = {
		.gpu_memory_bytes = job->gpu_memory_bytes,
		.host_memory_bytes = job->host_memory_bytes,
		.compute_milli = job->compute_milli,
		.guaranteed = job->job_class == SW_CLASS_GUARANTEED,
		.use_milli = job->use_milli != 0 ? job->use_milli : (uint16_t)(job->compute_milli / 2),
		.job = job->id.v,
		.stands = sw_rule_suspends(job),
		.frees = job->frees_gpus,
	};
	if (job->paused) {
		share.gpu_memory_bytes = sw_job_floor(job);
		share.compute_milli = share.use_milli = 0;
	}
	return share;
}

bool sw_engine_quota_allows(const struct sw_engine *engine, const struct sw_job *job, uint32_t gpus)
{
	if (!engine->quotas || job->job_class != SW_CLASS_GUARANTEED)
		return true;
	const struct sw_tenant *tenant = &engine->tenants.items[job->tenant];
	return tenant->quota == UINT32_MAX || (uint64_t)tenant->held + gpus <= tenant->quota;
}

static void count_held(struct sw_engine *engine, const struct sw_job *job, uint32_t gpus, bool more)
{
	struct sw_tenant *tenant = &engine->tenants.items[job->tenant];
	*(job->job_class == SW_CLASS_GUARANTEED ? &tenant->held : &tenant->borrowed) += more ? gpus : -gpus;
}

void sw_engine_count_rule(struct sw_engine *engine, const struct sw_job *job, bool more)
{
	uint32_t one = more ? 1 : UINT32_MAX;
	engine->ruled += job->stop_rule != SW_STOP_AS_WORLD ? one : 0;
	engine->standers += sw_rule_suspends(job) && !engine->config.terms.keeps_state ? one : 0;
	if (engine->ruled == 0 || engine->had_rules)
		return;
	engine->had_rules = true;
	sw_order_mark_running(engine);
}

static void stop_running(struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_job *seen = &job->seen;
	job->clock.work_left_ns = sw_job_remaining(&engine->view, seen);
	job->clock.gpu_time_ns = sw_job_gpu_time(&engine->view, seen);
	job->clock.ran_ns = sw_job_ran(&engine->view, seen);
	assert(seen->state == SW_JOB_RUNNING && seen->gpus_held > 0);
	count_held(engine, seen, seen->gpus_held, false);
	seen->gpus_held = 0;
	seen->gpu_memory_bytes = job->asked_memory_bytes;
	seen->compute_milli = job->asked_compute_milli;
	seen->job_class = seen->asked_class;
	engine->paused -= seen->paused;
	seen->paused = false;
	seen->until = SW_TIME_NEVER;
	sw_heap_remove(&engine->leases, seen->id.v);
	job->parts = SW_NO_PART;
	job->split_milli = 0;
	sw_bitmap_remove(&engine->running, seen->id.v);
}

/* When it ends, until the world says otherwise: at full speed, and proportional to the GPUs;
 * or as the splitter says. */
static void look_ahead(struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_job *seen = &job->seen;
	sw_ns left = job->clock.work_left_ns;
	if ((seen->gpus_held != seen->gpus || job->split_milli != 0) && left != SW_TIME_NEVER) {
		__int128 scaled =
			job->split_milli != 0 ? (__int128)left * job->split_milli / 1000 : (__int128)left * seen->gpus / seen->gpus_held;
		left = scaled > INT64_MAX / 2 ? INT64_MAX / 2 : (sw_ns)scaled;
	}
	job->clock.ends_at = left >= SW_TIME_NEVER - engine->now ? SW_TIME_NEVER : engine->now + left;
	job->clock.work_left_as_of = engine->now;
}

void sw_engine_set_paused(struct sw_engine *engine, struct sw_core_job *job, bool paused)
{
	struct sw_job *seen = &job->seen;
	job->clock.work_left_ns = sw_job_remaining(&engine->view, seen);
	job->clock.gpu_time_ns = sw_job_gpu_time(&engine->view, seen);
	job->clock.ran_ns = sw_job_ran(&engine->view, seen);
	engine->paused += (uint32_t)paused - (uint32_t)seen->paused;
	seen->paused = paused;
	seen->since = engine->now;
	look_ahead(engine, job);
	if (paused)
		job->clock.ends_at = SW_TIME_NEVER;
}

void sw_engine_forget_work(struct sw_engine *engine, struct sw_core_job *job)
{
	if (engine->config.terms.keeps_state)
		return;
	job->clock.work_left_ns = job->asked_work_ns;
	if (job->seen.state != SW_JOB_RUNNING)
		return;
	look_ahead(engine, job);
	if (job->seen.paused)
		job->clock.ends_at = SW_TIME_NEVER;
}

void sw_engine_set_waiting(struct sw_engine *engine, struct sw_core_job *job, bool can_resume)
{
	stop_running(engine, job);
	job->can_resume = can_resume;
	job->seen.state = can_resume ? SW_JOB_SUSPENDED : SW_JOB_WAITING;
	job->seen.since = engine->now;
	sw_bitmap_add(&engine->waiting, job->seen.id.v);
}

void sw_engine_set_running(struct sw_engine *engine, struct sw_core_job *job, uint32_t gpus, uint32_t parts)
{
	struct sw_job *seen = &job->seen;
	assert(sw_job_is_waiting(seen) && job->stands == SW_NO_PART && gpus == sw_ledger_count_gpus(&engine->ledger, parts));
	seen->state = SW_JOB_RUNNING;
	seen->since = engine->now;
	seen->gpus_held = gpus;
	look_ahead(engine, job);
	job->parts = parts;
	count_held(engine, seen, gpus, true);
	sw_bitmap_remove(&engine->waiting, seen->id.v);
	sw_bitmap_add(&engine->running, seen->id.v);
	sw_order_mark(engine, job); /* it may run in another class than before it was lifted */
}

void sw_engine_command(struct sw_engine *engine, struct sw_command command)
{
	struct sw_command *slot = sw_vec_push(&engine->commands);
	assert(slot != NULL); /* reserved at submit */
	*slot = command;
	uint64_t hash = sw_hash_u64(engine->log_hash, (uint64_t)command.kind << 56 | (uint64_t)command.reason << 48 | command.job);
	hash = sw_hash_u64(hash, (uint64_t)command.epoch << 32 | command.gpus);
	for (uint32_t p = command.parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		hash = sw_hash_u64(hash ^ engine->ledger.parts[p].node, engine->ledger.parts[p].mask);
	const struct sw_config *config = &command.config;
	if (!sw_config_is_zero(config)) {
		hash = sw_hash_u64(sw_hash_u64(hash, (uint64_t)config->batch << 32 | config->accumulation),
				   (uint64_t)config->workers << 32 | config->servers);
		hash = sw_hash_u64(sw_hash_u64(hash, config->cpus), config->host_memory_bytes);
	}
	if (command.kind >= SW_CMD_NODE_OFF)
		hash = sw_hash_u64(hash, command.node);
	engine->log_hash = hash;
	engine->command_hash =
		sw_hash_u64(sw_hash_u64(engine->command_hash, (uint64_t)engine->now), (uint64_t)command.kind << 56 ^ command.job);
	for (uint32_t p = command.parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		engine->command_hash = sw_hash_u64(engine->command_hash ^ engine->ledger.parts[p].node, engine->ledger.parts[p].mask);
}

void sw_engine_tell_stop(struct sw_engine *engine, const struct sw_core_job *job, enum sw_reason reason)
{
	bool may_stand = reason == SW_REASON_HELD || reason == SW_REASON_BOUNCED;
	sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_STOP,
						      .reason = (uint8_t)reason,
						      .stands = may_stand && job->split_milli == 0 && sw_engine_would_stand(engine, job),
						      .job = job->seen.id.v,
						      .epoch = job->epoch,
						      .gpus = job->seen.gpus_held,
						      .parts = SW_NO_PART});
}

void sw_engine_end_job(struct sw_engine *engine, struct sw_core_job *job, enum sw_job_state state)
{
	if (job->seen.state == SW_JOB_RUNNING) {
		sw_ledger_give(&engine->ledger, job->parts, sw_share_of(&job->seen));
		sw_ledger_drop_parts(&engine->ledger, job->parts);
		stop_running(engine, job);
	} else {
		sw_bitmap_remove(&engine->waiting, job->seen.id.v);
	}
	sw_engine_forget_home(engine, job);
	sw_move_forget_run(engine, job);
	sw_config_drop(job);
	sw_order_remove(engine, job);
	sw_order_leave_lane(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_engine_count_rule(engine, &job->seen, false);
	job->seen.state = (uint8_t)state;
	job->seen.since = engine->now;
	sw_hold_lose(engine, job);
	sw_tell_ended(engine, job);
	void *own = sw_job_state(&engine->view, &job->seen);
	if (own != NULL)
		memset(own, 0, engine->policy->job_state_size);
}

void sw_engine_set_held(struct sw_engine *engine, struct sw_core_job *job)
{
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_bitmap_remove(&engine->waiting, job->seen.id.v);
	job->seen.state = SW_JOB_HELD;
	job->seen.since = engine->now;
	job->held_next = false;
	sw_hold_lose(engine, job);
	sw_tell_change(engine, SW_CHANGE_RELEASES);
}

void sw_engine_hold_if_due(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->held_next && sw_job_is_waiting(&job->seen))
		sw_engine_set_held(engine, job);
}

void sw_engine_interrupt(struct sw_engine *engine, struct sw_core_job *job)
{
	sw_ledger_give(&engine->ledger, job->parts, sw_share_of(&job->seen));
	sw_ledger_drop_parts(&engine->ledger, job->parts);
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_engine_set_waiting(engine, job, false);
	sw_move_forget_run(engine, job);
	sw_config_drop(job);
	sw_engine_forget_work(engine, job);
	job->keeps = SW_KEEPS_UNKNOWN;
	sw_tell_change(engine, SW_CHANGE_LOSSES);
	sw_tell_stopped(engine, job);
	sw_order_add(engine, job);
	sw_engine_hold_if_due(engine, job);
}

void sw_engine_lose(struct sw_engine *engine, struct sw_core_job *job, enum sw_reason reason)
{
	sw_engine_tell_stop(engine, job, reason);
	if (job->seen.no_restart) {
		sw_engine_end_job(engine, job, SW_JOB_FAILED);
		return;
	}
	sw_engine_interrupt(engine, job);
	job->seen.restarts++;
}
