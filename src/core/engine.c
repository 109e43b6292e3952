#include "core/engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

#define TENANTS_MAX 1000000u
#define NUMBERS_MAX (UINT32_C(1) << 30)
#define FORGET_BLOCK 1024u /* so many jobs that follow each other give their memory back together */

/* ---- accounts of jobs */

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

struct sw_core_job *sw_engine_own(struct sw_engine *engine, const struct sw_job *job)
{
	uintptr_t at = (uintptr_t)job, first = (uintptr_t)engine->jobs.items;
	if (at < first || (at - first) % sizeof(struct sw_core_job) != 0 || (at - first) / sizeof(struct sw_core_job) >= engine->jobs.count)
		return NULL;
	uint32_t id = (uint32_t)((at - first) / sizeof(struct sw_core_job));
	return sw_engine_knows(engine, id) ? &engine->jobs.items[id] : NULL;
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
	seen->work_left_ns = sw_job_remaining(&engine->view, seen);
	seen->gpu_time_ns = sw_job_gpu_time(&engine->view, seen);
	seen->ran_ns = sw_job_ran(&engine->view, seen);
	count_held(engine, seen, seen->gpus_held, false);
	seen->gpus_held = 0;
	seen->gpu_memory_bytes = job->asked_memory_bytes;
	seen->compute_milli = job->asked_compute_milli;
	seen->job_class = seen->asked_class;
	engine->paused -= seen->paused;
	seen->paused = false;
	job->parts = SW_NO_PART;
	job->split_milli = 0;
	sw_bitmap_remove(&engine->running, seen->id.v);
}

/* When it ends, until the world says otherwise: at full speed, and proportional to the GPUs; or as the splitter says. */
static void look_ahead(struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_job *seen = &job->seen;
	sw_ns left = seen->work_left_ns;
	if ((seen->gpus_held != seen->gpus || job->split_milli != 0) && left != SW_TIME_NEVER) {
		__int128 scaled =
			job->split_milli != 0 ? (__int128)left * job->split_milli / 1000 : (__int128)left * seen->gpus / seen->gpus_held;
		left = scaled > INT64_MAX / 2 ? INT64_MAX / 2 : (sw_ns)scaled;
	}
	seen->ends_at = left >= SW_TIME_NEVER - engine->now ? SW_TIME_NEVER : engine->now + left;
	seen->work_left_as_of = engine->now;
}

