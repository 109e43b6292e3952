/* The order that the core keeps for a policy: lanes of alike jobs, each with the running and
 * the waiting ones sorted.
 *
 * Not here: which jobs run (greedy.c).
 *
 * The place of a job among jobs with equal keys is its stamp. Stamps imitate one list, sorted
 * stably at every decision. New jobs join at its end (SW_TIES_WAITING_FIRST), or every decision
 * splits it into those that run and those that do not (SW_TIES_RUNNING_FIRST). Because keys of
 * running jobs fall at one speed within a lane, two jobs of one set keep their order as time
 * passes. Nothing needs to be sorted again.
 */
#include <assert.h>
#include <stdlib.h>

#include "core/state.h"

/* A stamp: number of the decision, a bit for jobs that are new to it, and an index. */
#define STAMP_SHIFT 25
#define STAMP_FRESH (INT64_C(1) << 24)
#define STAMP_INDEX_MAX (STAMP_FRESH - 1)

int sw_order_reserve(struct sw_engine *engine, uint32_t touched, uint32_t jobs, uint32_t ids)
{
	struct sw_order_book *book = &engine->order;
	if (sw_vec_reserve(&book->fresh, jobs) < 0 || sw_vec_reserve(&book->chosen, touched) < 0 ||
	    sw_vec_reserve(&book->dropped, touched) < 0 || sw_vec_reserve(&book->scratch, touched) < 0 ||
	    sw_vec_reserve(&book->ranked, touched) < 0)
		return SW_ENOMEM;
	return sw_oset_links_reserve(&book->links, ids);
}

void sw_order_release(struct sw_order_book *book)
{
	sw_vec_free(&book->lanes);
	sw_oset_links_release(&book->links);
	sw_vec_free(&book->fresh);
	sw_vec_free(&book->scratch);
	sw_vec_free(&book->dropped);
	sw_vec_free(&book->chosen);
	sw_vec_free(&book->ranked);
	sw_vec_free(&book->candidates);
	sw_vec_free(&book->tails);
}

uint32_t sw_order_lone(const struct sw_engine *engine, const struct sw_core_job *job)
{
	return sw_plan_is_homebound(engine, job) || sw_hold_of(engine, job->seen.id.v) != NULL ? job->seen.id.v + 1 : 0;
}

static struct sw_lane lane_for(const struct sw_engine *engine, const struct sw_core_job *own)
{
	const struct sw_job *job = &own->seen;
	struct sw_lane lane = {
		.gpus = job->gpus,
		.cpus = own->asked_cpus,
		.host_memory_bytes = own->asked_host_bytes,
		.avoid = own->avoid,
		.lone = sw_order_lone(engine, own),
		.running = sw_oset_empty(),
		.waiting = sw_oset_empty(),
	};
	if (sw_plan_is_homebound(engine, own))
		lane.gpus = sw_ledger_count_gpus(&engine->ledger, own->home);
	/* A whole GPU is large enough for most: then how much of it a job uses does
	 * not matter to its place. */
	if (job->gpu_memory_bytes > engine->topology->gpu_memory_min_bytes)
		lane.gpu_memory_bytes = job->gpu_memory_bytes;
	if (engine->config.placement->kind != NULL)
		lane.kind = engine->config.placement->kind(&engine->view, job);
	bool by_class = engine->order.rule != NULL && engine->order.rule->by_class;
	if (engine->quotas || by_class)
		lane.guaranteed = job->asked_class == SW_CLASS_GUARANTEED;
	lane.is_auto = by_class && job->is_auto;
	if (engine->quotas)
		lane.tenant = job->tenant;
	return lane;
}

static bool same_lane(const struct sw_lane *a, const struct sw_lane *b)
{
	return a->gpus == b->gpus && a->kind == b->kind && a->cpus == b->cpus && a->tenant == b->tenant &&
	       a->host_memory_bytes == b->host_memory_bytes && a->gpu_memory_bytes == b->gpu_memory_bytes &&
	       a->guaranteed == b->guaranteed && a->is_auto == b->is_auto && a->avoid == b->avoid && a->lone == b->lone;
}

