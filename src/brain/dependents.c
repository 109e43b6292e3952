/* Jobs that wait for others: to end (well, badly, at all), for their pre-run, or for
 * a slot of their array.
 *
 * A job waits at one thing at a time: the first of what it asked for that is still to come. It
 * stands in the list of the job that it waits for. So the end of a job costs as much as the jobs
 * that wait for it, not as all that wait. What is met stays met: over its life a job looks at each
 * of what it asked for once.
 *
 * A job that ends goes into a queue. sw_brain_settle() takes the jobs that wait for it out of its
 * list, some at a time. A record never has more work than SETTLED_AT_ONCE of them, and as long as
 * the queue is not empty the brain asks for another record. The queue is part of the state.
 *
 * Invariants (sw_depends_validate() checks them):
 *  1. a job that waits at a job is in the list of that job, and in no other. One that waits for a
 *     slot is in none, or in that of a member that has ended;
 *  2. a job with a list that has ended is in the queue;
 *  3. `awaited` counts the jobs that name this one and still wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brain/arrays.h"
#include "brain/asked.h"
#include "brain/dependents.h"
#include "brain/fold.h"
#include "brain/forget.h"
#include "brain/prerun.h"
#include "brain/state.h"

#define SETTLED_AT_ONCE 1000u

enum verdict { STILL_WAITS, MAY_GO, NEVER };

/* ---- lists */

static void link_waiter(struct sw_brain *brain, uint32_t job, uint32_t awaited)
{
	struct sw_live *live = sw_brain_live(brain, job), *other = sw_brain_live(brain, awaited);
	live->waits_for = awaited;
	live->waiter_prev = other->waiter_last;
	live->waiter_next = 0;
	if (other->waiter_last != 0)
		sw_brain_live(brain, other->waiter_last)->waiter_next = job;
	else
		other->waiter_first = job;
	other->waiter_last = job;
}

static void unlink_waiter(struct sw_brain *brain, struct sw_live *live)
{
	if (live->waits_for == 0)
		return;
	struct sw_live *other = sw_brain_live(brain, live->waits_for);
	*(live->waiter_prev != 0 ? &sw_brain_live(brain, live->waiter_prev)->waiter_next : &other->waiter_first) = live->waiter_next;
	*(live->waiter_next != 0 ? &sw_brain_live(brain, live->waiter_next)->waiter_prev : &other->waiter_last) = live->waiter_prev;
	live->waits_for = live->waiter_next = live->waiter_prev = 0;
}

static void enqueue(struct sw_brain *brain, uint32_t job)
{
	struct sw_live *live = sw_brain_live(brain, job);
	if (live->is_queued)
		return;
	live->is_queued = true;
	if (brain->over_last != 0)
		sw_brain_live(brain, brain->over_last)->over_next = job;
	else
		brain->over_first = job;
	brain->over_last = job;
}

static void dequeue(struct sw_brain *brain)
{
	struct sw_live *live = sw_brain_live(brain, brain->over_first);
	brain->over_first = live->over_next;
	if (brain->over_first == 0)
		brain->over_last = 0;
	live->over_next = 0;
	live->is_queued = false;
}

static void count_awaited(struct sw_brain *brain, const struct sw_live *live, uint32_t by)
{
	for (uint32_t d = 0; d < live->depend_count; d++) {
		struct sw_live *other = live->depends[d].kind != SW_AFTER_SLOT ? sw_brain_live(brain, live->depends[d].job) : NULL;
		if (other != NULL)
			other->awaited += by;
	}
}

static void forget_depends(struct sw_brain *brain, struct sw_live *live)
{
	unlink_waiter(brain, live);
	count_awaited(brain, live, (uint32_t)-1);
	free(live->depends);
	live->depends = NULL;
	live->depend_count = live->depend_at = 0;
}

/* ---- judging */

static bool is_users_fault(const struct sw_trouble *trouble)
{
	return trouble != NULL && trouble->cause.layer == SW_LAYER_USER && trouble->cause.action == SW_ACTION_NONE;
}

/* Whether a job that has ended did so as the other one asked. */
static bool is_met(const struct sw_brain *brain, const struct sw_depend *depend, const struct sw_live *other)
{
	enum sw_job_state state = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(depend->job - 1)})->state;
	switch (depend->kind) {
	case SW_AFTER_PRERUN:
		return state != SW_JOB_FAILED || !is_users_fault(other->trouble);
	case SW_AFTER_OK:
		return state == SW_JOB_FINISHED;
	case SW_AFTER_NOT_OK:
		return state != SW_JOB_FINISHED;
	default:
		return true;
	}
}

