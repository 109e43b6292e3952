/* Re-derives everything that the engine keeps incrementally and compares. The numbers are those of
 * engine.h and ledger.h. */
#include <stdlib.h>

#include "core/state.h"

/* Its parts are those that it holds, or on which it stands. */
static int check_move(const struct sw_engine *engine, const struct sw_core_job *job, struct sw_err *err)
{
	const struct sw_part *all = engine->ledger.parts;
	uint32_t id = job->seen.id.v, parts = job->seen.state == SW_JOB_RUNNING ? job->parts : job->stands;
	if (job->leaves == 0 ? job->told_at != 0 : job->told_at < job->move_at)
		return sw_err_set(err, SW_EBUG, "engine invariant 10: job %u was told to move before it began to, or of no move", id);
	if (job->leaves == 0 && (parts != SW_NO_PART || !job->begun))
		return 0;
	if (parts == SW_NO_PART || !job->begun)
		return sw_err_set(err, SW_EBUG, "engine invariant 10: job %u has no run that could be on its way", id);
	uint32_t gpus = engine->topology->nodes[all[parts].node].gpus;
	if (all[parts].next != SW_NO_PART || job->leaves == all[parts].mask || (gpus < 64 && job->leaves >> gpus != 0) ||
	    __builtin_popcountll(job->leaves) != __builtin_popcountll(all[parts].mask))
		return sw_err_set(err, SW_EBUG, "engine invariant 10: job %u cannot come from the GPUs that it leaves", id);
	return 0;
}

static int check_job(const struct sw_engine *engine, const struct sw_core_job *job, struct sw_ledger *derived, struct sw_err *err)
{
	const struct sw_job *seen = &job->seen;
	uint32_t id = seen->id.v;
	bool runs = seen->state == SW_JOB_RUNNING;
	if (sw_bitmap_has(&engine->running, id) != runs || sw_bitmap_has(&engine->waiting, id) != sw_job_is_waiting(seen))
		return sw_err_set(err, SW_EBUG, "engine invariant 4: job %u in state %u is in the wrong list", id, seen->state);
	if (job->home != SW_NO_PART && (runs || seen->state > SW_JOB_RUNNING || !job->prefers_home))
		return sw_err_set(err, SW_EBUG, "engine invariant 8: job %u in state %u has a home", id, seen->state);
	bool should_stand = job->home != SW_NO_PART && sw_rule_suspends(seen) && !engine->config.terms.keeps_state;
	if (job->stands != (should_stand ? job->home : SW_NO_PART))
		return sw_err_set(err, SW_EBUG, "engine invariant 9: job %u in state %u stands where it should not, or does not stand", id,
				  seen->state);
	if (check_move(engine, job, err) < 0)
		return SW_EBUG;
	bool own = sw_config_is_zero(&job->config) && seen->cpus == job->asked_cpus && seen->host_memory_bytes == job->asked_host_bytes;
	if (seen->state < SW_JOB_RUNNING && !should_stand && !own)
		return sw_err_set(err, SW_EBUG, "engine invariant 13: job %u in state %u is set up as a run", id, seen->state);
	sw_ledger_mark_home(derived, job->home, true);
	if (!runs) {
		if (seen->gpus_held != 0 || job->parts != SW_NO_PART || seen->paused)
			return sw_err_set(err, SW_EBUG, "engine invariant 1: job %u does not run and holds %u GPUs", id, seen->gpus_held);
		return 0;
	}
	bool split = job->split_milli != 0;
	if (sw_ledger_count_gpus(&engine->ledger, job->parts) != seen->gpus_held ||
	    split != sw_ledger_is_split(&engine->ledger, job->parts) ||
	    (!split && (seen->gpus_held < seen->min_gpus || seen->gpus_held > seen->max_gpus)))
		return sw_err_set(err, SW_EBUG, "engine invariant 1: job %u should hold %u GPUs", id, seen->gpus_held);
	for (uint32_t p = job->parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		if (!engine->ledger.nodes[engine->ledger.parts[p].node].up)
			return sw_err_set(err, SW_EBUG, "engine invariant 3: job %u runs on node %u, which is down", id,
					  engine->ledger.parts[p].node);
	if (!sw_ledger_fits(derived, job->parts, sw_share_of(seen)))
		return sw_err_set(err, SW_EBUG, "engine invariant 2: job %u holds what others hold too", id);
	sw_ledger_take(derived, job->parts, sw_share_of(seen));
	if (job->plan_slot != SW_NO_SLOT || seen->since > engine->now)
		return sw_err_set(err, SW_EBUG, "engine invariant 6: job %u runs since a moment to come, or a plan was left open", id);
	return 0;
}

/* Lanes are used again when no job is left in them. */
static int check_lanes(const struct sw_engine *engine, struct sw_err *err)
{
	const struct sw_order_book *book = &engine->order;
	uint32_t *members = calloc(book->lanes.count + 1, sizeof *members);
	if (members == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1))
		if (engine->jobs.items[id].seen.state <= SW_JOB_RUNNING)
			members[engine->jobs.items[id].lane]++;
	int r = 0;
	for (uint32_t id = sw_engine_next(engine, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		const struct sw_core_job *job = &engine->jobs.items[id];
		if (job->seen.state <= SW_JOB_RUNNING && !sw_order_is_in_its_lane(engine, job))
			r = sw_err_set(err, SW_EBUG, "engine invariant 7: job %u is in a lane for job %u and %u GPUs", id,
				       book->lanes.items[job->lane].lone, book->lanes.items[job->lane].gpus);
	}
	for (size_t l = 0; r == 0 && l < book->lanes.count; l++)
		if (members[l] != book->lanes.items[l].members)
			r = sw_err_set(err, SW_EBUG, "engine invariant 7: lane %zu has %u members and counts %u", l, members[l],
				       book->lanes.items[l].members);
	free(members);
	return r;
}

static int check_order(const struct sw_engine *engine, struct sw_err *err)
{
	const struct sw_order_book *book = &engine->order;
	uint32_t running = 0, waiting = 0;
	if (book->rule == NULL)
		return 0;
	for (size_t l = 0; l < book->lanes.count; l++) {
		const struct sw_lane *lane = &book->lanes.items[l];
		if (!sw_oset_is_sound(&lane->running, &book->links) || !sw_oset_is_sound(&lane->waiting, &book->links))
			return sw_err_set(err, SW_EBUG, "engine invariant 7: lane %zu is not sorted", l);
		running += lane->running.count;
		waiting += lane->waiting.count;
	}
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		const struct sw_core_job *job = &engine->jobs.items[id];
		if (job->order_set != SW_ORDER_NOWHERE && book->links.items[id].marks != sw_order_marks(engine, job))
			return sw_err_set(err, SW_EBUG, "engine invariant 7: the marks of job %u are not true", id);
	}
	if (waiting != engine->waiting.count || running != (book->rule->preemptive ? engine->running.count : 0))
		return sw_err_set(err, SW_EBUG, "engine invariant 7: the order lists %u waiting and %u running jobs, there are %u and %u",
				  waiting, running, engine->waiting.count, engine->running.count);
	return 0;
}

