/* The policy in charge: puts it there, lets it decide, and throws it out when it misuses the plan
 * or sleeps on its watch.
 *
 * Not here: what a decision does to jobs (plan.c), or what an event does (engine_events.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

#define MISUSE_LIMIT 100u
#define IDLE_DECISIONS_MAX 1000u     /* in a row, with nothing running and jobs that could */
#define EMPTY_DECISIONS_MAX 4000000u /* in a row, without an event or a command */

static int give_policy_its_memory(struct sw_engine *engine)
{
	size_t per_job = sw_list_job_state_size(engine->policy);
	free(engine->policy_state);
	free(engine->scratch);
	free(engine->node_states);
	if (engine->job_states_each > 0)
		sw_table_release(&engine->job_states, &engine->job_states_room, engine->job_states_each);
	engine->job_states_each = per_job;
	engine->node_states = NULL;
	engine->node_states_capacity = 0;
	engine->node_states_each = sw_list_node_state_size(engine->policy);
	engine->policy_state = calloc(1, sw_list_state_size(engine->policy) + 1);
	engine->scratch = calloc(1, engine->policy->scratch_size + 1);
	if (engine->policy_state == NULL || engine->scratch == NULL ||
	    (per_job > 0 && sw_table_make_room(&engine->job_states, &engine->job_states_room, per_job, engine->jobs.room) < 0))
		return SW_ENOMEM;
	return sw_engine_reserve_node_states(engine, engine->topology->node_count);
}

