/* A place for a job: where a rule says, on one node or anywhere; on whole free GPUs, and none
 * where it may not be.
 *
 * A job whose run stands where it was goes back there, whatever the rule says. Others keep off the
 * homes of such runs as long as another place is as good.
 */
#include <assert.h>

#include "core/state.h"

bool sw_plan_home_is_free(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_ledger *ledger = &engine->ledger;
	bool homebound = sw_plan_is_homebound(engine, job);
	if (job->home == SW_NO_PART || !sw_ledger_is_free(ledger, job->home) || sw_ledger_touches_closed(ledger, job->home) ||
	    (!homebound && sw_ledger_touches(ledger, job->home, job->avoid)))
		return false;
	/* Memory that never left is there, whatever others that stand there hold. */
	bool has_memory = homebound && !job->seen.frees_gpus;
	return has_memory ? sw_ledger_host_fits(ledger, job->home) : sw_ledger_fits(ledger, job->home, sw_share_of(&job->seen));
}

/* The same, and it has as many GPUs there. */
static bool home_is_free(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus)
{
	return sw_plan_home_is_free(engine, job) && sw_ledger_count_gpus(&engine->ledger, job->home) == gpus;
}

static bool fill_spot(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct sw_place where,
		      struct sw_spot *spot)
{
	if (where.node != UINT32_MAX)
		return sw_spot_add(spot, (struct sw_node_id){where.node}, gpus, 0, 0);
	return where.rule == NULL ? sw_spot_fill(&engine->view, spot, gpus) : where.rule->place(&engine->view, &job->seen, gpus, spot);
}

static bool look(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct sw_place where,
		 struct sw_spot *ret_spot)
{
	sw_spot_begin(ret_spot, engine->view.ledger, sw_share_of(&job->seen));
	if (fill_spot(engine, job, gpus, where, ret_spot) && ret_spot->gpus == gpus)
		return true;
	sw_spot_discard(ret_spot);
	return false;
}

static bool is_as_near(const struct sw_ledger *ledger, uint32_t parts, uint32_t others)
{
	bool near = sw_ledger_distance(ledger, parts) <= sw_ledger_distance(ledger, others);
	while (parts != SW_NO_PART && others != SW_NO_PART) {
		parts = ledger->parts[parts].next;
		others = ledger->parts[others].next;
	}
	return near && parts == SW_NO_PART;
}

/* The same on GPUs that are no home, if any; otherwise false. */
static bool look_beside_homes(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct sw_place where,
			      struct sw_spot *ret_spot)
{
	sw_ledger_hide_homes(engine->view.ledger, true);
	bool found = look(engine, job, gpus, where, ret_spot);
	sw_ledger_hide_homes(engine->view.ledger, false);
	return found;
}

/* A job that stands still there would have to start anew elsewhere: a place that is as good and no
 * home of others comes first. */
static void spare_homes(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t gpus, struct sw_place where,
			struct sw_spot *spot)
{
	struct sw_ledger *ledger = engine->view.ledger;
	struct sw_spot other;
	sw_ledger_mark_home(ledger, job->home, false); /* there is none to spare but itself */
	if (sw_ledger_has_homes(ledger, spot->head) && look_beside_homes(engine, job, gpus, where, &other)) {
		bool better = is_as_near(ledger, other.head, spot->head);
		sw_spot_discard(better ? spot : &other);
		*spot = better ? other : *spot;
	}
	sw_ledger_mark_home(ledger, job->home, true);
}

/* The place is looked for first. Whether a job fits must not depend on where it once was, or jobs
 * of one lane would not be alike. */
bool sw_plan_find(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where, uint32_t *ret_parts)
{
	struct sw_engine *engine = plan->engine;
	if (engine->ledger.gpus_free < gpus)
		return false;
	struct sw_spot spot;
	plan->looks = true;
	/* The node it keeps off is closed for as long as we look. */
	bool homebound = sw_plan_is_homebound(engine, job);
	bool avoids = !homebound && job->avoid != UINT32_MAX && !engine->ledger.nodes[job->avoid].closed;
	if (avoids)
		sw_ledger_set_closed(&engine->ledger, job->avoid, true);
	bool crowded = engine->ledger.standing.count > 0;
	bool can_go_home =
		home_is_free(engine, job, gpus) && (where.node == UINT32_MAX || sw_ledger_touches(&engine->ledger, job->home, where.node));
	if (crowded)
		sw_ledger_hide_crowded(&engine->ledger, sw_share_of(&job->seen), true);
	/* One whose run stands at home goes nowhere else, whatever the rule says. */
	bool found = !homebound && look(engine, job, gpus, where, &spot);
	bool goes_home = (found || homebound) && can_go_home;
	if (found && goes_home)
		sw_spot_discard(&spot);
	else if (found)
		spare_homes(engine, job, gpus, where, &spot);
	found |= goes_home;
	if (crowded)
		sw_ledger_hide_crowded(&engine->ledger, sw_share_of(&job->seen), false);
	if (avoids)
		sw_ledger_set_closed(&engine->ledger, job->avoid, false);
	plan->looks = false;
	if (found)
		*ret_parts = goes_home ? job->home : spot.head;
	return found;
}