static int check_tenants(const struct sw_engine *engine, struct sw_err *err)
{
	struct sw_tenant *sums = calloc(engine->tenants.count + 1, sizeof *sums);
	if (sums == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		const struct sw_job *job = &engine->jobs.items[id].seen;
		if (job->state == SW_JOB_RUNNING)
			*(job->job_class == SW_CLASS_GUARANTEED ? &sums[job->tenant].held : &sums[job->tenant].borrowed) += job->gpus_held;
	}
	int r = 0;
	for (uint32_t t = 0; r == 0 && t < engine->tenants.count; t++) {
		const struct sw_tenant *tenant = &engine->tenants.items[t];
		if (sums[t].held != tenant->held || sums[t].borrowed != tenant->borrowed)
			r = sw_err_set(err, SW_EBUG, "engine invariant 5: tenant %u holds %u GPUs and borrows %u, its entry says %u and %u",
				       t, sums[t].held, sums[t].borrowed, tenant->held, tenant->borrowed);
	}
	free(sums);
	return r;
}

static int check_jobs(const struct sw_engine *engine, struct sw_ledger *derived, struct sw_err *err)
{
	/* Parts are named by their place in the engine's pool: lend it to the other ledger. */
	free(derived->parts);
	derived->parts = engine->ledger.parts;
	for (uint32_t n = 0; n < engine->topology->node_count; n++) {
		sw_ledger_set_up(derived, n, engine->ledger.nodes[n].up);
		sw_ledger_set_closed(derived, n, engine->ledger.nodes[n].closed);
		sw_ledger_set_shut(derived, n, engine->ledger.nodes[n].shut);
	}
	for (size_t h = 0; h < engine->holds.count; h++)
		if (engine->holds.items[h].in_force)
			sw_ledger_keep(derived, engine->holds.items[h].parts, true);
	int r = 0;
	for (uint32_t id = sw_engine_next(engine, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1))
		r = check_job(engine, &engine->jobs.items[id], derived, err);
	/* Last: one that stands may turn out to hold what others have. */
	for (uint32_t id = sw_engine_next(engine, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1))
		sw_ledger_stand(derived, engine->jobs.items[id].stands, sw_engine_standing_share(&engine->jobs.items[id]), true);
	if (r == 0)
		r = sw_ledger_matches(&engine->ledger, derived, err);
	derived->parts = NULL;
	return r;
}