void sw_engine_set_paused(struct sw_engine *engine, struct sw_core_job *job, bool paused)
{
	struct sw_job *seen = &job->seen;
	seen->work_left_ns = sw_job_remaining(&engine->view, seen);
	seen->gpu_time_ns = sw_job_gpu_time(&engine->view, seen);
	seen->ran_ns = sw_job_ran(&engine->view, seen);
	engine->paused += (uint32_t)paused - (uint32_t)seen->paused;
	seen->paused = paused;
	seen->since = engine->now;
	look_ahead(engine, job);
	if (paused)
		seen->ends_at = SW_TIME_NEVER;
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
	engine->log_hash = hash;
	engine->command_hash =
		sw_hash_u64(sw_hash_u64(engine->command_hash, (uint64_t)engine->now), (uint64_t)command.kind << 56 ^ command.job);
	for (uint32_t p = command.parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		engine->command_hash = sw_hash_u64(engine->command_hash ^ engine->ledger.parts[p].node, engine->ledger.parts[p].mask);
}

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

void sw_engine_tell_freed(struct sw_engine *engine, const struct sw_core_job *job)
{
	if (engine->policy->freed != NULL)
		engine->policy->freed(&engine->view, &job->seen);
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

/* The job is gone: takes it out of every list. */
static void end_job(struct sw_engine *engine, struct sw_core_job *job, enum sw_job_state state)
{
	if (job->seen.state == SW_JOB_RUNNING) {
		sw_ledger_give(&engine->ledger, job->parts, sw_share_of(&job->seen));
		sw_ledger_drop_parts(&engine->ledger, job->parts);
		stop_running(engine, job);
	} else {
		sw_bitmap_remove(&engine->waiting, job->seen.id.v);
	}
	sw_engine_forget_home(engine, job);
	sw_order_remove(engine, job);
	sw_order_leave_lane(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_engine_count_rule(engine, &job->seen, false);
	job->seen.state = (uint8_t)state;
	job->seen.since = engine->now;
	if (engine->policy->ended != NULL)
		engine->policy->ended(&engine->view, &job->seen);
	void *own = sw_job_state(&engine->view, &job->seen);
	if (own != NULL)
		memset(own, 0, engine->policy->job_state_size);
}

/* It has a home now, or none any more; it is in no set. */
static void must_relane(struct sw_engine *engine, struct sw_core_job *job)
{
	int r = sw_order_relane(engine, job);
	assert(r == 0); /* reserved by the step */
	(void)r;
}

/* Of what runs, or stands at its home. */
static void tell_stop(struct sw_engine *engine, const struct sw_core_job *job, enum sw_reason reason)
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

/* One that waits competes no more until it is released. */
static void set_held(struct sw_engine *engine, struct sw_core_job *job)
{
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_bitmap_remove(&engine->waiting, job->seen.id.v);
	job->seen.state = SW_JOB_HELD;
	job->seen.since = engine->now;
	job->held_next = false;
}

void sw_engine_hold_if_due(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->held_next && sw_job_is_waiting(&job->seen))
		set_held(engine, job);
}

/* The run is over but the job is not: it waits to start anew. */
static void interrupt(struct sw_engine *engine, struct sw_core_job *job)
{
	sw_ledger_give(&engine->ledger, job->parts, sw_share_of(&job->seen));
	sw_ledger_drop_parts(&engine->ledger, job->parts);
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_engine_set_waiting(engine, job, false);
	job->keeps = SW_KEEPS_UNKNOWN;
	if (engine->policy->stopped != NULL)
		engine->policy->stopped(&engine->view, &job->seen);
	sw_order_add(engine, job);
	sw_engine_hold_if_due(engine, job);
}

/* ---- memory */

/* Room for what one decision touches: running jobs and those it starts, both bounded by what the GPUs can hold. */
static int reserve_scratch(struct sw_engine *engine, uint32_t gpus, uint32_t jobs)
{
	size_t touched = 2 * (size_t)gpus * SW_GPU_RESIDENTS_MAX;
	/* Parts: one for each GPU at the most, old and new ones side by side; and one job at a time on the empty cluster. */
	if (sw_ledger_reserve_parts(&engine->ledger, 2 * gpus) < 0 || sw_ledger_reserve_parts(&engine->empty, gpus) < 0)
		return SW_ENOMEM;
	touched = touched < jobs ? touched : jobs;
	if (sw_order_reserve(engine, (uint32_t)touched, jobs, (uint32_t)engine->jobs.room) < 0 ||
	    sw_vec_reserve(&engine->plan.entries, touched) < 0 || sw_vec_reserve(&engine->plan.lifted, touched) < 0 ||
	    sw_vec_reserve(&engine->commands, 3 * touched + jobs) < 0 || sw_vec_reserve(&engine->ringing, touched) < 0)
		return SW_ENOMEM;
	return 0;
}

int sw_engine_reserve_node_states(struct sw_engine *engine, size_t nodes)
{
	size_t per_node = engine->policy->node_state_size, before = engine->node_states_capacity;
	if (per_node == 0 || nodes <= before)
		return 0;
	size_t wanted = nodes + nodes / 2;
	char *grown = realloc(engine->node_states, wanted * per_node);
	if (grown == NULL)
		return SW_ENOMEM;
	memset(grown + before * per_node, 0, (wanted - before) * per_node);
	engine->node_states = grown;
	engine->node_states_capacity = wanted;
	return 0;
}

/* For numbers below `numbers`, and so many jobs among them. */
static int reserve_jobs(struct sw_engine *engine, size_t numbers, uint32_t known)
{
	if (numbers > NUMBERS_MAX)
		return SW_ELIMIT;
	if (sw_table_reserve(&engine->jobs, numbers) < 0)
		return SW_ENOMEM;
	uint32_t ids = (uint32_t)(engine->jobs.room > NUMBERS_MAX ? NUMBERS_MAX : engine->jobs.room);
	if (sw_bitmap_reserve(&engine->known, ids) < 0 || sw_bitmap_reserve(&engine->waiting, ids) < 0 ||
	    sw_bitmap_reserve(&engine->running, ids) < 0 || sw_heap_make_room(&engine->alarms, ids, known) < 0 ||
	    sw_heap_make_room(&engine->latest, ids, known) < 0 || reserve_scratch(engine, engine->topology->gpu_count, known) < 0)
		return SW_ENOMEM;
	size_t per_job = engine->job_states_each;
	return per_job > 0 ? sw_table_make_room(&engine->job_states, &engine->job_states_room, per_job, engine->jobs.room) : 0;
}

int sw_engine_reserve(struct sw_engine *engine, size_t count)
{
	if (count >= NUMBERS_MAX)
		return SW_ELIMIT;
	return count == 0 ? 0 : reserve_jobs(engine, engine->jobs.count + count, engine->known.count + (uint32_t)count);
}

int sw_engine_skip(struct sw_engine *engine, uint32_t next)
{
	int r = next > engine->jobs.count ? reserve_jobs(engine, next, engine->known.count) : 0;
	if (r == 0 && next > engine->jobs.count)
		engine->jobs.count = next;
	return r;
}

/* Whether no job of this block is known, and none will be. */
static bool is_empty(const struct sw_engine *engine, uint32_t block)
{
	uint64_t end = ((uint64_t)block + 1) * FORGET_BLOCK;
	return end <= engine->jobs.count && sw_engine_next(engine, block * FORGET_BLOCK) >= end;
}

/* A page may belong to two blocks: it goes with the second of them. */
static void give_back(struct sw_engine *engine, uint32_t block)
{
	if (!is_empty(engine, block))
		return;
	uint32_t from = (block > 0 && is_empty(engine, block - 1) ? block - 1 : block) * FORGET_BLOCK;
	uint32_t to = (is_empty(engine, block + 1) ? block + 2 : block + 1) * FORGET_BLOCK;
	sw_table_clear(&engine->jobs, from, to);
	sw_oset_links_forget(&engine->order.links, from, to);
	sw_heap_forget(&engine->alarms, from, to);
	sw_heap_forget(&engine->latest, from, to);
	if (engine->job_states_each > 0)
		sw_table_wipe(&engine->job_states, engine->job_states_room, engine->job_states_each, from, to);
}

bool sw_engine_forget(struct sw_engine *engine, struct sw_job_id id)
{
	if (!sw_engine_knows(engine, id.v))
		return false;
	struct sw_core_job *job = &engine->jobs.items[id.v];
	/* One that ended between two decisions is still listed for the next. */
	if (job->seen.state <= SW_JOB_RUNNING || job->seen.fresh != 0)
		return false;
	engine->avoiders -= job->avoid != UINT32_MAX;
	*job = (struct sw_core_job){0};
	engine->order.links.items[id.v] = (struct sw_oset_link){0};
	if (engine->job_states_each > 0)
		memset(engine->job_states + id.v * engine->job_states_each, 0, engine->job_states_each);
	sw_bitmap_remove(&engine->known, id.v);
	give_back(engine, id.v / FORGET_BLOCK);
	return true;
}

struct sw_core_job *sw_engine_add(struct sw_engine *engine)
{
	assert(engine->jobs.count < engine->jobs.room);
	sw_bitmap_add(&engine->known, (uint32_t)engine->jobs.count);
	return &engine->jobs.items[engine->jobs.count++];
}

/* ---- events */

static enum sw_reason what_is_wrong(const struct sw_engine *engine, const struct sw_job_spec *spec)
{
	if (spec->gpus == 0 || spec->min_gpus == 0 || spec->min_gpus > spec->gpus || spec->max_gpus < spec->gpus || spec->work_ns < 0 ||
	    spec->stop_rule > SW_STOP_IF_FREE || (spec->stop_rule >= SW_STOP_NEVER && spec->job_class == SW_CLASS_OPPORTUNISTIC) ||
	    spec->compute_milli > SW_COMPUTE_WHOLE || spec->use_milli > SW_COMPUTE_WHOLE || spec->tenant >= TENANTS_MAX)
		return SW_REASON_BAD_SPEC;
	if (!engine->config.terms.may_grow && spec->gpus > engine->topology->gpu_count)
		return SW_REASON_TOO_LARGE;
	return SW_REASON_NONE;
}

bool sw_engine_grow_tenants(struct sw_engine *engine, uint32_t tenant)
{
	while (engine->tenants.count <= tenant) {
		struct sw_tenant *slot = sw_vec_push(&engine->tenants);
		if (slot == NULL)
			return false;
		slot->quota = UINT32_MAX;
	}
	return true;
}

static bool is_possible(const struct sw_engine *engine, const struct sw_core_job *job)
{
	return engine->config.terms.may_grow || engine->order.lanes.items[job->lane].possible;
}

static int submit(struct sw_engine *engine, const struct sw_job_spec *spec)
{
	enum sw_reason reason = what_is_wrong(engine, spec);
	if (!sw_engine_grow_tenants(engine, reason == SW_REASON_BAD_SPEC ? 0 : spec->tenant))
		return SW_ENOMEM;
	struct sw_core_job *job = sw_engine_add(engine); /* reserved by the step */
	*job = (struct sw_core_job){
		.seen =
			{
				.id = {(uint32_t)(engine->jobs.count - 1)},
				.gpus = spec->gpus,
				.min_gpus = spec->min_gpus,
				.max_gpus = spec->max_gpus,
				.tenant = reason == SW_REASON_BAD_SPEC ? 0 : spec->tenant,
				.weight_milli = spec->weight_milli == 0 ? 1000 : spec->weight_milli,
				.compute_milli = spec->compute_milli == 0 ? SW_COMPUTE_WHOLE : spec->compute_milli,
				.gpu_memory_bytes = spec->gpu_memory_bytes,
				.gpu_floor_bytes = spec->gpu_floor_bytes,
				.host_memory_bytes = spec->host_memory_bytes,
				.cpus = spec->cpus,
				.model = spec->model,
				.skew_milli = spec->skew_milli,
				.use_milli = spec->use_milli,
				.job_class = spec->job_class,
				.asked_class = spec->job_class,
				.is_auto = spec->is_auto,
				.cannot_pause = spec->cannot_pause,
				.stop_rule = spec->stop_rule,
				.no_restart = spec->no_restart,
				.frees_gpus = engine->config.terms.keeps_state,
				.knowledge = spec->knowledge,
				.retries_left = spec->retries,
				.submit_at = engine->now,
				.deadline_at = spec->deadline_at,
				.first_start_at = SW_TIME_NEVER,
				.since = engine->now,
				.work_left_ns = spec->knowledge == SW_UNKNOWN ? SW_TIME_NEVER : spec->work_ns,
				.ends_at = SW_TIME_NEVER,
			},
		.asked_memory_bytes = spec->gpu_memory_bytes,
		.asked_compute_milli = spec->compute_milli == 0 ? SW_COMPUTE_WHOLE : spec->compute_milli,
		.parts = SW_NO_PART,
		.plan_slot = SW_NO_SLOT,
		.prefers_home = spec->prefers_home || spec->stop_rule == SW_STOP_SUSPEND || spec->stop_rule == SW_STOP_IF_FREE,
		.home = SW_NO_PART,
		.stands = SW_NO_PART,
		.avoid = UINT32_MAX,
	};
	if (reason == SW_REASON_NONE) {
		int r = sw_order_assign_lane(engine, job);
		if (r < 0)
			return r;
		if (!is_possible(engine, job))
			reason = SW_REASON_NO_SUCH_PLACE;
		if (reason != SW_REASON_NONE)
			sw_order_leave_lane(engine, job);
	}
	if (reason != SW_REASON_NONE) {
		job->seen.state = SW_JOB_REFUSED;
		sw_engine_command(
			engine,
			(struct sw_command){.kind = SW_CMD_REFUSE, .reason = (uint8_t)reason, .job = job->seen.id.v, .parts = SW_NO_PART});
		return 0;
	}
	sw_engine_count_rule(engine, &job->seen, true);
	if (engine->policy->submit != NULL)
		engine->policy->submit(&engine->view, &job->seen);
	if (spec->held) {
		job->seen.state = SW_JOB_HELD;
		return 0;
	}
	sw_bitmap_add(&engine->waiting, job->seen.id.v);
	sw_order_add(engine, job);
	return 0;
}

/* A change of policy or a new node (which may be larger than what the placement rule took for a node) can leave jobs without any place that suits, to wait for ever.
 * Those that have run, or that the policy is not to blame for, may then go anywhere; others are refused. */
static int recheck(struct sw_engine *engine, bool may_refuse)
{
	bool rescue = false;
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (job->seen.state > SW_JOB_RUNNING || is_possible(engine, job))
			continue;
		if (!may_refuse || job->seen.state != SW_JOB_WAITING || job->seen.first_start_at != SW_TIME_NEVER) {
			rescue = true;
			continue;
		}
		sw_engine_command(
			engine,
			(struct sw_command){.kind = SW_CMD_REFUSE, .reason = SW_REASON_NO_SUCH_PLACE, .job = id, .parts = SW_NO_PART});
		end_job(engine, job, SW_JOB_REFUSED);
	}
	if (!rescue || engine->fell_back)
		return 0;
	engine->fell_back = true;
	return sw_order_rebuild(engine);
}

/* The job that an answer is about, or NULL if it is late, repeated or made up. */
static struct sw_core_job *job_of_answer(struct sw_engine *engine, const struct sw_event *event)
{
	if (!sw_engine_knows(engine, event->job.v))
		return NULL;
	struct sw_core_job *job = &engine->jobs.items[event->job.v];
	return job->epoch == event->epoch ? job : NULL;
}

/* Whether its run can end by itself: it runs, or was stopped so lately that it may stand still only now. */
static bool may_end(const struct sw_core_job *job)
{
	return job->seen.state == SW_JOB_RUNNING || (job->home != SW_NO_PART && job->seen.state < SW_JOB_RUNNING);
}

void sw_engine_lose_home(struct sw_engine *engine, struct sw_core_job *job)
{
	bool waits = sw_job_is_waiting(&job->seen), stood = job->stands != SW_NO_PART;
	if (job->seen.no_restart) {
		tell_stop(engine, job, SW_REASON_NODE_LOST);
		end_job(engine, job, SW_JOB_FAILED);
		return;
	}
	if (waits)
		sw_order_remove(engine, job);
	sw_engine_forget_home(engine, job);
	job->keeps = SW_KEEPS_UNKNOWN;
	must_relane(engine, job);
	if (waits)
		sw_order_add(engine, job);
	if (stood)
		sw_engine_tell_freed(engine, job);
}

static void fail(struct sw_engine *engine, struct sw_core_job *job, const struct sw_event *event)
{
	if (event->verdict == SW_FAIL_FINAL || job->seen.no_restart ||
	    (event->verdict == SW_FAIL_BY_RETRIES && job->seen.retries_left == 0)) {
		end_job(engine, job, SW_JOB_FAILED);
		return;
	}
	if (event->verdict == SW_FAIL_BY_RETRIES)
		job->seen.retries_left--;
	if (job->seen.state == SW_JOB_RUNNING) {
		interrupt(engine, job);
	} else { /* between the stop and standing still, or while it stands */
		sw_engine_lose_home(engine, job);
	}
	job->seen.restarts++;
	if (job->seen.knowledge != SW_UNKNOWN && event->left_ns >= 0)
		job->seen.work_left_ns = event->left_ns;
	sw_order_refresh(engine, job);
}

static void cancel(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.state > SW_JOB_RUNNING)
		return;
	if (job->seen.state == SW_JOB_RUNNING)
		sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_KILL,
							      .reason = SW_REASON_CANCELLED,
							      .job = job->seen.id.v,
							      .epoch = job->epoch,
							      .gpus = job->seen.gpus_held,
							      .parts = SW_NO_PART});
	end_job(engine, job, SW_JOB_CANCELLED);
}

