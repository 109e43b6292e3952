/* What people do to jobs that are there: cancel, hold, release, requeue; as
 * records, and as what these do.
 *
 * Many jobs may be changed at once. Each has a record, which says whether more of them follow
 * (`more`); one that is changed alone does not say. The records are stored together or not at all.
 * Each acts as it comes, so that a look in between finds nothing half done. But the engine decides
 * at the last of them, and those that waited for others are judged then. So nothing starts in the
 * place of one job only to be stopped with the next.
 *
 * Invariants:
 *  1. while changes are not decided on, `wake_at` is 0;
 *  2. whatever comes instead of the rest decides on them: also where the rest is
 *     lost, no job waits in vain.
 */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "brain/changes.h"
#include "brain/dependents.h"
#include "brain/fold.h"
#include "brain/forget.h"
#include "brain/prerun.h"
#include "brain/propose.h"
#include "brain/record.h"
#include "brain/report.h"
#include "brain/runs.h"
#include "brain/state.h"
#include "brain/stops.h"

/* ---- proposing */

static int check_there(const struct sw_brain *brain, const struct sw_user *user, uint64_t job, struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	struct sw_fate fate;
	bool has_left = live == NULL && sw_brain_find_fate(brain, job, &fate);
	if (live == NULL && !has_left)
		return sw_err_set(err, SW_ENOTFOUND, "there is no job %llu", (unsigned long long)job);
	if (has_left ? !user->is_operator && user->uid != fate.uid : !sw_brain_may_change(user, live))
		return sw_err_set(err, SW_EDENIED, "job %llu belongs to another user", (unsigned long long)job);
	return 0;
}

bool sw_brain_has_ended(const struct sw_brain *brain, uint64_t job)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	return live == NULL || live->is_over;
}

static int check_alive(const struct sw_brain *brain, const char *verb, uint64_t job, struct sw_err *err)
{
	if (!sw_brain_has_ended(brain, job))
		return 0;
	sw_err_set(err, SW_EINPUT, "cannot %s job %llu", verb, (unsigned long long)job);
	sw_err_detail(err, "it has ended");
	return SW_EINPUT;
}

static int refuse_deep(uint64_t job, const char *detail, const char *hint, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot take job %llu off its GPUs whole", (unsigned long long)job);
	sw_err_detail(err, "%s", detail);
	sw_err_hint(err, "%s", hint);
	return SW_EINPUT;
}

/* Whether its run is stopped by a suspend, with what it has done so far: it is under way, and
 * would not stand still. */
static bool would_lose(const struct sw_brain *brain, uint64_t job)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	const struct sw_job *own = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)});
	bool runs = false;
	/* What was ordered may have begun, though its agent has not said so yet. */
	enum sw_heard least = own->stop_rule == SW_STOP_RESTART ? SW_HEARD_RUNNING : SW_HEARD_NOTHING;
	for (uint32_t r = 0; r < live->run_count; r++)
		runs |= live->runs[r].heard >= least && live->runs[r].heard <= SW_HEARD_RUNNING;
	return runs && !sw_brain_is_suspended(brain, live) && !(live->parks && sw_job_may_stop(sw_engine_view(brain->engine), own));
}

static const char *why_lost(const struct sw_brain *brain, uint64_t job)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	const struct sw_job *own = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)});
	if (own->stop_rule == SW_STOP_NEVER)
		return "it was submitted with --preempt never: it would be stopped and start anew";
	for (uint32_t r = 0; r < live->run_count; r++)
		if (live->runs[r].heard < SW_HEARD_RUNNING)
			return "it is just starting, and can stand still once it runs; try again in a moment";
	if (!live->parks)
		return "it was submitted with --preempt requeue: it would be stopped and start anew";
	return own->stop_rule == SW_STOP_IF_FREE
		       ? "its GPU memory would stay on the GPUs, and it was not submitted with --preempt suspend: it would be stopped and "
			 "start anew"
		       : "its run cannot stand still, so it would be stopped and start anew";
}

