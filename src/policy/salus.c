/* Salus: several jobs stay on a GPU with the memory that they keep, and share the memory of one
 * iteration by taking turns.
 *
 * Of its memory a job keeps a part between iterations, its floor P; the rest, E, it needs only
 * while it works. The GPUs that a job started on are a room; others that ask for as many GPUs may
 * join it. A room has lanes. A lane is memory that is large enough for the E of any of its members,
 * of which one at a time works. So
 *
 *	the sum of all P, plus the sum of all lanes, is at most the memory of the GPU
 *
 * and whichever jobs work in whichever lane, there is enough. A job that does not work is paused
 * where it is. Nothing is copied, so a turn costs the same whatever the size of a job. The lanes of
 * a room work at the same time.
 *
 * A job that comes takes free GPUs by the placement rule. Where there are none, of
 * the rooms of its size:
 *	1. a lane of its own, if there is memory for P and E and the room has less than `lanes`;
 *	2. else a lane that is large enough, the tightest, if there is memory for P;
 *	3. else a lane that grows to E, if there is memory for that and P;
 *	else it queues.
 * In a choice of rooms the one with the fewest jobs is taken. When a job leaves, its lane shrinks,
 * and jobs of the queue are tried there. Then members that stand still get a lane of their own if
 * one has become possible.
 *
 * Inside a lane, by `order`. Fair is the one that worked least, for a turn at a time. Fifo is the
 * one that came first, and srtf the one that has least to do. Pack is fifo with as many lanes as
 * there is room for, whatever `lanes` says. The queue is in the same order. Turns of all rooms end
 * together, at multiples of `turn`. It stands for the end of an iteration, of which there are too
 * many to decide each. A job that waited for `patience` is not overtaken, so that large jobs do not
 * starve.
 *
 * A job that does not say how much memory it needs, or cannot be paused, has its GPUs for itself.
 * Of one of which it is not known what it keeps, P is all of it, and its lane has no size. What
 * another policy brought together stays together, each in a lane of its own.
 */
#include <sharewell/policy.h>

#include <stdio.h>

#include "policy/salus.h"

#define MISSES_MAX 64u /* jobs tried in vain before those alike are passed over: they may need less memory */

static const struct sw_param params[] = {
	[ORDER] =
		{"order", SW_PARAM_CHOICE, "fair/fifo/srtf/pack",
		 "which job works in a lane: which worked least, came first, has least left to do; pack: as fifo, in as many lanes as fit",
		 0, 0},
	[LANES] = {"lanes", SW_PARAM_INTEGER, "2", "jobs that work on a GPU at the same time, at most; pack goes up to 8 in any case", 1,
		   MEMBERS_MAX},
	[TURN] = {"turn", SW_PARAM_DURATION, "60s", "how long a turn lasts in fair order", SECOND / 1000, 86400 * SECOND},
	[PATIENCE] = {"patience", SW_PARAM_DURATION, "6h", "a job that waited this long is not overtaken", 0,
		      INT64_C(3650) * 86400 * SECOND},
};

static const struct sw_order order = {.ties = SW_TIES_BY_ARRIVAL};

static int64_t order_of(struct sw_view *view)
{
	return sw_view_param(view, ORDER)->number;
}

static uint32_t lanes_of(struct sw_view *view)
{
	return order_of(view) == PACK ? MEMBERS_MAX : (uint32_t)sw_view_param(view, LANES)->number;
}

/* Which is ahead, of those that wait and of those in a lane. */
static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	switch (order_of(view)) {
	case FAIR:
		return sw_job_ran(view, job);
	case SRTF:
		return sw_job_remaining(view, job);
	default:
		return 0;
	}
}

/* ---- what happens */

static bool has_others(const struct salus_room *room, uint8_t lane)
{
	uint32_t members = 0;
	for (uint32_t m = 0; m < room->count; m++)
		members += room->lane[m] == lane;
	return members > 1;
}

/* Wakes us when the turn of one that works ends: that of all at the same moment. */
static void watch(struct sw_view *view, const struct sw_job *job)
{
	const struct salus_room *room = room_of(view, card_of(view, job)->room);
	int64_t turn = sw_view_param(view, TURN)->number;
	uint32_t at = 0;
	while (room->members[at] != job->id.v + 1)
		at++;
	if (!job->paused && order_of(view) == FAIR && has_others(room, room->lane[at]))
		sw_alarm_set(view, job, (sw_view_now(view) / turn + 1) * turn, 0);
	else
		sw_alarm_clear(view, job);
}