static void hold(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.state > SW_JOB_RUNNING || job->seen.state == SW_JOB_HELD)
		return;
	bool ran = job->seen.state == SW_JOB_RUNNING;
	if (ran) {
		tell_stop(engine, job, SW_REASON_HELD);
		uint32_t parts = job->parts;
		sw_ledger_give(&engine->ledger, parts, sw_share_of(&job->seen));
		sw_engine_set_waiting(engine, job, engine->config.terms.keeps_state);
		sw_engine_leave(engine, job, parts);
	}
	set_held(engine, job);
	must_relane(engine, job);
	if (ran && engine->policy->stopped != NULL)
		engine->policy->stopped(&engine->view, &job->seen);
	sw_alarm_drop(engine, job->seen.id.v);
}

/* A run is left alone. */
static void hold_next(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.state == SW_JOB_RUNNING)
		job->held_next = true;
	else
		hold(engine, job);
}

static void release(struct sw_engine *engine, struct sw_core_job *job)
{
	job->held_next = false;
	if (job->seen.state != SW_JOB_HELD)
		return;
	job->seen.state = job->can_resume ? SW_JOB_SUSPENDED : SW_JOB_WAITING;
	job->seen.since = engine->now;
	sw_bitmap_add(&engine->waiting, job->seen.id.v);
	sw_order_add(engine, job);
}

