/* What policies and placement rules can see. */
#include "core/state.h"

static sw_ns add_until_never(sw_ns a, sw_ns b)
{
	sw_ns sum;
	return __builtin_add_overflow(a, b, &sum) ? SW_TIME_NEVER : sum;
}

static sw_ns times_until_never(sw_ns a, uint32_t b)
{
	sw_ns product;
	return __builtin_mul_overflow(a, (sw_ns)b, &product) ? SW_TIME_NEVER : product;
}

/* Of a job that the core does not know, nothing is known. */
static const struct sw_job_clock *clock_of(const struct sw_view *view, const struct sw_job *job)
{
	static const struct sw_job_clock unknown = {.work_left_ns = SW_TIME_NEVER, .ends_at = SW_TIME_NEVER};
	const struct sw_core_job *own = sw_engine_own(view->engine, job);
	return own != NULL ? &own->clock : &unknown;
}

static sw_ns running_for(const struct sw_view *view, const struct sw_job *job)
{
	return job->state == SW_JOB_RUNNING && !job->paused ? view->engine->now - job->since : 0;
}

sw_ns sw_job_ran(const struct sw_view *view, const struct sw_job *job)
{
	return add_until_never(clock_of(view, job)->ran_ns, running_for(view, job));
}

sw_ns sw_job_gpu_time(const struct sw_view *view, const struct sw_job *job)
{
	return add_until_never(clock_of(view, job)->gpu_time_ns, times_until_never(running_for(view, job), job->gpus_held));
}

sw_ns sw_job_remaining(const struct sw_view *view, const struct sw_job *job)
{
	const struct sw_job_clock *clock = clock_of(view, job);
	if (job->knowledge == SW_UNKNOWN)
		return SW_TIME_NEVER;
	if (job->state != SW_JOB_RUNNING || job->paused)
		return clock->work_left_ns;
	sw_ns to_run = clock->ends_at > view->engine->now ? clock->ends_at - view->engine->now : 0;
	sw_ns ran_for = clock->ends_at - clock->work_left_as_of;
	/* At full speed time is work; otherwise work goes down evenly until the end. */
	if (ran_for == clock->work_left_ns || ran_for <= 0)
		return to_run;
	return (sw_ns)((__int128)clock->work_left_ns * to_run / ran_for);
}

void *sw_job_state(struct sw_view *view, const struct sw_job *job)
{
	size_t size = view->engine->policy->job_state_size;
	return size == 0 ? NULL : view->engine->job_states + view->engine->job_states_each * job->id.v;
}

/* Where it runs or stands. */
static uint32_t place_of(const struct sw_view *view, const struct sw_job *seen)
{
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	if (job == NULL)
		return SW_NO_PART;
	return job->seen.state == SW_JOB_RUNNING ? job->parts : job->home;
}

struct sw_node_id sw_job_node(const struct sw_view *view, const struct sw_job *job, uint32_t index, uint32_t *ret_gpus)
{
	const struct sw_ledger *ledger = &view->engine->ledger;
	uint32_t part = place_of(view, job);
	while (part != SW_NO_PART && index-- > 0)
		part = ledger->parts[part].next;
	if (part == SW_NO_PART)
		return SW_NO_NODE;
	if (ret_gpus != NULL)
		*ret_gpus = (uint32_t)__builtin_popcountll(ledger->parts[part].mask);
	return (struct sw_node_id){ledger->parts[part].node};
}

bool sw_jobs_meet(const struct sw_view *view, const struct sw_job *a, const struct sw_job *b)
{
	const struct sw_part *parts = view->engine->ledger.parts;
	uint32_t first = place_of(view, a), second = place_of(view, b);
	for (uint32_t p = first; p != SW_NO_PART; p = parts[p].next)
		for (uint32_t q = second; q != SW_NO_PART; q = parts[q].next)
			if (parts[p].node == parts[q].node && (parts[p].mask & parts[q].mask) != 0)
				return true;
	return false;
}

enum sw_keeping sw_job_keeps(const struct sw_view *view, const struct sw_job *job)
{
	const struct sw_core_job *own = sw_engine_own(view->engine, job);
	if (view->engine->config.terms.keeps_state)
		return SW_KEEPS_ANYWHERE;
	/* Of one that says nothing it is not known before it runs, and may change. */
	return own != NULL && own->prefers_home && job->stop_rule != SW_STOP_IF_FREE ? SW_KEEPS_IN_PLACE : SW_KEEPS_NOTHING;
}

bool sw_job_may_stop(const struct sw_view *view, const struct sw_job *job)
{
	const struct sw_core_job *own = sw_engine_own(view->engine, job);
	return own != NULL && !sw_plan_stays(view->engine, own);
}