bool sw_order_takes_any_place(const struct sw_engine *engine)
{
	return engine->fell_back || (engine->order.rule != NULL && engine->order.rule->placement_is_wish);
}

int sw_order_assign_lane(struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_order_book *book = &engine->order;
	struct sw_lane wanted = lane_for(engine, job);
	size_t unused = SIZE_MAX;
	for (size_t l = 0; l < book->lanes.count; l++) {
		if (same_lane(&book->lanes.items[l], &wanted)) {
			job->lane = (uint32_t)l;
			book->lanes.items[l].members++;
			return 0;
		}
		/* Those that keep off a node come and go; so do those of one job. */
		if (book->lanes.items[l].members == 0 && (book->lanes.items[l].avoid != UINT32_MAX || book->lanes.items[l].lone != 0))
			unused = l;
	}
	struct sw_spot spot;
	if (job->avoid != UINT32_MAX)
		sw_ledger_set_closed(&engine->empty, job->avoid, true);
	/* As it is when it waits: its run may be set up otherwise. */
	struct sw_config config = job->config;
	sw_config_put(job, &(struct sw_config){0});
	sw_spot_begin(&spot, &engine->empty, sw_share_of(&job->seen));
	wanted.possible =
		engine->config.placement->place(&engine->empty_view, &job->seen, job->seen.gpus, &spot) && spot.gpus == job->seen.gpus;
	if (!wanted.possible && sw_order_takes_any_place(engine)) {
		sw_spot_clear(&spot);
		wanted.possible = sw_spot_fill(&engine->empty_view, &spot, job->seen.gpus);
	}
	sw_spot_discard(&spot);
	sw_config_put(job, &config);
	if (job->avoid != UINT32_MAX)
		sw_ledger_set_closed(&engine->empty, job->avoid, false);
	struct sw_lane *lane = spot.failed ? NULL : unused < SIZE_MAX ? &book->lanes.items[unused] : sw_vec_push(&book->lanes);
	if (lane == NULL)
		return SW_ENOMEM;
	*lane = wanted;
	lane->members = 1;
	/* A count of free GPUs says too little where some of them are no good. */
	book->uneven |= wanted.gpu_memory_bytes > 0 || wanted.avoid != UINT32_MAX || sw_plan_is_homebound(engine, job);
	job->lane = (uint32_t)(lane - book->lanes.items);
	return 0;
}

static int64_t index_below_fresh(int64_t index)
{
	return index < STAMP_INDEX_MAX ? index : STAMP_INDEX_MAX;
}

/* A stamp behind all others. */
static int64_t last_stamp(struct sw_order_book *book)
{
	if (book->rule->ties == SW_TIES_BY_ARRIVAL)
		return 0;
	return (book->seq << STAMP_SHIFT) + STAMP_FRESH + index_below_fresh(book->fresh_index++);
}

uint32_t sw_order_marks(const struct sw_engine *engine, const struct sw_core_job *job)
{
	if (job->order_set == SW_ORDER_WAITING)
		return job->seen.fresh ? SW_MARK_FRESH : 0;
	uint32_t stops = engine->had_rules ? SW_MARK_STOPS : 0;
	/* One that is not known yet may be stopped a little later, as one in its quantum. */
	if (stops != 0 && sw_plan_stays(engine, job) && (!sw_rule_suspends(&job->seen) || job->keeps == SW_KEEPS_NOT))
		return 0;
	if (job->seen.job_class == SW_CLASS_OPPORTUNISTIC)
		return stops | SW_MARK_YIELDS;
	return job->prefers_home ? stops | SW_MARK_KEEPS : stops;
}

