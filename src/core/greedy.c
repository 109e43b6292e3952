/* The greedy decision: walk the jobs in order, let a job run that fits into what those ahead
 * left, let the others wait.
 *
 * Done plainly this costs a pass over all jobs and empties the cluster each time. rebuild() below
 * does just that, for worlds in which running jobs may be laid out anew for free. Otherwise it is
 * done by repair, and the cost follows what changed. Let avail(p) be the free GPUs plus those of
 * running jobs behind p. The set of running jobs is the greedy one exactly when
 *  1. no waiting job p has avail(p) >= gpus(p), and
 *  2. every running job fits into what those ahead of it leave.
 * (By induction along the order: the first job where another set differs breaks 1 or 2.) Jobs of
 * one lane are alike, so only the best waiting job of each lane can break 1. We repair the first
 * break in order: start p, taking from the tail of the running jobs what is missing. Since avail
 * grows towards the front, a walk from the tail ends early. It has seen enough at as many GPUs as
 * the largest waiting job wants, however long the queues are.
 *
 * Where the placement rule wants more than a count, the same walk lifts jobs from the tail until
 * the rule finds a spot. Then it puts back those that still fit where they were. When no spot is
 * found within LIFT_LIMIT jobs, the lane is given up for this decision.
 */
#include <assert.h>

#include "core/state.h"

#define LIFT_LIMIT 128u

struct greedy {
	struct sw_engine *engine;
	const struct sw_placement *rule; /* other than the engine's */
	uint32_t marks;			 /* of those that may give way; 0: all may, once they are protected no more */
	const struct sw_rank *one;	 /* only this job is to start */
	bool too_soon;			 /* a job behind it would give way, but is still protected */
	bool by_count;			 /* a count of free GPUs decides; spots are found at the end */
	int64_t free;			 /* by_count only: what is left for the jobs not yet placed */
	struct sw_candidate best;	 /* the first break */
};

static struct sw_core_job *job_at(struct greedy *g, uint32_t id)
{
	return &g->engine->jobs.items[id];
}

static struct sw_lane *lane_of(struct greedy *g, uint32_t id)
{
	return &g->engine->order.lanes.items[job_at(g, id)->lane];
}

static int64_t free_gpus(const struct greedy *g)
{
	return g->by_count ? g->free : g->engine->ledger.gpus_free;
}

/* ---- walking the running jobs from the tail */

/* One that the plan has stopped already stands in the order until the plan is carried out. */
static bool may_be_lifted(struct greedy *g, const struct sw_core_job *job)
{
	if (job->seen.state != SW_JOB_RUNNING)
		return false;
	enum sw_answer answer = sw_plan_may_stop(g->engine, job);
	if (answer == SW_YES)
		return true;
	if (answer == SW_TOO_SOON && g->one != NULL && !g->too_soon) {
		struct sw_rank rank = sw_order_rank(g->engine, job->seen.id.v);
		/* That of a closed node has no end. */
		g->too_soon = sw_rank_before(g->one, &rank) && !sw_ledger_touches_closed(&g->engine->ledger, job->parts);
	}
	return false;
}

/* Thousands that do not give way may be behind one that does: they cost no step. */
static uint32_t last_of(const struct greedy *g, const struct sw_lane *lane)
{
	return g->marks == 0 ? lane->running.last : sw_oset_last_marked(&lane->running, &g->engine->order.links, g->marks);
}

static uint32_t one_ahead(const struct greedy *g, uint32_t id)
{
	const struct sw_oset_links *links = &g->engine->order.links;
	return g->marks == 0 ? sw_oset_prev(links, id) : sw_oset_prev_marked(links, id, g->marks);
}

static void skip_protected(struct greedy *g, struct sw_lane *lane)
{
	while (lane->cursor != SW_OSET_NONE && !may_be_lifted(g, job_at(g, lane->cursor)))
		lane->cursor = one_ahead(g, lane->cursor);
}

static void tail_begin(struct greedy *g)
{
	struct sw_order_book *book = &g->engine->order;
	book->tails.count = 0;
	for (size_t l = 0; l < book->lanes.count; l++) {
		struct sw_lane *lane = &book->lanes.items[l];
		lane->cursor = last_of(g, lane);
		skip_protected(g, lane);
		if (lane->cursor == SW_OSET_NONE)
			continue;
		struct sw_tail *tail = sw_vec_push(&book->tails);
		if (tail != NULL) /* otherwise its jobs stay where they are */
			*tail = (struct sw_tail){sw_order_rank(g->engine, lane->cursor), lane->cursor};
	}
}