static void stopped(struct sw_view *view, const struct sw_job *job)
{
	sw_salus_leave(view, job);
	desk_of(view)->changed = true;
}

/* Whether it is on the GPUs of its room; it may have been moved. */
static bool is_at_home(struct sw_view *view, const struct sw_job *job)
{
	const struct salus_room *room = room_of(view, card_of(view, job)->room);
	for (uint32_t m = 0; room->count > 1 && m < room->count; m++)
		if (room->members[m] != job->id.v + 1 && sw_jobs_meet(view, linked(view, room->members[m]), job))
			return true;
	return room->count == 1;
}

/* Those that we start are in their rooms already, and have lost their alarm. The others were moved
 * away, or ran when this policy was put in charge. */
static void started(struct sw_view *view, const struct sw_job *job)
{
	if (card_of(view, job)->room != 0 && !is_at_home(view, job))
		stopped(view, job);
	uint32_t room = card_of(view, job)->room != 0 ? 0 : sw_salus_find(view, job);
	if (card_of(view, job)->room != 0)
		watch(view, job);
	else if (room == 0)
		sw_salus_found(view, job);
	else
		sw_salus_enter(view, job, room, job->paused ? 0 : room_of(view, room)->lanes);
}

static void alarm(struct sw_view *view, const struct sw_job *job)
{
	if (card_of(view, job)->room != 0)
		sw_salus_mark(view, card_of(view, job)->room);
}

/* ---- turns */

/* The job that works in the lane now, or NULL. */
static const struct sw_job *worker(struct sw_view *view, const struct salus_room *room, uint8_t lane)
{
	for (uint32_t m = 0; m < room->count; m++)
		if (room->lane[m] == lane && !linked(view, room->members[m])->paused)
			return linked(view, room->members[m]);
	return NULL;
}

/* The job that should. */
static const struct sw_job *heir(struct sw_view *view, const struct salus_room *room, uint8_t lane)
{
	const struct sw_job *best = NULL;
	int64_t least = 0;
	for (uint32_t m = 0; m < room->count; m++) {
		const struct sw_job *job = linked(view, room->members[m]);
		if (room->lane[m] != lane)
			continue;
		int64_t own = key(view, job);
		if (best == NULL || own < least) {
			best = job;
			least = own;
		}
	}
	return best;
}

/* The turn of one in fair order ends when the clock strikes. */
static bool is_over(struct sw_view *view, const struct sw_job *job)
{
	int64_t turn = sw_view_param(view, TURN)->number;
	return order_of(view) != FAIR || sw_view_now(view) / turn > job->since / turn;
}

static void pass_on(struct sw_plan *plan, const struct salus_room *room, uint8_t lane)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *now = worker(view, room, lane), *next = heir(view, room, lane);
	if (now != NULL && !is_over(view, now))
		next = now;
	/* Several where another policy brought them together. */
	for (const struct sw_job *other = now; other != NULL && sw_plan_stop(plan, other, SW_PAUSE) == SW_YES;)
		other = worker(view, room, lane);
	if (next->paused && sw_plan_run(plan, next, NULL) != SW_YES && now != NULL && now->paused)
		(void)sw_plan_run(plan, now, NULL);
}

static void take_turns(struct sw_plan *plan, uint32_t link)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct salus_room *room = room_of(view, link);
	for (uint8_t lane = 0; lane < room->lanes; lane++)
		pass_on(plan, room, lane);
	for (uint32_t m = 0; m < room->count; m++)
		watch(view, linked(view, room->members[m]));
}

/* ---- places */

/* Into a lane: the job that works there makes way for as long as the newcomer is let in. Whose turn
 * it is then is seen when the room is looked at. */
static bool join(struct sw_plan *plan, const struct sw_job *job, const struct seat *seat)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct salus_room *room = room_of(view, seat->room);
	const struct sw_job *now = seat->rule == 1 ? NULL : worker(view, room, seat->lane);
	if (now != NULL && sw_plan_stop(plan, now, SW_PAUSE) != SW_YES)
		return false;
	bool joins = sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(linked(view, room->members[0])))) == SW_YES;
	if (joins && now != NULL)
		(void)sw_plan_stop(plan, job, SW_PAUSE);
	if (now != NULL)
		(void)sw_plan_run(plan, now, NULL);
	if (joins)
		sw_salus_enter(view, job, seat->room, seat->lane);
	return joins;
}

