/* What can be seen of the state: jobs and nodes as people know them. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "brain/dependents.h"
#include "brain/look.h"
#include "brain/runs.h"
#include "brain/shut.h"
#include "brain/silence.h"
#include "brain/state.h"

struct state_name {
	const char *brief, *full;
};

/* Whether the agents have said of every part that it runs, or did. */
static bool has_started(const struct sw_live *live)
{
	for (uint32_t r = 0; r < live->run_count; r++)
		if (live->runs[r].heard < SW_HEARD_RUNNING)
			return false;
	return true;
}

/* The engine has let go of it for good, but a part of its run has not been heard to end. */
static bool is_completing(const struct sw_live *live, const struct sw_job *job)
{
	return job->state > SW_JOB_RUNNING && live->ghosts > 0;
}

static struct state_name state_of(const struct sw_brain *brain, const struct sw_live *live, const struct sw_job *job)
{
	if (is_completing(live, job))
		return (struct state_name){"CG", "COMPLETING"};
	if (job->state <= SW_JOB_RUNNING && sw_brain_out_of_reach(brain, job->id.v) != NULL)
		return (struct state_name){"UN", "UNREACHABLE"};
	switch (job->state) {
	case SW_JOB_WAITING:
		return sw_brain_is_suspended(brain, live) ? (struct state_name){"S", "SUSPENDED"} : (struct state_name){"PD", "PENDING"};
	case SW_JOB_SUSPENDED:
		return (struct state_name){"S", "SUSPENDED"};
	case SW_JOB_HELD:
		return sw_brain_is_suspended(brain, live) ? (struct state_name){"S", "SUSPENDED"} : (struct state_name){"PD", "PENDING"};
	case SW_JOB_RUNNING:
		return has_started(live) ? (struct state_name){"R", "RUNNING"} : (struct state_name){"CF", "CONFIGURING"};
	case SW_JOB_FINISHED:
		return (struct state_name){"CD", "COMPLETED"};
	case SW_JOB_CANCELLED:
		if (live->node_lost)
			return (struct state_name){"NF", "NODE_FAIL"};
		if (live->spoiled)
			return (struct state_name){"F", "FAILED"};
		return live->timed_out ? (struct state_name){"TO", "TIMEOUT"} : (struct state_name){"CA", "CANCELLED"};
	default:
		return (struct state_name){"F", "FAILED"};
	}
}

/* ---- failures, in words */

/* What was done about the last one. */
static void say_done(const struct sw_brain *brain, sw_ns now, uint32_t id, char *text, size_t size)
{
	const struct sw_live *live = &brain->jobs.items[id];
	const struct sw_trouble *trouble = live->trouble;
	char memory[64] = "", bytes[32], times[48] = "";
	if (trouble->memory_raised)
		snprintf(memory, sizeof memory, " with %s",
			 trouble->memory_bytes == 0 ? "whole GPUs" : sw_format_bytes(trouble->memory_bytes, bytes));
	const char *more = trouble->memory_raised && trouble->memory_bytes > 0 ? " on each GPU" : "";
	const char *where = trouble->elsewhere ? " on another node if there is one" : "";
	if (!trouble->again) {
		if (trouble->tried > 0)
			snprintf(times, sizeof times, " after %u of %u tries", trouble->tried, trouble->may);
		snprintf(text, size, "not tried again%s: %s", times, trouble->why);
	} else if (sw_heap_has(&brain->retries, id)) {
		sw_ns left = sw_heap_key(&brain->retries, id) - now;
		snprintf(text, size, "it is tried again in %lld s%s%s%s (%u of %u)",
			 (long long)(left > 0 ? (left + SW_NS_PER_S - 1) / SW_NS_PER_S : 0), where, memory, more, trouble->tried,
			 trouble->may);
	} else {
		snprintf(text, size, "it was tried again%s%s%s (%u of %u)", where, memory, more, trouble->tried, trouble->may);
	}
}

static void show_failure(const struct sw_brain *brain, sw_ns now, uint32_t id, struct sw_job_view *view)
{
	const struct sw_trouble *trouble = brain->jobs.items[id].trouble;
	view->failure = view->failure_layer = view->failure_line = view->failure_says = view->failure_hint = "";
	if (trouble == NULL || trouble->pending)
		return;
	const struct sw_failure_class *failure = sw_failure_find(brain->failures, trouble->cause.name);
	view->failure = trouble->cause.name;
	view->failure_layer = sw_failure_layer_name(trouble->cause.layer);
	view->failure_line = trouble->cause.line;
	/* A class of an earlier table has lost its words. */
	view->failure_says = failure != NULL ? failure->says : "it failed";
	view->failure_hint = failure != NULL ? failure->hint : "";
	say_done(brain, now, id, view->failure_done, sizeof view->failure_done);
}