/* The last running job in order that was not seen yet; false at the end. */
static bool tail_peek(struct greedy *g, struct sw_rank *ret_rank)
{
	const struct sw_order_book *book = &g->engine->order;
	const struct sw_rank *last = NULL;
	for (size_t t = 0; t < book->tails.count; t++)
		if (last == NULL || sw_rank_before(last, &book->tails.items[t].rank))
			last = &book->tails.items[t].rank;
	if (last == NULL)
		return false;
	*ret_rank = *last;
	return true;
}

/* Steps over the job that was peeked at. */
static void tail_pass(struct greedy *g, uint32_t id)
{
	struct sw_order_book *book = &g->engine->order;
	struct sw_lane *lane = lane_of(g, id);
	lane->cursor = one_ahead(g, id);
	skip_protected(g, lane);
	for (size_t t = 0; t < book->tails.count; t++) {
		if (book->tails.items[t].job != id)
			continue;
		if (lane->cursor == SW_OSET_NONE)
			book->tails.items[t] = book->tails.items[--book->tails.count];
		else
			book->tails.items[t] = (struct sw_tail){sw_order_rank(g->engine, lane->cursor), lane->cursor};
		return;
	}
}

/* How many of those that are free for all a waiting job needs: what is held for it by now is its
 * own. */
static uint32_t need_of(const struct greedy *g, const struct sw_core_job *job)
{
	const struct sw_hold_row *hold = sw_hold_of(g->engine, job->seen.id.v);
	uint32_t own = hold != NULL && hold->in_force ? sw_ledger_count_gpus(&g->engine->ledger, hold->parts) : 0;
	return own < job->seen.gpus ? job->seen.gpus - own : 0;
}

/* How many GPUs are free once this job and all behind it that can be lifted are. A GPU that is
 * shared counts with the one that goes last. */
static uint32_t frees(struct greedy *g, const struct sw_rank *rank)
{
	const struct sw_ledger *ledger = &g->engine->ledger;
	const struct sw_core_job *job = job_at(g, rank->job);
	uint32_t count = 0;
	if (ledger->gpus_shared == 0)
		return job->seen.gpus_held;
	for (uint32_t p = job->parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu =
				&ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			bool last = true;
			for (uint32_t r = 0; r < gpu->residents && last; r++) {
				if (gpu->who[r] == rank->job)
					continue;
				struct sw_rank other = sw_order_rank(g->engine, gpu->who[r]);
				last = sw_rank_before(rank, &other) && sw_plan_may_stop(g->engine, job_at(g, gpu->who[r])) == SW_YES;
			}
			count += last;
		}
	}
	return count;
}

/* ---- finding the first break */

/* Of a lane for one job. */
static uint32_t lane_need(struct greedy *g, const struct sw_lane *lane)
{
	const struct sw_core_job *job = job_at(g, lane->lone - 1);
	return sw_plan_is_homebound(g->engine, job) ? lane->gpus : need_of(g, job);
}

static size_t gather(struct greedy *g)
{
	struct sw_order_book *book = &g->engine->order;
	if (sw_vec_reserve(&book->candidates, book->lanes.count + book->dropped.count) < 0)
		return 0; /* no decision is better than half of one */
	struct sw_candidate *candidates = book->candidates.items;
	size_t count = 0;
	for (size_t l = 0; l < book->lanes.count; l++) {
		struct sw_lane *lane = &book->lanes.items[l];
		if (lane->blocked || lane->waiting.first == SW_OSET_NONE)
			continue;
		if (!sw_engine_quota_allows(g->engine, &job_at(g, lane->waiting.first)->seen, lane->gpus)) {
			lane->blocked = true;
			continue;
		}
		uint32_t need = lane->lone == 0 ? lane->gpus : lane_need(g, lane);
		candidates[count++] = (struct sw_candidate){sw_order_rank(g->engine, lane->waiting.first), need};
	}
	for (size_t d = 0; d < book->dropped.count; d++) {
		uint32_t id = book->dropped.items[d];
		if (!lane_of(g, id)->blocked)
			candidates[count++] = (struct sw_candidate){sw_order_rank(g->engine, id), job_at(g, id)->seen.gpus};
	}
	return count;
}

/* Keeps the candidates of which it is open whether they are the first break. Those ask for more
 * than `avail`, have running jobs behind them still, and stand before the best that was found.
 * `tail` is the last of these running jobs, NULL at first. Returns how many. */
