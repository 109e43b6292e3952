/* Moves of a run to other GPUs of its node, in the same processes.
 *
 * The job holds its new GPUs at once, so that no other job comes there. Until its driver says that
 * it is there, its run still has the GPUs that it leaves. They are free to the ledger, but a job
 * that is given them begins only once they are left. A run that cannot go stays where it is: jobs
 * that were given those GPUs in the meantime wait again. Where it cannot have them back, or they
 * are dead, it begins anew on those to which it was to go.
 *
 * Invariants (sw_engine_validate() checks them):
 *  1. a run that is on its way is the only part of its job, and has begun. It goes to as many other
 *     GPUs of its node, and may have been suspended since;
 *  2. there is no move of a run that is on its way, and none to GPUs that a run still has to leave.
 */
#include <assert.h>

#include "core/state.h"

/* A run that could not go is not moved by a policy for so long. It stands still for each try, and
 * what kept it may be over then. */
#define PAUSE_NS (600 * INT64_C(1000000000))

/* ---- the state of a run */

static void set_leaves(struct sw_engine *engine, struct sw_core_job *job, uint64_t mask)
{
	engine->leavers += (uint32_t)(mask != 0) - (uint32_t)(job->leaves != 0);
	job->leaves = mask;
	job->move_at = job->told_at = mask != 0 ? engine->now : 0;
}

void sw_move_arrive(struct sw_engine *engine, struct sw_core_job *job)
{
	set_leaves(engine, job, 0);
}

void sw_move_forget_run(struct sw_engine *engine, struct sw_core_job *job)
{
	set_leaves(engine, job, 0);
	job->begun = false;
}

/* Where its run is, or is to go; SW_NO_PART: it has none. */
static uint32_t parts_of(const struct sw_core_job *job)
{
	return job->seen.state == SW_JOB_RUNNING ? job->parts : job->stands;
}

uint64_t sw_move_leaving(const struct sw_engine *engine, uint32_t node)
{
	/* Nearly all of them run; of the others there may be very many. */
	const struct sw_bitmap *sets[] = {&engine->running, &engine->known};
	uint32_t left = engine->leavers;
	uint64_t mask = 0;
	for (int s = 0; s < 2; s++) {
		for (uint32_t id = left > 0 ? sw_bitmap_next(sets[s], 0) : SW_BITMAP_NONE; left > 0 && id != SW_BITMAP_NONE;
		     id = sw_bitmap_next(sets[s], id + 1)) {
			const struct sw_core_job *job = &engine->jobs.items[id];
			if (job->leaves == 0 || (s == 1 && job->seen.state == SW_JOB_RUNNING))
				continue;
			left--;
			if (engine->ledger.parts[parts_of(job)].node == node)
				mask |= job->leaves;
		}
	}
	return mask;
}

/* ---- whether */

/* The same, of the run of a job on these parts. */
static const char *find_obstacle(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts, uint32_t node,
				 uint64_t mask)
{
	const struct sw_ledger *ledger = &engine->ledger;
	if (parts == SW_NO_PART)
		return "it does not run";
	if (ledger->parts[parts].next != SW_NO_PART)
		return "it runs on several nodes";
	if (!job->begun)
		return "it has not started yet";
	if (job->leaves != 0)
		return "it is on its way to other GPUs already";
	if (ledger->parts[parts].node != node || __builtin_popcountll(ledger->parts[parts].mask) != __builtin_popcountll(mask) ||
	    sw_ledger_is_split(ledger, parts))
		return "it can only go to as many other GPUs of its node";
	if ((sw_move_leaving(engine, node) & mask) != 0)
		return "another job is still on its way off one of these GPUs";
	return ledger->parts[parts].mask == mask ? "it is there" : NULL;
}

const char *sw_engine_move_obstacle(const struct sw_engine *engine, struct sw_job_id id, struct sw_gpus to)
{
	const struct sw_core_job *job = &engine->jobs.items[id.v];
	uint32_t parts = job->seen.state == SW_JOB_RUNNING ? job->parts : SW_NO_PART;
	bool same_node = to.node.v == SW_NO_NODE.v && parts != SW_NO_PART;
	uint32_t node = same_node ? engine->ledger.parts[parts].node : to.node.v;
	const char *obstacle = find_obstacle(engine, job, parts, node, to.mask);
	bool held = obstacle == NULL && sw_hold_closes(engine, job, node, to.mask, job->seen.until);
	return held ? "one of these GPUs is held for another job" : obstacle;
}

/* Whether another job of the plan leaves some of these GPUs. The two could wait for each other.
 * While the plan is made, that is also one that is stopped: it may be put elsewhere yet. */
