/* Holds: GPUs that are kept free for a job that waits, from now on or from a moment to come.
 *
 * A hold that is in force is in the ledger: its GPUs are free to no wish. One that is to come is
 * not: other runs may use its GPUs until then. So while a place is looked for one job, the ledger
 * is seen as this job may see it. That is without its own hold, and with the holds of others that
 * begin before its lease ends. This is a shade, which is cast before the search and lifted after
 * it.
 *
 * Rows are sorted by job. One whose parts are gone is over. It goes at the end of the decision,
 * once its job is in the right lane of the order.
 *
 * Invariants (sw_engine_validate() checks them, as number 14):
 *  1. between decisions every row is of a job that waits, and ends after now. It is in force
 *     exactly if it has begun. Its nodes are up and take jobs;
 *  2. no two holds of one GPU overlap in time;
 *  3. a run on GPUs that are held for another job has a lease that ends before the hold begins.
 */
#include <assert.h>
#include <string.h>

#include "core/state.h"

/* ---- rows */

/* Where the row of this job is, or would be. */
static size_t place_of(const struct sw_engine *engine, uint32_t job)
{
	size_t low = 0, high = engine->holds.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (engine->holds.items[middle].job < job)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct sw_hold_row *find_row(const struct sw_engine *engine, uint32_t job)
{
	size_t at = place_of(engine, job);
	return at < engine->holds.count && engine->holds.items[at].job == job ? &engine->holds.items[at] : NULL;
}

const struct sw_hold_row *sw_hold_of(const struct sw_engine *engine, uint32_t job)
{
	const struct sw_hold_row *row = engine->holds.count > 0 ? find_row(engine, job) : NULL;
	return row != NULL && row->parts != SW_NO_PART ? row : NULL;
}

bool sw_job_hold(const struct sw_view *view, const struct sw_job *seen, struct sw_hold *ret_hold)
{
	const struct sw_core_job *job = sw_engine_own(view->engine, seen);
	const struct sw_hold_row *row = job != NULL ? sw_hold_of(view->engine, job->seen.id.v) : NULL;
	if (row != NULL && ret_hold != NULL)
		*ret_hold = (struct sw_hold){row->from, row->to, sw_ledger_count_gpus(&view->engine->ledger, row->parts)};
	return row != NULL;
}

static void note_next(struct sw_engine *engine)
{
	engine->hold_at = SW_TIME_NEVER;
	for (size_t h = 0; h < engine->holds.count; h++) {
		const struct sw_hold_row *row = &engine->holds.items[h];
		sw_ns next = row->parts == SW_NO_PART ? SW_TIME_NEVER : row->in_force ? row->to : row->from;
		engine->hold_at = next < engine->hold_at ? next : engine->hold_at;
	}
}

static void remove_row(struct sw_engine *engine, size_t at)
{
	struct sw_hold_row *rows = engine->holds.items;
	memmove(&rows[at], &rows[at + 1], (engine->holds.count - at - 1) * sizeof *rows);
	engine->holds.count--;
}

static uint32_t count_parts(const struct sw_engine *engine, uint32_t parts)
{
	uint32_t count = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		count++;
	return count;
}

/* Its GPUs are kept no more; the row stays. */
static void let_go(struct sw_engine *engine, struct sw_hold_row *row)
{
	if (row->in_force)
		sw_ledger_keep(&engine->ledger, row->parts, false);
	engine->hold_parts -= count_parts(engine, row->parts);
	sw_ledger_drop_parts(&engine->ledger, row->parts);
	row->parts = SW_NO_PART;
	row->in_force = false;
}

struct sw_hold_row *sw_hold_put(struct sw_engine *engine, struct sw_hold_row row)
{
	size_t at = place_of(engine, row.job);
	if (at == engine->holds.count || engine->holds.items[at].job != row.job) {
		if (sw_vec_push(&engine->holds) == NULL)
			return NULL;
		struct sw_hold_row *rows = engine->holds.items;
		memmove(&rows[at + 1], &rows[at], (engine->holds.count - 1 - at) * sizeof *rows);
	} else if (engine->holds.items[at].parts != SW_NO_PART) {
		let_go(engine, &engine->holds.items[at]);
	}
	row.in_force = row.from <= engine->now;
	if (row.in_force)
		sw_ledger_keep(&engine->ledger, row.parts, true);
	engine->hold_parts += count_parts(engine, row.parts);
	engine->holds.items[at] = row;
	note_next(engine);
	return &engine->holds.items[at];
}

/* ---- shades */

/* `until` is when the job will have left; NULL: for every job without a lease. */
static void see_as(struct sw_engine *engine, const struct sw_shade *shade, bool on)
{
	for (size_t h = 0; h < engine->holds.count; h++) {
		const struct sw_hold_row *row = &engine->holds.items[h];
		bool closed = row->job != shade->job && row->from < shade->until;
		if (row->parts != SW_NO_PART && closed != row->in_force)
			sw_ledger_keep(&engine->ledger, row->parts, closed == on);
	}
}

/* Of a job that may have to leave at the end of its lease. */
static bool leaves_by_rule(const struct sw_engine *engine, const struct sw_job *job)
{
	if (engine->config.terms.keeps_state)
		return job->stop_rule != SW_STOP_NEVER;
	return !job->no_restart && (job->stop_rule == SW_STOP_AS_WORLD || job->stop_rule == SW_STOP_RESTART);
}

bool sw_shade_cast(struct sw_engine *engine, const struct sw_core_job *job, sw_ns until)
{
	if (engine->holds.count == 0 || engine->shade.on)
		return false;
	bool leaves = job != NULL && leaves_by_rule(engine, &job->seen);
	/* A lease that is over opens nothing that is closed now. */
	sw_ns last = until > engine->now ? until : engine->now + 1;
	engine->shade = (struct sw_shade){true, job != NULL ? job->seen.id.v : UINT32_MAX, leaves ? last : SW_TIME_NEVER};
	see_as(engine, &engine->shade, true);
	return true;
}

void sw_shade_lift(struct sw_engine *engine)
{
	assert(engine->shade.on);
	see_as(engine, &engine->shade, false);
	engine->shade.on = false;
}

bool sw_hold_closes(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t node, uint64_t mask, sw_ns until)
{
	const struct sw_part *all = engine->ledger.parts;
	for (size_t h = 0; h < engine->holds.count; h++) {
		const struct sw_hold_row *row = &engine->holds.items[h];
		if (row->job == job->seen.id.v || row->from >= until)
			continue;
		for (uint32_t p = row->parts; p != SW_NO_PART; p = all[p].next)
			if (all[p].node == node && (all[p].mask & mask) != 0)
				return true;
	}
	return false;
}

bool sw_hold_closes_parts(const struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts, sw_ns until)
{
	for (uint32_t p = engine->holds.count > 0 ? parts : SW_NO_PART; p != SW_NO_PART; p = engine->ledger.parts[p].next)
		if (sw_hold_closes(engine, job, engine->ledger.parts[p].node, engine->ledger.parts[p].mask, until))
			return true;
	return false;
}

/* ---- the end of a hold */

/* Between decisions: at once, and the policy hears of it where the job waits on. */
static void lose(struct sw_engine *engine, size_t at)
{
	struct sw_core_job *job = &engine->jobs.items[engine->holds.items[at].job];
	let_go(engine, &engine->holds.items[at]);
	remove_row(engine, at);
	note_next(engine);
	sw_tell_change(engine, SW_CHANGE_CAPACITY | SW_CHANGE_HOLDS);
	if (job->seen.state > SW_JOB_RUNNING)
		return;
	sw_order_move_lane(engine, job);
	if (sw_job_is_waiting(&job->seen))
		sw_tell_hold_over(engine, job);
}

void sw_hold_lose(struct sw_engine *engine, const struct sw_core_job *job)
{
	if (sw_hold_of(engine, job->seen.id.v) != NULL)
		lose(engine, place_of(engine, job->seen.id.v));
}

void sw_holds_lose_at(struct sw_engine *engine, uint32_t node, uint64_t mask, const struct sw_core_job *but)
{
	sw_ns until = but != NULL ? but->seen.until : SW_TIME_NEVER;
	for (size_t h = 0; h < engine->holds.count;) {
		const struct sw_hold_row *row = &engine->holds.items[h];
		bool touched = false;
		for (uint32_t p = row->from < until ? row->parts : SW_NO_PART; p != SW_NO_PART; p = engine->ledger.parts[p].next)
			touched |= engine->ledger.parts[p].node == node && (engine->ledger.parts[p].mask & mask) != 0;
		if (touched)
			lose(engine, h);
		else
			h++;
	}
}

bool sw_holds_touch(const struct sw_engine *engine, uint32_t node)
{
	for (size_t h = 0; h < engine->holds.count; h++)
		if (sw_ledger_touches(&engine->ledger, engine->holds.items[h].parts, node))
			return true;
	return false;
}

void sw_holds_drop(struct sw_engine *engine)
{
	for (size_t h = 0; h < engine->holds.count; h++)
		let_go(engine, &engine->holds.items[h]);
	engine->holds.count = 0;
	engine->hold_at = SW_TIME_NEVER;
}

void sw_holds_pass(struct sw_engine *engine)
{
	if (engine->hold_at > engine->now)
		return;
	for (size_t h = 0; h < engine->holds.count;) {
		struct sw_hold_row *row = &engine->holds.items[h];
		if (row->to <= engine->now) {
			lose(engine, h);
			continue;
		}
		if (!row->in_force && row->from <= engine->now) {
			row->in_force = true;
			sw_ledger_keep(&engine->ledger, row->parts, true);
			sw_tell_change(engine, SW_CHANGE_HOLDS);
		}
		h++;
	}
	note_next(engine);
}

/* ---- within a decision */

bool sw_holds_end_of_starters(struct sw_engine *engine)
{
	bool more = false;
	for (size_t h = 0; h < engine->holds.count; h++) {
		struct sw_hold_row *row = &engine->holds.items[h];
		const struct sw_core_job *job = &engine->jobs.items[row->job];
		if (row->parts == SW_NO_PART || sw_job_is_waiting(&job->seen))
			continue;
		more |= !sw_ledger_same_gpus(&engine->ledger, row->parts, job->parts);
		let_go(engine, row);
		engine->plan.holds_changed = true;
	}
	if (engine->plan.holds_changed)
		note_next(engine);
	return more;
}

void sw_holds_settle(struct sw_engine *engine)
{
	if (!engine->plan.holds_changed)
		return;
	for (size_t h = 0; h < engine->holds.count; h++) {
		struct sw_core_job *job = &engine->jobs.items[engine->holds.items[h].job];
		if (job->seen.state <= SW_JOB_RUNNING)
			sw_order_move_lane(engine, job);
	}
	size_t left = 0;
	for (size_t h = 0; h < engine->holds.count; h++)
		if (engine->holds.items[h].parts != SW_NO_PART)
			engine->holds.items[left++] = engine->holds.items[h];
	engine->holds.count = left;
	engine->plan.holds_changed = false;
	note_next(engine);
}

enum sw_answer sw_hold_release(struct sw_plan *plan, const struct sw_core_job *job)
{
	struct sw_hold_row *row = plan->engine->holds.count > 0 ? find_row(plan->engine, job->seen.id.v) : NULL;
	if (row == NULL || row->parts == SW_NO_PART)
		return SW_YES;
	let_go(plan->engine, row);
	plan->holds_changed = true;
	note_next(plan->engine);
	return SW_YES;
}