static int check_deep(const struct sw_brain *brain, uint64_t job, struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	if (live->run_count == 0)
		return refuse_deep(job, "it does not run", "'sharewell hold' keeps a job from running.", err);
	if (sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)})->cannot_pause)
		return refuse_deep(job, "it was submitted with --gpu-runtime off",
				   "'sharewell suspend' without --deep may let it stand still.", err);
	return !live->parks || would_lose(brain, job)
		       ? refuse_deep(job, why_lost(brain, job), "'sharewell suspend --force' does that.", err)
		       : 0;
}

/* What it would lose, before it does. */
static int check_loss(const struct sw_brain *brain, const struct sw_change *change, uint64_t job, struct sw_err *err)
{
	const struct sw_job *own = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)});
	char span[32];
	bool ends = own->no_restart && (change->kind == SW_RECORD_REQUEUE || (change->force && would_lose(brain, job)));
	if (ends && sw_brain_live(brain, job)->run_count > 0) {
		sw_err_set(err, SW_EINPUT, "cannot %s job %llu", change->verb, (unsigned long long)job);
		sw_err_detail(err, "it was submitted with --no-requeue, so it would never start again");
		sw_err_hint(err, "'sharewell cancel %llu' ends it.", (unsigned long long)job);
		return SW_EINPUT;
	}
	if (change->kind != SW_RECORD_HOLD || change->leaves || change->force || !would_lose(brain, job))
		return 0;
	sw_ns now = change->now > brain->now ? change->now : brain->now;
	sw_format_duration(now > own->since ? now - own->since : 0, span);
	sw_err_set(err, SW_EINPUT, "suspending job %llu would lose its run of %s", (unsigned long long)job, span);
	sw_err_detail(err, "%s", why_lost(brain, job));
	sw_err_hint(err, "'sharewell suspend --force %llu' stops it all the same; 'sharewell hold %llu' leaves the run alone.",
		    (unsigned long long)job, (unsigned long long)job);
	return SW_EINPUT;
}

/* `rest`: what it says beside the job and the user. Thousands of these may be one request, so the
 * text is put together without a detour through a tree. */
static int push_change(const struct sw_brain *brain, const struct sw_user *user, const struct sw_change *change, uint64_t job,
		       const char *rest, sw_records *records, struct sw_err *err)
{
	char *text = NULL, got[160] = "";
	const char *spares = change->kind == SW_RECORD_HOLD && !change->leaves && !change->force ? ",\"spares\":true" : "";
	struct sw_report end = {0};
	if (change->kind == SW_RECORD_CANCEL && !sw_brain_has_ended(brain, job))
		sw_report_note_job(&end, brain, job);
	if (end.ran_ns > 0 || end.since_ns > 0)
		snprintf(got, sizeof got, ",\"ran\":%lld,\"since\":%lld,\"stops\":%u,\"uid\":%u", (long long)end.ran_ns,
			 (long long)end.since_ns, end.stops, end.uid);
	int size = asprintf(&text, "{\"by\":%d%s%s,\"job\":%llu%s%s%s}", (int)user->uid, change->deep ? ",\"deep\":true" : "",
			    change->force ? ",\"force\":true" : "", (unsigned long long)job, change->leaves ? ",\"leaves\":true" : spares,
			    rest, got);
	return sw_record_push_text(records, change->kind, size >= 0 ? text : NULL, size >= 0 ? (size_t)size : 0, err);
}

static int check(const struct sw_brain *brain, const struct sw_user *user, const struct sw_change *change, uint64_t job, struct sw_err *err)
{
	int r = check_there(brain, user, job, err);
	if (r < 0 || (change->skips_ended && sw_brain_has_ended(brain, job)))
		return r;
	r = check_alive(brain, change->verb, job, err);
	r = r < 0 || !change->deep ? r : check_deep(brain, job, err);
	return r < 0 ? r : check_loss(brain, change, job, err);
}