static int64_t key_now(struct sw_engine *engine, struct sw_core_job *job)
{
	int64_t key = engine->policy->key != NULL ? engine->policy->key(&engine->view, &job->seen) : 0;
	/* A falling key is kept as the moment when it reaches zero. */
	if (engine->order.rule->key_counts_down && job->seen.state == SW_JOB_RUNNING && key <= INT64_MAX - engine->now)
		key += engine->now;
	return key;
}

void sw_order_mark(struct sw_engine *engine, const struct sw_core_job *job)
{
	if (job->order_set != SW_ORDER_NOWHERE)
		sw_oset_mark(&engine->order.links, job->seen.id.v, sw_order_marks(engine, job));
}

void sw_order_mark_running(struct sw_engine *engine)
{
	for (uint32_t id = sw_bitmap_next(&engine->running, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(&engine->running, id + 1))
		sw_order_mark(engine, &engine->jobs.items[id]);
}

void sw_order_list(struct sw_engine *engine, struct sw_core_job *job, enum sw_order_set set, int64_t key, int64_t stamp)
{
	struct sw_order_book *book = &engine->order;
	struct sw_lane *lane = &book->lanes.items[job->lane];
	sw_oset_insert(set == SW_ORDER_RUNNING ? &lane->running : &lane->waiting, &book->links, job->seen.id.v, key, stamp);
	job->order_set = (uint8_t)set;
	sw_order_mark(engine, job);
}

static void insert(struct sw_engine *engine, struct sw_core_job *job, int64_t stamp)
{
	bool runs = job->seen.state == SW_JOB_RUNNING;
	job->ranks_as_running = runs;
	if (runs && !engine->order.rule->preemptive)
		return; /* running jobs do not compete */
	sw_order_list(engine, job, runs ? SW_ORDER_RUNNING : SW_ORDER_WAITING, key_now(engine, job), stamp);
}

static void take_out(struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_lane *lane = &engine->order.lanes.items[job->lane];
	if (job->order_set == SW_ORDER_RUNNING)
		sw_oset_remove(&lane->running, &engine->order.links, job->seen.id.v);
	else if (job->order_set == SW_ORDER_WAITING)
		sw_oset_remove(&lane->waiting, &engine->order.links, job->seen.id.v);
	job->order_set = SW_ORDER_NOWHERE;
}

void sw_order_leave_lane(struct sw_engine *engine, const struct sw_core_job *job)
{
	engine->order.lanes.items[job->lane].members--;
}

int sw_order_change_lane(struct sw_engine *engine, struct sw_core_job *job)
{
	bool listed = engine->order.rule != NULL && job->order_set != SW_ORDER_NOWHERE;
	int64_t stamp = listed ? engine->order.links.items[job->seen.id.v].stamp : 0;
	if (listed)
		take_out(engine, job);
	sw_order_leave_lane(engine, job);
	int r = sw_order_assign_lane(engine, job);
	if (r == 0 && listed)
		insert(engine, job, stamp);
	return r;
}

bool sw_order_is_in_its_lane(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_lane *lane = &engine->order.lanes.items[job->lane];
	uint32_t gpus = sw_plan_is_homebound(engine, job) ? sw_ledger_count_gpus(&engine->ledger, job->home) : job->seen.gpus;
	return lane->lone == sw_order_lone(engine, job) && lane->gpus == gpus;
}

int sw_order_relane(struct sw_engine *engine, struct sw_core_job *job)
{
	if (sw_order_is_in_its_lane(engine, job))
		return 0;
	sw_order_leave_lane(engine, job);
	return sw_order_assign_lane(engine, job);
}

void sw_order_move_lane(struct sw_engine *engine, struct sw_core_job *job)
{
	const struct sw_oset_link place = engine->order.links.items[job->seen.id.v];
	enum sw_order_set set = job->order_set;
	if (sw_order_is_in_its_lane(engine, job))
		return;
	take_out(engine, job);
	sw_order_leave_lane(engine, job);
	int r = sw_order_assign_lane(engine, job);
	assert(r == 0); /* reserved by the step */
	(void)r;
	if (set != SW_ORDER_NOWHERE)
		sw_order_list(engine, job, set, place.key, place.stamp);
}

static void mark_fresh(struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.fresh)
		return;
	uint32_t *slot = sw_vec_push(&engine->order.fresh);
	assert(slot != NULL); /* reserved at submit */
	*slot = job->seen.id.v;
	job->seen.fresh = 1;
}