void sw_engine_lose(struct sw_engine *engine, struct sw_core_job *job)
{
	tell_stop(engine, job, SW_REASON_NODE_LOST);
	if (job->seen.no_restart) {
		end_job(engine, job, SW_JOB_FAILED);
		return;
	}
	interrupt(engine, job);
	job->seen.restarts++;
}

/* It cannot have the GPUs that it was given. A run that came back to them stands there again; one that was new has not begun. */
static void step_back(struct sw_engine *engine, struct sw_core_job *job)
{
	uint32_t parts = job->parts;
	tell_stop(engine, job, SW_REASON_BOUNCED);
	if (!sw_engine_would_stand(engine, job) || job->split_milli != 0) {
		interrupt(engine, job);
		return;
	}
	sw_ledger_give(&engine->ledger, parts, sw_share_of(&job->seen));
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_engine_set_waiting(engine, job, false);
	sw_engine_leave(engine, job, parts);
	must_relane(engine, job);
	if (engine->policy->stopped != NULL)
		engine->policy->stopped(&engine->view, &job->seen);
	sw_order_add(engine, job);
	sw_engine_hold_if_due(engine, job);
}

/* Of the residents of a GPU, the one that came last, and not before `since`; NULL: there is none. */
static struct sw_core_job *find_newcomer(struct sw_engine *engine, const struct sw_gpu *gpu, sw_ns since)
{
	struct sw_core_job *last = NULL;
	for (uint32_t r = 0; r < gpu->residents; r++) {
		struct sw_core_job *job = &engine->jobs.items[gpu->who[r]];
		if (job->seen.since >= since && (last == NULL || job->seen.since >= last->seen.since))
			last = job;
	}
	return last;
}

/* Jobs that came to the GPUs of one that stands on this node since it does, and do not fit beside it, wait again. */
static void bounce_newcomers(struct sw_engine *engine, const struct sw_core_job *job, uint32_t node)
{
	const struct sw_ledger *ledger = &engine->ledger;
	for (uint32_t p = job->stands; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].node == node ? ledger->parts[p].mask : 0; rest != 0; rest &= rest - 1) {
			uint32_t g = ledger->nodes[node].first_gpu + (uint32_t)__builtin_ctzll(rest);
			const struct sw_gpu *gpu = &ledger->gpus[g];
			struct sw_core_job *other;
			while (sw_ledger_gpu_is_overdrawn(ledger, g) && (other = find_newcomer(engine, gpu, job->stood_at)) != NULL)
				step_back(engine, other);
		}
	}
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