static size_t weed(struct greedy *g, size_t count, int64_t avail, const struct sw_rank *tail, bool *found)
{
	struct sw_candidate *candidates = g->engine->order.candidates.items;
	size_t open = 0;
	for (size_t c = 0; c < count; c++) {
		if (avail >= candidates[c].need && (!*found || sw_rank_before(&candidates[c].rank, &g->best.rank))) {
			g->best = candidates[c];
			*found = true;
		}
	}
	for (size_t c = 0; c < count; c++) {
		/* Nothing that runs is behind it any more: what it saw was all. */
		bool saw_all = tail != NULL && sw_rank_before(tail, &candidates[c].rank);
		if (avail < candidates[c].need && !saw_all && (!*found || sw_rank_before(&candidates[c].rank, &g->best.rank)))
			candidates[open++] = candidates[c];
	}
	return open;
}

static bool find_first_break(struct greedy *g)
{
	int64_t avail = free_gpus(g);
	bool found = false;
	size_t open = weed(g, gather(g), avail, NULL, &found);
	if (open == 0 || !g->engine->order.rule->preemptive)
		return found;
	tail_begin(g);
	struct sw_rank tail;
	while (open > 0 && tail_peek(g, &tail)) {
		open = weed(g, open, avail, &tail, &found);
		if (open == 0)
			break;
		avail += frees(g, &tail);
		tail_pass(g, tail.job);
		open = weed(g, open, avail, NULL, &found);
	}
	return found;
}

/* ---- repairing it */

/* One that ran before this decision and is laid out anew has the lease that it had. */
static void keep_lease(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->ranks_as_running && job->plan_slot != SW_NO_SLOT)
		job->seen.until = engine->plan.entries.items[job->plan_slot].until;
}

/* Where the rule says, or anywhere where that is a wish only; in the ledger as it is seen. */
static bool place_as_seen(struct greedy *g, struct sw_core_job *job)
{
	struct sw_engine *engine = g->engine;
	if (g->rule != NULL && !job->ranks_as_running)
		return sw_plan_put(&engine->plan, job, job->seen.gpus, g->rule) == SW_YES;
	enum sw_answer answer = sw_plan_put(&engine->plan, job, job->seen.gpus, engine->config.placement);
	if (answer == SW_NO_ROOM && !engine->config.placement->counts_only && sw_order_takes_any_place(engine))
		answer = sw_plan_put(&engine->plan, job, job->seen.gpus, NULL);
	if (answer == SW_YES)
		keep_lease(engine, job);
	return answer == SW_YES;
}

/* The same where the rule says, when all are laid out anew. */
static bool place_anew_as_seen(struct greedy *g, struct sw_core_job *job)
{
	struct sw_engine *engine = g->engine;
	if (sw_plan_put(&engine->plan, job, job->seen.gpus, engine->config.placement) != SW_YES)
		return false;
	keep_lease(engine, job);
	return true;
}

/* It may see its own hold, and where it goes on with its lease, GPUs that are held for others only
 * after that. Else what is held for any job is closed. */
static bool place_by(struct greedy *g, struct sw_core_job *job, bool (*put)(struct greedy *, struct sw_core_job *))
{
	if (g->one != NULL || !g->engine->shade.on)
		return put(g, job);
	bool runs_on = job->ranks_as_running && job->plan_slot != SW_NO_SLOT;
	sw_shade_lift(g->engine);
	sw_shade_cast(g->engine, job, runs_on ? g->engine->plan.entries.items[job->plan_slot].until : SW_TIME_NEVER);
	bool placed = put(g, job);
	sw_shade_lift(g->engine);
	sw_shade_cast(g->engine, NULL, SW_TIME_NEVER);
	return placed;
}

static bool place(struct greedy *g, struct sw_core_job *job)
{
	return place_by(g, job, place_as_seen);
}

/* While jobs are only counted, quotas must count them too. */
static void count_quota(struct greedy *g, const struct sw_core_job *job, bool more)
{
	if (g->by_count && g->engine->quotas && job->seen.job_class == SW_CLASS_GUARANTEED)
		g->engine->tenants.items[job->seen.tenant].held += more ? job->seen.gpus : -job->seen.gpus;
}

/* A job keeps its held GPUs in `seen` while it is only counted. */
static void lift(struct greedy *g, uint32_t id)
{
	if (g->by_count)
		g->free += job_at(g, id)->seen.gpus_held;
	else
		sw_plan_lift(&g->engine->plan, job_at(g, id));
}