/* The same of one that had ended when this one was submitted, and has left since. */
static bool was_met(const struct sw_live *live, const struct sw_depend *depend)
{
	const struct sw_fate *fate = sw_asked_fate(live->asked, depend->job);
	return fate != NULL && (depend->kind == SW_AFTER_OK ? fate->ok : depend->kind == SW_AFTER_NOT_OK ? !fate->ok : true);
}

/* Goes on to the first thing that is still to come. */
static enum verdict judge(const struct sw_brain *brain, struct sw_live *live, uint32_t job)
{
	for (; live->depend_at < live->depend_count; live->depend_at++) {
		const struct sw_depend *depend = &live->depends[live->depend_at];
		const struct sw_live *other = depend->kind != SW_AFTER_SLOT ? sw_brain_live(brain, depend->job) : NULL;
		if (depend->kind == SW_AFTER_SLOT ? !sw_array_admits(live, job) : other != NULL && !other->is_over)
			return STILL_WAITS;
		if (depend->kind != SW_AFTER_SLOT && (other == NULL ? !was_met(live, depend) : !is_met(brain, depend, other)))
			return NEVER;
	}
	return MAY_GO;
}

static void wait_on(struct sw_brain *brain, struct sw_live *live, uint32_t job)
{
	const struct sw_depend *depend = &live->depends[live->depend_at];
	if (depend->kind != SW_AFTER_SLOT)
		link_waiter(brain, job, (uint32_t)depend->job);
}

/* The job waits no longer: it goes or ends. */
static int conclude(struct sw_brain *brain, uint32_t job, enum verdict verdict, struct sw_err *err)
{
	struct sw_live *live = sw_brain_live(brain, job);
	struct sw_event event = {.kind = SW_EV_CANCEL, .job = {job - 1}};
	if (verdict == NEVER) {
		uint64_t prerun = sw_prerun_of(live);
		snprintf(live->reason, sizeof live->reason, "dependency never satisfied");
		live->ended_at = brain->now;
		if (prerun > 0 && sw_prerun_spoil(live, sw_brain_live(brain, prerun)) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		return sw_brain_step(brain, &event, 1, err);
	}
	forget_depends(brain, live);
	event.kind = SW_EV_RELEASE;
	bool goes = sw_engine_job(brain->engine, event.job)->state == SW_JOB_HELD && !live->user_held && !live->stranded;
	return goes ? sw_brain_step(brain, &event, 1, err) : 0;
}

static int look_at(struct sw_brain *brain, uint32_t job, struct sw_err *err)
{
	struct sw_live *live = sw_brain_live(brain, job);
	enum verdict verdict = judge(brain, live, job);
	if (verdict != STILL_WAITS)
		return conclude(brain, job, verdict, err);
	wait_on(brain, live, job);
	return 0;
}

/* ---- beginning and ending */

int sw_depends_begin(struct sw_brain *brain, uint32_t id, const struct sw_job_request *request, const struct sw_awaited *awaited)
{
	struct sw_live *live = sw_brain_live(brain, id + UINT64_C(1));
	const struct sw_live *before = sw_brain_live(brain, id);
	bool goes_on = live->is_member && before != NULL && before->array != NULL && before->array_first == live->array_first;
	if ((awaited->slots > 0 || goes_on) && sw_array_join(brain, id + UINT64_C(1), live->array_first, awaited->slots) < 0)
		return SW_ENOMEM;
	if (request->depend_count == 0 && awaited->prerun == 0 && awaited->slots == 0)
		return 0;
	live->depends = calloc(request->depend_count + 2, sizeof *live->depends);
	if (live->depends == NULL)
		return SW_ENOMEM;
	memcpy(live->depends, request->depends, request->depend_count * sizeof *live->depends);
	live->depend_count = (uint32_t)request->depend_count;
	if (awaited->prerun > 0)
		live->depends[live->depend_count++] = (struct sw_depend){SW_AFTER_PRERUN, awaited->prerun};
	if (awaited->slots > 0)
		live->depends[live->depend_count++] = (struct sw_depend){SW_AFTER_SLOT, awaited->slots};
	count_awaited(brain, live, 1);
	return 0;
}

int sw_depends_judge(struct sw_brain *brain, uint32_t id, struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, id + UINT64_C(1));
	return live->depend_count > 0 ? look_at(brain, id + 1, err) : 0;
}