uint64_t sw_brain_job_count(const struct sw_brain *brain)
{
	return brain->jobs.count;
}

uint64_t sw_brain_next_job(const struct sw_brain *brain, uint64_t from)
{
	uint32_t id = from <= brain->jobs.count ? sw_brain_next_known(brain, from > 0 ? (uint32_t)(from - 1) : 0) : SW_BITMAP_NONE;
	return id == SW_BITMAP_NONE ? 0 : id + UINT64_C(1);
}

uint64_t sw_brain_prev_job(const struct sw_brain *brain, uint64_t from)
{
	uint32_t id = from > 0 ? sw_bitmap_prev(&brain->known, from > UINT32_MAX ? UINT32_MAX : (uint32_t)(from - 1)) : SW_BITMAP_NONE;
	return id == SW_BITMAP_NONE ? 0 : id + UINT64_C(1);
}

uint64_t sw_brain_known_count(const struct sw_brain *brain)
{
	return brain->known.count;
}

const struct sw_depend *sw_brain_awaits(const struct sw_live *live)
{
	return live->depend_count > 0 ? &live->depends[live->depend_at] : NULL;
}

static const char *reason_of(const struct sw_brain *brain, const struct sw_live *live, const struct sw_job *job)
{
	const struct sw_depend *depend = job->state <= SW_JOB_RUNNING ? sw_brain_awaits(live) : NULL;
	if (depend != NULL)
		return depend->kind == SW_AFTER_SLOT ? "JobArrayTaskLimit" : "Dependency";
	if (sw_brain_out_of_reach(brain, job->id.v) != NULL)
		return "NodeNotResponding";
	if (live->user_held && job->state == SW_JOB_HELD)
		return "JobHeldUser";
	if (job->state == SW_JOB_RUNNING && !has_started(live) &&
	    (sw_brain_leaver(brain, job->id.v) != 0 || sw_brain_parting(brain, job->id.v) != 0))
		return "its GPUs are being freed";
	if (sw_brain_leaves(brain, live) != 0)
		return "on its way to other GPUs";
	return live->reason;
}

/* All its parts are off their GPUs, or not all yet. */
static enum sw_run_depth depth_of(const struct sw_brain *brain, const struct sw_live *live)
{
	bool suspended = sw_brain_is_suspended(brain, live);
	if (!suspended || !live->deep)
		return suspended && live->not_deep != NULL ? SW_DEPTH_REFUSED : SW_DEPTH_USUAL;
	for (uint32_t r = 0; r < live->run_count; r++)
		if (!live->runs[r].off && live->runs[r].heard != SW_HEARD_EXITED)
			return SW_DEPTH_LEAVING;
	return SW_DEPTH_OFF;
}

const char *sw_brain_state_of(const struct sw_brain *brain, uint64_t id)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	return live != NULL ? state_of(brain, live, sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)})).brief : NULL;
}