static bool put_back(struct greedy *g, uint32_t id)
{
	struct sw_core_job *job = job_at(g, id);
	if (!g->by_count)
		return (!sw_plan_has_newcomer(g->engine, job) && sw_plan_put_back(&g->engine->plan, job)) ||
		       (g->engine->config.terms.moves == SW_MOVES_FREELY && place(g, job));
	if (g->free < job->seen.gpus_held)
		return false;
	g->free -= job->seen.gpus_held;
	return true;
}

static bool put(struct greedy *g, uint32_t id)
{
	struct sw_core_job *job = job_at(g, id);
	if (job->ranks_as_running)
		return put_back(g, id);
	if (!g->by_count)
		return place(g, job);
	if (g->free < job->seen.gpus)
		return false;
	g->free -= job->seen.gpus;
	return true;
}

static void forget_dropped(struct sw_order_book *book, uint32_t id)
{
	for (size_t d = 0; d < book->dropped.count; d++) {
		if (book->dropped.items[d] == id) {
			book->dropped.items[d] = book->dropped.items[--book->dropped.count];
			return;
		}
	}
}

/* The job leaves the waiting set or the dropped ones: it will run. */
static void choose(struct greedy *g, uint32_t id)
{
	struct sw_order_book *book = &g->engine->order;
	struct sw_core_job *job = job_at(g, id);
	if (job->order_set == SW_ORDER_WAITING) {
		sw_oset_remove(&lane_of(g, id)->waiting, &book->links, id);
		job->order_set = SW_ORDER_NOWHERE;
		if (g->by_count)
			*sw_vec_push(&book->chosen) = id;
		count_quota(g, job, true);
	} else {
		forget_dropped(book, id);
		count_quota(g, job, true);
		sw_order_restore(g->engine, job);
	}
}

static void drop(struct greedy *g, uint32_t id)
{
	struct sw_order_book *book = &g->engine->order;
	sw_oset_remove(&lane_of(g, id)->running, &book->links, id);
	job_at(g, id)->order_set = SW_ORDER_NOWHERE;
	*sw_vec_push(&book->dropped) = id;
	count_quota(g, job_at(g, id), false);
}

/* Whether the free GPUs and those of as many running jobs behind it as may be lifted would be
 * enough. Mostly they are not, and lifting them to see costs much more. */
static bool could_fit(struct greedy *g, const struct sw_candidate *wanted)
{
	int64_t avail = free_gpus(g);
	struct sw_rank tail;
	tail_begin(g);
	for (uint32_t lifted = 0;
	     avail < wanted->need && lifted < LIFT_LIMIT && tail_peek(g, &tail) && sw_rank_before(&wanted->rank, &tail); lifted++) {
		avail += frees(g, &tail);
		tail_pass(g, tail.job);
	}
	return avail >= wanted->need;
}

/* Lifts from the tail until the job fits; true if it does. Lifted jobs go to
 * book->scratch, last in order first. */
static bool make_room(struct greedy *g, const struct sw_candidate *wanted)
{
	struct sw_order_book *book = &g->engine->order;
	book->scratch.count = 0;
	/* One that was lifted may go back beside others, whatever is free. */
	if ((free_gpus(g) >= wanted->need || job_at(g, wanted->rank.job)->ranks_as_running) && put(g, wanted->rank.job))
		return true;
	if (!book->rule->preemptive || (!g->by_count && !could_fit(g, wanted)))
		return false;
	tail_begin(g);
	struct sw_rank tail;
	while (tail_peek(g, &tail) && sw_rank_before(&wanted->rank, &tail)) {
		uint32_t *slot = g->by_count || book->scratch.count < LIFT_LIMIT ? sw_vec_push(&book->scratch) : NULL;
		if (slot == NULL)
			return false;
		*slot = tail.job;
		tail_pass(g, tail.job);
		lift(g, tail.job);
		if (free_gpus(g) >= wanted->need && put(g, wanted->rank.job))
			return true;
	}
	return false;
}

static void repair(struct greedy *g, const struct sw_candidate *wanted)
{
	struct sw_order_book *book = &g->engine->order;
	bool fits = make_room(g, wanted);
	if (fits)
		choose(g, wanted->rank.job);
	else
		lane_of(g, wanted->rank.job)->blocked = true;
	for (size_t i = book->scratch.count; i-- > 0;)
		if (!put_back(g, book->scratch.items[i]))
			drop(g, book->scratch.items[i]);
}