void sw_order_add(struct sw_engine *engine, struct sw_core_job *job)
{
	if (engine->order.rule == NULL)
		return;
	mark_fresh(engine, job);
	insert(engine, job, last_stamp(&engine->order));
}

void sw_order_remove(struct sw_engine *engine, struct sw_core_job *job)
{
	if (engine->order.rule != NULL)
		take_out(engine, job);
}

void sw_order_refresh(struct sw_engine *engine, struct sw_core_job *job)
{
	if (engine->order.rule == NULL || job->order_set == SW_ORDER_NOWHERE)
		return;
	int64_t stamp = engine->order.links.items[job->seen.id.v].stamp;
	take_out(engine, job);
	insert(engine, job, stamp);
}

void sw_order_restore(struct sw_engine *engine, struct sw_core_job *job)
{
	const struct sw_oset_link *link = &engine->order.links.items[job->seen.id.v];
	sw_order_list(engine, job, job->ranks_as_running ? SW_ORDER_RUNNING : SW_ORDER_WAITING, link->key, link->stamp);
}

void sw_order_use(struct sw_view *view, const struct sw_order *order)
{
	view->engine->order.rule = order;
}

void sw_order_rekey(struct sw_view *view, const struct sw_job *seen)
{
	struct sw_engine *engine = view->engine;
	struct sw_core_job *job = sw_engine_own(engine, seen);
	if (job == NULL)
		return;
	/* While a plan is made ranks are frozen: the next decision asks for keys anyway. */
	if (engine->order.rule == NULL || job->order_set == SW_ORDER_NOWHERE || job->plan_slot != SW_NO_SLOT)
		return;
	take_out(engine, job);
	mark_fresh(engine, job);
	insert(engine, job, last_stamp(&engine->order));
}

struct sw_rank sw_order_rank(const struct sw_engine *engine, uint32_t id)
{
	const struct sw_order_book *book = &engine->order;
	const struct sw_core_job *job = &engine->jobs.items[id];
	const struct sw_oset_link *link = &book->links.items[id];
	struct sw_rank rank = {.key = link->key, .stamp = link->stamp, .job = id};
	if (book->rule->key_counts_down && job->ranks_as_running)
		rank.key -= engine->now;
	if (book->rule->key_times_gpus)
		rank.key *= job->seen.gpus;
	if (book->rule->ties == SW_TIES_BY_ARRIVAL)
		rank.group = 0;
	else if (job->seen.fresh)
		rank.group = UINT32_MAX;
	else if (book->exact)
		rank.group = 0;
	else if (book->rule->ties == SW_TIES_RUNNING_FIRST)
		rank.group = !job->ranks_as_running;
	else /* Keys that meet come from above and from below: the one that falls faster was behind until now. */
		rank.group = !job->ranks_as_running ? 0 : book->rule->key_times_gpus ? job->seen.gpus : 1;
	return rank;
}

bool sw_rank_before(const struct sw_rank *a, const struct sw_rank *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	if (a->group != b->group)
		return a->group < b->group;
	if (a->stamp != b->stamp)
		return a->stamp < b->stamp;
	return a->job < b->job;
}

static uint32_t first_waiting(const struct sw_order_book *book, const struct sw_lane *lane, bool fresh)
{
	return fresh ? sw_oset_first_marked(&lane->waiting, &book->links, SW_MARK_FRESH) : lane->waiting.first;
}

