/* What each event does to the jobs, the nodes and the tenants. Memory for it
 * was reserved by the step. */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

/* ---- jobs that come */

static enum sw_reason what_is_wrong(const struct sw_engine *engine, const struct sw_job_spec *spec)
{
	if (spec->gpus == 0 || spec->min_gpus == 0 || spec->min_gpus > spec->gpus || spec->max_gpus < spec->gpus || spec->work_ns < 0 ||
	    spec->stop_rule > SW_STOP_IF_FREE || (spec->stop_rule >= SW_STOP_NEVER && spec->job_class == SW_CLASS_OPPORTUNISTIC) ||
	    spec->compute_milli > SW_COMPUTE_WHOLE || spec->use_milli > SW_COMPUTE_WHOLE || spec->tenant >= SW_ENGINE_TENANTS_MAX)
		return SW_REASON_BAD_SPEC;
	if (!engine->config.terms.may_grow && spec->gpus > engine->topology->gpu_count)
		return SW_REASON_TOO_LARGE;
	return SW_REASON_NONE;
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
				.until = SW_TIME_NEVER,
			},
		.clock = {.work_left_ns = spec->knowledge == SW_UNKNOWN ? SW_TIME_NEVER : spec->work_ns, .ends_at = SW_TIME_NEVER},
		.asked_memory_bytes = spec->gpu_memory_bytes,
		.asked_compute_milli = spec->compute_milli == 0 ? SW_COMPUTE_WHOLE : spec->compute_milli,
		.asked_cpus = spec->cpus,
		.asked_host_bytes = spec->host_memory_bytes,
		.asked_work_ns = spec->knowledge == SW_UNKNOWN ? SW_TIME_NEVER : spec->work_ns,
		.parts = SW_NO_PART,
		.plan_slot = SW_NO_SLOT,
		.prefers_home = spec->prefers_home || spec->stop_rule == SW_STOP_SUSPEND || spec->stop_rule == SW_STOP_IF_FREE,
		.home = SW_NO_PART,
		.stands = SW_NO_PART,
		.avoid = UINT32_MAX,
	};
	const struct sw_admission *admission = NULL;
	if (reason == SW_REASON_NONE)
		admission = sw_tell_admit(engine, job);
	if (admission != NULL && admission->verdict == SW_REFUSE)
		reason = SW_REASON_NOT_ADMITTED;
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
		sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_REFUSE,
							      .reason = (uint8_t)reason,
							      .job = job->seen.id.v,
							      .parts = SW_NO_PART,
							      .text = reason == SW_REASON_NOT_ADMITTED ? admission->reason : NULL});
		sw_lists_drop(engine, job);
		sw_alarm_drop(engine, job->seen.id.v);
		if (engine->policy->job_state_size > 0)
			memset(sw_job_state(&engine->view, &job->seen), 0, engine->policy->job_state_size);
		return 0;
	}
	if (admission != NULL)
		sw_engine_command(
			engine,
			(struct sw_command){.kind = SW_CMD_ADMIT, .job = job->seen.id.v, .parts = SW_NO_PART, .text = admission->reason});
	sw_engine_count_rule(engine, &job->seen, true);
	sw_tell_submit(engine, job);
	if (spec->held) {
		job->seen.state = SW_JOB_HELD;
		return 0;
	}
	sw_bitmap_add(&engine->waiting, job->seen.id.v);
	sw_order_add(engine, job);
	return 0;
}

/* A change of policy or a new node can leave jobs without any place that suits, to wait for ever. A
 * new node may be larger than what the placement rule took for a node. Those that have run, or that
 * the policy is not to blame for, may then go anywhere; others are refused. */
int sw_engine_recheck(struct sw_engine *engine, bool may_refuse)
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
		sw_engine_end_job(engine, job, SW_JOB_REFUSED);
	}
	if (!rescue || engine->fell_back)
		return 0;
	engine->fell_back = true;
	return sw_order_rebuild(engine);
}

/* ---- answers about runs */