void sw_plan_let_go(struct sw_plan *plan, const struct sw_core_job *job, uint32_t parts)
{
	if (parts != job->home)
		sw_ledger_drop_parts(&plan->engine->ledger, parts);
}

enum sw_answer sw_plan_put_at(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, struct sw_place where)
{
	struct sw_engine *engine = plan->engine;
	uint32_t parts;
	/* It goes on with what it had. */
	if (sw_plan_is_homebound(engine, job))
		gpus = sw_ledger_count_gpus(&engine->ledger, job->home);
	if (!sw_engine_quota_allows(engine, &job->seen, gpus))
		return SW_OVER_QUOTA;
	enum sw_answer held = SW_NO_ROOM;
	if (where.rule == engine->config.placement && sw_hold_suffices(engine, job, gpus))
		held = sw_plan_put_held(plan, job, gpus);
	if (held == SW_YES)
		return SW_YES;
	uint32_t stood = sw_plan_rise(plan, job);
	bool found = sw_plan_find(plan, job, gpus, where, &parts);
	enum sw_answer answer = found ? sw_plan_settle(plan, job, gpus, parts) : SW_NO_ROOM;
	(void)sw_plan_stand_unless(plan, job, stood, answer);
	/* What is in the way there may be protected for a while. */
	return answer == SW_NO_ROOM && held == SW_TOO_SOON ? held : answer;
}

void sw_plan_keep_host_memory(struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts)
{
	struct sw_part *all = engine->ledger.parts;
	if (!sw_plan_is_homebound(engine, job))
		return;
	for (uint32_t p = parts, q = job->home; p != SW_NO_PART; p = all[p].next, q = all[q].next)
		all[p].memory_bytes = all[q].memory_bytes;
}

enum sw_answer sw_plan_settle(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, uint32_t parts)
{
	struct sw_engine *engine = plan->engine;
	const struct sw_plan_entry *entry = sw_plan_touch(plan, job);
	assert(sw_job_is_waiting(&job->seen) && parts != SW_NO_PART);
	if (!sw_plan_may_be_at(plan, job, parts)) {
		sw_plan_let_go(plan, job, parts);
		return SW_NO_ROOM;
	}
	sw_engine_rise(engine, job);
	sw_plan_keep_host_memory(engine, job, parts);
	sw_ledger_take(&engine->ledger, parts, sw_share_of(&job->seen));
	/* The very spot it had: then it has not moved. */
	if (entry->before.state == SW_JOB_RUNNING && sw_ledger_same_parts(&engine->ledger, parts, entry->parts_before)) {
		sw_ledger_drop_parts(&engine->ledger, parts);
		parts = entry->parts_before;
	}
	sw_engine_set_running(engine, job, gpus, parts);
	return SW_YES;
}

enum sw_answer sw_plan_put(struct sw_plan *plan, struct sw_core_job *job, uint32_t gpus, const struct sw_placement *rule)
{
	return sw_plan_put_at(plan, job, gpus, (struct sw_place){.node = UINT32_MAX, .rule = rule});
}

bool sw_plan_could_come_back(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts)
{
	const struct sw_ledger *ledger = &engine->ledger;
	bool comes_back = sw_rule_suspends(&job->seen) && !engine->config.terms.keeps_state;
	for (uint32_t p = comes_back ? parts : SW_NO_PART; p != SW_NO_PART; p = ledger->parts[p].next)
		if (engine->topology->nodes[ledger->parts[p].node].gpu_memory_bytes < job->asked_memory_bytes)
			return false;
	return true;
}

bool sw_plan_may_be_at(struct sw_plan *plan, struct sw_core_job *job, uint32_t parts)
{
	const struct sw_engine *engine = plan->engine;
	const struct sw_plan_entry *entry = sw_plan_touch(plan, job);
	if (sw_plan_is_homebound(engine, job))
		return sw_ledger_same_gpus(&engine->ledger, parts, job->home);
	bool ran = entry->before.state == SW_JOB_RUNNING;
	if (ran && sw_config_is_same(&job->config, &entry->config_before) &&
	    sw_ledger_same_parts(&engine->ledger, parts, entry->parts_before))
		return true;
	/* Lifted and put elsewhere in one decision would be a move. */
	bool stays =
		engine->config.terms.moves != SW_MOVES_FREELY && (sw_rule_suspends(&job->seen) || job->seen.stop_rule == SW_STOP_NEVER);
	return (!ran || (sw_plan_may_move(engine) && !stays && sw_plan_could_come_back(engine, job, parts))) &&
	       sw_plan_has_asked(&engine->ledger, parts, job);
}