bool sw_job_makes_room(const struct sw_view *view, const struct sw_job *job, const struct sw_job *other)
{
	const struct sw_core_job *own = sw_engine_own(view->engine, job), *comes = sw_engine_own(view->engine, other);
	if (own == NULL || comes == NULL || sw_plan_stays(view->engine, own))
		return false;
	if (sw_hold_closes_parts(view->engine, comes, own->parts, SW_TIME_NEVER))
		return false;
	struct sw_share leaver = sw_share_of(job), share = sw_share_of(other);
	leaver.stands = sw_engine_would_stand(view->engine, own);
	if (sw_plan_is_homebound(view->engine, comes)) {
		share.host_memory_bytes = 0; /* it has that there */
		if (!sw_jobs_meet(view, job, other) || !other->frees_gpus)
			return sw_jobs_meet(view, job, other);
	}
	return sw_ledger_would_fit(view->ledger, own->parts, leaver, share, other->gpus);
}

uint32_t sw_job_speed_milli(const struct sw_view *view, const struct sw_job *job)
{
	const struct sw_core_job *own = sw_engine_own(view->engine, job);
	const struct sw_job_clock *clock = clock_of(view, job);
	sw_ns takes = clock->ends_at - clock->work_left_as_of;
	if (own != NULL && own->speed_epoch == own->epoch && own->speed_milli > 0 && job->state == SW_JOB_RUNNING)
		return own->speed_milli;
	if (!view->engine->config.terms.tells_speed || job->state != SW_JOB_RUNNING || job->knowledge == SW_UNKNOWN || takes <= 0)
		return 0;
	__int128 speed = (__int128)clock->work_left_ns * 1000 / takes;
	return speed < UINT32_MAX ? (uint32_t)speed : UINT32_MAX;
}

void *sw_node_state(struct sw_view *view, struct sw_node_id node)
{
	size_t size = view->engine->policy->node_state_size;
	bool known = size > 0 && node.v < view->engine->topology->node_count;
	return known ? view->engine->node_states + view->engine->node_states_each * node.v : NULL;
}

sw_ns sw_view_now(const struct sw_view *view)
{
	return view->engine->now;
}

sw_ns sw_view_quantum(const struct sw_view *view)
{
	return view->engine->config.terms.quantum_ns;
}

uint32_t sw_view_gpus(const struct sw_view *view)
{
	return view->ledger->gpus_up;
}

uint32_t sw_view_gpus_free(const struct sw_view *view)
{
	return view->ledger->gpus_free;
}

uint32_t sw_view_waiting(const struct sw_view *view)
{
	return view->engine->waiting.count;
}

uint32_t sw_view_running(const struct sw_view *view)
{
	return view->engine->running.count;
}

const struct sw_job *sw_view_job(const struct sw_view *view, struct sw_job_id id)
{
	return sw_engine_knows(view->engine, id.v) ? &view->engine->jobs.items[id.v].seen : NULL;
}

static const struct sw_job *next_in(const struct sw_view *view, const struct sw_bitmap *set, const struct sw_job *after)
{
	uint32_t id = sw_bitmap_next(set, after == NULL ? 0 : after->id.v + 1);
	return id == SW_BITMAP_NONE ? NULL : &view->engine->jobs.items[id].seen;
}

const struct sw_job *sw_view_next_waiting(const struct sw_view *view, const struct sw_job *after)
{
	return next_in(view, &view->engine->waiting, after);
}

const struct sw_job *sw_view_next_running(const struct sw_view *view, const struct sw_job *after)
{
	return next_in(view, &view->engine->running, after);
}

uint32_t sw_view_tenant_held(const struct sw_view *view, uint32_t tenant)
{
	return tenant < view->engine->tenants.count ? view->engine->tenants.items[tenant].held : 0;
}

uint32_t sw_view_tenant_borrowed(const struct sw_view *view, uint32_t tenant)
{
	return tenant < view->engine->tenants.count ? view->engine->tenants.items[tenant].borrowed : 0;
}

uint32_t sw_view_tenants(const struct sw_view *view)
{
	return (uint32_t)view->engine->tenants.count;
}

uint32_t sw_view_tenant_quota(const struct sw_view *view, uint32_t tenant)
{
	return tenant < view->engine->tenants.count ? view->engine->tenants.items[tenant].quota : UINT32_MAX;
}

uint64_t sw_view_random(struct sw_view *view, uint64_t bound)
{
	return sw_rng_below(&view->engine->rng, bound);
}

const struct sw_policy *sw_view_policy(const struct sw_view *view)
{
	return view->engine->policy;
}

void *sw_view_state(struct sw_view *view)
{
	return view->engine->policy_state;
}

const struct sw_value *sw_view_param(const struct sw_view *view, size_t index)
{
	static const struct sw_value none = {0};
	if (index >= view->engine->policy->param_count) {
		view->engine->plan.misuses++;
		return &none;
	}
	return &view->engine->params->values[index];
}

uint32_t sw_view_nodes(const struct sw_view *view)
{
	return view->ledger->topology->node_count;
}