static int check_counts(const struct sw_engine *engine, struct sw_err *err)
{
	struct {
		const char *what;
		int invariant;
		uint32_t kept, found;
	} counts[] = {
		{"jobs are paused", 4, engine->paused, 0},
		{"jobs keep off a node", 7, engine->avoiders, 0},
		{"living jobs have a rule for stops", 9, engine->ruled, 0},
		{"living jobs could stand where they run", 9, engine->standers, 0},
		{"runs are on their way", 10, engine->leavers, 0},
	};
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		const struct sw_core_job *job = &engine->jobs.items[id];
		bool lives = job->seen.state <= SW_JOB_RUNNING;
		counts[0].found += job->seen.paused;
		counts[1].found += job->avoid != UINT32_MAX;
		counts[2].found += lives && job->seen.stop_rule != SW_STOP_AS_WORLD;
		counts[3].found += lives && sw_rule_suspends(&job->seen) && !engine->config.terms.keeps_state;
		counts[4].found += job->leaves != 0;
	}
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
		if (counts[c].found != counts[c].kept)
			return sw_err_set(err, SW_EBUG, "engine invariant %d: %u %s, the count says %u", counts[c].invariant,
					  counts[c].found, counts[c].what, counts[c].kept);
	return 0;
}

static int check_leases(const struct sw_engine *engine, struct sw_err *err)
{
	uint32_t leases = 0;
	for (uint32_t id = sw_bitmap_next(&engine->running, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(&engine->running, id + 1)) {
		sw_ns until = engine->jobs.items[id].seen.until;
		bool open = until != SW_TIME_NEVER && until > engine->now;
		leases += open;
		if (open && (!sw_heap_has(&engine->leases, id) || sw_heap_key(&engine->leases, id) != until))
			return sw_err_set(err, SW_EBUG, "engine invariant 6: the end of the lease of job %u would not be noticed", id);
	}
	if (leases != engine->leases.count)
		return sw_err_set(err, SW_EBUG, "engine invariant 6: %u leases are open, and the engine wakes for %u", leases,
				  engine->leases.count);
	return 0;
}

/* Whether the hold may have these GPUs of the node: no other overlaps with it there, and what runs
 * there has left before. */
static bool is_clear(const struct sw_engine *engine, const struct sw_hold_row *row, const struct sw_part *part)
{
	const struct sw_ledger_node *n = &engine->ledger.nodes[part->node];
	for (size_t h = 0; h < engine->holds.count; h++) {
		const struct sw_hold_row *other = &engine->holds.items[h];
		bool apart = other == row || other->from >= row->to || row->from >= other->to;
		for (uint32_t p = apart ? SW_NO_PART : other->parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
			if (engine->ledger.parts[p].node == part->node && (engine->ledger.parts[p].mask & part->mask) != 0)
				return false;
	}
	for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
		const struct sw_gpu *gpu = &engine->ledger.gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
		for (uint32_t r = 0; r < gpu->residents; r++)
			if (engine->jobs.items[gpu->who[r]].seen.until > row->from)
				return false;
	}
	return n->up && !n->closed && (n->shut & part->mask) == 0;
}

static int check_holds(const struct sw_engine *engine, struct sw_err *err)
{
	uint32_t parts = 0;
	for (size_t h = 0; h < engine->holds.count; h++) {
		const struct sw_hold_row *row = &engine->holds.items[h];
		bool known = sw_engine_knows(engine, row->job) && sw_job_is_waiting(&engine->jobs.items[row->job].seen);
		if (!known || row->parts == SW_NO_PART || (h > 0 && row[-1].job >= row->job))
			return sw_err_set(err, SW_EBUG, "engine invariant 14: GPUs are held for job %u, which does not wait", row->job);
		if (row->to <= engine->now || row->to <= row->from || row->in_force != (row->from <= engine->now) ||
		    engine->hold_at > (row->in_force ? row->to : row->from))
			return sw_err_set(err, SW_EBUG, "engine invariant 14: the hold of job %u is over, or will not be noticed",
					  row->job);
		for (uint32_t p = row->parts; p != SW_NO_PART; p = engine->ledger.parts[p].next, parts++)
			if (!is_clear(engine, row, &engine->ledger.parts[p]))
				return sw_err_set(err, SW_EBUG, "engine invariant 14: what is held for job %u on node %u is not its own",
						  row->job, engine->ledger.parts[p].node);
	}
	if (parts != engine->hold_parts || engine->shade.on)
		return sw_err_set(err, SW_EBUG, "engine invariant 14: holds have %u parts, the count says %u", parts, engine->hold_parts);
	return 0;
}

static int check_power(const struct sw_engine *engine, struct sw_err *err)
{
	uint32_t nodes = 0, gpus = 0;
	for (uint32_t n = 0; n < engine->topology->node_count; n++) {
		const struct sw_ledger_node *node = &engine->ledger.nodes[n];
		bool off = node->power == SW_POWER_OFF;
		nodes += off;
		gpus += off ? engine->topology->nodes[n].gpus : 0;
		if (node->power != SW_POWER_ON && (node->up || node->standing != 0 || node->homes != 0))
			return sw_err_set(err, SW_EBUG, "engine invariant 15: node %u is switched off, and up or in use", n);
	}
	if (nodes != engine->nodes_off || gpus != engine->gpus_off)
		return sw_err_set(err, SW_EBUG, "engine invariant 15: %u nodes of %u GPUs are switched off, the count says %u and %u",
				  nodes, gpus, engine->nodes_off, engine->gpus_off);
	return 0;
}

static int check_alarms(const struct sw_engine *engine, struct sw_err *err)
{
	if (sw_heap_top_key(&engine->alarms) <= engine->now)
		return sw_err_set(err, SW_EBUG, "engine invariant 6: an alarm is left in the past");
	if (engine->alarms.count != engine->latest.count)
		return sw_err_set(err, SW_EBUG, "engine invariant 6: %u alarms are set, and the engine wakes for %u", engine->alarms.count,
				  engine->latest.count);
	for (uint32_t a = 0; a < engine->alarms.count; a++) {
		struct sw_heap_entry alarm = engine->alarms.entries[a];
		sw_ns latest = sw_alarm_latest(alarm.key, engine->jobs.items[alarm.id].alarm_slack);
		if (!sw_engine_knows(engine, alarm.id) || engine->jobs.items[alarm.id].seen.state > SW_JOB_RUNNING)
			return sw_err_set(err, SW_EBUG, "engine invariant 6: job %u has an alarm and does not live", alarm.id);
		if (!sw_heap_has(&engine->latest, alarm.id) || sw_heap_key(&engine->latest, alarm.id) != latest)
			return sw_err_set(err, SW_EBUG, "engine invariant 6: the engine does not wake for the alarm of job %u", alarm.id);
	}
	return 0;
}

int sw_engine_validate(const struct sw_engine *engine, struct sw_err *err)
{
	struct sw_ledger derived;
	int r = sw_ledger_init(&derived, engine->topology);
	if (r < 0)
		r = sw_err_set(err, r, "out of memory");
	else
		r = check_jobs(engine, &derived, err);
	sw_ledger_release(&derived);
	if (r == 0)
		r = check_counts(engine, err);
	if (r == 0)
		r = check_order(engine, err);
	if (r == 0)
		r = check_lanes(engine, err);
	if (r == 0 && !sw_lists_are_sound(engine))
		r = sw_err_set(err, SW_EBUG, "engine invariant 11: a list of the policy does not lead from its first job to its last");
	const struct sw_core_question *question = sw_ask_find_unsound(engine);
	if (r == 0 && question != NULL)
		r = sw_err_set(err, SW_EBUG, "engine invariant 12: question %llu is not as it was asked",
			       (unsigned long long)question->number);
	if (r == 0)
		r = check_tenants(engine, err);
	if (r == 0)
		r = check_alarms(engine, err);
	if (r == 0)
		r = check_leases(engine, err);
	if (r == 0)
		r = check_holds(engine, err);
	if (r == 0)
		r = check_power(engine, err);
	return r;
}