static uint32_t next_waiting(const struct sw_order_book *book, uint32_t job, bool fresh)
{
	return fresh ? sw_oset_next_marked(&book->links, job, SW_MARK_FRESH) : sw_oset_next(&book->links, job);
}

/* The next waiting job, or the next that is new. */
static const struct sw_job *walk(struct sw_plan *plan, bool skip_alike, bool fresh)
{
	struct sw_engine *engine = plan->engine;
	struct sw_order_book *book = &engine->order;
	if (book->rule == NULL) {
		plan->misuses++;
		return NULL;
	}
	if (!plan->walks)
		for (size_t l = 0; l < book->lanes.count; l++)
			book->lanes.items[l].cursor_waiting = first_waiting(book, &book->lanes.items[l], fresh);
	else if (plan->walked != SW_OSET_NONE)
		book->lanes.items[engine->jobs.items[plan->walked].lane].cursor_waiting =
			skip_alike ? SW_OSET_NONE : next_waiting(book, plan->walked, fresh);
	plan->walks = true;
	plan->walked = SW_OSET_NONE;
	struct sw_rank best = {0};
	for (size_t l = 0; l < book->lanes.count; l++) {
		struct sw_lane *lane = &book->lanes.items[l];
		/* Those that this plan has started stand in the order until it is carried out. */
		while (lane->cursor_waiting != SW_OSET_NONE && !sw_job_is_waiting(&engine->jobs.items[lane->cursor_waiting].seen))
			lane->cursor_waiting = next_waiting(book, lane->cursor_waiting, fresh);
		if (lane->cursor_waiting == SW_OSET_NONE)
			continue;
		struct sw_rank rank = sw_order_rank(engine, lane->cursor_waiting);
		if (plan->walked == SW_OSET_NONE || sw_rank_before(&rank, &best)) {
			best = rank;
			plan->walked = rank.job;
		}
	}
	return plan->walked == SW_OSET_NONE ? NULL : &engine->jobs.items[plan->walked].seen;
}

const struct sw_job *sw_order_next(struct sw_plan *plan, bool skip_alike)
{
	return walk(plan, skip_alike, false);
}

const struct sw_job *sw_order_next_fresh(struct sw_plan *plan)
{
	return walk(plan, false, true);
}

static int compare_ranked(const void *a, const void *b)
{
	const struct sw_ranked *x = a, *y = b;
	return sw_rank_before(&x->rank, &y->rank) ? -1 : 1;
}

/* The stamp of a job that moves between the sets; `index` counts such jobs in rank order. */
static int64_t moved_stamp(const struct sw_order_book *book, bool start, bool fresh, int64_t index)
{
	int64_t block = book->seq << STAMP_SHIFT;
	index = index_below_fresh(index);
	switch (book->rule->ties) {
	case SW_TIES_WAITING_FIRST: /* the list reads: waiting, running; one that crosses stays next to the line */
		if (start)
			return fresh ? block + index : -block + index;
		return block + index;
	case SW_TIES_RUNNING_FIRST: /* the list reads: running, waiting, new; one that was put last and stops stays last */
		if (start)
			return block + index;
		return fresh ? block + STAMP_FRESH + index : -block + index;
	default:
		return 0;
	}
}

/* Writes down the place of every job in the list as its stamp; places within a set do not change,
 * so the sets stay sorted. */
static void number_all(struct sw_engine *engine)
{
	struct sw_order_book *book = &engine->order;
	book->ranked.count = 0;
	for (int set = 0; set < 2; set++) {
		const struct sw_bitmap *jobs = set == 0 ? &engine->running : &engine->waiting;
		for (uint32_t id = sw_bitmap_next(jobs, 0); id != SW_BITMAP_NONE; id = sw_bitmap_next(jobs, id + 1)) {
			struct sw_ranked *slot = sw_vec_push(&book->ranked);
			if (slot != NULL)
				*slot = (struct sw_ranked){.rank = sw_order_rank(engine, id)};
		}
	}
	if (book->ranked.count > 1)
		qsort(book->ranked.items, book->ranked.count, sizeof *book->ranked.items, compare_ranked);
	for (size_t i = 0; i < book->ranked.count; i++)
		book->links.items[book->ranked.items[i].rank.job].stamp = (int64_t)i;
}