int sw_brain_propose_one(struct sw_brain *brain, const struct sw_user *user, const struct sw_change *change, uint64_t job,
			 sw_records *records, struct sw_err *err)
{
	int r = check(brain, user, change, job, err);
	return r < 0 ? r : push_change(brain, user, change, job, "", records, err);
}

int sw_brain_propose_change(struct sw_brain *brain, const struct sw_user *user, enum sw_record_kind kind, const char *verb, uint64_t job,
			    sw_records *records, struct sw_err *err)
{
	const struct sw_change change = {.kind = kind, .verb = verb, .leaves = strcmp(verb, "hold") == 0};
	return sw_brain_propose_one(brain, user, &change, job, records, err);
}

int sw_brain_propose_deep(struct sw_brain *brain, const struct sw_user *user, uint64_t job, sw_records *records, struct sw_err *err)
{
	const struct sw_change change = {.kind = SW_RECORD_HOLD, .verb = "suspend", .deep = true};
	return sw_brain_propose_one(brain, user, &change, job, records, err);
}

/* Beside what is said of the one job. */
void sw_brain_say_none(struct sw_err *err, size_t count)
{
	size_t used = err != NULL ? strlen(err->hint) : 0;
	if (err != NULL && count > 1)
		snprintf(err->hint + used, sizeof err->hint - used, "%sNone of the %zu jobs was changed.", used > 0 ? " " : "", count);
}

int sw_brain_propose_changes(struct sw_brain *brain, const struct sw_user *user, const struct sw_change *change, const uint64_t *jobs,
			     size_t count, sw_records *records, struct sw_err *err)
{
	size_t last = count;
	for (size_t j = 0; j < count; j++) {
		int r = check(brain, user, change, jobs[j], err);
		if (r < 0) {
			sw_brain_say_none(err, count);
			return r;
		}
		last = sw_brain_has_ended(brain, jobs[j]) ? last : j;
	}
	int r = 0;
	for (size_t j = 0; r == 0 && last < count && j <= last; j++)
		if (!sw_brain_has_ended(brain, jobs[j]))
			r = push_change(brain, user, change, jobs[j], j < last ? ",\"more\":true" : ",\"more\":false", records, err);
	return r;
}

bool sw_brain_would_change(const struct sw_brain *brain, enum sw_record_kind kind, uint64_t job)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	if (live == NULL || sw_brain_has_ended(brain, job))
		return false;
	if (kind == SW_RECORD_REQUEUE)
		return live->run_count > 0;
	const struct sw_live *prerun = sw_brain_live(brain, sw_prerun_of(live));
	/* A release also ends the pause after a failure. */
	return kind != SW_RECORD_RELEASE || live->user_held || sw_heap_has(&brain->retries, (uint32_t)(job - 1)) ||
	       (prerun != NULL && prerun->user_held);
}

/* ---- applying */

static int step(struct sw_brain *brain, enum sw_event_kind kind, struct sw_job_id job, struct sw_err *err)
{
	const struct sw_event event = {.kind = kind, .job = job};
	return sw_brain_step(brain, &event, 1, err);
}

static int cancel(struct sw_brain *brain, struct sw_job_id id, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id.v];
	snprintf(live->reason, sizeof live->reason, "cancelled");
	live->ended_at = brain->now;
	sw_heap_remove(&brain->retries, id.v);
	return step(brain, SW_EV_CANCEL, id, err);
}

/* Its gang needs it no more. */
static int cancel_prerun(struct sw_brain *brain, uint64_t prerun, struct sw_err *err)
{
	struct sw_job_id id = {(uint32_t)(prerun - 1)};
	return sw_engine_job(brain->engine, id)->state > SW_JOB_RUNNING ? 0 : cancel(brain, id, err);
}

/* Its run is over, suspended or not, and nothing of it is kept. */
static int begin_again(struct sw_brain *brain, struct sw_job_id id, bool holds, struct sw_err *err)
{
	const struct sw_event events[] = {{.kind = SW_EV_REQUEUE, .job = id}, {.kind = SW_EV_HOLD, .job = id}};
	bool is_over = sw_brain_live(brain, id.v + UINT64_C(1))->run_count == 0;
	return is_over ? 0 : sw_brain_step(brain, events, holds ? 2 : 1, err);
}