/* Its GPU memory did not leave: it goes on at home, or waits for that; where it is held, it stands there with its memory. */
static void stay(struct sw_engine *engine, struct sw_core_job *job, uint32_t node)
{
	struct sw_ledger *ledger = &engine->ledger;
	if (job->stands == SW_NO_PART || job->seen.state >= SW_JOB_RUNNING)
		return;
	sw_engine_set_frees(engine, job, false);
	bounce_newcomers(engine, job, node);
	/* Its owner allows a stop only where others get the GPUs by it. */
	if (job->seen.stop_rule == SW_STOP_IF_FREE)
		job->keeps = SW_KEEPS_NOT;
	if (job->seen.state == SW_JOB_HELD)
		return;
	uint32_t gpus = sw_ledger_count_gpus(ledger, job->home), parts = job->home;
	sw_engine_rise(engine, job);
	if (!sw_plan_home_is_free(engine, job) || !sw_engine_quota_allows(engine, &job->seen, gpus)) {
		sw_engine_stand(engine, job, parts);
		return;
	}
	sw_order_remove(engine, job);
	sw_alarm_drop(engine, job->seen.id.v);
	bool resumes = job->seen.state == SW_JOB_SUSPENDED;
	sw_ledger_take(ledger, parts, sw_share_of(&job->seen));
	sw_engine_set_running(engine, job, gpus, parts);
	sw_engine_forget_home(engine, job);
	must_relane(engine, job);
	job->epoch++;
	engine->went_on = true;
	sw_engine_command(
		engine,
		(struct sw_command){
			.kind = SW_CMD_START, .resume = resumes, .job = job->seen.id.v, .epoch = job->epoch, .gpus = gpus, .parts = parts});
	if (engine->policy->started != NULL)
		engine->policy->started(&engine->view, &job->seen);
	sw_order_add(engine, job);
}

static void note_keeps(struct sw_engine *engine, struct sw_core_job *job, bool keeps, bool frees)
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
		sw_engine_tell_freed(engine, job);
}