int sw_depends_end(struct sw_brain *brain, uint32_t id)
{
	uint32_t job = id + 1;
	struct sw_live *live = sw_brain_live(brain, job);
	if (live->is_over || sw_engine_job(brain->engine, (struct sw_job_id){id})->state <= SW_JOB_RUNNING)
		return 0;
	live->is_over = true;
	forget_depends(brain, live);
	uint32_t next = (uint32_t)sw_array_end(brain, job);
	const struct sw_live *member = sw_brain_live(brain, next);
	if (member != NULL && member->depend_count > 0 && member->depends[member->depend_at].kind == SW_AFTER_SLOT)
		link_waiter(brain, next, job);
	if (live->waiter_first != 0)
		enqueue(brain, job);
	return sw_brain_note_end(brain, job);
}

/* ---- settling */

int sw_brain_settle(struct sw_brain *brain, struct sw_err *err)
{
	if (sw_brain_is_settled(brain))
		return 0;
	bool gathers = brain->gathers;
	int r = 0;
	brain->gathers = true; /* the engine decides once, at the end */
	for (uint32_t left = SETTLED_AT_ONCE; r == 0 && left > 0 && !sw_brain_is_settled(brain); left--) {
		uint32_t job = sw_brain_live(brain, brain->over_first)->waiter_first;
		if (job == 0) {
			dequeue(brain);
			continue;
		}
		unlink_waiter(brain, sw_brain_live(brain, job));
		r = look_at(brain, job, err);
	}
	brain->gathers = gathers;
	return r < 0 || gathers ? r : sw_brain_step(brain, NULL, 0, err);
}

int sw_brain_settle_and_step(struct sw_brain *brain, struct sw_err *err)
{
	brain->gathers = true;
	int r = sw_brain_settle(brain, err);
	brain->gathers = false;
	return r < 0 ? r : sw_brain_step(brain, NULL, 0, err);
}

/* ---- as bytes */

static void save_list(const struct sw_brain *brain, struct sw_pack *pack, uint32_t awaited)
{
	uint32_t job = sw_brain_live(brain, awaited)->waiter_first;
	for (; job != 0; job = sw_brain_live(brain, job)->waiter_next) {
		uint32_t at = sw_brain_live(brain, job)->depend_at, target = awaited;
		sw_pack_u32(pack, &target);
		sw_pack_u32(pack, &job);
		sw_pack_u32(pack, &at);
	}
}

void sw_depends_save(const struct sw_brain *brain, struct sw_pack *pack)
{
	size_t linked = 0, queued = 0;
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job)) {
		const struct sw_live *live = sw_brain_live(brain, job);
		linked += live != NULL && live->waits_for != 0;
		queued += live != NULL && live->is_queued;
	}
	sw_pack_count(pack, &linked);
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job))
		if (sw_brain_live(brain, job) != NULL)
			save_list(brain, pack, job);
	sw_pack_count(pack, &queued);
	for (uint32_t job = brain->over_first; job != 0; job = sw_brain_live(brain, job)->over_next)
		sw_pack_u32(pack, &job);
}

int sw_depends_load(struct sw_brain *brain, struct sw_pack *pack)
{
	size_t linked = 0, queued = 0;
	sw_pack_count(pack, &linked);
	for (size_t i = 0; i < linked && pack->failed == 0; i++) {
		uint32_t awaited = 0, job = 0, at = 0;
		if (pack->format < 8) { /* which jobs wait is known by what they wait for */
			sw_pack_u32(pack, &job);
			continue;
		}
		sw_pack_u32(pack, &awaited);
		sw_pack_u32(pack, &job);
		sw_pack_u32(pack, &at);
		struct sw_live *live = sw_brain_live(brain, job);
		if (live == NULL || live->waits_for != 0 || at >= live->depend_count || sw_brain_live(brain, awaited) == NULL) {
			sw_pack_fail(pack);
			break;
		}
		live->depend_at = at;
		link_waiter(brain, job, awaited);
	}
	if (pack->format >= 8)
		sw_pack_count(pack, &queued);
	for (size_t i = 0; i < queued && pack->failed == 0; i++) {
		uint32_t job = 0;
		sw_pack_u32(pack, &job);
		if (sw_brain_live(brain, job) == NULL || sw_brain_live(brain, job)->is_queued)
			sw_pack_fail(pack);
		else
			enqueue(brain, job);
	}
	return pack->failed;
}