static int change_job(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_err *err)
{
	json_int_t number, by = -1;
	if (json_unpack(body, "{s:I, s?I}", "job", &number, "by", &by) != 0)
		return sw_err_set(err, SW_EBUG, "a record lacks its job");
	struct sw_live *live = sw_brain_live(brain, (uint64_t)number);
	if (sw_brain_has_left(brain, number))
		return 0; /* it ended and left in the meantime */
	if (live == NULL)
		return sw_err_set(err, SW_EBUG, "a record names job %lld, which is not there", (long long)number);
	struct sw_job_id id = {(uint32_t)(number - 1)};
	const struct sw_job *job = sw_engine_job(brain->engine, id);
	if (job->state > SW_JOB_RUNNING)
		return 0; /* it ended in the meantime */
	/* A requeue leaves a job alone that waits for its next try already. */
	if (kind != SW_RECORD_REQUEUE)
		sw_heap_remove(&brain->retries, id.v);
	uint64_t prerun = sw_prerun_of(live);
	int r = 0;
	switch (kind) {
	case SW_RECORD_CANCEL:
		if (sw_stop_note(brain, id.v, SW_STOP_CANCELLED, SW_STOPPED_BY_POLICY, 0) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		r = cancel(brain, id, err);
		if (r == 0 && prerun > 0 && sw_brain_live(brain, prerun)->awaited == 0)
			r = cancel_prerun(brain, prerun, err);
		return r < 0 || brain->gathers ? r : sw_brain_settle(brain, err);
	case SW_RECORD_HOLD:
		/* It was let in since nothing would be lost; what came before it in its batch may
		 * have changed that. */
		if (json_is_true(json_object_get(body, "spares")) && would_lose(brain, (uint64_t)number))
			return 0;
		live->user_held = true;
		live->held_by = by >= 0 ? (uint32_t)by : SW_NOBODY;
		if (json_is_true(json_object_get(body, "leaves")))
			return step(brain, SW_EV_HOLD_NEXT, id, err);
		if (json_is_true(json_object_get(body, "force")) && would_lose(brain, (uint64_t)number))
			return begin_again(brain, id, true, err);
		/* What cannot be suspended is dropped by the step, and this with it. */
		if (live->run_count > 0 && json_is_true(json_object_get(body, "deep")))
			sw_brain_set_deep(brain, live);
		return step(brain, SW_EV_HOLD, id, err);
	case SW_RECORD_RELEASE:
		live->user_held = false;
		live->held_by = SW_NOBODY;
		if (prerun > 0 && brain->jobs.items[prerun - 1].user_held) {
			brain->jobs.items[prerun - 1].user_held = false;
			r = brain->jobs.items[prerun - 1].depend_count > 0 || brain->jobs.items[prerun - 1].stranded
				    ? 0
				    : step(brain, SW_EV_RELEASE, (struct sw_job_id){(uint32_t)(prerun - 1)}, err);
		}
		return live->depend_count > 0 || live->stranded || r < 0 ? r : step(brain, SW_EV_RELEASE, id, err);
	default: /* requeue: stop it and let it compete again; what would be suspended or is goes too */
		return begin_again(brain, id, false, err);
	}
}

int sw_brain_conclude_changes(struct sw_brain *brain, struct sw_err *err)
{
	return brain->wake_at != 0 ? 0 : sw_brain_settle_and_step(brain, err);
}

int sw_brain_apply_change(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_err *err)
{
	const json_t *more = json_object_get(body, "more");
	brain->gathers = more != NULL;
	sw_stop_begin(brain, body);
	int r = change_job(brain, kind, body, err);
	brain->gathers = false;
	brain->acts_on = 0;
	return r < 0 || !json_is_false(more) ? r : sw_brain_conclude_changes(brain, err);
}