void sw_view_node(const struct sw_view *view, struct sw_node_id id, struct sw_node *ret_node)
{
	if (id.v >= view->ledger->topology->node_count) {
		view->engine->plan.misuses++;
		*ret_node = (struct sw_node){.id = id};
		return;
	}
	const struct sw_topology_node *shape = &view->ledger->topology->nodes[id.v];
	const struct sw_ledger_node *node = &view->ledger->nodes[id.v];
	*ret_node = (struct sw_node){
		.id = id,
		.rack = shape->rack,
		.gpus = shape->gpus,
		.gpus_free = node->up && !node->closed ? (uint32_t)__builtin_popcountll(node->free) : 0,
		.cpus = shape->cpus,
		.cpus_free = node->cpus_free,
		.memory_bytes = shape->memory_bytes,
		.memory_free_bytes = node->memory_free_bytes,
		.gpu_memory_bytes = shape->gpu_memory_bytes,
		.gpu_type = shape->gpu_type,
		.power = node->power,
		.up = node->up,
		.open = node->up && !node->closed,
	};
}

/* NULL where there is no such GPU. */
static const struct sw_gpu *gpu_at(const struct sw_view *view, struct sw_node_id node, uint32_t gpu)
{
	const struct sw_ledger *ledger = view->ledger;
	if (node.v >= ledger->topology->node_count || gpu >= ledger->topology->nodes[node.v].gpus)
		return NULL;
	return &ledger->gpus[ledger->nodes[node.v].first_gpu + gpu];
}

uint64_t sw_gpu_memory_free(const struct sw_view *view, struct sw_node_id node, uint32_t gpu)
{
	const struct sw_gpu *at = gpu_at(view, node, gpu);
	if (at == NULL || at->whole || at->shut || at->kept > 0 || !view->ledger->nodes[node.v].up || view->ledger->nodes[node.v].closed)
		return 0;
	return sw_ledger_gpu_memory_free(view->ledger, (uint32_t)(at - view->ledger->gpus));
}

const struct sw_job *sw_gpu_resident(const struct sw_view *view, struct sw_node_id node, uint32_t gpu, uint32_t index)
{
	const struct sw_gpu *at = gpu_at(view, node, gpu);
	return at != NULL && index < at->residents ? &view->engine->jobs.items[at->who[index]].seen : NULL;
}

uint32_t sw_view_racks(const struct sw_view *view)
{
	return view->ledger->topology->rack_count;
}

void sw_view_rack(const struct sw_view *view, uint32_t rack, struct sw_node_id *ret_first, struct sw_node_id *ret_end)
{
	if (rack >= view->ledger->topology->rack_count) {
		view->engine->plan.misuses++;
		ret_first->v = ret_end->v = 0;
		return;
	}
	ret_first->v = view->ledger->topology->rack_first[rack];
	ret_end->v = view->ledger->topology->rack_first[rack + 1];
}

uint32_t sw_view_node_gpus_max(const struct sw_view *view)
{
	return view->ledger->topology->node_gpus_max;
}

uint32_t sw_view_node_gpus_min(const struct sw_view *view)
{
	return view->ledger->topology->node_gpus_min;
}

uint32_t sw_view_rack_node_gpus_max(const struct sw_view *view, uint32_t rack)
{
	return rack < view->ledger->topology->rack_count ? view->ledger->topology->rack_node_gpus[rack] : 0;
}

struct sw_node_id sw_nodes_first(const struct sw_view *view, uint32_t free, struct sw_node_id from, struct sw_node_id end)
{
	return (struct sw_node_id){sw_ledger_first(view->ledger, free, from.v, end.v)};
}

struct sw_node_id sw_nodes_tightest(const struct sw_view *view, uint32_t free, struct sw_node_id from, struct sw_node_id end)
{
	return (struct sw_node_id){sw_ledger_tightest(view->ledger, free, from.v, end.v)};
}

/* All on one node: the tightest that takes them. A node may refuse for host memory. */
static bool fill_on_one(const struct sw_ledger *ledger, struct sw_spot *spot, uint32_t gpus)
{
	uint32_t most = ledger->topology->node_gpus_max, end = ledger->topology->node_count;
	for (uint32_t free = gpus; free <= most; free++)
		for (uint32_t node = sw_bitmap_next(&ledger->buckets[free], 0); node < end;
		     node = sw_bitmap_next(&ledger->buckets[free], node + 1))
			if (sw_spot_add(spot, (struct sw_node_id){node}, gpus, 0, 0))
				return true;
	return false;
}

bool sw_spot_fill(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus)
{
	const struct sw_ledger *ledger = view->ledger;
	uint32_t end = ledger->topology->node_count;
	if (fill_on_one(ledger, spot, gpus - spot->gpus))
		return true;
	for (uint32_t node = sw_ledger_first(ledger, 1, 0, end); node != UINT32_MAX && spot->gpus < gpus;
	     node = sw_ledger_first(ledger, 1, node + 1, end)) {
		uint32_t free = (uint32_t)__builtin_popcountll(ledger->nodes[node].free);
		uint32_t missing = gpus - spot->gpus;
		uint32_t take = free < missing ? free : missing;
		/* Beside runs that stand there may be host memory for some of them. */
		while (take > 0 && !sw_spot_add(spot, (struct sw_node_id){node}, take, 0, 0))
			take = ledger->nodes[node].standing != 0 ? take - 1 : 0;
	}
	return spot->gpus == gpus;
}

void sw_count_promotion(struct sw_view *view, const struct sw_job *job)
{
	struct sw_core_job *own = sw_engine_own(view->engine, job);
	if (own != NULL)
		own->seen.promotions++;
}