/* Those that stopped have a home now, those that started have none; room for their
 * lanes was made before. */
static void relane_all(struct sw_engine *engine)
{
	for (size_t e = 0; engine->ruled > 0 && e < engine->plan.entries.count; e++) {
		int r = sw_order_relane(engine, &engine->jobs.items[engine->plan.entries.items[e].before.id.v]);
		assert(r == 0);
		(void)r;
	}
}

void sw_order_settle(struct sw_engine *engine)
{
	struct sw_order_book *book = &engine->order;
	if (book->rule == NULL) {
		relane_all(engine);
		return;
	}
	if (book->exact)
		number_all(engine);
	book->ranked.count = 0;
	for (size_t e = 0; e < engine->plan.entries.count; e++) {
		struct sw_core_job *job = &engine->jobs.items[engine->plan.entries.items[e].before.id.v];
		bool runs = job->seen.state == SW_JOB_RUNNING;
		if (job->ranks_as_running == runs) {
			/* Lifted and put back: it never moved. Running jobs that do not
			 * compete are in no set. */
			if (job->order_set == SW_ORDER_NOWHERE && (!runs || book->rule->preemptive))
				sw_order_restore(engine, job);
			continue;
		}
		struct sw_ranked *slot = sw_vec_push(&book->ranked);
		assert(slot != NULL); /* reserved at submit */
		*slot = (struct sw_ranked){sw_order_rank(engine, job->seen.id.v), runs};
	}
	if (book->ranked.count > 1)
		qsort(book->ranked.items, book->ranked.count, sizeof *book->ranked.items, compare_ranked);
	for (size_t i = 0; i < book->ranked.count; i++) {
		struct sw_core_job *job = &engine->jobs.items[book->ranked.items[i].rank.job];
		int64_t stamp = book->exact ? book->links.items[job->seen.id.v].stamp
					    : moved_stamp(book, book->ranked.items[i].start, job->seen.fresh, (int64_t)i);
		take_out(engine, job);
		int r = sw_order_relane(engine, job);
		assert(r == 0); /* reserved before the decision */
		(void)r;
		job->ranks_as_running = book->ranked.items[i].start;
		insert(engine, job, stamp);
	}
	for (size_t f = 0; f < book->fresh.count; f++) {
		struct sw_core_job *job = &engine->jobs.items[book->fresh.items[f]];
		job->seen.fresh = 0;
		sw_order_mark(engine, job);
	}
	book->fresh.count = 0;
	book->fresh_index = 0;
	book->seq++;
}

void sw_order_forget_fresh(struct sw_engine *engine)
{
	for (size_t f = 0; f < engine->order.fresh.count; f++)
		engine->jobs.items[engine->order.fresh.items[f]].seen.fresh = 0;
	engine->order.fresh.count = 0;
}

int sw_order_rebuild(struct sw_engine *engine)
{
	struct sw_order_book *book = &engine->order;
	book->lanes.count = 0;
	book->uneven = false;
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		job->order_set = SW_ORDER_NOWHERE;
		if (job->seen.state > SW_JOB_RUNNING)
			continue;
		int r = sw_order_assign_lane(engine, job);
		if (r < 0)
			return r;
		/* New ones are behind all others with their key, as sw_order_rank() has it. */
		if (book->rule != NULL && job->seen.state != SW_JOB_HELD)
			insert(engine, job, job->seen.fresh ? last_stamp(book) : book->rule->ties == SW_TIES_BY_ARRIVAL ? 0 : id);
	}
	return 0;
}