/* The job that an answer is about, or NULL if it is late, repeated or made up. */
static struct sw_core_job *job_of_answer(struct sw_engine *engine, const struct sw_event *event)
{
	if (!sw_engine_knows(engine, event->job.v))
		return NULL;
	struct sw_core_job *job = &engine->jobs.items[event->job.v];
	return job->epoch == event->epoch ? job : NULL;
}

/* Whether its run can end by itself: it runs, or was stopped so lately that it
 * may stand still only now. */
static bool may_end(const struct sw_core_job *job)
{
	return job->seen.state == SW_JOB_RUNNING || (job->home != SW_NO_PART && job->seen.state < SW_JOB_RUNNING);
}

static void fail(struct sw_engine *engine, struct sw_core_job *job, const struct sw_event *event)
{
	if (event->verdict == SW_FAIL_FINAL || job->seen.no_restart ||
	    (event->verdict == SW_FAIL_BY_RETRIES && job->seen.retries_left == 0)) {
		sw_engine_end_job(engine, job, SW_JOB_FAILED);
		return;
	}
	if (event->verdict == SW_FAIL_BY_RETRIES)
		job->seen.retries_left--;
	if (job->seen.state == SW_JOB_RUNNING) {
		sw_engine_interrupt(engine, job);
	} else { /* between the stop and standing still, or while it stands */
		sw_engine_empty_home(engine, job);
	}
	job->seen.restarts++;
	if (job->seen.knowledge != SW_UNKNOWN && event->left_ns >= 0)
		job->clock.work_left_ns = event->left_ns;
	sw_order_refresh(engine, job);
}

static void progress(struct sw_engine *engine, struct sw_core_job *job, const struct sw_event *event)
{
	if (job->seen.state > SW_JOB_RUNNING || job->seen.knowledge == SW_UNKNOWN || event->left_ns < 0)
		return;
	sw_tell_change(engine, SW_CHANGE_SPEEDS);
	job->clock.work_left_ns = event->left_ns;
	/* Within its present state, whatever the event says. */
	job->clock.work_left_as_of = event->as_of < job->seen.since ? job->seen.since
				     : event->as_of < engine->now   ? event->as_of
								    : engine->now;
	if (job->seen.state == SW_JOB_RUNNING)
		job->clock.ends_at = job->seen.paused ? SW_TIME_NEVER : event->ends_at < engine->now ? engine->now : event->ends_at;
	sw_order_refresh(engine, job);
}

/* ---- wishes of people */

static void cancel(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.state > SW_JOB_RUNNING)
		return;
	if (job->seen.state == SW_JOB_RUNNING || job->stands != SW_NO_PART)
		sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_KILL,
							      .reason = SW_REASON_CANCELLED,
							      .job = job->seen.id.v,
							      .epoch = job->epoch,
							      .gpus = job->seen.gpus_held,
							      .parts = SW_NO_PART});
	sw_engine_end_job(engine, job, SW_JOB_CANCELLED);
}

static void hold(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.state > SW_JOB_RUNNING || job->seen.state == SW_JOB_HELD)
		return;
	bool ran = job->seen.state == SW_JOB_RUNNING, stands = sw_engine_would_stand(engine, job) && job->split_milli == 0;
	if (ran)
		sw_engine_tell_stop(engine, job, SW_REASON_HELD);
	/* Its run is over, and no other may begin. */
	if (ran && job->seen.no_restart && !stands && !engine->config.terms.keeps_state) {
		sw_engine_end_job(engine, job, SW_JOB_FAILED);
		return;
	}
	if (ran) {
		uint32_t parts = job->parts;
		sw_ledger_give(&engine->ledger, parts, sw_share_of(&job->seen));
		sw_engine_set_waiting(engine, job, engine->config.terms.keeps_state);
		sw_engine_leave(engine, job, parts);
	}
	sw_engine_set_held(engine, job);
	sw_engine_relane(engine, job);
	if (ran)
		sw_tell_stopped(engine, job);
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
	sw_tell_change(engine, SW_CHANGE_ARRIVALS);
	job->seen.state = job->can_resume ? SW_JOB_SUSPENDED : SW_JOB_WAITING;
	job->seen.since = engine->now;
	sw_bitmap_add(&engine->waiting, job->seen.id.v);
	sw_order_add(engine, job);
}