static bool is_in_the_way(const struct sw_plan *plan, const struct sw_plan_entry *own, const struct sw_part *to, bool is_made)
{
	const struct sw_engine *engine = plan->engine;
	for (size_t e = 0; e < plan->entries.count; e++) {
		const struct sw_plan_entry *entry = &plan->entries.items[e];
		const struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
		if (entry == own || entry->before.state != SW_JOB_RUNNING || job->parts == entry->parts_before ||
		    (is_made && job->seen.state != SW_JOB_RUNNING))
			continue;
		for (uint32_t p = entry->parts_before; p != SW_NO_PART; p = engine->ledger.parts[p].next)
			if (engine->ledger.parts[p].node == to->node && (engine->ledger.parts[p].mask & to->mask) != 0)
				return true;
	}
	return false;
}

static bool goes_on_at(const struct sw_plan *plan, const struct sw_plan_entry *entry, uint32_t parts, bool is_made)
{
	const struct sw_engine *engine = plan->engine;
	const struct sw_core_job *job = &engine->jobs.items[entry->before.id.v];
	const struct sw_part *to = &engine->ledger.parts[parts];
	if (!sw_config_is_same(&job->config, &entry->config_before))
		return false;
	if (job->seen.cannot_pause || engine->now < job->move_at || to->next != SW_NO_PART || to->split_bytes != 0)
		return false;
	return find_obstacle(engine, job, entry->parts_before, to->node, to->mask) == NULL && !is_in_the_way(plan, entry, to, is_made);
}

bool sw_move_goes_on(const struct sw_plan *plan, const struct sw_plan_entry *entry)
{
	return goes_on_at(plan, entry, plan->engine->jobs.items[entry->before.id.v].parts, true);
}

bool sw_move_would_go_on(const struct sw_plan *plan, const struct sw_plan_entry *entry, uint32_t parts)
{
	return goes_on_at(plan, entry, parts, false);
}

/* ---- moves */

static void command_move(struct sw_engine *engine, const struct sw_core_job *job, enum sw_reason reason)
{
	sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_MOVE,
						      .reason = (uint8_t)reason,
						      .job = job->seen.id.v,
						      .epoch = job->epoch,
						      .gpus = sw_ledger_count_gpus(&engine->ledger, parts_of(job)),
						      .parts = parts_of(job),
						      .config = job->config,
						      .mask = engine->ledger.parts[parts_of(job)].mask});
}

void sw_move_begin(struct sw_engine *engine, struct sw_core_job *job, uint64_t from, enum sw_reason reason)
{
	assert(job->begun && job->leaves == 0 && from != 0);
	set_leaves(engine, job, from);
	command_move(engine, job, reason);
}

/* The same part on other GPUs of its node; SW_NO_PART: these cannot be, or are the same. */
static uint32_t parts_at(struct sw_engine *engine, uint32_t parts, struct sw_share share, uint64_t mask)
{
	struct sw_ledger *ledger = &engine->ledger;
	struct sw_part part = ledger->parts[parts];
	uint32_t gpus = engine->topology->nodes[part.node].gpus;
	if (mask == part.mask || (gpus < 64 && mask >> gpus != 0))
		return SW_NO_PART;
	struct sw_spot spot;
	part.mask = mask;
	sw_spot_begin(&spot, ledger, share);
	if (sw_spot_put(&spot, &part))
		return spot.head;
	sw_spot_discard(&spot);
	return SW_NO_PART;
}

/* It holds these GPUs of its node instead of those that it has; false: it cannot. */
static bool take_instead(struct sw_engine *engine, struct sw_core_job *job, uint64_t mask)
{
	struct sw_ledger *ledger = &engine->ledger;
	struct sw_share share = sw_share_of(&job->seen);
	uint32_t before = job->parts, parts = parts_at(engine, before, share, mask);
	if (parts == SW_NO_PART)
		return false;
	sw_ledger_give(ledger, before, share);
	bool fits = sw_ledger_fits(ledger, parts, share);
	sw_ledger_take(ledger, fits ? parts : before, share);
	sw_ledger_drop_parts(ledger, fits ? before : parts);
	job->parts = fits ? parts : before;
	return fits;
}

void sw_move_on_wish(struct sw_engine *engine, struct sw_core_job *job, uint64_t mask)
{
	if (sw_engine_move_obstacle(engine, job->seen.id, (struct sw_gpus){SW_NO_NODE, mask}) != NULL)
		return;
	const struct sw_part *at = &engine->ledger.parts[job->parts];
	uint64_t from = at->mask;
	job->move_at = 0;
	if ((mask & ~from & engine->ledger.nodes[at->node].shut) != 0 || !take_instead(engine, job, mask))
		return;
	job->seen.migrations++;
	job->came_at = engine->now;
	sw_move_begin(engine, job, from, SW_REASON_MOVED);
	sw_alarm_drop(engine, job->seen.id.v);
	sw_tell_started(engine, job);
}