bool sw_brain_job(const struct sw_brain *brain, sw_ns now, uint64_t id, struct sw_job_view *ret_view)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	if (live == NULL)
		return false;
	const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)});
	struct state_name state = state_of(brain, live, job);
	const struct sw_brain_node *far = sw_brain_out_of_reach(brain, job->id.v);
	/* What a run does while its node is not heard is not known: that time counts
	 * when it is found again. */
	sw_ns until = far != NULL && far->silent_since < now ? far->silent_since : now;
	sw_ns running = job->state == SW_JOB_RUNNING && !job->paused && until > job->since ? until - job->since : 0;
	*ret_view = (struct sw_job_view){
		.id = id,
		.state = state.brief,
		.state_long = state.full,
		.request = live->asked->text,
		.bulky = live->asked->uses != NULL,
		.request_size = strlen(live->asked->text) + live->asked->bulk[SW_BULK_ENV].size + live->asked->bulk[SW_BULK_COMMAND].size,
		.is_member = live->is_member,
		.array_index = live->array_index,
		.name = live->name,
		.model = live->model != NULL ? live->model : live->name,
		.tenant = brain->tenants.items[live->tenant],
		.reason = reason_of(brain, live, job),
		.held_by = sw_brain_is_suspended(brain, live) && live->user_held ? live->held_by : SW_NOBODY,
		.held = live->user_held && job->state < SW_JOB_FINISHED,
		.uid = live->uid,
		.gid = live->gid,
		.gpus = job->state == SW_JOB_RUNNING ? job->gpus_held : job->gpus,
		.epoch = live->epoch,
		.restarts = job->restarts,
		.preemptions = job->preemptions,
		.code = live->code,
		.signal = live->signal,
		.submitted_at = live->submitted_at,
		.started_at = live->started_at,
		.ended_at = is_completing(live, job) ? SW_TIME_NEVER : live->ended_at,
		.retry_at = sw_heap_has(&brain->retries, job->id.v) ? sw_heap_key(&brain->retries, job->id.v) : SW_TIME_NEVER,
		.ran_ns = sw_engine_clock(brain->engine, job->id)->ran_ns + running,
		.node = live->last_node < brain->nodes.count ? brain->nodes.items[live->last_node].name : "",
		.gpu_mask = live->last_mask,
		.gpu_memory_bytes = job->gpu_memory_bytes,
		.limit_bytes = live->limit_bytes,
		.limit_milli = live->limit_milli,
		.is_opportunistic = job->job_class == SW_CLASS_OPPORTUNISTIC,
		.is_paused = job->paused,
		.depth = depth_of(brain, live),
		.not_deep = live->not_deep != NULL ? live->not_deep : "",
		.is_moving = sw_brain_leaves(brain, live) != 0,
		.unmoved = live->unmoved != NULL ? live->unmoved : "",
		.unreachable = far != NULL ? far->name : "",
		.unreachable_since = far != NULL ? far->silent_since : SW_TIME_NEVER,
		.is_prerun = live->is_prerun,
		.warning = live->warning != NULL ? live->warning : "",
	};
	show_failure(brain, now, (uint32_t)(id - 1), ret_view);
	return true;
}

bool sw_brain_part(const struct sw_brain *brain, uint64_t id, uint32_t index, struct sw_part_view *ret_part)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	if (live == NULL || index >= live->run_count)
		return false;
	const struct sw_run *run = &live->runs[index];
	*ret_part = (struct sw_part_view){brain->nodes.items[run->node].name, run->mask, live->epoch};
	return true;
}

uint32_t sw_brain_node_count(const struct sw_brain *brain)
{
	return (uint32_t)brain->nodes.count;
}

bool sw_brain_node(const struct sw_brain *brain, uint32_t index, struct sw_node_view *ret_view)
{
	if (index >= brain->nodes.count)
		return false;
	const struct sw_brain_node *node = &brain->nodes.items[index];
	struct sw_node seen;
	sw_view_node(sw_engine_view(brain->engine), (struct sw_node_id){index}, &seen);
	*ret_view = (struct sw_node_view){
		.name = node->name,
		.up = node->up,
		.silent = node->silent,
		.removed = node->removed,
		.closed = node->closed != SW_OPEN,
		.in_use = node->jobs.count > 0,
		.reason = node->closed != SW_OPEN ? node->closed_why : "",
		.gpus = node->shape.gpus,
		.gpus_free = seen.gpus_free,
		.gpus_shut = (uint32_t)__builtin_popcountll(sw_brain_shut_mask(node->gpus, node->shape.gpus)),
		.cpus = node->shape.cpus,
		.memory_bytes = node->shape.memory_bytes,
		.gpu_memory_bytes = node->shape.gpu_memory_bytes,
		.heard_at = node->silent || node->removed ? node->silent_since : node->heard_at,
	};
	return true;
}

const char *sw_brain_gpu_uuid(const struct sw_brain *brain, uint32_t node, uint32_t gpu)
{
	return brain->nodes.items[node].gpus[gpu].uuid;
}

sw_ns sw_brain_now(const struct sw_brain *brain)
{
	return brain->now;
}

const char *sw_brain_policy(const struct sw_brain *brain)
{
	return sw_engine_policy(brain->engine);
}

const char *sw_brain_placement(const struct sw_brain *brain)
{
	return brain->config.placement;
}

const struct sw_params *sw_brain_params(const struct sw_brain *brain)
{
	/* The fall-back took over: what was set is not in force. */
	bool in_charge = brain->params != NULL && strcmp(brain->params->policy->name, sw_brain_policy(brain)) == 0;
	return in_charge ? brain->params : NULL;
}

static void count_job(const struct sw_brain *brain, const struct sw_job *job, uint32_t uid, sw_tenant_views *tenants)
{
	assert(job->tenant < tenants->count);
	struct sw_tenant_view *tenant = &tenants->items[job->tenant];
	bool runs = job->state == SW_JOB_RUNNING;
	*(runs ? &tenant->running : &tenant->waiting) += 1;
	*(runs ? &tenant->gpus : &tenant->gpus_wanted) += runs ? job->gpus_held : job->gpus;
	tenant->of_user = tenant->of_user || brain->jobs.items[job->id.v].uid == uid;
}