/* A job that has ended, at which the job can wait until it is looked at; 0: there is none. */
static uint32_t find_over(const struct sw_brain *brain, const struct sw_live *live, uint32_t job)
{
	if (live->depends[0].kind != SW_AFTER_SLOT)
		return sw_brain_live(brain, live->depends[0].job) != NULL ? (uint32_t)live->depends[0].job : 0;
	for (uint32_t member = live->array_first; member < job; member++)
		if (sw_brain_live(brain, member) != NULL && sw_brain_live(brain, member)->is_over)
			return member;
	return 0;
}

/* Where a job of an older state waits: nothing of what it asked for was looked at yet. */
static int place(struct sw_brain *brain, struct sw_live *live, uint32_t job)
{
	if (judge(brain, live, job) == STILL_WAITS) {
		wait_on(brain, live, job);
		return 0;
	}
	/* It was to go or to end next. */
	uint32_t over = find_over(brain, live, job);
	if (over == 0)
		return SW_EINPUT;
	live->depend_at = 0;
	link_waiter(brain, job, over);
	enqueue(brain, over);
	return 0;
}

int sw_depends_derive(struct sw_brain *brain, uint32_t format)
{
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job)) {
		struct sw_live *live = sw_brain_live(brain, job);
		if (live != NULL)
			live->is_over = sw_engine_job(brain->engine, (struct sw_job_id){job - 1})->state > SW_JOB_RUNNING;
	}
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job)) {
		struct sw_live *live = sw_brain_live(brain, job);
		if (live == NULL || live->depend_count == 0)
			continue;
		const struct sw_depend *last = &live->depends[live->depend_count - 1];
		if (live->is_over) {
			free(live->depends);
			live->depends = NULL;
			live->depend_count = 0;
			continue;
		}
		if (last->kind == SW_AFTER_SLOT && sw_array_join(brain, job, live->array_first, last->job) < 0)
			return SW_ENOMEM;
		count_awaited(brain, live, 1);
	}
	int r = 0;
	for (uint32_t job = sw_brain_first(brain); r == 0 && job != 0; job = sw_brain_after(brain, job)) {
		struct sw_live *live = sw_brain_live(brain, job);
		if (live == NULL || live->depend_count == 0 || live->waits_for != 0)
			continue;
		if (format < 8)
			r = place(brain, live, job);
		else
			live->depend_at = live->depend_count - 1; /* for a slot */
	}
	return r;
}

/* ---- checking */

static const char *broken(const struct sw_brain *brain, const struct sw_live *live, uint32_t job, const uint32_t *awaited)
{
	if (live->depend_count > 0 && live->depend_at >= live->depend_count)
		return "waits behind the end of what it asked for";
	if (live->depend_count == 0 && live->waits_for != 0)
		return "is in a list and waits for nothing";
	if (live->waiter_first != 0 && live->is_over && !live->is_queued)
		return "has ended, and the jobs that wait for it are forgotten";
	if (live->is_queued && !live->is_over)
		return "is taken to have ended and has not";
	if (live->awaited != awaited[job])
		return "is waited for by another number of jobs than it counts";
	if (live->depend_count == 0)
		return NULL;
	const struct sw_depend *depend = &live->depends[live->depend_at];
	const struct sw_live *other = sw_brain_live(brain, live->waits_for);
	if (depend->kind != SW_AFTER_SLOT && live->waits_for != depend->job && !(other != NULL && other->is_queued))
		return "is not in the list of the job that it waits for";
	if (depend->kind == SW_AFTER_SLOT && (live->array == NULL || (other == NULL && sw_array_admits(live, job))))
		return "waits for a slot that is free";
	return NULL;
}

int sw_depends_validate(const struct sw_brain *brain, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) uint32_t *awaited = calloc(brain->jobs.count + 1, sizeof *awaited);
	if (awaited == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job)) {
		const struct sw_live *live = sw_brain_live(brain, job);
		for (uint32_t d = 0; live != NULL && d < live->depend_count; d++)
			if (live->depends[d].kind != SW_AFTER_SLOT && sw_brain_live(brain, live->depends[d].job) != NULL)
				awaited[live->depends[d].job]++;
	}
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job)) {
		const struct sw_live *live = sw_brain_live(brain, job);
		const char *what = live != NULL ? broken(brain, live, job, awaited) : NULL;
		if (what != NULL)
			return sw_err_set(err, SW_EBUG, "job %u %s", job, what);
	}
	return 0;
}