int sw_charge_begin(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err)
{
	struct sw_params *presets = NULL;
	if (params == NULL) {
		int r = sw_params_new(policy, &presets, err);
		if (r < 0)
			return r;
	}
	if (engine->presets != NULL)
		sw_params_free(engine->presets);
	sw_holds_drop(engine);
	engine->presets = presets;
	engine->params = params != NULL ? params : presets;
	engine->policy = policy;
	while (engine->alarms.count > 0)
		sw_alarm_drop(engine, engine->alarms.entries[0].id);
	if (give_policy_its_memory(engine) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for policy '%s'", policy->name);
	int asks = sw_ask_begin(engine, err);
	if (asks < 0)
		return asks;
	engine->order.rule = policy->order;
	engine->order.exact = false;
	const char *complaint = policy->start != NULL ? policy->start(&engine->view) : NULL;
	if (complaint != NULL) {
		int r = sw_err_set(err, SW_EINPUT, "policy '%s' does not start", policy->name);
		sw_err_detail(err, "%s", complaint);
		return r;
	}
	engine->changes_next = SW_CHANGE_ALL;
	engine->order.exact =
		engine->config.terms.exact_ties && engine->order.rule != NULL && engine->order.rule->ties == SW_TIES_WAITING_FIRST;
	return 0;
}

int sw_charge_install(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err)
{
	int r = sw_charge_begin(engine, policy, params, err);
	if (r < 0)
		return r;
	engine->restores_power |= engine->nodes_off > 0;
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		const struct sw_job *job = &engine->jobs.items[id].seen;
		if (job->state <= SW_JOB_RUNNING && policy->submit != NULL)
			policy->submit(&engine->view, job);
		if (job->state == SW_JOB_RUNNING && policy->started != NULL)
			policy->started(&engine->view, job);
	}
	sw_order_forget_fresh(engine);
	if (sw_order_rebuild(engine) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for policy '%s'", policy->name);
	return 0;
}

int sw_charge_take_over(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err)
{
	int r = sw_charge_install(engine, policy, params, err);
	if (r < 0)
		return r;
	engine->recheck = true;
	engine->log_hash = sw_hash_bytes(engine->log_hash, policy->name, strlen(policy->name));
	return 0;
}

int sw_engine_set_policy(struct sw_engine *engine, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err)
{
	const struct sw_policy *old = engine->policy;
	const struct sw_params *old_params = engine->presets != NULL ? NULL : engine->params;
	int r = sw_charge_take_over(engine, policy, params, err);
	if (r < 0)
		(void)sw_charge_install(engine, old, old_params, NULL);
	return r;
}

int sw_engine_set_terms(struct sw_engine *engine, const struct sw_terms *terms, struct sw_err *err)
{
	const struct sw_terms *own = &engine->config.terms;
	int r = sw_terms_check(terms, err);
	if (r < 0)
		return r;
	if (terms->keeps_state != own->keeps_state || terms->replace_is_free != own->replace_is_free ||
	    terms->exact_ties != own->exact_ties)
		return sw_err_set(err, SW_EINPUT,
				  "this world keeps other things of a run that is stopped, which cannot change while jobs are there");
	if (sw_terms_differ(terms, own) != NULL)
		sw_tell_change(engine, SW_CHANGE_ALL);
	engine->recheck |= own->may_grow && !terms->may_grow;
	engine->config.terms = *terms;
	engine->restores_power |= engine->nodes_off > 0 && !terms->nodes_switch;
	engine->log_hash = sw_hash_u64(engine->log_hash, (uint64_t)engine->now);
	return 0;
}

const struct sw_terms *sw_engine_terms(const struct sw_engine *engine)
{
	return &engine->config.terms;
}

/* Puts the fall-back in charge; false where there is none, or it is already. */
static bool throw_out(struct sw_engine *engine, const char *why)
{
	const struct sw_policy *fallback = engine->config.fallback;
	if (fallback == NULL || engine->policy == fallback)
		return false;
	snprintf(engine->notes, sizeof engine->notes, "policy '%s' was replaced by '%s' at %lld.%03lld s: %s", engine->policy->name,
		 fallback->name, (long long)(engine->now / 1000000000), (long long)(engine->now / 1000000 % 1000), why);
	engine->log_hash = sw_hash_u64(engine->log_hash, (uint64_t)engine->now);
	engine->misuses = 0;
	engine->idle_decisions = engine->empty_decisions = 0;
	/* Jobs that were let in because the other policy took any place must find one now too. */
	engine->fell_back = true;
	(void)sw_charge_install(engine, fallback, NULL, NULL);
	return true;
}

static bool could_start(const struct sw_engine *engine, uint32_t id)
{
	const struct sw_core_job *job = &engine->jobs.items[id];
	return engine->order.lanes.items[job->lane].possible && sw_engine_quota_allows(engine, &job->seen, job->seen.gpus);
}

/* Whether any waiting job could start if nothing ran. Jobs of one lane are alike: where there is an
 * order, the first speaks for all. */
static bool is_anybody_able(const struct sw_engine *engine)
{
	const struct sw_order_book *book = &engine->order;
	if (book->rule == NULL) {
		for (uint32_t id = sw_bitmap_next(&engine->waiting, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(&engine->waiting, id + 1))
			if (could_start(engine, id))
				return true;
		return false;
	}
	for (size_t l = 0; l < book->lanes.count; l++) {
		uint32_t first = book->lanes.items[l].waiting.first;
		if (first != SW_OSET_NONE && could_start(engine, first))
			return true;
	}
	return false;
}

/* Whether its run holds memory where it stands, of GPUs or of the host. */
static bool holds_where_it_stands(const struct sw_engine *engine, const struct sw_core_job *job)
{
	bool holds = job->stands != SW_NO_PART && (!job->seen.frees_gpus || job->seen.host_memory_bytes > 0);
	for (uint32_t p = job->stands; p != SW_NO_PART && !holds; p = engine->ledger.parts[p].next)
		holds = engine->ledger.parts[p].memory_bytes > 0;
	return holds;
}

/* Whether a job is held whose run holds memory where it stands: others may wait for that. */
static bool is_kept_by_held(const struct sw_engine *engine)
{
	for (uint32_t id = engine->ledger.standing.count > 0 ? sw_engine_next(engine, 0) : SW_BITMAP_NONE; id != SW_BITMAP_NONE;
	     id = sw_engine_next(engine, id + 1))
		if (engine->jobs.items[id].seen.state == SW_JOB_HELD && holds_where_it_stands(engine, &engine->jobs.items[id]))
			return true;
	return false;
}

/* Nothing runs, or only jobs that stand still. Besides, every node is up that the policy has not
 * switched off, and some job may start or go on. */
static bool is_idle(const struct sw_engine *engine)
{
	if (engine->running.count > 0 && engine->running.count == engine->paused)
		return true;
	if (engine->running.count > 0 || engine->waiting.count == 0 || engine->topology->gpu_count == 0 ||
	    engine->ledger.gpus_up + engine->gpus_off != engine->topology->gpu_count || engine->ledger.nodes_closed > 0 ||
	    engine->ledger.gpus_shut > 0)
		return false;
	return is_anybody_able(engine) && !is_kept_by_held(engine);
}

/* Whether the policy sleeps on its watch, or runs on the spot. */
static const char *what_stalls(struct sw_engine *engine, sw_ns wake_at, size_t events)
{
	engine->idle_decisions = is_idle(engine) ? engine->idle_decisions + 1 : 0;
	bool nothing = events == engine->asks.heard && engine->commands.count == engine->asks.asked;
	engine->empty_decisions = nothing ? engine->empty_decisions + 1 : 0;
	/* One that has asked waits for the answer. */
	if (engine->idle_decisions > (wake_at == SW_TIME_NEVER && engine->asks.count == 0 ? 0 : IDLE_DECISIONS_MAX))
		return "nothing ran, jobs waited, and it did not start any";
	if (engine->empty_decisions > EMPTY_DECISIONS_MAX)
		return "it woke millions of times in a row and did nothing";
	return NULL;
}

static void ask_policy(struct sw_engine *engine)
{
	struct sw_plan *plan = &engine->plan;
	if (engine->policy->scratch_size > 0)
		memset(engine->scratch, 0, engine->policy->scratch_size);
	sw_tell_begin(engine);
	if (engine->policy->decide != NULL)
		plan->wake_at = engine->policy->decide(plan);
	else
		sw_plan_by_order(plan);
	sw_tell_end(engine);
}

static sw_ns decide_once(struct sw_engine *engine)
{
	struct sw_plan *plan = &engine->plan;
	sw_plan_reset(plan);
	if (engine->paused > 0 && !engine->policy->pauses)
		sw_plan_rouse(plan);
	if (plan->entries.count > 0) /* the policy decides on what that leaves, in a step of its own */
		plan->wake_at = engine->now + 1;
	else
		ask_policy(engine);
	sw_plan_commit(plan);
	/* A wish to be woken now or earlier would stop time. */
	if (plan->wake_at <= engine->now) {
		plan->misuses++;
		plan->wake_at = engine->now + 1000000;
	}
	if (plan->again)
		plan->wake_at = engine->now + 1;
	engine->misuses = plan->misuses == 0 ? 0 : engine->misuses + plan->misuses;
	plan->misuses = 0;
	/* A waiting job was told that another is protected: until then. */
	return plan->protected_until < plan->wake_at ? plan->protected_until : plan->wake_at;
}

sw_ns sw_charge_decide(struct sw_engine *engine, size_t events)
{
	sw_ns wake_at = decide_once(engine);
	uint32_t limit = engine->config.misuse_limit == 0 ? MISUSE_LIMIT : engine->config.misuse_limit;
	if (engine->misuses >= limit) {
		char why[96];
		snprintf(why, sizeof why, "it misused the plan %u times in a row", engine->misuses);
		throw_out(engine, why);
		return engine->now +
		       /* the new one decides in a step of its own: commands of this one name parts
		        * that it might give back */
		       1;
	}
	sw_ns alarm = sw_alarms_next(engine), lease = sw_leases_next(engine);
	alarm = lease < alarm ? lease : alarm;
	alarm = engine->hold_at < alarm ? engine->hold_at : alarm;
	wake_at = alarm < wake_at ? alarm : wake_at;
	const char *stall = what_stalls(engine, wake_at, events);
	if (stall != NULL && throw_out(engine, stall))
		wake_at = engine->now + 1;
	return wake_at;
}