/* Turns counts into spots: first all out that must go, then the chosen in order. */
static void place_chosen(struct greedy *g)
{
	struct sw_engine *engine = g->engine;
	struct sw_order_book *book = &engine->order;
	for (size_t d = 0; d < book->dropped.count; d++)
		count_quota(g, job_at(g, book->dropped.items[d]), true);
	for (size_t c = 0; c < book->chosen.count; c++)
		count_quota(g, job_at(g, book->chosen.items[c]), false);
	for (size_t d = 0; d < book->dropped.count; d++)
		sw_plan_lift(&engine->plan, job_at(g, book->dropped.items[d]));
	for (size_t c = 0; c < book->chosen.count; c++) {
		struct sw_core_job *job = job_at(g, book->chosen.items[c]);
		/* A count that does not hold, for whatever reason, leaves it waiting. */
		if (!place(g, job))
			sw_order_restore(engine, job);
	}
}

/* ---- one job ahead of others, for policies that choose themselves */

enum sw_answer sw_greedy_put_ahead(struct sw_plan *plan, struct sw_core_job *job, const struct sw_placement *rule, bool sparing)
{
	struct sw_engine *engine = plan->engine;
	struct sw_order_book *book = &engine->order;
	if (book->rule == NULL || !book->rule->preemptive)
		return sw_plan_misuse(plan);
	if (!sw_engine_quota_allows(engine, &job->seen, job->seen.gpus))
		return SW_OVER_QUOTA;
	struct greedy g = {.engine = engine, .rule = rule, .marks = engine->ruled > 0 ? SW_MARK_STOPS : 0};
	/* An opportunistic job stops others of its kind alone; one that is spared is guaranteed
	 * and would lose its run. */
	if (job->seen.job_class == SW_CLASS_OPPORTUNISTIC)
		g.marks = SW_MARK_YIELDS;
	else if (sparing && !engine->config.terms.keeps_state)
		g.marks = SW_MARK_YIELDS | SW_MARK_KEEPS;
	struct sw_candidate wanted = {sw_order_rank(engine, job->seen.id.v), need_of(&g, job)};
	g.one = &wanted.rank;
	bool fits = make_room(&g, &wanted);
	for (size_t i = book->scratch.count; i-- > 0;) {
		struct sw_core_job *lifted = job_at(&g, book->scratch.items[i]);
		/* Beside the one that it made room for, an opportunistic job would crawl. */
		if (sw_plan_put_back(plan, lifted) && fits && sw_jobs_meet(&engine->view, &lifted->seen, &job->seen))
			sw_plan_lift(plan, lifted);
	}
	return fits ? SW_YES : g.too_soon ? SW_TOO_SOON : SW_NO_ROOM;
}

/* ---- orders without preemption: only the waiting ones compete */

/* Where the first job that does not fit blocks, some of those behind it go on all the same. Their
 * runs stand on GPUs, or enough are held for them: the first may wait for what they have. */
static bool passes_head(struct greedy *g, const struct sw_lane *lane)
{
	const struct sw_core_job *job = lane->lone != 0 ? job_at(g, lane->lone - 1) : NULL;
	return job != NULL && (sw_plan_is_homebound(g->engine, job) || sw_hold_suffices(g->engine, job, job->seen.gpus));
}

static void start_in_order(struct greedy *g)
{
	struct sw_order_book *book = &g->engine->order;
	bool only_standing = false, held = g->engine->holds.count > 0;
	while ((free_gpus(g) > 0 || held) && (!only_standing || g->engine->standers > 0 || held)) {
		struct sw_rank head;
		bool found = false;
		for (size_t l = 0; l < book->lanes.count; l++) {
			struct sw_lane *lane = &book->lanes.items[l];
			if (lane->blocked || lane->waiting.first == SW_OSET_NONE || (only_standing && !passes_head(g, lane)))
				continue;
			uint32_t need = lane->lone == 0 ? lane->gpus : lane_need(g, lane);
			if (need > free_gpus(g) && !book->rule->head_blocks)
				continue;
			struct sw_rank rank = sw_order_rank(g->engine, lane->waiting.first);
			if (!found || sw_rank_before(&rank, &head))
				head = rank;
			found = true;
		}
		if (!found)
			return;
		if (sw_engine_quota_allows(g->engine, &job_at(g, head.job)->seen, job_at(g, head.job)->seen.gpus) && put(g, head.job))
			choose(g, head.job);
		else
			lane_of(g, head.job)->blocked = true;
		only_standing |= book->rule->head_blocks && lane_of(g, head.job)->blocked;
	}
}

/* ---- laying everything out anew */