void sw_move_begin_anew(struct sw_engine *engine, struct sw_core_job *job)
{
	sw_engine_tell_stop(engine, job, SW_REASON_MOVED);
	sw_move_forget_run(engine, job);
	sw_engine_set_paused(engine, job, job->seen.paused); /* its run time, up to now */
	sw_engine_forget_work(engine, job);
	job->epoch++;
	job->keeps = SW_KEEPS_UNKNOWN;
	sw_engine_set_frees(engine, job, engine->config.terms.keeps_state);
	engine->went_on = true; /* its start names parts, which a later move could drop */
	sw_engine_command(engine, (struct sw_command){.kind = SW_CMD_START,
						      .job = job->seen.id.v,
						      .epoch = job->epoch,
						      .gpus = job->seen.gpus_held,
						      .parts = job->parts,
						      .config = job->config});
	sw_order_mark(engine, job);
	sw_order_refresh(engine, job);
}

void sw_move_lose(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.no_restart) {
		sw_engine_lose(engine, job, SW_REASON_NODE_LOST);
		return;
	}
	sw_move_begin_anew(engine, job);
	job->seen.restarts++;
}

/* Jobs that were given these GPUs of the node since the run began to leave them wait again. Those
 * that were there before stay, whatever became of them since. So do those that have begun, beside
 * one that is suspended or against their owner's word. */
static void send_away(struct sw_engine *engine, const struct sw_core_job *job, uint32_t node, uint64_t mask)
{
	for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
		const struct sw_gpu *gpu = &engine->ledger.gpus[engine->ledger.nodes[node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
		for (uint32_t r = gpu->residents; r-- > 0;) {
			struct sw_core_job *other = &engine->jobs.items[gpu->who[r]];
			bool stays = other == job || other->came_at < job->move_at || (job->stands != SW_NO_PART && other->begun);
			if (!stays && sw_engine_may_step_back(engine, other))
				sw_engine_step_back(engine, other);
		}
	}
}

void sw_move_turn_back(struct sw_engine *engine, struct sw_core_job *job, uint64_t dead)
{
	uint32_t at = parts_of(job);
	uint64_t mask = job->leaves;
	if (mask == 0)
		return;
	assert(at != SW_NO_PART && engine->ledger.parts[at].next == SW_NO_PART);
	/* What is dead is of no use to it. */
	bool returns = (mask & dead) == 0;
	if (returns)
		send_away(engine, job, engine->ledger.parts[at].node, mask);
	sw_move_arrive(engine, job);
	if (job->seen.state == SW_JOB_RUNNING) {
		job->move_at = engine->now > SW_TIME_NEVER - PAUSE_NS ? SW_TIME_NEVER : engine->now + PAUSE_NS;
		/* Those that are shut are still its own: a run that is on them stays. */
		if (!returns || !take_instead(engine, job, mask)) {
			sw_move_lose(engine, job);
			return;
		}
		job->came_at = 0; /* it never left them */
		sw_holds_lose_at(engine, engine->ledger.parts[job->parts].node, mask, job);
		command_move(engine, job, SW_REASON_BOUNCED);
		return;
	}
	if (!returns) {
		sw_engine_lose_home(engine, job, SW_REASON_NODE_LOST);
		return;
	}
	/* It stands where it was, whatever others have there by now. */
	uint32_t parts = parts_at(engine, job->home, sw_share_of(&job->seen), mask);
	if (parts == SW_NO_PART)
		return;
	sw_engine_forget_home(engine, job);
	sw_engine_set_home(engine, job, parts);
	command_move(engine, job, SW_REASON_BOUNCED);
	sw_tell_freed(engine, job);
}

/* ---- states of earlier versions */

void sw_engine_adopt_run(struct sw_engine *engine, struct sw_job_id id, const struct sw_engine_run *run)
{
	struct sw_core_job *job = &engine->jobs.items[id.v];
	uint32_t at = parts_of(job), before = job->epoch;
	bool moves = at != SW_NO_PART && engine->ledger.parts[at].next == SW_NO_PART && run->begun && run->leaves != 0;
	job->epoch = run->epoch;
	if (job->speed_epoch != before)
		job->speed_milli = 0;
	job->speed_epoch = run->epoch;
	sw_move_forget_run(engine, job);
	if (at == SW_NO_PART)
		return;
	job->begun = run->begun;
	set_leaves(engine, job, moves ? run->leaves : 0);
	job->move_at = run->move_at;
	job->told_at = moves ? run->move_at : 0;
	job->stood_at = job->stood_at == 0 ? run->stood_at : job->stood_at;
}