struct pass {
	struct sw_plan *plan;
	struct sw_view *view;
	bool everywhere; /* or only in rooms in which something happened */
};

static struct seat look_for_seat(const struct pass *pass, const struct sw_job *job)
{
	struct seat best = {0};
	uint32_t lanes = lanes_of(pass->view);
	if (pass->everywhere || job->fresh)
		return sw_salus_seat_anywhere(pass->view, job, lanes);
	for (const struct sw_job *keeper = NULL; best.room == 0 && (keeper = sw_list_next(pass->view, DUE, keeper)) != NULL;)
		best = sw_salus_seat(pass->view, job, link_of(keeper), lanes);
	return best;
}

static enum sw_answer settle(const struct pass *pass, const struct sw_job *job)
{
	enum sw_answer answer = sw_plan_run(pass->plan, job, NULL);
	if (answer == SW_YES)
		sw_salus_found(pass->view, job);
	if (answer != SW_NO_ROOM || !shares(job))
		return answer;
	struct seat seat = look_for_seat(pass, job);
	return seat.room != 0 && join(pass->plan, job, &seat) ? SW_YES : SW_NO_ROOM;
}

/* In the order of the queue; the first that lost its patience ends it. */
static void serve_all(struct pass *pass)
{
	struct desk *desk = desk_of(pass->view);
	uint32_t misses = 0;
	desk->blocked = 0;
	for (const struct sw_job *job = sw_order_next(pass->plan, false); job != NULL;
	     job = sw_order_next(pass->plan, misses > MISSES_MAX)) {
		enum sw_answer answer = settle(pass, job);
		misses += answer != SW_YES;
		desk->changed |= answer == SW_OVER_QUOTA; /* a quota may be another next time */
		if (answer == SW_NO_ROOM && sw_view_now(pass->view) - job->since >= sw_view_param(pass->view, PATIENCE)->number) {
			desk->blocked = job->id.v + 1;
			return;
		}
	}
}

/* Those that came since the last decision, where nothing has changed for those that wait. */
static void serve_fresh(struct pass *pass)
{
	struct desk *desk = desk_of(pass->view);
	while (desk->blocked == 0) {
		const struct sw_job *job = sw_order_next_fresh(pass->plan);
		if (job == NULL)
			return;
		desk->changed |= settle(pass, job) == SW_OVER_QUOTA;
	}
}

static void serve(struct pass *pass)
{
	struct desk *desk = desk_of(pass->view);
	uint32_t changes = sw_view_changes(pass->view);
	pass->everywhere = (changes & SW_CHANGE_LOSSES) != 0;
	if (!desk->changed && (changes & (SW_CHANGE_ROOM | SW_CHANGE_STOPS)) == 0) {
		serve_fresh(pass);
		return;
	}
	desk->changed = false;
	serve_all(pass);
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct pass pass = {.plan = plan, .view = view};
	serve(&pass);
	uint32_t room;
	while ((room = sw_salus_next_due(view)) != 0) {
		sw_salus_spread(view, room, lanes_of(view));
		take_turns(plan, room);
	}
	return SW_TIME_NEVER;
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	uint32_t blocked = desk_of(view)->blocked;
	if (!shares(job))
		snprintf(text, size, "it %s, so it must have %u GPU%s to itself, and %u %s idle",
			 job->cannot_pause ? "runs without the GPU runtime" : "does not say how much GPU memory it needs",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)));
	else if (blocked != 0 && blocked != job->id.v + 1)
		snprintf(text, size, "it needs %u GPU%s, %u %s idle, and an earlier job has waited too long to be overtaken",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)));
	else
		snprintf(text, size,
			 "it needs %u GPU%s and %u %s idle; no others have room beside their lanes for the %llu MiB that it keeps",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)), (unsigned long long)(sw_job_floor(job) >> 20));
}

const struct sw_policy sw_policy_salus = {
	.abi = SW_POLICY_ABI,
	.name = "salus",
	.about = "jobs stay on a GPU together and take turns in lanes of memory, without copies (Salus)",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct desk),
	.job_state_size = sizeof(struct card),
	.list_count = LISTS,
	.shelf_count = SIZES_MAX + 1,
	.pauses = true,
	.order = &order,
	.key = key,
	.started = started,
	.stopped = stopped,
	.ended = stopped,
	.alarm = alarm,
	.decide = decide,
	.explain = explain,
};