static void requeue(struct sw_engine *engine, struct sw_core_job *job)
{
	bool kept = job->can_resume && job->stands == SW_NO_PART && !job->seen.no_restart;
	/* It counts as a restart where the run stands, or could have been suspended. */
	uint32_t restarts = job->seen.restarts + (job->home != SW_NO_PART || sw_engine_would_stand(engine, job));
	if (job->seen.state == SW_JOB_RUNNING) {
		sw_engine_lose(engine, job, SW_REASON_REQUEUED);
		job->seen.restarts = restarts;
		return;
	}
	if (job->seen.state > SW_JOB_RUNNING || (job->home == SW_NO_PART && !job->can_resume))
		return;
	if (kept) /* its driver has its state, and would bring it back */
		sw_engine_tell_stop(engine, job, SW_REASON_REQUEUED);
	sw_engine_lose_home(engine, job, SW_REASON_REQUEUED);
	if (job->seen.state > SW_JOB_RUNNING)
		return;
	job->can_resume = false;
	if (job->seen.state == SW_JOB_SUSPENDED)
		job->seen.state = SW_JOB_WAITING;
	job->seen.restarts = restarts;
}

/* ---- nodes and quotas */

static int node_down(struct sw_engine *engine, uint32_t node)
{
	if (node >= engine->topology->node_count)
		return 0;
	sw_power_is_down(engine, node);
	if (!engine->ledger.nodes[node].up)
		return 0;
	sw_holds_lose_at(engine, node, UINT64_MAX, NULL);
	for (uint32_t id = sw_bitmap_next(&engine->running, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(&engine->running, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (sw_ledger_touches(&engine->ledger, job->parts, node))
			sw_engine_lose(engine, job, SW_REASON_NODE_LOST);
	}
	/* What stood still there is gone too. */
	for (uint32_t id = sw_engine_next(engine, 0); engine->ledger.nodes[node].homes != 0 && id != SW_BITMAP_NONE;
	     id = sw_engine_next(engine, id + 1))
		if (sw_ledger_touches(&engine->ledger, engine->jobs.items[id].home, node))
			sw_engine_lose_home(engine, &engine->jobs.items[id], SW_REASON_NODE_LOST);
	sw_ledger_set_up(&engine->ledger, node, false);
	return sw_change_recheck(engine);
}

static int add_node(struct sw_engine *engine, const struct sw_topology_node *shape)
{
	/* Done before for the first node of a step; a second one needs more. */
	int r = sw_engine_reserve_node(engine, shape, engine->known.count);
	if (r < 0)
		return r;
	sw_topology_add(engine->topology, shape);
	sw_ledger_add_node(&engine->ledger);
	sw_ledger_add_node(&engine->empty);
	sw_tell_change(engine, SW_CHANGE_CAPACITY);
	/* What is possible on the empty cluster has changed. */
	r = sw_order_rebuild(engine);
	return r < 0 ? r : sw_engine_recheck(engine, false);
}

static int change_node(struct sw_engine *engine, uint32_t node, const struct sw_topology_change *change)
{
	if (node >= engine->topology->node_count)
		return 0;
	/* As with a node that is new. */
	int r = sw_engine_reserve_change(engine, change, engine->known.count);
	if (r == 0)
		sw_holds_lose_at(engine, node, UINT64_MAX, NULL);
	r = r < 0 ? r : sw_reshape_node(engine, node, change);
	sw_tell_change(engine, SW_CHANGE_CAPACITY);
	r = r < 0 ? r : sw_engine_recheck(engine, false);
	return r < 0 ? r : sw_change_recheck(engine);
}

static int set_quota(struct sw_engine *engine, uint32_t tenant, uint32_t gpus)
{
	if (tenant >= SW_ENGINE_TENANTS_MAX)
		return 0;
	if (!sw_engine_grow_tenants(engine, tenant))
		return SW_ENOMEM;
	engine->tenants.items[tenant].quota = gpus;
	sw_tell_change(engine, SW_CHANGE_QUOTAS);
	if (engine->quotas)
		return 0;
	engine->quotas = true;
	return sw_order_rebuild(engine);
}

/* ---- all of them */

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
	if (event->kind == SW_EV_MOVE || event->kind == SW_EV_GPUS_SHUT || (event->kind == SW_EV_UNMOVED && event->mask != 0))
		hash = sw_hash_u64(hash, event->mask);
	if (event->kind == SW_EV_SAMPLE) {
		hash = sw_hash_u64(hash, (uint64_t)event->sample->progress_ppm << 32 | event->sample->speed_milli);
		hash = sw_hash_u64(sw_hash_u64(hash, (uint64_t)event->sample->loss_micro), (uint64_t)event->sample->noise_micro);
	}
	if (event->kind == SW_EV_ANSWER) {
		hash = sw_hash_u64(sw_hash_u64(hash, event->reply->number), event->reply->print);
		hash = sw_hash_u64(hash, (uint64_t)event->reply->status << 56 | event->reply->size);
		if (event->reply->bytes != NULL)
			hash = sw_hash_bytes(hash, event->reply->bytes, event->reply->size);
	}
	if (event->kind == SW_EV_NODE_CHANGE)
		hash = sw_hash_bytes(sw_hash_u64(hash, event->change->shape.gpus), event->change->to, sizeof event->change->to);
	engine->log_hash = hash;
}

/* A wish of people for a job, whatever its run does. */
static int apply_wish(struct sw_engine *engine, struct sw_core_job *job, const struct sw_event *event)
{
	switch (event->kind) {
	case SW_EV_CANCEL:
		cancel(engine, job);
		return 0;
	case SW_EV_HOLD:
		hold(engine, job);
		return 0;
	case SW_EV_HOLD_NEXT:
		hold_next(engine, job);
		return 0;
	case SW_EV_RELEASE:
		release(engine, job);
		return 0;
	case SW_EV_REQUEUE:
		requeue(engine, job);
		return 0;
	case SW_EV_CHANGE:
		if (job->seen.state >= SW_JOB_RUNNING || job->home != SW_NO_PART)
			return 0;
		sw_hold_lose(engine, job);
		return sw_change_job(engine, job, event->gpu_memory_bytes, event->avoid);
	default:
		assert(false); /* sw_engine_apply() knows them all */
		return SW_EBUG;
	}
}

/* An answer about the run that the job has, or had last. */
static void apply_to_run(struct sw_engine *engine, struct sw_core_job *job, const struct sw_event *event)
{
	bool runs = job->seen.state == SW_JOB_RUNNING;
	switch (event->kind) {
	case SW_EV_FINISH:
		if (may_end(job))
			sw_engine_end_job(engine, job, SW_JOB_FINISHED);
		return;
	case SW_EV_FAIL:
		if (may_end(job))
			fail(engine, job, event);
		return;
	case SW_EV_PROGRESS:
		progress(engine, job, event);
		return;
	case SW_EV_SPEED:
		sw_tell_change(engine, SW_CHANGE_SPEEDS);
		job->speed_milli = event->speed_milli;
		job->speed_epoch = event->epoch;
		return;
	case SW_EV_SAMPLE:
		if (runs)
			sw_tell_sampled(engine, job, event->sample);
		return;
	case SW_EV_KEEPS:
		sw_engine_note_keeps(engine, job, event->gpus != 0, event->frees);
		return;
	case SW_EV_STAY:
		sw_engine_stay(engine, job, event->where);
		return;
	case SW_EV_MOVE:
		sw_move_on_wish(engine, job, event->mask);
		return;
	case SW_EV_BEGUN:
		job->begun |= runs || job->stands != SW_NO_PART;
		return;
	case SW_EV_MOVED:
		sw_move_arrive(engine, job);
		return;
	case SW_EV_UNMOVED:
		sw_move_turn_back(engine, job, event->mask);
		return;
	case SW_EV_ANEW:
		if (runs)
			sw_move_begin_anew(engine, job);
		return;
	default:
		assert(false); /* sw_engine_apply() knows them all */
	}
}

static int apply_to_node(struct sw_engine *engine, uint32_t node, const struct sw_event *event)
{
	bool is_known = node < engine->topology->node_count;
	/* What takes jobs from now on may be of another kind than what is gone by the same step. */
	if (is_known && (event->kind == SW_EV_NODE_UP || event->kind == SW_EV_NODE_OPEN ||
			 (event->kind == SW_EV_GPUS_SHUT && (engine->ledger.nodes[node].shut & ~event->mask) != 0)))
		sw_tell_change(engine, SW_CHANGE_CAPACITY);
	switch (event->kind) {
	case SW_EV_NODE_DOWN:
		return node_down(engine, node);
	case SW_EV_NODE_UP:
		if (is_known) {
			sw_power_is_up(engine, node);
			sw_ledger_set_up(&engine->ledger, node, true);
		}
		return 0;
	case SW_EV_NODE_CLOSE:
	case SW_EV_NODE_OPEN:
		if (event->kind == SW_EV_NODE_CLOSE)
			sw_holds_lose_at(engine, node, UINT64_MAX, NULL);
		if (is_known)
			sw_ledger_set_closed(&engine->ledger, node, event->kind == SW_EV_NODE_CLOSE);
		return event->kind == SW_EV_NODE_CLOSE ? sw_change_recheck(engine) : 0;
	case SW_EV_NODE_CHANGE:
		return change_node(engine, node, event->change);
	case SW_EV_GPUS_SHUT:
		sw_holds_lose_at(engine, node, event->mask, NULL);
		if (is_known)
			sw_ledger_set_shut(&engine->ledger, node, event->mask);
		return sw_change_recheck(engine);
	default:
		assert(false); /* sw_engine_apply() knows them all */
		return SW_EBUG;
	}
}

int sw_engine_apply(struct sw_engine *engine, const struct sw_event *event)
{
	struct sw_core_job *job;
	hash_event(engine, event);
	switch (event->kind) {
	case SW_EV_SUBMIT:
		return submit(engine, event->spec);
	case SW_EV_QUOTA:
		return set_quota(engine, event->tenant, event->gpus);
	case SW_EV_ANSWER:
		sw_ask_hear(engine, event->reply);
		return 0;
	case SW_EV_NODE_ADD:
		return add_node(engine, event->shape);
	case SW_EV_NODE_DOWN:
	case SW_EV_NODE_UP:
	case SW_EV_NODE_CLOSE:
	case SW_EV_NODE_OPEN:
	case SW_EV_NODE_CHANGE:
	case SW_EV_GPUS_SHUT:
		return apply_to_node(engine, event->node.v, event);
	case SW_EV_CANCEL:
	case SW_EV_HOLD:
	case SW_EV_HOLD_NEXT:
	case SW_EV_RELEASE:
	case SW_EV_REQUEUE:
	case SW_EV_CHANGE:
		return sw_engine_knows(engine, event->job.v) ? apply_wish(engine, &engine->jobs.items[event->job.v], event) : 0;
	case SW_EV_FINISH:
	case SW_EV_FAIL:
	case SW_EV_PROGRESS:
	case SW_EV_SPEED:
	case SW_EV_SAMPLE:
	case SW_EV_KEEPS:
	case SW_EV_STAY:
	case SW_EV_MOVE:
	case SW_EV_BEGUN:
	case SW_EV_MOVED:
	case SW_EV_UNMOVED:
	case SW_EV_ANEW:
		job = job_of_answer(engine, event);
		if (job != NULL)
			apply_to_run(engine, job, event);
		return 0;
	}
	return SW_EINPUT;
}