int sw_brain_tenants(const struct sw_brain *brain, uint32_t uid, sw_tenant_views *ret_tenants)
{
	const struct sw_view *view = sw_engine_view(brain->engine);
	sw_tenant_views tenants = {0};
	for (uint32_t t = 0; t < brain->tenants.count; t++) {
		struct sw_tenant_view *tenant = sw_vec_push(&tenants);
		if (tenant == NULL) {
			sw_vec_free(&tenants);
			return SW_ENOMEM;
		}
		*tenant = (struct sw_tenant_view){
			.name = brain->tenants.items[t],
			.quota = sw_view_tenant_quota(view, t),
			.gpus_guaranteed = sw_view_tenant_held(view, t),
		};
	}
	for (const struct sw_job *job = NULL; (job = sw_view_next_running(view, job)) != NULL;)
		count_job(brain, job, uid, &tenants);
	for (const struct sw_job *job = NULL; (job = sw_view_next_waiting(view, job)) != NULL;)
		count_job(brain, job, uid, &tenants);
	*ret_tenants = tenants;
	return 0;
}

uint64_t sw_brain_log_hash(const struct sw_brain *brain)
{
	return sw_engine_log_hash(brain->engine);
}

uint64_t sw_brain_command_hash(const struct sw_brain *brain)
{
	return sw_engine_command_hash(brain->engine);
}

/* Whether its runs are on exactly these GPUs. */
static bool is_at(const struct sw_brain *brain, const struct sw_live *live, uint32_t parts)
{
	const struct sw_ledger *ledger = sw_engine_ledger(brain->engine);
	uint32_t count = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next, count++) {
		const struct sw_run *run = sw_brain_run_on(live, ledger->parts[p].node);
		if (run == NULL || run->mask != ledger->parts[p].mask)
			return false;
	}
	return count == live->run_count;
}

/* Invariants 1 and 2 of runs.c, and 3 of brain.h. */
static int check_runs(const struct sw_brain *brain, const struct sw_live *live, const struct sw_job *job, struct sw_err *err)
{
	bool runs = job->state == SW_JOB_RUNNING, suspended = sw_brain_is_suspended(brain, live);
	if (!suspended && sw_engine_stands(brain->engine, job->id) != SW_NO_PART)
		return sw_err_set(err, SW_EBUG, "runs invariant 2: job %u stands in the engine and has no run", job->id.v + 1);
	if (suspended && (!live->parks || live->ghosts > 0 || job->state >= SW_JOB_RUNNING))
		return sw_err_set(err, SW_EBUG, "runs invariant 1: job %u is suspended in state %u", job->id.v + 1, job->state);
	if ((runs || suspended) != (live->run_count > 0) || live->epoch != sw_engine_epoch(brain->engine, job->id))
		return sw_err_set(err, SW_EBUG, "brain invariant 3: job %u has %u runs in state %u", job->id.v + 1, live->run_count,
				  job->state);
	if (live->run_count > 0 && !is_at(brain, live, (runs ? sw_engine_parts : sw_engine_stands)(brain->engine, job->id)))
		return sw_err_set(err, SW_EBUG, "runs invariant 2: job %u is elsewhere than the engine thinks", job->id.v + 1);
	bool begun = sw_engine_has_begun(brain->engine, job->id), was_heard = false, is_heard = false;
	for (uint32_t r = 0; r < live->run_count; r++) {
		is_heard |= live->runs[r].heard == SW_HEARD_RUNNING;
		was_heard |= live->runs[r].heard >= SW_HEARD_RUNNING;
	}
	if ((begun && !was_heard) || (is_heard && !begun))
		return sw_err_set(err, SW_EBUG, "runs invariant 1: the engine does not know whether job %u has begun", job->id.v + 1);
	return 0;
}

/* Invariant 3 of brain.h, those of runs.c and dependents.c, and the engine's own. */
int sw_brain_validate(const struct sw_brain *brain, struct sw_err *err)
{
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1)) {
		const struct sw_live *live = &brain->jobs.items[id];
		const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){id});
		int r = check_runs(brain, live, job, err);
		if (r < 0)
			return r;
		if ((job->state > SW_JOB_RUNNING) != (live->ended_at != SW_TIME_NEVER))
			return sw_err_set(err, SW_EBUG, "brain invariant 4: job %u has ended, or not", id + 1);
	}
	int r = sw_depends_validate(brain, err);
	return r < 0 ? r : sw_engine_validate(brain->engine, err);
}