static int node_down(struct sw_engine *engine, uint32_t node)
{
	if (node >= engine->topology->node_count || !engine->ledger.nodes[node].up)
		return 0;
	for (uint32_t id = sw_bitmap_next(&engine->running, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(&engine->running, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (sw_ledger_touches(&engine->ledger, job->parts, node))
			sw_engine_lose(engine, job);
	}
	/* What stood still there is gone too. */
	for (uint32_t id = sw_engine_next(engine, 0); engine->ledger.nodes[node].homes != 0 && id != SW_BITMAP_NONE;
	     id = sw_engine_next(engine, id + 1))
		if (sw_ledger_touches(&engine->ledger, engine->jobs.items[id].home, node))
			sw_engine_lose_home(engine, &engine->jobs.items[id]);
	sw_ledger_set_up(&engine->ledger, node, false);
	return sw_change_recheck(engine);
}

static void progress(struct sw_engine *engine, struct sw_core_job *job, const struct sw_event *event)
{
	if (job->seen.state > SW_JOB_RUNNING || job->seen.knowledge == SW_UNKNOWN || event->left_ns < 0)
		return;
	job->seen.work_left_ns = event->left_ns;
	/* Within its present state, whatever the event says. */
	job->seen.work_left_as_of = event->as_of < job->seen.since ? job->seen.since
				    : event->as_of < engine->now   ? event->as_of
								   : engine->now;
	if (job->seen.state == SW_JOB_RUNNING)
		job->seen.ends_at = job->seen.paused ? SW_TIME_NEVER : event->ends_at < engine->now ? engine->now : event->ends_at;
	sw_order_refresh(engine, job);
}

/* Room for one more node of this shape. */
/* `jobs` is how many will be known then. */
static int reserve_node(struct sw_engine *engine, const struct sw_topology_node *shape, size_t jobs)
{
	int r = sw_topology_reserve(engine->topology, shape);
	if (r == 0)
		r = sw_ledger_reserve_node(&engine->ledger, shape);
	if (r == 0)
		r = sw_ledger_reserve_node(&engine->empty, shape);
	if (r == 0)
		r = reserve_scratch(engine, engine->topology->gpu_count + shape->gpus, (uint32_t)jobs);
	if (r == 0)
		r = sw_engine_reserve_node_states(engine, engine->topology->node_count + 1);
	return r;
}

static int add_node(struct sw_engine *engine, const struct sw_topology_node *shape)
{
	/* Done before for the first node of a step; a second one needs more. */
	int r = reserve_node(engine, shape, engine->known.count);
	if (r < 0)
		return r;
	sw_topology_add(engine->topology, shape);
	sw_ledger_add_node(&engine->ledger);
	sw_ledger_add_node(&engine->empty);
	/* What is possible on the empty cluster has changed. */
	r = sw_order_rebuild(engine);
	return r < 0 ? r : recheck(engine, false);
}

/* As much as for one more node like that, whatever it gives up. */
static int reserve_change(struct sw_engine *engine, const struct sw_topology_change *change, size_t jobs)
{
	struct sw_topology_node shape = change->shape;
	shape.rack = engine->topology->rack_count - 1;
	return reserve_node(engine, &shape, jobs);
}

static int change_node(struct sw_engine *engine, uint32_t node, const struct sw_topology_change *change)
{
	if (node >= engine->topology->node_count)
		return 0;
	/* As with a node that is new. */
	int r = reserve_change(engine, change, engine->known.count);
	r = r < 0 ? r : sw_reshape_node(engine, node, change);
	r = r < 0 ? r : recheck(engine, false);
	return r < 0 ? r : sw_change_recheck(engine);
}

static int set_quota(struct sw_engine *engine, uint32_t tenant, uint32_t gpus)
{
	if (tenant >= TENANTS_MAX)
		return 0;
	if (!sw_engine_grow_tenants(engine, tenant))
		return SW_ENOMEM;
	engine->tenants.items[tenant].quota = gpus;
	if (engine->quotas)
		return 0;
	engine->quotas = true;
	return sw_order_rebuild(engine);
}

static void hash_event(struct sw_engine *engine, const struct sw_event *event)
{
	uint64_t hash = sw_hash_u64(engine->log_hash, (uint64_t)event->kind << 56 | (uint64_t)event->epoch << 24 | event->gpus);
	hash = sw_hash_u64(hash, (uint64_t)event->job.v << 32 ^ (uint64_t)event->left_ns ^ (uint64_t)event->ends_at << 1);
	if (event->kind == SW_EV_SUBMIT)
		hash = sw_hash_u64(hash, (uint64_t)event->spec->gpus << 40 ^ (uint64_t)event->spec->work_ns);
	if (event->frees)
		hash = sw_hash_u64(hash, 1);
	if (event->kind == SW_EV_CHANGE || event->verdict != SW_FAIL_BY_RETRIES)
		hash = sw_hash_u64(hash, event->gpu_memory_bytes ^ (uint64_t)event->avoid << 32 ^ event->verdict);
	if (event->kind == SW_EV_MOVE || event->kind == SW_EV_GPUS_SHUT)
		hash = sw_hash_u64(hash, event->mask);
	if (event->kind == SW_EV_NODE_CHANGE)
		hash = sw_hash_bytes(sw_hash_u64(hash, event->change->shape.gpus), event->change->to, sizeof event->change->to);
	engine->log_hash = hash;
}

static int apply(struct sw_engine *engine, const struct sw_event *event)
{
	struct sw_core_job *job;
	hash_event(engine, event);
	switch (event->kind) {
	case SW_EV_SUBMIT:
		return submit(engine, event->spec);
	case SW_EV_FINISH:
		job = job_of_answer(engine, event);
		if (job != NULL && may_end(job))
			end_job(engine, job, SW_JOB_FINISHED);
		return 0;
	case SW_EV_FAIL:
		job = job_of_answer(engine, event);
		if (job != NULL && may_end(job))
			fail(engine, job, event);
		return 0;
	case SW_EV_CANCEL:
		if (sw_engine_knows(engine, event->job.v))
			cancel(engine, &engine->jobs.items[event->job.v]);
		return 0;
	case SW_EV_HOLD:
	case SW_EV_RELEASE:
		if (sw_engine_knows(engine, event->job.v))
			(event->kind == SW_EV_HOLD ? hold : release)(engine, &engine->jobs.items[event->job.v]);
		return 0;
	case SW_EV_NODE_DOWN:
		return node_down(engine, event->node.v);
	case SW_EV_NODE_ADD:
		return add_node(engine, event->shape);
	case SW_EV_NODE_UP:
		if (event->node.v < engine->topology->node_count)
			sw_ledger_set_up(&engine->ledger, event->node.v, true);
		return 0;
	case SW_EV_PROGRESS:
		job = job_of_answer(engine, event);
		if (job != NULL)
			progress(engine, job, event);
		return 0;
	case SW_EV_QUOTA:
		return set_quota(engine, event->tenant, event->gpus);
	case SW_EV_NODE_CLOSE:
	case SW_EV_NODE_OPEN:
		if (event->node.v < engine->topology->node_count)
			sw_ledger_set_closed(&engine->ledger, event->node.v, event->kind == SW_EV_NODE_CLOSE);
		return event->kind == SW_EV_NODE_CLOSE ? sw_change_recheck(engine) : 0;
	case SW_EV_HOLD_NEXT:
		if (sw_engine_knows(engine, event->job.v))
			hold_next(engine, &engine->jobs.items[event->job.v]);
		return 0;
	case SW_EV_KEEPS:
		job = job_of_answer(engine, event);
		if (job != NULL)
			note_keeps(engine, job, event->gpus != 0, event->frees);
		return 0;
	case SW_EV_STAY:
		job = job_of_answer(engine, event);
		if (job != NULL)
			stay(engine, job, event->where);
		return 0;
	case SW_EV_CHANGE:
		if (!sw_engine_knows(engine, event->job.v) || engine->jobs.items[event->job.v].seen.state >= SW_JOB_RUNNING ||
		    engine->jobs.items[event->job.v].home != SW_NO_PART)
			return 0;
		return sw_change_job(engine, &engine->jobs.items[event->job.v], event->gpu_memory_bytes, event->avoid);
	case SW_EV_SPEED:
		job = job_of_answer(engine, event);
		if (job != NULL) {
			job->speed_milli = event->speed_milli;
			job->speed_epoch = event->epoch;
		}
		return 0;
	case SW_EV_MOVE:
		job = job_of_answer(engine, event);
		if (job != NULL)
			sw_change_place(engine, job, event->mask);
		return 0;
	case SW_EV_NODE_CHANGE:
		return change_node(engine, event->node.v, event->change);
	case SW_EV_GPUS_SHUT:
		if (event->node.v < engine->topology->node_count)
			sw_ledger_set_shut(&engine->ledger, event->node.v, event->mask);
		return sw_change_recheck(engine);
	}
	return SW_EINPUT;
}

/* ---- life */

struct sw_engine_room sw_engine_room(const struct sw_engine *engine)
{
	return (struct sw_engine_room){
		.nodes = SW_CLUSTER_NODES_MAX - engine->topology->node_count,
		.gpus = SW_CLUSTER_GPUS_MAX - engine->topology->gpu_count,
		.jobs = engine->jobs.count < NUMBERS_MAX ? NUMBERS_MAX - (uint32_t)engine->jobs.count : 0,
	};
}

/* Whether every event makes sense, before any of them happens; *ret_submits and *ret_tenants say what room they need. */
static int check_events(const struct sw_engine *engine, const struct sw_event *events, size_t count, size_t *ret_submits,
			uint32_t *ret_tenants, struct sw_err *err)
{
	uint32_t racks = engine->topology->rack_count, nodes = engine->topology->node_count;
	uint64_t gpus = engine->topology->gpu_count;
	for (size_t e = 0; e < count; e++) {
		const struct sw_event *event = &events[e];
		uint32_t tenant = 0;
		if (event->kind < SW_EV_SUBMIT || event->kind > SW_EV_STAY)
			return sw_err_set(err, SW_EINPUT, "event %zu of %zu is of an unknown kind, %d", e + 1, count, (int)event->kind);
		if (event->kind == SW_EV_SUBMIT) {
			(*ret_submits)++;
			tenant = event->spec->tenant;
		} else if (event->kind == SW_EV_QUOTA) {
			tenant = event->tenant;
		} else if (event->kind == SW_EV_NODE_ADD) {
			gpus += event->shape->gpus;
			if (event->shape->rack > racks || event->shape->rack + 1 < racks || event->shape->gpus > SW_NODE_GPUS_MAX ||
			    gpus > SW_CLUSTER_GPUS_MAX || ++nodes > SW_CLUSTER_NODES_MAX)
				return sw_err_set(err, SW_EINPUT, "event %zu of %zu adds a node that cannot be: rack %u, %u GPUs", e + 1,
						  count, event->shape->rack, event->shape->gpus);
			racks = event->shape->rack == racks ? racks + 1 : racks;
		} else if (event->kind == SW_EV_NODE_CHANGE) {
			gpus += event->change->shape.gpus;
			if (event->change->shape.gpus > SW_NODE_GPUS_MAX || gpus > SW_CLUSTER_GPUS_MAX ||
			    !sw_reshape_is_sound(event->change))
				return sw_err_set(err, SW_EINPUT, "event %zu of %zu makes of a node what cannot be: %u GPUs", e + 1, count,
						  event->change->shape.gpus);
		}
		if (tenant < TENANTS_MAX && tenant >= *ret_tenants)
			*ret_tenants = tenant + 1;
	}
	return 0;
}

int sw_engine_hear(struct sw_engine *engine, sw_ns at, const struct sw_event *events, size_t count, struct sw_step *ret_step,
		   struct sw_err *err)
{
	size_t submits = 0;
	uint32_t tenants = 1;
	int r = check_events(engine, events, count, &submits, &tenants, err);
	if (r < 0)
		return r;
	r = sw_engine_reserve(engine, submits);
	/* Each job that can only go on where it was has a lane of its own. */
	size_t lanes = engine->order.lanes.count + engine->ruled + 2 * submits;
	size_t changes = 0;
	for (size_t e = 0; r == 0 && e < count; e++) {
		changes += events[e].kind == SW_EV_CHANGE;
		if (events[e].kind == SW_EV_NODE_ADD)
			r = reserve_node(engine, events[e].shape, engine->known.count + submits);
		if (events[e].kind == SW_EV_NODE_CHANGE && events[e].node.v < engine->topology->node_count)
			r = reserve_change(engine, events[e].change, engine->known.count + submits);
		/* These sort all jobs into lanes anew, and there may be as many of those as of jobs. */
		if (events[e].kind == SW_EV_NODE_ADD || events[e].kind == SW_EV_NODE_CHANGE || events[e].kind == SW_EV_QUOTA ||
		    (engine->avoiders > 0 &&
		     (events[e].kind == SW_EV_NODE_DOWN || events[e].kind == SW_EV_NODE_CLOSE || events[e].kind == SW_EV_GPUS_SHUT)))
			lanes = 2 * (engine->known.count + submits);
	}
	if (r == 0 && (!sw_engine_grow_tenants(engine, tenants - 1) || sw_vec_reserve(&engine->order.lanes, lanes + 2 * changes) < 0))
		r = SW_ENOMEM;
	if (r < 0)
		return sw_err_set(err, r, "out of memory for %zu more jobs", submits);
	engine->commands.count = 0;
	engine->went_on = false;
	if (at > engine->now)
		engine->now = at;
	engine->log_hash = sw_hash_u64(engine->log_hash, (uint64_t)engine->now);
	if (engine->recheck && recheck(engine, true) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	engine->recheck = false;
	for (size_t e = 0; e < count; e++) {
		r = apply(engine, &events[e]);
		if (r < 0)
			return sw_err_set(err, r, "cannot apply event %zu of %zu", e + 1, count);
	}
	sw_alarms_ring(engine);
	*ret_step = (struct sw_step){engine->commands.items, engine->commands.count, 0};
	return 0;
}

int sw_engine_step(struct sw_engine *engine, sw_ns at, const struct sw_event *events, size_t count, struct sw_step *ret_step,
		   struct sw_err *err)
{
	struct sw_step heard;
	int r = sw_engine_hear(engine, at, events, count, &heard, err);
	if (r < 0)
		return r;
	sw_ns wake_at = sw_charge_decide(engine, count);
	*ret_step = (struct sw_step){engine->commands.items, engine->commands.count, wake_at};
	return 0;
}

int sw_engine_make(const struct sw_engine_config *config, const struct sw_topology *topology, struct sw_engine **ret_engine,
		   struct sw_err *err)
{
	if (config->policy->abi != SW_POLICY_ABI || config->placement->abi != SW_POLICY_ABI)
		return sw_err_set(err, SW_EINPUT, "policy '%s' or placement '%s' was built for another version of the SDK",
				  config->policy->name, config->placement->name);
	if (config->policy->decide == NULL && config->policy->order == NULL)
		return sw_err_set(err, SW_EINPUT, "policy '%s' has neither an order nor a decide function", config->policy->name);
	SW_CLEANUP(sw_engine_freep) struct sw_engine *engine = calloc(1, sizeof *engine);
	if (engine == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	engine->config = *config;
	engine->view = (struct sw_view){engine, &engine->ledger};
	engine->empty_view = (struct sw_view){engine, &engine->empty};
	engine->plan.engine = engine;
	engine->log_hash = engine->command_hash = SW_HASH_START;
	engine->policy = config->policy;
	engine->order.seq = 1;
	sw_rng_seed(&engine->rng, config->seed);
	if (sw_topology_copy(topology, &engine->topology) < 0 || sw_ledger_init(&engine->ledger, engine->topology) < 0 ||
	    sw_ledger_init(&engine->empty, engine->topology) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for a cluster of %u GPUs", topology->gpu_count);
	int r = sw_engine_reserve(engine, 1);
	if (r < 0)
		return sw_err_set(err, r, "out of memory");
	*ret_engine = SW_TAKE(engine);
	return 0;
}

int sw_engine_new(const struct sw_engine_config *config, struct sw_engine **ret_engine, struct sw_err *err)
{
	SW_CLEANUP(sw_engine_freep) struct sw_engine *engine = NULL;
	int r = sw_engine_make(config, config->topology, &engine, err);
	if (r == 0)
		r = sw_charge_install(engine, config->policy, config->params, err);
	if (r < 0)
		return r;
	*ret_engine = SW_TAKE(engine);
	return 0;
}

void sw_engine_free(struct sw_engine *engine)
{
	if (engine == NULL)
		return;
	if (engine->presets != NULL)
		sw_params_free(engine->presets);
	sw_ledger_release(&engine->ledger);
	sw_ledger_release(&engine->empty);
	sw_table_free(&engine->jobs);
	sw_bitmap_release(&engine->known);
	sw_bitmap_release(&engine->waiting);
	sw_bitmap_release(&engine->running);
	sw_heap_release(&engine->alarms);
	sw_heap_release(&engine->latest);
	sw_vec_free(&engine->tenants);
	sw_order_release(&engine->order);
	sw_vec_free(&engine->plan.entries);
	sw_vec_free(&engine->plan.lifted);
	sw_vec_free(&engine->commands);
	sw_vec_free(&engine->ringing);
	sw_topology_free(engine->topology);
	free(engine->policy_state);
	if (engine->job_states_each > 0)
		sw_table_release(&engine->job_states, &engine->job_states_room, engine->job_states_each);
	free(engine->node_states);
	free(engine);
}

/* ---- looking */

const struct sw_view *sw_engine_view(const struct sw_engine *engine)
{
	return &engine->view;
}

const struct sw_ledger *sw_engine_ledger(const struct sw_engine *engine)
{
	return &engine->ledger;
}

const struct sw_job *sw_engine_job(const struct sw_engine *engine, struct sw_job_id id)
{
	return sw_view_job(&engine->view, id);
}

uint32_t sw_engine_job_count(const struct sw_engine *engine)
{
	return (uint32_t)engine->jobs.count;
}

uint32_t sw_engine_next_job(const struct sw_engine *engine, uint32_t from)
{
	return sw_engine_next(engine, from);
}

uint32_t sw_engine_known_count(const struct sw_engine *engine)
{
	return engine->known.count;
}

uint32_t sw_engine_epoch(const struct sw_engine *engine, struct sw_job_id id)
{
	return engine->jobs.items[id.v].epoch;
}

uint32_t sw_engine_parts(const struct sw_engine *engine, struct sw_job_id id)
{
	return engine->jobs.items[id.v].parts;
}

uint32_t sw_engine_stands(const struct sw_engine *engine, struct sw_job_id id)
{
	return engine->jobs.items[id.v].stands;
}

uint64_t sw_engine_log_hash(const struct sw_engine *engine)
{
	return engine->log_hash;
}

uint64_t sw_engine_command_hash(const struct sw_engine *engine)
{
	return engine->command_hash;
}

const char *sw_engine_policy(const struct sw_engine *engine)
{
	return engine->policy->name;
}

const char *sw_engine_notes(const struct sw_engine *engine)
{
	return engine->notes;
}

/* Those that take jobs, of nodes that are up and do so too. */
static uint32_t open_gpus(const struct sw_engine *engine)
{
	const struct sw_ledger *ledger = &engine->ledger;
	uint32_t gpus = ledger->gpus_up;
	for (uint32_t n = 0; ledger->nodes_closed + ledger->gpus_shut > 0 && n < engine->topology->node_count; n++)
		if (ledger->nodes[n].up)
			gpus -= ledger->nodes[n].closed ? engine->topology->nodes[n].gpus
							: (uint32_t)__builtin_popcountll(ledger->nodes[n].shut);
	return gpus;
}

/* A quota is not all there is to say: a policy may start jobs beyond it. */
static void explain_quota(struct sw_engine *engine, const struct sw_job *job, char *text, size_t size)
{
	int used = snprintf(text, size, "its tenant holds %u of a quota of %u GPU%s and the job needs %u more",
			    sw_view_tenant_held(&engine->view, job->tenant), SW_COUNTED(sw_view_tenant_quota(&engine->view, job->tenant)),
			    job->gpus);
	if (engine->policy->explain == NULL || used < 0 || (size_t)used + 3 > size)
		return;
	memcpy(text + used, "; ", 3);
	engine->policy->explain(&engine->view, job, text + used + 2, size - (size_t)used - 2);
}

void sw_engine_explain(struct sw_engine *engine, struct sw_job_id id, char *text, size_t size)
{
	const struct sw_job *job = sw_engine_job(engine, id);
	if (size == 0)
		return;
	if (job == NULL)
		snprintf(text, size, "there is no job %u", id.v);
	else if (job->state == SW_JOB_HELD)
		snprintf(text, size, "it is held");
	else if (!sw_job_is_waiting(job))
		snprintf(text, size, "it does not wait");
	else if (!sw_engine_quota_allows(engine, job, job->gpus))
		explain_quota(engine, job, text, size);
	else if (job->gpus > engine->ledger.gpus_up)
		snprintf(text, size, "it needs %u GPU%s and only %u %s up", SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_up));
	else if (job->gpus > open_gpus(engine))
		snprintf(text, size, "it needs %u GPU%s and only %u %s open to jobs", SW_COUNTED(job->gpus),
			 SW_COUNTED_ARE(open_gpus(engine)));
	else if (engine->policy->explain != NULL)
		engine->policy->explain(&engine->view, job, text, size);
	else if (job->gpus > engine->ledger.gpus_free)
		snprintf(text, size, "it needs %u GPU%s and %u %s free", SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_free));
	else
		snprintf(text, size, "it needs %u GPU%s; %u %s free, but not where placement '%s' wants them, or others are ahead",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_free), engine->config.placement->name);
}
