/* The engine's life and its step: events are checked, memory is reserved, every event is applied,
 * and the policy decides.
 *
 * Invariants: numbered in engine.h. All memory that a step needs is reserved before its
 * first event is applied.
 */
#include "core/engine.h"

#include <stdlib.h>

#include "base/hash.h"
#include "core/state.h"

/* ---- life */

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
	engine->hold_at = SW_TIME_NEVER;
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
	sw_heap_release(&engine->leases);
	sw_vec_free(&engine->holds);
	sw_vec_free(&engine->tenants);
	sw_order_release(&engine->order);
	sw_vec_free(&engine->plan.entries);
	sw_vec_free(&engine->plan.lifted);
	sw_vec_free(&engine->commands);
	sw_vec_free(&engine->admissions);
	sw_vec_free(&engine->ringing);
	sw_topology_free(engine->topology);
	free(engine->policy_state);
	free(engine->scratch);
	free(engine->asks.bytes);
	if (engine->job_states_each > 0)
		sw_table_release(&engine->job_states, &engine->job_states_room, engine->job_states_each);
	free(engine->node_states);
	free(engine);
}

struct sw_engine_room sw_engine_room(const struct sw_engine *engine)
{
	return (struct sw_engine_room){
		.nodes = SW_CLUSTER_NODES_MAX - engine->topology->node_count,
		.gpus = SW_CLUSTER_GPUS_MAX - engine->topology->gpu_count,
		.jobs = engine->jobs.count < SW_ENGINE_JOBS_MAX ? SW_ENGINE_JOBS_MAX - (uint32_t)engine->jobs.count : 0,
	};
}

/* ---- the step */

/* Whether every event makes sense, before any of them happens; *ret_submits and *ret_tenants
 * say what room they need. */
static int check_events(const struct sw_engine *engine, const struct sw_event *events, size_t count, size_t *ret_submits,
			uint32_t *ret_tenants, struct sw_err *err)
{
	uint32_t racks = engine->topology->rack_count, nodes = engine->topology->node_count;
	uint64_t gpus = engine->topology->gpu_count;
	for (size_t e = 0; e < count; e++) {
		const struct sw_event *event = &events[e];
		uint32_t tenant = 0;
		if (event->kind < SW_EV_SUBMIT || event->kind > SW_EV_REQUEUE || (event->kind == SW_EV_SAMPLE && event->sample == NULL) ||
		    (event->kind == SW_EV_ANSWER && event->reply == NULL))
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
		if (tenant < SW_ENGINE_TENANTS_MAX && tenant >= *ret_tenants)
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
	if (r == 0 && engine->policy->admit != NULL)
		r = sw_vec_reserve(&engine->admissions, submits);
	/* Each job that can only go on where it was has a lane of its own. */
	size_t lanes = engine->order.lanes.count + engine->ruled + 2 * submits + engine->holds.count + SW_HOLDS_AT_ONCE;
	size_t changes = 0;
	for (size_t e = 0; r == 0 && e < count; e++) {
		changes += events[e].kind == SW_EV_CHANGE;
		if (events[e].kind == SW_EV_NODE_ADD)
			r = sw_engine_reserve_node(engine, events[e].shape, engine->known.count + submits);
		if (events[e].kind == SW_EV_NODE_CHANGE && events[e].node.v < engine->topology->node_count)
			r = sw_engine_reserve_change(engine, events[e].change, engine->known.count + submits);
		/* These sort all jobs into lanes anew, and there may be as
		 * many of those as of jobs. */
		if (events[e].kind == SW_EV_NODE_ADD || events[e].kind == SW_EV_NODE_CHANGE || events[e].kind == SW_EV_QUOTA ||
		    (engine->avoiders > 0 &&
		     (events[e].kind == SW_EV_NODE_DOWN || events[e].kind == SW_EV_NODE_CLOSE || events[e].kind == SW_EV_GPUS_SHUT)))
			lanes = 2 * (engine->known.count + submits) + SW_HOLDS_AT_ONCE;
	}
	r = r < 0 ? r : sw_engine_reserve_holds(engine);
	if (r == 0 && (!sw_engine_grow_tenants(engine, tenants - 1) || sw_vec_reserve(&engine->order.lanes, lanes + 2 * changes) < 0))
		r = SW_ENOMEM;
	if (r < 0)
		return sw_err_set(err, r, "out of memory for %zu more jobs", submits);
	engine->commands.count = 0;
	engine->admissions.count = 0;
	engine->went_on = false;
	engine->asks.asked = engine->asks.heard = 0;
	if (at > engine->now)
		engine->now = at;
	engine->log_hash = sw_hash_u64(engine->log_hash, (uint64_t)engine->now);
	if (engine->recheck && sw_engine_recheck(engine, true) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	engine->recheck = false;
	if (engine->restores_power)
		sw_power_restore(engine);
	sw_holds_pass(engine); /* one that is over is in no event's way */
	for (size_t e = 0; e < count; e++) {
		r = sw_engine_apply(engine, &events[e]);
		if (r < 0)
			return sw_err_set(err, r, "cannot apply event %zu of %zu", e + 1, count);
	}
	sw_alarms_ring(engine);
	sw_leases_expire(engine);
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

const struct sw_job_clock *sw_engine_clock(const struct sw_engine *engine, struct sw_job_id id)
{
	return &engine->jobs.items[id.v].clock;
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

sw_ns sw_engine_stands_since(const struct sw_engine *engine, struct sw_job_id id)
{
	return engine->jobs.items[id.v].stood_at;
}

bool sw_engine_has_begun(const struct sw_engine *engine, struct sw_job_id id)
{
	return engine->jobs.items[id.v].begun;
}

uint64_t sw_engine_leaves(const struct sw_engine *engine, struct sw_job_id id, sw_ns *ret_since)
{
	if (ret_since != NULL)
		*ret_since = engine->jobs.items[id.v].told_at;
	return engine->jobs.items[id.v].leaves;
}

uint64_t sw_engine_leaving(const struct sw_engine *engine, struct sw_node_id node)
{
	return sw_move_leaving(engine, node.v);
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