/* The next job in order, running or waiting, from the lanes' two cursors. */
static bool next_in_order(struct greedy *g, struct sw_rank *ret_rank)
{
	struct sw_order_book *book = &g->engine->order;
	bool found = false;
	for (size_t l = 0; l < book->lanes.count; l++) {
		uint32_t heads[2] = {book->lanes.items[l].cursor, book->lanes.items[l].cursor_waiting};
		for (int i = 0; i < 2; i++) {
			if (heads[i] == SW_OSET_NONE)
				continue;
			struct sw_rank rank = sw_order_rank(g->engine, heads[i]);
			if (!found || sw_rank_before(&rank, ret_rank))
				*ret_rank = rank;
			found = true;
		}
	}
	return found;
}

/* What the policy has started in this plan competes no more; settling the order lists it again. */
static void pass_over_started(struct greedy *g)
{
	struct sw_engine *engine = g->engine;
	for (size_t e = 0; e < engine->plan.entries.count; e++) {
		struct sw_core_job *job = job_at(g, engine->plan.entries.items[e].before.id.v);
		if (job->order_set != SW_ORDER_WAITING || sw_job_is_waiting(&job->seen))
			continue;
		sw_oset_remove(&lane_of(g, job->seen.id.v)->waiting, &engine->order.links, job->seen.id.v);
		job->order_set = SW_ORDER_NOWHERE;
	}
}

static void rebuild(struct greedy *g)
{
	struct sw_engine *engine = g->engine;
	struct sw_order_book *book = &engine->order;
	for (size_t l = 0; l < book->lanes.count; l++) {
		struct sw_lane *lane = &book->lanes.items[l];
		lane->cursor = lane->running.first;
		lane->cursor_waiting = lane->waiting.first;
		for (uint32_t id = lane->running.first; id != SW_OSET_NONE; id = sw_oset_next(&book->links, id))
			if (may_be_lifted(g, job_at(g, id)))
				sw_plan_lift(&engine->plan, job_at(g, id));
	}
	struct sw_rank head;
	while (next_in_order(g, &head)) {
		struct sw_core_job *job = job_at(g, head.job);
		struct sw_lane *lane = lane_of(g, head.job);
		if (job->ranks_as_running)
			lane->cursor = sw_oset_next(&book->links, head.job);
		else
			lane->cursor_waiting = sw_oset_next(&book->links, head.job);
		if (job->seen.state == SW_JOB_RUNNING)
			continue; /* protected: it stayed */
		if (lane->blocked || !sw_engine_quota_allows(engine, &job->seen, job->seen.gpus) || !place_by(g, job, place_anew_as_seen)) {
			lane->blocked = true;
			lane->cursor_waiting = SW_OSET_NONE; /* none behind it fits either */
		}
	}
}

static void decide(struct sw_engine *engine)
{
	struct sw_order_book *book = &engine->order;
	const struct sw_order *rule = book->rule;
	if (rule == NULL || book->lanes.count == 0)
		return;
	const struct sw_placement *placement = engine->config.placement;
	struct greedy g = {
		.engine = engine,
		.by_count = (placement->counts_only || sw_order_takes_any_place(engine)) && !book->uneven &&
			    engine->ledger.gpus_shared == 0 && engine->standers == 0 && engine->holds.count == 0,
		.free = engine->ledger.gpus_free,
		.marks = engine->ruled > 0 ? SW_MARK_STOPS : 0,
	};
	pass_over_started(&g);
	bool anew = rule->preemptive && engine->config.terms.replace_is_free && !g.by_count;
	if (engine->waiting.count == 0 && !anew)
		return;
	for (size_t l = 0; l < book->lanes.count; l++)
		book->lanes.items[l].blocked = false;
	book->dropped.count = 0;
	book->chosen.count = 0;
	if (anew) {
		rebuild(&g);
	} else if (!rule->preemptive) {
		start_in_order(&g);
	} else {
		while (find_first_break(&g)) {
			struct sw_candidate wanted = g.best;
			repair(&g, &wanted);
		}
	}
	if (g.by_count)
		place_chosen(&g);
}

void sw_greedy_decide(struct sw_engine *engine)
{
	bool shaded = sw_shade_cast(engine, NULL, SW_TIME_NEVER);
	decide(engine);
	if (!shaded)
		return;
	sw_shade_lift(engine);
	/* What those that started have left of their holds is for the next decision. */
	if (sw_holds_end_of_starters(engine))
		sw_plan_again(&engine->plan);
}
